%% @doc What stands in the collector's ledger of the time that passes here: for how long nothing was traced, or less than was asked for,
%% and how often the breaker has tripped. All times are in ms.
-module(kprof_ledger).

-export([new/0, untraced/2, traced/2, lowered/2, tripped/1, trips/1, count/2, fields/1, told/1]).

-export_type([ledger/0]).

-record(ledger, {untraced_since = undefined :: undefined | integer(),
                 untraced_ms = 0 :: non_neg_integer(),     % this and what follows: not yet told to the collector
                 lowered_ms = 0 :: non_neg_integer(),
                 new_trips = 0 :: non_neg_integer(),
                 trips = 0 :: non_neg_integer()}).         % of the whole trace
-opaque ledger() :: #ledger{}.

%% @doc Of a trace that begins.
-spec new() -> ledger().
new() ->
    #ledger{}.

%% @doc From now on nothing is traced; so it was already is fine.
-spec untraced(integer(), ledger()) -> ledger().
untraced(Now, #ledger{untraced_since = undefined} = Ledger) -> Ledger#ledger{untraced_since = Now};
untraced(_, Ledger) -> Ledger.

%% @doc From now on it is.
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
count(Now, #ledger{untraced_since = Since, untraced_ms = Ms} = Ledger) ->
    Ledger#ledger{untraced_since = Now, untraced_ms = Ms + Now - Since}.

%% @doc What the collector is told of it.
-spec fields(ledger()) -> #{paused_ms := non_neg_integer(), lowered_ms := non_neg_integer(), trips := non_neg_integer()}.
fields(#ledger{untraced_ms = Untraced, lowered_ms = Lowered, new_trips = Trips}) ->
    #{paused_ms => Untraced, lowered_ms => Lowered, trips => Trips}.

%% @doc It was told that.
-spec told(ledger()) -> ledger().
told(Ledger) ->
    Ledger#ledger{untraced_ms = 0, lowered_ms = 0, new_trips = 0}.
