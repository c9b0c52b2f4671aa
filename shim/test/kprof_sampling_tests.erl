%% SPDX-License-Identifier: Apache-2.0
-module(kprof_sampling_tests).
-include("patient.hrl").

-define(BUDGET, (kprof_sampling:budget())).

sampling_test_() ->
    {foreach,
        fun() ->
            _ = ets:new(kprof_weights, [named_table, public]),
            kprof_slots:create()
        end,
        fun(_) ->
            _ = kprof_slots:erase(),
            ets:delete(kprof_weights)
        end,
        [
            fun(Slots) -> {atom_to_list(Name), {timeout, 300, fun() -> Test(Slots) end}} end
         || {Name, Test} <- [
                {one_in, fun one_in/1},
                {taking_turns, fun taking_turns/1},
                {per_second, fun per_second/1},
                {per_second_from_many, fun per_second_from_many/1},
                {weights, fun weights/1},
                {weights_per_second, fun weights_per_second/1},
                {level_in_force, fun level_in_force/1}
            ]
        ]}.

put_in_force(Slots, Sampling) ->
    kprof_sampling:put(Slots, Sampling),
    kprof_slots:one_in(Slots).

taken(Slots, OneIn, Identity, Numbers) ->
    length([N || N <- Numbers, kprof_sampling:takes(Slots, OneIn, N, Identity)]).

%% Exactly one of each N in a row.
one_in(Slots) ->
    [
        begin
            OneIn = put_in_force(Slots, kprof_sampling:new({one_in, N})),
            ?assertEqual(
                [1],
                lists:usort([
                    taken(Slots, OneIn, x, lists:seq(B * N + 1, B * N + N))
                 || B <- lists:seq(0, 50)
                ])
            )
        end
     || N <- [1, 2, 3, 10, 97, 1000]
    ].

%% Requests of two kinds that come in turns are drawn alike.
taking_turns(Slots) ->
    OneIn = put_in_force(Slots, kprof_sampling:new({one_in, 10})),
    Even = taken(Slots, OneIn, x, lists:seq(0, 20000, 2)),
    Odd = taken(Slots, OneIn, x, lists:seq(1, 20001, 2)),
    ?assert(Even > 700 andalso Odd > 700).

%% What Take takes at so many a second, with so many at once: no less, and no more than that and
%% what the time that passes, from Start, brings: however long the machine takes for it.
at_most(PerSecond, AtOnce, Take) ->
    at_most(PerSecond, AtOnce, erlang:monotonic_time(microsecond), Take).

at_most(PerSecond, AtOnce, Start, Take) ->
    Taken = Take(),
    Us = erlang:monotonic_time(microsecond) - Start,
    ?assertMatch(
        {T, _, Most} when T =< Most, {Taken, Us, AtOnce + PerSecond * (Us + 1000) / 1.0e6 + 1}
    ),
    Taken.

%% A tenth of a second's worth at once, then one at a time.
per_second(Slots) ->
    Start = erlang:monotonic_time(microsecond),
    OneIn = put_in_force(Slots, kprof_sampling:new({per_second, 200})),
    Take = fun() -> taken(Slots, OneIn, x, lists:seq(1, 1000)) end,
    First = at_most(200, 20, Start, Take),
    ?assert(First >= 20),
    timer:sleep(50),
    Second = at_most(200, 20, Start, fun() -> First + Take() end) - First,
    ?assert(Second >= 8),
    One = put_in_force(Slots, kprof_sampling:new({per_second, 1})),
    ?assert(at_most(1, 0, fun() -> taken(Slots, One, x, lists:seq(1, 1000)) end) >= 1),
    All = put_in_force(Slots, kprof_sampling:new({one_in, 1})),
    ?assertEqual(1000, taken(Slots, All, x, lists:seq(1, 1000))).

%% However many processes ask at a time, no more get one; and no fewer, where they ask all the time:
%% not so when the machine stands still.
per_second_from_many(Slots) ->
    OneIn = put_in_force(Slots, kprof_sampling:new({per_second, 1000})),
    ?assert(lists:any(fun(_) -> from_many(Slots, OneIn) >= 300 end, lists:seq(1, 20))).

from_many(Slots, OneIn) ->
    Start = erlang:monotonic_time(millisecond),
    Pids = [
        spawn_monitor(fun() -> exit({taken, busy(Slots, OneIn, Start + 500, 0)}) end)
     || _ <- lists:seq(1, 8)
    ],
    Sum = lists:sum([
        receive
            {'DOWN', Ref, process, _, {taken, N}} -> N
        end
     || {_, Ref} <- Pids
    ]),
    Took = erlang:monotonic_time(millisecond) - Start,
    ?assert(Sum =< 100 + Took + 1),
    Sum.

busy(Slots, OneIn, Deadline, Taken) ->
    case erlang:monotonic_time(millisecond) < Deadline of
        true -> busy(Slots, OneIn, Deadline, Taken + taken(Slots, OneIn, x, lists:seq(1, 20)));
        false -> Taken
    end.

