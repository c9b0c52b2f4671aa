%% SPDX-License-Identifier: Apache-2.0
%% A little application to be traced, and what the suites run on the traced node.
-module(kprof_test_app).

-export([
    outer/1,
    inner/1,
    slow/0,
    boom/1,
    request/2,
    requests/3,
    web_request/2,
    web_load/1,
    web_stop/1,
    requests_and_stop/1,
    kill_relay/0,
    trace_ports/0,
    kill/1,
    hold/1,
    hot/2,
    start_hot/1,
    stop_hot/0,
    snapshot/0,
    memory_peak/2,
    compile_reload/2,
    keep_alive/0,
    works_on/0,
    server/0,
    hop/1,
    ask/2,
    spawner/0,
    worker/0,
    work/2,
    collects/0,
    loses/1,
    flags_undone/0,
    with_leader/3,
    leader/1,
    trace_info/2,
    sessions/0,
    stack_depth/1,
    sleeper/0
]).

outer(X) ->
    Y = inner(X),
    {outer, Y}.
inner(X) -> {inner, X}.
slow() ->
    timer:sleep(5),
    ok.
boom(Class) -> erlang:raise(Class, boom, []).

request(Identity, X) ->
    ok = kprof:set_token(Identity),
    R = outer(X),
    ok = kprof:clear_token(),
    R.

requests(N, Identity, X) ->
    _ = [request(Identity, X) || _ <- lists:seq(1, N)],
    ok.

%% A request as a web server's helper makes it, a few ms long; its calls are those of outer(Path)
%% and inner(Path).
web_request(Path, Ms) ->
    Rest = fun() -> timer:sleep(erlang:phash2(make_ref(), Ms + 1)) end,
    kprof_helper:run(
        fun(_) -> undefined end,
        fun() ->
            Rest(),
            outer(Path),
            Rest(),
            inner(Path),
            Rest()
        end,
        fun(_) -> #{method => 'GET', path => Path, status => 200, named => true} end
    ).

%% N processes that make them without a pause, until web_stop, which tells how each ended: in order,
%% and with what is left of a request.
web_load(N) ->
    [spawn(fun() -> web_loop() end) || _ <- lists:seq(1, N)].

web_loop() ->
    web_request("/x", 5),
    receive
        stop -> exit({in_order, seq_trace:get_token(), get()})
    after 0 -> web_loop()
    end.

web_stop(Pids) ->
    Refs = [erlang:monitor(process, P) || P <- Pids],
    _ = [P ! stop || P <- Pids],
    [
        receive
            {'DOWN', Ref, process, _, Why} -> Why
        end
     || Ref <- Refs
    ].

%% Stops while messages are still on their way: the relay rests meanwhile.
requests_and_stop(N) ->
    Relay = relay(),
    true = erlang:suspend_process(Relay),
    ok = requests(N, x, y),
    {Pid, Ref} = spawn_monitor(fun() -> exit(kprof:stop_trace()) end),
    timer:sleep(500),
    true = erlang:resume_process(Relay),
    receive
        {'DOWN', Ref, process, Pid, Result} -> Result
    end.

%% There is none for a moment where the guard has just ended the trace, which comes back.
relay() ->
    relay(2000).

relay(Tries) when Tries > 0 ->
    case
        [
            P
         || P <- processes(),
            {_, Stack} <- [process_info(P, current_stacktrace)],
            {kprof_relay, F, _, _} <- Stack,
            F =:= next
        ]
    of
        [Relay] ->
            Relay;
        [] ->
            timer:sleep(10),
            relay(Tries - 1)
    end.

kill_relay() ->
    true = exit(relay(), kill),
    ok.

%% The TCP ports that trace ports listen on.
trace_ports() ->
    [
        Number
     || Port <- erlang:ports(),
        {name, "trace_ip_drv" ++ _} <- [erlang:port_info(Port, name)],
        <<0, Number:16>> <- [listens(Port)]
    ].

listens(Port) ->
    try
        iolist_to_binary(erlang:port_control(Port, $p, ""))
    catch
        error:badarg -> closed
    end.

