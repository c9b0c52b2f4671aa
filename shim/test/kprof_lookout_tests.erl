%% SPDX-License-Identifier: Apache-2.0
%% The lookout on this node, with runs that are told instead of made.
-module(kprof_lookout_tests).
-include("patient.hrl").

%% A queue that is long begins one run, which names its process; one that is short begins none.
queue_test_() ->
    {timeout, 300, fun() ->
        Pid = spawn(fun() -> receive stop -> ok end end),
        true = register(kprof_lookout_tests, Pid),
        [Lookout | Others] = start([
            {message_queue_len, {above, 500}, #{for => 0, name => long}},
            {message_queue_len, {above, 1000000}, #{for => 0, name => longer}}
        ]),
        ?assertEqual([], [P || P <- Others, not is_process_alive(P)]),
        nothing(2500),
        _ = [Pid ! {nothing, N} || N <- lists:seq(1, 501)],
        {Runner, #{label := <<"long">>, name := Name}} = run(),
        ?assertMatch(
            <<"the trigger long: 501 messages in the queue of kprof_lookout_tests (<", _/binary>>,
            Name
        ),
        ?assertNotEqual(nomatch, string:find(Name, pid_to_list(Pid))),
        % it is told once it goes on
        {event, Begun} = told(Lookout),
        ?assertNotEqual(nomatch, string:find(Begun, "stacks are sampled for 30 s")),
        Runner ! {ok, #{profile => 7}},
        ?assertEqual({event, <<"the trigger long: profile 7">>}, told(Lookout)),
        nothing(2500),
        [
            #{name := <<"long">>, began := 1, value := 501, process := Named},
            #{name := <<"longer">>, began := 0, again_ms := 0}
        ] = list(Lookout),
        ?assertEqual(
            unicode:characters_to_binary(["kprof_lookout_tests (", pid_to_list(Pid), ")"]), Named
        ),
        exit(Pid, kill),
        ends(Lookout, Others)
    end}.

%% All that it looks at has a value, and what is removed begins nothing.
values_test_() ->
    {timeout, 300, fun() ->
        [Lookout | Others] = start([]),
        nothing(100),
        [
            {done, _, true, _, _, _} = order({add, spec(T)}, Lookout)
         || T <- [
                {run_queue, {above, 1 bsl 40}},
                {memory, {above, 1 bsl 50}},
                {reductions, {above, 1 bsl 50}},
                {message_queue_len, {above, 1 bsl 40}}
            ]
        ],
        {done, _, false, Text, [], []} = order({add, spec({memory, {above, 1}})}, Lookout),
        ?assertEqual(<<"two triggers are named memory: give one another name">>, Text),
        Values = values(Lookout),
        ?assert(maps:get(<<"memory">>, Values) > 1000000),
        ?assert(maps:get(<<"reductions">>, Values) > 0),
        {done, _, true, _, [], [<<"t">>]} =
            order({add, spec({tier_p99, t, {above_ms, 10}, #{for => 0}})}, Lookout),
        Lookout ! {p99, [{<<"other">>, 20.0}, {<<"t">>, 10.0}]},
        nothing(100),
        Lookout ! {p99, [{<<"t">>, 10.5}]},
        {_, #{label := <<"tier_p99 t">>}} = run(),
        {event, _} = told(Lookout),
        {done, _, true, _, [], []} = order({remove, <<"tier_p99 t">>}, Lookout),
        {done, _, false, <<"there is no trigger x">>, _, _} = order({remove, <<"x">>}, Lookout),
        {done, _, true, <<"4 removed">>, _, _} = order({remove, all}, Lookout),
        ?assertEqual([], list(Lookout)),
        ends(Lookout, Others)
    end}.

values(Lookout) ->
    Values = maps:from_list([{Name, V} || #{name := Name, value := V} <- list(Lookout)]),
    case map_size(Values) of
        4 ->
            Values;
        _ ->
            timer:sleep(100),
            values(Lookout)
    end.

%% What cannot begin is told once, however often it is tried, and told again when something else is
%% the matter. It does not count.
refused_test_() ->
    {timeout, 300, fun() ->
        [Lookout | Others] = start([{memory, {above, 1}, #{for => 0}}]),
        {First, _} = run(),
        First ! {error, not_started},
        {event, Text} = told(Lookout),
        ?assertNotEqual(nomatch, string:find(Text, "but that cannot be now: kprof is not running")),
        {Second, _} = run(),
        Second ! {error, not_started},
        nothing(2500),
        [#{began := 0, again_ms := Again}] = list(Lookout),
        ?assert(Again > 0),
        {Third, _} = run(),
        Third ! crash,
        {event, _} = told(Lookout),
        {done, _, true, _, _, _} = order({remove, all}, Lookout),
        ends(Lookout, Others)
    end}.

start(Triggers) ->
    Test = self(),
    kprof_lookout:start_link(kprof_trigger_options:check(Triggers), fun(Wanted) ->
        Test ! {run, self(), Wanted},
        receive
            Answer when is_tuple(Answer) -> Answer
        end
    end).

spec(Trigger) ->
    [Spec] = kprof_trigger_options:check([Trigger]),
    Spec.

run() ->
    receive
        {run, Pid, Wanted} -> {Pid, Wanted}
    end.

nothing(Ms) ->
    receive
        {run, _, _} = Run -> error({run, Run});
        {kprof_lookout, _, Told} -> error({told, Told})
    after Ms -> ok
    end.

told(Lookout) ->
    receive
        {kprof_lookout, Lookout, {event, Text}} -> {event, unicode:characters_to_binary(Text)};
        {kprof_lookout, Lookout, {done, Id, Ok, Text, List, P99}} ->
            {done, Id, Ok, unicode:characters_to_binary(Text), List, P99}
    end.

order(Order, Lookout) ->
    Lookout ! {order, 1, Order},
    told(Lookout).

list(Lookout) ->
    {done, 1, true, _, List, _} = order(list, Lookout),
    List.

%% With all that it has started.
ends(Lookout, Others) ->
    true = unlink(Lookout),
    Refs = [monitor(process, P) || P <- [Lookout | Others]],
    exit(Lookout, shutdown),
    [
        receive
            {'DOWN', Ref, process, _, _} -> ok
        end
     || Ref <- Refs
    ],
    ok.
