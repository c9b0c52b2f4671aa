%% SPDX-License-Identifier: Apache-2.0
%% @doc What sampling costs, in µs of processor time. The VM does not tell that of a process, so it
%% is measured by the clock: the time of the sampler's own work, and of the askers', which for
%% processes that answer at once is that of both. A busy process answers when it comes to it: the
%% time of an answer counts up to what one takes at most, measured at the beginning.
%%
%% Each waking counts besides, with what the VM and the kernel do for it. A node that does little
%% else spent 250 to 300 ms of processor time in 8 s on what took 165 ms by the clock; with that it
%% is 270 to 340 ms on 300 to 340.
-module(kprof_sample_cost).

-export([new/1, own/2, asking/4, wake/0]).

-export_type([cost/0]).

-define(WAKE_US, 20.0).
% own work that takes longer has not been let run
-define(OWN_US, 50).
-define(OWN_LOOK_US, 20).
-define(UNCHANGED_US, 0.5).
-define(MEASURE_US, 2.5).
-define(TRIES, 20).
% an answer that is new to the processor takes as much longer than one of many tries
-define(COLD, 3).
-define(MOST_US, 20.0).

-opaque cost() :: float().
%% What an answer with a stack takes at most.

%% @doc Measures what it takes to have a process answer: an idle one of its own is asked.
-spec new(pid()) -> cost().
new(Idle) ->
    Took = [
        begin
            Began = erlang:monotonic_time(nanosecond),
            _ = process_info(Idle, [current_stacktrace, message_queue_len, reductions]),
            (erlang:monotonic_time(nanosecond) - Began) / 1000
        end
     || _ <- lists:seq(1, ?TRIES)
    ],
    % the node may be busy, so that its own processes have to wait
    min(?COLD * lists:nth(?TRIES div 2, lists:sort(Took)), ?MOST_US).

%% @doc Of waking once.
-spec wake() -> float().
wake() ->
    ?WAKE_US.

%% @doc Of the sampler's own work, which took so long and had answers of so many looks in it.
-spec own(non_neg_integer(), non_neg_integer()) -> float().
own(Us, Looks) ->
    float(min(Us, ?OWN_US + ?OWN_LOOK_US * Looks)).

%% @doc Of asking for this and of answering it, which took so many ns.
-spec asking(kprof_asker:job(), [kprof_asker:answer()], non_neg_integer(), cost()) -> float().
asking(Job, Answers, Ns, Cost) ->
    min(Ns / 1000, lists:sum([most(Job, Answer, Cost) || Answer <- Answers])) + ?WAKE_US.

most({measure, _, _}, _, _) -> ?MEASURE_US;
most(look, {_, _, Stack, _}, Cost) -> Cost * (1 + length(Stack) / 60);
most(describe, {_, Items}, Cost) when is_list(Items) -> 2 * Cost;
most(_, _, _) -> ?UNCHANGED_US.
