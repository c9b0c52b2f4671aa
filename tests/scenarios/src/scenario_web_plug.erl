%% Scenario 34: Plug. Drives Kprof.Plug as a pipeline does, with the conn of Plug 1, over real HTTP: as a server that serves a connection's
%% requests in one process (Bandit), or as one with a process for each (cowboy).
-module(scenario_web_plug).

-export([start/1]).

-spec start(#{each => boolean()}) -> inet:port_number().
start(Options) ->
    Plug = 'Elixir.Kprof.Plug':init([]),
    scenario_web_http:start(case Options of
                                #{each := true} -> fun(Request) -> elsewhere(fun() -> endpoint(Request, Plug) end) end;
                                _ -> fun(Request) -> endpoint(Request, Plug) end
                            end).

elsewhere(Fun) ->
    {_, Ref} = spawn_monitor(fun() -> exit({done, Fun()}) end),
    receive {'DOWN', Ref, process, _, {done, Result}} -> Result end.

%% As an endpoint whose errors are answered: from the conn as it was when it was raised.
endpoint(#{method := Method, path := Path, headers := Headers, body := Body, socket := S}, Plug) ->
    Conn = #{'__struct__' => 'Elixir.Plug.Conn', method => Method, request_path => Path, host => <<"h">>, req_headers => Headers,
             private => #{}, status => nil, state => unset, socket => S},
    Begun = route('Elixir.Kprof.Plug':call(Conn, Plug)),
    try scenario_web:handle(Method, Path, Body) of
        {pieces, Pieces} ->
            _ = 'Elixir.Plug.Conn':send_chunked(Begun, 200),
            [scenario_web_http:chunk(S, Piece()) || Piece <- scenario_web:pieces(Pieces)],
            _ = scenario_web_http:chunk(S, <<>>),
            keep;
        {Status, Answer} ->
            _ = 'Elixir.Plug.Conn':send_resp(Begun, Status, Answer),
            keep
    catch
        _:_ ->
            _ = 'Elixir.Plug.Conn':send_resp(Begun, 500, "oops"),
            keep
    end.

%% Some routes by Plug.Router, some by Phoenix, and some by none.
route(#{request_path := <<"/users/", _/binary>>, private := Private} = Conn) ->
    Conn#{private := Private#{plug_route => {<<"/users/:id">>, fun(C, _) -> C end}}};
route(#{request_path := <<"/slow">>, private := Private} = Conn) ->
    Conn#{private := Private#{phoenix_router => 'Elixir.Shop.Router'}};
route(#{request_path := <<"/busy">>, private := Private} = Conn) ->
    Conn#{private := Private#{phoenix_router => 'Elixir.Shop.Router'}};
route(Conn) ->
    Conn.
