%% SPDX-License-Identifier: Apache-2.0
-module(kprof_identify_tests).
-include("patient.hrl").

ask(Fun, Args) -> ask_bytes(Fun, term_to_binary(Args)).

ask_bytes(Fun, Bytes) ->
    {Pid, Ref} = kprof_identify:start(Fun, {<<"lists">>, <<"nth">>, Bytes}),
    receive
        {'DOWN', Ref, process, Pid, Why} -> kprof_identify:result(Why)
    after 60000 -> timeout
    end.

%% On a machine that has no time for 200 ms there is no answer.
answered(Fun, Args, Tries) ->
    case ask(Fun, Args) of
        nil when Tries > 1 -> answered(Fun, Args, Tries - 1);
        Answer -> Answer
    end.

ask_test_() ->
    [
        ?_assertEqual(
            <<"lists_1">>, answered(fun({M, nth, [N]}) -> {M, integer_to_list(N)} end, [1], 10)
        ),
        ?_assertEqual(nil, ask(fun(_) -> undefined end, [1])),
        ?_assertEqual(nil, ask(fun(_) -> error(oops) end, [1])),
        ?_assertEqual(nil, ask(fun(_) -> exit(oops) end, [1])),
        ?_assertEqual(nil, ask(fun({other, _, _}) -> x end, [1])),
        ?_assertEqual(nil, ask(fun(_) -> 17 end, [1])),
        ?_assertEqual(nil, ask_bytes(fun(_) -> x end, <<131, 255>>)),
        ?_assertEqual(
            nil,
            ask_bytes(fun(_) -> x end, term_to_binary([lists:duplicate(10000, 0)], [compressed]))
        ),
        %% an atom that this node does not have is not made
        ?_assertEqual(
            nil, ask_bytes(fun(_) -> x end, <<131, 108, 1:32, 119, 12, "kprof_no_at", "m", 106>>)
        )
    ].

limits_test_() ->
    {timeout, 300, [
        ?_assertEqual(
            nil,
            ask(
                fun(_) ->
                    timer:sleep(10000),
                    x
                end,
                [1]
            )
        ),
        ?_assertEqual(nil, ask(fun F(X) -> F(X) end, [1])),
        ?_assertEqual(
            nil, ask(fun(_) -> integer_to_binary(length(lists:seq(1, 50000000))) end, [1])
        )
    ]}.

text_test_() ->
    [
        ?_assertEqual(Text, kprof_identify:text(V))
     || {V, Text} <- [
            {a, <<"a">>},
            {"ü", <<"ü"/utf8>>},
            {<<"b">>, <<"b">>},
            {{a, "b"}, <<"a_b">>},
            {undefined, nil},
            {17, nil},
            {{a, 1}, nil},
            {[a], nil},
            {{<<"GET">>, {}}, <<"GET /">>},
            {{'GET', {"users", '*'}}, <<"GET /users/*">>},
            {{'GET', "/timer"}, <<"GET /timer">>},
            {{<<"GET">>, timer}, <<"GET /timer">>},
            {{"PUT", ""}, <<"PUT /">>},
            {{get, <<"/a">>}, <<"get /a">>},
            {{get, a}, <<"get_a">>},
            {{'GET', {1}}, nil},
            {{1, {}}, nil}
        ]
    ].