kill(Names) ->
    Pids = [whereis(Name) || Name <- Names],
    _ = [exit(Pid, kill) || Pid <- Pids],
    ok.

%% It does nothing any more.
hold(Name) ->
    Self = self(),
    Holder = spawn(fun() ->
        true = erlang:suspend_process(whereis(Name)),
        Self ! {self(), held},
        receive
            never -> ok
        end
    end),
    receive
        {Holder, held} -> ok
    end.

%% Processes that call a tier as fast as they can, under a token.
start_hot(N) ->
    Pids = [
        spawn(fun() ->
            kprof:set_token(hot),
            hot(fun kprof_test_app:inner/1, 0)
        end)
     || _ <- lists:seq(1, N)
    ],
    persistent_term:put(kprof_test_hot, Pids),
    ok.

hot(F, N) ->
    ?MODULE:inner(N),
    case N rem 4096 of
        0 ->
            kprof:clear_token(),
            kprof:set_token(hot);
        _ ->
            ok
    end,
    hot(F, N + 1).

stop_hot() ->
    [exit(P, kill) || P <- persistent_term:get(kprof_test_hot)],
    persistent_term:erase(kprof_test_hot),
    ok.

%% What kprof traces here: in its session, where the release has such.
trace_info(What, Item) ->
    case sessions() of
        [] -> erlang:trace_info(What, Item);
        [Session] -> trace:info(Session, What, Item)
    end.

%% The trace sessions of kprof on this node; always none before OTP 27.
sessions() ->
    case erlang:function_exported(trace, session_info, 1) of
        true -> [S || {kprof, _} = S <- trace:session_info(all)];
        false -> []
    end.

%% All tracing there is on this node: processes, new ones, functions, sessions. Processes that come
%% and go are left out: one may end between the two questions, of which the second is answered with
%% undefined then.
snapshot() ->
    Processes = [
        {P, Flags, Tracer}
     || P <- processes(),
        {flags, _} = Flags <- [erlang:trace_info(P, flags)],
        {tracer, _} = Tracer <- [erlang:trace_info(P, tracer)]
    ],
    Functions = [
        {MFA, Info}
     || {M, _} <- code:all_loaded(),
        {F, A} <- M:module_info(functions),
        MFA <- [{M, F, A}],
        Info <- [erlang:trace_info(MFA, all)],
        Info =/= {all, false},
        Info =/= {all, undefined}
    ],
    {
        [X || {_, Flags, Tracer} = X <- Processes, {Flags, Tracer} =/= {{flags, []}, {tracer, []}}],
        erlang:trace_info(new, flags),
        erlang:trace_info(new, tracer),
        lists:sort(Functions),
        sessions()
    }.

%% The largest erlang:memory(total) within Ms.
memory_peak(Ms, Max) when Ms =< 0 -> Max;
memory_peak(Ms, Max) ->
    timer:sleep(20),
    memory_peak(Ms - 20, max(Max, erlang:memory(total))).

%% Loads a module of that name anew, which clears its trace patterns.
%% Loads a version of a module; gives the times before and after that.
compile_reload(Module, Version) ->
    Forms = [
        {attribute, 1, module, Module},
        {attribute, 2, export, [{f, 0}]},
        {function, 3, f, 0, [{clause, 3, [], [], [{integer, 3, Version}]}]}
    ],
    {ok, Module, Beam} = compile:forms(Forms),
    _ = code:purge(Module),
    Before = erlang:monotonic_time(),
    {module, Module} = code:load_binary(Module, "kprof_test", Beam),
    {Before, erlang:monotonic_time()}.

keep_alive() ->
    receive
        stop -> ok
    end.

%% A request that leaves a process behind, which works on under its label.
works_on() ->
    ok = kprof:set_token(left),
    Pid = spawn(fun on/0),
    ok = kprof:clear_token(),
    Pid.

on() ->
    _ = inner(x),
    timer:sleep(20),
    on().

%% Serves a call of outer/1 in a process of its own.
server() ->
    receive
        {From, X} ->
            From ! outer(X),
            server()
    end.

