%% Scenario 30: cowboy, with rules that name a part of the path.
-module(scenario_web_cowboy).

-export([start/1, init/2]).

-spec start(map()) -> inet:port_number().
start(More) ->
    {ok, _} = application:ensure_all_started(cowboy),
    Dispatch = cowboy_router:compile([{'_', [{"/users/:id", ?MODULE, []}, {"/[...]", ?MODULE, []}]}]),
    {ok, _} = cowboy:start_clear(?MODULE, [{ip, {127, 0, 0, 1}}, {port, 0}],
                                 More#{env => #{dispatch => Dispatch}, stream_handlers => [kprof_cowboy, cowboy_stream_h],
                                       max_keepalive => 100000}),
    ranch:get_port(?MODULE).

-spec init(map(), term()) -> {ok, map(), term()}.
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
