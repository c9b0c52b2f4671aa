%% SPDX-License-Identifier: Apache-2.0
%% What kprof suggest makes of facts: of modules that look as those of Phoenix, Plug, Ecto, cowboy,
%% elli, RabbitMQ, ejabberd and others do, and of stacks. And what it answers with is what
%% kprof attach takes.
-module(kprof_suggest_tests).
-include("patient.hrl").

-define(ROUTER, {'Elixir.Phoenix.Router', '__call__', 5}).

%% What a node has that runs nothing; and with more.
facts(More) ->
    maps:merge(
        #{
            elixir => false,
            listeners => [],
            endpoints => [],
            routers => [],
            plugs => [],
            repos => [],
            elli => [],
            registered => [],
            functions => [],
            applications => #{
                gen_server => stdlib,
                proc_lib => stdlib,
                gen => stdlib,
                ssl => ssl,
                ssl_gen_statem => ssl
            },
            looked => []
        },
        More
    ).

entries(#{entries := Entries}) -> [MFA || {MFA, _, _} <- Entries].
tiers(#{tiers := Tiers}) -> [{Name, MFA} || {Name, MFA, _, _} <- Tiers].

suggest(More) -> kprof_suggest_rules:suggest(facts(More)).

%% The name that the identity function gives a call, on the node alone.
named(#{identity := Clauses}, {M, F, A} = MFA, Arguments) ->
    Text = kprof_suggest_identity:function(Clauses),
    {ok, [Fun]} = kprof_options:parse(<<Text/binary, ".">>),
    {spec, Rows} = kprof_match:rows(kprof_match:prepare(Fun), MFA),
    A = length(Arguments),
    Said =
        case
            erlang:match_spec_test(
                Arguments,
                [{Head, Guards, [{message, {{Identity}}}]} || {Head, Guards, Identity} <- Rows],
                trace
            )
        of
            {ok, {Name}, [], []} -> Name
        end,
    ?assertEqual(Fun({M, F, Arguments}), Said),
    Said.

%% --- nothing, and known servers ---

nothing_test_() -> {timeout, 300, fun nothing_case/0}.
nothing_case() ->
    S = suggest(#{}),
    ?assertMatch(#{entries := [], tiers := [], identity := []}, S),
    ?assertMatch({suggested, [], <<>>, []}, kprof_suggest:answer(S)).

conn(Path) ->
    #{'__struct__' => 'Elixir.Plug.Conn', method => <<"GET">>, path_info => Path}.

phoenix_facts() ->
    #{
        endpoints => ['Elixir.MyAppWeb.Endpoint'],
        routers => [{'Elixir.MyAppWeb.Router', ['Elixir.MyAppWeb.UserController']}],
        plugs => ['Elixir.MyAppWeb.Router'],
        repos => [{'Elixir.MyApp.Repo', [{all, 2}, {get, 3}, {x, 1}]}],
        listeners => [
            #{
                name => <<"http">>,
                protocol => cowboy_clear,
                handlers => [],
                plugs => ['Elixir.MyAppWeb.Endpoint']
            }
        ],
        functions => [?ROUTER, {'Elixir.DBConnection.Holder', handle, 4}]
    }.

phoenix_test_() -> {timeout, 300, fun phoenix_case/0}.
phoenix_case() ->
    S = suggest(phoenix_facts()),
    ?assertEqual([{'Elixir.MyAppWeb.Endpoint', call, 2}], entries(S)),
    ?assertEqual(
        [
            {<<"router">>, ?ROUTER},
            {<<"user_controller">>, {'Elixir.MyAppWeb.UserController', action, 2}},
            {<<"db">>, {'Elixir.DBConnection.Holder', handle, 4}}
        ],
        lists:sublist(tiers(S), 3)
    ),
    ?assertEqual(
        [
            {<<"repo_all">>, {'Elixir.MyApp.Repo', all, 2}},
            {<<"repo_get">>, {'Elixir.MyApp.Repo', get, 3}}
        ],
        lists:nthtail(3, tiers(S))
    ),
    ?assertEqual(
        {<<"GET">>, <<"/users/:id">>},
        named(S, ?ROUTER, [conn([<<"users">>, <<"1">>]), #{route => <<"/users/:id">>}, p, q, r])
    ).

%% What returns a connection or what a database said keeps it.
phoenix_returns_test_() -> {timeout, 300, fun phoenix_returns_case/0}.
phoenix_returns_case() ->
    #{entries := Entries, tiers := Tiers} = suggest(phoenix_facts()),
    ?assertEqual([none], lists:usort([R || {_, R, _} <- Entries] ++ [R || {_, _, R, _} <- Tiers])).

phoenix_without_router_test_() -> {timeout, 300, fun phoenix_without_router_case/0}.
phoenix_without_router_case() ->
    Endpoint = {'Elixir.MyAppWeb.Endpoint', call, 2},
    S = suggest((phoenix_facts())#{functions => []}),
    ?assertEqual({<<"GET">>, {}}, named(S, Endpoint, [conn([]), []])),
    ?assertEqual({<<"GET">>, {<<"users">>}}, named(S, Endpoint, [conn([<<"users">>]), []])),
    ?assertEqual(
        {<<"GET">>, {<<"users">>, '*'}}, named(S, Endpoint, [conn([<<"users">>, <<"1">>]), []])
    ).

plug_test_() -> {timeout, 300, fun plug_case/0}.
plug_case() ->
    Listener = #{
        name => <<"a">>, protocol => cowboy_clear, handlers => [], plugs => ['Elixir.MyPlug']
    },
    ?assertEqual([{'Elixir.MyPlug', call, 2}], entries(suggest(#{listeners => [Listener]}))),
    ?assertEqual([{'Elixir.MyPlug', call, 2}], entries(suggest(#{plugs => ['Elixir.MyPlug']}))),
    ?assertEqual(
        [], entries(suggest(#{plugs => ['Elixir.R'], routers => [{'Elixir.R', []}]}))
    ).

cowboy_test_() -> {timeout, 300, fun cowboy_case/0}.
cowboy_case() ->
    Handler = {cowboy_handler, execute, 2},
    Listener = #{name => <<"api">>, protocol => cowboy_tls, handlers => [h], plugs => []},
    S = suggest(#{listeners => [Listener], functions => [Handler]}),
    ?assertEqual([{cowboy_stream_h, request_process, 3}], entries(S)),
    ?assertEqual([{<<"handler">>, Handler}], tiers(S)),
    ?assertEqual(
        {<<"PUT">>, my_handler},
        named(S, Handler, [#{method => <<"PUT">>}, #{handler => my_handler}])
    ),
    ?assertEqual([], entries(suggest(#{listeners => [Listener#{protocol => other}]}))).

elli_test_() -> {timeout, 300, fun elli_case/0}.
elli_case() ->
    S = suggest(#{elli => [my_elli]}),
    MFA = {my_elli, handle, 2},
    ?assertEqual([MFA], entries(S)),
    Old = {req, 'GET', [<<"users">>, <<"1">>], [], <<"/users/1">>},
    New = {req, 'GET', undefined, undefined, undefined, [<<"users">>], []},
    ?assertEqual({'GET', {<<"users">>, '*'}}, named(S, MFA, [Old, []])),
    ?assertEqual({'GET', {<<"users">>}}, named(S, MFA, [New, []])).

rabbitmq_facts() ->
    #{
        registered => [rabbit_sup, rabbit_mgmt_sup],
        listeners => [
            #{name => <<"mgmt">>, protocol => cowboy_clear, handlers => [], plugs => []}
        ],
        functions => [
            {cowboy_handler, execute, 2},
            {rabbit_channel, handle_method, 3},
            {cowboy_rest, upgrade, 4}
        ]
    }.

rabbitmq_test_() -> {timeout, 300, fun rabbitmq_case/0}.
rabbitmq_case() ->
    S = suggest(rabbitmq_facts()),
    Method = {rabbit_channel, handle_method, 3},
    ?assertEqual([{cowboy_stream_h, request_process, 3}, Method], entries(S)),
    ?assert(lists:member({<<"rest">>, {cowboy_rest, upgrade, 4}}, tiers(S))),
    ?assertEqual('basic.publish', named(S, Method, [{'basic.publish', 0, <<"q">>}, none, state])).

ejabberd_test_() -> {timeout, 300, fun ejabberd_case/0}.
ejabberd_case() ->
    Api = {mod_http_api, process, 2},
    Stanza = {ejabberd_c2s, handle_authenticated_packet, 2},
    S = suggest(#{registered => [ejabberd_sup], functions => [Api, Stanza]}),
    ?assertEqual([Api, Stanza], entries(S)),
    ?assertEqual(<<"register">>, named(S, Api, [[<<"register">>], request])),
    ?assertEqual(iq, named(S, Stanza, [{iq, <<"1">>, get}, state])),
    ?assertEqual([], entries(suggest(#{functions => [Api, Stanza]}))).

%% --- presets ---

presets(Presets, Facts) -> kprof_suggest_rules:presets(Presets, facts(Facts)).

preset_test_() -> {timeout, 300, fun preset_case/0}.
preset_case() ->
    {ok, Phoenix} = presets([{phoenix, 'Elixir.MyAppWeb.Endpoint'}], phoenix_facts()),
    ?assertEqual([{'Elixir.MyAppWeb.Endpoint', call, 2}], entries(Phoenix)),
    ?assertNot(lists:keymember(<<"db">>, 1, tiers(Phoenix))),
    {ok, Both} = presets([{phoenix, undefined}, {ecto, 'Elixir.MyApp.Repo'}], phoenix_facts()),
    ?assertEqual(entries(Phoenix), entries(Both)),
    ?assertEqual(tiers(suggest(phoenix_facts())), tiers(Both)),
    {ok, Ecto} = presets([{ecto, undefined}], phoenix_facts()),
    ?assertEqual([], entries(Ecto)),
    {ok, Cowboy} = presets([{cowboy, undefined}], #{}),
    ?assertEqual([{cowboy_stream_h, request_process, 3}], entries(Cowboy)),
    {ok, Rabbit} = presets([{rabbitmq, undefined}], rabbitmq_facts()),
    ?assertEqual(entries(suggest(rabbitmq_facts())), entries(Rabbit)).

refused_preset_test_() ->
    [
        ?_assertMatch({error, _}, presets([Preset], #{}))
     || Preset <- [
            {phoenix, undefined},
            {phoenix, lists},
            {ecto, undefined},
            {ecto, lists},
            {rabbitmq, undefined},
            {ejabberd, undefined},
            {ejabberd, lists},
            {cowboy, lists},
            {undefined, undefined},
            {something, undefined}
        ]
    ].

%% Texts as people write them, in a node that has none of it.
preset_text_test_() -> {timeout, 300, fun preset_text_case/0}.
preset_text_case() ->
    ?assertMatch(
        {error, config, <<"--preset phoenix=No.Such: there is no such module">>},
        kprof_suggest:presets([<<"phoenix=No.Such">>])
    ),
    ?assertMatch(
        {error, config, <<"--preset: want ", _/binary>>}, kprof_suggest:presets([<<"x">>])
    ),
    ?assertMatch(
        {suggested, [{<<"entry">>, _, _} | _], _, []}, kprof_suggest:presets([<<"cowboy">>])
    ),
    ?assertEqual({ok, []}, kprof_suggest:options([])),
    {ok, Options} = kprof_suggest:options([<<"cowboy">>]),
    ?assertEqual([{cowboy_stream_h, request_process, 3}], proplists:get_value(entry, Options)).

%% --- stacks ---

gen(Inner) ->
    Inner ++ [{gen_server, handle_msg, 6}, {proc_lib, init_p_do_apply, 3}].

call(M) ->
    gen([{gen, do_call, 4}, {M, handle_call, 3}, {gen_server, try_handle_call, 4}]).

idle_loop() ->
    {[{prim_inet, recv0, 3}, {web, read, 1}, {web, loop, 1}, {proc_lib, init_p, 3}], 90}.

%% Seen in the loop of idle_loop/0.
busy_loop(Frames, N) -> {Frames ++ [{web, loop, 1}], N}.

looked(Looked) -> suggest(#{looked => Looked}).

server_test_() -> {timeout, 300, fun server_case/0}.
server_case() ->
    S = looked([
        {call(outer), 20},
        {call(inner), 9},
        {gen([{x, handle_cast, 2}, {gen_server, try_dispatch, 4}]), 30}
    ]),
    Outer = {outer, handle_call, 3},
    ?assertEqual([Outer], entries(S)),
    ?assertEqual(
        [{<<"x">>, {x, handle_cast, 2}}, {<<"inner">>, {inner, handle_call, 3}}], tiers(S)
    ),
    ?assertEqual(get, named(S, Outer, [get, from, state])),
    ?assertEqual(put, named(S, Outer, [{put, <<"key">>, 1}, from, state])),
    ?assertEqual(undefined, named(S, Outer, [<<"text">>, from, state])),
    ?assertEqual(undefined, named(S, Outer, [{}, from, state])).

%% The callback has called another function at its end: it is not on the stack.
tail_call_test_() -> {timeout, 300, fun tail_call_case/0}.
tail_call_case() ->
    S = looked([{gen([{m, do, 2}, {gen_server, try_handle_call, 4}]), 30}]),
    ?assertEqual([{m, handle_call, 3}], entries(S)).

loop_test_() -> {timeout, 300, fun loop_case/0}.
loop_case() ->
    S = looked([
        idle_loop(),
        busy_loop([{gen, do_call, 4}, {web, handle, 2}, {util, timed, 1}, {web, answer, 3}], 20),
        busy_loop([{web, render, 1}, {web, answer, 3}], 2),
        {gen([{util, timed, 1}, {db, handle_call, 3}, {gen_server, try_handle_call, 4}]), 30}
    ]),
    ?assertEqual([{web, answer, 3}], entries(S)),
    ?assert(lists:member({<<"db">>, {db, handle_call, 3}}, tiers(S))),
    ?assertNot(lists:keymember({util, timed, 1}, 2, tiers(S))).

%% Reading through TLS waits for a process of ssl's. Who begins to read is not at work either.
reads_test_() -> {timeout, 300, fun reads_case/0}.
reads_case() ->
    Begins = [{erlang, port_control, 3}, {prim_inet, async_recv, 3}, {prim_inet, recv0, 3}],
    Tls = [{gen, do_call, 4}, {ssl_gen_statem, call, 2}, {ssl, recv, 3}],
    [
        ?assertEqual(
            [{web, answer, 3}],
            entries(
                looked([
                    idle_loop(),
                    busy_loop(Reads ++ [{web, headers, 1}], 90),
                    busy_loop([{gen, do_call, 4}, {web, answer, 3}], 20)
                ])
            )
        )
     || Reads <- [Begins, Tls]
    ].

%% What all processes run around their work is nobody's entry.
helper_is_no_entry_test_() -> {timeout, 300, fun helper_is_no_entry_case/0}.
helper_is_no_entry_case() ->
    S = looked([
        idle_loop(),
        busy_loop([{gen, do_call, 4}, {util, timed, 1}], 20),
        {gen([{util, timed, 1}, {db, handle_call, 3}, {gen_server, try_handle_call, 4}]), 30}
    ]),
    ?assertEqual([{db, handle_call, 3}], entries(S)).

%% Without an idle look nobody knows where the loop ends.
busy_loop_test_() -> {timeout, 300, fun busy_loop_case/0}.
busy_loop_case() ->
    ?assertEqual([], entries(looked([busy_loop([{erlang, '+', 2}, {web, answer, 3}], 20)]))).

few_test_() -> {timeout, 300, fun few_case/0}.
few_case() ->
    ?assertMatch(#{notes := [_]}, looked([{call(outer), 3}])),
    ?assertMatch(#{notes := []}, looked([{call(outer), 30}])).

otp_is_no_server_test_() -> {timeout, 300, fun otp_is_no_server_case/0}.
otp_is_no_server_case() ->
    S = suggest(#{
        looked => [{call(mnesia_tm), 50}],
        applications => (maps:get(applications, facts(#{})))#{mnesia_tm => mnesia}
    }),
    ?assertEqual([], entries(S)).

%% --- answers ---

%% The file is what start_trace takes, and says the same as the options.
config_test_() -> {timeout, 300, fun config_case/0}.
config_case() ->
    {suggested, Options, Config, []} = kprof_suggest:answer(suggest(phoenix_facts())),
    {ok, Parsed} = kprof_options:parse(Config),
    ?assertEqual(
        [{{'Elixir.MyAppWeb.Endpoint', call, 2}, #{returns => none}}],
        proplists:get_value(entry, Parsed)
    ),
    ?assertEqual(
        {<<"router">>, ?ROUTER, #{returns => none}}, hd(proplists:get_value(tier_config, Parsed))
    ),
    ?assert(is_function(proplists:get_value(identity_f, Parsed), 1)),
    ?assertEqual(
        {<<"entry">>, <<"MyAppWeb.Endpoint.call/2,returns=none">>}, option(1, Options)
    ),
    ?assertEqual(
        {<<"tier">>, <<"router=Phoenix.Router.__call__/5,returns=none">>}, option(2, Options)
    ).

option(N, Options) ->
    {Option, Value, _} = lists:nth(N, Options),
    {Option, Value}.

%% --- a node: this one ---

%% Facts are gathered of what runs here, and nothing is left.
look_test_() ->
    {timeout, 300, fun() ->
        Before = erlang:system_flag(backtrace_depth, 8),
        Processes = length(processes()),
        ?assertMatch({suggested, _, _, _}, kprof_suggest:look(200)),
        ?assertEqual(8, erlang:system_flag(backtrace_depth, Before)),
        ?assert(length(processes()) =< Processes)
    end}.

facts_test_() -> {timeout, 300, fun facts_case/0}.
facts_case() ->
    Wanted = [{lists, map, 2}, {no_module, f, 1}],
    #{functions := Functions, applications := Applications, listeners := []} =
        kprof_suggest_facts:gather(Wanted),
    ?assertEqual([{lists, map, 2}], Functions),
    ?assertMatch(#{lists := stdlib}, Applications).

%% ranch's table, as ranch 1 and 2 write it.
ranch_test_() -> {timeout, 300, fun ranch_case/0}.
ranch_case() ->
    Table = ets:new(ranch_server, [named_table, public, ordered_set]),
    Rules = [
        {'_', [], [
            {[<<"a">>], [], my_handler, []},
            {'_', [], 'Elixir.Plug.Cowboy.Handler', {'Elixir.P', []}}
        ]}
    ],
    Options = #{env => #{dispatch => Rules}},
    true = ets:insert(Table, [
        {{listener_start_args, new}, [new, ranch_tcp, #{}, cowboy_clear, none]},
        {{proto_opts, new}, Options},
        {{listener_start_args, old}, [100, ranch_tcp, [], my_protocol, []]},
        {{max_conns, new}, 1024}
    ]),
    #{listeners := Listeners} = kprof_suggest_facts:gather([]),
    true = ets:delete(Table),
    ?assertEqual(
        [
            #{
                name => <<"new">>,
                protocol => cowboy_clear,
                handlers => [my_handler],
                plugs => ['Elixir.P']
            },
            #{name => <<"old">>, protocol => my_protocol, handlers => [], plugs => []}
        ],
        Listeners
    ).
