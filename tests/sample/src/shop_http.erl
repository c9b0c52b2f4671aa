%% SPDX-License-Identifier: Apache-2.0
%% Tier `http`: one whole request, in the process of its connection.
-module(shop_http).

-export([handle_request/2]).

-spec handle_request(shop_truth:route(), map()) -> {200..404, binary()}.
handle_request(Route, Request) ->
    shop_truth:span(http, Route, fun() ->
        shop_cost:burn(http),
        handle(Route, Request)
    end).

handle(unknown, _Request) ->
    {404, <<"no such page\n">>};
handle(Route, Request) ->
    case shop_worker:run(Route, Request) of
        not_found -> {404, <<"no such item\n">>};
        {Status, Data} -> {Status, shop_render:render(Route, Data)}
    end.
