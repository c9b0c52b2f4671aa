%% SPDX-License-Identifier: Apache-2.0
-module(kprof_flame_tests).
-include("patient.hrl").

check_test_() ->
    {ok, Default} = kprof_flame:check(#{}),
    {ok, All} = kprof_flame:check(#{
        requests => 1,
        seconds => 3600,
        identity => {"GET", "users"},
        name => shop,
        applications => [shop, "stdlib"],
        modules => [<<"my_*">>],
        all_modules => true
    }),
    [
        ?_assertEqual(
            #{
                requests => 20,
                seconds => 30,
                only => <<>>,
                name => <<>>,
                applications => [],
                modules => [],
                all => false
            },
            Default
        ),
        ?_assertEqual(
            #{
                requests => 1,
                seconds => 3600,
                only => <<"GET /users">>,
                name => <<"shop">>,
                applications => [#{name => <<"shop">>}, #{name => <<"stdlib">>}],
                modules => [#{name => <<"my_*">>}],
                all => true
            },
            All
        )
    ].

bad_test_() ->
    [
        ?_assertMatch({error, {bad_value, Key, _, _}}, kprof_flame:check(#{Key => Value}))
     || {Key, Value} <- [
            {requests, 0},
            {requests, 100001},
            {seconds, 1.5},
            {identity, <<>>},
            {identity, 7},
            {name, binary:copy(<<"x">>, 256)},
            {name, {a, b}},
            {modules, shop},
            {modules, [[16#d800]]},
            {applications, lists:duplicate(101, shop)},
            {all_modules, yes}
        ]
    ] ++
        [
            ?_assertEqual({error, {bad_option, {only, x}}}, kprof_flame:check(#{only => x})),
            ?_assertEqual({error, {bad_flame, []}}, kprof_flame:check([]))
        ].

%% Never none without a reason.
answer_test_() ->
    None = #{
        profile => 0,
        reason => <<"time_limit">>,
        text => <<>>,
        requests => 0,
        incomplete => 0,
        others => 0,
        unseen => 0
    },
    [?_assertEqual({ok, 7}, kprof_flame:answer(None#{profile := 7}))] ++
        [
            ?_assertEqual({error, {no_profile, Why}}, kprof_flame:answer(maps:merge(None, More)))
         || {Why, More} <- [
                {"no request came", #{}},
                {"no request came; the time is over", #{text => <<"the time is over">>}},
                {"it is full", #{reason => <<"error">>, text => <<"it is full">>}},
                {"1 request came, but none of this identity", #{others => 1}},
                {"2 requests came, but of each messages were lost or could not be joined", #{
                    incomplete => 2, others => 1
                }}
            ]
        ].

%% One at a time; who was never answered is in nobody's way.
ask_test_() ->
    Now = erlang:monotonic_time(millisecond),
    Nobody = spawn(fun() -> ok end),
    {ok, Waiting} = kprof_flame:ask({Nobody, one}, Now + 60000, kprof_flame:new()),
    {ok, Late} = kprof_flame:ask({Nobody, one}, Now - 1, kprof_flame:new()),
    [
        ?_assertEqual({error, flame_runs}, kprof_flame:ask({Nobody, two}, Now + 60000, Waiting)),
        ?_assertMatch({ok, _}, kprof_flame:ask({Nobody, two}, Now + 60000, Late)),
        ?_assertMatch({ok, _}, kprof_flame:ask({Nobody, two}, Now, kprof_flame:lost(Waiting)))
    ].
