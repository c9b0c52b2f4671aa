%% SPDX-License-Identifier: Apache-2.0
%% @doc What to trace, from what a node runs: pure rules from facts to suggestions, each with its
%% reason. {@link kprof_suggest_facts} gathers the facts. {@link kprof_suggest_servers} has the
%% rules for what only stacks tell.
-module(kprof_suggest_rules).

-export([wanted/0, suggest/1, presets/2]).

-export_type([suggestion/0, entry/0, tier/0]).

-define(MOST_CONTROLLERS, 12).
-define(MOST_ENDPOINTS, 4).

-type entry() :: {mfa(), whole | none, Reason :: iolist()}.
%% whole: what it returns is sent; none: it stays in the node.
-type tier() :: {Name :: binary(), mfa(), whole | none, Reason :: iolist()}.
-type suggestion() :: #{
    entries := [entry()],
    tiers := [tier()],
    % clauses of the identity function, in order, and why
    identity := [kprof_suggest_identity:clause()],
    why := [iolist()],
    notes := [iolist()]
}.

-define(REQUEST, {cowboy_stream_h, request_process, 3}).
-define(HANDLER, {cowboy_handler, execute, 2}).
-define(ROUTER, {'Elixir.Phoenix.Router', '__call__', 5}).
-define(RENDER, {'Elixir.Phoenix.Template', render_to_iodata, 4}).
-define(REPO, [
    {all, 2},
    {one, 2},
    {get, 3},
    {insert, 2},
    {update, 2},
    {delete, 2},
    {transaction, 2}
]).
-define(CHECKOUT, {'Elixir.DBConnection.Holder', checkout, 3}).
-define(QUERY, {'Elixir.DBConnection.Holder', handle, 4}).

%% @doc The functions that the rules have to know of whether they are there.
-spec wanted() -> [mfa()].
wanted() ->
    [?REQUEST, ?HANDLER, ?ROUTER, ?RENDER, ?CHECKOUT, ?QUERY] ++
        [MFA || {_, _, Tiers} <- systems(), {_, MFA, _, _} <- Tiers] ++
        [MFA || {_, Entries, _} <- systems(), {MFA, _, _, _, _} <- Entries].

%% @doc What to trace. Nothing in it where the node runs nothing that is known and is idle.
-spec suggest(kprof_suggest_facts:facts()) -> suggestion().
suggest(Facts) ->
    Fronts = first([
        fun() -> phoenix(maps:get(endpoints, Facts), Facts) end,
        fun() -> both(plug(Facts), cowboy(Facts)) end,
        fun() -> plain_plug(Facts) end,
        fun() -> elli(Facts) end,
        fun() -> nothing() end
    ]),
    Known = lists:foldl(fun(System, S) -> both(S, system(System, Facts)) end, Fronts, systems()),
    With = both(Known, database(maps:get(repos, Facts), Facts)),
    case With of
        #{entries := []} -> both(kprof_suggest_servers:suggest(Facts), With);
        _ -> With
    end.

