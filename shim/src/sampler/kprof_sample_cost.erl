%% SPDX-License-Identifier: Apache-2.0
%% @doc What sampling costs, in µs of processor time. The VM does not tell that of a process, so it
%% is measured by the clock: the time of the sampler's own work, and of the askers', which for
%% processes that answer at once is that of both. A busy process answers when it comes to it: the
%% time of an answer counts up to what one takes at most, measured at the beginning.
%%
%% Most of it is no work at all: a node that has nothing to do sleeps, and to wake and put to sleep
%% a thread costs the VM and the kernel more than a hundred looks. A clock in the node does not see
%% that, but what goes with it: how long a process that sleeps takes to answer. Tried with OTP 25 on
%% two virtual processors, by the processor time of the node's threads, in two rounds:
%% ```
%%   a timer that wakes a process of an idle node               77     55   µs
%%   the same, which then asks one that sleeps               91 to 104  67
%%     and has its answer after (the quarter that is fastest)  16      12
%%   the same, which exchanges a message with one            68 to 86  58 to 68
%% '''
%% So a waking is five times what such an answer takes, where nobody else keeps the threads awake,
%% and one that follows on it at once half of it. (28 that had just worked and slept again answered
%% in 170 to 210 µs of processor time, when one process asked them one after the other. With four
%% who ask at the same time it is 150 to 290, with eight 315 to 400.)
%%
%% And there is what no clock sees: processes that find their data pushed out of the caches, the
%% kernel's turn from one thread to another. Beside the sample application, of the default run,
%% 2.2 % of a processor were counted, and the node's own processor time rose by 3.1 % (standard
%% error 0.6): so half as much again is taken for it. (On the same machine with other work, where
%% threads seldom sleep, it had risen by 1.4 %, standard error 0.3, where 2.1 % were counted.)
-module(kprof_sample_cost).

-export([new/1, wake/1, most_wake/1, own/2, asking/4]).

-export_type([cost/0]).

% times what one that sleeps takes to answer
-define(WAKE, 5.0).
-define(NEXT_WAKE, 0.5).
% times what is counted
-define(UNSEEN, 1.5).
% where threads are awake
-define(AWAKE_US, 5.0).
% own work that takes longer has not been let run
-define(OWN_US, 50).
-define(OWN_LOOK_US, 20).
-define(UNCHANGED_US, 2.0).
-define(MEASURE_US, 2.5).
-define(TRIES, 20).
-define(SLEEP_MS, 2).
% an answer that is new to the processor takes as much longer than one of many tries
-define(COLD, 3).
-define(MOST_US, 20.0).
% until it must be known, and what is taken where it is not
-define(KNOWN_MS, 500).
-define(USUAL_ANSWER_US, 10.0).
-define(USUAL_ASLEEP_US, 15.0).
-define(LEAST_ASLEEP_US, 3.0).
-define(MOST_ASLEEP_US, 40.0).

-record(cost, {
    % an answer with a stack takes at most, of a process that runs and of one that sleeps
    answer :: float(),
    asleep :: float()
}).
-opaque cost() :: #cost{}.

%% @doc Measures what it takes to have a process answer: some of its own are asked that do nothing,
%% on several schedulers. Takes some 50 ms, and half a second at most: in a node that is so busy, or
%% has a scheduler in native code, what is usual counts.
-spec new([pid()]) -> cost().
new(Idle) ->
    {Measurer, Ref} = spawn_opt(
        fun() -> exit({?MODULE, measured(Idle)}) end, [monitor, {priority, high}]
    ),
    receive
        {'DOWN', Ref, process, Measurer, {?MODULE, Cost}} -> Cost;
        {'DOWN', Ref, process, Measurer, _} -> usual()
    after ?KNOWN_MS ->
        true = erlang:demonitor(Ref, [flush]),
        true = exit(Measurer, kill),
        usual()
    end.

usual() ->
    #cost{answer = ?USUAL_ANSWER_US, asleep = ?USUAL_ASLEEP_US}.

measured([Pid | _] = Idle) ->
    Asleep = [asleep(P) || _ <- lists:seq(1, ?TRIES div length(Idle)), P <- Idle],
    Awake = [ask(Pid) || _ <- lists:seq(1, ?TRIES)],
    % the node may be busy, so that its own processes have to wait
    Of = fun(Took, Part) -> lists:nth(max(1, length(Took) div Part), lists:sort(Took)) end,
    #cost{
        answer = min(?COLD * Of(Awake, 2), ?MOST_US),
        asleep = max(?LEAST_ASLEEP_US, min(Of(Asleep, 4), ?MOST_ASLEEP_US))
    }.

asleep(Pid) ->
    receive
    after ?SLEEP_MS -> ask(Pid)
    end.

ask(Pid) ->
    Began = erlang:monotonic_time(nanosecond),
    _ = process_info(Pid, [current_stacktrace, message_queue_len, reductions]),
    (erlang:monotonic_time(nanosecond) - Began) / 1000.

%% @doc Of waking now, by a timer: where others wait to be run, no thread sleeps.
-spec wake(cost()) -> float().
wake(Cost) ->
    case erlang:statistics(total_run_queue_lengths) of
        0 -> most_wake(Cost);
        _ -> ?UNSEEN * ?AWAKE_US
    end.

%% @doc The same in a node that has nothing to do.
-spec most_wake(cost()) -> float().
most_wake(#cost{asleep = Asleep}) ->
    ?UNSEEN * ?WAKE * Asleep.

%% @doc Of the sampler's own work, which took so long and had answers of so many looks in it.
-spec own(non_neg_integer(), non_neg_integer()) -> float().
own(Us, Looks) ->
    ?UNSEEN * min(Us, ?OWN_US + ?OWN_LOOK_US * Looks).

%% @doc Of asking for this and of answering it, which took so many ns.
-spec asking(kprof_asker:job(), [kprof_asker:answer()], non_neg_integer(), cost()) -> float().
asking(Job, Answers, Ns, #cost{asleep = Asleep} = Cost) ->
    Most = lists:sum([most(Job, Answer, Cost) || Answer <- Answers]),
    ?UNSEEN * (min(Ns / 1000, Most) + ?NEXT_WAKE * Asleep).

most({measure, _, _}, _, _) -> ?MEASURE_US;
most(look, {_, Status, Stack, _}, Cost) -> stack(Status, Cost) * (1 + length(Stack) / 60);
most(describe, {_, Items}, Cost) when is_list(Items) -> 2 * stack(waiting, Cost);
most(_, _, _) -> ?UNCHANGED_US.

stack(waiting, #cost{answer = Answer, asleep = Asleep}) -> max(Answer, 2 * Asleep);
stack(_, #cost{answer = Answer}) -> Answer.
