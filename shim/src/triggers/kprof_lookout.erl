%% SPDX-License-Identifier: Apache-2.0
%% @doc The lookout of a trace's triggers ({@link kprof_trigger}): a process that looks at the
%% node's values once a second, and has stacks sampled when a run is due. Only what triggers there
%% are want to know is looked at; where there are none, nothing wakes it. It waits for no other
%% process: who does ask are processes of its own ({@link kprof_queues}).
%%
%% A run is {@link kprof_life:sample/1}, called by a process beside it, one at a time. Where that
%% cannot be, as there is no collector say, it tries again later, and tells so once.
-module(kprof_lookout).

-export([start_link/2]).

-export_type([sample/0, order/0, told/0]).

-define(LOOK_MS, 1000).
% how often is looked at questions that have not been answered
-define(ASKED_MS, 20).

-type sample() :: fun((kprof_sample_options:wanted()) -> {ok, map()} | {error, term()}).
%% {@link kprof_life:sample/1}.
-type order() :: {add, kprof_trigger:spec()} | {remove, all | binary()} | list.
%% It gets `{order, Id, Order}' and `{p99, [{Tier, Ms}]}'.
-type told() ::
    {?MODULE, pid(),
        {event, unicode:chardata()}
        | {done, Id :: term(), Ok :: boolean(), unicode:chardata(), [map()], P99 :: [binary()]}}.
%% And sends these to its owner: something happened; an order is done. P99: the tiers whose 99th
%% percentile it wants to know from now on.

-record(run, {
    pid :: pid(),
    name :: binary(),
    % what its owner is told of it; none: it has been
    text :: none | unicode:chardata()
}).
-record(s, {
    owner :: pid(),
    sample :: sample(),
    triggers = [] :: [kprof_trigger:trigger()],
    queues :: kprof_queues:queues(),
    % whose queue was the longest
    longest = none :: none | pid(),
    % at the last look
    reductions = none :: none | {Ms :: integer(), non_neg_integer()},
    % who asks for the memory in use
    memory = none :: none | pid(),
    timer = none :: none | reference(),
    run = none :: none | #run{},
    % why none could begin, as it was told last
    refused = none :: none | string()
}).

%% @doc Starts it for the caller, whose it is and with whom it ends. Returns all its processes, its
%% own first.
-spec start_link([kprof_trigger:spec()], sample()) -> [pid()].
start_link(Specs, Sample) ->
    Owner = self(),
    Ref = make_ref(),
    Pid = spawn_opt(fun() -> init(Owner, Ref, Specs, Sample) end, [link, {priority, high}]),
    receive
        {Ref, Askers} -> [Pid | Askers]
    end.

