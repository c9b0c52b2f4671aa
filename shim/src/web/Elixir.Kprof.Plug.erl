%% SPDX-License-Identifier: Apache-2.0
%% @doc Requests of Plug and Phoenix: the module plug `Kprof.Plug', in Erlang, so that it needs no
%% Elixir to be compiled. Put it first in the endpoint or router:
%% ```
%% plug Kprof.Plug
%% '''
%% A request begins here and ends when its response is about to be sent (`register_before_send'):
%% from inside of the controller, so that the tiers which are open then are the request's, and the
%% last one's return is its end. A response in chunks, or of a file, is sent from there on: then it
%% ends when Bandit tells through telemetry that it is over, or, under cowboy, with its process. It
%% is called by its method and the
%% route that Phoenix or Plug.Router found, or what `plug Kprof.Plug, route: &MyApp.route/2' makes
%% of method and path; without any, see {@link kprof_web:identity/1}. Statuses from 500 are errors.
%% A request that asks for a websocket ends at once. `sample_weights' go by what is known here: such
%% a route function's, or `GET /users/*'.
%%
%% When a plug raises before a router is reached, whoever answers has the connection of before this
%% plug. Then Phoenix and Bandit tell through telemetry that the request is over. Where its process
%% ends instead, as it does under cowboy, that is its end, in an error, and its name is without the
%% router's route: also for a client that leaves, as cowboy kills the process then. Under
%% Plug.Cowboy and Phoenix's Cowboy2Adapter you may use kprof_cowboy instead of this, not both.
%% kprof_helper tells how this module gets into a node.
-module('Elixir.Kprof.Plug').

-export([init/1, call/2, handle_event/4, '__info__'/1]).

% {Request, Method, Options} of the process that works for it
-define(KEY, '$kprof_plug').
% states of a connection whose response begins to be sent
-define(SENT_LATER, [set_chunked, set_file]).
-define(EVENTS, [[phoenix, error_rendered], [bandit, request, stop], [bandit, request, exception]]).

%% @private
%% Every module of Elixir's has this. Plug.Builder asks it to see that the plug is one.
-spec '__info__'(atom()) -> term().
'__info__'(module) -> ?MODULE;
'__info__'(functions) -> [{call, 2}, {init, 1}];
'__info__'(macros) -> [];
'__info__'(struct) -> nil;
'__info__'(What) -> module_info(What).

%% @private
-spec init(Options) -> Options.
init(Options) ->
    Options.

%% @private
%% In an endpoint and in a router of it, it is the first that counts.
-spec call(map(), [{route, fun((Method :: binary(), Path :: binary()) -> term())}]) -> map().
call(#{private := #{?KEY := _}} = Conn, _) ->
    Conn;
call(#{req_headers := Headers, method := Method} = Conn, Options) ->
    % of HTTP/2
    Header = fun
        (<<"upgrade">>) when Method =:= <<"CONNECT">> -> <<"websocket">>;
        (Name) -> proplists:get_value(Name, Headers)
    end,
    case kprof_helper:begin_or_upgrade(Header, fun() -> facts(Conn, Method, Options) end) of
        off -> Conn;
        Request -> begun({Request, Method, Options}, Conn)
    end.

begun(Begun, Conn) ->
    listen(),
    _ = put(?KEY, Begun),
    try
        #{private := Private} =
            Registered = 'Elixir.Plug.Conn':register_before_send(Conn, fun(Sent) ->
                sent(Begun, Sent),
                Sent
            end),
        lists:foldl(
            fun({Name, Value}, To) -> 'Elixir.Plug.Conn':put_resp_header(To, Name, Value) end,
            Registered#{private := Private#{?KEY => true}},
            kprof_helper:answer_headers(element(1, Begun))
        )
    catch
        _:_ ->
            %% a response is on its way already
            ended(Begun, Conn),
            Conn
    end.

sent({Request, Method, Options} = Begun, Conn) ->
    case lists:member(maps:get(state, Conn, undefined), ?SENT_LATER) of
        true -> kprof_helper:send_request(Request, fun() -> facts(Conn, Method, Options) end);
        false -> ended(Begun, Conn)
    end.

ended({Request, Method, Options}, Conn) ->
    _ = erase(?KEY),
    kprof_helper:end_request(Request, fun() -> facts(Conn, Method, Options) end).

%% --- what is told by telemetry ---

%% The handler stays, as this module does; without a request in the process it does nothing.
listen() ->
    persistent_term:get(?KEY, false) orelse
        begin
            ok = persistent_term:put(?KEY, true),
            try
                telemetry:attach_many(?MODULE, ?EVENTS, fun ?MODULE:handle_event/4, []),
                ok
            catch
                _:_ -> ok
            end
        end.

%% @private
-spec handle_event([atom()], map(), map(), term()) -> ok.
handle_event(Event, _, #{conn := Conn} = Told, _) ->
    case get(?KEY) of
        undefined ->
            ok;
        Begun ->
            ended(Begun, Conn#{
                status :=
                    try
                        status(Event, Told)
                    catch
                        _:_ -> 500
                    end
            })
    end;
handle_event(_, _, _, _) ->
    ok.

status([phoenix | _], #{status := Status}) ->
    Status;
status([_, _, exception], #{exception := Exception}) ->
    'Elixir.Plug.Conn.Status':code('Elixir.Plug.Exception':status(Exception));
status([_, _, stop], #{conn := #{status := Status}}) ->
    Status.

%% --- names ---

%% Plug.Head makes GET of HEAD.
facts(#{method := Method, request_path := Path} = Conn, Asked, Options) ->
    #{
        method =>
            case Asked of
                <<"HEAD">> -> Asked;
                _ -> Method
            end,
        path => Path,
        status => maps:get(status, Conn, undefined),
        route =>
            case proplists:get_value(route, Options) of
                undefined -> route(Conn);
                Route -> Route
            end
    }.

%% Phoenix forgets the pattern, but can be asked again; about what was forwarded to the router,
%% without what led there.
route(#{
    private := #{phoenix_router := Router} = Private,
    method := Method,
    request_path := Path,
    host := Host
}) ->
    Prefix = prefix(maps:get(Router, Private, [])),
    case
        'Elixir.Phoenix.Router':route_info(
            Router, Method, lists:nthtail(length(Prefix), segments(Path)), Host
        )
    of
        #{route := Route} -> iolist_to_binary([[$/, Part] || Part <- Prefix] ++ [Route]);
        error -> undefined
    end;
route(#{private := #{plug_route := {Route, _}}}) ->
    own(binary:replace(Route, <<"/*glob/">>, <<"/">>, [global]));
route(_) ->
    undefined.

%% Plug.Router calls `match _' so, and what it forwards from `/*glob'. What fits anything is no
%% route.
own(<<"/*_path">>) -> undefined;
own(Route) -> binary:replace(Route, <<"/*_path">>, <<"/*">>).

%% The script name, as the router puts it by, with what else older ones put there.
prefix({Script, _}) -> Script;
prefix(Script) -> Script.

segments(Path) -> binary:split(Path, <<"/">>, [global, trim_all]).
