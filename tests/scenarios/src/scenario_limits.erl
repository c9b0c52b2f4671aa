%% SPDX-License-Identifier: Apache-2.0
%% Captures of what no scenario can make a node do in time: as many open requests as the collector
%% shall bear, and requests of as many spans. Frames as a trace port writes them, markers as the
%% shim's.
%%   erl -noinput -pa EBIN -run scenario_limits main FILE open REQUESTS
%%   erl -noinput -pa EBIN -run scenario_limits main FILE large SPANS...
%%   erl -noinput -pa EBIN -run scenario_limits main FILE wide PROCESSES
%%   erl -noinput -pa EBIN -run scenario_limits main FILE attack BUCKETS TIERS
%%   erl -noinput -pa EBIN -run scenario_limits main FILE full REQUESTS
%% A FILE of port:PORT or port:PORT:NODE is a collector: the same goes to it as a shim would send
%% it.
-module(scenario_limits).

-export([main/1]).

-define(US, 1000).
-define(MS, 1000000).
-define(BATCH, 2000).
-define(TIERS, [{handle, 2}, {storage, 1}, {pool, 1}, {render, 1}, {small, 0}]).

-spec main([string()]) -> no_return().
main([File, What | Numbers]) ->
    _ = put(tiers, tiers(What, Numbers)),
    Out = open(File),
    _ = put(out, Out),
    _ = put(batch, {0, []}),
    capture(list_to_atom(What), [list_to_integer(N) || N <- Numbers]),
    flush(),
    close(Out),
    halt(0).

tiers("attack", [_, Tiers]) ->
    [{list_to_atom("t" ++ integer_to_list(K)), 1} || K <- lists:seq(1, list_to_integer(Tiers))];
tiers(_, _) ->
    ?TIERS.

%% Every request is begun before the first one ends: in two processes of each two calls are open
%% then, one within the other.
capture(open, [Requests]) ->
    All = lists:seq(1, Requests),
    Step = 10 * ?US,
    Phases = [
        fun(I, T) -> start(I, front(I), <<"open">>, T) end,
        fun(I, T) -> call(I, front(I), front(I), handle, T) end,
        fun(I, T) -> call(I, front(I), front(I), storage, T) end,
        fun(I, T) -> call(I, back(I), front(I), pool, T) end,
        fun(I, T) -> call(I, back(I), back(I), render, T) end,
        fun(I, T) -> return(back(I), render, T) end,
        fun(I, T) -> return(back(I), pool, T) end,
        fun(I, T) -> return(front(I), storage, T) end,
        fun(I, T) -> return(front(I), handle, T) end,
        fun(I, T) -> stop(I, front(I), T) end
    ],
    %% Request I does what phase P has at (P * Requests + I) steps: what is open at a time is known
    %% to everybody.
    lists:foldl(
        fun(Phase, From) ->
            [Phase(I, (From + I) * Step) || I <- All],
            From + Requests
        end,
        0,
        Phases
    );
%% The same with names of their own, from web servers, and four calls more that have returned, and
%% nothing ever ends.
capture(full, [Requests]) ->
    All = lists:seq(1, Requests),
    Step = 5 * ?US,
    Phases = [
        fun(I, T) ->
            marked(I, front(I), web_begin, <<(integer_to_binary(I))/binary, 0:800>>, T)
        end,
        fun(I, T) -> call(I, front(I), front(I), handle, T) end,
        fun(I, T) -> call(I, back(I), front(I), pool, T) end,
        fun(I, T) ->
            [
                begin
                    call(I, back(I), back(I), small, T + K),
                    return(back(I), small, T + K + 1)
                end
             || K <- [0, 2, 4, 6]
            ]
        end,
        fun(I, T) -> call(I, front(I), front(I), storage, T) end,
        fun(I, T) -> call(I, back(I), back(I), render, T) end
    ],
    lists:foldl(
        fun(Phase, From) ->
            [Phase(I, (From + I) * Step) || I <- All],
            From + Requests
        end,
        0,
        Phases
    );
%% Each request has a call of the tier handle, and in it so many more of the others, one after the
%% other, that it has Spans. With every thousandth of them goes a request of three spans.
capture(large, Sizes) ->
    lists:foldl(fun({I, Spans}, From) -> large(I, Spans, From) end, 1, lists:enumerate(Sizes)),
    ok;
%% A request of its own identity in each bucket of 10 s, half of them before now and half of them
%% after it: in as many processes as there are tiers a call of a nanosecond and one of 29 seconds.
capture(attack, [Buckets, _]) ->
    [attack(I, (I - Buckets div 2) * 10000 * ?MS) || I <- lists:seq(1, Buckets)],
    ok;
%% One request that spawns processes, each of which makes a call while the spawner makes one too.
capture(wide, [Processes]) ->
    Step = 20 * ?US,
    start(1, 1, <<"wide">>, 0),
    call(1, 1, 1, handle, Step),
    [
        begin
            T = I * 4 * Step,
            Child = 2 * I,
            spawned(1, 1, Child, T),
            call(1, Child, Child, pool, T + Step),
            call(1, 1, 1, storage, T + Step + ?US),
            return(1, storage, T + 2 * Step),
            return(Child, pool, T + 3 * Step)
        end
     || I <- lists:seq(1, Processes)
    ],
    End = (Processes + 1) * 4 * Step,
    return(1, handle, End),
    stop(1, 1, End + Step).

