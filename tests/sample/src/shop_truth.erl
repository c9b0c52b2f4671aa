%% SPDX-License-Identifier: Apache-2.0
%% The independent truth: how often each tier was called for each route, how often it failed and how
%% long it took, counted by the application itself and exact. What a tracer says is compared with
%% it.
-module(shop_truth).

-export([init/0, span/3, read/0, tiers/0, routes/0]).
-export_type([tier/0, route/0]).

-type tier() :: http | pool | storage | render | accounting.
-type route() :: read | search | create | update | delete | order | unknown.

-define(ROUTES, 7).
% calls, errors, inclusive ns
-define(FIELDS, 3).

%% The functions behind the tiers, as kprof.config names them too.
-spec tiers() -> [{tier(), mfa()}].
tiers() ->
    [
        {http, {shop_http, handle_request, 2}},
        {pool, {shop_worker, work, 2}},
        {storage, {shop_storage, run, 2}},
        {render, {shop_render, page, 2}},
        {accounting, {shop_accounting, book, 1}}
    ].

-spec routes() -> [route()].
routes() ->
    [read, search, create, update, delete, order, unknown].

-spec init() -> ok.
init() ->
    Counters =
        case application:get_env(shop, truth, true) of
            true -> counters:new(length(tiers()) * ?ROUTES * ?FIELDS, [atomics]);
            false -> off
        end,
    persistent_term:put(?MODULE, Counters).

%% Runs Fun as one call of Tier. Counted when it ends: who has seen the response to a request
%% finds all its synchronous calls in the counters.
-spec span(tier(), route(), fun(() -> Result)) -> Result.
span(Tier, Route, Fun) ->
    case persistent_term:get(?MODULE) of
        off -> Fun();
        Counters -> timed(Counters, slot(Tier, Route), Fun)
    end.

timed(Counters, Slot, Fun) ->
    Start = erlang:monotonic_time(nanosecond),
    try
        Fun()
    catch
        Class:Reason:Stack ->
            counters:add(Counters, Slot + 1, 1),
            erlang:raise(Class, Reason, Stack)
    after
        counters:add(Counters, Slot, 1),
        counters:add(Counters, Slot + 2, erlang:monotonic_time(nanosecond) - Start)
    end.

%% #{routes => #{Route => ...}, tiers => #{Tier => #{Route => ...}}, pending => bookings to come};
%% exact once the clients are quiet and pending is 0.
-spec read() -> map().
read() ->
    Pending = shop_accounting:pending(),
    case persistent_term:get(?MODULE) of
        off ->
            #{enabled => false, pending => Pending};
        Counters ->
            Tiers = maps:from_list([{Tier, rows(Counters, Tier)} || {Tier, _} <- tiers()]),
            Routes = maps:map(
                fun(_Route, #{calls := Calls, errors := Errors}) ->
                    #{requests => Calls, errors => Errors}
                end,
                maps:get(http, Tiers)
            ),
            #{enabled => true, pending => Pending, routes => Routes, tiers => Tiers}
    end.

rows(Counters, Tier) ->
    maps:from_list([{Route, row(Counters, slot(Tier, Route))} || Route <- routes()]).

row(Counters, Slot) ->
    #{
        calls => counters:get(Counters, Slot),
        errors => counters:get(Counters, Slot + 1),
        inclusive_ns => counters:get(Counters, Slot + 2)
    }.

slot(Tier, Route) ->
    (tier_index(Tier) * ?ROUTES + route_index(Route)) * ?FIELDS + 1.

tier_index(http) -> 0;
tier_index(pool) -> 1;
tier_index(storage) -> 2;
tier_index(render) -> 3;
tier_index(accounting) -> 4.

route_index(read) -> 0;
route_index(search) -> 1;
route_index(create) -> 2;
route_index(update) -> 3;
route_index(delete) -> 4;
route_index(order) -> 5;
route_index(unknown) -> 6.
