%% SPDX-License-Identifier: Apache-2.0
%% A group of like gen_servers under one supervisor, each registered as Module_N, so that a
%% restarted member is found again. Members are picked by key or in turn.
-module(shop_group).
-behaviour(supervisor).

-export([start_link/2, init/1, by_key/2, next/1, members/1]).

-spec start_link(module(), pos_integer()) -> {ok, pid()} | {error, term()}.
start_link(Module, Size) ->
    supervisor:start_link(?MODULE, {Module, Size}).

-spec init({module(), pos_integer()}) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init({Module, Size}) ->
    Names = [name(Module, N) || N <- lists:seq(0, Size - 1)],
    persistent_term:put({?MODULE, Module}, {list_to_tuple(Names), atomics:new(1, [])}),
    {ok,
        {#{strategy => one_for_one}, [
            #{id => Name, start => {Module, start_link, [Name, {N, Size}]}}
         || {N, Name} <- lists:zip(lists:seq(0, Size - 1), Names)
        ]}}.

%% The member that owns Key, always the same one.
-spec by_key(module(), term()) -> atom().
by_key(Module, Key) ->
    {Names, _} = persistent_term:get({?MODULE, Module}),
    element(erlang:phash2(Key, tuple_size(Names)) + 1, Names).

%% The members in turn.
-spec next(module()) -> atom().
next(Module) ->
    {Names, Turn} = persistent_term:get({?MODULE, Module}),
    element(atomics:add_get(Turn, 1, 1) rem tuple_size(Names) + 1, Names).

-spec members(module()) -> [atom()].
members(Module) ->
    {Names, _} = persistent_term:get({?MODULE, Module}),
    tuple_to_list(Names).

%% The atoms are bounded by the group's size.
name(Module, N) ->
    list_to_atom(atom_to_list(Module) ++ "_" ++ integer_to_list(N)).
