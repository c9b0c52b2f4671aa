%% SPDX-License-Identifier: Apache-2.0
%% @doc What this node runs, as far as it can be seen without asking anybody: loaded modules and
%% what they export, the listeners in ranch's table, registered names. Of the application
%% `__routes__/0' is called, a constant that Phoenix writes into its routers, and nothing else.
-module(kprof_suggest_facts).

-export([gather/1]).

-export_type([facts/0, listener/0]).

-define(MOST_MODULES, 50000).
-define(MOST_LISTENERS, 100).
-define(MOST_HANDLERS, 200).
-define(ROUTES, '__routes__').

-type listener() :: #{
    name := binary(),
    protocol := module(),
    % cowboy's, in the order of its rules; those of Plug are among the plugs alone
    handlers := [module()],
    plugs := [module()]
}.
-type facts() :: #{
    elixir := boolean(),
    listeners := [listener()],
    endpoints := [module()],
    routers := [{module(), Controllers :: [module()]}],
    plugs := [module()],
    % with what they export
    repos := [{module(), [{atom(), arity()}]}],
    elli := [module()],
    registered := [atom()],
    % that were asked for and are there
    functions := [mfa()],
    % applications of modules; who is none's is not in it
    applications := #{module() => atom()},
    looked := [kprof_suggest_stacks:looked()]
}.

%% @doc The facts, without looks at stacks. `Wanted' are functions that it tells of whether they are
%% there.
-spec gather([mfa()]) -> facts().
gather(Wanted) ->
    Modules = lists:sublist(loaded(), ?MOST_MODULES),
    Exporting = fun(Functions) ->
        [M || M <- Modules, lists:all(fun({F, A}) -> exports(M, F, A) end, Functions)]
    end,
    Routers = Exporting([{?ROUTES, 0}, {'__helpers__', 0}, {call, 2}]),
    #{
        elixir => exports('Elixir.Kernel', '__info__', 1),
        listeners => listeners(),
        endpoints => Exporting([{'__sockets__', 0}, {static_path, 1}, {call, 2}]),
        routers => [{M, controllers(M)} || M <- Routers],
        plugs => Exporting([{match, 2}, {dispatch, 2}, {call, 2}, {init, 1}]),
        repos => [
            {M, M:module_info(exports)}
         || M <- Exporting([{'__adapter__', 0}, {get_dynamic_repo, 0}])
        ],
        elli => [
            M
         || M <- Exporting([{handle, 2}, {handle_event, 3}]), behaves(M, elli_handler)
        ],
        registered => registered(),
        functions => [MFA || MFA <- Wanted, kprof_vm:function(MFA) =/= absent],
        applications => applications(),
        looked => []
    }.

%% Through a variable: it is not documented before OTP 26.
loaded() ->
    Vm = erlang,
    Vm:loaded().

exports(M, F, A) ->
    erlang:function_exported(M, F, A).

behaves(M, Behaviour) ->
    lists:any(
        fun
            ({Key, Names}) when Key =:= behaviour; Key =:= behavior ->
                lists:member(Behaviour, Names);
            (_) ->
                false
        end,
        M:module_info(attributes)
    ).

controllers(Router) ->
    try
        lists:usort([
            M
         || #{plug := M, plug_opts := Action} <- Router:?ROUTES(),
            is_atom(M),
            is_atom(Action),
            exports(M, action, 2)
        ])
    catch
        _:_ -> []
    end.

applications() ->
    maps:from_list([
        {M, Name}
     || {Name, _, _} <- application:loaded_applications(),
        {ok, Modules} <- [application:get_key(Name, modules)],
        M <- Modules
    ]).

%% --- ranch ---

listeners() ->
    try ets:select(ranch_server, [{{{listener_start_args, '$1'}, '$2'}, [], [{{'$1', '$2'}}]}]) of
        Started ->
            [listener(Ref, Args) || {Ref, Args} <- lists:sublist(Started, ?MOST_LISTENERS)]
    catch
        error:badarg -> []
    end.

%% Options may be set anew: they are in the table by themselves.
listener(Ref, Args) ->
    [First, Protocol | _] = lists:reverse(Args),
    Options =
        case ets:lookup(ranch_server, {proto_opts, Ref}) of
            [{_, Now}] -> Now;
            [] -> First
        end,
    Handlers = handlers(Options),
    #{
        name => unicode:characters_to_binary(io_lib:format("~0tP", [Ref, 8])),
        protocol => Protocol,
        handlers => unique([M || {M, _} <- Handlers, M =/= 'Elixir.Plug.Cowboy.Handler']),
        plugs => unique([
            Plug
         || {'Elixir.Plug.Cowboy.Handler', {Plug, _}} <- Handlers, is_atom(Plug)
        ])
    }.

handlers(#{env := #{dispatch := {persistent_term, Key}}}) ->
    rules(persistent_term:get(Key, []));
handlers(#{env := #{dispatch := Rules}}) ->
    rules(Rules);
handlers(_) ->
    [].

rules(Rules) when is_list(Rules) ->
    lists:sublist(
        [
            {Handler, State}
         || {_, _, Paths} <- Rules, is_list(Paths), {_, _, Handler, State} <- Paths
        ],
        ?MOST_HANDLERS
    );
rules(_) ->
    [].

unique(Modules) ->
    unique(Modules, []).

unique([], Seen) ->
    lists:reverse(Seen);
unique([M | Ms], Seen) ->
    unique(Ms, [M | [S || S <- Seen, S =/= M]]).
