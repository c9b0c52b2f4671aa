%% SPDX-License-Identifier: Apache-2.0
%% @doc How often a sampler wakes to look at processes. To wake costs more than to look, so it looks
%% at all of them each time, as often as each is to be looked at. Where the budget is short it wakes
%% less often rather than to look at a part of them, so that each is seen as often as another; and
%% at no fixed times, as what a process does in a rhythm must not fall in with that.
-module(kprof_sampler_pace).

-export([new/2, tick_us/3, short/1, enough/1, is_short/1]).

-export_type([pace/0]).

% processes at a time
-define(LOOKS, 1000).
-define(LEAST_US, 1000).
%% From one tick to the next where each process is looked at as seldom, or where waking would take
%% more than a part of the budget; otherwise at most the shorter one.
-define(LONGEST_US, 250000).
-define(LONG_US, 50000).
-define(WAKE_PART, 4).
% from one tick to the next: back in small steps, as a tick at which the budget does not do for all
% is a waking for little
-define(LONGER, 1.2).
-define(SHORTER, 1.03).
-define(MOST_LONGER, 50.0).
% of a tick, by chance, while the budget is short
-define(JITTER, 0.25).

-record(pace, {
    most_us :: float(),
    % times the usual
    longer = 1.0 :: float()
}).
-opaque pace() :: #pace{}.

%% @doc Of who has so much of a processor, in millionths, and pays so many µs for each waking.
-spec new(pos_integer(), float()) -> pace().
new(Ppm, WakeUs) ->
    #pace{most_us = max(?LONG_US, min(?LONGEST_US, ?WAKE_PART * WakeUs * 1.0e6 / Ppm))}.

%% @doc From one tick to the next, where there are so many processes, each of which is to be looked
%% at so often a second.
-spec tick_us(float(), non_neg_integer(), pace()) -> pos_integer().
tick_us(Hz, Processes, #pace{most_us = Most, longer = Longer} = Pace) ->
    Parts = max(1, (Processes + ?LOOKS - 1) div ?LOOKS),
    Us = 1.0e6 / (Hz * Parts),
    max(?LEAST_US, round(jittered(min(?LONGEST_US, max(Us, min(Most, Us * Longer))), Pace))).

jittered(Us, #pace{longer = Longer}) when Longer > 1 ->
    Us * (1 - ?JITTER + 2 * ?JITTER * rand:uniform());
jittered(Us, _) ->
    Us.

%% @doc The budget did not do for what was due at a tick.
-spec short(pace()) -> pace().
short(#pace{longer = Longer} = Pace) ->
    Pace#pace{longer = min(?MOST_LONGER, Longer * ?LONGER)}.

%% @doc It did.
-spec enough(pace()) -> pace().
enough(#pace{longer = Longer} = Pace) ->
    Pace#pace{longer = max(1.0, Longer / ?SHORTER)}.

%% @doc Whether it wakes less often than usual, or did a moment ago.
-spec is_short(pace()) -> boolean().
is_short(#pace{longer = Longer}) ->
    Longer > 1.
