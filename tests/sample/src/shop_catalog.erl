%% SPDX-License-Identifier: Apache-2.0
%% What the shop sells: the items that are there from the start, the ids of new ones, and which
%% items are in trouble. All of it follows from the id, so that every run fails in the same places.
-module(shop_catalog).

-export([init/0, ids/0, item/1, new_id/0, trouble/1]).
-export_type([id/0, item/0]).

-type id() :: pos_integer().
-type item() :: #{id := id(), name := binary(), price := pos_integer(), stock := non_neg_integer()}.

-define(SEEDED, 1000).
-define(NEW, 10000).
-define(STOCK, 1000000000).

-spec init() -> ok.
init() ->
    persistent_term:put(?MODULE, atomics:new(1, [])).

-spec ids() -> [id()].
ids() ->
    lists:seq(1, ?SEEDED).

%% Each fiftieth item is sold out.
-spec item(id()) -> item().
item(Id) ->
    Stock =
        if
            Id rem 50 =:= 0 -> 0;
            true -> ?STOCK
        end,
    #{id => Id, name => name(Id), price => 100 + Id * 7 rem 900, stock => Stock}.

%% New ids come round again after a while: a long run with many creations stays small.
-spec new_id() -> id().
new_id() ->
    ?SEEDED + 1 + atomics:add_get(persistent_term:get(?MODULE), 1, 1) rem ?NEW.

%% How touching this item in storage ends.
-spec trouble(id()) -> none | exit | throw.
trouble(Id) when Id rem 97 =:= 0 -> exit;
trouble(Id) when Id rem 89 =:= 0 -> throw;
trouble(_Id) -> none.

name(Id) ->
    Kinds = {<<"lamp">>, <<"chair">>, <<"table">>, <<"shelf">>, <<"clock">>},
    <<
        (element(Id rem tuple_size(Kinds) + 1, Kinds))/binary,
        " no. ",
        (integer_to_binary(Id))/binary
    >>.
