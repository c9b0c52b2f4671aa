%% SPDX-License-Identifier: Apache-2.0
%% What sampling of stacks costs a node, beside what other ways of looking at its processes cost. It
%% is measured in this node, where the sample application runs, and processes besides that do what
%% is known.
%%
%% Whoever looks is there for a while, in which it works and rests in turn: its processes are
%% suspended meanwhile. A stretch of work is compared with that of rest right before it, as what
%% else goes on in the machine is about the same then. Where nobody looks, the two tell how much
%% chance there is in it.
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
-define(SETTLE_MS, 3000).
%% of a stretch, which is not measured
-define(TURN_MS, 200).
-define(COMES_MS, 5000).
-define(HANGS_MS, 120000).

%% `SET PAIRS SECONDS KPROF SCRATCH COLLECTOR' prints `port PORT', waits for requests, and measures
%% each way of the set in so many pairs of stretches, of so many seconds each. COLLECTOR is one for
%% which kprof is in the node all the time, or `none': then it comes and goes each time. Of each way
%% it prints
%%   way NAME CPU MORE ERROR BUSY RATE RATIO ERROR PER_CPU ERROR WORK ERROR TOLD LOOKS HELD LATE
%%       COMES GOES
%% means over the pairs, each ERROR being the standard error of what stands before it:
%%   CPU    the node's processor time, % of one processor; MORE: than at rest
%%   BUSY   how much busier its schedulers were, % of one
%%   RATE   requests a second; RATIO: of those at rest
%%   PER_CPU requests in the same processor time, of those at rest: what others on the machine take
%%          does not count
%%   WORK   what the spinning processes did in the same processor time, of that at rest
%%   TOLD   what the sampler says it took, % of one processor
%%   LOOKS  at a process, a second; HELD: % of the time that the sampler says it held itself back
%%   LATE   ms that a process came late at most which wants to run each ms
%%   COMES  s of processor time that it takes to begin, and GOES: to be gone without a trace
%% and 0 where there is no such thing.
-spec main([string()]) -> no_return().
main([Set, Pairs, Seconds, Kprof, Scratch, Collector]) ->
    _ = process_flag(priority, high),
    {ok, _} = application:ensure_all_started(shop),
    #{ways := Ways} = What = what(Set),
    Node = #{
        spun => spinners(maps:get(spinners, What, 0)),
        late => ticker(maps:is_key(sleepers, What)),
        kprof => Kprof,
        scratch => Scratch,
        collector => Collector,
        pairs => list_to_integer(Pairs),
        ms => list_to_integer(Seconds) * 1000
    },
    _ = [spawn_link(?MODULE, visits, []) || _ <- lists:seq(1, ?VISITORS)],
    _ = [spawn_link(?MODULE, sleeps, []) || _ <- lists:seq(1, maps:get(sleepers, What, 0))],
    _ = erlang:system_flag(scheduler_wall_time, true),
    io:format("port ~b~n", [shop_listener:port()]),
    ok = wait_until(fun() -> requests() > 0 end),
    ok = wait_until(fun() -> Collector =:= "none" orelse whereis(kprof_sup) =/= undefined end),
    timer:sleep(?COMES_MS),
    _ = [print(Way, looked(Way, Node)) || Way <- Ways],
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
            [nobody, rests, {top, 10}, {top, 100}, {top, 1000}, {top, 100, "50%"}] ++
            [items_list, items_each, items_groups, poll]
    };
what("crowd") ->
    #{ways => [nobody, {top, 100}, items_list, poll], sleepers => ?SLEEPERS};
what("full") ->
    #{ways => [nobody, {top, 100}]};
what("overload") ->
    #{ways => [nobody, {top, 100}, items_list], spinners => ?SPINNERS}.

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

looked(Way, #{pairs := N} = Node) ->
    First = state(Node),
    Looker = begins(Way, Node),
    Begun = state(Node),
    timer:sleep(?SETTLE_MS),
    Before = said(Looker, none),
    {Pairs, Said} = pairs(N, Looker, Before, [], Node),
    Last = state(Node),
    ok = ends(Looker, Node),
    #{
        pairs => Pairs,
        said => per_second(Before, Said, N * (maps:get(ms, Node) + ?TURN_MS)),
        comes => since(First, Begun),
        goes => since(Last, state(Node))
    }.

since(Before, After) ->
    maps:map(fun(What, Value) -> Value - maps:get(What, Before) end, After).

pairs(0, _, Said, Pairs, _) ->
    {Pairs, Said};
pairs(N, Looker, Said, Pairs, Node) ->
    Pids = processes_of(Looker),
    _ = [suspended(fun erlang:suspend_process/1, Pid) || Pid <- Pids],
    Rest = stretch(Node),
    _ = [suspended(fun erlang:resume_process/1, Pid) || Pid <- Pids],
    Work = stretch(Node),
    pairs(N - 1, Looker, said(Looker, Said), [{Rest, Work} | Pairs], Node).

%% Some end by themselves. The VM may refuse one, as an internal error, that it has just resumed.
suspended(Does, Pid) ->
    try
        Does(Pid)
    catch
        error:badarg ->
            false;
        error:internal_error ->
            timer:sleep(1),
            suspended(Does, Pid)
    end.

processes_of(nobody) ->
    [];
processes_of({kprof, _}) ->
    Leader = process_info(whereis(kprof_sup), group_leader),
    [Pid || Pid <- processes(), process_info(Pid, group_leader) =:= Leader];
processes_of({Pid, _, _, _}) ->
    [Pid].

stretch(#{ms := Ms, late := Late} = Node) ->
    timer:sleep(?TURN_MS),
    _ = Late =/= none andalso atomics:put(Late, 1, 0),
    Before = state(Node),
    timer:sleep(Ms),
    Rates = rates(since(Before, state(Node))),
    Rates#{late => late(Late)}.

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

rates(#{us := Us, cpu_ms := Cpu, busy := Busy, requests := Requests, spun := Spun}) ->
    BusyUs = erlang:convert_time_unit(Busy, native, microsecond),
    #{
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
begins(rests, #{kprof := Kprof} = Node) ->
    Port = run(Kprof, ["attach", "--no-tiers" | arguments(Node)]),
    ok = wait_until(fun() -> whereis(kprof_sup) =/= undefined end),
    {kprof, Port};
begins({top, Top}, Node) ->
    begins({top, Top, "2%"}, Node);
begins({top, Top, Budget}, #{kprof := Kprof} = Node) ->
    Port = run(
        Kprof,
        ["sample", "--for", "600s", "--budget", Budget, "--top", integer_to_list(Top)] ++
            arguments(Node)
    ),
    ok = first_look(Port, []),
    {kprof, Port};
begins(Way, _) ->
    Looks = counters:new(1, []),
    Depth = erlang:system_flag(backtrace_depth, 64),
    {Pid, Ref} = spawn_opt(fun() -> looks_itself(Way, Looks) end, [monitor | priority(Way)]),
    {Pid, Ref, Looks, Depth}.

run(Kprof, Args) ->
    open_port({spawn_executable, Kprof}, [
        {args, Args}, {line, 1000}, exit_status, stderr_to_stdout, binary
    ]).

arguments(#{scratch := Scratch, collector := Collector}) ->
    In = fun(Name) -> filename:join(Scratch, Name) end,
    [atom_to_list(node()), "--cookie-file", In("cookie"), "--db", In("sample.db")] ++
        [Argument || Collector =/= "none", Argument <- ["--collector", Collector]].

%% flame_prof has the highest one
priority(poll) -> [];
priority(_) -> [{priority, max}].

first_look(Port, Said) ->
    receive
        {Port, {data, {_, Line}}} ->
            case progress(Line, none) of
                #{looks := Looks} when Looks > 0 -> ok;
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

%% Counts from its begin on: the last that it has said, or before.
said({Pid, _, Looks, _}, _) when is_pid(Pid) ->
    #{looks => counters:get(Looks, 1)};
said({kprof, Port} = Looker, Before) ->
    receive
        {Port, {data, {_, Line}}} -> said(Looker, progress(Line, Before));
        {Port, {exit_status, Status}} -> error({kprof_ended, Status})
    after 0 -> Before
    end;
said(nobody, _) ->
    none.

per_second(#{} = Before, #{} = After, Ms) ->
    maps:map(fun(_, Value) -> Value * 1000 / Ms end, since(Before, After));
per_second(_, _, _) ->
    #{}.

progress(Line, Before) ->
    Form =
        "^([0-9]+) looks at [0-9]+ processes, ([0-9]+) unchanged, ([0-9]+) not answered; "
        "([0-9.]+) s held back, ([0-9]+) ms of processor time",
    case re:run(Line, Form, [{capture, all_but_first, list}]) of
        {match, [Held | _] = Numbers} when Held =/= [] ->
            [Looks, Unchanged, Silent, HeldS, Cost] = Numbers,
            Count = lists:sum([list_to_integer(N) || N <- [Looks, Unchanged, Silent]]),
            #{looks => Count, held_s => list_to_float(HeldS), cost_ms => list_to_integer(Cost)};
        nomatch ->
            Before
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

print(Way, #{pairs := Pairs, said := Said} = Measured) ->
    Of = fun(What) -> [{maps:get(What, Rest), maps:get(What, Work)} || {Rest, Work} <- Pairs] end,
    Work = fun(What) -> mean([W || {_, W} <- Of(What)]) end,
    Less = fun(What) -> [W - R || {R, W} <- Of(What)] end,
    Ratio = fun(What) -> [W / max(1.0e-9, R) || {R, W} <- Of(What)] end,
    Told = fun(What) -> maps:get(What, Said, 0) end,
    Values = [
        Work(cpu),
        mean(Less(cpu)),
        standard_error(Less(cpu)),
        mean(Less(busy)),
        Work(rate),
        mean(Ratio(rate)),
        standard_error(Ratio(rate)),
        mean(Ratio(per_cpu)),
        standard_error(Ratio(per_cpu)),
        mean(Ratio(work)),
        standard_error(Ratio(work)),
        Told(cost_ms) / 10,
        Told(looks),
        Told(held_s) * 100,
        lists:max([L || {_, L} <- Of(late)]),
        once(comes, Measured),
        once(goes, Measured)
    ],
    io:format("way ~s~s~n", [name(Way), [io_lib:format(" ~.3f", [float(V)]) || V <- Values]]).

%% s of processor time beyond what the node would have taken.
once(What, #{pairs := Pairs} = Measured) ->
    #{cpu_ms := Ms, us := Us} = maps:get(What, Measured),
    max(0, Ms / 1000 - Us * mean([maps:get(cpu, Rest) || {Rest, _} <- Pairs]) / 1.0e8).

name({top, Top}) -> io_lib:format("top_~b", [Top]);
name({top, Top, _}) -> io_lib:format("top_~b_dear", [Top]);
name(Way) -> atom_to_list(Way).

mean(Values) ->
    lists:sum(Values) / length(Values).

standard_error(Values) ->
    Mean = mean(Values),
    N = length(Values),
    math:sqrt(lists:sum([(V - Mean) * (V - Mean) || V <- Values]) / max(1, N - 1) / N).

us() ->
    erlang:monotonic_time(microsecond).
