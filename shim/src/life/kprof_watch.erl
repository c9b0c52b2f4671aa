%% SPDX-License-Identifier: Apache-2.0
%% @doc What a trace looks at every half second: flags and functions that others changed ({@link
%% kprof_upkeep}), processes that work under the label of a request that is over ({@link
%% kprof_stale}), and whether anything begins a request at all ({@link kprof_unmarked}).
-module(kprof_watch).

-export([new/0, begin_at/3, look/2, messages_lost/3, disarmed/1, foreign_tracer/2]).
-export([stale/5, due/2, changed/3]).
-export([warnings/2, armed/3, fields/1, told/1]).

-export_type([watch/0, watched/0]).

-record(watch, {
    seen = kprof_upkeep:new() :: kprof_upkeep:seen(),
    stale = kprof_stale:new() :: kprof_stale:stale(),
    unmarked = kprof_unmarked:new() :: kprof_unmarked:unmarked()
}).
-opaque watch() :: #watch{}.

%% The trace's parts that are looked at. `outlets' are its own processes, which are not traced.
-type watched() :: #{
    slots := kprof_slots:slots(),
    tiers := kprof_tiers:tiers(),
    arming := kprof_arming:arming(),
    control := kprof_control:control(),
    outlets := [pid()],
    _ => _
}.

%% @doc Nothing has been looked at.
-spec new() -> watch().
new() ->
    #watch{}.

%% @doc All was set at that time, in native units.
-spec begin_at(integer(), watched(), watch()) -> watch().
begin_at(SetAt, #{tiers := Tiers, arming := Arming, control := Control}, #watch{seen = Seen} = W) ->
    Tracer = kprof_arming:tracer(Arming),
    W#watch{seen = kprof_upkeep:begin_at(SetAt, Tiers, Tracer, Control, Seen)}.

%% @doc Takes a look, while all is armed: sets flags again, and tells the collector of it.
-spec look(watched(), watch()) -> watch().
look(Watched, #watch{seen = Seen} = W) ->
    #{tiers := Tiers, arming := Arming, control := Control, outlets := Outlets} = Watched,
    unmarked(Watched, W#watch{seen = kprof_upkeep:look(Tiers, Outlets, Arming, Control, Seen)}).

unmarked(#{slots := Slots, tiers := Tiers, arming := Arming}, #watch{unmarked = Unmarked} = W) ->
    Tracer = kprof_arming:tracer(Arming),
    Begun =
        kprof_slots:seen(Slots) > 0 orelse kprof_tiers:entered(Tiers) orelse
            kprof_arming:messages(Arming) > 0,
    MFAs = [MFA || #{mfa := MFA} <- kprof_tiers:list(Tiers)],
    Now = erlang:monotonic_time(millisecond),
    Looked = W#watch{unmarked = kprof_unmarked:look(Now, Begun, Tracer, MFAs, Unmarked)},
    ok = kprof_guard:yield(Tracer, kprof_tiers:patterns(Tiers)),
    Looked.

%% @doc Somebody else is told which messages processes take now, as the line says.
-spec messages_lost(Line :: string(), watched(), watch()) -> ok.
messages_lost(Line, #{control := Control}, #watch{seen = Seen}) ->
    kprof_upkeep:messages_lost(Line, Control, Seen).

%% @doc All is undone.
-spec disarmed(watch()) -> watch().
disarmed(#watch{unmarked = Unmarked} = W) ->
    W#watch{unmarked = kprof_unmarked:disarmed(Unmarked)}.

%% @doc That tracer, of somebody else, keeps us from arming.
-spec foreign_tracer(term(), watch()) -> watch().
foreign_tracer(Tracer, #watch{seen = Seen} = W) ->
    W#watch{seen = kprof_upkeep:foreign_tracer(Tracer, Seen)}.

%% --- labels of requests that are over ---

%% @doc The collector was told, at `Now' in ms, of a call of this tier under the label of a request
%% that is over. Unknown tiers and labels of other nodes change nothing.
-spec stale(integer(), Tier :: binary(), kprof_slots:label(), watched(), watch()) -> watch().
stale(Now, Tier, Label, #{slots := Slots, tiers := Tiers}, #watch{stale = Stale} = W) ->
    Known = lists:any(fun(#{name := Name}) -> Name =:= Tier end, kprof_tiers:list(Tiers)),
    case Known andalso kprof_slots:whose(Slots, Label) =/= foreign of
        true -> W#watch{stale = kprof_stale:told(Now, Tier, Label, Stale)};
        false -> W
    end.

%% @doc The labels that tiers are to be taken off for, if it is time for that: {@link
%% kprof_stale:due/2}.
-spec due(integer(), watch()) -> {#{Tier :: binary() => [kprof_slots:label()]}, watch()}.
due(Now, #watch{stale = Before} = W) ->
    {Labels, Stale} = kprof_stale:due(Now, Before),
    {Labels, W#watch{stale = Stale}}.

%% @doc That has been done, from `Began' to `Ended', in ms.
-spec changed(integer(), integer(), watch()) -> watch().
changed(Began, Ended, #watch{stale = Stale} = W) ->
    W#watch{stale = kprof_stale:changed(Began, Ended, Stale)}.

%% --- what is said of it ---

%% @doc A line of text for each tier whose function is not on this node, one when there are
%% processes that cannot be traced, and one when there are no tiers.
-spec warnings(kprof_tiers:tiers(), watch()) -> [string()].
warnings(Tiers, #watch{seen = Seen}) ->
    nothing(kprof_tiers:list(Tiers)) ++ kprof_upkeep:warnings(Tiers, Seen).

nothing([]) -> ["no tiers and no entry: no requests are timed, only stacks can be sampled"];
nothing(_) -> [].

%% @doc What is armed, and what is not.
-spec armed(kprof_tiers:tiers(), kprof_arming:arming(), watch()) -> [kprof_armed:line()].
armed(AllTiers, Arming, #watch{seen = Seen, unmarked = Unmarked}) ->
    Tiers = kprof_tiers:list(AllTiers),
    Calls = kprof_unmarked:calls(Unmarked),
    kprof_armed:lines(Tiers, kprof_arming:tracer(Arming)) ++
        [
            {warning, unicode:characters_to_binary(Line)}
         || Line <-
                kprof_arming:warnings(Arming) ++ nothing(Tiers) ++ kprof_upkeep:foreign(Seen) ++
                    kprof_armed:unmarked(Calls, Tiers)
        ].

%% @doc What the collector's ledger is told: {@link kprof_unmarked:fields/1}.
-spec fields(watch()) -> #{unmarked := non_neg_integer(), unmarked_calls := non_neg_integer()}.
fields(#watch{unmarked = Unmarked}) ->
    kprof_unmarked:fields(Unmarked).

%% @doc It was told that.
-spec told(watch()) -> watch().
told(#watch{unmarked = Unmarked} = W) ->
    W#watch{unmarked = kprof_unmarked:told(Unmarked)}.
