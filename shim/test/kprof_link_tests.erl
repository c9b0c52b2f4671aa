%% SPDX-License-Identifier: Apache-2.0
-module(kprof_link_tests).
-include("patient.hrl").

%% What a stranger says instead of a collector becomes a short line that steers no terminal.
bye_test_() ->
    [
        ?_assertEqual(
            {bye, Text}, kprof_link:bye(#{<<"type">> => <<"bye">>, <<"reason">> => Reason})
        )
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
        [?_assertEqual({bye, "no reason given"}, kprof_link:bye(#{<<"type">> => <<"bye">>}))].
