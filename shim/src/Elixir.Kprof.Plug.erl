%% @doc Requests of Plug and Phoenix: the module plug `Kprof.Plug', in Erlang, so that it needs no Elixir to be compiled. Put it first in the
%% endpoint or router:
%% ```
%% plug Kprof.Plug
%% '''
%% A request begins here and ends when its response is about to be sent (`register_before_send'). It is called by its method and the route that
%% Phoenix or Plug.Router found, or what `plug Kprof.Plug, route: &MyApp.route/2' makes of method and path; without any, see
%% {@link kprof_web:identity/1}. Statuses from 500 are errors, also those that Phoenix or Plug.ErrorHandler answers when a plug raises. A
%% request that ends without a response is counted as incomplete or expired. Under cowboy use either this or kprof_cowboy, not both.
%% kprof_helper tells how this module gets into a node.
-module('Elixir.Kprof.Plug').

-export([init/1, call/2, '__info__'/1]).

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
-spec call(map(), [{route, fun((Method :: binary(), Path :: binary()) -> term())}]) -> map().
call(#{req_headers := Headers} = Conn, Options) ->
    case kprof_helper:begin_request(fun(Name) -> proplists:get_value(Name, Headers) end) of
        off ->
            Conn;
        Request ->
            Send = fun(Sent) -> kprof_helper:end_request(Request, fun() -> facts(Sent, Options) end), Sent end,
            try 'Elixir.Plug.Conn':register_before_send(Conn, Send)
            catch
                _:_ ->
                    %% a response is on its way already
                    kprof_helper:end_request(Request, fun() -> facts(Conn, Options) end),
                    Conn
            end
    end.

facts(#{method := Method, request_path := Path} = Conn, Options) ->
    #{method => Method, path => Path, status => maps:get(status, Conn, undefined),
      route => case proplists:get_value(route, Options) of undefined -> route(Conn); Route -> Route end}.

%% Phoenix forgets the pattern, but can be asked again.
route(#{private := #{phoenix_router := Router}, method := Method, request_path := Path, host := Host}) ->
    case 'Elixir.Phoenix.Router':route_info(Router, Method, Path, Host) of
        #{route := Route} -> Route;
        error -> undefined
    end;
route(#{private := #{plug_route := {Route, _}}}) ->
    Route;
route(_) ->
    undefined.
