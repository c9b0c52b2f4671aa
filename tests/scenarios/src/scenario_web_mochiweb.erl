%% SPDX-License-Identifier: Apache-2.0
%% Scenario 32: mochiweb.
-module(scenario_web_mochiweb).

-export([start/1, loop/1]).

-spec start(map()) -> inet:port_number().
start(_) ->
    {ok, Pid} = mochiweb_http:start([
        {name, ?MODULE},
        {ip, "127.0.0.1"},
        {port, 0},
        {loop, kprof_mochiweb:loop({?MODULE, loop})},
        {link, false}
    ]),
    mochiweb_socket_server:get(Pid, port).

-spec loop(term()) -> term().
loop(Req) ->
    Method = atom_to_binary(mochiweb_request:get(method, Req), utf8),
    Body =
        case mochiweb_request:recv_body(Req) of
            undefined -> <<>>;
            Got -> Got
        end,
    case scenario_web:handle(Method, list_to_binary(mochiweb_request:get(path, Req)), Body) of
        {pieces, Pieces} ->
            Response = mochiweb_request:respond({200, [], chunked}, Req),
            [
                mochiweb_response:write_chunk(Piece(), Response)
             || Piece <- scenario_web:pieces(Pieces)
            ],
            mochiweb_response:write_chunk(<<>>, Response);
        {Status, Answer} ->
            mochiweb_request:respond({Status, [], Answer}, Req)
    end.
