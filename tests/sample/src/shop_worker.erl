%% SPDX-License-Identifier: Apache-2.0
%% Tier `pool`: the workers. A worker checks a request, gets or changes what it is about in
%% storage, and books what changed.
-module(shop_worker).
-behaviour(gen_server).

-export([start_link/2, run/2, work/2]).
-export([init/1, handle_call/3, handle_cast/2]).

-define(SEARCH_SHARDS, 10).

-spec start_link(atom(), term()) -> {ok, pid()} | {error, term()}.
start_link(Name, _Place) ->
    gen_server:start_link({local, Name}, ?MODULE, [], []).

%% In the caller: hands the request to the next worker.
-spec run(shop_truth:route(), map()) -> {200..299, term()} | not_found.
run(Route, Request) ->
    shop_call:one(shop_group:next(?MODULE), {work, Route, Request}).

-spec work(shop_truth:route(), map()) -> {200..299, term()} | not_found.
work(Route, Request) ->
    shop_truth:span(pool, Route, fun() ->
        shop_cost:burn(pool),
        do(Route, Request)
    end).

do(read, #{id := Id}) ->
    found(shop_storage:call(read, {read, Id}));
do(search, #{text := Text}) ->
    Shards = lists:sublist(shop_group:members(shop_storage), ?SEARCH_SHARDS),
    {200, lists:append(shop_storage:scan(search, Shards, {search, Text}))};
do(create, #{name := Name}) ->
    Item = maps:put(name, Name, shop_catalog:item(shop_catalog:new_id())),
    shop_storage:call(create, {write, Item}),
    book(create, Item),
    {201, Item};
do(update, #{id := Id, price := Price}) ->
    case shop_storage:call(update, {read, Id}) of
        not_found ->
            not_found;
        Item ->
            Changed = Item#{price := Price},
            shop_storage:call(update, {write, Changed}),
            book(update, Changed),
            {200, Changed}
    end;
do(delete, #{id := Id}) ->
    Result = found(shop_storage:call(delete, {delete, Id})),
    Result =:= not_found orelse book(delete, #{id => Id}),
    Result;
do(order, #{ids := Ids}) ->
    reserve(Ids),
    Items = shop_storage:call_all(order, [{read, Id} || Id <- Ids]),
    Total = lists:sum([Price || #{price := Price} <- Items]),
    book(order, #{ids => Ids, total => Total}),
    {201, #{items => Items, total => Total}}.

%% One after another, so that an order that fails halfway knows what to give back.
reserve(Ids) ->
    reserve(Ids, []).

reserve([], _Reserved) ->
    ok;
reserve([Id | Ids], Reserved) ->
    case shop_storage:call(order, {take, Id}) of
        ok ->
            reserve(Ids, [Id | Reserved]);
        Refused ->
            [shop_storage:call(order, {give_back, R}) || R <- Reserved],
            erlang:error({Refused, Id})
    end.

found(not_found) -> not_found;
found(Item) -> {200, Item}.

book(Route, Subject) ->
    shop_accounting:submit(#{route => Route, subject => Subject}).

-spec init([]) -> {ok, none}.
init([]) ->
    {ok, none}.

-spec handle_call(term(), gen_server:from(), none) -> {reply, term(), none}.
handle_call({work, Route, Request}, _From, State) ->
    {reply, shop_call:answer(fun() -> work(Route, Request) end), State}.

-spec handle_cast(term(), none) -> {noreply, none}.
handle_cast(_Message, State) ->
    {noreply, State}.
