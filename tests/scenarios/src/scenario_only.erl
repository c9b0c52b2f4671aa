%% SPDX-License-Identifier: Apache-2.0
%% Processes that work for requests of two identities, in functions of which each belongs to one of
%% them. Workers take turns between red requests, blue ones and work of their own, with which they
%% go on under the token of the request before. Parts of requests run in a server, to which the
%% token comes with a message. An idle process holds the token of a request that is over, and
%% another one works and never gets any.
-module(scenario_only).

-export([start/0, request/2, red/1, blue/1, own/1, part_red/1, part_blue/1, plain/1]).

-define(TURN, 3000000).

start() ->
    true = register(scenario_server, spawn(fun server/0)),
    true = register(scenario_idle, spawn(fun idle/0)),
    true = register(scenario_plain, spawn(fun plain/0)),
    [true = register(named(I), spawn(fun() -> worker(0) end)) || I <- lists:seq(1, 3)],
    ok.

named(I) -> list_to_atom("scenario_worker_" ++ integer_to_list(I)).

worker(N) ->
    _ = request(red, N),
    _ = own(?TURN),
    _ = request(blue, N),
    _ = own(?TURN),
    worker(N + 1).

%% The entry. Each tenth one leaves its token with the idle process.
request(Kind, N) ->
    _ = work(Kind, ?TURN),
    _ = N rem 10 =:= 0 andalso (whereis(scenario_idle) ! {token_of, Kind}),
    Ref = make_ref(),
    scenario_server ! {Kind, Ref, self()},
    receive
        {Ref, done} -> ok
    end,
    work(Kind, ?TURN).

work(red, N) -> 1 + red(N);
work(blue, N) -> 1 + blue(N).

red(0) -> 0;
red(N) -> red(N - 1).

blue(0) -> 0;
blue(N) -> blue(N - 1).

own(0) -> 0;
own(N) -> own(N - 1).

part_red(0) -> 0;
part_red(N) -> part_red(N - 1).

part_blue(0) -> 0;
part_blue(N) -> part_blue(N - 1).

plain() ->
    _ = plain(?TURN),
    timer:sleep(10),
    plain().

plain(0) -> 0;
plain(N) -> plain(N - 1).

server() ->
    receive
        {Kind, Ref, From} ->
            _ =
                case Kind of
                    red -> part_red(?TURN);
                    blue -> part_blue(?TURN)
                end,
            From ! {Ref, done},
            server()
    end.

idle() ->
    receive
        {token_of, _} -> idle()
    end.
