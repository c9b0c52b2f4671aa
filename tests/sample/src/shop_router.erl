%% SPDX-License-Identifier: Apache-2.0
%% From method, target and body to the route and its request. What is not understood is `unknown`.
-module(shop_router).

-export([route/3]).

-define(MOST_IDS, 20).

-spec route(atom() | binary(), binary(), binary()) -> {shop_truth:route(), map()}.
route(Method, Target, Body) ->
    try
        known(Method, uri_string:parse(Target), Body)
    catch
        error:_ -> {unknown, #{}}
    end.

known('GET', #{path := <<"/items">>, query := Query}, _) ->
    {search, #{text => value(<<"q">>, Query)}};
known('GET', #{path := <<"/items/", Id/binary>>}, _) ->
    {read, #{id => id(Id)}};
known('POST', #{path := <<"/items">>}, Body) ->
    {create, #{name => value(<<"name">>, Body)}};
known('PUT', #{path := <<"/items/", Id/binary>>}, Body) ->
    {update, #{id => id(Id), price => id(value(<<"price">>, Body))}};
known('DELETE', #{path := <<"/items/", Id/binary>>}, _) ->
    {delete, #{id => id(Id)}};
known('POST', #{path := <<"/orders">>}, Body) ->
    Ids = [id(Id) || Id <- binary:split(value(<<"ids">>, Body), <<",">>, [global])],
    true = length(Ids) =< ?MOST_IDS,
    {order, #{ids => Ids}}.

value(Key, Form) ->
    {Key, Value} = lists:keyfind(Key, 1, uri_string:dissect_query(Form)),
    true = is_binary(Value),
    Value.

id(Text) ->
    Id = binary_to_integer(Text),
    true = Id > 0,
    Id.
