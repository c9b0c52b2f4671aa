%% SPDX-License-Identifier: Apache-2.0
%% What kprof attach's command line stands for in the node.
-module(kprof_attach_tests).
-include("patient.hrl").

-define(MFA, {'Elixir.MyApp.Endpoint', call, 2}).

%% What the match specification of `--identity MyApp.Endpoint.call/2:1' says of a call, and what the
%% fun says.
names(Argument) ->
    Fun = kprof_attach:by_argument(?MFA, 1),
    {M, F, _} = ?MFA,
    Asked = Fun({M, F, [Argument, opts]}),
    {spec, Rows} = kprof_match:rows(kprof_match:prepare(Fun), ?MFA),
    Spec = [{Head, Guards, [{message, {{Identity}}}]} || {Head, Guards, Identity} <- Rows],
    {ok, {Said}, [], []} = erlang:match_spec_test([Argument, opts], Spec, trace),
    ?assertEqual(Asked, Said),
    Said.

conn(Path) ->
    #{
        '__struct__' => 'Elixir.Plug.Conn',
        method => <<"GET">>,
        path_info => Path,
        secret_key_base => <<"secret">>,
        owner => self()
    }.

argument_test_() ->
    [
        ?_assertEqual(Name, names(Argument))
     || {Argument, Name} <- [
            {create, create},
            {17, 17},
            {1.5, 1.5},
            {<<"text">>, <<"text">>},
            {"text", "text"},
            {{a, <<"b">>}, {a, <<"b">>}},
            {conn([]), {<<"GET">>, {}}},
            {conn([<<"users">>]), {<<"GET">>, {<<"users">>}}},
            {conn([<<"users">>, <<"17">>, <<"edit">>]), {<<"GET">>, {<<"users">>, '*'}}},
            {#{'__struct__' => 'Elixir.MyApp.User', id => 7}, 'Elixir.MyApp.User'},
            {{arg, self(), #{}}, arg},
            {{user, 17}, user},
            %% no names, however they look
            {#{a => 1}, undefined},
            {self(), undefined},
            {make_ref(), undefined},
            {{}, undefined},
            {{1, 2}, undefined},
            {[], undefined},
            {[self()], undefined},
            {[1 | 2], undefined},
            {fun lists:map/2, undefined},
            {#{'__struct__' => 1}, undefined},
            {binary:copy(<<"x">>, 5000), undefined},
            {lists:duplicate(5000, $x), undefined}
        ]
    ].

%% Whether the tool has to look for a collector, and run one.
names_collector_test_() ->
    [
        ?_assertEqual(Names, kprof_attach:names_collector(Text))
     || {Text, Names} <- [
            {<<"{tier_config, []}. {sample, {one_in, 2}}.">>, false},
            {<<"[{tier_config, []}, {entry, {collector, tls, 2}}].">>, false},
            {<<"[{tier_config, []}, {collector, {\"c.example\", 4711}}].">>, true},
            {<<"{tier_config, []}. {secret_file, \"/secret\"}.">>, true},
            {<<"{tier_config, []}. {tls, #{}}.">>, true},
            % start/2 tells why
            {<<"{tier_config, []">>, true}
        ]
    ].

%% Calls of other functions are not named by it.
others_test_() -> {timeout, 300, fun others_case/0}.
others_case() ->
    Fun = kprof_attach:by_argument(?MFA, 2),
    ?assertEqual(b, Fun({'Elixir.MyApp.Endpoint', call, [a, b]})),
    ?assertEqual(undefined, Fun({'Elixir.MyApp.Endpoint', run, [a, b]})),
    ?assertEqual(
        {spec, [{'_', [], undefined}]}, kprof_match:rows(kprof_match:prepare(Fun), {lists, map, 2})
    ).

%% Names that have to be quoted.
quoted_test_() -> {timeout, 300, fun quoted_case/0}.
quoted_case() ->
    Fun = kprof_attach:by_argument({'my mod', 'do \'it\'', 1}, 1),
    ?assertEqual(x, Fun({'my mod', 'do \'it\'', [x]})).
