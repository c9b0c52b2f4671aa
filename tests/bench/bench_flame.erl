%% SPDX-License-Identifier: Apache-2.0
%% What a full trace costs the request that is traced, beside OTP's own profilers, dbg and eflame's
%% way; and how many requests the node answers meanwhile. The sample application runs in this node.
%%
%% One process makes the requests, one at a time, with the application's usual mix, and takes the
%% time of each. Who profiles is given that process and all processes of the application that
%% requests go through. kprof finds them by itself.
-module(bench_flame).

-export([main/1]).

% requests of a round; it is what kprof flame takes by default
-define(REQUESTS, 20).
-define(PAUSE_MS, 5).
% exit status
-define(TRIPPED, 15).
-define(MOST_TRIPS, 20).
-define(ENTRY, {shop_http, handle_request, 2}).

%% `slow ROUNDS KPROF CONFIG SCRATCH' prints for each way (CONFIG.native has the native tracer)
%%   way NAME US RATIO LOWEST HIGHEST    µs a request, each its median over the rounds; as times of
%%                                       untraced; the same of the lowest and of the highest round
%%   way tripped N                       how often the guard ended kprof's, which was made again
%% `rate FILE' writes there each tenth of a second the time and how many requests there were; until
%% the node is ended. It prints `port PORT'.
-spec main([string()]) -> ok | no_return().
main(["slow", Rounds, Kprof, Config, Scratch]) ->
    start_shop(),
    Requester = spawn_link(fun requester/0),
    [_ = made(Requester) || _ <- lists:seq(1, 20)],
    Ways = [Way || Way <- ways(), has(Way)],
    Context = #{requester => Requester, kprof => Kprof, config => Config, scratch => Scratch},
    Measured = [
        {Way, measured(Way, Context)}
     || _ <- lists:seq(1, list_to_integer(Rounds)), Way <- Ways
    ],
    [print(Way, Measured) || Way <- Ways],
    io:format("way tripped ~b~n", [tripped()]),
    halt(0);
main(["rate", File]) ->
    start_shop(),
    spawn_link(fun() ->
        _ = process_flag(priority, high),
        {ok, Out} = file:open(File, [write, raw]),
        counts(Out)
    end),
    io:format("port ~b~n", [shop_listener:port()]).

start_shop() ->
    {ok, _} = application:ensure_all_started(shop),
    {ok, _} = application:ensure_all_started(runtime_tools).

%% Untraced comes twice, so that one tells how much chance there is in the others.
ways() ->
    [untraced, kprof, kprof_native, dbg_process, dbg_file, eflame, eflame_app] ++
        [fprof, eprof, tprof, untraced_again].

has(tprof) -> code:which(tprof) =/= non_existing;
has(_) -> true.

print(Way, Measured) ->
    Rounds = [Times || {W, Times} <- Measured, W =:= Way],
    Untraced = [Times || {untraced, Times} <- Measured],
    Ratios = [lists:sum(A) / lists:sum(B) || {A, B} <- lists:zip(Rounds, Untraced)],
    Us = typical(Rounds),
    io:format("way ~s ~.1f ~.2f ~.2f ~.2f~n", [
        Way, Us, Us / typical(Untraced), lists:min(Ratios), lists:max(Ratios)
    ]).

%% µs of a request: of each request its median over the rounds.
typical([First | _] = Rounds) ->
    Of = fun(N) -> median([lists:nth(N, Round) || Round <- Rounds]) end,
    Medians = [Of(N) || N <- lists:seq(1, length(First))],
    lists:sum(Medians) / length(Medians).

median(Values) ->
    lists:nth((length(Values) + 1) div 2, lists:sort(Values)).

%% --- requests ---

%% Ids that give no trouble, and nothing created, as some new ids do. What is deleted is not there
%% after the first time.
requests() ->
    [{read, #{id => Id}} || Id <- lists:seq(101, 109)] ++
        [{search, #{text => Text}} || Text <- [<<"lamp">>, <<"clock">>]] ++
        [{update, #{id => Id, price => 7}} || Id <- lists:seq(201, 204)] ++
        [{delete, #{id => 301}}] ++
        [{order, #{ids => [Id, Id + 1, Id + 2]}} || Id <- [401, 411, 421, 431]].

requester() ->
    receive
        {From, Ref, {Route, Request}} ->
            Start = erlang:monotonic_time(),
            {_, _} = shop_trace:request(shop_http, handle_request, [Route, Request]),
            Native = erlang:monotonic_time() - Start,
            From ! {Ref, erlang:convert_time_unit(Native, native, nanosecond) / 1000}
    end,
    requester().

one(Requester, Request) ->
    Ref = monitor(process, Requester),
    Requester ! {self(), Ref, Request},
    receive
        {'DOWN', Ref, process, _, Why} ->
            error({requester, Why});
        {Ref, Us} ->
            _ = demonitor(Ref, [flush]),
            Us
    end.

%% What comes after a request that is over, bookings say, has some time.
made(Requester) ->
    Requests = requests(),
    ?REQUESTS = length(Requests),
    [
        begin
            timer:sleep(?PAUSE_MS),
            one(Requester, Request)
        end
     || Request <- Requests
    ].

processes(Requester) ->
    Groups = [shop_worker, shop_storage, shop_render, shop_accounting],
    [Requester | [whereis(Name) || Group <- Groups, Name <- shop_group:members(Group)]].

%% --- ways ---

measured(Way, Context) ->
    Times = way(Way, Context),
    true = length(Times) =:= ?REQUESTS,
    timer:sleep(200),
    Times.

%% Each looks whether it has seen all requests.
way(untraced, #{requester := Requester}) ->
    made(Requester);
way(untraced_again, Context) ->
    way(untraced, Context);
way(kprof, Context) ->
    kprof(Context);
way(kprof_native, #{config := Config} = Context) ->
    kprof(Context#{config := Config ++ ".native"});
way(dbg_process, #{requester := Requester}) ->
    Seen = counters:new(1, []),
    Count = fun
        ({trace_ts, _, call, {M, F, A}, _}, N) when {M, F, length(A)} =:= ?ENTRY ->
            ok = counters:add(Seen, 1, 1),
            N + 1;
        (_, N) ->
            N + 1
    end,
    {ok, _} = dbg:tracer(process, {Count, 0}),
    dbg_on(Requester),
    Times = made(Requester),
    dbg_off(),
    ok = wait_until(fun() -> counters:get(Seen, 1) =:= ?REQUESTS end, 300),
    ok = dbg:stop(),
    Times;
way(dbg_file, #{requester := Requester, scratch := Scratch}) ->
    File = filename:join(Scratch, "dbg.trace"),
    {ok, _} = dbg:tracer(port, dbg:trace_port(file, File)),
    dbg_on(Requester),
    Times = made(Requester),
    dbg_off(),
    _ = dbg:flush_trace_port(),
    ok = dbg:stop(),
    seen_in(File),
    Times;
way(eflame, #{requester := Requester}) ->
    ok = bench_eflame:start(processes(Requester), ['_']),
    Times = made(Requester),
    {#{?ENTRY := ?REQUESTS}, _} = bench_eflame:stop(),
    Times;
way(eflame_app, #{requester := Requester}) ->
    {ok, Modules} = application:get_key(shop, modules),
    ok = bench_eflame:start(processes(Requester), Modules),
    Times = made(Requester),
    {#{?ENTRY := ?REQUESTS}, _} = bench_eflame:stop(),
    Times;
way(fprof, #{requester := Requester, scratch := Scratch}) ->
    File = filename:join(Scratch, "fprof.trace"),
    ok = fprof:trace([start, {procs, processes(Requester)}, {file, File}]),
    Times = made(Requester),
    ok = fprof:trace(stop),
    ok = fprof:stop(),
    seen_in(File),
    Times;
way(eprof, #{requester := Requester, scratch := Scratch}) ->
    File = filename:join(Scratch, "eprof.log"),
    {ok, _} = eprof:start(),
    profiling = eprof:start_profiling(processes(Requester)),
    Times = made(Requester),
    profiling_stopped = eprof:stop_profiling(),
    ok = eprof:log(File),
    _ = eprof:analyze(total, [{filter, [{calls, 1}]}]),
    stopped = eprof:stop(),
    {ok, Text} = file:read_file(File),
    Line = io_lib:format("shop_http:handle_request/2 +~b ", [?REQUESTS]),
    match = re:run(Text, Line, [{capture, none}]),
    ok = file:delete(File),
    Times;
way(tprof, #{requester := Requester}) ->
    {ok, _} = tprof:start(#{type => call_time}),
    _ = tprof:set_pattern('_', '_', '_'),
    _ = tprof:enable_trace(processes(Requester)),
    Times = made(Requester),
    _ = tprof:disable_trace(processes(Requester)),
    {call_time, Counts} = tprof:collect(),
    {M, F, A} = ?ENTRY,
    [?REQUESTS] = [
        lists:sum([N || {_, N, _} <- Of])
     || {M1, F1, A1, Of} <- Counts, {M1, F1, element(2, name(F1, A1))} =:= {M, F, A}
    ],
    ok = tprof:stop(),
    Times.

name(F, {_, A}) -> {F, A};
name(F, A) -> {F, A}.

%% Calls, returns and exceptions of the application's functions.
dbg_on(Requester) ->
    {ok, Modules} = application:get_key(shop, modules),
    [{ok, _} = dbg:tpl(M, x) || M <- Modules],
    [{ok, _} = dbg:p(Pid, [call, timestamp]) || Pid <- processes(Requester)].

dbg_off() ->
    {ok, _} = dbg:p(all, clear),
    {ok, _} = dbg:ctpl('_').

%% Tenths of a second.
wait_until(Is, Left) when Left > 0 ->
    case Is() of
        true ->
            ok;
        false ->
            timer:sleep(100),
            wait_until(Is, Left - 1)
    end.

%% The names of functions are readable in such files.
seen_in(File) ->
    {ok, Bytes} = file:read_file(File),
    true = length(binary:matches(Bytes, <<"handle_request">>)) >= ?REQUESTS,
    ok = file:delete(File).

%% The command as one calls it, on a node without kprof. Requests go on until it has seen in which
%% processes they run, and after those that are measured until it has those that it wants. On a busy
%% machine the guard may end it: then all that is made again.
kprof(#{requester := Requester, kprof := Kprof, config := Config, scratch := Scratch} = Context) ->
    Db = filename:join(Scratch, "flame.db"),
    Args =
        ["flame", atom_to_list(node()), "--config", Config, "--cookie-file"] ++
            [filename:join(Scratch, "cookie"), "--db", Db, "--requests", "40"],
    Port = open_port({spawn_executable, Kprof}, [
        {args, Args}, {line, 1000}, exit_status, stderr_to_stdout, binary
    ]),
    case until("functions in", Port, Requester) of
        said ->
            Times = made(Requester),
            case until("the guard of the node has", Port, Requester) of
                {ended, 0} ->
                    Times;
                said ->
                    _ = until("nothing more", Port, Requester),
                    tripped(Context)
            end;
        {ended, ?TRIPPED} ->
            tripped(Context)
    end.

tripped(Context) ->
    put(tripped, tripped() + 1),
    tripped() < ?MOST_TRIPS orelse error(too_busy),
    kprof(Context).

tripped() ->
    case get(tripped) of
        undefined -> 0;
        N -> N
    end.

%% Until the command says so, or ends; with requests now and then.
until(Wanted, Port, Requester) ->
    receive
        {Port, {data, {_, Line}}} ->
            case re:run(Line, Wanted, [{capture, none}]) of
                match -> said;
                nomatch -> until(Wanted, Port, Requester)
            end;
        {Port, {exit_status, Status}} ->
            {ended, Status}
    after 20 ->
        _ = one(Requester, hd(requests())),
        until(Wanted, Port, Requester)
    end.

%% --- the rate ---

counts(Out) ->
    #{routes := Routes} = shop_truth:read(),
    Requests = lists:sum([N || #{requests := N} <- maps:values(Routes)]),
    Line = io_lib:format("~b ~b~n", [erlang:system_time(millisecond), Requests]),
    ok = file:write(Out, Line),
    timer:sleep(100),
    counts(Out).
