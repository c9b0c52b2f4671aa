%% SPDX-License-Identifier: Apache-2.0
%% The native tracer in a node where everything goes on at once: processes come and go, wait in
%% files, collect garbage and lose their code, while traces begin and end by the thousand, in order
%% or by the death of who has them, and their library comes and goes. Each trace that ends in order
%% has told of every event of its own processes, as read or as dropped.
-module(scenario_chaos).

-export([run/1, run/2]).
-export([drive/2]).

-define(TRACED, scenario_chaos_calls).
-define(CALLS, 200).
-define(PROCESSES, 4).
% a call and the end of each of the three, nested/1 calling called/1 once more
-define(EVENTS_OF_CALL, 8).

%% run(Seconds): what was done, {ok, Traces, Events, Dropped, Loads}; or what went wrong. It takes
%% longer where the machine is so busy that no call was traced by then.
run(Seconds) -> run(Seconds, 1).

%% run(Seconds, Drivers): so many that trace at once, where there are trace sessions.
run(Seconds, Wanted) ->
    _ = rand:seed(exsss),
    Drivers =
        case list_to_integer(erlang:system_info(otp_release)) >= 27 of
            true -> Wanted;
            false -> 1
        end,
    Noise = [
        spawn(fun() -> noise(What) end)
     || What <- [files, garbage, spawns, messages, takes, reload]
    ],
    Until = erlang:monotonic_time(millisecond) + 1000 * Seconds,
    Refs = [spawn_monitor(?MODULE, drive, [Until, Drivers]) || _ <- lists:seq(1, Drivers)],
    Told = [
        receive
            {'DOWN', Ref, process, Pid, Why} -> Why
        end
     || {Pid, Ref} <- Refs
    ],
    [exit(Pid, kill) || Pid <- Noise],
    lists:foldl(fun add/2, {ok, 0, 0, 0, 0}, Told).

add({ok, A, B, C, D}, {ok, E, F, G, H}) -> {ok, A + E, B + F, C + G, D + H};
add(Wrong, {ok, _, _, _, _}) -> Wrong;
add(_, Wrong) -> Wrong.

-spec drive(integer(), pos_integer()) -> no_return().
drive(Until, Drivers) -> exit(drive(Until, Drivers, {ok, 0, 0, 0, 0})).

drive(Until, Drivers, {ok, Traces, Events, Dropped, Loads} = Done) ->
    case erlang:monotonic_time(millisecond) > Until andalso Events > 0 of
        true ->
            Done;
        false ->
            Reload = Drivers =:= 1 andalso Traces > 0 andalso rand:uniform(20) =:= 1,
            _ = Reload andalso unload(),
            ok = load(),
            {Es, D} =
                case rand:uniform(4) of
                    1 -> abandoned();
                    _ -> in_order()
                end,
            Loaded =
                case Reload of
                    true -> 1;
                    false -> 0
                end,
            drive(Until, Drivers, {ok, Traces + 1, Events + Es, Dropped + D, Loads + Loaded})
    end.

load() ->
    case kprof_library:load() of
        ok -> ok;
        {error, Why} -> exit({no_library, Why})
    end.

%% As kprof_app takes it out.
unload() ->
    timer:sleep(200),
    true = code:delete(kprof_native),
    _ = code:purge(kprof_native),
    {ok, Maps} = file:read_file("/proc/self/maps"),
    nomatch = binary:match(Maps, <<"kprof_native">>).

%% --- one trace ---

functions() -> [{called, 1}, {nested, 1}, {failing, 0}].

