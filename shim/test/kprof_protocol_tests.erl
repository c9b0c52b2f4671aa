%% SPDX-License-Identifier: Apache-2.0
-module(kprof_protocol_tests).
-include("patient.hrl").

%% What a stranger says instead of a collector becomes a short line that steers no terminal.
bye_test_() ->
    [
        ?_assertEqual({ok, {bye, Text}}, decoded(#{type => bye, reason => Reason}))
     || {Reason, Text} <- [
            {<<"wrong secret">>, "wrong secret"},
            {<<"a\e[31m\nkprof: all is well\d"/utf8>>, "a?[31m?kprof: all is well?"},
            {<<"\x{9b}31m ä"/utf8>>, "?31m ä"},
            {<<"cut", 16#c3>>, "cut"},
            {<<16#ff, "x">>, ""},
            {binary:copy(<<"x">>, 1000), lists:duplicate(400, $x)},
            {[<<"a list">>], "no reason given"}
        ]
    ] ++
        [?_assertEqual({ok, {bye, "no reason given"}}, decoded(#{type => bye}))].

%% What is none of the collector's messages, or lacks a field, is told from what is no message.
others_test_() ->
    [
        ?_assertEqual({ok, {other, <<"ping">>}}, decoded(#{type => ping})),
        ?_assertEqual({ok, {other, <<"welcome">>}}, decoded(#{type => welcome, session => 1})),
        ?_assertEqual(
            {ok, {other, <<"identify">>}},
            decoded(#{type => identify, id => <<"1">>, m => m, f => f, args => {bin, <<>>}})
        ),
        ?_assertEqual({ok, {steer, 1, unknown}}, decoded(#{type => steer, id => 1, command => x})),
        ?_assertEqual(
            {ok, {steer, 1, {trigger, {remove, all}}}},
            decoded(#{type => steer, id => 1, command => trigger_remove, all => true})
        ),
        ?_assertEqual(
            {ok, {steer, 1, unknown}},
            decoded(#{type => steer, id => 1, command => trigger_remove, name => 5})
        ),
        ?_assertEqual(
            {ok, {p99, [{<<"t">>, 1.5}]}},
            decoded(#{
                type => p99,
                tiers => [#{tier => t, p99_us => 1500}, #{tier => 1, p99_us => 1}, #{tier => t}, 1]
            })
        ),
        ?_assertEqual({ok, {stats, [#{}]}}, decoded(#{type => stats, rows => [1, #{}]})),
        ?_assertEqual({error, no_type}, decoded(#{id => 1})),
        ?_assertEqual(
            {error, no_map}, kprof_protocol:decode(iolist_to_binary(kprof_msgpack:encode([])))
        )
    ].

decoded(Message) ->
    kprof_protocol:decode(iolist_to_binary(kprof_protocol:encode(Message))).
