%% SPDX-License-Identifier: Apache-2.0
%% Tier `storage`: fifty processes, each with the items whose key hashes to it, in a table of its
%% own.
-module(shop_storage).
-behaviour(gen_server).

-export([start_link/2, call/2, call_all/2, scan/3, run/2]).
-export([init/1, handle_call/3, handle_cast/2]).
-export_type([op/0]).

-type op() ::
    {read | take | give_back | delete, shop_catalog:id()}
    | {write, shop_catalog:item()}
    | {search, binary()}.

% per process
-define(MOST_HITS, 3).

-spec start_link(atom(), {non_neg_integer(), pos_integer()}) -> {ok, pid()} | {error, term()}.
start_link(Name, _Place) ->
    gen_server:start_link({local, Name}, ?MODULE, Name, []).

-spec call(shop_truth:route(), op()) -> term().
call(Route, Op) ->
    shop_call:one(owner(Op), {Route, Op}).

%% All of Ops in parallel.
-spec call_all(shop_truth:route(), [op()]) -> [term()].
call_all(Route, Ops) ->
    shop_call:many([{owner(Op), {Route, Op}} || Op <- Ops]).

%% The same Op on all of Shards in parallel.
-spec scan(shop_truth:route(), [atom()], op()) -> [term()].
scan(Route, Shards, Op) ->
    shop_call:many([{Shard, {Route, Op}} || Shard <- Shards]).

-spec run({shop_truth:route(), op()}, ets:table()) -> term().
run({Route, Op}, Table) ->
    shop_truth:span(storage, Route, fun() ->
        shop_cost:burn(storage),
        raise_trouble(Op),
        do(Op, Table)
    end).

do({read, Id}, Table) ->
    case ets:lookup(Table, Id) of
        [{Id, Item}] -> Item;
        [] -> not_found
    end;
do({write, #{id := Id} = Item}, Table) ->
    ets:insert(Table, {Id, Item}),
    ok;
do({delete, Id}, Table) ->
    case ets:take(Table, Id) of
        [{Id, Item}] -> Item;
        [] -> not_found
    end;
do({take, Id}, Table) ->
    case do({read, Id}, Table) of
        #{stock := Stock} = Item when Stock > 0 -> do({write, Item#{stock := Stock - 1}}, Table);
        #{} -> sold_out;
        not_found -> not_found
    end;
do({give_back, Id}, Table) ->
    case do({read, Id}, Table) of
        #{stock := Stock} = Item -> do({write, Item#{stock := Stock + 1}}, Table);
        not_found -> ok
    end;
do({search, Text}, Table) ->
    Hits = [
        Item
     || {_Id, #{name := Name} = Item} <- ets:tab2list(Table),
        binary:match(Name, Text) =/= nomatch
    ],
    lists:sublist(Hits, ?MOST_HITS).

raise_trouble({search, _}) ->
    ok;
raise_trouble(Op) ->
    case shop_catalog:trouble(id(Op)) of
        none -> ok;
        exit -> exit(disk_failure);
        throw -> throw(busy)
    end.

id({write, #{id := Id}}) -> Id;
id({_, Id}) -> Id.

owner(Op) ->
    shop_group:by_key(?MODULE, id(Op)).

-spec init(atom()) -> {ok, ets:table()}.
init(Name) ->
    Table = ets:new(Name, [private]),
    [
        ets:insert(Table, {Id, shop_catalog:item(Id)})
     || Id <- shop_catalog:ids(), shop_group:by_key(?MODULE, Id) =:= Name
    ],
    {ok, Table}.

-spec handle_call({shop_truth:route(), op()}, gen_server:from(), ets:table()) ->
    {reply, term(), ets:table()}.
handle_call(Job, _From, Table) ->
    {reply, shop_call:answer(fun() -> run(Job, Table) end), Table}.

-spec handle_cast(term(), ets:table()) -> {noreply, ets:table()}.
handle_cast(_Message, Table) ->
    {noreply, Table}.
