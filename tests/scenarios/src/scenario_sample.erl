%% SPDX-License-Identifier: Apache-2.0
%% Processes that do what is known: some work in two functions, a third of its reductions in one and
%% two thirds in the other; some sleep; one has a queue that grows by a message each 10 ms.
-module(scenario_sample).

-export([start/0, crowd/1, works/0, one/1, two/1, sleeps/0, is_full/0]).

-define(SLEEPERS, 5).

start() ->
    true = register(scenario_works, spawn(fun works/0)),
    Full = spawn(fun is_full/0),
    true = register(scenario_full, Full),
    {ok, _} = timer:send_interval(10, Full, message),
    [Sleeper | _] = [spawn(fun sleeps/0) || _ <- lists:seq(1, ?SLEEPERS)],
    true = register(scenario_sleeps, Sleeper),
    ok.

%% So many more that work, each under a name: scenario_works_1 and so on.
crowd(Count) ->
    [true = register(named(I), spawn(fun works/0)) || I <- lists:seq(1, Count)],
    ok.

named(I) -> list_to_atom("scenario_works_" ++ integer_to_list(I)).

works() ->
    one(20000),
    two(40000),
    works().

%% a reduction a turn, and no last call in works/0
one(0) -> ok;
one(N) -> one(N - 1).

two(0) -> ok;
two(N) -> two(N - 1).

sleeps() ->
    receive
        never -> ok
    end,
    sleeps().

is_full() ->
    receive
        never -> ok
    end,
    is_full().
