%% SPDX-License-Identifier: Apache-2.0
%% @doc Processes that ask others how they are. Who asks a running process waits until that handles
%% its signals, 65 to 115 µs as a rule, but for as long as native code takes where it runs that; and
%% there is no way to ask without waiting, not even for the status. So {@link kprof_sampler_loop}
%% asks nobody by itself. It gives what is to be asked to askers, which write down where they stand,
%% and goes on with another one when one stands still.
%%
%% Askers and the sampler have priority high. The VM handles the signal of who asks with the asker's
%% priority, if that is higher than that of who is asked; else an answer waits in the run queue
%% behind all others. Tried with 100 processes that are always busy, on two schedulers of a machine
%% that had other work, four times 4 s each, a budget of 2 %:
%% ```
%%               samples          an answer takes     the others' work in the same processor time
%%   normal      860 to 1,190     0.24 ms (median)    2.5 % less
%%   high      3,600 to 5,600     0.005 to 0.04 ms    3.7 % less
%%   max       1,200 to 7,500     the same            3.8 % less
%% '''
%% (The last column is within 3 %, and there is a budget on it.) So high gives what there is to get,
%% and leaves max to the guard, which must have its turn when an asker is busy.
-module(kprof_asker).

-export([start_link/2, pid/1, ask/4, position/1]).
-export([run/2]).

-export_type([asker/0, job/0, item/0, answer/0]).

%% A queue as long as this is walked for `memory' and `garbage_collection_info'.
-define(LONG_QUEUE, 1000).
%% What has been answered goes to the sampler when all is done, as each message to it wakes it: but
%% sooner where that takes as many ns, and behind an answer that took so many. It must not wait with
%% the asker for the next one.
-define(GATHER_NS, 2000000).
-define(SLOW_NS, 200000).

-opaque asker() :: {pid(), atomics:atomics_ref(), pos_integer()}.
-type job() ::
    look
    | describe
    | {measure, kprof_busiest:by(), Leader :: any | pid()}.
-type item() ::
    {pid(), Base :: none | non_neg_integer(), More :: [dear | sequential_trace_token]} | pid().
%% For `look' with what its reductions are if it has done nothing, and what is asked for besides its
%% stack; else the process alone.
-type answer() ::
    {pid(), gone}
    | {pid(), unchanged, kprof_stack_records:status()}
    | {pid(), kprof_stack_records:status(), [mfa()], kprof_stack_records:values()}
    | {pid(), [{term(), term()}]}
    | {pid(), none | {Value :: non_neg_integer()}}.

%% @doc Starts one that writes where it stands at this place.
-spec start_link(atomics:atomics_ref(), pos_integer()) -> asker().
start_link(Positions, At) ->
    Sampler = self(),
    Pid = spawn_opt(
        fun() ->
            _ = seq_trace:set_token([]),
            loop(Sampler, Positions, At)
        end,
        [link, {priority, high}]
    ),
    {Pid, Positions, At}.

%% @doc The process.
-spec pid(asker()) -> pid().
pid({Pid, _, _}) ->
    Pid.

%% @doc Has it ask. The caller gets `{kprof_asker, Ref, Answers, Ns, Left}', once or several times:
%% answers in the order of the items, how long they took, and how many are still to come.
-spec ask(job(), [item()], reference(), asker()) -> ok.
ask(Job, Items, Ref, {Pid, Positions, At}) ->
    ok = atomics:put(Positions, At, 0),
    Pid ! {Ref, Job, Items},
    ok.

%% @doc Which item it asks or has asked, from 1; 0: none yet.
-spec position(asker()) -> non_neg_integer().
position({_, Positions, At}) ->
    atomics:get(Positions, At).

loop(Sampler, Positions, At) ->
    receive
        {Ref, Job, Items} ->
            Stand = fun(N) -> atomics:put(Positions, At, N) end,
            Tell = fun(Answers, Ns, Left) ->
                Sampler ! {?MODULE, Ref, lists:reverse(Answers), Ns, Left}
            end,
            Now = now_ns(),
            _ = run(Job, Items, {Stand, Tell}, 1, {[], Now, Now}),
            loop(Sampler, Positions, At)
    end.

%% @private
%% All answers at once.
-spec run(job(), [item()]) -> [answer()].
run(Job, Items) ->
    [one(Job, Item) || Item <- Items].

%% With what has been answered and is not told; since when, and when the last one was asked.
run(_, [], {_, Tell}, _, {Answers, Since, _}) ->
    Tell(Answers, now_ns() - Since, 0);
run(Job, [Item | Items], {Stand, Tell} = To, N, {Before, Since, Last}) ->
    ok = Stand(N),
    Answers = [one(Job, Item) | Before],
    Now = now_ns(),
    case Items =/= [] andalso (Now - Since > ?GATHER_NS orelse Now - Last > ?SLOW_NS) of
        true ->
            _ = Tell(Answers, Now - Since, length(Items)),
            run(Job, Items, To, N + 1, {[], Now, Now});
        false ->
            run(Job, Items, To, N + 1, {Answers, Since, Now})
    end.

now_ns() ->
    erlang:monotonic_time(nanosecond).

one(look, {Pid, Base, More}) ->
    %% alone and first: asked together with a stack it is always running
    case process_info(Pid, status) of
        undefined -> {Pid, gone};
        % every question is a signal then, and it has done something
        {status, running} -> stack(Pid, running, More);
        {status, Status} -> still(process_info(Pid, reductions), Pid, Status, Base, More)
    end;
