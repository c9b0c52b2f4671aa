%% SPDX-License-Identifier: Apache-2.0
%% The application: prepares what all layers share, starts them, and on the way down lets the
%% bookings finish before tracing ends, so that a capture holds every call with its return.
-module(shop_app).
-behaviour(application).

-export([start/2, prep_stop/1, stop/1]).

-define(DRAIN_MS, 5000).

-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_Type, _Args) ->
    %% As a release would: no request pays for loading, and tracers find the functions.
    {ok, Modules} = application:get_key(shop, modules),
    ok = code:ensure_modules_loaded([uri_string | Modules]),
    shop_truth:init(),
    shop_cost:init(),
    shop_catalog:init(),
    shop_accounting:init_pending(),
    case shop_sup:start_link() of
        {ok, Sup} ->
            ok = shop_trace:start(),
            {ok, Sup};
        Error ->
            Error
    end.

-spec prep_stop(State) -> State.
prep_stop(State) ->
    _ = shop_accounting:drain(?DRAIN_MS),
    shop_trace:stop(),
    State.

-spec stop(term()) -> ok.
stop(_State) ->
    ok.
