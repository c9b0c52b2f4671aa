%% SPDX-License-Identifier: Apache-2.0
%% The sampler on this node: what it sees of processes that do something known.
-module(kprof_sampler_tests).
-include("patient.hrl").

-export([spin/1, left/1, right/1, sleeper/0, bounce/1, deep/2]).
% what kprof_sample_cost_tests needs, too
-export([in_native_code/0, killed/1]).

sampler_test_() ->
    [
        {Name, {timeout, 300, Test}}
     || {Name, Test} <- [
            {"shares of known work", fun shares/0},
            {"who sleeps is asked for its stack once", fun asleep/0},
            {"the stack's depth, and what is cut", fun cut/0},
            {"who is in native code delays nobody", fun stuck/0},
            {"a long queue is not walked", fun long_queue/0},
            {"values, and how they change", fun values/0},
            {"who hibernates is seen to do so", fun hibernates/0},
            {"names, labels, initial calls, applications", fun names/0},
            {"whose token a process holds", fun labels/0},
            {"the busiest are found", fun busiest/0},
            {"the budget is kept", fun budget/0},
            {"an owner that does not go on", fun slow_owner/0},
            {"what was missed is told anew", fun missed/0},
            {"killed with its owner", fun killed/0},
            {"one that stands for ever, beside another", fun stands/0},
            {"one that stands for ever keeps to its bytes", fun volume/0}
        ]
    ].

%% Of each three reductions of this process two are left's. Beside others at work the process and
%% those who ask it get their turns late, and there are fewer looks: some are waited for.
shares() ->
    Worker = spawn_link(fun() -> spin(0) end),
    {Left, Right} = shares(12, Worker, {0, 0}),
    ?assert(Left + Right >= 900, {Left, Right}),
    ?assert(abs(Left / (Left + Right) - 2 / 3) < 0.1, {Left, Right}),
    end_of(Worker).

