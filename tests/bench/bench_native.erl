%% SPDX-License-Identifier: Apache-2.0
%% What tracing every request leaves of a node's rate: by kprof's native tracer, through its trace
%% port, and by OTP's own profilers and recon_trace's way; all in one node, in turns.
%%
%% Eight processes make requests as fast as they can, so many a stretch. A rate is requests for a
%% second of the node's processor time, in which everything is that the node does for a trace: a
%% stretch ends when nothing waits any more. kprof's guard is out of reach (native.sh).
-module(bench_native).

-export([main/1, work/2]).

-define(WORKERS, 8).
% a stretch is over when the node has used less than so many ms in each of so many looks
-define(LOOK_MS, 50).
-define(IDLE_MS, 10).
-define(IDLE_LOOKS, 3).
-define(MB, 1048576).

-record(load, {
    name :: atom(),
    workers = [] :: [pid()],
    % all processes that requests go through
    processes = [] :: [pid()],
    tiers :: [{atom(), mfa()}],
    % for kprof
    options = [] :: list(),
    % in a request; unknown: not always as many
    calls :: pos_integer() | unknown,
    requests :: pos_integer(),
    % so many times fewer, where a request takes long or its messages pile up
    fewer = #{} :: #{atom() => pos_integer()}
}).

%% `rates WORK ROUNDS PORT NATIVE MARKS PRIV CONFIG SCRATCH': WORK is shop, or µs that a request of
%% bench_short is to take; then the ports of three collectors; the folder of the native tracer's
%% library; the configuration of kprof for the shop. Prints
%%   way WORK NAME RATE RATIO LOWEST HIGHEST MB   requests for a second of processor time; of
%%                   untraced's beside it, the median and the rounds' extremes; how much the node's
%%                   memory grew
%%   made WORK NAME REQUESTS                      in all rounds, by a way of kprof's
%%   call WORK NAME NS                            of the node's time, for a call and its return
%%   request WORK NAME NS                         the same for the begin and the end of a request
%% `record WAY REQUESTS PORT PRIV CONFIG FILE' makes requests of the shop, traced to the collector
%% at PORT (WAY is native) or into FILE (dbg).
-spec main([string()]) -> no_return().
main(["rates", Work, Rounds, Port, Native, Marks, Priv, Config, Scratch]) ->
    % who runs -eval traps exits
    _ = process_flag(trap_exit, false),
    start_kprof(Priv),
    Load = load(Work, Config),
    Context = #{
        port => list_to_integer(Port),
        native => list_to_integer(Native),
        marks => list_to_integer(Marks),
        scratch => Scratch
    },
    Ways = [Way || Way <- ways(Load), has(Way)],
    Measured = [a_round(Ways, Load, Context) || _ <- lists:seq(1, list_to_integer(Rounds))],
    [print(Way, Measured, Load) || Way <- Ways],
    print_calls(Measured, Load),
    halt(0);
main(["record", Way, Requests, Port, Priv, Config, File]) ->
    _ = process_flag(trap_exit, false),
    _ = application:load(shop),
    Costs = [http_cost, pool_cost, storage_cost, render_cost, accounting_cost, accounting_wait_ms],
    _ = [ok = application:set_env(shop, Cost, 0) || Cost <- Costs],
    _ = Way =:= "dbg" andalso application:set_env(shop, trace, dbg),
    ok = application:set_env(shop, capture, File),
    _ = Way =:= "native" andalso start_kprof(Priv),
    Load = load("shop", Config),
    _ = Way =:= "native" andalso traced([{tracer, native}], list_to_integer(Port), Load),
    Begin = runtime(),
    ok = made(list_to_integer(Requests), Load),
    ok = settled(runtime(), ?IDLE_LOOKS),
    io:format("recorded ~s ~s ~b~n", [Way, Requests, runtime() - Begin]),
    _ = Way =:= "native" andalso (ok = kprof:stop_trace()),
    ok = application:stop(shop),
    halt(0).