one(describe, Pid) ->
    case process_info(Pid, described_by()) of
        undefined -> {Pid, gone};
        Items -> {Pid, Items}
    end;
one({measure, By, Leader}, Pid) ->
    {Pid, leads(Leader, Pid) andalso measure(By, Pid)}.

still({reductions, R}, Pid, Status, Base, _) when R =:= Base; R =:= Base - 1 ->
    {Pid, unchanged, Status};
still({reductions, _}, Pid, Status, _, More) ->
    stack(Pid, Status, More);
still(undefined, Pid, _, _, _) ->
    {Pid, gone}.

%% A token costs 0.1 µs beside the stack, and up to 0.5 µs on OTP 25.
stack(Pid, Status, [dear | Token]) ->
    case process_info(Pid, message_queue_len) of
        undefined -> {Pid, gone};
        {_, Queue} -> answer(process_info(Pid, Token ++ items(Queue)), Pid, Status)
    end;
stack(Pid, Status, Token) ->
    Items = Token ++ [current_stacktrace, message_queue_len, reductions],
    answer(process_info(Pid, Items), Pid, Status).

answer([{sequential_trace_token, Token} | Items], Pid, Status) ->
    {Pid, Status, Stack, Values} = answer(Items, Pid, Status),
    {Pid, Status, Stack, Values#{label => label(Token)}};
answer([{_, Stack}, {_, Queue}, {_, Reductions}], Pid, Status) ->
    {Pid, Status, frames(Pid, Stack), #{queue => Queue, reductions => Reductions}};
answer(undefined, Pid, _) ->
    {Pid, gone};
answer(Items, Pid, Status) ->
    dear(Items, Pid, Status).

%% 0: it holds none of a request of this trace, or of another node's.
label({_, Label, _, _, _}) ->
    Slots = kprof_slots:find(),
    case
        kprof_slots:is_label(Label) andalso Slots =/= undefined andalso
            kprof_slots:whose(Slots, Label) =/= stale
    of
        true -> Label;
        false -> 0
    end;
label(_) ->
    0.

items(Queue) ->
    [current_stacktrace, message_queue_len, reductions, heap_size, stack_size] ++
        [
            Item
         || Item <- [memory, garbage_collection, garbage_collection_info], Queue < ?LONG_QUEUE
        ].

dear([{_, Stack}, {_, Queue}, {_, Reductions}, {_, Heap}, {_, StackSize} | More], Pid, Status) ->
    Values = #{
        queue => Queue,
        reductions => Reductions,
        heap => {bytes(Heap), bytes(StackSize)}
    },
    {Pid, Status, frames(Pid, Stack),
        case More of
            [] ->
                Values;
            [{memory, Memory}, {_, Collection}, {_, Info}] ->
                Values#{
                    memory => Memory,
                    collected => {
                        proplists:get_value(minor_gcs, Collection, 0),
                        bytes(proplists:get_value(old_heap_size, Info, 0)),
                        bytes(proplists:get_value(bin_vheap_size, Info, 0)),
                        bytes(proplists:get_value(bin_old_vheap_size, Info, 0))
                    }
                }
        end}.

%% Without places. Who hibernates, or has not begun yet, has a function but no stack.
frames(Pid, []) ->
    case process_info(Pid, current_function) of
        {_, {_, _, _} = Function} -> [Function];
        _ -> []
    end;
frames(_, Stack) ->
    [{M, F, A} || {M, F, A, _} <- Stack].

bytes(Words) ->
    Words * erlang:system_info(wordsize).

%% --- for the choice of processes ---

leads(any, _) ->
    true;
leads(Leader, Pid) ->
    process_info(Pid, group_leader) =:= {group_leader, Leader}.

measure(reductions, Pid) ->
    value(process_info(Pid, reductions));
measure(message_queue_len, Pid) ->
    value(process_info(Pid, message_queue_len));
measure(memory, Pid) ->
    case process_info(Pid, [heap_size, stack_size]) of
        [{_, Heap}, {_, Stack}] -> {bytes(Heap + Stack)};
        undefined -> none
    end;
measure(binary, Pid) ->
    case process_info(Pid, message_queue_len) of
        {_, Queue} when Queue < ?LONG_QUEUE ->
            case process_info(Pid, garbage_collection_info) of
                {_, Info} ->
                    {_, New} = lists:keyfind(bin_vheap_size, 1, Info),
                    {_, Old} = lists:keyfind(bin_old_vheap_size, 1, Info),
                    {bytes(New + Old)};
                undefined ->
                    none
            end;
        _ ->
            none
    end.

value({_, N}) -> {N};
value(undefined) -> none.

%% --- who they are ---

%% A single key of a dictionary can be read from OTP 26.2 on, without the rest of it. Before, the
%% stack tells what a process began with.
described_by() ->
    Items = [registered_name, initial_call, group_leader],
    case has_keys() of
        true -> Items ++ [{dictionary, '$initial_call'}, {dictionary, '$process_label'}];
        false -> Items ++ [current_stacktrace]
    end.

has_keys() ->
    try process_info(self(), {dictionary, '$initial_call'}) of
        _ -> true
    catch
        error:badarg -> false
    end.
