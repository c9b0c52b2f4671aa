%% SPDX-License-Identifier: Apache-2.0
%% @doc The numbers that request processes read on every `set_token': one array of atomics, found
%% through one persistent term. The term is put once when the application starts and erased when it
%% stops, so that switching tracing on and off never makes the node scan its processes for an old
%% literal.
%%
%% Words that many schedulers write stand on cache lines apart from the ones that everybody reads:
%% ```
%%   1        one_in: 0 = tracing is off, N = one request in N gets a token
%%   2        base: the label base of the running trace
%%   3..9     bases of earlier traces, newest first: their labels are ours, but stale
%%   10       time between two tokens, in the unit of per_second/0; 0 = no bound
%%   11       1 = identities have weights
%%   12       requests a second that a header may force a sample of, 0: none
%%   13       how many of them the guard lets through
%%   14       1 = a header may ask for a full trace of its request
%%   15       the label of the request that is traced so, 0: none
%%   16       when the last refusal of such a trace was told, in s
%%   17       requests seen by the sampler
%%   18       1 = the tracer is told of messages that processes send and take
%%   25       the time in ms up to which such traces are used up
%%   33       requests that the sampler left out, not yet told to the collector
%%   49       the time in us up to which forced samples are used up
%%   57       when the next token is due, in that unit
%%   65..     ring of labels whose request has ended, at 65 + label rem 8192
%%   8257..   ring of labels that a process of their request was without for a while, at 8257 +
%%            label rem 8192
%% '''
-module(kprof_slots).

-export([
    create/0,
    erase/0,
    find/0,
    open/2,
    close/1,
    set_one_in/2,
    one_in/1,
    base/1,
    old_bases/1,
    base_number/1,
    new_base/0,
    next/1,
    seen/1,
    is_label/1,
    count_unsampled/1, count_unsampled/2,
    unsampled/1,
    sub_unsampled/2,
    set_forced/2,
    lower_forced/2,
    may_force/1,
    set_interval/2,
    interval/1,
    take_due/3,
    per_second/0,
    set_weighted/2,
    is_weighted/1,
    set_takes/2,
    takes/1,
    take_forced/1,
    set_flame_header/2,
    may_flame/1,
    take_flame/1,
    charge_flame/2,
    take_refusal/1,
    set_full/2,
    full/1,
    whose/2,
    mark_ended/2,
    ended/2,
    mark_lost/2,
    lost/2
]).

-export_type([slots/0, label/0]).

-define(KEY, kprof_slots).
-define(ONE_IN, 1).
-define(BASE, 2).
-define(OLD_BASES, 7).
-define(INTERVAL, 10).
-define(WEIGHTED, 11).
-define(FORCED, 12).
-define(FORCED_NOW, 13).
-define(FLAMES, 14).
-define(FULL, 15).
-define(REFUSED, 16).
-define(SEEN, 17).
-define(TAKES, 18).
-define(FLAMES_UNTIL, 25).
-define(UNSAMPLED, 33).
-define(FORCED_UNTIL, 49).
-define(DUE, 57).
% of time, in a microsecond: fine enough for a million tokens a second, and times are still small
% integers
-define(UNITS, 64).
-define(TRIES, 3).
% full traces that headers ask for: five at once, and then five a minute
-define(FLAME_MS, 12000).
-define(FLAMES_AHEAD_MS, 60000).
% patterns stand a tenth of the time at most
-define(FLAME_PRICE, 10).
-define(HOUR_MS, 3600000).
-define(RING, 65).
-define(RING_SIZE, 8192).
-define(LOST_RING, (?RING + ?RING_SIZE)).
-define(BASE_BITS, 26).
-define(LABEL_BITS, 32).
-define(LABEL_MASK, 16#ffffffff).

-type slots() :: atomics:atomics_ref().
-type label() :: pos_integer().
%% A request's label: a random base of 26 bits above a counter of 31, or what {@link kprof_entry}
%% makes of its own.

%% @doc Makes the array and publishes it. An array that is already there is kept and returned.
-spec create() -> slots().
create() ->
    case find() of
        undefined ->
            Slots = atomics:new(?LOST_RING + ?RING_SIZE - 1, [{signed, true}]),
            persistent_term:put(?KEY, Slots),
            Slots;
        Slots ->
            Slots
    end.

%% @doc Takes the persistent term away. Costs the node one scan of all processes, as every erase
%% does.
-spec erase() -> boolean().
erase() ->
    persistent_term:erase(?KEY).

%% @doc The array, or `undefined' while the application does not run.
-spec find() -> slots() | undefined.
find() ->
    persistent_term:get(?KEY, undefined).

%% @doc Begins a trace: remembers the base in force as an old one and installs `Base'. Tokens are
%% still off.
-spec open(slots(), non_neg_integer()) -> ok.
open(Slots, Base) ->
    ok = atomics:put(Slots, ?ONE_IN, 0),
    ok = atomics:put(Slots, ?SEEN, 0),
    Olds = [atomics:get(Slots, ?BASE + I) || I <- lists:seq(0, ?OLD_BASES - 1)],
    lists:foreach(
        fun({I, B}) -> atomics:put(Slots, ?BASE + I, B) end,
        lists:zip(lists:seq(1, ?OLD_BASES), Olds)
    ),
    atomics:put(Slots, ?BASE, Base).

%% @doc Ends a trace: from now on `set_token' does nothing.
-spec close(slots()) -> ok.
close(Slots) ->
    atomics:put(Slots, ?ONE_IN, 0).

%% @doc Sets the sampling: 0 is off, N is one request in N.
-spec set_one_in(slots(), non_neg_integer()) -> ok.
set_one_in(Slots, N) ->
    atomics:put(Slots, ?ONE_IN, N).

%% @doc The sampling in force; 0 is off.
-spec one_in(slots()) -> non_neg_integer().
one_in(Slots) ->
    atomics:get(Slots, ?ONE_IN).

%% @doc Sets the time between two tokens; 0 is no bound.
-spec set_interval(slots(), non_neg_integer()) -> ok.
set_interval(Slots, Interval) ->
    atomics:put(Slots, ?DUE, now_units()),
    atomics:put(Slots, ?INTERVAL, Interval).

%% @doc The time between two tokens.
-spec interval(slots()) -> non_neg_integer().
interval(Slots) ->
    atomics:get(Slots, ?INTERVAL).

%% @doc In which units a second is told here.
-spec per_second() -> pos_integer().
per_second() ->
    1000000 * ?UNITS.

%% @doc Takes a token of a bucket that gets one every `Interval' and holds a tenth of a second's
%% worth, at least one; `Cost' is how long this one takes to come back. Without a lock: who loses a
%% race several times goes without.
-spec take_due(slots(), pos_integer(), pos_integer()) -> boolean().
take_due(Slots, Interval, Cost) ->
    take_due(Slots, max(0, per_second() div 10 - Interval), Cost, ?TRIES).

take_due(_, _, _, 0) ->
    false;
take_due(Slots, Ahead, Cost, Tries) ->
    Now = now_units(),
    Due = atomics:get(Slots, ?DUE),
    Due - Now =< Ahead andalso
        (atomics:compare_exchange(Slots, ?DUE, Due, max(Due, Now) + Cost) =:= ok orelse
            take_due(Slots, Ahead, Cost, Tries - 1)).

now_units() ->
    erlang:monotonic_time(microsecond) * ?UNITS.

%% @doc Whether the tracer is told of messages that processes send and take, where their token says
%% so.
-spec set_takes(slots(), boolean()) -> ok.
set_takes(Slots, true) -> atomics:put(Slots, ?TAKES, 1);
set_takes(Slots, false) -> atomics:put(Slots, ?TAKES, 0).

%% @doc The same, as set.
-spec takes(slots()) -> boolean().
takes(Slots) ->
    atomics:get(Slots, ?TAKES) =:= 1.

%% @doc Whether identities have weights ({@link kprof_sampling}).
-spec set_weighted(slots(), boolean()) -> ok.
set_weighted(Slots, Weighted) ->
    atomics:put(
        Slots,
        ?WEIGHTED,
        case Weighted of
            true -> 1;
            false -> 0
        end
    ).

%% @doc Whether they have.
-spec is_weighted(slots()) -> boolean().
is_weighted(Slots) ->
    atomics:get(Slots, ?WEIGHTED) =:= 1.

%% @doc The base of the newest trace; 0 before the first.
-spec base(slots()) -> non_neg_integer().
base(Slots) ->
    atomics:get(Slots, ?BASE).

%% @doc The bases of earlier traces, newest first; 0 stands for none.
-spec old_bases(slots()) -> [non_neg_integer()].
old_bases(Slots) ->
    [atomics:get(Slots, ?BASE + I) || I <- lists:seq(1, ?OLD_BASES)].

%% @doc What the labels of the newest trace start with, above their counter: so the collector knows
%% them in other nodes' streams.
-spec base_number(slots()) -> non_neg_integer().
base_number(Slots) ->
    base(Slots) bsr ?LABEL_BITS.

%% @doc A random base, never 0.
-spec new_base() -> pos_integer().
new_base() ->
    rand:uniform((1 bsl ?BASE_BITS) - 1) bsl ?LABEL_BITS.

%% @doc Counts one request and returns its number in the trace, from 1, which the sampler and the
%% label are made of.
-spec next(slots()) -> integer().
next(Slots) ->
    atomics:add_get(Slots, ?SEEN, 1).

%% @doc How many requests have been counted so, in this trace.
-spec seen(slots()) -> non_neg_integer().
seen(Slots) ->
    atomics:get(Slots, ?SEEN).

%% @doc Counts one request that gets no token.
-spec count_unsampled(slots()) -> ok.
count_unsampled(Slots) ->
    atomics:add(Slots, ?UNSAMPLED, 1).

%% @doc Counts `N' of them.
-spec count_unsampled(slots(), non_neg_integer()) -> ok.
count_unsampled(Slots, N) ->
    atomics:add(Slots, ?UNSAMPLED, N).

%% @doc Requests left out since the last `sub_unsampled'.
-spec unsampled(slots()) -> integer().
unsampled(Slots) ->
    atomics:get(Slots, ?UNSAMPLED).

%% @doc Takes off what has been told to the collector.
-spec sub_unsampled(slots(), integer()) -> ok.
sub_unsampled(Slots, N) ->
    atomics:sub(Slots, ?UNSAMPLED, N).

%% @doc Sets how many requests a second a header may force a sample of.
-spec set_forced(slots(), non_neg_integer()) -> ok.
set_forced(Slots, PerSecond) ->
    atomics:put(Slots, ?FORCED_UNTIL, now_us()),
    atomics:put(Slots, ?FORCED_NOW, max(1, PerSecond)),
    atomics:put(Slots, ?FORCED, PerSecond).

%% @doc Lets only this part of them through, of 1, but one a second at least.
-spec lower_forced(slots(), float()) -> ok.
lower_forced(Slots, Part) ->
    atomics:put(Slots, ?FORCED_NOW, max(1, round(atomics:get(Slots, ?FORCED) * Part))).

%% @doc Whether a header may force samples at all.
-spec may_force(slots()) -> boolean().
may_force(Slots) ->
    atomics:get(Slots, ?FORCED) > 0.

%% @doc Takes one forced sample of those of this second, where there may be some. Every sample uses
%% up its share of time, which may run ahead of the clock by a second. Who is overtaken by another
%% process gets none.
-spec take_forced(slots()) -> boolean().
take_forced(Slots) ->
    Now = now_us(),
    Before = atomics:get(Slots, ?FORCED_UNTIL),
    Until = max(Before, Now) + 1000000 div atomics:get(Slots, ?FORCED_NOW),
    Until =< Now + 1000000 andalso
        atomics:compare_exchange(Slots, ?FORCED_UNTIL, Before, Until) =:= ok.

now_us() ->
    erlang:monotonic_time(microsecond).

%% @doc Whether a header may ask for a full trace of its request, from now on.
-spec set_flame_header(slots(), boolean()) -> ok.
set_flame_header(Slots, May) ->
    Now = now_ms(),
    Until = atomics:get(Slots, ?FLAMES_UNTIL),
    % at first it says nothing; later what is used up stays so, from one arming to the next
    Until > Now + ?HOUR_MS andalso atomics:put(Slots, ?FLAMES_UNTIL, Now),
    ok = set_full(Slots, 0),
    atomics:put(
        Slots,
        ?FLAMES,
        case May of
            true -> 1;
            false -> 0
        end
    ).

-spec may_flame(slots()) -> boolean().
may_flame(Slots) ->
    atomics:get(Slots, ?FLAMES) =:= 1.

%% @doc Takes one of these traces, where there may be one: each uses up its share of time, which may
%% run ahead of the clock by a minute.
-spec take_flame(slots()) -> boolean().
take_flame(Slots) ->
    Now = now_ms(),
    Before = atomics:get(Slots, ?FLAMES_UNTIL),
    Until = max(Before, Now) + ?FLAME_MS,
    Until =< Now + ?FLAMES_AHEAD_MS andalso
        atomics:compare_exchange(Slots, ?FLAMES_UNTIL, Before, Until) =:= ok.

%% @doc The patterns of one have stood for so many ms, which uses up ten times that.
-spec charge_flame(slots(), non_neg_integer()) -> ok.
charge_flame(Slots, Ms) ->
    atomics:add(Slots, ?FLAMES_UNTIL, ?FLAME_PRICE * Ms).

%% @doc Whether a refusal may be told: one a second.
-spec take_refusal(slots()) -> boolean().
take_refusal(Slots) ->
    Now = erlang:monotonic_time(second),
    Before = atomics:get(Slots, ?REFUSED),
    Now =/= Before andalso atomics:compare_exchange(Slots, ?REFUSED, Before, Now) =:= ok.

%% @doc Sets the request that is traced so; 0 is none.
-spec set_full(slots(), label() | 0) -> ok.
set_full(Slots, Label) ->
    atomics:put(Slots, ?FULL, Label).

%% @doc Which one is.
-spec full(slots()) -> label() | 0.
full(Slots) ->
    atomics:get(Slots, ?FULL).

now_ms() ->
    erlang:monotonic_time(millisecond).

%% @doc Tells whose a seq_trace label is: of the running trace, of an earlier one, or somebody
%% else's.
-spec whose(slots(), term()) -> current | stale | foreign.
whose(Slots, Label) when is_integer(Label), Label > ?LABEL_MASK ->
    Base = (Label bsr ?LABEL_BITS) bsl ?LABEL_BITS,
    case atomics:get(Slots, ?BASE) of
        Base -> current;
        _ -> whose_old(Slots, Base, ?OLD_BASES)
    end;
whose(_, _) ->
    foreign.

whose_old(_, _, 0) ->
    foreign;
whose_old(Slots, Base, I) ->
    case atomics:get(Slots, ?BASE + I) of
        Base -> stale;
        _ -> whose_old(Slots, Base, I - 1)
    end.

%% @doc Whether a label has the form of ours; it may be another node's.
-spec is_label(term()) -> boolean().
is_label(Label) ->
    is_integer(Label) andalso Label > ?LABEL_MASK andalso
        Label < 1 bsl (?BASE_BITS + ?LABEL_BITS).

%% @doc Remembers that the request of `Label' has ended, for processes that still carry its token.
-spec mark_ended(slots(), label()) -> ok.
mark_ended(Slots, Label) ->
    atomics:put(Slots, ?RING + Label rem ?RING_SIZE, Label).

%% @doc Whether the request of `Label' is known to have ended. The memory is short: 8192 labels.
-spec ended(slots(), label()) -> boolean().
ended(Slots, Label) ->
    atomics:get(Slots, ?RING + Label rem ?RING_SIZE) =:= Label.

%% @doc Remembers that a process which works for the request of `Label' was found without its token.
-spec mark_lost(slots(), label()) -> ok.
mark_lost(Slots, Label) ->
    atomics:put(Slots, ?LOST_RING + Label rem ?RING_SIZE, Label).

%% @doc Whether a process was found without the token of `Label'. The memory is as short as that of
%% {@link ended/2}.
-spec lost(slots(), label()) -> boolean().
lost(Slots, Label) ->
    atomics:get(Slots, ?LOST_RING + Label rem ?RING_SIZE) =:= Label.
