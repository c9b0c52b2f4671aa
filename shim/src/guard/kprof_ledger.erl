%% SPDX-License-Identifier: Apache-2.0
%% @doc What stands in the collector's ledger of the time that passes here: for how long nothing was
%% traced, or less than was asked for, and how often the breaker has tripped. All times are in ms.
-module(kprof_ledger).

-export([
    new/0,
    untraced/3,
    gone/2,
    wanted/2,
    traced/2,
    lowered/2,
    tripped/1,
    trips/1,
    count/2,
    fields/1,
    told/1
]).

-export_type([ledger/0, why/0]).

% somebody wants no trace; the breaker has tripped; there is no collector
-type why() :: asked | tripped | away.
-record(ledger, {
    untraced_since = undefined :: undefined | integer(),
    % it is untraced; resumed: asked, up to now
    why = asked :: why() | resumed,
    % this and what follows: not yet told to the collector
    untraced_ms = #{} :: #{why() | resumed => non_neg_integer()},
    lowered_ms = 0 :: non_neg_integer(),
    new_trips = 0 :: non_neg_integer(),
    % of the whole trace
    trips = 0 :: non_neg_integer()
}).
-opaque ledger() :: #ledger{}.

%% @doc Of a trace that begins.
-spec new() -> ledger().
new() ->
    #ledger{}.

%% @doc From now on nothing is traced, for this reason. What somebody asked for stays the reason
%% until they want to be traced again.
-spec untraced(integer(), why(), ledger()) -> ledger().
untraced(Now, Why, #ledger{untraced_since = undefined} = Ledger) ->
    Ledger#ledger{untraced_since = Now, why = Why};
untraced(_, away, #ledger{why = asked} = Ledger) ->
    Ledger;
untraced(Now, Why, Ledger) ->
    (count(Now, Ledger))#ledger{why = Why}.

%% @doc The collector has gone: where nothing was traced already, that goes on for its own reason.
-spec gone(integer(), ledger()) -> ledger().
gone(Now, #ledger{untraced_since = undefined} = Ledger) -> untraced(Now, away, Ledger);
gone(_, Ledger) -> Ledger.

%% @doc Whoever wanted no trace wants one again: what may hold it up from now on is that there is no
%% collector.
-spec wanted(integer(), ledger()) -> ledger().
wanted(Now, Ledger) ->
    (count(Now, Ledger))#ledger{why = resumed}.

%% @doc From now on something is traced.
-spec traced(integer(), ledger()) -> ledger().
traced(Now, Ledger) ->
    (count(Now, Ledger))#ledger{untraced_since = undefined}.

%% @doc For so long less was traced than was asked for.
-spec lowered(non_neg_integer(), ledger()) -> ledger().
lowered(Ms, #ledger{lowered_ms = Before} = Ledger) ->
    Ledger#ledger{lowered_ms = Before + Ms}.

%% @doc The breaker has tripped.
-spec tripped(ledger()) -> ledger().
tripped(#ledger{trips = All, new_trips = New} = Ledger) ->
    Ledger#ledger{trips = All + 1, new_trips = New + 1}.

%% @doc How often it has.
-spec trips(ledger()) -> non_neg_integer().
trips(#ledger{trips = Trips}) ->
    Trips.

%% @doc Counts what has passed until now.
-spec count(integer(), ledger()) -> ledger().
count(_, #ledger{untraced_since = undefined} = Ledger) ->
    Ledger;
count(Now, #ledger{untraced_since = Since, why = Why, untraced_ms = Ms} = Ledger) ->
    Ledger#ledger{
        untraced_since = Now,
        untraced_ms = maps:update_with(
            Why, fun(Before) -> Before + Now - Since end, Now - Since, Ms
        )
    }.

%% @doc What the collector is told of it: off_ms is all the time without a trace, of which
%% tripped_ms and away_ms are parts.
-spec fields(ledger()) ->
    #{
        off_ms := non_neg_integer(),
        tripped_ms := non_neg_integer(),
        away_ms := non_neg_integer(),
        lowered_ms := non_neg_integer(),
        trips := non_neg_integer()
    }.
fields(#ledger{untraced_ms = Untraced, lowered_ms = Lowered, new_trips = Trips}) ->
    #{
        off_ms => lists:sum(maps:values(Untraced)),
        tripped_ms => maps:get(tripped, Untraced, 0),
        away_ms => maps:get(away, Untraced, 0),
        lowered_ms => Lowered,
        trips => Trips
    }.

%% @doc It was told that.
-spec told(ledger()) -> ledger().
told(Ledger) ->
    Ledger#ledger{untraced_ms = #{}, lowered_ms = 0, new_trips = 0}.
