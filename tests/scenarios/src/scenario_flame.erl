%% SPDX-License-Identifier: Apache-2.0
%% Requests whose tree of calls is known: nested, last, recursive and catching calls, funs, a server
%% of OTP's and one with a loop of its own. What each function runs for by itself is measured where
%% it runs, by spinning in a function that is not traced.
-module(scenario_flame).
-behaviour(gen_server).

-import(scenario_flame_spin, [spin/2, sleep/2]).

-export([start/0, requests/1]).
-export([init/1, handle_call/3, handle_cast/2]).
-export([handle/1, nested/0, inner/0, last/0, behind/0, deep/1, leaf/0, catching/0, raising/0]).
-export([funs/0, each/1, serve/0, work/0, loop/0]).

%% One process makes all requests; it and both servers live as long as the node.
start() ->
    ok = scenario_flame_spin:start(),
    {ok, _} = gen_server:start({local, scenario_flame_server}, ?MODULE, [], []),
    true = register(scenario_flame_loop, spawn(fun loop/0)),
    true = register(scenario_flame_client, spawn(fun client/0)),
    ok.

client() ->
    receive
        {make, From, N} ->
            scenario_flame_spin:requests(fun ?MODULE:handle/1, N),
            From ! {made, N}
    end,
    client().

requests(N) ->
    scenario_flame_client ! {make, self(), N},
    receive
        {made, N} -> ok
    end.

%% --- the tree ---

handle(_) ->
    spin(handle, 2),
    nested(),
    ok = last(),
    {3, _} = deep(3),
    caught = catching(),
    [ok, ok] = funs(),
    scenario_flame_loop ! {self(), work},
    receive
        done -> ok
    end,
    ok = gen_server:call(scenario_flame_server, serve),
    sleep(handle, 5),
    spin(handle, 1).

nested() ->
    spin(nested, 1),
    inner(),
    spin(nested, 1).

inner() ->
    spin(inner, 2),
    ok.

%% its frame is over when behind/0 begins
last() ->
    spin(last, 1),
    behind().

behind() ->
    spin(behind, 3),
    ok.

deep(0) ->
    leaf();
deep(N) ->
    spin(deep, 1),
    R = deep(N - 1),
    {N, R}.

leaf() ->
    spin(leaf, 1),
    ok.

catching() ->
    try
        raising()
    catch
        throw:raised ->
            spin(catching, 1),
            caught
    end.

raising() ->
    spin(raising, 1),
    throw(raised).

funs() ->
    lists:map(fun each/1, [1, 2]).

each(_) ->
    spin(each, 1),
    ok.

loop() ->
    receive
        {From, work} ->
            work(),
            From ! done,
            loop()
    end.

work() ->
    spin(work, 4),
    ok.

init([]) -> {ok, []}.

handle_call(serve, _, S) ->
    spin(handle_call, 1),
    serve(),
    {reply, ok, S}.

handle_cast(_, S) -> {noreply, S}.

serve() ->
    spin(serve, 3),
    ok.
