%% SPDX-License-Identifier: Apache-2.0
%% One connection: reads a request, answers it, and so on until the client leaves or is silent
%% for long. A request that raises becomes a 500, the connection goes on.
-module(shop_conn).

-export([start_link/1, init/1]).

-define(IDLE_MS, 60000).

%% The process waits for `go`, which is sent once it owns the socket.
-spec start_link(gen_tcp:socket()) -> {ok, pid()}.
start_link(Socket) ->
    {ok, proc_lib:spawn_link(?MODULE, init, [Socket])}.

-spec init(gen_tcp:socket()) -> ok.
init(Socket) ->
    receive
        go -> serve(Socket)
    after ?IDLE_MS ->
        gen_tcp:close(Socket)
    end.

serve(Socket) ->
    case shop_wire:recv(Socket, ?IDLE_MS) of
        {ok, {http_request, Method, {abs_path, Target}, _}, Keep, Body} ->
            {Status, Page} = answer(Method, Target, Body),
            case shop_wire:respond(Socket, Status, Keep, Page) of
                ok when Keep -> serve(Socket);
                _ -> gen_tcp:close(Socket)
            end;
        _ ->
            gen_tcp:close(Socket)
    end.

%% The pages under /_ are about the shop, not of it: neither traced nor counted.
answer('GET', <<"/_truth">>, _Body) ->
    {200, [shop_json:encode(shop_truth:read()), $\n]};
% OTP 29 does not load what 25 makes of _/binary
answer(_Method, <<"/_", _/bits>>, _Body) ->
    {404, <<"no such page\n">>};
answer(Method, Target, Body) ->
    {Route, Request} = shop_router:route(Method, Target, Body),
    try
        shop_trace:request(shop_http, handle_request, [Route, Request])
    catch
        Class:Reason -> {500, io_lib:format("~p: ~0p~n", [Class, Reason])}
    end.