%% @doc What presets stand for, each its name, and behind `=' a module or nothing.
-spec presets([{atom(), module() | undefined}], kprof_suggest_facts:facts()) ->
    {ok, suggestion()} | {error, iolist()}.
presets(Presets, Facts) ->
    lists:foldl(
        fun
            (Preset, {ok, Before}) ->
                case preset(Preset, Facts) of
                    {ok, Suggestion} -> {ok, both(Before, Suggestion)};
                    Error -> Error
                end;
            (_, Error) ->
                Error
        end,
        {ok, nothing()},
        Presets
    ).

preset({phoenix, undefined}, #{endpoints := []}) ->
    {error, "no Phoenix endpoint is loaded: say phoenix=MyApp.Endpoint"};
preset({phoenix, undefined}, #{endpoints := Endpoints} = Facts) ->
    {ok, phoenix(Endpoints, Facts)};
preset({phoenix, Endpoint}, #{endpoints := Endpoints} = Facts) ->
    case lists:member(Endpoint, Endpoints) of
        true -> {ok, phoenix([Endpoint], Facts)};
        false -> {error, [kprof_mfa:atom(Endpoint), " is no Phoenix endpoint"]}
    end;
preset({ecto, undefined}, #{repos := []}) ->
    {error, "no Ecto repository is loaded: say ecto=MyApp.Repo"};
preset({ecto, undefined}, #{repos := Repos} = Facts) ->
    {ok, database(Repos, Facts)};
preset({ecto, Repo}, #{repos := Repos} = Facts) ->
    case lists:keyfind(Repo, 1, Repos) of
        false -> {error, [kprof_mfa:atom(Repo), " is no Ecto repository"]};
        Found -> {ok, database([Found], Facts)}
    end;
preset({cowboy, undefined}, Facts) ->
    {ok, by_handler("asked for by the preset cowboy", Facts)};
preset({Name, undefined}, Facts) ->
    case lists:keyfind(Name, 1, of_systems()) of
        {_, Keys} ->
            found(
                Name,
                lists:foldl(
                    fun({Key, _, _} = System, S) ->
                        case lists:member(Key, Keys) of
                            true -> both(S, system(System, Facts));
                            false -> S
                        end
                    end,
                    case Name of
                        rabbitmq -> cowboy(Facts);
                        _ -> nothing()
                    end,
                    systems()
                )
            );
        false ->
            {error, unknown()}
    end;
preset(_, _) ->
    {error, unknown()}.

of_systems() -> [{rabbitmq, [rabbit_mgmt_sup, rabbit_sup]}, {ejabberd, [ejabberd_sup]}].

unknown() ->
    "want phoenix[=MyApp.Endpoint], ecto[=MyApp.Repo], cowboy, rabbitmq or ejabberd".

found(Name, #{entries := [], tiers := []}) ->
    {error, io_lib:format("nothing of ~ts runs there", [Name])};
found(_, Suggestion) ->
    {ok, Suggestion}.

%% --- Phoenix and Plug ---

%% A connection holds its application's secrets: what returns it keeps it in the node.
phoenix([], _) ->
    nothing();
phoenix(Endpoints, #{routers := Routers} = Facts) ->
    Controllers = lists:usort([C || {_, Cs} <- Routers, C <- Cs]),
    Entries = [
        {{E, call, 2}, none, "a Phoenix endpoint: each web request is one call of it"}
     || E <- lists:sublist(Endpoints, ?MOST_ENDPOINTS)
    ],
    Named = has(?ROUTER, Facts),
    (nothing())#{
        entries := Entries,
        tiers := [
            {<<"router">>, ?ROUTER, none,
                "from the route that matched to the answer: its plugs and its action"}
         || Named
        ] ++
            [
                {short(C), {C, action, 2}, none, "a controller that the router leads to"}
             || C <- lists:sublist(Controllers, ?MOST_CONTROLLERS)
            ] ++
            known([{<<"render">>, ?RENDER, none, "Phoenix renders a template"}], Facts),
        identity :=
            case Named of
                true -> [kprof_suggest_identity:route(?ROUTER)];
                false -> [kprof_suggest_identity:conn({E, call, 2}) || E <- Endpoints]
            end,
        why :=
            case Named of
                true -> ["method and route, such as GET /users/:id; no route: undefined"];
                false -> ["method and first word of the path"]
            end,
        notes := [
            io_lib:format("~b controllers more are not among the tiers", [
                length(Controllers) - ?MOST_CONTROLLERS
            ])
         || length(Controllers) > ?MOST_CONTROLLERS
        ]
    }.

plug(#{listeners := Listeners}) ->
    plugs(
        [P || #{plugs := Plugs} <- Listeners, P <- Plugs],
        "a Plug that a cowboy listener hands its requests to"
    ).

plain_plug(#{plugs := Plugs, routers := Routers}) ->
    plugs(
        [P || P <- Plugs, not lists:keymember(P, 1, Routers)],
        "a Plug.Router: it looks like what a web server hands its requests to"
    ).

plugs([], _) ->
    nothing();
plugs(Plugs, Reason) ->
    (nothing())#{
        entries := [{{P, call, 2}, none, Reason} || P <- lists:sublist(Plugs, ?MOST_ENDPOINTS)],
        identity := [kprof_suggest_identity:conn({P, call, 2}) || P <- Plugs],
        why := ["method and first word of the path, such as GET /users/*"]
    }.

%% --- cowboy ---

cowboy(#{listeners := Listeners} = Facts) ->
    case [L || #{protocol := P, plugs := []} = L <- Listeners, is_cowboy(P)] of
        [] -> nothing();
        Ours -> by_handler(io_lib:format("a cowboy listens: ~ts", [names(Ours)]), Facts)
    end.

is_cowboy(Protocol) -> lists:member(Protocol, [cowboy_clear, cowboy_tls]).

names(Listeners) ->
    Names = [Name || #{name := Name} <- Listeners],
    case length(Names) > 3 of
        true -> [lists:join(", ", lists:sublist(Names, 3)), ", ..."];
        false -> lists:join(", ", Names)
    end.

by_handler(Reason, Facts) ->
    Named = has(?HANDLER, Facts),
    (nothing())#{
        entries := [{?REQUEST, whole, [Reason, "; it runs each request in this function"]}],
        tiers := [
            {<<"handler">>, ?HANDLER, none, "your handler, behind cowboy's router"}
         || Named
        ],
        identity :=
            case Named of
                true -> [kprof_suggest_identity:handler(?HANDLER)];
                false -> [kprof_suggest_identity:path(?REQUEST)]
            end,
        why :=
            case Named of
                true -> ["the method and the handler of the route; no route: undefined"];
                false -> ["method and path"]
            end
    }.

%% --- elli ---

elli(#{elli := Callbacks}) ->
    (nothing())#{
        entries := [
            {{M, handle, 2}, whole, "an elli handler: each web request is one call of it"}
         || M <- Callbacks
        ],
        identity := [kprof_suggest_identity:elli({M, handle, 2}) || M <- Callbacks],
        why := ["the request's method and the first word of its path" || Callbacks =/= []]
    }.

%% --- systems that are known by a registered name ---

%% {Registered name, entries with their identity, tiers}. What is not there is left out.
systems() ->
    [
        {rabbit_mgmt_sup, [], [
            {<<"rest">>, {cowboy_rest, upgrade, 4}, none, "the management API's resources"},
            {<<"login">>, {rabbit_auth_backend_internal, user_login_authentication, 2}, none,
                "who asks is authenticated"},
            {<<"augment">>, {rabbit_mgmt_db, augment_queues, 3}, none,
                "queues are looked up with their statistics"}
        ]},
        {rabbit_sup,
            [
                {{rabbit_channel, handle_method, 3}, none, "each AMQP method of a channel",
                    kprof_suggest_identity:record({rabbit_channel, handle_method, 3}, 1),
                    "an AMQP method by its name"}
            ],
            [
                {<<"route">>, {rabbit_exchange, route, 2}, none, "from an exchange to queues"},
                {<<"deliver">>, {rabbit_channel, deliver_to_queues, 2}, none,
                    "a message is given to its queues"},
                {<<"declare">>, {rabbit_amqqueue, declare, 6}, none, "a queue is declared"}
            ]},
        {ejabberd_sup,
            [
                {{mod_http_api, process, 2}, whole, "each request of the HTTP API",
                    kprof_suggest_identity:head({mod_http_api, process, 2}, 1),
                    "the API's command"},
                {{ejabberd_c2s, handle_authenticated_packet, 2}, none,
                    "each stanza that a client sends",
                    kprof_suggest_identity:record(
                        {ejabberd_c2s, handle_authenticated_packet, 2}, 1
                    ),
                    "a stanza by its kind: iq, message, presence"}
            ],
            [
                {<<"command">>, {ejabberd_commands, execute_command2, 4}, whole,
                    "a command of the API is carried out"},
                {<<"auth">>, {ejabberd_auth, check_password, 4}, whole, "a password is checked"},
                {<<"register">>, {ejabberd_auth, try_register, 3}, whole, "an account is made"},
                {<<"route">>, {ejabberd_router, route, 1}, whole, "a stanza is routed"},
                {<<"offline">>, {mod_offline, store_offline_msg, 1}, whole,
                    "a message is kept for who is away"}
            ]},
        {yaws_server,
            [
                {{yaws_server, call_method, 5}, whole, "each web request of yaws",
                    kprof_suggest_identity:yaws({yaws_server, call_method, 5}), "method and path"}
            ],
            [
                {<<"page">>, {yaws_server, deliver_dyn_part, 8}, whole, "a page's code runs"},
                {<<"send">>, {yaws_server, deliver_accumulated, 4}, whole, "the answer is sent"}
            ]},
        %% any: its servers have names of the application's choice
        {any,
            [
                {{mochiweb_http, call_body, 2}, none, "each web request of mochiweb",
                    kprof_suggest_identity:mochiweb({mochiweb_http, call_body, 2}),
                    "method and path"}
            ],
            []}
    ].

system({Name, Entries, Tiers}, #{registered := Registered} = Facts) ->
    case Name =:= any orelse lists:member(Name, Registered) of
        true ->
            There = [E || {MFA, _, _, _, _} = E <- Entries, has(MFA, Facts)],
            (nothing())#{
                entries := [{MFA, Returns, Why} || {MFA, Returns, Why, _, _} <- There],
                tiers := known(Tiers, Facts),
                identity := [Clause || {_, _, _, Clause, _} <- There],
                why := [Why || {_, _, _, _, Why} <- There]
            };
        false ->
            nothing()
    end.

%% --- databases ---

%% What comes from a database stays in the node.
database(Repos, Facts) ->
    (nothing())#{
        tiers := known(
            [
                {<<"db_wait">>, ?CHECKOUT, none, "waiting for a connection of a DBConnection pool"},
                {<<"db">>, ?QUERY, none, "the database at work: a query of DBConnection"}
            ],
            Facts
        ) ++ lists:append([repo(Repo) || Repo <- lists:sublist(Repos, ?MOST_ENDPOINTS)])
    }.

repo({Repo, Exports}) ->
    Name = short(Repo),
    [
        {<<Name/binary, $_, (atom_to_binary(F))/binary>>, {Repo, F, A}, none, [
            "of the Ecto repository ", kprof_mfa:atom(Repo)
        ]}
     || {F, A} = FA <- ?REPO, lists:member(FA, Exports)
    ].

%% --- the pieces ---

nothing() ->
    #{entries => [], tiers => [], identity => [], why => [], notes => []}.

%% Entries and tiers are there once; a tier's name, too.
both(A, B) ->
    maps:map(
        fun
            (entries, Of) -> Of ++ [E || E <- maps:get(entries, B), not is_in(E, 1, Of)];
            (tiers, Of) ->
                Of ++
                    [T || T <- maps:get(tiers, B), not is_in(T, 1, Of), not is_in(T, 2, Of)];
            (Key, Of) -> Of ++ (maps:get(Key, B) -- Of)
        end,
        A
    ).

is_in(Tuple, At, Tuples) ->
    lists:keymember(element(At, Tuple), At, Tuples).

first([Rule | Rules]) ->
    case Rule() of
        #{entries := []} when Rules =/= [] -> first(Rules);
        Suggestion -> Suggestion
    end.

has(MFA, #{functions := Functions}) ->
    lists:member(MFA, Functions).

known(Tiers, Facts) ->
    [T || {_, MFA, _, _} = T <- Tiers, has(MFA, Facts)].

%% UserController is user_controller
short(Module) ->
    Last = lists:last(binary:split(kprof_mfa:atom(Module), <<".">>, [global])),
    Words = re:replace(Last, "(?<=[a-z0-9])([A-Z])", "_\\1", [global, {return, list}]),
    unicode:characters_to_binary(string:lowercase(Words)).
