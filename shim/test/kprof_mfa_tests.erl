%% SPDX-License-Identifier: Apache-2.0
-module(kprof_mfa_tests).

-include("patient.hrl").

%% What is read, and how it is written.
parse_test_() ->
    [
        ?_assertEqual(
            {Text, {ok, MFA}, Shown},
            {Text, kprof_mfa:parse(Text), unicode:characters_to_list(kprof_mfa:text(MFA))}
        )
     || {Text, MFA, Shown} <-
            [
                {"lists:nth/2", {lists, nth, 2}, "lists:nth/2"},
                {"a_b@c:f/255", {a_b@c, f, 255}, "a_b@c:f/255"},
                {"'my mod':'do it'/3", {'my mod', 'do it', 3}, "'my mod':'do it'/3"},
                {"'a:b':'c/d'/1", {'a:b', 'c/d', 1}, "'a:b':'c/d'/1"},
                {"m:'-f/1-fun-0-'/2", {m, '-f/1-fun-0-', 2}, "m:'-f/1-fun-0-'/2"},
                {"'it\\'s':f/1", {'it\'s', f, 1}, "'it\\'s':f/1"},
                {"My.App.all/2", {'Elixir.My.App', all, 2}, "My.App.all/2"},
                {"Enum.map/2", {'Elixir.Enum', map, 2}, "Enum.map/2"},
                {"My.App.ok?/0", {'Elixir.My.App', 'ok?', 0}, "My.App.ok?/0"},
                {"My.App.\"do it\"/1", {'Elixir.My.App', 'do it', 1}, "My.App.\"do it\"/1"},
                {"My.App.<>/2", {'Elixir.My.App', '<>', 2}, "My.App.<>/2"},
                {"My.App.//2", {'Elixir.My.App', '/', 2}, "My.App.//2"},
                {"Elixir.My.App:all/2", {'Elixir.My.App', all, 2}, "My.App.all/2"},
                {"'Elixir.My.App':all/2", {'Elixir.My.App', all, 2}, "My.App.all/2"},
                {"Elixir.My.App.all/2", {'Elixir.My.App', all, 2}, "My.App.all/2"},
                {":lists.nth/2", {lists, nth, 2}, "lists:nth/2"},
                {":\"my mod\".f/2", {'my mod', f, 2}, "'my mod':f/2"}
            ]
    ].

errors_test_() ->
    [
        ?_assertEqual({Text, error}, {Text, kprof_mfa:parse(Text)})
     || Text <- [
            "lists:nth/256",
            "lists:nth",
            "lists.nth/2",
            "nth/2",
            "",
            "/",
            "/2",
            "lists:/2",
            ":nth/2",
            "a:b:c/1",
            "lists:nth/2 ",
            "_:f/1",
            "m:_/1",
            "Enum/2",
            "Enum./2",
            "My.App/2",
            ":/2",
            ":lists/2",
            "'a:b/1",
            "m:f g/1",
            lists:duplicate(300, $m) ++ ":f/1"
        ]
    ].

atoms_test_() ->
    [
        ?_assertEqual({Atom, Text}, {Atom, kprof_mfa:atom(Atom)})
     || {Atom, Text} <- [
            {create, <<"create">>},
            {'Elixir.My.App', <<"My.App">>},
            {'Elixir', <<"Elixir">>},
            {'Elixir.', <<"Elixir.">>},
            {'Elixir.my', <<"Elixir.my">>},
            {'', <<>>},
            {'größe', <<"größe"/utf8>>},
            {'Elixir.Größe', <<"Größe"/utf8>>}
        ]
    ].
