%% SPDX-License-Identifier: Apache-2.0
%% The tracer of full traces: nothing gets lost untold, and its mailbox and what it has sent have
%% bounds.
-module(kprof_full_relay_tests).
-include("patient.hrl").

% that wait for the collector
-define(MOST, 50000).

relay_test_() ->
    [
        {Name, {timeout, 300, Test}}
     || {Name, Test} <- [
            {"carries what is traced", fun carries/0},
            {"large messages are sent in parts", fun large/0},
            {"a collector that does not read", fun stuck/0},
            {"given up", fun given_up/0},
            {"the connection ends", fun cut_off/0},
            {"the guard ends what is traced", fun guarded/0}
        ]
    ].

%% All calls of a process arrive, in their order, and then the word that there are no more.
carries() ->
    with_relay(fun(Relay, Total, Collector) ->
        traced(Relay, fun() -> [lists:last([I]) || I <- lists:seq(1, 5000)] end),
        ok = kprof_full_relay:drain(Relay),
        {Terms, 0, true} = all(Collector),
        Calls = [A || {trace_ts, _, call, {lists, last, [[A]]}, _} <- Terms],
        ?assertEqual(lists:seq(1, 5000), Calls),
        ok = gone(Relay),
        ?assertEqual(5000, counters:get(Total, 1))
    end).

large() ->
    with_relay(fun(Relay, _, Collector) ->
        Pid = kprof_full_relay:pid(Relay),
        Large = binary:copy(<<"x">>, 300000),
        [Pid ! {N, Large} || N <- lists:seq(1, 20)],
        ok = kprof_full_relay:drain(Relay),
        Frames = frames(Collector, <<>>),
        ?assert(lists:max([byte_size(F) || F <- Frames, is_binary(F)]) < 2 * 1048576),
        ?assertEqual(lists:seq(1, 20), [N || {N, _} <- terms(Frames)]),
        ok = gone(Relay)
    end).

%% What it has no room for is dropped and told at its place.
stuck() ->
    with_relay(fun(Relay, Total, Collector) ->
        Pid = kprof_full_relay:pid(Relay),
        Count = 12 * ?MOST,
        lists:foreach(
            fun(N) ->
                Pid ! {N, "as long as a message"},
                _ = N rem 1000 =:= 0 andalso not_full(Pid)
            end,
            lists:seq(1, Count)
        ),
        {message_queue_len, Waiting} = process_info(Pid, message_queue_len),
        ?assert(Waiting =< ?MOST + 1000),
        ok = kprof_full_relay:drain(Relay),
        Frames = frames(Collector, <<>>),
        Numbers = [N || {N, _} <- terms(Frames)],
        Dropped = lists:sum([D || {dropped, D} <- Frames]),
        ?assert(Dropped > 0),
        ?assertEqual(Count, length(Numbers) + Dropped),
        ?assertEqual(Numbers, lists:sort(Numbers)),
        ?assertEqual(ended, lists:last(Frames)),
        ok = gone(Relay),
        ?assertEqual(Count, counters:get(Total, 1))
    end).

not_full(Pid) ->
    case process_info(Pid, message_queue_len) of
        {message_queue_len, N} when N > ?MOST ->
            timer:sleep(1),
            not_full(Pid);
        _ ->
            ok
    end.

%% It counts what comes, without anybody who reads.
given_up() ->
    with_relay(fun(Relay, Total, _) ->
        Pid = kprof_full_relay:pid(Relay),
        % it ends when nothing comes
        true = erlang:suspend_process(Pid),
        ok = kprof_full_relay:give_up(Relay),
        [Pid ! {N, text} || N <- lists:seq(1, 1234)],
        true = erlang:resume_process(Pid),
        ok = kprof_full_relay:finish(Relay),
        ?assertEqual(1234, counters:get(Total, 1))
    end).

%% Its owner is told, and it is there until that one has ended what is traced.
cut_off() ->
    with_relay(fun(Relay, _, Collector) ->
        Pid = kprof_full_relay:pid(Relay),
        ok = gen_tcp:close(Collector),
        Told = fun Told() ->
            Pid ! {1, text},
            receive
                {kprof_full_relay, Pid, Why} -> Why
            after 50 -> Told()
            end
        end,
        ?assertMatch({data_connection, _}, Told()),
        ?assert(is_process_alive(Pid)),
        ok = kprof_full_relay:drain(Relay),
        ok = gone(Relay)
    end).

