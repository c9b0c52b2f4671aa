%% SPDX-License-Identifier: Apache-2.0
%% What Kprof.Plug asks Phoenix's module of this name, for scenario_web_plug.
-module('Elixir.Phoenix.Router').

-export([route_info/4]).

-spec route_info(module(), binary(), [binary()], binary()) -> map() | error.
route_info('Elixir.Shop.Router', <<"GET">>, [<<"slow">>], <<"h">>) ->
    #{route => <<"/slow">>, plug => nobody, path_params => #{}};
route_info('Elixir.Shop.Inner', <<"GET">>, [], <<"h">>) ->
    #{route => <<"/">>, plug => nobody, path_params => #{}};
route_info('Elixir.Shop.Router', _, _, _) ->
    error.
