%% SPDX-License-Identifier: Apache-2.0
%% The sampler on this node: what it sees of processes that do something known.
-module(kprof_sampler_tests).
-include("patient.hrl").

-export([spin/1, left/1, right/1, sleeper/0, deep/2]).

sampler_test_() ->
    [
        {Name, {timeout, 300, Test}}
     || {Name, Test} <- [
            {"shares of known work", fun shares/0},
            {"who sleeps is asked for its stack once", fun asleep/0},
            {"the stack's depth, and what is cut", fun cut/0}
        ]
    ].

%% Of each three reductions of this process two are left's.
shares() ->
    Worker = spawn_link(fun() -> spin(0) end),
    #{records := Records} = run(#{processes => [Worker], hz => 200, budget_ppm => 500000}, 5),
    Stacks = [Stack || #{stack := {_, Stack}} <- kprof_stack_reader:samples(Records)],
    Of = fun(F) -> length([S || S <- Stacks, lists:member({<<?MODULE_STRING>>, F, 1}, S)]) end,
    {Left, Right} = {Of(<<"left">>), Of(<<"right">>)},
    ?assert(Left + Right > 200),
    ?assert(abs(Left / (Left + Right) - 2 / 3) < 0.1),
    end_of(Worker).

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
    #{records := Records, totals := Totals} = run(#{processes => [Sleeper], hz => 100}, 2),
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

%% --- a run ---

wanted(More) ->
    Pids = [list_to_binary(pid_to_list(P)) || P <- maps:get(processes, More, [])],
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
            application => <<>>
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
