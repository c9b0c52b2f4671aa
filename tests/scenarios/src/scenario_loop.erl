%% SPDX-License-Identifier: Apache-2.0
%% A tier that never returns: a server whose receive loop is itself the traced function, as kprof
%% must notice by its calls that pile up. Beside it an ordinary tier, which must go on being traced.
-module(scenario_loop).

-export([start/0, run/1, request/1]).
-export([serve/1, work/1]).

%% Starts the server, registered, and outlives who starts it.
-spec start() -> ok.
start() ->
    Self = self(),
    _ = spawn(fun() ->
        true = register(?MODULE, self()),
        Self ! up,
        serve(0)
    end),
    receive
        up -> ok
    end.

%% Runs N requests one after another, with a little pause so that the trace port is never busy.
-spec run(non_neg_integer()) -> ok.
run(0) ->
    ok;
run(N) ->
    N = kprof:do_apply(?MODULE, request, [N]),
    timer:sleep(2),
    run(N - 1).

-spec request(integer()) -> integer().
request(N) ->
    ?MODULE ! {work, self(), N},
    receive
        {done, N} -> N
    after 60000 -> exit(no_answer)
    end.

%% The loop. Every round is a call of its own under the token of the request that the message
%% brought.
-spec serve(integer()) -> no_return().
serve(Served) ->
    receive
        {work, From, N} ->
            From ! {done, work(N)},
            serve(Served + 1);
        {how_many, From} ->
            From ! {served, Served},
            serve(Served)
    end.

-spec work(integer()) -> integer().
work(N) -> N.
