%% Scenario 30: cowboy, with rules that name a part of the path, a REST handler and a websocket.
-module(scenario_web_cowboy).

-export([start/1, init/2]).
-export([forbidden/2, resource_exists/2, content_types_provided/2, to_text/2, websocket_init/1, websocket_handle/2, websocket_info/2]).

-spec start(map()) -> inet:port_number().
start(More) ->
    {ok, _} = application:ensure_all_started(cowboy),
    Dispatch = cowboy_router:compile([{'_', [{"/users/:id", ?MODULE, []}, {"/items/:number", [{number, int}], ?MODULE, []}, {"/items/:name", ?MODULE, []},
                                              {"/rest/:what", ?MODULE, rest}, {"/ws", ?MODULE, ws}, {"/[...]", ?MODULE, []}]}]),
    {ok, _} = cowboy:start_clear(?MODULE, [{ip, {127, 0, 0, 1}}, {port, 0}],
                                 More#{env => #{dispatch => Dispatch}, stream_handlers => [kprof_cowboy, cowboy_stream_h],
                                       max_keepalive => 100000, request_timeout => 1000}),
    ranch:get_port(?MODULE).

-spec init(map(), term()) -> {ok | module(), map(), term()}.
init(Req, rest) ->
    {cowboy_rest, Req, cowboy_req:binding(what, Req)};
init(Req, ws) ->
    {cowboy_websocket, Req, ws};
init(Req0, State) ->
    {Body, Req1} = body(Req0, []),
    Req = case scenario_web:handle(cowboy_req:method(Req1), cowboy_req:path(Req1), Body) of
              {pieces, Pieces} ->
                  Req2 = cowboy_req:stream_reply(200, #{}, Req1),
                  [ok = cowboy_req:stream_body(Piece(), nofin, Req2) || Piece <- scenario_web:pieces(Pieces)],
                  ok = cowboy_req:stream_body(<<>>, fin, Req2),
                  Req2;
              {Status, Answer} ->
                  cowboy_req:reply(Status, #{}, Answer, Req1)
          end,
    {ok, Req, State}.

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
websocket_init(ws) -> _ = scenario_web:store(<<"websocket">>), {ok, ws}.

-spec websocket_handle({text, binary()}, ws) -> {reply, {text, binary()}, ws}.
websocket_handle({text, Text}, ws) -> _ = scenario_web:store(<<"frame">>), {reply, {text, Text}, ws}.

-spec websocket_info(term(), ws) -> {ok, ws}.
websocket_info(_, ws) -> {ok, ws}.
