%% SPDX-License-Identifier: Apache-2.0
-module(kprof_sampler_pace_tests).
-include("patient.hrl").

-define(PPM, 20000).

ticks(Hz, Processes, Pace) ->
    [kprof_sampler_pace:tick_us(Hz, Processes, Pace) || _ <- lists:seq(1, 1000)].

short(0, Pace) -> Pace;
short(N, Pace) -> short(N - 1, kprof_sampler_pace:short(Pace)).

%% As often as each process is looked at, however many they are, up to 1,000: at the same times.
usual_test_() -> {timeout, 300, fun usual_case/0}.
usual_case() ->
    Pace = kprof_sampler_pace:new(?PPM, 60.0),
    ?assertEqual([10101], lists:usort(ticks(99.0, 1, Pace))),
    ?assertEqual([10101], lists:usort(ticks(99.0, 1000, Pace))),
    ?assertEqual([5051], lists:usort(ticks(99.0, 1001, Pace))),
    ?assertEqual([200000], lists:usort(ticks(5.0, 20, Pace))),
    ?assertEqual([250000], lists:usort(ticks(1.0, 20, Pace))).

%% Where the budget is short: less often, at no fixed times, and still as often on the average as it
%% means to.
short_test_() -> {timeout, 300, fun short_case/0}.
short_case() ->
    Usual = kprof_sampler_pace:new(?PPM, 60.0),
    Short = short(3, Usual),
    ?assert(kprof_sampler_pace:is_short(Short)),
    Ticks = ticks(99.0, 100, Short),
    ?assert(length(lists:usort(Ticks)) > 500),
    Mean = lists:sum(Ticks) / length(Ticks),
    Wanted = 10101 * 1.2 * 1.2 * 1.2,
    ?assert(abs(Mean / Wanted - 1) < 0.05, {Mean, Wanted}),
    Most = lists:max(ticks(99.0, 100, short(100, Usual))),
    ?assert(Most > 50000 andalso Most =< 62500, Most),
    Again = lists:foldl(
        fun(_, Pace) -> kprof_sampler_pace:enough(Pace) end, short(100, Usual), lists:seq(1, 200)
    ),
    ?assertNot(kprof_sampler_pace:is_short(Again)),
    ?assertEqual([10101], lists:usort(ticks(99.0, 100, Again))).

%% With a thousandth of a processor 60 µs for each waking are not spent 20 times a second.
small_budget_test_() -> {timeout, 300, fun small_budget_case/0}.
small_budget_case() ->
    Ticks = ticks(99.0, 100, short(100, kprof_sampler_pace:new(1000, 60.0))),
    ?assert(lists:sum(Ticks) / length(Ticks) > 200000).
