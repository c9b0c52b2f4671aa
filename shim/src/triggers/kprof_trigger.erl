%% SPDX-License-Identifier: Apache-2.0
%% @doc One trigger: when a value of the node has been above a limit for long enough, or is at a new
%% high-water mark, a run of stack sampling is due. A state machine over times and values, which
%% asks nobody and starts nothing; {@link kprof_triggers} does. Times are in ms, of one clock.
-module(kprof_trigger).

-export([new/1, spec/1, name/1, value/3, begun/2, put_off/2, refused/2, shown/2]).

-export_type([trigger/0, spec/0, of_what/0]).

% a high-water mark counts for so long
-define(MARK_MS, 300000).
% a run could not begin: until the next try
-define(RETRY_MS, 10000).

-type of_what() :: run_queue | message_queue_len | memory | reductions | {tier_p99, binary()}.
%% What its value is: processes that are ready to run; messages in the longest queue of a process;
%% bytes; reductions a second; the 99th percentile of a tier's calls, in ms.
-type spec() :: #{
    name := binary(),
    of_what := of_what(),
    above := number(),
    for_ms := non_neg_integer(),
    % then for_ms is 0
    high_water := boolean(),
    every_ms := pos_integer(),
    % of the run that is due
    sample := kprof_sample_options:wanted()
}.

-record(trigger, {
    spec :: spec(),
    value = none :: none | number(),
    % the value has been above since then
    since = none :: none | integer(),
    mark = none :: none | {number(), At :: integer()},
    % no run before
    next = none :: none | integer(),
    began = 0 :: non_neg_integer()
}).
-opaque trigger() :: #trigger{}.

%% @doc One that has seen no value.
-spec new(spec()) -> trigger().
new(Spec) ->
    #trigger{spec = Spec}.

%% @doc What it was made of.
-spec spec(trigger()) -> spec().
spec(#trigger{spec = Spec}) ->
    Spec.

%% @doc What it is called.
-spec name(trigger()) -> binary().
name(#trigger{spec = #{name := Name}}) ->
    Name.

%% @doc The value now. `due': a run is to begin; the caller says next whether one does ({@link
%% begun/2} or {@link put_off/2}).
-spec value(integer(), number(), trigger()) -> {wait | due, trigger()}.
value(_, Value, #trigger{spec = #{above := Above}} = T) when Value =< Above ->
    {wait, T#trigger{value = Value, since = none}};
value(Now, Value, #trigger{spec = #{high_water := true}, mark = Mark} = T0) ->
    T = T0#trigger{value = Value},
    case is_new(Now, Value, Mark) of
        true -> {may(Now, T), T#trigger{mark = {Value, Now}}};
        false -> {wait, T}
    end;
value(Now, Value, #trigger{since = none} = T) ->
    value(Now, Value, T#trigger{since = Now});
value(Now, Value, #trigger{spec = #{for_ms := For}, since = Since} = T) when Now - Since >= For ->
    {may(Now, T), T#trigger{value = Value}};
value(_, Value, T) ->
    {wait, T#trigger{value = Value}}.

is_new(_, _, none) -> true;
is_new(Now, _, {_, At}) when Now - At >= ?MARK_MS -> true;
is_new(_, Value, {Mark, _}) -> Value > Mark.

may(Now, #trigger{next = Next}) when Next =:= none; Now >= Next -> due;
may(_, _) -> wait.

%% @doc The run that was due begins.
-spec begun(integer(), trigger()) -> trigger().
begun(Now, #trigger{spec = #{every_ms := Every}, began = N} = T) ->
    T#trigger{next = Now + Every, began = N + 1}.

%% @doc The run that was due cannot begin now. The same value counts again in a while.
-spec put_off(integer(), trigger()) -> trigger().
put_off(Now, T) ->
    T#trigger{next = Now + ?RETRY_MS, mark = none}.

%% @doc The run that was told to have begun has not, as there is no collector, say.
-spec refused(integer(), trigger()) -> trigger().
refused(Now, #trigger{began = N} = T) ->
    put_off(Now, T#trigger{began = N - 1}).

%% @doc What it is and how it stands, as fields of a message to the collector. No value: none has
%% been seen. again_ms: until it may begin a run.
-spec shown(integer(), trigger()) -> #{atom() => kprof_msgpack:value()}.
shown(Now, #trigger{spec = #{sample := Sample} = Spec, value = Value, next = Next, began = N}) ->
    Written = maps:merge(maps:without([of_what, sample], Spec), of_what(Spec)),
    Run = maps:with([seconds, hz, label], Sample),
    Seen = maps:from_list([{value, Value} || Value =/= none]),
    Again =
        case Next of
            none -> 0;
            _ -> max(0, Next - Now)
        end,
    maps:merge(maps:merge(Written, Run), Seen#{began => N, again_ms => Again}).

of_what(#{of_what := {tier_p99, Tier}}) -> #{trigger => tier_p99, tier => Tier};
of_what(#{of_what := Gauge}) -> #{trigger => Gauge}.
