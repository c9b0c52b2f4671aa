%% SPDX-License-Identifier: Apache-2.0
%% @doc Triggers as a trace sees them: its {@link kprof_lookout} is started with the first of them,
%% gets what tools want, and what it tells goes to the node's log and to the collector.
-module(kprof_triggers).

-export([new/1, processes/1, p99/1, order/4, give/2, event/3, ended/4, stop/1]).

-export_type([triggers/0, order/0, around/0]).

-record(triggers, {
    % the lookout first
    processes :: [pid(), ...],
    % the tiers whose 99th percentile it wants to know
    p99 :: [binary()]
}).
-opaque triggers() :: none | #triggers{}.
-type order() :: {add, #{binary() => kprof_msgpack:value()}} | {remove, all | binary()} | list.
%% What a tool wants.
-type around() :: #{
    control := kprof_control:control(), tiers := kprof_tiers:tiers(), atom() => term()
}.
%% What it has to know of the trace.

%% @doc Those of a trace's options. The caller is their owner: it is linked to the lookout, and gets
%% its messages.
-spec new([kprof_trigger:spec()]) -> triggers().
new([]) ->
    none;
new(Specs) ->
    P99 = lists:usort([Tier || #{of_what := {tier_p99, Tier}} <- Specs]),
    #triggers{processes = kprof_lookout:start_link(Specs, fun kprof_life:sample/1), p99 = P99}.

%% @doc Their processes, which are not traced.
-spec processes(triggers()) -> [pid()].
processes(none) -> [];
processes(#triggers{processes = Pids}) -> Pids.

%% @doc The tiers whose 99th percentile they want to know.
-spec p99(triggers()) -> [binary()].
p99(none) -> [];
p99(#triggers{p99 = Tiers}) -> Tiers.

%% @doc A tool wants something done. It is answered at once, or when the lookout has done it.
-spec order(Id :: term(), order(), around(), triggers()) -> triggers().
order(Id, {add, Written}, Around, Triggers) ->
    case kprof_trigger_options:sent(Written) of
        {ok, Spec} -> add(Id, Spec, is_tier(Spec, Around), Around, Triggers);
        {error, Reason} -> refused(Id, Reason, Around, Triggers)
    end;
order(Id, list, Around, none) ->
    steered(Id, true, "", [], Around, none);
order(Id, {remove, all}, Around, none) ->
    steered(Id, true, "there are no triggers", [], Around, none);
order(Id, {remove, Name}, Around, none) ->
    refused(Id, {no_trigger, Name}, Around, none);
order(Id, Order, _, Triggers) ->
    tell({order, Id, Order}, Triggers).

add(Id, Spec, true, Around, none) ->
    add(Id, Spec, true, Around, started());
add(Id, Spec, true, _, Triggers) ->
    tell({order, Id, {add, Spec}}, Triggers);
add(Id, #{of_what := {tier_p99, Tier}}, false, Around, Triggers) ->
    refused(Id, {no_tier, Tier}, Around, Triggers).

started() ->
    #triggers{processes = kprof_lookout:start_link([], fun kprof_life:sample/1), p99 = []}.

is_tier(#{of_what := {tier_p99, Tier}}, #{tiers := Tiers}) ->
    lists:any(fun(#{name := Name}) -> Name =:= Tier end, kprof_tiers:list(Tiers));
is_tier(_, _) ->
    true.

refused(Id, Reason, Around, Triggers) ->
    steered(Id, false, kprof_error:format(Reason), [], Around, Triggers).

steered(Id, Ok, Text, List, #{control := Control}, Triggers) ->
    ok = kprof_control:told(kprof_protocol:steered(Id, Ok, Text, List), Control),
    Triggers.

tell(Message, #triggers{processes = [Lookout | _]} = Triggers) ->
    Lookout ! Message,
    Triggers.

%% @doc The collector has told 99th percentiles of tiers, in ms.
-spec give([{binary(), number()}], triggers()) -> ok.
give(_, none) ->
    ok;
give(Tiers, Triggers) ->
    _ = tell({p99, Tiers}, Triggers),
    ok.

%% @doc What the lookout has told.
-spec event(kprof_lookout:told(), around(), triggers()) -> triggers().
event({_, Pid, What}, Around, #triggers{processes = [Pid | _]} = Triggers) ->
    told(What, Around, Triggers);
event(_, _, Triggers) ->
    Triggers.

told({event, Text}, #{control := Control}, Triggers) ->
    logger:notice("kprof: ~ts", [Text]),
    ok = kprof_control:told(kprof_protocol:event(Text), Control),
    Triggers;
told({done, Id, Ok, Text, List, P99}, Around, Triggers) ->
    steered(Id, Ok, Text, List, Around, Triggers#triggers{p99 = P99}).

%% @doc A linked process has ended: it may be the lookout, before its time. Its triggers are gone.
-spec ended(pid() | port(), term(), around(), triggers()) -> triggers().
ended(Pid, Why, #{control := Control}, #triggers{processes = [Pid | _]}) ->
    Text = io_lib:format("the triggers are gone: ~0tP", [Why, 20]),
    logger:error("kprof: ~ts", [Text]),
    ok = kprof_control:told(kprof_protocol:event(Text), Control),
    none;
ended(_, _, _, Triggers) ->
    Triggers.

%% @doc The trace ends, and they with it.
-spec stop(triggers()) -> ok.
stop(none) ->
    ok;
stop(#triggers{processes = [Lookout | _]}) ->
    true = exit(Lookout, shutdown),
    ok.
