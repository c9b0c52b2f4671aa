%% SPDX-License-Identifier: Apache-2.0
-module(kprof_trigger_options_tests).
-include("patient.hrl").

check(Triggers) ->
    try
        kprof_trigger_options:check(Triggers)
    catch
        throw:Reason -> {error, lists:flatten(kprof_error:format(Reason))}
    end.

usual_test_() -> {timeout, 300, fun usual_case/0}.
usual_case() ->
    [Queue] = check([{message_queue_len, {above, 10000}}]),
    ?assertMatch(
        #{
            name := <<"message_queue_len">>,
            of_what := message_queue_len,
            above := 10000,
            for_ms := 5000,
            high_water := false,
            every_ms := 600000,
            sample := #{
                seconds := 30, hz := 99, by := message_queue_len, label := <<"message_queue_len">>
            }
        },
        Queue
    ),
    ?assertMatch([#{sample := #{by := memory}}], check([{memory, {above, 1 bsl 30}}])),
    ?assertMatch(
        [#{name := <<"a b">>, of_what := {tier_p99, <<"http">>}, for_ms := 0, above := 0.5}],
        check([{tier_p99, http, {above_ms, 0.5}, #{name => "a b", high_water => true}}])
    ),
    ?assertMatch(
        [#{for_ms := 1500, sample := #{label := <<"l">>, seconds := 5, top := 3}}],
        check([
            {run_queue, {above, 8}, #{
                for => 1.5, sample => #{label => l, seconds => 5, top => 3}
            }}
        ])
    ).

refused_test_() ->
    [
        ?_assertEqual({error, Text}, check(Triggers))
     || {Text, Triggers} <- [
            {
                "the option triggers wants a list of triggers, such as {run_queue, {above, 8}}, "
                "not 8",
                8
            },
            {"two triggers are named memory: give one another name", [
                {memory, {above, 1}}, {memory, {above, 2}}
            ]},
            {"17 triggers are more than the 16 that one trace may have",
                lists:duplicate(17, {memory, {above, 1}})},
            {"the trigger run_queue has no option often", [{run_queue, {above, 1}, #{often => 1}}]},
            {"the trigger run_queue: above wants a number from 0 on, not many", [
                {run_queue, {above, many}}
            ]},
            {"the trigger run_queue: every wants seconds, from 10 to 604800, not 1", [
                {run_queue, {above, 1}, #{every => 1}}
            ]},
            {"the trigger run_queue: hz wants a number from 1 to 1000, not 0", [
                {run_queue, {above, 1}, #{sample => #{hz => 0}}}
            ]},
            {"the trigger run_queue: seconds wants 3600 at most, not 3601", [
                {run_queue, {above, 1}, #{sample => #{seconds => 3601}}}
            ]},
            {"the trigger run_queue: for wants no high_water, not 1.0", [
                {run_queue, {above, 1}, #{high_water => true, for => 1}}
            ]}
        ]
    ] ++
        [
            ?_assertMatch({error, "a trigger is {Of, {above, N}}" ++ _}, check([Trigger]))
         || Trigger <- [x, {load, {above, 1}}, {run_queue, 1}, {run_queue, {below, 1}, #{}}, {1, 2}]
        ].

%% What a tool sends is the same, and may be anything.
sent_test_() -> {timeout, 300, fun sent_case/0}.
sent_case() ->
    ?assertEqual(
        {ok,
            hd(
                check([
                    {run_queue, {above, 8}, #{
                        name => <<"q">>,
                        for => 1,
                        every => 60,
                        sample => #{seconds => 3, hz => 20, label => <<"l">>}
                    }}
                ])
            )},
        kprof_trigger_options:sent(#{
            <<"trigger">> => <<"run_queue">>,
            <<"above">> => 8,
            <<"name">> => <<"q">>,
            <<"for_ms">> => 1000,
            <<"every_ms">> => 60000,
            <<"seconds">> => 3,
            <<"hz">> => 20,
            <<"label">> => <<"l">>
        })
    ),
    ?assertMatch(
        {ok, #{of_what := {tier_p99, <<"t">>}, above := 1.5}},
        kprof_trigger_options:sent(#{
            <<"trigger">> => <<"tier_p99">>, <<"tier">> => <<"t">>, <<"above">> => 1.5
        })
    ),
    Keys = [
        <<"trigger">>, <<"tier">>, <<"above">>, <<"name">>, <<"for_ms">>, <<"every_ms">>,
        <<"seconds">>, <<"hz">>, <<"label">>, <<"high_water">>
    ],
    Values = [<<"run_queue">>, <<"tier_p99">>, <<255>>, -1, 1 bsl 62, 0.5, true, nil, [1], #{}],
    [
        case kprof_trigger_options:sent(Map) of
            {ok, _} -> ok;
            {error, Reason} -> ?assert(is_list(kprof_error:format(Reason)))
        end
     || _ <- lists:seq(1, 5000),
        Map <- [maps:from_list([{K, pick(Values)} || K <- Keys, rand:uniform() < 0.5])]
    ].

pick(List) ->
    lists:nth(rand:uniform(length(List)), List).
