%% SPDX-License-Identifier: Apache-2.0
-module(kprof_busiest_tests).
-include("patient.hrl").

%% What changed most counts; in the first scan what there is; where nothing changes, the largest.
ranks_test_() -> {timeout, 300, fun ranks_case/0}.
ranks_case() ->
    [A, B, C, D] = Pids = processes(4),
    B0 = kprof_busiest:new(message_queue_len, 2, any, []),
    First = scan([{A, 5}, {B, 1000}, {C, 30}, {D, 0}], B0),
    ?assertEqual([C, B], kprof_busiest:best(First)),
    Second = scan([{A, 10}, {B, 1000}, {C, 20}, {D, 0}], First),
    ?assertEqual([A, C], kprof_busiest:best(Second)),
    Third = scan([{A, 10}, {B, 1000}, {C, 20}, {D, 0}], Second),
    ?assertEqual([C, B], kprof_busiest:best(Third)),
    ends(Pids).

%% Who has ended is forgotten some time, and those who are there are not.
ended_test_() -> {timeout, 300, fun ended_case/0}.
ended_case() ->
    [A] = processes(1),
    Many = [spawn(fun() -> ok end) || _ <- lists:seq(1, 3 * length(processes()) + 2000)],
    B0 = kprof_busiest:new(memory, 1, any, []),
    First = scan([{A, 500} | [{P, 5} || P <- Many]], B0),
    Full = tables(),
    Second = scan([{A, 510}], First),
    ?assertEqual([A], kprof_busiest:best(Second)),
    ?assert(tables() < Full div 4),
    Third = scan([{A, 520}, {self(), 15}], Second),
    ?assertEqual([self()], kprof_busiest:best(Third)),
    ends([A]).

%% Words of all that it remembers.
tables() ->
    lists:sum([
        ets:info(T, memory)
     || T <- ets:all(), ets:info(T, name) =:= kprof_busiest, ets:info(T, owner) =:= self()
    ]).

%% Who does not answer is busy, by reductions.
silent_test_() -> {timeout, 300, fun silent_case/0}.
silent_case() ->
    [A, B] = Pids = processes(2),
    Silent = fun(By) ->
        Busiest = kprof_busiest:begin_scan(kprof_busiest:new(By, 1, any, [])),
        kprof_busiest:best(
            kprof_busiest:silent(B, kprof_busiest:measured([{A, {1000000}}], Busiest))
        )
    end,
    ?assertEqual([B], Silent(reductions)),
    ?assertEqual([A], Silent(memory)),
    ends(Pids).

%% Who answers after all is chosen once, and so looked at once where others are.
late_test_() -> {timeout, 300, fun late_case/0}.
late_case() ->
    [A, B] = Pids = processes(2),
    B0 = kprof_busiest:begin_scan(kprof_busiest:new(reductions, 3, any, [])),
    Late = kprof_busiest:measured([{A, {5}}, {B, {7}}], kprof_busiest:silent(B, B0)),
    ?assertEqual(lists:sort(Pids), lists:sort(kprof_busiest:best(Late))),
    ends(Pids).

%% All are seen but its own, in slices of 200 at most; who came meanwhile may be.
slices_test_() -> {timeout, 300, fun slices_case/0}.
slices_case() ->
    Pids = processes(1000),
    Own = lists:sublist(Pids, 10),
    Slices = slices(kprof_busiest:begin_scan(kprof_busiest:new(memory, 5, any, Own))),
    ?assert(lists:max([length(Slice) || Slice <- Slices]) =< 200),
    Seen = lists:append(Slices),
    ?assertEqual([], (Pids -- Own) -- Seen),
    ?assertEqual([], [P || P <- Own, lists:member(P, Seen)]),
    ?assertEqual(length(Seen), length(lists:usort(Seen))),
    ends(Pids).

slices(B0) ->
    case kprof_busiest:slice(B0) of
        {none, _} -> [];
        {{{measure, memory, any}, Pids}, B} -> [Pids | slices(B)]
    end.

%% What is asked of them: all four, without a process being told anything by a short answer.
measures_test_() -> {timeout, 300, fun measures_case/0}.
measures_case() ->
    Full = spawn_link(fun() ->
        receive
            stop -> ok
        end
    end),
    _ = [Full ! {N, "a message"} || N <- lists:seq(1, 1500)],
    Of = fun(By) -> kprof_asker:run({measure, By, any}, [Full]) end,
    ?assertMatch([{Full, {R}}] when R > 0, Of(reductions)),
    ?assertEqual([{Full, {1500}}], Of(message_queue_len)),
    ?assertMatch([{Full, {M}}] when M > 0, Of(memory)),
    %% the queue is long: that would be walked
    ?assertEqual([{Full, none}], Of(binary)),
    {group_leader, Leader} = process_info(Full, group_leader),
    Led = fun(By) -> kprof_asker:run({measure, reductions, By}, [Full]) end,
    ?assertMatch([{Full, {_}}], Led(Leader)),
    ?assertEqual([{Full, false}], Led(whereis(init))),
    ends([Full]).

scan(Values, B) ->
    Begun = kprof_busiest:begin_scan(B),
    kprof_busiest:end_scan(kprof_busiest:measured([{P, {V}} || {P, V} <- Values], Begun)).

processes(N) ->
    [
        spawn_link(fun() ->
            receive
                stop -> ok
            end
        end)
     || _ <- lists:seq(1, N)
    ].

ends(Pids) ->
    [Pid ! stop || Pid <- Pids].
