%% SPDX-License-Identifier: Apache-2.0
%% Whose turn it is, and what changes are told of processes.
-module(kprof_sampled_tests).
-include("patient.hrl").

%% Each comes once before one comes again, however many are taken at a time.
turns_test_() -> {timeout, 300, fun turns_case/0}.
turns_case() ->
    Pids = pids(7),
    {W0, _} = chosen(Pids),
    {Taken, _} = lists:mapfoldl(fun(_, W) -> kprof_sampled:next(3, W) end, W0, lists:seq(1, 70)),
    All = lists:append(Taken),
    ?assertEqual(210, length(All)),
    ?assertEqual([30], lists:usort([length([1 || P <- All, P =:= Pid]) || Pid <- Pids])),
    {Whole, _} = kprof_sampled:next(7, W0),
    ?assertEqual(lists:sort(Pids), lists:sort(Whole)).

%% Those who leave are looked at no longer, and keep their numbers for when they come again.
choice_test_() -> {timeout, 300, fun choice_case/0}.
choice_case() ->
    [A, B, C] = pids(3),
    {W0, R0} = chosen([A, B]),
    {[C], W1} = kprof_sampled:choose([B, C], W0),
    ?assertEqual(1, kprof_sampled:size(W1)),
    {W2, R2} = kprof_sampled:described([{C, items()}], W1, R0),
    ?assertEqual([B, C], lists:sort(element(1, kprof_sampled:next(2, W2)))),
    {[], W3} = kprof_sampled:choose([A], W2),
    {ok, N} = kprof_sampled:number(A, W3),
    {ok, N} = kprof_sampled:number(A, W0),
    %% who left is described all the same, if late
    {W4, _} = kprof_sampled:described([{C, items()}], W3, R2),
    ?assertEqual({[A], 1}, {element(1, kprof_sampled:next(1, W4)), kprof_sampled:size(W4)}).