hop(Server) ->
    ok = kprof:set_token(hop),
    Server ! {self(), x},
    receive
        R ->
            ok = kprof:clear_token(),
            {self(), R}
    end.

%% The same without a request.
ask(Server, X) ->
    Server ! {self(), X},
    receive
        R -> R
    end.

%% A request that spawns in many ways; returns the children.
spawner() ->
    ok = kprof:set_token(spawner),
    F = fun() -> ok end,
    {C, _} = spawn_monitor(F),
    {E, _} = spawn_opt(F, [monitor]),
    Children = [spawn(F), spawn_link(F), C, proc_lib:spawn(F), E, spawn(?MODULE, inner, [child])],
    _ = (catch spawn_opt(F, [no_option])),
    ok = kprof:clear_token(),
    Children.

%% A process that does what it is told.
worker() ->
    receive
        {From, F, A} ->
            From ! {self(), apply(?MODULE, F, A)},
            worker()
    end.
work(Worker, F) ->
    Worker ! {self(), F, []},
    receive
        {Worker, R} -> R
    end.

%% Collects garbage and waits within a request, and after it.
collects() ->
    ok = kprof:set_token(collects),
    collect(),
    ok = kprof:clear_token(),
    collect(),
    trace_info(self(), flags).

collect() ->
    true = erlang:garbage_collect(),
    receive
        never -> ok
    after 5 -> ok
    end.

%% A message without a token in the middle of a request.
loses(Stranger) ->
    ok = kprof:set_token(loses),
    {outer, _} = receive_from(Stranger),
    ok = kprof:clear_token().

receive_from(Stranger) ->
    erlang:send_after(0, Stranger, {self(), x}),
    receive
        R -> R
    end.

%% The flags of a process that was armed for everything, before and after the undo, while the port
%% is still there: with the port they would go by themselves.
flags_undone() ->
    {ok, Tracer, _Socket} = kprof_tracer:open(port),
    Patterns = [
        {{?MODULE, slow, 0}, [
            {'_', [], [{message, false}, {trace, [], [exiting, garbage_collection, running]}]}
        ]}
    ],
    Worker = spawn(?MODULE, worker, []),
    ok = kprof_tracer:set_patterns(Tracer, Patterns),
    ok = kprof_tracer:set_flags(Tracer, [return_to], []),
    ok = work(Worker, slow),
    {flags, Armed} = trace_info(Worker, flags),
    ok = kprof_tracer:undo(Tracer, Patterns),
    Result = {
        lists:sort(Armed),
        erlang:trace_info(Worker, flags),
        erlang:trace_info(new, flags),
        erlang:trace_info({?MODULE, slow, 0}, traced),
        sessions()
    },
    exit(Worker, kill),
    Result.

%% Runs a function under a group leader that keeps what is printed.
with_leader(M, F, A) ->
    Leader = spawn(fun() -> leader([]) end),
    Before = group_leader(),
    group_leader(Leader, self()),
    R = apply(M, F, A),
    group_leader(Before, self()),
    {Leader, R}.

leader(Text) ->
    receive
        {io_request, From, Ref, {put_chars, unicode, Chars}} ->
            From ! {io_reply, Ref, ok},
            leader([Text, Chars]);
        {io_request, From, Ref, _} ->
            From ! {io_reply, Ref, {error, enotsup}},
            leader(Text);
        {text, Key} ->
            persistent_term:put(Key, unicode:characters_to_list(Text)),
            leader(Text)
    end.

%% How many frames of a stack as deep as that a process is shown of itself.
stack_depth(0) ->
    {current_stacktrace, Stack} = process_info(self(), current_stacktrace),
    length(Stack);
stack_depth(N) when N rem 2 =:= 0 ->
    Depth = stack_depth(N - 1),
    erlang:yield(),
    Depth;
stack_depth(N) ->
    Depth = stack_depth(N - 1),
    erlang:yield(),
    Depth.

sleeper() ->
    spawn(fun() ->
        receive
            stop -> ok
        end
    end).
