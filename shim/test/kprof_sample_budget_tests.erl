%% SPDX-License-Identifier: Apache-2.0
-module(kprof_sample_budget_tests).
-include("patient.hrl").

% 2 %
-define(PPM, 20000).

%% A second's time is worth 20 ms. Of what is not used a quarter of a second's is kept.
refill_test_() -> {timeout, 300, fun refill_case/0}.
refill_case() ->
    B0 = kprof_sample_budget:new(?PPM, 0),
    Spent = kprof_sample_budget:spend(other, 5000.0, B0),
    ?assertNot(kprof_sample_budget:may(look, Spent)),
    ?assertEqual(0, kprof_sample_budget:affords(100, Spent)),
    Some = kprof_sample_budget:refill(1000, Spent),
    ?assert(kprof_sample_budget:may(look, Some)),
    Afforded = fun(B) -> kprof_sample_budget:affords(1000000, B) end,
    Most = Afforded(kprof_sample_budget:refill(5000000, Spent)),
    ?assertEqual(Most, Afforded(B0)),
    ?assertEqual(Most, Afforded(kprof_sample_budget:refill(251000, Spent))),
    ?assertEqual(5000, kprof_sample_budget:cost(Some)).

%% What was used beyond is owed.
owed_test_() -> {timeout, 300, fun owed_case/0}.
owed_case() ->
    B = kprof_sample_budget:spend(other, 25000.0, kprof_sample_budget:new(?PPM, 0)),
    ?assertNot(kprof_sample_budget:may(look, kprof_sample_budget:refill(999000, B))),
    ?assert(kprof_sample_budget:may(look, kprof_sample_budget:refill(1001000, B))).

%% It learns what a look costs: where each costs 10 µs, 2000 a second are left of however many.
affords_test_() -> {timeout, 300, fun affords_case/0}.
affords_case() ->
    {Looks, _} = lists:foldl(
        fun(Tick, {Sum, B0}) ->
            B = kprof_sample_budget:refill(Tick * 10000, B0),
            case kprof_sample_budget:affords(100, B) of
                0 -> {Sum, B};
                N -> {Sum + N, kprof_sample_budget:spend({looks, N}, N * 10.0, B)}
            end
        end,
        {0, kprof_sample_budget:new(?PPM, 0)},
        lists:seq(1, 1000)
    ),
    ?assert(abs(Looks - 20000) < 1000).

%% Scans take a quarter at most, and looks what they leave.
scans_test_() -> {timeout, 300, fun scans_case/0}.
scans_case() ->
    {Scans, Looks, _} = lists:foldl(
        fun(Tick, {Scans0, Looks0, B0}) ->
            B1 = kprof_sample_budget:refill(Tick * 10000, B0),
            {Scanned, B2} =
                case kprof_sample_budget:may(scan, B1) of
                    true -> {1, kprof_sample_budget:spend(scan, 100.0, B1)};
                    false -> {0, B1}
                end,
            case kprof_sample_budget:affords(1000, B2) of
                0 ->
                    {Scans0 + Scanned, Looks0, B2};
                N ->
                    Spent = kprof_sample_budget:spend({looks, N}, N * 10.0, B2),
                    {Scans0 + Scanned, Looks0 + N, Spent}
            end
        end,
        {0, 0, kprof_sample_budget:new(?PPM, 0)},
        lists:seq(1, 1000)
    ),
    ?assert(abs(Scans * 100 - 50000) < 3000),
    ?assert(abs(Looks * 10 - 150000) < 8000).
