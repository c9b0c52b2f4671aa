%% SPDX-License-Identifier: Apache-2.0
%% Scenario 30: cowboy, with rules that name a part of the path, a REST handler and a websocket.
-module(scenario_web_cowboy).

-export([start/1, wait_for_request/1, init/2, info/3, kill_connections/1]).
-export([
    forbidden/2,
    resource_exists/2,
    content_types_provided/2,
    to_text/2,
    websocket_init/1,
    websocket_handle/2,
    websocket_info/2
]).

-spec start(map()) -> inet:port_number().
start(More) ->
    {ok, _} = application:ensure_all_started(cowboy),
    Dispatch = cowboy_router:compile([
        {'_', [
            {"/users/:id", ?MODULE, []},
            {"/items/:number", [{number, int}], ?MODULE, []},
            {"/items/:name", ?MODULE, []},
            {"/rest/:what", ?MODULE, rest},
            {"/odd/:what", ?MODULE, odd},
            {"/ws", ?MODULE, ws},
            {"/[...]", ?MODULE, []}
        ]}
    ]),
    {ok, _} = cowboy:start_clear(
        ?MODULE,
        [{ip, {127, 0, 0, 1}}, {port, 0}],
        maps:merge(
            #{
                env => #{dispatch => Dispatch},
                stream_handlers => [kprof_cowboy, cowboy_stream_h],
                max_keepalive => 100000,
                request_timeout => 60000,
                enable_connect_protocol => true
            },
            More
        )
    ),
    ranch:get_port(?MODULE).

%% New connections may take so long for a request.
-spec wait_for_request(pos_integer()) -> ok.
wait_for_request(Ms) ->
    ranch:set_protocol_options(?MODULE, (ranch:get_protocol_options(?MODULE))#{
        request_timeout => Ms
    }).

%% Once so many requests are stuck.
-spec kill_connections(pos_integer()) -> ok.
kill_connections(Stuck) ->
    ok = scenario_web:wait_stuck(Stuck),
    [exit(P, kill) || P <- ranch:procs(?MODULE, connections)],
    scenario_web:wait_stuck(0).

-spec init(map(), term()) -> {ok | module(), map(), term()} | {module(), map(), term(), hibernate}.
init(Req, rest) ->
    {cowboy_rest, Req, cowboy_req:binding(what, Req)};
init(Req, ws) ->
    {cowboy_websocket, Req, ws};
init(Req, odd) ->
    odd(cowboy_req:binding(what, Req), Req);
init(Req0, State) ->
    {Body, Req1} = body(Req0, []),
    Req =
        case scenario_web:handle(cowboy_req:method(Req1), cowboy_req:path(Req1), Body) of
            {pieces, Pieces} ->
                Req2 = cowboy_req:stream_reply(200, #{}, Req1),
                [
                    ok = cowboy_req:stream_body(Piece(), nofin, Req2)
                 || Piece <- scenario_web:pieces(Pieces)
                ],
                ok = cowboy_req:stream_body(<<>>, fin, Req2),
                Req2;
            {Status, Answer} ->
                cowboy_req:reply(Status, #{}, Answer, Req1)
        end,
    {ok, Req, State}.

%% Answers that are not one reply at the end.
odd(<<"inform">>, Req) ->
    ok = cowboy_req:inform(103, #{<<"link">> => <<"</style.css>">>}, Req),
    {ok, cowboy_req:reply(200, #{}, scenario_web:store(<<"inform">>), Req), odd};
odd(<<"after">>, Req) ->
    _ = cowboy_req:reply(200, #{}, <<"all is well">>, Req),
    error(boom);
odd(<<"midway">>, Req0) ->
    Req = cowboy_req:stream_reply(200, Req0),
    ok = cowboy_req:stream_body(<<"well so far">>, nofin, Req),
    error(boom);
odd(<<"nothing">>, Req) ->
    {ok, Req, odd};
odd(<<"file">>, Req) ->
    File = code:which(?MODULE),
    {ok, cowboy_req:reply(200, #{}, {sendfile, 0, filelib:file_size(File), File}, Req), odd};
odd(<<"work">>, Req) ->
    _ = cowboy_req:reply(200, #{}, <<"done">>, Req),
    _ = scenario_web:store(<<"work">>),
    {ok, Req, odd};
odd(What, Req) when What =:= <<"loop">>; What =:= <<"sleep">> ->
    Self = self(),
    _ = spawn(fun() ->
        [
            begin
                timer:sleep(20),
                Self ! Message
            end
         || Message <- [one, two, last]
        ]
    end),
    case What of
        <<"loop">> -> {cowboy_loop, Req, odd};
        <<"sleep">> -> {cowboy_loop, Req, odd, hibernate}
    end.

%% Without a token the messages that a loop lives on would take the request's away: what it spawned
%% has it.
-spec info(term(), map(), odd) -> {ok, map(), odd, hibernate} | {stop, map(), odd}.
info(last, Req, odd) ->
    {stop, cowboy_req:reply(200, #{}, scenario_web:store(<<"loop">>), Req), odd};
info(_, Req, odd) ->
    _ = scenario_web:store(<<"loop">>),
    {ok, Req, odd, hibernate}.

%% In several reads, so that the connection process hands the body over piece by piece.
body(Req0, Read) ->
    case cowboy_req:read_body(Req0, #{length => 1000, period => 50}) of
        {ok, Data, Req} -> {iolist_to_binary([Read, Data]), Req};
        {more, Data, Req} -> body(Req, [Read, Data])
    end.

%% --- as a REST handler: what it answers is named by the path ---

-spec forbidden(map(), binary()) -> {boolean(), map(), binary()}.
forbidden(Req, What) -> {What =:= <<"forbidden">>, Req, What}.

-spec resource_exists(map(), binary()) -> {boolean() | stop, map(), binary()}.
resource_exists(Req, <<"halt">> = What) -> {stop, cowboy_req:reply(503, Req), What};
resource_exists(Req, What) -> {What =/= <<"nothing">>, Req, What}.

-spec content_types_provided(map(), binary()) -> {list(), map(), binary()}.
content_types_provided(Req, What) -> {[{<<"text/plain">>, to_text}], Req, What}.

-spec to_text(map(), binary()) -> {binary(), map(), binary()}.
to_text(_, <<"broken">>) -> error(boom);
to_text(Req, What) -> {scenario_web:store(What), Req, What}.

%% --- as a websocket: none of its requests ---

-spec websocket_init(ws) -> {ok, ws}.
websocket_init(ws) ->
    _ = scenario_web:store(<<"websocket">>),
    {ok, ws}.

-spec websocket_handle({text, binary()}, ws) -> {reply, {text, binary()}, ws}.
websocket_handle({text, Text}, ws) ->
    _ = scenario_web:store(<<"frame">>),
    {reply, {text, Text}, ws}.

-spec websocket_info(term(), ws) -> {ok, ws}.
websocket_info(_, ws) -> {ok, ws}.
