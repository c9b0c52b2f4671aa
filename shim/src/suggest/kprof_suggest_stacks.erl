%% SPDX-License-Identifier: Apache-2.0
%% @doc What the busiest processes of this node do, in a few seconds: their stacks, counted. It uses
%% what {@link kprof_sampler_loop} uses, so a process that does not answer is left alone, and takes
%% a tenth of one processor at most while it chooses the processes, a twentieth while it looks at
%% them. The caller's heap bounds its memory.
-module(kprof_suggest_stacks).

-export([look/1]).

-export_type([looked/0]).

-define(TOP, 60).
-define(ROUND_MS, 20).
-define(SCAN_MS, 1000).
% parts of the time that it works
-define(SCAN_REST, 9).
-define(LOOK_REST, 19).
% a look that took longer was not run itself for a while
-define(MOST_REST_MS, 500).
% different stacks; those beyond are not kept
-define(MOST, 500).
-define(POLL_MS, 5).

-type looked() :: {[mfa(), ...], Looks :: pos_integer()}.
%% A stack from its innermost function on, and how many looks have seen it.

%% @doc Looks for so many milliseconds, after it has chosen the processes, which takes as long on a
%% large node.
-spec look(pos_integer()) -> [looked()].
look(Ms) ->
    Deep = whereis(kprof_depth) =/= undefined orelse kprof_depth:deepen([self()]),
    Questions = kprof_questions:start_link(),
    Askers = kprof_questions:processes(Questions),
    try
        B0 = kprof_busiest:new(reductions, ?TOP, any, [self() | Askers]),
        {B1, Q1} = scan(B0, Questions),
        {B2, Q2} = scan(B1, Q1),
        Items = [{Pid, none, []} || Pid <- kprof_busiest:best(B2)],
        rounds(Items, now_ms() + Ms, #{}, #{}, Q2)
    after
        lists:foreach(fun ended/1, Askers),
        Deep =:= true orelse kprof_depth:restore(Deep)
    end.

ended(Asker) ->
    true = unlink(Asker),
    Ref = erlang:monitor(process, Asker),
    true = exit(Asker, kill),
    receive
        {'DOWN', Ref, process, _, _} -> ok
    end.

%% --- the choice ---

scan(B, Q) ->
    slices(kprof_busiest:begin_scan(B), now_ms() + ?SCAN_MS, Q).

slices(B0, End, Q0) ->
    Began = now_us(),
    case kprof_busiest:slice(B0) of
        {{Job, Pids}, B1} ->
            {Answers, Q} = ask(Job, Pids, Q0),
            B = kprof_busiest:measured(Answers, B1),
            ok = rest(?SCAN_REST * (now_us() - Began) div 1000),
            case now_ms() > End of
                true -> {kprof_busiest:end_scan(B), Q};
                false -> slices(B, End, Q)
            end;
        {none, B} ->
            {kprof_busiest:end_scan(B), Q0}
    end.

%% --- the looks ---

%% Each process with its last stack, which is also that of one that has not run since.
rounds([], _, _, Counts, _) ->
    stacks(Counts);
rounds(Items, End, Last0, Counts0, Q0) ->
    Began = now_us(),
    {Answers, Q} = ask(look, Items, Q0),
    {Next, Last, Counts} = lists:foldl(fun taken/2, {[], Last0, Counts0}, Answers),
    ok = rest(max(?ROUND_MS, ?LOOK_REST * (now_us() - Began) div 1000)),
    case now_ms() > End of
        true -> stacks(Counts);
        false -> rounds(Next, End, Last, Counts, Q)
    end.

taken({_, gone}, All) ->
    All;
taken({Pid, unchanged, _}, {Next, Last, Counts}) ->
    {Base, Stack} = maps:get(Pid, Last),
    {[{Pid, Base, []} | Next], Last, count(Stack, Counts)};
taken({Pid, _, Stack, #{reductions := Base}}, {Next, Last, Counts}) ->
    {[{Pid, Base, []} | Next], Last#{Pid => {Base, Stack}}, count(Stack, Counts)}.

count(Stack, Counts) when is_map_key(Stack, Counts); map_size(Counts) < ?MOST ->
    maps:update_with(Stack, fun(N) -> N + 1 end, 1, Counts);
count(_, Counts) ->
    Counts.

stacks(Counts) ->
    [{Stack, N} || {Stack, N} <- maps:to_list(Counts), Stack =/= []].

%% --- asking ---

ask(_, [], Q) ->
    {[], Q};
ask(Job, Items, Q0) ->
    case kprof_questions:can_ask(Q0) of
        true -> answers(kprof_questions:ask(Job, Items, now_native(), Q0), []);
        false -> {[], Q0}
    end.

answers(Q0, Before) ->
    case kprof_questions:has_batch(Q0) of
        true ->
            receive
                {kprof_asker, Ref, Answers, _, Left} ->
                    case kprof_questions:answered(Ref, Answers, Left, Q0) of
                        {_, _, New, false, Q} -> answers(Q, New ++ Before);
                        {_, _, _, true, Q} -> answers(Q, Before);
                        none -> answers(Q0, Before)
                    end
            after ?POLL_MS ->
                {_, _, Q} = kprof_questions:look(now_native(), Q0),
                answers(Q, Before)
            end;
        false ->
            {Before, Q0}
    end.

rest(Ms) -> timer:sleep(min(Ms, ?MOST_REST_MS)).

now_native() -> erlang:monotonic_time().
now_ms() -> erlang:monotonic_time(millisecond).
now_us() -> erlang:monotonic_time(microsecond).
