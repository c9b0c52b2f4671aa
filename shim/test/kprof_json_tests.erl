%% SPDX-License-Identifier: Apache-2.0
-module(kprof_json_tests).
-include("patient.hrl").

json_test_() ->
    [
        ?_assertEqual(unicode:characters_to_binary(Text), iolist_to_binary(kprof_json:encode(V)))
     || {Text, V} <- [
            {"null", nil},
            {"null", undefined},
            {"true", true},
            {"-5", -5},
            {"0.1", 0.1},
            {"1.0", 1.0},
            {"1.0e300", 1.0e300},
            {"\"a\"", a},
            {"\"a\\\"b\\\\c\\nd\"", <<"a\"b\\c\nd">>},
            {"\"\\u0001\\u007f\"", <<1, 127>>},
            {[$", 16#fffd, $x, $"], <<16#ff, $x>>},
            {[$", 252, $"], <<252/utf8>>},
            {"[1,[],{}]", [1, [], #{}]},
            {"{\"a\":1,\"b\":[2]}", #{b => [2], <<"a">> => 1}}
        ]
    ].
