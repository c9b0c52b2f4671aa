%% SPDX-License-Identifier: Apache-2.0
-module(kprof_sample_volume_tests).
-include("patient.hrl").

-define(SECOND_US, 1000000).
-define(DAY, 200000000).

%% Days of a run that would take so many bytes a second: what it takes in each, and the least and
%% the most of its looks in the last one.
days(Rate, Days) ->
    Second = fun(N, {V0, Bytes, Shares}) ->
        V = kprof_sample_volume:refill(N * ?SECOND_US, V0),
        Share = kprof_sample_volume:share(V),
        Took = round(Rate * Share),
        {kprof_sample_volume:spend(Took, V), Bytes + Took, [Share | Shares]}
    end,
    {_, Each} = lists:foldl(
        fun(Day, {V0, Before}) ->
            {V, Bytes, Shares} = lists:foldl(
                Second, {V0, 0, []}, lists:seq(86400 * (Day - 1) + 1, 86400 * Day)
            ),
            {V, [{Bytes, lists:min(Shares), lists:max(Shares)} | Before]}
        end,
        {kprof_sample_volume:new(true, 0), []},
        lists:seq(1, Days)
    ),
    lists:reverse(Each).

%% 20 kB a second would be 1.7 GB a day.
day_test_() ->
    {timeout, 300, fun() ->
        [{First, _, _}, {Second, Least, Most}] = days(20000, 2),
        ?assert(First =< ?DAY, First),
        ?assert(Second =< ?DAY, Second),
        % and what may be taken is
        ?assert(Second > 0.9 * ?DAY, Second),
        % evenly
        ?assert(Most - Least < 0.01, {Least, Most})
    end}.

%% Who keeps to it by himself is never held back, nor by an hour of twice as much.
enough_test_() ->
    {timeout, 300, fun() ->
        ?assertMatch([{_, 1.0, 1.0}], days(2000, 1)),
        V = kprof_sample_volume:spend(4000000, kprof_sample_volume:new(true, 0)),
        ?assertEqual(1.0, kprof_sample_volume:share(V)),
        ?assert(kprof_sample_volume:share(kprof_sample_volume:spend(1000000, V)) < 1.0)
    end}.

%% Somebody asked for it, and it ends.
asked_test_() -> {timeout, 300, fun asked_case/0}.
asked_case() ->
    V = kprof_sample_volume:spend(1 bsl 40, kprof_sample_volume:new(false, 0)),
    ?assertEqual(1.0, kprof_sample_volume:share(kprof_sample_volume:refill(1000, V))).