%% Kept from working, it tells nothing: when memory grows meanwhile, the guard takes off what is
%% traced to it, and nothing else.
guarded() ->
    kprof_guard = ets:new(kprof_guard, [named_table, public]),
    {ok, Guard} = kprof_guard:start_link(),
    {ok, Tracer, Socket} = kprof_tracer:open(port),
    Pattern = {{lists, last, 1}, [{'_', [], []}]},
    ok = kprof_guard:arm(Tracer, [Pattern], busy),
    ok = kprof_tracer:set_patterns(Tracer, [Pattern]),
    try
        with_relay(fun(Relay, _, _) ->
            Pid = kprof_full_relay:pid(Relay),
            Worker = spawn_link(fun() -> timer:sleep(infinity) end),
            Full = kprof_tracer:full(Tracer, Pid),
            ok = kprof_tracer:flag(Full, Worker, [call, arity]),
            ok = kprof_guard:watch(kprof_full_relay:gauge(Relay)),
            receive
                {kprof_guard, _} -> error(over)
            after 200 -> ok
            end,
            ?assert(kprof_tracer:is_flagged(Full, Worker)),
            Held = hold(Pid),
            ?assert(filled(Pid, 0) < 20 * ?MOST),
            Held ! go,
            ?assertNotMatch([_ | _], kprof_vm:flags(element(2, Full), Worker)),
            ?assertEqual([], kprof_tracer:missing(Tracer, [Pattern])),
            ok = kprof_tracer:full_over(Full),
            ok = kprof_full_relay:give_up(Relay),
            ok = kprof_full_relay:finish(Relay),
            unlink(Worker),
            exit(Worker, kill)
        end)
    after
        ok = kprof_guard:disarm(),
        kprof_tracer:close(Tracer, now),
        gen_tcp:close(Socket),
        ok = gen_server:stop(Guard),
        true = ets:delete(kprof_guard)
    end.

hold(Pid) ->
    Self = self(),
    Held = spawn_link(fun() ->
        true = erlang:suspend_process(Pid),
        Self ! {held, self()},
        receive
            go -> ok
        end
    end),
    receive
        {held, Held} -> Held
    end.

%% How many messages it took, of half a kilobyte each, 10,000 at a time.
filled(Pid, N) ->
    [Pid ! {I, lists:seq(1, 30)} || I <- lists:seq(1, 10000)],
    receive
        {kprof_guard, Word} ->
            ?assertEqual(full, Word),
            N
    after 20 -> filled(Pid, N + 10000)
    end.

%% --- helpers ---

%% What a process does while its calls of lists:last/1 are traced to the relay.
traced(Relay, Fun) ->
    Pid = kprof_full_relay:pid(Relay),
    _ = erlang:trace_pattern({lists, last, 1}, true, [local]),
    {Worker, Ref} = spawn_monitor(fun() ->
        receive
            go -> Fun()
        end
    end),
    1 = erlang:trace(Worker, true, [call, monotonic_timestamp, {tracer, Pid}]),
    Worker ! go,
    receive
        {'DOWN', Ref, process, _, Why} -> ?assertEqual(normal, Why)
    end,
    _ = erlang:trace_pattern({lists, last, 1}, false, [local]),
    ok.

with_relay(Test) ->
    Before = process_flag(trap_exit, true),
    {ok, Listener} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Listener),
    {ok, Out} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}]),
    {ok, Collector} = gen_tcp:accept(Listener),
    Total = counters:new(2, []),
    Relay = kprof_full_relay:start_link(process, {gen_tcp, Out}, {counters:new(2, []), Total}),
    try
        Test(Relay, Total, Collector)
    after
        [exit(P, kill) || P <- kprof_full_relay:processes(Relay)],
        gen_tcp:close(Collector),
        gen_tcp:close(Listener),
        process_flag(trap_exit, Before)
    end.

gone(Relay) ->
    Pid = kprof_full_relay:pid(Relay),
    receive
        {'EXIT', Pid, Why} -> ?assertEqual(normal, Why)
    end,
    ok.

%% The messages, how many were dropped, and whether the stream told its end.
all(Collector) ->
    Frames = frames(Collector, <<>>),
    {terms(Frames), lists:sum([D || {dropped, D} <- Frames]), lists:last(Frames) =:= ended}.

terms(Frames) ->
    lists:append([binary_to_term(F) || F <- Frames, is_binary(F)]).

%% The frames until the connection ends, without those that are empty.
frames(Collector, Bytes) ->
    case gen_tcp:recv(Collector, 0) of
        {ok, More} -> frames(Collector, <<Bytes/binary, More/binary>>);
        {error, closed} -> split(Bytes)
    end.

split(<<0, 0:32, Rest/binary>>) -> split(Rest);
split(<<0, Size:32, Body:Size/binary, Rest/binary>>) -> [Body | split(Rest)];
split(<<1, 0:32, Rest/binary>>) -> [ended | split(Rest)];
split(<<1, Dropped:32, Rest/binary>>) -> [{dropped, Dropped} | split(Rest)];
split(<<>>) -> [].
