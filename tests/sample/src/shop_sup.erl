%% SPDX-License-Identifier: Apache-2.0
%% The top supervisor: storage, rendering, accounting, workers, then the HTTP front that uses them.
-module(shop_sup).
-behaviour(supervisor).

-export([start_link/0, init/1]).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    supervisor:start_link({local, ?MODULE}, ?MODULE, []).

-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    Groups = [
        group(Module, Env)
     || {Module, Env} <- [
            {shop_storage, storages},
            {shop_render, renderers},
            {shop_accounting, accountants},
            {shop_worker, workers}
        ]
    ],
    Front = [
        #{
            id => shop_conn_sup,
            type => supervisor,
            start => {shop_conn_sup, start_link, []}
        },
        #{id => shop_listener, start => {shop_listener, start_link, []}}
    ],
    {ok, {#{strategy => one_for_one}, Groups ++ Front}}.

group(Module, Env) ->
    {ok, Size} = application:get_env(shop, Env),
    #{id => Module, type => supervisor, start => {shop_group, start_link, [Module, Size]}}.