large(I, Spans, From) ->
    Step = 20 * ?US,
    Label = 1000000 + I,
    Pid = 2 * Label,
    start(Label, Pid, <<"spans ", (integer_to_binary(Spans))/binary>>, From),
    call(Label, Pid, Pid, handle, From + Step),
    [
        begin
            T = From + 3 * Step * K,
            Tier = element(K rem 2 + 1, {storage, pool}),
            call(Label, Pid, Pid, Tier, T),
            return(Pid, Tier, T + Step),
            K rem 1000 =/= 0 orelse small(I * 1000 + K div 1000, T + Step + ?US)
        end
     || K <- lists:seq(1, Spans - 1)
    ],
    End = From + 3 * Step * Spans,
    return(Pid, handle, End),
    stop(Label, Pid, End + Step),
    End + 2 * Step.

attack(I, T) ->
    Calls = [{Tier, I * 1000 + K} || {K, {Tier, _}} <- lists:enumerate(get(tiers))],
    start(I, I * 1000, <<"attack ", (integer_to_binary(I))/binary>>, T),
    [
        begin
            call(I, Pid, I * 1000, Tier, T + 1),
            return(Pid, Tier, T + 2),
            call(I, Pid, I * 1000, Tier, T + 3)
        end
     || {Tier, Pid} <- Calls
    ],
    [return(Pid, Tier, T + 29000 * ?MS) || {Tier, Pid} <- Calls],
    stop(I, I * 1000, T + 29500 * ?MS).

small(I, T) ->
    start(I, front(I), <<"small">>, T),
    [
        begin
            call(I, front(I), front(I), small, T + K * ?US),
            return(front(I), small, T + (K + 1) * ?US)
        end
     || K <- [1, 3, 5]
    ],
    stop(I, front(I), T + 7 * ?US).

front(I) -> 2 * I.
back(I) -> 2 * I + 1.

%% -- messages -------------------------------------------------------------------------------------

start(Label, Pid, Identity, T) -> marked(Label, Pid, request_begin, Identity, T).
stop(Label, Pid, T) -> marked(Label, Pid, request_end, ok, T).

marked(Label, Pid, Marker, Note, T) ->
    write({trace_ts, pid(Pid), call, {kprof_mark, Marker, 1}, {token(Label, Pid), Note}, time(T)}).

call(Label, Pid, From, Tier, T) ->
    write({trace_ts, pid(Pid), call, function(Tier), {token(Label, From), undefined}, time(T)}).

return(Pid, Tier, T) ->
    write({trace_ts, pid(Pid), return_from, function(Tier), ok, time(T)}).

spawned(Label, Pid, Child, T) ->
    write({trace_ts, pid(Pid), call, {erlang, spawn, 3}, {token(Label, Pid)}, time(T)}),
    write({trace_ts, pid(Pid), return_from, {erlang, spawn, 3}, pid(Child), time(T + ?US)}).

function(Tier) -> {limits, Tier, proplists:get_value(Tier, get(tiers))}.

%% As the VM shows it: flags, label, serial, the process that it came from, last count.
token(Label, From) -> {18, Label, 0, pid(From), 0}.

%% More of them than a node has: as pids of one that is not there.
pid(N) -> binary_to_term(<<131, 88, 100, 16:16, "limits@localhost", N:32, 0:32, 1:32>>).

time(T) -> get(zero) + T.

%% -- writing --------------------------------------------------------------------------------------

write(Message) ->
    Term = term_to_binary(Message),
    {N, Frames} = get(batch),
    _ = put(batch, {N + 1, [Frames, <<0, (byte_size(Term)):32>>, Term]}),
    N + 1 < ?BATCH orelse flush(),
    ok.

flush() ->
    {_, Frames} = put(batch, {0, []}),
    send(get(out), Frames).

send({file, File}, Frames) ->
    ok = file:write(File, Frames);
send({shim, Control, Data}, Frames) ->
    ok = gen_tcp:send(Data, Frames),
    % who says nothing is closed
    ok = kprof_link:send(Control, #{type => clock, time_offset => erlang:time_offset()}).

open("port:" ++ Where) ->
    {Port, Node} =
        case string:split(Where, ":") of
            [P] -> {P, <<"limits@localhost">>};
            [P, N] -> {P, list_to_binary(N)}
        end,
    Hello = scenario_wire:hello(Node),
    Target = #{host => "127.0.0.1", port => list_to_integer(Port)},
    {ok, Control, Session} = kprof_link:connect(Target, Hello),
    ok = kprof_link:send(Control, #{
        type => tiers,
        identity => none,
        stats => false,
        calls => false,
        tiers => [
            #{name => atom_to_binary(Tier), m => limits, f => Tier, a => Arity}
         || {Tier, Arity} <- get(tiers)
        ]
    }),
    {ok, {_, Data}} = kprof_link:open_data(Target, Session, 0),
    _ = put(zero, erlang:monotonic_time()),
    {shim, Control, Data};
open(Name) ->
    _ = put(zero, -576460748000000000),
    {ok, File} = file:open(Name, [write, raw, binary]),
    {file, File}.

close({file, File}) ->
    ok = file:close(File);
close({shim, Control, Data}) ->
    ok = kprof_link:send(Control, #{
        type => trace_stopped, at => erlang:monotonic_time(), reason => stopped, text => <<>>
    }),
    ok = gen_tcp:close(Data),
    timer:sleep(300),
    ok = kprof_link:close(Control).
