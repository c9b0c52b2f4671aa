%% @doc How much the node traces: bytes of trace messages a second, as the relay counts them.
-module(kprof_load).

-export([new/0, counter/1, begin_at/2, look/2, rate/1, interval/0]).

-export_type([load/0]).

-define(INTERVAL_MS, 50).

-record(load, {counted = counters:new(1, []) :: counters:counters_ref(),
               bytes = 0 :: non_neg_integer(),    % at the last look
               at = 0 :: integer(),               % ms
               rate = 0 :: non_neg_integer()}).
-opaque load() :: #load{}.

%% @doc Nothing yet.
-spec new() -> load().
new() ->
    #load{}.

%% @doc Where the relay counts.
-spec counter(load()) -> counters:counters_ref().
counter(#load{counted = Counted}) ->
    Counted.

%% @doc Tracing begins now. `Now' is in ms.
-spec begin_at(integer(), load()) -> load().
begin_at(Now, #load{counted = Counted} = Load) ->
    Load#load{bytes = counters:get(Counted, 1), at = Now, rate = 0}.

%% @doc Takes a look, to be done every {@link interval/0} ms. The rate is smoothed over two or three of these: single requests are not the load.
-spec look(integer(), load()) -> load().
look(Now, #load{at = At} = Load) when Now - At < ?INTERVAL_MS div 2 ->
    Load;       % too short to tell
look(Now, #load{counted = Counted, bytes = Before, at = At, rate = Rate} = Load) ->
    Bytes = counters:get(Counted, 1),
    Load#load{bytes = Bytes, at = Now, rate = (Rate + (Bytes - Before) * 1000 div (Now - At)) div 2}.

%% @doc Bytes a second.
-spec rate(load()) -> non_neg_integer().
rate(#load{rate = Rate}) ->
    Rate.

%% @doc Milliseconds from one look to the next.
-spec interval() -> pos_integer().
interval() ->
    ?INTERVAL_MS.