weights(Slots) ->
    ok = kprof_sampling:weigh(#{
        <<"rare">> => 50, <<"no">> => 0, <<"half">> => 0.5, <<"a_b">> => 100, <<"very">> => 1.0e6
    }),
    OneIn = put_in_force(Slots, kprof_sampling:new({one_in, 100})),
    Taken = fun(Identity) -> taken(Slots, OneIn, Identity, lists:seq(1, 10000)) end,
    ?assertEqual(
        [100, 5000, 5000, 5000, 0, 50, 10000, 10000],
        [Taken(I) || I <- [other, rare, "rare", <<"rare">>, no, half, {a, "b"}, very]]
    ),
    ?assertEqual([100, 100, 100], [Taken(I) || I <- [undefined, {a, {b}}, [x | y]]]),
    ok = kprof_sampling:weigh(#{}),
    ?assertEqual([100, 100], [Taken(I) || I <- [rare, no]]).

weights_per_second(Slots) ->
    ok = kprof_sampling:weigh(#{<<"cheap">> => 10, <<"dear">> => 0.1, <<"no">> => 0}),
    Taken = fun(Identity, PerSecond, AtOnce) ->
        at_most(PerSecond, AtOnce, fun() ->
            OneIn = put_in_force(Slots, kprof_sampling:new({per_second, 100})),
            taken(Slots, OneIn, Identity, lists:seq(1, 500))
        end)
    end,
    ?assertEqual(0, Taken(no, 0, 0)),
    {Cheap, One, Dear} = {Taken(cheap, 1000, 100), Taken(other, 100, 10), Taken(dear, 10, 1)},
    ?assert(Cheap >= 90),
    ?assert(One >= 10),
    ?assert(Dear >= 1).

level_in_force(Slots) ->
    Half = kprof_sampling:tripped(1, 0, kprof_sampling:new({one_in, 3})),
    ?assertEqual(6, put_in_force(Slots, Half)),
    ?assertEqual("one request in 6", kprof_sampling:describe(Half)),
    ?assertEqual(#{one_in => 3, per_second => 0, level_ppm => 500000}, kprof_sampling:fields(Half)),
    Start = erlang:monotonic_time(microsecond),
    Rate = kprof_sampling:tripped(1, 0, kprof_sampling:new({per_second, 200})),
    ?assertEqual(1, put_in_force(Slots, Rate)),
    ?assert(at_most(100, 10, Start, fun() -> taken(Slots, 1, x, lists:seq(1, 1000)) end) >= 10),
    ?assertEqual("100 requests a second at most", kprof_sampling:describe(Rate)),
    ?assertEqual(
        #{one_in => 0, per_second => 200, level_ppm => 500000}, kprof_sampling:fields(Rate)
    ).

%% --- the level ---

level(S) -> maps:get(level_ppm, kprof_sampling:fields(S)).

%% What the user asked for is not changed by much load, but by too much.
as_asked_test_() -> {timeout, 300, fun as_asked_case/0}.
as_asked_case() ->
    S = kprof_sampling:new({one_in, 1}),
    ?assertEqual(S, kprof_sampling:follow(32 * ?BUDGET, 0, 1000, S)),
    ?assertEqual(S, kprof_sampling:follow(16 * ?BUDGET, 8000000, 1000, S)),
    ?assertEqual(S, kprof_sampling:follow(?BUDGET, 50000000, 1000, S)),
    ?assertNot(kprof_sampling:lowered(S)),
    ?assertEqual(50000, level(kprof_sampling:follow(20 * ?BUDGET, 8000001, 1000, S))),
    ?assertEqual(25000, level(kprof_sampling:follow(40 * ?BUDGET, 0, 1000, S))).

trip_test_() -> {timeout, 300, fun trip_case/0}.
trip_case() ->
    S = kprof_sampling:new({one_in, 1}),
    ?assertEqual(500000, level(kprof_sampling:tripped(0, 0, S))),
    ?assertEqual(500000, level(kprof_sampling:tripped(?BUDGET, 0, S))),
    ?assertEqual(100000, level(kprof_sampling:tripped(10 * ?BUDGET, 0, S))),
    ?assertEqual(15625, level(kprof_sampling:tripped(1000 * ?BUDGET, 0, S))),
    %% and on, but it never ends
    Many = lists:foldl(
        fun(_, A) -> kprof_sampling:tripped(1000 * ?BUDGET, 0, A) end, S, lists:seq(1, 50)
    ),
    ?assertEqual(1, level(Many)).

%% What is over the budget is taken off once the lowering before shows; what is under it comes back
%% step by step, never above what was asked for.
follow_test_() -> {timeout, 300, fun follow_case/0}.
follow_case() ->
    S = kprof_sampling:tripped(1000 * ?BUDGET, 1000, kprof_sampling:new({one_in, 1})),
    ?assertEqual(S, kprof_sampling:follow(2 * ?BUDGET, 0, 1299, S)),
    Lower = kprof_sampling:follow(2 * ?BUDGET, 0, 1300, S),
    ?assertEqual(6250, level(Lower)),
    ?assertEqual(Lower, kprof_sampling:follow(?BUDGET, 0, 1700, Lower)),
    ?assertEqual(Lower, kprof_sampling:follow(0, 0, 6299, Lower)),
    Raised = kprof_sampling:follow(0, 0, 6300, Lower),
    ?assertEqual(50000, level(Raised)),
    ?assertEqual(Raised, kprof_sampling:follow(0, 0, 11299, Raised)),
    %% with a third of the room left, by less than that
    ?assertEqual(60000, level(kprof_sampling:follow(?BUDGET * 2 div 3, 0, 11300, Raised))),
    Again = kprof_sampling:follow(0, 0, 11300, Raised),
    Whole = kprof_sampling:follow(0, 0, 16300, Again),
    ?assertEqual({400000, 1000000}, {level(Again), level(Whole)}),
    ?assertNot(kprof_sampling:lowered(Whole)).

%% What the user asks for in the meantime is held to the same level.
ask_test_() -> {timeout, 300, fun ask_case/0}.
ask_case() ->
    S = kprof_sampling:ask(
        {per_second, 10}, kprof_sampling:tripped(0, 0, kprof_sampling:new({one_in, 1}))
    ),
    ?assertEqual(#{one_in => 0, per_second => 10, level_ppm => 500000}, kprof_sampling:fields(S)).