start_kprof(Priv) ->
    {ok, _} = application:ensure_all_started(runtime_tools),
    _ = application:load(kprof),
    ok = application:set_env(kprof, libraries, kprof_library:carried(Priv)),
    {module, kprof} = code:ensure_loaded(kprof),
    ok = kprof:start().

%% --- requests ---

load("shop", Config) ->
    {ok, _} = application:ensure_all_started(shop),
    {ok, Options} = file:script(Config),
    Requests = list_to_tuple(shop_requests()),
    Workers = workers(fun(N) ->
        {Route, Request} = element(N rem tuple_size(Requests) + 1, Requests),
        {_, _} = shop_trace:request(shop_http, handle_request, [Route, Request])
    end),
    Groups = [shop_worker, shop_storage, shop_render, shop_accounting],
    #load{
        name = shop,
        workers = Workers,
        processes = Workers ++
            [whereis(Name) || Group <- Groups, Name <- shop_group:members(Group)],
        tiers = shop_truth:tiers(),
        options = Options,
        calls = unknown,
        requests = 3000,
        fewer = #{recon => 3, fprof => 50}
    };
load(Text, _) ->
    Us = list_to_integer(Text),
    Units = atomics:new(1, []),
    ok = atomics:put(Units, 1, 14 * Us),
    Workers = workers(fun(_) -> bench_short:request(atomics:get(Units, 1)) end),
    {Requests, Fewer} =
        case Us < 100 of
            true -> {40000, #{dbg => 4, recon => 20, fprof => 200}};
            false -> {600, #{fprof => 100}}
        end,
    fit(Us, Units, #load{
        name = list_to_atom(Text),
        workers = Workers,
        processes = Workers,
        tiers = bench_short:tiers(),
        options = [{tier_config, bench_short:tiers()}],
        calls = bench_short:calls(),
        requests = Requests,
        fewer = Fewer
    }).

%% Ids that give no trouble, in the application's usual mix.
shop_requests() ->
    [{read, #{id => Id}} || Id <- lists:seq(101, 109)] ++
        [{search, #{text => Text}} || Text <- [<<"lamp">>, <<"clock">>]] ++
        [{update, #{id => Id, price => 7}} || Id <- lists:seq(201, 204)] ++
        [{delete, #{id => 301}}] ++
        [{order, #{ids => [Id, Id + 1, Id + 2]}} || Id <- [401, 411, 421, 431]].

%% How many units of work make a request of so many µs, found with all processes at work: each time
%% as many more or fewer as it seems, the last ones a little.
fit(Us, Units, #load{requests = Requests} = Load) ->
    lists:foreach(
        fun(Part) ->
            Begin = runtime(),
            ok = made(Requests, Load),
            Takes = max(1, runtime() - Begin) * 1000 / Requests,
            Now = atomics:get(Units, 1),
            atomics:put(Units, 1, max(14, round(Now * (1 + (Us / Takes - 1) * Part))))
        end,
        [1, 1, 1, 0.5, 0.4, 0.3, 0.2]
    ),
    Load.

-spec work(non_neg_integer(), integer()) -> integer().
work(0, Value) -> Value;
work(N, Value) -> work(N - 1, erlang:phash2({N, Value})).

workers(Request) ->
    [spawn_link(fun() -> worker(Request) end) || _ <- lists:seq(1, ?WORKERS)].

worker(Request) ->
    receive
        {make, From, Taken, Last} ->
            requests(atomics:add_get(Taken, 1, 1), Taken, Last, Request),
            From ! {made, self()}
    end,
    worker(Request).

requests(N, _, Last, _) when N > Last ->
    ok;
requests(N, Taken, Last, Request) ->
    _ = Request(N),
    requests(atomics:add_get(Taken, 1, 1), Taken, Last, Request).

made(Number, #load{workers = Workers}) ->
    Taken = atomics:new(1, []),
    _ = [Pid ! {make, self(), Taken, Number} || Pid <- Workers],
    lists:foreach(
        fun(Pid) ->
            receive
                {made, Pid} -> ok
            end
        end,
        Workers
    ).

%% --- a stretch ---

%% Each way lies between two stretches of untraced, whose mean it is compared with: so does one of
%% untraced itself, which tells how much chance there is in the others.
a_round(Ways, Load, Context) ->
    Untraced = fun() -> measured(untraced, Load, Context) end,
    {Measured, _} = lists:mapfoldl(
        fun(Way, Before) ->
            It = measured(Way, Load, Context),
            After = Untraced(),
            {{Way, It#{ns => ns(It), untraced_ns => (ns(Before) + ns(After)) / 2}}, After}
        end,
        Untraced(),
        Ways
    ),
    maps:from_list(Measured).

%% Of the node's processor time, for a request.
ns(#{requests := Requests, ms := Ms}) ->
    Ms * 1.0e6 / Requests.

measured(Way, #load{requests = Usual, fewer = Fewer} = Load, Context) ->
    Number = Usual div maps:get(Way, Fewer, 1),
    On = on(Way, Load, Context),
    ok = settled(runtime(), ?IDLE_LOOKS),
    Before = erlang:memory(total),
    Watch = spawn_opt(fun() -> memory(Before) end, [link, {priority, high}]),
    Begin = runtime(),
    ok = made(Number, Load),
    ok = settled(runtime(), ?IDLE_LOOKS),
    Ms = runtime() - Begin,
    Watch ! {self(), most},
    Most =
        receive
            {Watch, Bytes} -> Bytes
        end,
    ok = off(Way, On, Number, Load),
    #{requests => Number, ms => max(1, Ms), mb => (Most - Before) / ?MB}.

memory(Most) ->
    receive
        {From, most} -> From ! {self(), Most}
    after 20 -> memory(max(Most, erlang:memory(total)))
    end.

%% ms of processor time since the node began.
runtime() ->
    element(1, statistics(runtime)).

settled(_, 0) ->
    ok;
settled(Before, Looks) ->
    timer:sleep(?LOOK_MS),
    Now = runtime(),
    Waits = [P || P <- processes(), {_, N} <- [process_info(P, message_queue_len)], N > 10],
    case Now - Before < ?IDLE_MS andalso Waits =:= [] of
        true -> settled(Now, Looks - 1);
        false -> settled(Now, ?IDLE_LOOKS)
    end.

%% --- ways ---

%% `marks' is native with nothing but the begins and ends of requests, `hundredth' native where one
%% request in a hundred is traced.
ways(#load{calls = unknown}) ->
    [untraced, native, hundredth, eprof, tprof, call_time, dbg, recon, port, fprof];
ways(_) ->
    [untraced, native, marks, hundredth, eprof, tprof, call_time, dbg, recon, port, fprof].

has(tprof) -> code:which(tprof) =/= non_existing;
has(_) -> true.

on(untraced, _, _) ->
    none;
on(native, Load, #{native := Port}) ->
    traced([{tracer, native}], Port, Load);
on(marks, Load, #{marks := Port}) ->
    traced([{tracer, native}], Port, Load#load{options = [{tier_config, []}]});
on(hundredth, Load, #{marks := Port}) ->
    traced([{tracer, native}, {sample, {one_in, 100}}], Port, Load);
on(port, Load, #{port := Port}) ->
    traced([{tracer, port}], Port, Load);
on(eprof, #load{processes = Processes, tiers = [{_, First} | More]}, _) ->
    {ok, _} = eprof:start(),
    profiling = eprof:start_profiling(Processes, First),
    % it takes one pattern, and each way has the same functions
    _ = [erlang:trace_pattern(Mfa, true, [call_time]) || {_, Mfa} <- More],
    none;
on(tprof, #load{processes = Processes, tiers = Tiers}, _) ->
    {ok, _} = tprof:start(#{type => call_time}),
    _ = [tprof:set_pattern(M, F, A) || {_, {M, F, A}} <- Tiers],
    _ = tprof:enable_trace(Processes),
    none;
on(call_time, #load{tiers = Tiers}, _) ->
    _ = [1 = erlang:trace_pattern(Mfa, true, [call_time]) || {_, Mfa} <- Tiers],
    erlang:trace(all, true, [call]);
on(dbg, #load{tiers = Tiers}, _) ->
    Seen = counters:new(1, []),
    {ok, _} = dbg:tracer(process, {fun(_, ok) -> counters:add(Seen, 1, 1) end, ok}),
    _ = [{ok, _} = dbg:tpl(Mfa, x) || {_, Mfa} <- Tiers],
    {ok, _} = dbg:p(all, [call, timestamp]),
    Seen;
on(recon, #load{tiers = Tiers}, _) ->
    Seen = counters:new(1, []),
    Tracer = recon(Seen),
    Spec = [{'_', [], [{return_trace}]}],
    _ = [1 = erlang:trace_pattern(Mfa, Spec, [local]) || {_, Mfa} <- Tiers],
    _ = erlang:trace(all, true, [call, timestamp, {tracer, Tracer}]),
    {Tracer, Seen};
on(fprof, #load{processes = Processes}, #{scratch := Scratch}) ->
    File = filename:join(Scratch, "fprof.trace"),
    ok = fprof:trace([start, {procs, Processes}, {file, File}]),
    File.

%% Each looks whether all calls were seen.
off(untraced, _, _, _) ->
    ok;
off(Kprof, _, _, _) when
    Kprof =:= native; Kprof =:= marks; Kprof =:= hundredth; Kprof =:= port
->
    tracing = kprof:status(),
    kprof:stop_trace();
off(eprof, _, Number, #load{tiers = Tiers}) ->
    ok = counted(Tiers, Number),
    profiling_stopped = eprof:stop_profiling(),
    stopped = eprof:stop(),
    patterns_off(Tiers);
off(tprof, _, Number, #load{processes = Processes, tiers = [{_, {M, F, _}} | _]}) ->
    _ = tprof:disable_trace(Processes),
    {call_time, Counts} = tprof:collect(),
    [Number] = [
        lists:sum([N || {_, N, _} <- Of])
     || {M1, F1, _, Of} <- Counts, M1 =:= M, F1 =:= F orelse element(1, F1) =:= F
    ],
    tprof:stop();
off(call_time, _, Number, #load{tiers = Tiers}) ->
    ok = counted(Tiers, Number),
    _ = erlang:trace(all, false, [call]),
    patterns_off(Tiers);
off(dbg, Seen, Number, Load) ->
    {ok, _} = dbg:p(all, clear),
    {ok, _} = dbg:ctpl('_'),
    ok = dbg:stop(),
    seen(Seen, Number, Load);
off(recon, {Tracer, Seen}, Number, #load{tiers = Tiers} = Load) ->
    _ = erlang:trace(all, false, [all]),
    true = exit(Tracer, shutdown),
    ok = patterns_off(Tiers),
    seen(Seen, Number, Load);
off(fprof, File, _, _) ->
    ok = fprof:trace(stop),
    ok = fprof:stop(),
    true = filelib:file_size(File) > 0,
    file:delete(File).

patterns_off(Tiers) ->
    lists:foreach(
        fun({_, Mfa}) -> _ = erlang:trace_pattern(Mfa, false, [call_time]) end, Tiers
    ),
    lists:foreach(fun({_, Mfa}) -> _ = erlang:trace_pattern(Mfa, false, [local]) end, Tiers).

%% The first tier is what a request calls once.
counted([{_, First} | _], Number) ->
    {call_time, Counts} = erlang:trace_info(First, call_time),
    Number = lists:sum([N || {_, N, _, _} <- Counts]),
    ok.

%% A message for each call, and one for each return.
seen(Seen, _, #load{calls = unknown}) ->
    true = counters:get(Seen, 1) > 0,
    ok;
seen(Seen, Number, #load{calls = Calls}) ->
    true = counters:get(Seen, 1) =:= 2 * Calls * Number,
    ok.

traced(Options, Port, #load{options = OfLoad}) ->
    ok = kprof:start_trace(Options ++ [{collector, {"127.0.0.1", Port}} | OfLoad]),
    tracing = until_traced(200),
    {ok, Maps} = file:read_file("/proc/self/maps"),
    true = lists:member({tracer, port}, Options) orelse
        binary:match(Maps, <<"kprof_native">>) =/= nomatch,
    none.

until_traced(Tries) ->
    case kprof:status() of
        waiting when Tries > 0 ->
            timer:sleep(50),
            until_traced(Tries - 1);
        Status ->
            Status
    end.

%% --- recon_trace's way ---

%% The tracer counts what comes in a second and hands it on to a process that makes a line of text
%% of each message, with the time of day, and prints it: here to a group leader that throws it away.
recon(Seen) ->
    spawn(fun() ->
        Out = spawn_link(fun discards/0),
        Formatter = spawn_link(fun() -> formats(Out, Seen) end),
        limits(Formatter, 0, os:timestamp())
    end).

limits(Formatter, Count, Begin) ->
    receive
        Message ->
            Now = os:timestamp(),
            Formatter ! Message,
            case timer:now_diff(Now, Begin) > 1000000 of
                true -> limits(Formatter, 0, Now);
                false when Count < 1 bsl 40 -> limits(Formatter, Count + 1, Begin)
            end
    end.

formats(Out, Seen) ->
    receive
        Message ->
            {Type, Pid, {Hour, Minute, Second}, Text} = formatted(Message),
            io:format(Out, "~n~p:~p:~9.6.0f ~p ~s ~s~n", [
                Hour, Minute, Second, Pid, Type, Text
            ]),
            ok = counters:add(Seen, 1, 1)
    end,
    formats(Out, Seen).

formatted({trace_ts, Pid, call, {M, F, Args}, At}) ->
    Texts = [io_lib:format("~tp", [Arg]) || Arg <- Args],
    {call, Pid, time_of_day(At), io_lib:format("~p:~p(~ts)", [M, F, lists:join(", ", Texts)])};
formatted({trace_ts, Pid, return_from, {M, F, A}, Value, At}) ->
    {return, Pid, time_of_day(At), io_lib:format("~p:~p/~p --> ~tp", [M, F, A, Value])}.

time_of_day({_, _, Micro} = At) ->
    {_, {Hour, Minute, Second}} = calendar:now_to_local_time(At),
    {Hour, Minute, Second + Micro / 1000000}.

discards() ->
    receive
        {io_request, From, Ref, {put_chars, Encoding, M, F, Args}} ->
            _ = unicode:characters_to_binary(apply(M, F, Args), Encoding),
            From ! {io_reply, Ref, ok};
        {io_request, From, Ref, _} ->
            From ! {io_reply, Ref, ok}
    end,
    discards().

%% --- what it came to ---

print(Way, Measured, #load{name = Work}) ->
    Of = [Stretch || #{Way := Stretch} <- Measured],
    Ratios = [Untraced / Ns || #{ns := Ns, untraced_ns := Untraced} <- Of],
    io:format("way ~s ~s ~.1f ~.4f ~.4f ~.4f ~.1f~n", [
        Work,
        Way,
        1.0e9 / median([Ns || #{ns := Ns} <- Of]),
        median(Ratios),
        lists:min(Ratios),
        lists:max(Ratios),
        median([Mb || #{mb := Mb} <- Of])
    ]),
    io:format("made ~s ~s ~b~n", [Work, Way, lists:sum([N || #{requests := N} <- Of])]).

%% What the begin and the end of a request take under native is no part of its calls; under port it
%% is.
print_calls(_, #load{calls = unknown}) ->
    ok;
print_calls(Measured, #load{name = Work, calls = Calls}) ->
    More = fun(Way) ->
        median([Ns - Untraced || #{Way := #{ns := Ns, untraced_ns := Untraced}} <- Measured])
    end,
    io:format("request ~s native ~.1f~n", [Work, More(marks)]),
    io:format("call ~s native ~.1f~n", [Work, (More(native) - More(marks)) / Calls]),
    [
        io:format("call ~s ~s ~.1f~n", [Work, Way, More(Way) / Calls])
     || Way <- [call_time, eprof, tprof, dbg, port], is_map_key(Way, hd(Measured))
    ].

median(Values) ->
    Sorted = lists:sort(Values),
    N = length(Sorted),
    (lists:nth((N + 1) div 2, Sorted) + lists:nth(N div 2 + 1, Sorted)) / 2.
