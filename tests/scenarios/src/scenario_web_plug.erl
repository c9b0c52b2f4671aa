%% SPDX-License-Identifier: Apache-2.0
%% Scenario 34: Plug. Drives Kprof.Plug as a pipeline does, with the conn of Plug 1, over real HTTP:
%% as a server that serves a connection's requests in one process (Bandit), or as one with a process
%% for each (cowboy).
-module(scenario_web_plug).

-export([start/1]).

-spec start(#{each => boolean()}) -> inet:port_number().
start(Options) ->
    Plug = 'Elixir.Kprof.Plug':init([]),
    scenario_web_http:start(
        case Options of
            #{each := true} ->
                fun(Request) -> elsewhere(fun() -> catch endpoint(Request, Plug) end) end;
            _ ->
                ok = telemetry:start(),
                fun(Request) -> bandit(Request, Plug) end
        end
    ).

%% What is over has been sent: told of the connection as the plugs have returned it.
bandit(Request, Plug) ->
    try
        telemetry:execute([bandit, request, stop], #{}, #{conn => endpoint(Request, Plug)}),
        keep
    catch
        Class:{Reason, Conn} ->
            telemetry:execute([bandit, request, exception], #{}, #{
                conn => Conn, kind => Class, exception => Reason
            }),
            raised
    end.

elsewhere(Fun) ->
    {_, Ref} = spawn_monitor(Fun),
    receive
        {'DOWN', Ref, process, _, normal} -> keep
    end.

%% As an endpoint whose errors are answered: from the conn as it was before the first plug, and then
%% raised, as no router has wrapped them. Bandit tells so by telemetry; under cowboy the process
%% ends.
endpoint(#{method := Method, path := Path, headers := Headers, body := Body, socket := S}, Plug) ->
    Conn = #{
        '__struct__' => 'Elixir.Plug.Conn',
        method => Method,
        request_path => Path,
        host => <<"h">>,
        req_headers => Headers,
        resp_headers => [],
        private => #{},
        status => nil,
        state => unset,
        socket => S
    },
    Begun = route('Elixir.Kprof.Plug':call(Conn, Plug)),
    try scenario_web:handle(Method, Path, Body) of
        {pieces, Pieces} ->
            Sent = 'Elixir.Plug.Conn':send_chunked(Begun, 200),
            [scenario_web_http:chunk(S, Piece()) || Piece <- scenario_web:pieces(Pieces)],
            _ = scenario_web_http:chunk(S, <<>>),
            Sent;
        {Status, Answer} ->
            'Elixir.Plug.Conn':send_resp(Begun, Status, Answer)
    catch
        Class:Reason ->
            _ = 'Elixir.Plug.Conn':send_resp(Conn, 500, "oops"),
            erlang:Class({Reason, Conn})
    end.

%% Some routes by Plug.Router, some by Phoenix, one of them forwarded from another router, and the
%% rest by what Plug.Router calls `match _'.
route(#{request_path := <<"/users/", _/binary>>} = Conn) ->
    private(#{plug_route => {<<"/users/*glob/:id">>, fun(C, _) -> C end}}, Conn);
route(#{request_path := <<"/pieces">>} = Conn) ->
    private(#{phoenix_router => 'Elixir.Shop.Inner', 'Elixir.Shop.Inner' => [<<"pieces">>]}, Conn);
route(#{request_path := Path} = Conn) when Path =:= <<"/slow">>; Path =:= <<"/busy">> ->
    private(#{phoenix_router => 'Elixir.Shop.Router', 'Elixir.Shop.Router' => []}, Conn);
route(Conn) ->
    private(#{plug_route => {<<"/*_path">>, fun(C, _) -> C end}}, Conn).

private(More, #{private := Private} = Conn) -> Conn#{private := maps:merge(Private, More)}.
