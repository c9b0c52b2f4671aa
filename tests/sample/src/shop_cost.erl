%% SPDX-License-Identifier: Apache-2.0
%% The work that a layer pretends to do: a fixed number of hash rounds, so that the amount of work
%% does not depend on the clock or on who else runs. One unit is about a microsecond of a slow CPU.
-module(shop_cost).

-export([init/0, burn/1]).

-define(TIERS, [http, pool, storage, render, accounting]).

-spec init() -> ok.
init() ->
    [
        persistent_term:put({?MODULE, Tier}, application:get_env(shop, env(Tier), 0))
     || Tier <- ?TIERS
    ],
    persistent_term:put({?MODULE, block}, binary:copy(<<"shop">>, 8)).

-spec burn(shop_truth:tier()) -> ok.
burn(Tier) ->
    rounds(persistent_term:get({?MODULE, Tier}), persistent_term:get({?MODULE, block})).

rounds(0, _Block) ->
    ok;
rounds(N, Block) ->
    _ = erlang:md5(Block),
    rounds(N - 1, Block).

env(http) -> http_cost;
env(pool) -> pool_cost;
env(storage) -> storage_cost;
env(render) -> render_cost;
env(accounting) -> accounting_cost.
