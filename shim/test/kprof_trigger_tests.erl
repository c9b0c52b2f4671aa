%% SPDX-License-Identifier: Apache-2.0
-module(kprof_trigger_tests).
-include("patient.hrl").

spec(More) ->
    {ok, Spec} =
        try
            [S] = kprof_trigger_options:check([{run_queue, {above, 8}, More}]),
            {ok, S}
        catch
            throw:Why -> {error, Why}
        end,
    Spec.

%% What a trigger says to values, each of a second.
says(Values, T0) ->
    {Says, _} = lists:mapfoldl(fun step/2, {0, T0}, Values),
    Says.

step(Value, {Now, T0}) ->
    case kprof_trigger:value(Now, Value, T0) of
        {due, T} -> {due, {Now + 1000, kprof_trigger:begun(Now, T)}};
        {wait, T} -> {wait, {Now + 1000, T}}
    end.

dues(Values, T) ->
    [At || {At, due} <- lists:zip(lists:seq(0, length(Values) - 1), says(Values, T))].

%% Above, not at the limit; for so long, without a pause.
for_test_() -> {timeout, 300, fun for_case/0}.
for_case() ->
    T = kprof_trigger:new(spec(#{for => 3, every => 10})),
    ?assertEqual([], dues([8, 8, 8, 8, 8, 8, 8], T)),
    ?assertEqual([3], dues([9, 9, 9, 9, 9, 9], T)),
    ?assertEqual([], dues([9, 9, 9, 8, 9, 9, 9, 8], T)),
    ?assertEqual([7], dues([9, 9, 9, 8, 9, 9, 9, 9], T)),
    ?assertEqual([0], dues([9], kprof_trigger:new(spec(#{for => 0})))).

%% No more often than that, and again while it is above.
every_test_() -> {timeout, 300, fun every_case/0}.
every_case() ->
    T = kprof_trigger:new(spec(#{for => 3, every => 10})),
    ?assertEqual([3, 13, 23], dues(lists:duplicate(30, 9), T)),
    ?assertEqual([3, 13], dues([9, 9, 9, 9, 0, 9, 9, 9, 9, 9, 9, 9, 9, 9], T)).

%% Each new high above the limit, until five minutes have passed.
high_water_test_() -> {timeout, 300, fun high_water_case/0}.
high_water_case() ->
    T = kprof_trigger:new(spec(#{high_water => true, every => 10})),
    Low = lists:duplicate(11, 0),
    ?assertEqual([], dues([7, 8], T)),
    ?assertEqual([0], dues([9, 9, 9] ++ Low ++ [9, 8], T)),
    ?assertEqual([0, 12], dues([9] ++ Low ++ [10, 10], T)),
    % one that comes too early is a mark all the same
    ?assertEqual([0], dues([9, 20] ++ Low ++ [15], T)),
    ?assertEqual([0, 300], dues([9] ++ lists:duplicate(299, 0) ++ [9], T)),
    ?assertEqual([0], dues([9] ++ lists:duplicate(298, 0) ++ [9], T)).

%% What could not begin begins in a while, and does not count.
put_off_test_() -> {timeout, 300, fun put_off_case/0}.
put_off_case() ->
    New = kprof_trigger:new(spec(#{for => 0, every => 600})),
    {due, T1} = kprof_trigger:value(0, 9, New),
    T2 = kprof_trigger:refused(500, kprof_trigger:begun(0, T1)),
    ?assertMatch(#{began := 0, again_ms := 9500}, kprof_trigger:shown(1000, T2)),
    {wait, T3} = kprof_trigger:value(10000, 9, T2),
    {due, T4} = kprof_trigger:value(11000, 9, T3),
    ?assertMatch(
        #{
            began := 1,
            again_ms := 600000,
            value := 9,
            trigger := run_queue,
            name := <<"run_queue">>,
            above := 8,
            seconds := 30,
            label := <<"run_queue">>
        },
        kprof_trigger:shown(11000, kprof_trigger:begun(11000, T4))
    ),
    High = kprof_trigger:new(spec(#{high_water => true})),
    {due, T5} = kprof_trigger:value(0, 9, High),
    {due, _} = kprof_trigger:value(10000, 9, kprof_trigger:put_off(0, T5)).

%% Property, when proper is installed: a run is due exactly when one looks at all that came before,
%% written as a search and without a state.
property_test_() ->
    case code:ensure_loaded(proper) of
        {module, proper} ->
            ?_assert(proper:quickcheck(property(), [{numtests, 2000}, quiet]));
        _ ->
            []
    end.

property() ->
    proper:forall(
        proper_types:tuple([
            proper_types:boolean(),
            proper_types:integer(0, 6),
            proper_types:integer(10, 30),
            proper_types:list(
                proper_types:tuple([
                    % pauses, some of them long enough for a mark to be forgotten
                    proper_types:frequency([
                        {9, proper_types:integer(1, 3)}, {1, proper_types:integer(200, 310)}
                    ]),
                    proper_types:integer(7, 11)
                ])
            )
        ]),
        fun({HighWater, For, Every, Steps}) ->
            Options =
                case HighWater of
                    true -> #{high_water => true, every => Every};
                    false -> #{for => For, every => Every}
                end,
            {Values, _} = lists:mapfoldl(
                fun({Pause, Value}, Now) -> {{Now + Pause, Value}, Now + Pause} end, -1000, Steps
            ),
            runs(Values, kprof_trigger:new(spec(Options))) =:=
                expected(HighWater, For, Every, Values)
        end
    ).

runs(Values, T0) ->
    {Runs, _} = lists:foldl(
        fun({At, Value}, {Runs, T}) ->
            case kprof_trigger:value(At * 1000, Value, T) of
                {due, T1} -> {[At | Runs], kprof_trigger:begun(At * 1000, T1)};
                {wait, T1} -> {Runs, T1}
            end
        end,
        {[], T0},
        Values
    ),
    lists:reverse(Runs).

expected(HighWater, For, Every, Values) ->
    Passed = [
        At
     || N <- lists:seq(1, length(Values)),
        {At, Value} <- [lists:nth(N, Values)],
        Value > 8,
        passes(HighWater, For, lists:sublist(Values, N))
    ],
    apart(Every, Passed).

%% High water: above all marks of five minutes. A mark is a value that was one itself.
passes(true, _, Values) ->
    {At, Value} = lists:last(Values),
    is_mark(At, Value, marks(lists:droplast(Values)));
passes(false, For, Values) ->
    {At, _} = lists:last(Values),
    Above = lists:takewhile(fun({_, V}) -> V > 8 end, lists:reverse(Values)),
    {Since, _} = lists:last(Above),
    At - Since >= For.

marks(Values) ->
    lists:foldl(
        fun({At, V}, Marks) ->
            case V > 8 andalso is_mark(At, V, Marks) of
                true -> [{At, V} | Marks];
                false -> Marks
            end
        end,
        [],
        Values
    ).

is_mark(_, _, []) -> true;
is_mark(At, V, [{MarkAt, Mark} | _]) -> V > Mark orelse At - MarkAt >= 300.

apart(_, []) -> [];
apart(Every, [At | Later]) -> [At | apart(Every, [L || L <- Later, L >= At + Every])].
