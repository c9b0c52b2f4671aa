%% SPDX-License-Identifier: Apache-2.0
%% @doc The longest message queue of the node, for a trigger. No process tells when its queue grows,
%% so all are looked at, in slices: so many at a time as take 2 ms of processor time. The eight
%% longest that were found are looked at each time, so how one of them grows is seen at once. A
%% queue that begins to grow is found when its slice comes: among 1,000 processes at the next look,
%% among 100,000 within half a minute.
%%
%% Others ask ({@link kprof_questions}), so a process that runs native code holds up nobody. What is
%% asked needs no signal to the process, as long as none waits there already.
%%
%% What it costs, looked at once a second (OTP 25, processor time of the whole node in 40 s), and
%% how long it took until a queue of 6,000 messages was found, four times:
%% ```
%%   100,000 idle processes, no triggers            0.05 % of a core
%%   the same, run_queue, memory and reductions     no more than that
%%   the same, message_queue_len, slices of 0.5 ms  0.18 %             7 to 48 s
%%   slices of 2 ms                                 0.55 %             0 to 16 s
%% '''
-module(kprof_queues).

-export([start_link/0, processes/1, ask/2, answered/5, look/2, is_asking/1, longest/1]).

-export_type([queues/0]).

-define(ASKERS, 8).
-define(FOLLOWED, 8).
-define(SLICE_NS, 2000000).
-define(LEAST_SLICE, 100).
-define(MOST_SLICE, 8000).
-define(FIRST_NS, 1000).

-record(queues, {
    questions :: kprof_questions:questions(),
    left :: kprof_processes:processes(),
    % that had the longest queues when they were asked last
    longest = [] :: [{pos_integer(), pid()}],
    % for one process; and of those that are being asked
    ns = ?FIRST_NS :: pos_integer(),
    took = {0, 0} :: {Processes :: non_neg_integer(), Ns :: non_neg_integer()}
}).
-opaque queues() :: #queues{}.

%% @doc Starts who asks, linked to the caller.
-spec start_link() -> queues().
start_link() ->
    #queues{questions = kprof_questions:start_link(?ASKERS), left = kprof_processes:all()}.

%% @doc Its processes.
-spec processes(queues()) -> [pid()].
processes(#queues{questions = Questions}) ->
    kprof_questions:processes(Questions).

%% @doc Whether answers are still to come.
-spec is_asking(queues()) -> boolean().
is_asking(#queues{questions = Questions}) ->
    kprof_questions:has_batch(Questions).

%% @doc Asks the next slice. The answers come to the caller, as messages `{kprof_asker, Ref,
%% Answers, Ns, Left}'. Nothing while others are still to come. `Now' is in native time, here and
%% below.
-spec ask(integer(), queues()) -> queues().
ask(Now, #queues{questions = Questions0, longest = Longest} = Q0) ->
    case is_asking(Q0) orelse not kprof_questions:can_ask(Questions0) of
        true ->
            Q0;
        false ->
            {Slice, Q} = slice(rated(Q0)),
            Items = lists:usort([Pid || {_, Pid} <- Longest] ++ Slice),
            Asked = [Pid || Pid <- Items, not kprof_questions:is_asked(Pid, Questions0)],
            Q#queues{questions = asked(Asked, Now, Questions0)}
    end.

asked([], _, Questions) -> Questions;
asked(Pids, Now, Questions) ->
    kprof_questions:ask({measure, message_queue_len, any}, Pids, Now, Questions).

rated(#queues{took = {0, _}} = Q) -> Q;
rated(#queues{took = {Count, Ns}} = Q) -> Q#queues{ns = max(1, Ns div Count), took = {0, 0}}.

%% Once all have been looked at it begins anew.
slice(#queues{left = Left, ns = Ns} = Q) ->
    N = max(?LEAST_SLICE, min(?MOST_SLICE, ?SLICE_NS div Ns)),
    case kprof_processes:take(N, Left) of
        {[], _} ->
            {Pids, Rest} = kprof_processes:take(N, kprof_processes:all()),
            {Pids, Q#queues{left = Rest}};
        {Pids, Rest} ->
            {Pids, Q#queues{left = Rest}}
    end.

%% @doc Answers have come.
-spec answered(
    reference(), [kprof_asker:answer()], non_neg_integer(), non_neg_integer(), queues()
) -> queues().
answered(Ref, Answers, Ns, Left, #queues{questions = Questions0, took = {Count, Sum}} = Q) ->
    case kprof_questions:answered(Ref, Answers, Left, Questions0) of
        {_, _, Good, _, Questions} ->
            counted(Good, Q#queues{
                questions = Questions, took = {Count + length(Answers), Sum + Ns}
            });
        none ->
            Q
    end.

%% Who does not answer keeps the length that it had.
counted(Answers, #queues{longest = Before} = Q) ->
    Told = maps:from_list([{element(1, A), true} || A <- Answers]),
    Now = [{N, Pid} || {Pid, {N}} <- Answers, N > 0],
    Others = [One || {_, Pid} = One <- Before, not is_map_key(Pid, Told)],
    Q#queues{longest = lists:sublist(lists:reverse(lists:sort(Now ++ Others)), ?FOLLOWED)}.

%% @doc To be called every some ms while it is asking: where one does not answer, others are asked
%% without it.
-spec look(integer(), queues()) -> queues().
look(Now, #queues{questions = Questions0} = Q) ->
    {_, _, Questions} = kprof_questions:look(Now, Questions0),
    Q#queues{questions = Questions}.

%% @doc The longest queue that is known, and whose it is. 0: none has a message.
-spec longest(queues()) -> {non_neg_integer(), none | pid()}.
longest(#queues{longest = [Longest | _]}) -> Longest;
longest(_) -> {0, none}.
