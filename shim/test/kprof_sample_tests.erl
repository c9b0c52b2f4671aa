%% SPDX-License-Identifier: Apache-2.0
-module(kprof_sample_tests).
-include("patient.hrl").

check_test_() ->
    {ok, Usual} = kprof_sample_options:check(#{}),
    {ok, All} = kprof_sample_options:check(#{
        seconds => 86400,
        hz => 1,
        top => 1000,
        by => message_queue_len,
        every_ms => 100,
        budget => 0.5,
        registered => [shop, "init"],
        pids => [self()],
        name => shop,
        label => "nightly"
    }),
    [
        ?_assertEqual(
            #{
                seconds => 60,
                slice_s => 0,
                hz => 99,
                top => 100,
                by => reductions,
                every_ms => 5000,
                budget_ppm => 20000,
                registered => [],
                processes => [],
                application => <<>>,
                name => <<>>,
                label => <<>>
            },
            Usual
        ),
        ?_assertEqual(
            #{
                seconds => 86400,
                slice_s => 0,
                hz => 1,
                top => 1000,
                by => message_queue_len,
                every_ms => 100,
                budget_ppm => 5000,
                registered => [#{name => <<"shop">>}, #{name => <<"init">>}],
                processes => [#{pid => list_to_binary(pid_to_list(self()))}],
                application => <<>>,
                name => <<"shop">>,
                label => <<"nightly">>
            },
            All
        ),
        ?_assertMatch(
            {ok, #{application := <<"kernel">>}},
            kprof_sample_options:check(#{application => kernel})
        )
    ].

standing_test_() ->
    [
        ?_assertMatch(
            {ok, #{
                seconds := 0,
                slice_s := 3600,
                hz := 5,
                top := 20,
                every_ms := 10000,
                budget_ppm := 5000,
                label := <<"always">>
            }},
            kprof_sample_options:standing(#{})
        ),
        ?_assertMatch(
            {ok, #{slice_s := 5, label := <<"shop">>}},
            kprof_sample_options:standing(#{slice => 5, label => shop})
        ),
        ?_assertMatch({error, {bad_option, _}}, kprof_sample_options:standing(#{seconds => 5})),
        ?_assertMatch({error, {bad_option, _}}, kprof_sample_options:check(#{slice => 5})),
        ?_assertMatch(
            {error, {bad_value, slice, _, _}}, kprof_sample_options:standing(#{slice => 4})
        ),
        ?_assertMatch(
            {error, {bad_value, slice, _, _}}, kprof_sample_options:standing(#{slice => 43201})
        ),
        ?_assertEqual({error, {bad_sample, true}}, kprof_sample_options:standing(true))
    ].

bad_test_() ->
    [
        ?_assertMatch(
            {error, {bad_value, Key, _, _}}, kprof_sample_options:check(#{Key => Value})
        )
     || {Key, Value} <- [
            {seconds, 0},
            {seconds, 86401},
            {hz, 1001},
            {top, 0},
            {by, size},
            {every_ms, 99},
            {budget, 0},
            {budget, 51},
            {registered, shop},
            {registered, [7]},
            {pids, [shop]},
            {pids, [self() | self()]},
            {pids, lists:duplicate(101, self())},
            {application, {a, b}},
            {label, binary:copy(<<"x">>, 256)}
        ]
    ] ++
        [
            ?_assertEqual(
                {error, {bad_option, {only, x}}}, kprof_sample_options:check(#{only => x})
            ),
            ?_assertEqual({error, {bad_sample, []}}, kprof_sample_options:check([])),
            ?_assertMatch(
                {error, {bad_value, application, <<"shop">>, _}},
                kprof_sample_options:check(#{application => shop, pids => [self()]})
            )
        ].

%% What the collector says in the end, as it comes.
answer_test_() ->
    Kept = #{type => stacks_kept, profile => 7, reason => done, text => <<>>, samples => 12},
    None = Kept#{profile => 0},
    Told = fun(Message) ->
        {ok, {stacks_kept, T}} = kprof_protocol:decode(
            iolist_to_binary(kprof_msgpack:encode(Message))
        ),
        kprof_sample:answer(T)
    end,
    [
        ?_assertEqual(
            {ok, maps:merge(kprof_sampler:no_totals(), #{profile => 7, samples => 12})},
            Told(Kept)
        ),
        ?_assertEqual({error, {no_profile, "there was nothing to look at"}}, Told(None)),
        ?_assertEqual({error, {no_profile, "it is full"}}, Told(None#{text => <<"it is full">>}))
    ].

%% One at a time, and each has its own answer.
ask_test_() -> {timeout, 300, fun ask_case/0}.
ask_case() ->
    Control = kprof_control:new(#{
        collector => {"127.0.0.1", {127, 0, 0, 1}, 1}, secret => undefined, tls => undefined
    }),
    {ok, Wanted} = kprof_sample_options:check(#{seconds => 1}),
    Ref = make_ref(),
    {ok, One} = kprof_sample:ask({self(), Ref}, Wanted, Control, kprof_sample:new(undefined)),
    ?assertEqual(
        {error, sample_runs}, kprof_sample:ask({self(), make_ref()}, Wanted, Control, One)
    ),
    None = kprof_sample:lost(One),
    receive
        {Ref, Answer} -> ?assertMatch({error, {no_profile, _}}, Answer)
    after 60000 -> error(no_answer)
    end,
    ?assertMatch({ok, _}, kprof_sample:ask({self(), Ref}, Wanted, Control, None)).

%% The one that stands is asked for once, and again some time after it is over, could not be, or was
%% not answered; at once with another connection.
stand_test_() -> {timeout, 300, fun stand_case/0}.
stand_case() ->
    Mock = kprof_mock_collector:start(),
    {ok, Control} = kprof_control:connect(
        kprof_control:new(#{
            collector => {"127.0.0.1", {127, 0, 0, 1}, kprof_mock_collector:port(Mock)},
            secret => undefined,
            tls => undefined
        })
    ),
    {ok, Wanted} = kprof_sample_options:standing(#{}),
    Stand = fun(Times, S) ->
        lists:foldl(fun(Now, S1) -> kprof_sample:stand(Now, Control, S1) end, S, Times)
    end,
    Over = #{slice_s => 3600, profile => 0, reason => <<"error">>, text => <<"it is full">>},
    None = kprof_sample:new(undefined),
    ?assertEqual(None, Stand([0, 100000], None)),
    %% asked: at 0
    One = Stand([0, 1000, 29999], kprof_sample:new(Wanted)),
    Stands = Stand([100000], kprof_sample:begun(#{slice_s => 3600}, One)),
    ?assertEqual(One, kprof_sample:begun(#{slice_s => 0}, One)),
    %% at 260000
    Again = Stand([200001, 259999, 260000, 261000], kprof_sample:kept(200000, Over, Stands)),
    %% at 360000, as it was not answered
    Late = Stand([300000, 359999, 360000, 361000], Again),
    %% at once
    _ = Stand([362000], kprof_sample:lost(Late)),
    ?assertEqual(
        kprof_sample:none_more(Late), Stand([500000], kprof_sample:none_more(Late))
    ),
    ok = kprof_control:told(kprof_protocol:note(info, "last"), Control),
    _ = kprof_mock_collector:wait_control(Mock, <<"note">>),
    Asked = [M || #{<<"type">> := <<"stacks">>} = M <- kprof_mock_collector:control(Mock)],
    ?assertEqual(4, length(Asked)),
    ?assertMatch(#{<<"slice_s">> := 3600, <<"label">> := <<"always">>}, hd(Asked)),
    _ = kprof_control:close(Control),
    kprof_mock_collector:stop(Mock).
