%% SPDX-License-Identifier: Apache-2.0
%% @doc What the collector is told of a trace while there is a connection: its tiers, how many
%% messages it made, its ledger, its state.
-module(kprof_telling).

-export([tiers/3, total/3, clock/4, state/5, tripped/3]).

%% @doc The tiers, and what the node wants to get back.
-spec tiers(kprof_tiers:tiers(), kprof_outlets:outlets(), kprof_control:control()) ->
    ok | {error, term()}.
tiers(Tiers, Outlets, Control) ->
    Fields = maps:merge(kprof_tiers:fields(Tiers), kprof_outlets:fields(Outlets)),
    kprof_control:tell(kprof_protocol:tiers(Fields), Control).

%% @doc How many messages the last trace port gave in all. It is told before there is a next one,
%% whose labels begin otherwise.
-spec total(kprof_slots:slots(), kprof_arming:arming(), kprof_control:control()) ->
    kprof_arming:arming().
total(Slots, Arming, Control) ->
    Total = kprof_arming:total(Arming),
    case
        Total =/= none andalso kprof_control:is_connected(Control) andalso
            kprof_control:tell(kprof_protocol:total(kprof_slots:base_number(Slots), Total), Control)
    of
        ok -> kprof_arming:told(Arming);
        % it is told when the collector is back
        _ -> Arming
    end.

%% @doc The time, and what stands in the ledger by now. What was told is taken off it.
-spec clock(
    kprof_slots:slots(), kprof_ledger:ledger(), kprof_watch:watch(), kprof_control:control()
) ->
    {ok, kprof_ledger:ledger(), kprof_watch:watch()} | {error, term()}.
clock(Slots, Ledger, Watch, Control) ->
    Unsampled = kprof_slots:unsampled(Slots),
    Fields = maps:merge(kprof_ledger:fields(Ledger), kprof_watch:fields(Watch)),
    case kprof_control:tell(kprof_protocol:clock(Fields#{unsampled => Unsampled}), Control) of
        ok ->
            ok = kprof_slots:sub_unsampled(Slots, Unsampled),
            {ok, kprof_ledger:told(Ledger), kprof_watch:told(Watch)};
        {error, _} = Error ->
            Error
    end.

%% @doc The state of {@link kprof_life}, and why.
-spec state(
    atom(),
    unicode:chardata(),
    kprof_sampling:sampling(),
    kprof_ledger:ledger(),
    kprof_control:control()
) -> ok.
state(State, Text, Sampling, Ledger, Control) ->
    Fields = kprof_sampling:fields(Sampling),
    kprof_control:told(
        kprof_protocol:state(State, Text, Fields#{trips => kprof_ledger:trips(Ledger)}), Control
    ).

%% @doc The guard has tripped: also to the node's log. Returns the text. `Pause' is in ms.
-spec tripped(pos_integer(), kprof_sampling:sampling(), kprof_control:control()) ->
    unicode:chardata().
tripped(Pause, Sampling, Control) ->
    Text = io_lib:format(
        "the node made trace messages faster than its trace port takes them: tripped for ~b s, "
        "then ~ts",
        [Pause div 1000, kprof_sampling:describe(Sampling)]
    ),
    logger:warning("kprof: ~ts", [Text]),
    ok = kprof_control:told(kprof_protocol:stopped(tripped, Text), Control),
    Text.