shares(Runs, Worker, {Left, Right}) when Runs > 0, Left + Right < 900 ->
    #{records := Records} = run(#{processes => [Worker], hz => 200, budget_ppm => 500000}, 5),
    Stacks = [Stack || #{stack := {_, Stack}} <- kprof_stack_reader:samples(Records)],
    Of = fun(F) -> length([S || S <- Stacks, lists:member({<<?MODULE_STRING>>, F, 1}, S)]) end,
    shares(Runs - 1, Worker, {Left + Of(<<"left">>), Right + Of(<<"right">>)});
shares(_, _, Seen) ->
    Seen.

spin(N) ->
    _ = left(100000),
    _ = right(50000),
    spin(N + 1).

left(N) -> 1 + count(N).
right(N) -> 2 + count(N).
count(0) -> 0;
count(N) -> count(N - 1).

asleep() ->
    Sleeper = spawn_link(fun sleeper/0),
    #{records := Records, totals := Totals} = run(#{processes => [Sleeper], hz => 100}, 5),
    #{samples := Samples, unchanged := Unchanged} = Totals,
    ?assert(Samples >= 1 andalso Samples =< 2),
    ?assert(Unchanged > 50),
    [First | _] = kprof_stack_reader:samples(Records),
    ?assertMatch(#{stack := {whole, [{<<?MODULE_STRING>>, <<"sleeper">>, 0}]}, status := 2}, First),
    end_of(Sleeper).

sleeper() ->
    receive
        stop -> ok
    end.

cut() ->
    Pids = [spawn_link(?MODULE, deep, [N, even]) || N <- [40, 100]],
    #{records := Records} = run(#{processes => Pids}, 1),
    Stacks = lists:usort([Stack || #{stack := Stack} <- kprof_stack_reader:samples(Records)]),
    [{cut, Cut}, {whole, Whole}] = lists:keysort(1, Stacks),
    ?assertEqual({64, 41}, {length(Cut), length(Whole)}),
    lists:foreach(fun end_of/1, Pids).

%% Two functions by turns: equal return addresses next to each other are one.
deep(0, _) ->
    receive
        stop -> 0
    end;
deep(N, even) ->
    1 + deep(N - 1, odd);
deep(N, odd) ->
    2 + deep(N - 1, even).

%% Comparing two terms whose parts are shared takes time without end, and no turn is given up
%% meanwhile: as native code does it. Who sleeps is looked at as often as who does not answer.
stuck() ->
    Sleepers = [spawn_link(fun sleeper/0) || _ <- lists:seq(1, 20)],
    Stuck = spawn(fun() -> stuck(shared(26), shared(26)) end),
    #{records := Records, totals := Totals} = run(#{processes => [Stuck | Sleepers]}, 4),
    killed(Stuck),
    All = [P || {unanswered, _, #{pid := P}} <- Records],
    {Unanswered, Others} = lists:partition(fun(P) -> P =:= text(Stuck) end, All),
    ?assert(length(Unanswered) > 10, Totals),
    %% a scheduler that stands still for a moment does not answer either
    ?assert(length(Others) =< 2, Others),
    ?assertEqual(length(All), maps:get(unanswered, Totals)),
    Samples = kprof_stack_reader:samples(Records),
    Looks = fun(Pid) -> length([S || #{process := #{pid := P}} = S <- Samples, P =:= Pid]) end,
    Each = [Looks(text(Pid)) || Pid <- Sleepers],
    ?assert(lists:max(Each) - lists:min(Each) =< 5, Each),
    Missed = lists:max(Each) - Looks(text(Stuck)) - length(Unanswered),
    ?assert(abs(Missed) < lists:max(Each) / 10, {Each, Missed, length(Unanswered)}),
    lists:foreach(fun end_of/1, Sleepers).

%% A process that is in native code for a second and a half from now on: what it does in between is
%% less than a turn. It is on the last scheduler, whose other processes have no turn until then.
in_native_code() ->
    Self = self(),
    Compares = fun() ->
        {A, B} = {shared(22), shared(22)},
        Self ! {self(), begins},
        compares(A, B, erlang:monotonic_time(millisecond) + 1500)
    end,
    Pid = spawn_opt(Compares, [{scheduler, erlang:system_info(schedulers_online)}]),
    receive
        {Pid, begins} -> Pid
    end.

compares(A, B, Until) ->
    true = A =:= B,
    erlang:monotonic_time(millisecond) < Until andalso compares(A, B, Until).

%% It is gone when its native code is over, and keeps a scheduler from others until then.
killed(Pid) ->
    Ref = monitor(process, Pid),
    true = exit(Pid, kill),
    receive
        {'DOWN', Ref, process, _, _} -> ok
    end.

stuck(A, B) ->
    true = A =:= B,
    receive
    after 20 -> stuck(A, B)
    end.

shared(0) ->
    {};
shared(N) ->
    Part = shared(N - 1),
    {Part, Part}.

%% It would take a second with each look.
long_queue() ->
    [Long, Short] = Pids = [spawn_link(?MODULE, bounce, [0]) || _ <- [1, 2]],
    true = erlang:suspend_process(Long),
    _ = [Long ! {N, "a message"} || N <- lists:seq(1, 1000000)],
    #{records := Records} = run(#{processes => Pids}, 2),
    Of = fun(Pid) ->
        [S || #{process := #{pid := P}} = S <- kprof_stack_reader:samples(Records), P =:= text(Pid)]
    end,
    ?assertEqual([], [S || #{memory := _} = S <- Of(Long)]),
    ?assertEqual([], [S || #{bin := _} = S <- Of(Long)]),
    ?assertMatch([#{queue := 1000000, heap := _, status := 5} | _], Of(Long)),
    ?assertMatch([_ | _], [S || #{memory := M, bin := _, minor := _} = S <- Of(Short), M > 0]),
    lists:foreach(fun end_of/1, Pids).

bounce(N) ->
    receive
        stop -> ok
    after 5 -> bounce(N + 1)
    end.

%% Reductions as changes, sizes in bytes; some with each tenth stack only.
values() ->
    Pid = spawn_link(?MODULE, bounce, [0]),
    {reductions, Before} = process_info(Pid, reductions),
    #{records := Records, totals := Totals} = run(#{processes => [Pid]}, 2),
    {reductions, After} = process_info(Pid, reductions),
    Samples = kprof_stack_reader:samples(Records),
    Reductions = [R || #{reductions := R} <- Samples],
    ?assertEqual(0, hd(Reductions)),
    ?assert(lists:sum(Reductions) > 0 andalso lists:sum(Reductions) =< After - Before),
    Dear = [S || #{memory := _} = S <- Samples],
    Others = maps:get(unchanged, Totals) + maps:get(unanswered, Totals),
    ?assert(length(Dear) * 10 - length(Reductions) - Others =< 10),
    {heap_size, Words} = process_info(Pid, heap_size),
    ?assertMatch([_ | _], [1 || #{heap := H} <- Dear, H =:= Words * erlang:system_info(wordsize)]),
    end_of(Pid).

hibernates() ->
    Pid = spawn_link(fun() -> erlang:hibernate(?MODULE, sleeper, []) end),
    #{records := Records} = run(#{processes => [Pid]}, 1),
    ?assertMatch(
        [#{stack := {whole, [{<<"erlang">>, <<"hibernate">>, 3}]}} | _],
        kprof_stack_reader:samples(Records)
    ),
    end_of(Pid).

names() ->
    Labelled = spawn_link(fun() ->
        try
            proc_lib:set_label({worker, 7})
        catch
            error:undef -> ok
        end,
        sleeper()
    end),
    Server = proc_lib:spawn_link(?MODULE, sleeper, []),
    Known = whereis(kernel_sup),
    timer:sleep(100),
    #{records := Records} = run(#{processes => [Labelled, Server, Known]}, 1),
    Of = fun(Pid) ->
        %% the last that is known of it
        lists:last([P || {process, _, #{pid := Text} = P} <- Records, Text =:= text(Pid)])
    end,
    ?assertMatch(#{name := <<"kernel_sup">>, application := <<"kernel">>}, Of(Known)),
    ?assertMatch(#{initial := <<?MODULE_STRING ":sleeper/0">>, name := <<>>}, Of(Server)),
    case erlang:function_exported(proc_lib, set_label, 1) of
        true -> ?assertMatch(#{name := <<"{worker,7}">>}, Of(Labelled));
        false -> ?assertMatch(#{name := <<>>}, Of(Labelled))
    end,
    lists:foreach(fun end_of/1, [Labelled, Server]).

%% Each is what it is chosen for, among a thousand that do nothing.
busiest() ->
    Idle = [spawn_link(fun sleeper/0) || _ <- lists:seq(1, 1000)],
    Spins = spawn_link(fun() -> spin(0) end),
    Holds = spawn_link(fun() -> holds(lists:seq(1, 1000000)) end),
    Binary = spawn_link(fun() -> holds([<<N, 0:8000000>> || N <- lists:seq(1, 50)]) end),
    Queue = spawn_link(fun sleeper/0),
    _ = [Queue ! N || N <- lists:seq(1, 900)],
    [
        ?assertEqual({By, true}, {By, chosen(By, Pid, 10)})
     || {By, Pid} <- [
            {reductions, Spins}, {memory, Holds}, {message_queue_len, Queue}, {binary, Binary}
        ]
    ],
    lists:foreach(fun end_of/1, [Spins, Holds, Binary, Queue | Idle]).

%% By reductions the first scan of a run chooses who had most since their birth, and a busy machine
%% may leave no time for a second one.
chosen(_, _, 0) ->
    false;
chosen(By, Pid, Times) ->
    #{records := Records} = run(#{processes => [], by => By, top => 3, every_ms => 300}, 2),
    Samples = kprof_stack_reader:samples(Records),
    lists:member(text(Pid), [P || #{process := #{pid := P}} <- Samples]) orelse
        chosen(By, Pid, Times - 1).

holds(Term) ->
    receive
        stop -> Term
    end.

%% By what the sampler measures of itself.
budget() ->
    Pids = [spawn_link(?MODULE, bounce, [0]) || _ <- lists:seq(1, 100)],
    Of = fun(Ppm) ->
        #{records := Records, totals := Totals} = run(#{processes => Pids, budget_ppm => Ppm}, 4),
        Last = lists:last([At || {_, At, _} <- Records]),
        Looks = maps:get(samples, Totals) + maps:get(unchanged, Totals),
        Held = lists:sum([Us || {held, _, Us} <- Records]),
        {Looks, Held, Totals, Last}
    end,
    {Few, Held, #{cost_us := Cost} = Totals, Us} = Of(5000),
    %% what is kept of the time before it began; names, and a first batch before costs are known,
    %% in which the kernel may take the processor away
    ?assert(Cost =< Us * 0.005 + 250000 * 0.005 + 40000, {Cost, Us}),
    ?assert(Held > Us / 4, {Held, Us}),
    ?assert(abs(maps:get(held_ms, Totals) - Held / 1000) < 10),
    {Many, _, _, _} = Of(500000),
    ?assert(Many > 2 * Few, {Few, Many}),
    lists:foreach(fun end_of/1, Pids).

%% It gets one batch, and no more comes, nor gathers, until it goes on.
slow_owner() ->
    Pids = [spawn_link(?MODULE, bounce, [0]) || _ <- lists:seq(1, 200)],
    process_flag(trap_exit, true),
    Wanted = wanted(#{processes => Pids, hz => 1000, budget_ppm => 500000}),
    {ok, Sampler, _, _} = kprof_sampler:start_link(Wanted),
    ok = kprof_sampler:go(Sampler),
    Pid = kprof_sampler:pid(Sampler),
    First =
        receive
            {kprof_sampler, Pid, {taken, _, Bytes, _}} -> Bytes
        end,
    timer:sleep(3000),
    receive
        {kprof_sampler, Pid, Another} -> ?assertEqual(nothing, Another)
    after 0 -> ok
    end,
    {memory, Memory} = process_info(Pid, memory),
    timer:sleep(1000),
    {memory, Later} = process_info(Pid, memory),
    ?assert(Later < Memory + 100000, {Memory, Later}),
    {Before, Reader} = kprof_stack_reader:read(First, kprof_stack_reader:new()),
    ok = kprof_sampler:acknowledge(Sampler),
    ok = kprof_sampler:stop(Sampler),
    #{records := Records, totals := #{held_ms := Held}} = collect(Sampler, Reader, [Before]),
    ?assert(Held > 1000, Held),
    ?assert(lists:sum([Us || {held, _, Us} <- Records]) > 1000000),
    lists:foreach(fun end_of/1, Pids).

%% Also who sleeps, and would otherwise be told as unchanged for ever.
missed() ->
    Sleepers = [spawn_link(fun sleeper/0) || _ <- [1, 2, 3]],
    process_flag(trap_exit, true),
    {ok, Sampler, _, _} = kprof_sampler:start_link(wanted(#{processes => Sleepers})),
    ok = kprof_sampler:go(Sampler),
    _ = erlang:send_after(1500, kprof_sampler:pid(Sampler), {kprof_sampler, anew}),
    _ = erlang:send_after(4000, kprof_sampler:pid(Sampler), {kprof_sampler, stop}),
    #{records := Records} = collect(Sampler, kprof_stack_reader:new(), []),
    {Before, [{forget, _, all} | After]} = lists:splitwith(
        fun(Record) -> element(1, Record) =/= forget end, Records
    ),
    Pids = lists:sort([text(P) || P <- Sleepers]),
    lists:foreach(
        fun(Part) ->
            ?assertEqual(Pids, lists:usort([P || {process, _, #{pid := P}} <- Part])),
            ?assertEqual(Pids, lists:usort([P || {sample, _, #{process := #{pid := P}}} <- Part]))
        end,
        [Before, After]
    ),
    lists:foreach(fun end_of/1, Sleepers).

%% None of its processes is left.
killed() ->
    Self = self(),
    Owner = spawn(fun() ->
        process_flag(trap_exit, true),
        {ok, Sampler, _, _} = kprof_sampler:start_link(wanted(#{})),
        ok = kprof_sampler:go(Sampler),
        Self ! kprof_sampler:processes(Sampler),
        receive
            never -> ok
        end
    end),
    Processes =
        receive
            Pids when is_list(Pids) -> Pids
        end,
    ?assert(length(Processes) > 30),
    64 = erlang:system_flag(backtrace_depth, 64),
    Refs = [erlang:monitor(process, P) || P <- Processes],
    true = exit(Owner, kill),
    [
        receive
            {'DOWN', Ref, _, _, _} -> ok
        end
     || Ref <- Refs
    ],
    ?assertEqual(8, erlang:system_flag(backtrace_depth, 8)).

%% It leaves the depth alone, tells what is cut by that, and tells all anew when it is asked to.
stands() ->
    process_flag(trap_exit, true),
    ?assertEqual(8, kprof_depth:current()),
    Pids = [spawn_link(?MODULE, deep, [N, even]) || N <- [5, 40]],
    Wanted = wanted(#{processes => Pids, slice_s => 3600}),
    {ok, Sampler, _, _} = kprof_sampler:start_link(Wanted),
    ok = kprof_sampler:go(Sampler),
    Pid = kprof_sampler:pid(Sampler),
    Batch = fun() ->
        receive
            {kprof_sampler, Pid, {taken, _, Bytes, _}} ->
                ok = kprof_sampler:acknowledge(Sampler),
                Bytes
        end
    end,
    %% reads batches until the looks are enough; one that is late holds fewer
    Looks = fun Looks(Enough, Bytes, Reader0, Before) ->
        {Records, Reader} = kprof_stack_reader:read(Bytes, Reader0),
        Known = Before ++ Records,
        Samples = kprof_stack_reader:samples(Known),
        case Enough(Samples) of
            true -> Samples;
            false -> Looks(Enough, Batch(), Reader, Known)
        end
    end,
    StacksOf = fun(Samples) -> lists:usort([Stack || #{stack := Stack} <- Samples]) end,
    PidsOf = fun(Samples) -> lists:usort([P || #{process := #{pid := P}} <- Samples]) end,
    First = Batch(),
    ?assertEqual(8, kprof_depth:current()),
    New = kprof_stack_reader:new(),
    Stacks = StacksOf(Looks(fun(S) -> length(StacksOf(S)) >= 2 end, First, New, [])),
    ?assertMatch([{cut, _}, {whole, _}], Stacks),
    ?assertEqual([8, 6], [length(Frames) || {_, Frames} <- Stacks]),
    ok = kprof_sampler:anew(Sampler),
    %% a reader that knows nothing of what came before
    Anew = (fun Until() ->
        case Batch() of
            <<12, _/binary>> = Bytes -> Bytes;
            _ -> Until()
        end
    end)(),
    ?assertEqual(
        lists:sort([text(P) || P <- Pids]),
        PidsOf(Looks(fun(S) -> length(PidsOf(S)) >= 2 end, Anew, New, []))
    ),
    ?assertMatch(#{reason := done}, run(#{processes => Pids}, 1)),
    ?assertEqual(8, kprof_depth:current()),
    ok = kprof_sampler:kill(Sampler),
    lists:foreach(fun end_of/1, Pids).

%% Looks that would be gigabytes a day, for as long as it takes to see that.
volume() ->
    process_flag(trap_exit, true),
    Pids = [spawn_link(?MODULE, bounce, [0]) || _ <- lists:seq(1, 200)],
    Wanted = wanted(#{processes => Pids, hz => 1000, budget_ppm => 500000, slice_s => 3600}),
    {ok, Sampler, _, _} = kprof_sampler:start_link(Wanted),
    ok = kprof_sampler:go(Sampler),
    {Bytes, Share} = until_less(kprof_sampler:pid(Sampler), Sampler, 0),
    ?assert(Share > 0.5 andalso Share < 0.9, Share),
    %% half of an hour's bytes are kept for such hours
    ?assert(Bytes > 4000000 andalso Bytes < 6000000, Bytes),
    ok = kprof_sampler:kill(Sampler),
    lists:foreach(fun end_of/1, Pids).

until_less(Pid, Sampler, Before) ->
    receive
        {kprof_sampler, Pid, {taken, _, Bytes, _}} ->
            ok = kprof_sampler:acknowledge(Sampler),
            until_less(Pid, Sampler, Before + byte_size(Bytes));
        {kprof_sampler, Pid, {less, Share}} ->
            {Before, Share}
    end.

%% Of a request of this trace, or of another node's: its label; of an earlier trace or of somebody
%% else: none.
labels() ->
    Slots = kprof_slots:create(),
    [Old, Current, Other] = [N bsl 32 || N <- [1, 2, 3]],
    ok = kprof_slots:open(Slots, Old),
    ok = kprof_slots:open(Slots, Current),
    Holds = [none, Current + 7, Other + 7, Old + 7, 7, foreign],
    Pids = [spawn_link(fun() -> holder(Label) end) || Label <- Holds],
    try
        #{records := Records} = run(#{processes => Pids, hz => 100, labels => true}, 1),
        Told = [{Pid, Label} || {label, _, {#{pid := Pid}, Label}} <- Records],
        Want = [0, Current + 7, Other + 7, 0, 0, 0],
        ?assertEqual(
            lists:sort(lists:zip([text(P) || P <- Pids], Want)), lists:usort(Told)
        )
    after
        kprof_slots:erase(),
        lists:foreach(fun end_of/1, Pids)
    end.

holder(Label) ->
    _ = Label =/= none andalso seq_trace:set_token(label, Label),
    sleeper().

text(Pid) ->
    list_to_binary(pid_to_list(Pid)).

%% --- a run ---

wanted(More) ->
    Pids = [text(P) || P <- maps:get(processes, More, [])],
    maps:merge(
        #{
            id => 1,
            seconds => 0,
            hz => 99,
            top => 100,
            by => reductions,
            every_ms => 5000,
            budget_ppm => 20000,
            registered => [],
            application => <<>>,
            labels => false
        },
        More#{processes => Pids}
    ).

run(More, Seconds) ->
    process_flag(trap_exit, true),
    {ok, Sampler, _, _} = kprof_sampler:start_link((wanted(More))#{seconds => Seconds}),
    ok = kprof_sampler:go(Sampler),
    collect(Sampler, kprof_stack_reader:new(), []).

collect(Sampler, Reader0, Before) ->
    Pid = kprof_sampler:pid(Sampler),
    receive
        {kprof_sampler, Pid, {taken, _, Bytes, _}} ->
            ?assert(byte_size(Bytes) =< 24 * 1024),
            {Records, Reader} = kprof_stack_reader:read(Bytes, Reader0),
            ok = kprof_sampler:acknowledge(Sampler),
            collect(Sampler, Reader, [Records | Before]);
        {kprof_sampler, Pid, {over, _, Reason, _, Totals}} ->
            #{
                records => lists:append(lists:reverse(Before)),
                reason => Reason,
                totals => Totals
            };
        {'EXIT', Pid, Why} ->
            error({sampler, Why})
    end.

end_of(Pid) ->
    unlink(Pid),
    exit(Pid, kill).
