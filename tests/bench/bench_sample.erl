%% SPDX-License-Identifier: Apache-2.0
%% What sampling of stacks costs a node, beside what other ways of looking at its processes cost. It
%% is measured in this node, where the sample application runs, and processes besides that do what
%% is known.
%%
%% Whoever looks comes in turn, in rounds. A round begins and ends without anybody: others are
%% compared with the two together, and the last with the first tells how much chance there is in it.
-module(bench_sample).

-export([main/1]).
-export([visits/0, sleeps/0, spins/1]).

-define(VISITORS, 1000).
-define(VISIT_MS, 200).
-define(VISIT_TURNS, 500).
-define(SLEEPERS, 100000).
-define(SPINNERS, 100).
-define(SPIN_TURNS, 10000).
-define(TOP, 100).
-define(EVERY_MS, 5000).
-define(SETTLE_MS, 1000).
-define(COMES_MS, 5000).
-define(HANGS_MS, 120000).

%% `SET ROUNDS SECONDS KPROF SCRATCH COLLECTOR' prints `port PORT', waits for requests, and measures
%% each way of the set once in each round, for so many seconds. COLLECTOR is one for which kprof is
%% in the node all the time, or `none': then it comes and goes each time. Of each way it prints
%%   way NAME CPU MORE LOWEST HIGHEST BUSY RATE RATIO LOWEST HIGHEST WORK TOLD LOOKS HELD LATE
%%       COMES GOES PER_CPU LOWEST HIGHEST
%% medians over the rounds, and of those that matter most the lowest and the highest round:
%%   CPU    the node's processor time, % of one processor; MORE: than without anybody
%%   BUSY   how much busier its schedulers were, % of one
%%   RATE   requests a second; RATIO: of those without anybody
%%   WORK   what the spinning processes did in the same processor time, of that without anybody
%%   TOLD   what the sampler says it took, % of one processor
%%   LOOKS  at a process, a second; HELD: % of the time that the sampler says it held itself back
%%   LATE   ms that a process came late at most which wants to run each ms
%%   COMES  s of processor time that it takes to begin, and GOES: to be gone without a trace
%%   PER_CPU requests in the same processor time, of those without anybody: what others on the
%%          machine take does not count
%% and 0 where there is no such thing.
-spec main([string()]) -> no_return().
main([Set, Rounds, Seconds, Kprof, Scratch, Collector]) ->
    _ = process_flag(priority, high),
    {ok, _} = application:ensure_all_started(shop),
    #{ways := Ways} = What = what(Set),
    Node = #{
        spun => spinners(maps:get(spinners, What, 0)),
        late => ticker(maps:is_key(sleepers, What)),
        kprof => Kprof,
        scratch => Scratch,
        collector => Collector,
        ms => list_to_integer(Seconds) * 1000
    },
    _ = [spawn_link(?MODULE, visits, []) || _ <- lists:seq(1, ?VISITORS)],
    _ = [spawn_link(?MODULE, sleeps, []) || _ <- lists:seq(1, maps:get(sleepers, What, 0))],
    _ = erlang:system_flag(scheduler_wall_time, true),
    io:format("port ~b~n", [shop_listener:port()]),
    ok = wait_until(fun() -> requests() > 0 end),
    ok = wait_until(fun() -> Collector =:= "none" orelse whereis(kprof_sup) =/= undefined end),
    timer:sleep(?COMES_MS),
    Measured = [
        maps:from_list([{Way, looked(Way, Node)} || Way <- Ways])
     || _ <- lists:seq(1, list_to_integer(Rounds))
    ],
    _ = [print(Way, Measured) || Way <- Ways],
    halt(0).

wait_until(Is) ->
    Is() orelse
        begin
            timer:sleep(100),
            wait_until(Is)
        end,
    ok.

what("usual") ->
    #{
        ways =>
            [nobody, {top, 10}, {top, 100}, {top, 1000}, {top, 100, "50%"}] ++
            [items_list, items_each, items_groups, poll, nobody_again]
    };
what("crowd") ->
    #{ways => [nobody, {top, 100}, items_list, poll, nobody_again], sleepers => ?SLEEPERS};
what("full") ->
    #{ways => [nobody, {top, 100}, nobody_again]};
what("overload") ->
    #{ways => [nobody, {top, 100}, items_list, nobody_again], spinners => ?SPINNERS}.

%% --- who is in the node ---

%% Works for a few µs, five times a second, at no fixed time.
visits() ->
    receive
    after ?VISIT_MS div 2 + rand:uniform(?VISIT_MS) -> count(?VISIT_TURNS)
    end,
    visits().

sleeps() ->
    receive
        never -> ok
    end.

count(0) -> ok;
count(N) -> count(N - 1).

spinners(N) ->
    Spun = counters:new(1, [write_concurrency]),
    _ = [spawn_link(?MODULE, spins, [Spun]) || _ <- lists:seq(1, N)],
    Spun.

spins(Spun) ->
    count(?SPIN_TURNS),
    ok = counters:add(Spun, 1, 1),
    spins(Spun).

%% The longest time between two of its turns, in µs.
ticker(false) ->
    none;
ticker(true) ->
    Late = atomics:new(1, []),
    _ = spawn_link(fun() -> ticks(us(), Late) end),
    Late.

ticks(Before, Late) ->
    receive
    after 1 -> ok
    end,
    Now = us(),
    _ = Now - Before > atomics:get(Late, 1) andalso atomics:put(Late, 1, Now - Before),
    ticks(Now, Late).

%% --- a measurement ---

looked(Way, Node) ->
    First = state(Node),
    Looker = begins(Way, Node),
    Begun = state(Node),
    timer:sleep(?SETTLE_MS),
    Measured = measured(Looker, Node),
    Last = state(Node),
    ok = ends(Looker, Node),
    Ended = state(Node),
    Measured#{comes => since(First, Begun), goes => since(Last, Ended)}.

since(Before, After) ->
    maps:map(fun(What, Value) -> Value - maps:get(What, Before) end, After).

measured(Looker, #{ms := Ms, late := Late} = Node) ->
    _ = Late =/= none andalso atomics:put(Late, 1, 0),
    Looks = looks(Looker),
    Before = state(Node),
    Told = told(Looker, us() + Ms * 1000, []),
    After = state(Node),
    More = maps:merge(looks(Looker, Looks, us_of(After) - us_of(Before)), Told),
    rates(since(Before, After), More#{late => late(Late)}).

late(none) -> 0;
late(Late) -> max(0, atomics:get(Late, 1) - 1000) / 1000.

%% The processor time is what the kernel tells of the whole process, with all its threads, as in
%% /proc/PID/stat but in ms.
state(#{spun := Spun}) ->
    {Cpu, _} = statistics(runtime),
    #{
        us => us(),
        cpu_ms => Cpu,
        busy => lists:sum([Active || {_, Active, _} <- statistics(scheduler_wall_time)]),
        requests => requests(),
        spun => counters:get(Spun, 1)
    }.

us_of(#{us := Us}) -> Us.

rates(#{us := Us, cpu_ms := Cpu, busy := Busy, requests := Requests, spun := Spun}, More) ->
    BusyUs = erlang:convert_time_unit(Busy, native, microsecond),
    More#{
        cpu => Cpu * 100000 / Us,
        busy => BusyUs * 100 / Us,
        rate => Requests * 1.0e6 / Us,
        per_cpu => Requests / max(1, Cpu),
        work => Spun / max(1, Cpu)
    }.

requests() ->
    #{routes := Routes} = shop_truth:read(),
    lists:sum([N || #{requests := N} <- maps:values(Routes)]).

%% --- who looks ---

begins(nobody, _) ->
    nobody;
begins(nobody_again, _) ->
    nobody;
begins({top, Top}, Node) ->
    begins({top, Top, "2%"}, Node);
begins({top, Top, Budget}, #{kprof := Kprof, scratch := Scratch, collector := Collector}) ->
    In = fun(Name) -> filename:join(Scratch, Name) end,
    Args =
        ["sample", atom_to_list(node()), "--cookie-file", In("cookie"), "--db", In("sample.db")] ++
            ["--for", "600s", "--budget", Budget, "--top", integer_to_list(Top)] ++
            [Argument || Collector =/= "none", Argument <- ["--collector", Collector]],
    Port = open_port({spawn_executable, Kprof}, [
        {args, Args}, {line, 1000}, exit_status, stderr_to_stdout, binary
    ]),
    ok = first_look(Port, []),
    {kprof, Port};
begins(Way, _) ->
    Looks = counters:new(1, []),
    Depth = erlang:system_flag(backtrace_depth, 64),
    {Pid, Ref} = spawn_opt(fun() -> looks_itself(Way, Looks) end, [monitor | priority(Way)]),
    {Pid, Ref, Looks, Depth}.

%% flame_prof has the highest one
priority(poll) -> [];
priority(_) -> [{priority, max}].

first_look(Port, Said) ->
    receive
        {Port, {data, {_, Line}}} ->
            case progress(Line) of
                {ok, #{looks := Looks}} when Looks > 0 -> ok;
                _ -> first_look(Port, [Line | Said])
            end;
        {Port, {exit_status, Status}} ->
            error({kprof_sample, Status, lists:reverse(Said)})
    after ?HANGS_MS -> error({kprof_sample, hangs, lists:reverse(Said)})
    end.

%% Modules that are taken out are purged after that.
ends(nobody, _) ->
    ok;
ends({kprof, Port}, #{collector := Collector}) ->
    {os_pid, Pid} = erlang:port_info(Port, os_pid),
    Modules = [M || {M, _} <- code:all_loaded(), lists:prefix("kprof", atom_to_list(M))],
    _ = os:cmd("kill -INT " ++ integer_to_list(Pid)),
    ok = ended(Port),
    wait_until(fun() ->
        Collector =/= "none" orelse not lists:any(fun erlang:check_old_code/1, Modules)
    end);
ends({Pid, Ref, _, Depth}, _) ->
    true = exit(Pid, kill),
    receive
        {'DOWN', Ref, process, _, killed} -> ok
    end,
    _ = erlang:system_flag(backtrace_depth, Depth),
    ok.

ended(Port) ->
    receive
        {Port, {data, _}} -> ended(Port);
        {Port, {exit_status, 0}} -> ok;
        {Port, {exit_status, Status}} -> error({kprof_sample, Status})
    after ?HANGS_MS -> error({kprof_sample, does_not_end})
    end.

%% --- what they say ---

looks({Pid, _, Looks, _}) when is_pid(Pid) -> counters:get(Looks, 1);
looks(_) -> 0.

looks({Pid, _, Looks, _}, Before, Us) when is_pid(Pid) ->
    #{looks => (counters:get(Looks, 1) - Before) * 1.0e6 / Us};
looks(_, _, _) ->
    #{}.

%% Waits until then. What `kprof sample' says meanwhile, from the first of its lines to the last.
told(Looker, Until, Lines) ->
    receive
        {_, {data, {_, Line}}} ->
            case progress(Line) of
                {ok, Progress} -> told(Looker, Until, [Progress#{us => us()} | Lines]);
                none -> told(Looker, Until, Lines)
            end;
        {_, {exit_status, Status}} ->
            error({kprof_sample, ended, Status})
    after max(0, (Until - us()) div 1000) ->
        case Lines of
            [Last, _ | _] -> told(lists:last(Lines), Last);
            _ -> #{}
        end
    end.

told(First, Last) ->
    Per = fun(What) ->
        (maps:get(What, Last) - maps:get(What, First)) / (us_of(Last) - us_of(First))
    end,
    #{
        told => Per(cost_ms) * 100000,
        looks => Per(looks) * 1.0e6,
        held => Per(held_s) * 1.0e8
    }.

progress(Line) ->
    Form =
        "^([0-9]+) looks at [0-9]+ processes, ([0-9]+) unchanged, ([0-9]+) not answered; "
        "([0-9.]+) s held back, ([0-9]+) ms of processor time",
    case re:run(Line, Form, [{capture, all_but_first, list}]) of
        {match, [Held | _] = Numbers} when Held =/= [] ->
            [Looks, Unchanged, Silent, HeldS, Cost] = Numbers,
            Count = lists:sum([list_to_integer(N) || N <- [Looks, Unchanged, Silent]]),
            {ok, #{
                looks => Count, held_s => list_to_float(HeldS), cost_ms => list_to_integer(Cost)
            }};
        nomatch ->
            none
    end.

