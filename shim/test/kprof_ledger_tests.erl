%% SPDX-License-Identifier: Apache-2.0
-module(kprof_ledger_tests).
-include("patient.hrl").

%% Untraced twice, told in between: each millisecond is told once.
untraced_test_() -> {timeout, 300, fun untraced_case/0}.
untraced_case() ->
    L1 = kprof_ledger:untraced(150, asked, kprof_ledger:untraced(100, asked, kprof_ledger:new())),
    L2 = kprof_ledger:count(300, L1),
    ?assertMatch(#{off_ms := 200}, kprof_ledger:fields(L2)),
    L3 = kprof_ledger:traced(340, kprof_ledger:told(L2)),
    ?assertMatch(#{off_ms := 40}, kprof_ledger:fields(kprof_ledger:count(900, L3))),
    L4 = kprof_ledger:count(1010, kprof_ledger:untraced(1000, asked, L3)),
    ?assertMatch(#{off_ms := 50}, kprof_ledger:fields(L4)).

%% What of it somebody asked for, what was overload, and when there was no collector.
reasons_test_() -> {timeout, 300, fun reasons_case/0}.
reasons_case() ->
    Off = fun(L) -> maps:with([off_ms, tripped_ms, away_ms], kprof_ledger:fields(L)) end,
    Tripped = kprof_ledger:untraced(0, tripped, kprof_ledger:new()),
    %% the collector goes during the pause, which lasts all the same; then the shim waits for it
    Away = kprof_ledger:untraced(100, away, kprof_ledger:gone(40, Tripped)),
    ?assertEqual(
        #{off_ms => 130, tripped_ms => 100, away_ms => 30}, Off(kprof_ledger:count(130, Away))
    ),
    %% somebody asks for a pause, and the collector goes and does not come back
    Asked = kprof_ledger:untraced(
        200, away, kprof_ledger:gone(150, kprof_ledger:untraced(110, asked, Tripped))
    ),
    ?assertEqual(
        #{off_ms => 210, tripped_ms => 110, away_ms => 0}, Off(kprof_ledger:count(210, Asked))
    ),
    %% they want a trace again, and it takes a while
    Wanted = kprof_ledger:traced(
        330, kprof_ledger:untraced(320, away, kprof_ledger:wanted(300, Asked))
    ),
    ?assertEqual(#{off_ms => 330, tripped_ms => 110, away_ms => 10}, Off(Wanted)),
    %% it goes while all is well
    ?assertEqual(
        #{off_ms => 5, tripped_ms => 0, away_ms => 5},
        Off(
            kprof_ledger:count(
                405,
                kprof_ledger:untraced(402, away, kprof_ledger:gone(400, kprof_ledger:told(Wanted)))
            )
        )
    ).

%% Trips are told once, and remembered.
trips_test_() -> {timeout, 300, fun trips_case/0}.
trips_case() ->
    L = kprof_ledger:told(kprof_ledger:lowered(50, kprof_ledger:tripped(kprof_ledger:new()))),
    ?assertEqual(
        #{off_ms => 0, tripped_ms => 0, away_ms => 0, lowered_ms => 0, trips => 0},
        kprof_ledger:fields(L)
    ),
    Again = kprof_ledger:lowered(50, kprof_ledger:lowered(50, kprof_ledger:tripped(L))),
    ?assertEqual(
        #{off_ms => 0, tripped_ms => 0, away_ms => 0, lowered_ms => 100, trips => 1},
        kprof_ledger:fields(Again)
    ),
    ?assertEqual(2, kprof_ledger:trips(Again)).