open() ->
    Size = lists:nth(rand:uniform(3), [65536, 65536, 2097152]),
    case kprof_native:open(#{ring_bytes => Size}) of
        State when is_integer(State) ->
            Session = kprof_vm:session({kprof_native, State}),
            [
                kprof_vm:pattern(Session, {?TRACED, F, A}, [{'_', [], [{exception_trace}]}])
             || {F, A} <- functions()
            ],
            {State, Session};
        _ ->
            timer:sleep(1),
            open()
    end.

%% Its own processes call so many times; what it has read and told as dropped is that, but what was
%% called while a function's pattern was off, as the module was loaded anew.
in_order() ->
    Before = loads(),
    {State, Session} = open(),
    Pids = [spawn_monitor(fun work/0) || _ <- lists:seq(1, ?PROCESSES)],
    [ok = kprof_vm:trace(Session, Pid, true, [call, arity]) || {Pid, _} <- Pids],
    Reader = spawn_reader(State),
    [Pid ! go || {Pid, _} <- Pids],
    [
        receive
            {'DOWN', Ref, process, Pid, _} -> ok
        end
     || {Pid, Ref} <- Pids
    ],
    _ = rand:uniform(2) =:= 1 andalso exit(Reader, kill),
    Reader ! over,
    wait(Reader),
    _ = kprof_vm:end_session(Session),
    Frames = read_all(State, 5),
    lists:foreach(fun(<<2, Size:32, _:Size/binary>>) -> ok end, Frames),
    {Messages, _, Dropped} = kprof_native:totals(State),
    ok = kprof_native:close(State),
    Made = ?EVENTS_OF_CALL * ?CALLS * ?PROCESSES,
    case {Messages + Dropped, loads()} of
        {Made, _} -> ok;
        {Fewer, After} when Fewer < Made, After =/= Before orelse After rem 2 =:= 1 -> ok;
        {Other, _} -> exit({events, Other, of_calls, Made, dropped, Dropped})
    end,
    {Messages + Dropped, Dropped}.

work() ->
    receive
        go -> ok
    end,
    [
        begin
            ?TRACED:called(N),
            ?TRACED:nested(N),
            catch ?TRACED:failing()
        end
     || N <- lists:seq(1, ?CALLS)
    ].

spawn_reader(State) ->
    spawn(fun() -> reader(State) end).

reader(State) ->
    _ = kprof_native:read(State),
    receive
        over -> ok
    after rand:uniform(3) - 1 -> reader(State)
    end.

wait(Pid) ->
    Ref = erlang:monitor(process, Pid),
    receive
        {'DOWN', Ref, process, Pid, _} -> ok
    end.

read_all(_, 0) ->
    [];
read_all(State, Again) ->
    case kprof_native:read(State) of
        {[], false} ->
            timer:sleep(2),
            read_all(State, Again - 1);
        {Frames, _} ->
            Frames ++ read_all(State, Again)
    end.

%% All processes are traced, for what is dangerous, too; then it is closed, or its owner dies, while
%% they go on.
abandoned() ->
    Self = self(),
    Owner = spawn(fun() ->
        {ok, Tracer, {native, State, _}} = kprof_tracer:open(native),
        Patterns = [
            {{?TRACED, F, A}, [{'_', [], [{exception_trace}]}]}
         || {F, A} <- functions()
        ],
        ok = kprof_tracer:set_patterns(Tracer, Patterns),
        ok = kprof_tracer:set_flags(Tracer, [return_to], [Self]),
        ok = kprof_tracer:flag(Tracer, new_processes, dangerous()),
        Self ! {State, kprof_tracer:keeper(Tracer)},
        reader(State)
    end),
    {State, Keeper} =
        receive
            {S, K} -> {S, K}
        end,
    Workers = [spawn_monitor(fun work/0) || _ <- lists:seq(1, ?PROCESSES)],
    [Pid ! go || {Pid, _} <- Workers],
    timer:sleep(rand:uniform(20)),
    case rand:uniform(3) of
        1 -> kprof_native:close(State);
        _ -> ok
    end,
    exit(Owner, kill),
    wait(Keeper),
    [
        receive
            {'DOWN', Ref, process, Pid, _} -> ok
        end
     || {Pid, Ref} <- Workers
    ],
    {0, 0}.

%% What may be traced on this release.
dangerous() ->
    [F || F <- [running, garbage_collection], kprof_vm:unsafe(F) =:= no].

%% --- all else ---

noise(files) ->
    {ok, _} = file:read_file("/proc/self/maps"),
    1 = ?TRACED:called(1),
    noise(files);
noise(garbage) ->
    _ = [lists:seq(1, 1000) || _ <- lists:seq(1, 100)],
    true = erlang:garbage_collect(),
    2 = ?TRACED:nested(1),
    noise(garbage);
noise(spawns) ->
    {Pid, Ref} = spawn_monitor(fun() -> ?TRACED:nested(2) end),
    receive
        {'DOWN', Ref, process, Pid, _} -> noise(spawns)
    end;
noise(messages) ->
    Self = self(),
    Echo = spawn_link(fun() -> echo(Self, 100) end),
    _ = seq_trace:set_token(label, rand:uniform(1000)),
    _ = seq_trace:set_token('receive', rand:uniform(4) > 1),
    _ = seq_trace:set_token(send, rand:uniform(4) =:= 1),
    [
        begin
            Echo ! N,
            receive
                N -> ?TRACED:called(N)
            end
        end
     || N <- lists:seq(1, 100)
    ],
    _ = seq_trace:set_token([]),
    noise(messages);
%% A trace of its own is the system tracer for a while, or another process is; it ends in order, or
%% is just closed, perhaps when its library goes.
noise(takes) ->
    try
        takes(kprof_native:open(#{ring_bytes => 65536}))
    catch
        % it is not loaded now, or was loaded anew
        error:_ -> timer:sleep(5)
    end,
    noise(takes);
noise(reload) ->
    timer:sleep(200 + rand:uniform(300)),
    count_load(),
    _ = code:soft_purge(?TRACED) andalso code:load_file(?TRACED),
    count_load(),
    noise(reload).

takes(State) when not is_integer(State) ->
    timer:sleep(1);
takes(State) ->
    _ = seq_trace:set_system_tracer({kprof_native, State}),
    timer:sleep(rand:uniform(20)),
    {Frames, _} = kprof_native:read(State),
    lists:foreach(fun(<<2, Size:32, _:Size/binary>>) -> ok end, Frames),
    _ =
        case rand:uniform(4) of
            1 -> ok;
            2 -> seq_trace:set_system_tracer(false);
            3 -> seq_trace:set_system_tracer(spawn(fun() -> timer:sleep(5) end));
            4 -> timer:sleep(rand:uniform(200))
        end,
    kprof_native:close(State).

%% Before and after it: odd while it goes on, which may be for long where the machine is busy.
count_load() -> persistent_term:put({?MODULE, loads}, loads() + 1).
loads() -> persistent_term:get({?MODULE, loads}, 0).

echo(_, 0) ->
    ok;
echo(To, N) ->
    receive
        Any ->
            Any = ?TRACED:called(Any),
            To ! Any,
            echo(To, N - 1)
    end.