init(Owner, Ref, Specs, Sample) ->
    _ = process_flag(trap_exit, true),
    _ = seq_trace:set_token([]),
    Queues = kprof_queues:start_link(),
    Owner ! {Ref, kprof_queues:processes(Queues)},
    Triggers = [kprof_trigger:new(Spec) || Spec <- Specs],
    loop(timed(#s{owner = Owner, sample = Sample, queues = Queues, triggers = Triggers})).

%% Nothing to look at: nothing wakes it.
timed(#s{timer = none, triggers = [_ | _]} = S) ->
    S#s{timer = erlang:send_after(?LOOK_MS, self(), look)};
timed(S) ->
    S.

loop(S) ->
    receive
        look ->
            loop(timed(look(begun(S#s{timer = none}))));
        asked ->
            loop(asked(S#s{queues = kprof_queues:look(erlang:monotonic_time(), S#s.queues)}));
        {kprof_asker, Ref, Answers, Ns, Left} ->
            loop(answered(kprof_queues:answered(Ref, Answers, Ns, Left, S#s.queues), S));
        {memory, Pid, Bytes} when Pid =:= S#s.memory ->
            loop(value(memory, Bytes, S#s{memory = none}));
        {p99, Tiers} ->
            loop(lists:foldl(fun({T, Ms}, S1) -> value({tier_p99, T}, Ms, S1) end, S, Tiers));
        {order, Id, Order} ->
            loop(timed(order(Id, Order, S)));
        {'EXIT', Pid, Why} ->
            loop(ended(Pid, Why, S));
        _ ->
            loop(S)
    end.

ended(Owner, Why, #s{owner = Owner}) ->
    exit(Why);
ended(Pid, Why, #s{run = #run{pid = Pid} = Run} = S) ->
    over(Why, Run, S#s{run = none});
ended(Pid, Why, _) when Why =/= normal ->
    % one of those who ask
    exit({ended, Pid, Why});
ended(_, _, S) ->
    S.

%% --- values ---

look(#s{triggers = Triggers} = S) ->
    Wanted = lists:usort([Of || T <- Triggers, #{of_what := Of} <- [kprof_trigger:spec(T)]]),
    lists:foldl(fun look/2, S, Wanted).

look(run_queue, S) ->
    value(run_queue, erlang:statistics(total_run_queue_lengths), S);
look(reductions, #s{reductions = Before} = S) ->
    Now = now_ms(),
    {Reductions, _} = erlang:statistics(reductions),
    rate(Before, {Now, Reductions}, S#s{reductions = {Now, Reductions}});
look(memory, #s{memory = none} = S) ->
    %% all schedulers answer that, and one of them may run native code
    Self = self(),
    S#s{memory = spawn_link(fun() -> Self ! {memory, self(), erlang:memory(total)} end)};
look(message_queue_len, #s{queues = Queues} = S) ->
    case kprof_queues:is_asking(Queues) of
        true -> S;
        false -> asked(S#s{queues = kprof_queues:ask(erlang:monotonic_time(), Queues)})
    end;
look(_, S) ->
    S.

%% Someone else may have had them counted since the last look, which the total does not mind.
rate({Before, Were}, {Now, Are}, S) when Now > Before ->
    value(reductions, (Are - Were) * 1000 div (Now - Before), S);
rate(_, _, S) ->
    S.

asked(#s{queues = Queues} = S) ->
    _ = kprof_queues:is_asking(Queues) andalso erlang:send_after(?ASKED_MS, self(), asked),
    S.

answered(Queues, #s{queues = Before} = S0) ->
    S = S0#s{queues = Queues},
    case kprof_queues:is_asking(Before) andalso not kprof_queues:is_asking(Queues) of
        true ->
            {Length, Pid} = kprof_queues:longest(Queues),
            value(message_queue_len, Length, S#s{longest = Pid});
        false ->
            S
    end.

value(Of, Value, #s{triggers = Triggers} = S) ->
    lists:foldl(
        fun(T, S1) ->
            case kprof_trigger:spec(T) of
                #{of_what := Of} -> seen(kprof_trigger:value(now_ms(), Value, T), Value, S1);
                _ -> S1
            end
        end,
        S,
        Triggers
    ).

seen({wait, T}, _, S) ->
    put_trigger(T, S);
seen({due, T}, Value, #s{run = none} = S) ->
    begin_run(T, Value, S);
seen({due, T}, _, S) ->
    % one run of a node at a time
    put_trigger(kprof_trigger:put_off(now_ms(), T), S).

put_trigger(T, #s{triggers = Triggers} = S) ->
    Name = kprof_trigger:name(T),
    S#s{
        triggers = [
            case kprof_trigger:name(One) of
                Name -> T;
                _ -> One
            end
         || One <- Triggers
        ]
    }.

%% --- runs ---

begin_run(T, Value, #s{sample = Sample} = S) ->
    #{name := Name, sample := #{seconds := Seconds} = Wanted} = Spec = kprof_trigger:spec(T),
    Why = unicode:characters_to_binary(why(Spec, Value, S)),
    Named = Wanted#{name := name(maps:get(name, Wanted), Why), trigger => Name},
    Pid = spawn_link(fun() -> exit({sampled, Sample(Named)}) end),
    Text = io_lib:format("~ts: stacks are sampled for ~b s", [Why, Seconds]),
    put_trigger(kprof_trigger:begun(now_ms(), T), S#s{
        run = #run{pid = Pid, name = Name, text = Text}
    }).

name(<<>>, Why) -> unicode:characters_to_binary(string:slice(Why, 0, 120));
name(Name, _) -> Name.

why(#{name := Name, of_what := Of, above := Above} = Spec, Value, S) ->
    io_lib:format("the trigger ~ts: ~ts, above ~ts~ts", [
        Name,
        amount(Of, Value, S),
        number(Above),
        case Spec of
            #{high_water := true} -> ", and a new high-water mark";
            #{for_ms := Ms} -> io_lib:format(" for ~ts s", [number(Ms / 1000)])
        end
    ]).

amount(run_queue, N, _) ->
    [number(N), " processes ready to run"];
amount(message_queue_len, N, #s{longest = Pid}) ->
    [number(N), " messages in the queue of ", process(Pid)];
amount(memory, N, _) ->
    [number(N), " bytes in use"];
amount(reductions, N, _) ->
    [number(N), " reductions a second"];
amount({tier_p99, Tier}, Ms, _) ->
    [Tier, " took ", number(Ms), " ms at the 99th percentile"].

number(N) when is_integer(N) -> integer_to_list(N);
number(N) when N == trunc(N) -> integer_to_list(trunc(N));
number(N) -> io_lib:format("~.1f", [N]).

process(none) ->
    "a process";
process(Pid) ->
    case kprof_described:unknown(Pid) of
        {_, <<>>, _, _} -> pid_to_list(Pid);
        {_, Name, _, _} -> [Name, " (", pid_to_list(Pid), ")"]
    end.

%% A run that has not failed until the next look has begun.
begun(#s{run = #run{text = Text} = Run} = S) when Text =/= none ->
    ok = tell_event(Text, S),
    S#s{run = Run#run{text = none}, refused = none};
begun(S) ->
    S.

over({sampled, {ok, #{profile := Profile}}}, Run, S0) ->
    S = begun(S0#s{run = Run}),
    ok = tell_event(io_lib:format("the trigger ~ts: profile ~b", [Run#run.name, Profile]), S),
    S#s{run = none};
over({sampled, {error, Reason}}, Run, S) ->
    failed(kprof_error:format(Reason), Run, S);
over(Why, Run, S) ->
    failed(lists:flatten(io_lib:format("~0tP", [Why, 20])), Run, S).

%% One that had begun counts, so that there is no other one too soon.
failed(Why, #run{name = Name, text = none}, S) ->
    ok = tell_event(["the trigger ", Name, ": no profile: ", Why], S),
    S;
failed(Why, #run{name = Name, text = Text}, #s{refused = Told} = S0) ->
    _ = Why =:= Told orelse tell_event([Text, ", but that cannot be now: ", Why], S0),
    S = S0#s{refused = Why},
    case [T || T <- S#s.triggers, kprof_trigger:name(T) =:= Name] of
        [T] -> put_trigger(kprof_trigger:refused(now_ms(), T), S);
        % it has been removed
        [] -> S
    end.

tell_event(Text, #s{owner = Owner}) ->
    Owner ! {?MODULE, self(), {event, Text}},
    ok.

%% --- orders ---

order(Id, {add, #{name := Name} = Spec}, #s{triggers = Triggers} = S0) ->
    Most = kprof_trigger_options:most(),
    case lists:any(fun(T) -> kprof_trigger:name(T) =:= Name end, Triggers) of
        true ->
            done(Id, false, error_text({duplicate_trigger, Name}), [], S0);
        false when length(Triggers) >= Most ->
            done(Id, false, error_text({too_many_triggers, length(Triggers) + 1, Most}), [], S0);
        false ->
            S = S0#s{triggers = Triggers ++ [kprof_trigger:new(Spec)], reductions = none},
            done(Id, true, ["the trigger ", Name, " is added"], [], S)
    end;
order(Id, {remove, all}, #s{triggers = Triggers} = S) ->
    Text = io_lib:format("~b removed", [length(Triggers)]),
    done(Id, true, Text, [], S#s{triggers = []});
order(Id, {remove, Name}, #s{triggers = Triggers} = S) ->
    case [T || T <- Triggers, kprof_trigger:name(T) =/= Name] of
        Triggers ->
            done(Id, false, error_text({no_trigger, Name}), [], S);
        Others ->
            done(Id, true, ["the trigger ", Name, " is removed"], [], S#s{triggers = Others})
    end;
order(Id, list, #s{triggers = Triggers, longest = Longest} = S) ->
    List = [
        case kprof_trigger:shown(now_ms(), T) of
            #{trigger := message_queue_len, value := N} = Shown when N > 0 ->
                Shown#{process => unicode:characters_to_binary(process(Longest))};
            Shown ->
                Shown
        end
     || T <- Triggers
    ],
    done(Id, true, "", List, S).

done(Id, Ok, Text, List, #s{owner = Owner, triggers = Triggers} = S) ->
    P99 = tiers([kprof_trigger:spec(T) || T <- Triggers]),
    Owner ! {?MODULE, self(), {done, Id, Ok, Text, List, P99}},
    S.

error_text(Reason) ->
    kprof_error:format(Reason).

tiers(Specs) ->
    lists:usort([Tier || #{of_what := {tier_p99, Tier}} <- Specs]).

now_ms() ->
    erlang:monotonic_time(millisecond).
