%% SPDX-License-Identifier: Apache-2.0
%% The accountant: works on its own: the request does not wait for it.
-module(accounting).

-export([start/0, submit/1, incr_reqs/1]).

-spec start() -> ok.
start() ->
    scenario_embedded:server(?MODULE, fun({count, Kind}) -> incr_reqs(Kind) end).

-spec submit(atom()) -> ok.
submit(Kind) ->
    ?MODULE ! {count, Kind},
    ok.

-spec incr_reqs(atom()) -> ok.
incr_reqs(_Kind) ->
    ok.