%% --- the other ways ---

%% What flame_prof reads of each of the top processes, at a rate that ours has by default: all of it
%% each time, in one question or with a question for each; who asks waits for the answer.
%% flame_prof itself has the processes in eleven groups by chance, and looks at one of them each
%% 9 ms. What is seen is counted and kept here, and not written to files.
%% etop reads some items of all processes.
looks_itself(poll, Looks) ->
    polls(Looks);
looks_itself(Way, Looks) ->
    looks_at(Way, Looks, {#{}, us(), []}, us(), #{}).

looks_at(Way, Looks, {Reductions, ChooseAt, _}, At, Seen) when At >= ChooseAt ->
    {Pids, Now} = busiest(Reductions),
    looks_at(Way, Looks, {Now, At + ?EVERY_MS * 1000, Pids}, At, maps:with(Pids, Seen));
looks_at(Way, Looks, {_, _, Pids} = Chosen, At, Before) ->
    Turn = turn(Way, Pids),
    Seen = lists:foldl(
        fun(Pid, Acc) ->
            ok = counters:add(Looks, 1, 1),
            seen(Pid, items_of(Way, Pid), Acc)
        end,
        Before,
        Turn
    ),
    Next = max(us(), At + every_us(Way)),
    timer:sleep(max(1, (Next - us()) div 1000)),
    looks_at(Way, Looks, Chosen, Next, Seen).

every_us(items_groups) -> 9000;
every_us(_) -> 1000000 div 99.

turn(items_groups, Pids) ->
    Group = rand:uniform(11),
    [Pid || Pid <- Pids, erlang:phash2(Pid, 11) + 1 =:= Group];
turn(_, Pids) ->
    Pids.

busiest(Before) ->
    Now = maps:from_list([
        {Pid, Reductions}
     || Pid <- processes(),
        Pid =/= self(),
        {reductions, Reductions} <- [process_info(Pid, reductions)]
    ]),
    Ranked = lists:sort([{maps:get(Pid, Before, 0) - R, Pid} || {Pid, R} <- maps:to_list(Now)]),
    {[Pid || {_, Pid} <- lists:sublist(Ranked, ?TOP)], Now}.

items() ->
    [current_function, current_stacktrace, initial_call, dictionary, reductions] ++
        [message_queue_len, memory, total_heap_size, garbage_collection_info] ++
        [garbage_collection].

items_of(Way, Pid) ->
    Status = process_info(Pid, status),
    case Way of
        items_each -> {Status, [process_info(Pid, Item) || Item <- items()]};
        _ -> {Status, process_info(Pid, items())}
    end.

%% How often each stack was seen, and the last values.
seen(_, {undefined, _}, Seen) ->
    Seen;
seen(Pid, {Status, [_, Stack | _] = Items}, Seen) ->
    {Stacks, _, _} = maps:get(Pid, Seen, {#{}, none, []}),
    Seen#{Pid => {Stacks#{Stack => maps:get(Stack, Stacks, 0) + 1}, Status, Items}};
seen(_, _, Seen) ->
    Seen.

polls(Looks) ->
    Items = [registered_name, initial_call, memory, reductions, current_function] ++
        [message_queue_len],
    All = processes(),
    Seen = [{R, Pid, I} || Pid <- All, [_, _, _, {_, R} | _] = I <- [process_info(Pid, Items)]],
    ok = counters:add(Looks, 1, length(All)),
    _ = lists:sublist(lists:reverse(lists:sort(Seen)), ?TOP),
    timer:sleep(1000),
    polls(Looks).

%% --- what it came to ---

print(Way, Measured) ->
    Of = fun(What) -> [maps:get(What, maps:get(Way, Round), 0) || Round <- Measured] end,
    Alone = fun(What) -> [alone(Way, What, Round) || Round <- Measured] end,
    Less = fun(What) -> [A - B || {A, B} <- lists:zip(Of(What), Alone(What))] end,
    Ratio = fun(What) -> [A / max(1.0e-9, B) || {A, B} <- lists:zip(Of(What), Alone(What))] end,
    More = Less(cpu),
    Ratios = Ratio(rate),
    PerCpu = Ratio(per_cpu),
    Values = [
        median(Of(cpu)),
        median(More),
        lists:min(More),
        lists:max(More),
        median(Less(busy)),
        median(Of(rate)),
        median(Ratios),
        lists:min(Ratios),
        lists:max(Ratios),
        median(Ratio(work)),
        median(Of(told)),
        median(Of(looks)),
        median(Of(held)),
        median(Of(late)),
        median([once(Way, comes, Round) || Round <- Measured]),
        median([once(Way, goes, Round) || Round <- Measured]),
        median(PerCpu),
        lists:min(PerCpu),
        lists:max(PerCpu)
    ],
    io:format("way ~s~s~n", [name(Way), [io_lib:format(" ~.3f", [float(V)]) || V <- Values]]).

%% In a round without anybody: of the last the first, of the first itself.
alone(Way, What, #{nobody := First}) when Way =:= nobody; Way =:= nobody_again ->
    maps:get(What, First);
alone(_, What, #{nobody := First, nobody_again := Last}) ->
    (maps:get(What, First) + maps:get(What, Last)) / 2.

%% s of processor time beyond what the node would have taken.
once(Way, What, Round) ->
    #{cpu_ms := Ms, us := Us} = maps:get(What, maps:get(Way, Round)),
    max(0, Ms / 1000 - Us * alone(Way, cpu, Round) / 1.0e8).

name({top, Top}) -> io_lib:format("top_~b", [Top]);
name({top, Top, _}) -> io_lib:format("top_~b_dear", [Top]);
name(Way) -> atom_to_list(Way).

median(Values) ->
    Sorted = lists:sort(Values),
    N = length(Sorted),
    (lists:nth((N + 1) div 2, Sorted) + lists:nth(N div 2 + 1, Sorted)) / 2.

us() ->
    erlang:monotonic_time(microsecond).
