-module(kprof_ledger_tests).
-include_lib("eunit/include/eunit.hrl").

%% Untraced twice, told in between: each millisecond is told once.
untraced_test() ->
    L1 = kprof_ledger:untraced(150, kprof_ledger:untraced(100, kprof_ledger:new())),
    L2 = kprof_ledger:count(300, L1),
    ?assertMatch(#{paused_ms := 200}, kprof_ledger:fields(L2)),
    L3 = kprof_ledger:traced(340, kprof_ledger:told(L2)),
    ?assertMatch(#{paused_ms := 40}, kprof_ledger:fields(kprof_ledger:count(900, L3))),
    L4 = kprof_ledger:count(1010, kprof_ledger:untraced(1000, L3)),
    ?assertMatch(#{paused_ms := 50}, kprof_ledger:fields(L4)).

%% Trips are told once, and remembered.
trips_test() ->
    L = kprof_ledger:told(kprof_ledger:lowered(50, kprof_ledger:tripped(kprof_ledger:new()))),
    ?assertEqual(#{paused_ms => 0, lowered_ms => 0, trips => 0}, kprof_ledger:fields(L)),
    Again = kprof_ledger:lowered(50, kprof_ledger:lowered(50, kprof_ledger:tripped(L))),
    ?assertEqual(#{paused_ms => 0, lowered_ms => 100, trips => 1}, kprof_ledger:fields(Again)),
    ?assertEqual(2, kprof_ledger:trips(Again)).