%% Who has not answered is told without a name, and anew when it has.
late_name_test_() -> {timeout, 300, fun late_name_case/0}.
late_name_case() ->
    [A] = pids(1),
    R0 = kprof_stack_records:new(0),
    {[A], W0} = kprof_sampled:choose([A], kprof_sampled:new(false)),
    {W1, R1} = kprof_sampled:undescribed(A, W0, R0),
    {W2, R2} = kprof_sampled:undescribed(A, W1, R1),
    ?assertEqual({1, {ok, 0}}, {kprof_sampled:size(W2), kprof_sampled:number(A, W2)}),
    {W3, R3} = kprof_sampled:described([{A, items()}], W2, R2),
    ?assertEqual({1, {ok, 1}}, {kprof_sampled:size(W3), kprof_sampled:number(A, W3)}),
    ?assertMatch(
        [{process, _, #{initial := <<>>}}, {process, _, #{initial := <<"m:f/0">>}}], read(R3)
    ).

%% Reductions and minor collections as changes; a stack once; a dear look with each tenth stack.
changes_test_() -> {timeout, 300, fun changes_case/0}.
changes_case() ->
    [A] = pids(1),
    {W0, R0} = chosen([A]),
    ?assertEqual({A, none, [dear]}, kprof_sampled:item(A, W0)),
    Stack = [{m, f, 0}],
    {sample, W1, R1} = kprof_sampled:answer(seen(A, Stack, 1000, 5), W0, R0),
    %% its answer has cost it one
    ?assertEqual({A, 1001, []}, kprof_sampled:item(A, W1)),
    {unchanged, W2, R2} = kprof_sampled:answer({A, unchanged, waiting}, W1, R1),
    {sample, W3, R3} = kprof_sampled:answer(seen(A, Stack, 1500, 7), W2, R2),
    % a major one since
    {sample, W4, R4} = kprof_sampled:answer(seen(A, Stack, 1600, 2), W3, R3),
    {gone, W5, R5} = kprof_sampled:answer({A, gone}, W4, R4),
    ?assertEqual(0, kprof_sampled:size(W5)),
    ?assertMatch(
        [
            {process, _, _},
            {sample, _, #{reductions := 0, minor := 0}},
            {unchanged, _, _},
            {sample, _, #{reductions := 500, minor := 2}},
            {sample, _, #{reductions := 100, minor := 2}},
            {gone, _, _}
        ],
        read(R5)
    ).

%% Whose token it holds is told when that changes, before the look that has seen it, and again when
%% all is told anew.
labels_test_() -> {timeout, 300, fun labels_case/0}.
labels_case() ->
    [A] = pids(1),
    {W0, R0} = chosen([A], true),
    ?assertEqual({A, none, [dear, sequential_trace_token]}, kprof_sampled:item(A, W0)),
    Look = fun(Label, {W, R}) ->
        {A, waiting, Stack, Values} = seen(A, [{m, f, 0}], 1000, 5),
        {sample, After, Told} =
            kprof_sampled:answer({A, waiting, Stack, Values#{label => Label}}, W, R),
        {After, Told}
    end,
    {W1, R1} = lists:foldl(Look, {W0, R0}, [0, 1 bsl 57, 1 bsl 57, 0]),
    ?assertEqual({A, 1001, [sequential_trace_token]}, kprof_sampled:item(A, W1)),
    {_, R2} = Look(0, kprof_sampled:forget(W1, kprof_stack_records:forget(R1))),
    ?assertEqual(
        [process, {label, 0}, sample, {label, 1 bsl 57}, sample, sample, {label, 0}, sample] ++
            [forget, process, {label, 0}, sample],
        [
            case Record of
                {label, _, {_, Label}} -> {label, Label};
                {What, _, _} -> What
            end
         || Record <- read(R2)
        ]
    ).

%% When all is told anew, what was on its way is no longer unchanged from anything.
forget_test_() -> {timeout, 300, fun forget_case/0}.
forget_case() ->
    [A, B] = pids(2),
    {W0, R0} = chosen([A, B]),
    {sample, W1, R1} = kprof_sampled:answer(seen(A, [{m, f, 0}], 1000, 5), W0, R0),
    {W2, R2} = kprof_sampled:forget(W1, kprof_stack_records:forget(R1)),
    ?assertEqual(2, kprof_sampled:size(W2)),
    {gone, W3, R3} = kprof_sampled:answer({A, unchanged, waiting}, W2, R2),
    ?assertEqual({A, none, [dear]}, kprof_sampled:item(A, W3)),
    {sample, _, R4} = kprof_sampled:answer(seen(A, [{m, f, 0}], 3000, 5), W3, R3),
    ?assertMatch(
        [
            {process, _, _},
            {process, _, _},
            {sample, _, _},
            {forget, _, all},
            {process, _, _},
            {process, _, _},
            {sample, _, #{reductions := 0, minor := 0, stack := {whole, [_]}}}
        ],
        read(R4)
    ).

seen(Pid, Stack, Reductions, Minor) ->
    {Pid, waiting, Stack, #{reductions => Reductions, collected => {Minor, 0, 0, 0}}}.

chosen(Pids) ->
    chosen(Pids, false).

chosen(Pids, Labels) ->
    {Pids, W} = kprof_sampled:choose(Pids, kprof_sampled:new(Labels)),
    kprof_sampled:described([{P, items()} || P <- Pids], W, kprof_stack_records:new(0)).

items() ->
    [{registered_name, []}, {initial_call, {m, f, 0}}, {group_leader, self()}].

pids(N) ->
    [spawn(fun() -> ok end) || _ <- lists:seq(1, N)].

%% Of all batches.
read(R) ->
    read(kprof_stack_records:take(kprof_stack_records:close(R)), kprof_stack_reader:new()).

read(none, _) ->
    [];
read({Bytes, R}, Reader) ->
    {Records, Next} = kprof_stack_reader:read(Bytes, Reader),
    Records ++ read(kprof_stack_records:take(R), Next).
