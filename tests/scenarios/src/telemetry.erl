%% SPDX-License-Identifier: Apache-2.0
%% What Kprof.Plug asks telemetry's module of this name, for scenario_web_plug.
-module(telemetry).

-export([start/0, attach_many/4, execute/3]).

-type handler() :: fun(([atom()], map(), map(), term()) -> term()).

%% Where it has not run, nothing can be attached.
-spec start() -> ok.
start() -> persistent_term:put(?MODULE, []).

-spec attach_many(term(), [[atom()]], handler(), term()) -> ok.
attach_many(_, Events, Handler, Config) when is_list(Events) ->
    [] = persistent_term:get(?MODULE),
    persistent_term:put(?MODULE, [{Event, Handler, Config} || Event <- Events]).

-spec execute([atom()], map(), map()) -> ok.
execute(Event, Measurements, Metadata) ->
    _ = [
        Handler(Event, Measurements, Metadata, Config)
     || {E, Handler, Config} <- persistent_term:get(?MODULE, []), E =:= Event
    ],
    ok.
