%% SPDX-License-Identifier: Apache-2.0
-module(kprof_load_tests).
-include("patient.hrl").

%% 50 kB in each twentieth of a second are 1 MB a second, which the first look tells; then silence.
rate_test_() -> {timeout, 300, fun rate_case/0}.
rate_case() ->
    Rates = rates(kprof_load:begin_at(1000, kprof_load:new()), 1000, [
        50000, 50000, 50000, 0, 0, 0
    ]),
    ?assertEqual([1000000, 1000000, 1000000, 500000, 0, 0], Rates).

%% What a begun trace brings late, or what comes later on, is known at the second look; what single
%% requests bring is half of it.
late_test_() -> {timeout, 300, fun late_case/0}.
late_case() ->
    ?assertEqual(
        [200000, 600000, 1000000],
        rates(kprof_load:begin_at(0, kprof_load:new()), 0, [10000, 50000, 50000])
    ),
    ?assertEqual(
        [0, 500000, 500000, 0],
        rates(kprof_load:begin_at(0, kprof_load:new()), 0, [0, 50000, 0, 0])
    ).

rates(_, _, []) ->
    [];
rates(Load0, Before, [Bytes | More]) ->
    Now = Before + kprof_load:interval(),
    counters:add(kprof_load:counter(Load0), 1, Bytes),
    Load = kprof_load:look(Now, Load0),
    [kprof_load:rate(Load) | rates(Load, Now, More)].

%% 1 MB a second with a quarter of a processor are 4 MB for each second of it, once half a second
%% has proved that the node is at its limit, and until half a second has not. The first look begins
%% the first one.
per_cpu_test_() -> {timeout, 300, fun per_cpu_case/0}.
per_cpu_case() ->
    Full = lists:duplicate(10, true),
    Free = lists:duplicate(10, false),
    ?assertEqual(
        [0, 4000000, 4000000, 0],
        per_cpu(Free ++ Full ++ Full ++ Free, fun(Ms) -> 7000 + Ms div 4 end)
    ),
    ?assertEqual([0], lists:usort(per_cpu(Full ++ Full, fun(_) -> unknown end))),
    ?assertEqual([0], lists:usort(per_cpu(Full ++ Full, fun(_) -> 7000 end))).

%% Two looks in three make the proof, wherever the others are; bursts of a node with time to spare
%% do not, if they are shorter than that.
proof_test_() -> {timeout, 300, fun proof_case/0}.
proof_case() ->
    Per = fun(Looks) -> lists:last(per_cpu(Looks, fun(Ms) -> Ms div 4 end)) end,
    Few = lists:duplicate(3, false),
    Many = lists:duplicate(7, true),
    ?assertEqual([4000000, 4000000], [Per(Few ++ Many), Per(Many ++ Few)]),
    ?assertEqual(0, Per([false | Few] ++ tl(Many))),
    ?assertEqual(0, Per(lists:append(lists:duplicate(10, [true, true, true, false, false])))).

%% What is said at the end of each half second; it is said until the next one ends.
per_cpu(Looks, CpuMs) ->
    Begun = kprof_load:look(
        50, false, fun() -> CpuMs(50) end, kprof_load:begin_at(0, kprof_load:new())
    ),
    {Seen, _} = lists:mapfoldl(
        fun({I, IsFull}, Load) ->
            counters:add(kprof_load:counter(Load), 1, 50000),
            Now = 50 + 50 * I,
            Next = kprof_load:look(Now, IsFull, fun() -> CpuMs(Now) end, Load),
            {{Now, kprof_load:per_cpu(Next)}, Next}
        end,
        Begun,
        lists:enumerate(Looks)
    ),
    [PerCpu || {Now, PerCpu} <- Seen, Now rem 500 =:= 50].

%% What came before tracing began is none of it, and two looks at once are one.
begin_test_() -> {timeout, 300, fun begin_case/0}.
begin_case() ->
    Load = kprof_load:new(),
    counters:add(kprof_load:counter(Load), 1, 1000000),
    Begun = kprof_load:begin_at(5000, Load),
    ?assertEqual(0, kprof_load:rate(kprof_load:look(5050, Begun))),
    counters:add(kprof_load:counter(Load), 1, 1000),
    Look = kprof_load:look(5050, Begun),
    ?assertEqual(20000, kprof_load:rate(Look)),
    ?assertEqual(Look, kprof_load:look(5060, Look)).
