%% SPDX-License-Identifier: Apache-2.0
%% @doc What is traced to, the flags and the patterns: opening, setting, and undoing exactly what
%% was set.
%%
%% Traced is to a trace port or to the native tracer ({@link kprof_native}). The port is the one of
%% dbg:trace_port(ip, ...), opened without dbg: its driver listens for one client on an ephemeral
%% port, and that client must be us.
-module(kprof_tracer).

-export([
    open/1,
    port/1,
    keeper/1,
    is_full/1,
    prove/2,
    close/2,
    take_messages/1,
    takes_messages/1,
    set_flags/3,
    no_return_to/2,
    set_patterns/2,
    state/2,
    others/1,
    undo/2,
    undo_patterns/2,
    count_calls/2,
    counted_calls/2,
    count_no_calls/2,
    missing/2,
    absent/2,
    flags_owner/1,
    foreign_processes/1
]).
-export([
    open_beside/1,
    close_beside/1,
    full/2,
    full_over/1,
    time/1,
    end_full/0,
    is_shared/1,
    rest/1,
    leave_out/2,
    flag/3,
    no_new_processes/1,
    is_flagged/2,
    set_modules/3,
    undo_modules/3,
    is_free/3
]).

-export_type([tracer/0, kind/0, native/0, source/0, beside/0, pattern/0]).

% keep it: the session ends with its handle; a process: that of a full trace
-opaque tracer() :: {port() | pid() | native(), kprof_vm:session(), Keeper :: pid()}.
-type kind() :: port | native.
-type native() :: {native, kprof_native:state(), Dropped :: counters:counters_ref() | none}.
%% The messages that were dropped are counted by who reads them, and as of the guard's last look.
-type source() :: gen_tcp:socket() | native().
%% Where the messages come out, for {@link kprof_relay}.
-type beside() :: process | {native, native(), Closer :: pid()}.
%% What full traces are traced to: a process, or a further trace of the native tracer, with the
%% process that closes it.
-type pattern() :: {mfa(), [tuple()]}.

%% Messages the driver keeps while its client is slow. Below 1000 it can crash the node; the node's
%% memory is bounded by the guard, not by this.
-define(QUEUE, 8192).
-define(FLAGS, [call, arity]).
%% All that can be set on a process, the last ones by match specifications.
-define(ALL_FLAGS, [
    return_to,
    garbage_collection,
    running,
    exiting,
    set_on_spawn,
    monotonic_timestamp
    | ?FLAGS
]).
-define(ATTEMPTS, 3).
-define(PROOF_MS, 2000).
-define(NONCE, 16).
-define(LINGER_MS, 100).
-define(BUFFER, 262144).
% of the counter in native()
-define(DROPPED, 1).
-define(DROPPED_BEFORE, 2).

%% @doc Opens a trace port and its one client connection, proven to be ours before anything is
%% traced ({@link prove/2}); or a trace of the native tracer, whose library is loaded ({@link
%% kprof_library}). It lives as long as the caller, which hears of the port's end as if it were
%% linked to it, and when the caller ends, however it does, what is traced ends before the port.
%% (Where processes are traced for scheduling, the other way round could kill the VM, otp#5984.) The
%% connection ends when the port does, by itself, and never before: whoever reads it may die, but
%% must not close it.
-spec open(kind()) -> {ok, tracer(), source()} | {error, term()}.
open(port) ->
    case load_driver() of
        ok -> open_trace_port(?ATTEMPTS);
        Error -> Error
    end;
open(native) ->
    case open_native(?ATTEMPTS, #{}) of
        {ok, {native, State, _} = Native} ->
            Session = kprof_vm:session({kprof_native, State}),
            {ok, {Native, Session, keep_native(State, Session)}, Native};
        Error ->
            Error
    end.

open_native(0, _) ->
    {error, "it has as many traces as it can have"};
open_native(N, Options) ->
    case kprof_native:open(Options) of
        State when is_integer(State) ->
            {ok, {native, State, counters:new(2, [])}};
        % somebody else opens one, or has just not closed his yet
        _ ->
            timer:sleep(?LINGER_MS),
            open_native(N - 1, Options)
    end.

open_trace_port(0) ->
    {error, {trace_port_taken, ?ATTEMPTS}};
open_trace_port(N) ->
    try open_port({spawn, "trace_ip_drv 0 " ++ integer_to_list(?QUEUE) ++ " 2"}, [eof]) of
        Port ->
            case connect(Port) of
                {ok, Socket} ->
                    Session = kprof_vm:session(Port),
                    {ok, {Port, Session, keep(Port, Session, Socket)}, Socket};
                {error, _} ->
                    close_port(Port),
                    open_trace_port(N - 1)
            end
    catch
        error:Why -> {error, {trace_port, Why}}
    end.

connect(Port) ->
    <<0, Number:16>> = iolist_to_binary(erlang:port_control(Port, $p, "")),
    Options = [binary, {active, false}, {packet, raw}, {buffer, ?BUFFER}, {recbuf, ?BUFFER}],
    case gen_tcp:connect({127, 0, 0, 1}, Number, Options, ?PROOF_MS) of
        {ok, Socket} ->
            case prove(Port, Socket) of
                ok ->
                    {ok, Socket};
                Error ->
                    ok = gen_tcp:close(Socket),
                    Error
            end;
        Error ->
            Error
    end.

%% @doc Proves that a socket is the port's one client: a frame of random bytes that went into the
%% port must be the first thing that comes out of the socket. Who holds the place instead gets those
%% bytes and nothing else, and who sits behind the socket cannot know them.
-spec prove(port(), gen_tcp:socket()) -> ok | {error, taken}.
prove(Port, Socket) ->
    Nonce = kprof_random:bytes(?NONCE),
    true = erlang:port_command(Port, Nonce),
    case gen_tcp:recv(Socket, 5 + byte_size(Nonce), ?PROOF_MS) of
        {ok, <<0, Size:32, Nonce/binary>>} when Size =:= byte_size(Nonce) -> ok;
        _ -> {error, taken}
    end.

%% A port whose client goes takes the next one, with what still waits to be sent, and strangers may
%% be standing in line. So the owner of both is a process that does nothing else. It uses the
%% driver, too: that is unloaded, and its ports with it, when its last user ends.
keep(Port, Session, Socket) ->
    Owner = self(),
    {Keeper, Ref} = spawn_monitor(fun() ->
        _ = load_driver(),
        Owner ! {keeps, self()},
        keeper(
            Port, Session, Owner, erlang:monitor(port, Port), erlang:monitor(process, Owner), none
        ),
        gen_tcp:close(Socket)
    end),
    receive
        {keeps, Keeper} -> _ = erlang:demonitor(Ref, [flush]);
        % then nothing below works, and the port is told to have ended
        {'DOWN', Ref, process, _, _} -> ok
    end,
    ok = gen_tcp:controlling_process(Socket, Keeper),
    _ = quietly(fun() -> erlang:port_connect(Port, Keeper) end),
    true = unlink(Port),
    Keeper.

keeper(Port, Session, Owner, PortRef, OwnerRef, Full) ->
    receive
        {'DOWN', PortRef, port, _, Why} ->
            Owner ! {'EXIT', Port, Why};
        {beside, New} ->
            keeper(Port, Session, Owner, PortRef, OwnerRef, New);
        {'DOWN', OwnerRef, process, _, _} ->
            end_traces(Session, Full),
            receive
            after ?LINGER_MS -> quietly(fun() -> port_close(Port) end)
            end
    end.

end_traces(Session, Full) ->
    _ = [end_beside(Full) || Full =/= none],
    kprof_vm:end_session(Session).

%% The same for the native tracer, which knows nothing of its owner.
keep_native(State, Session) ->
    Owner = self(),
    {Keeper, Ref} = spawn_monitor(fun() ->
        Watched = erlang:monitor(process, Owner),
        Owner ! {keeps, self()},
        keeper_native(State, Session, Watched, none)
    end),
    receive
        {keeps, Keeper} -> _ = erlang:demonitor(Ref, [flush]);
        {'DOWN', Ref, process, _, _} -> ok
    end,
    Keeper.

keeper_native(State, Session, OwnerRef, Full) ->
    receive
        closed ->
            ok;
        {beside, New} ->
            keeper_native(State, Session, OwnerRef, New);
        {'DOWN', OwnerRef, process, _, _} ->
            ok = leave_messages({native, State, none}),
            _ =
                end_traces(Session, Full) orelse
                    kprof_vm:trace(Session, all, false, ?ALL_FLAGS),
            receive
            after ?LINGER_MS -> quietly(fun() -> kprof_native:close(State) end)
            end
    end.

%% @doc Opens what full traces beside this one are traced to. It lives until {@link close_beside/1},
%% or as long as the caller.
-spec open_beside(tracer()) -> {ok, beside()} | {error, string()}.
open_beside({{native, _, _}, Session, _}) ->
    case open_native(?ATTEMPTS, #{apart => not kprof_vm:is_shared(Session)}) of
        {ok, {native, State, _} = Native} ->
            Owner = self(),
            {ok, {native, Native, spawn(fun() -> closer(State, Owner) end)}};
        Error ->
            Error
    end;
open_beside(_) ->
    {ok, process}.

%% @doc Nothing is traced to it any more, and nobody reads it.
-spec close_beside(beside()) -> ok.
close_beside({native, {native, State, _}, Closer}) ->
    _ = quietly(fun() -> kprof_native:close(State) end),
    Closer ! closed,
    ok;
close_beside(process) ->
    ok.

%% The keeper ends what is traced when the owner has ended.
closer(State, Owner) ->
    Ref = erlang:monitor(process, Owner),
    receive
        closed ->
            ok;
        {'DOWN', Ref, process, _, _} ->
            receive
            after 2 * ?LINGER_MS -> quietly(fun() -> kprof_native:close(State) end)
            end
    end.

%% The driver is part of runtime_tools, which a release may leave out.
load_driver() ->
    case code:priv_dir(runtime_tools) of
        {error, bad_name} ->
            {error, no_runtime_tools};
        Dir ->
            Lib = filename:join(Dir, "lib"),
            Archs = [Lib, filename:join(Lib, erlang:system_info(system_architecture))],
            load_driver(Archs, no_runtime_tools)
    end.

load_driver([], no_runtime_tools) ->
    {error, no_runtime_tools};
load_driver([], Why) ->
    {error, {trace_driver, Why}};
load_driver([Dir | Dirs], Before) ->
    case erl_ddll:load_driver(Dir, "trace_ip_drv") of
        ok ->
            ok;
        {error, Why} ->
            Exists = filelib:wildcard(filename:join(Dir, "trace_ip_drv.*")) =/= [],
            load_driver(
                Dirs,
                if
                    Exists -> Why;
                    true -> Before
                end
            )
    end.

%% @doc The port, for who watches it; `none' of the native tracer.
-spec port(tracer()) -> port() | none.
port({{native, _, _}, _, _}) -> none;
port({Port, _, _}) -> Port.

%% @doc Whether the node makes messages faster than they are taken, to be asked every few
%% milliseconds, by one process: the port does not take a command, which is an empty frame for who
%% reads its stream; the native tracer has dropped messages since the last time.
-spec is_full(tracer()) -> boolean().
is_full({{native, _, Dropped}, _, _}) ->
    Now = counters:get(Dropped, ?DROPPED),
    Before = counters:get(Dropped, ?DROPPED_BEFORE),
    ok = counters:put(Dropped, ?DROPPED_BEFORE, Now),
    Now > Before;
is_full({Port, _, _}) ->
    try
        not erlang:port_command(Port, <<>>, [nosuspend])
    catch
        % closed: its owner hears of that by itself
        error:badarg -> false
    end.

%% @doc The process that keeps the connection.
-spec keeper(tracer()) -> pid().
keeper({_, _, Keeper}) ->
    Keeper.

%% @doc Closes the port, or the native tracer. With `drain' what the node has sent to the port
%% reaches the driver first: a round trip that queues behind the trace messages, given up after 2
%% seconds. (It stays open then, as the native tracer does, which has what is sent to it at once.)
-spec close(tracer(), drain | now) -> ok.
close({{native, _, _}, _, _}, drain) ->
    ok;
close({{native, State, _}, _, Keeper}, now) ->
    Keeper ! closed,
    _ = quietly(fun() -> kprof_native:close(State) end),
    ok;
close({Port, _, _}, now) ->
    close_port(Port);
close({Port, _, _}, drain) ->
    {Pid, Ref} = spawn_monitor(fun() ->
        quietly(fun() -> erlang:port_control(Port, $p, "") end)
    end),
    receive
        {'DOWN', Ref, process, Pid, _} -> ok
    after 2000 ->
        exit(Pid, kill),
        _ = erlang:demonitor(Ref, [flush]),
        ok
    end.

%% port_close waits behind what is queued: that is nothing to wait for.
close_port(Port) ->
    _ = spawn(fun() -> quietly(fun() -> port_close(Port) end) end),
    ok.

%% It may be closed already.
quietly(Fun) ->
    try
        Fun()
    catch
        error:badarg -> closed
    end.

%% @doc Has the native tracer told of each message with a token that a process sends, or takes out
%% of its mailbox, if the token's flag `send' or `receive' is set: it becomes the node's system
%% tracer (seq_trace), of which there is one. {@link undo/2} takes that back, and so do the end of
%% the owner and of the trace. `{other, Tracer}': somebody else is that already, and stays it.
-spec take_messages(tracer()) -> boolean() | {other, term()}.
take_messages({{native, State, _}, _, _}) ->
    Ours = {kprof_native, State},
    case seq_trace:get_system_tracer() of
        false ->
            case seq_trace:set_system_tracer(Ours) of
                Nobody when Nobody =:= false; Nobody =:= Ours ->
                    true;
                % since just now
                Other ->
                    _ = quietly(fun() -> seq_trace:set_system_tracer(Other) end),
                    {other, Other}
            end;
        Ours ->
            true;
        Other ->
            {other, Other}
    end;
take_messages(_) ->
    false.

%% @doc Whether the native tracer still is the node's system tracer: whoever wants to can become it,
%% and nobody is told.
-spec takes_messages(tracer()) -> true | {other, term()}.
takes_messages({{native, State, _}, _, _}) ->
    Ours = {kprof_native, State},
    case seq_trace:get_system_tracer() of
        Ours -> true;
        Other -> {other, Other}
    end.

leave_messages({native, State, _}) ->
    Ours = {kprof_native, State},
    case seq_trace:get_system_tracer() =:= Ours andalso seq_trace:set_system_tracer(false) of
        Before when Before =:= Ours; Before =:= false ->
            ok;
        % since just now
        Other ->
            _ = quietly(fun() -> seq_trace:set_system_tracer(Other) end),
            ok
    end;
leave_messages(_) ->
    ok.

%% @doc Sets the process flags on all processes, those to come included, but not on `Exempt', the
%% shim's own. `More' are flags besides the ones that every trace needs.
-spec set_flags(tracer(), [return_to], [pid()]) -> ok.
set_flags({_, Session, _} = Tracer, More, Exempt) ->
    ok = kprof_vm:trace(Session, all, true, More ++ time(Tracer) ++ ?FLAGS),
    leave_out(Tracer, Exempt).

%% @doc The flag that has messages tell their time. Those of a full trace's own session have another
%% one, by which the collector knows them. The native tracer asks the clock itself.
-spec time(tracer()) -> [atom()].
time({{native, _, _}, _, _}) ->
    [];
time({To, Own, _}) ->
    case is_pid(To) andalso not kprof_vm:is_shared(Own) of
        true -> [strict_monotonic_timestamp];
        false -> [monotonic_timestamp]
    end.

%% @doc Takes return_to off all processes. From OTP 27 on the VM takes all flags off processes to
%% come when it is told to take one: the others are set again.
-spec no_return_to(tracer(), [pid()]) -> ok.
no_return_to({_, Session, _} = Tracer, Exempt) ->
    ok = kprof_vm:trace(Session, all, false, [return_to]),
    set_flags(Tracer, [], Exempt).

%% @doc Sets the patterns of those functions that are on this node.
-spec set_patterns(tracer(), [pattern()]) -> ok.
set_patterns({_, Session, _}, Patterns) ->
    lists:foreach(fun({MFA, Spec}) -> kprof_vm:pattern(Session, MFA, Spec) end, Patterns).

%% @doc The patterns that are not in force although their functions are there: after a reload of
%% their module.
-spec missing(tracer(), [pattern()]) -> [pattern()].
missing({_, Session, _}, Patterns) ->
    [P || {MFA, _} = P <- Patterns, kprof_vm:info(Session, MFA, traced) =:= false].

%% @doc The functions that are not on this node.
-spec absent(tracer(), [pattern()]) -> [mfa()].
absent({_, Session, _}, Patterns) ->
    [MFA || {MFA, _} <- Patterns, kprof_vm:info(Session, MFA, traced) =:= undefined].

%% @doc What the VM has of a pattern: `foreign' is somebody else's.
-spec state(tracer(), pattern()) -> armed | off | absent | foreign.
state({_, Session, _}, {MFA, Spec}) ->
    case kprof_vm:info(Session, MFA, match_spec) of
        Spec -> armed;
        undefined -> absent;
        Off when Off =:= false; Off =:= ended -> off;
        _ -> foreign
    end.

%% @doc Who else traces on this node, as far as that can be told: names of trace sessions, or the
%% tracer of processes to come.
-spec others(tracer()) -> [term()].
others({To, Session, _}) ->
    [Other || Other <- kprof_vm:others(Session), not is_ours(Other, To)].

is_ours({kprof_native, State}, {native, State, _}) -> true;
is_ours(Tracer, To) -> Tracer =:= To.

%% @doc Who traces new processes.
-spec flags_owner(tracer()) -> us | nobody | {other, Tracer :: term()}.
flags_owner({To, Session, _}) ->
    case kprof_vm:info(Session, new, tracer) of
        % and the guard's word of that is on its way
        ended ->
            us;
        [] ->
            nobody;
        Tracer ->
            case is_ours(Tracer, To) of
                true -> us;
                false -> {other, Tracer}
            end
    end.

%% @doc How many processes we could not set our flags on, because somebody else traces them.
-spec foreign_processes(tracer()) -> non_neg_integer().
foreign_processes({_, Session, _}) ->
    kprof_vm:foreign_processes(Session).

%% @doc Takes flags and patterns off. Processes that somebody else traces, and patterns that are not
%% ours (any more), are left alone. The port may be closed already.
-spec undo(tracer(), [pattern()]) -> ok.
undo({To, Session, _} = Tracer, Patterns) ->
    ok = leave_messages(To),
    ok = end_full(),
    know(beside, []),
    case kprof_vm:end_session(Session) of
        true ->
            ok;
        false ->
            ok = kprof_vm:trace(Session, all, false, ?ALL_FLAGS),
            ok = count_no_calls(Tracer, known(counted)),
            ok = undo_modules(Tracer, known(modules), Patterns),
            undo_patterns(Tracer, Patterns)
    end.

%% --- full traces ---

%% @doc The tracer of a full trace, to what {@link kprof_full_relay:traced_to/1} says. From OTP 27
%% on it has a session of its own; before, flags that name what it is traced to. The guard and the
%% keeper know: {@link undo/2} ends that, too, and so does {@link full_over/1}.
-spec full(tracer(), pid() | native()) -> tracer().
full({_, _, Keeper}, To) ->
    Own = kprof_vm:beside(traced_to(To)),
    know(beside, [Own]),
    Keeper ! {beside, Own},
    {To, Own, Keeper}.

traced_to({native, State, _}) -> {kprof_native, State};
traced_to(Pid) -> Pid.

%% @doc Whether the patterns of a full trace are those of the whole node, and a process that it
%% traces is traced for nothing else.
-spec is_shared(tracer()) -> boolean().
is_shared({_, Own, _}) ->
    kprof_vm:is_shared(Own).

%% @doc Ends the session of a full trace, with all that is set in it; where there are none, takes
%% its flags off, and the patterns are the caller's to undo.
-spec full_over(tracer()) -> ok.
full_over({_, Own, _}) ->
    end_beside(Own),
    know(beside, []).

%% @doc The guard does the same, which knows only that there may be one. No message comes any more.
%% Its owner does what is left.
-spec end_full() -> ok.
end_full() ->
    lists:foreach(fun end_beside/1, known(beside)).

end_beside(Own) ->
    case kprof_vm:end_session(Own) of
        true -> ok;
        false -> kprof_vm:trace(Own, all, false, ?ALL_FLAGS)
    end.

%% @doc Takes the flags of a trace off processes that were made while it had flags on all.
-spec leave_out(tracer(), [pid()]) -> ok.
leave_out({_, Session, _}, Pids) ->
    lists:foreach(fun(Pid) -> kprof_vm:trace(Session, Pid, false, ?ALL_FLAGS) end, Pids).

%% @doc Takes all flags off all processes. Patterns stay.
-spec rest(tracer()) -> ok.
rest({_, Session, _}) ->
    kprof_vm:trace(Session, all, false, ?ALL_FLAGS).

%% @doc Sets flags on one process, or on all that will be made.
-spec flag(tracer(), pid() | new_processes, [atom()]) -> ok.
flag({_, Session, _}, Which, Flags) ->
    kprof_vm:trace(Session, Which, true, Flags).

%% @doc Processes that will be made are traced no longer, but for those whose parents make their
%% children so.
-spec no_new_processes(tracer()) -> ok.
no_new_processes({_, Session, _}) ->
    kprof_vm:trace(Session, new_processes, false, ?ALL_FLAGS).

%% @doc Whether the calls of a process are traced, or never will be.
-spec is_flagged(tracer(), pid()) -> boolean().
is_flagged({_, Session, _}, Pid) ->
    case kprof_vm:flags(Session, Pid) of
        Flags when is_list(Flags) -> lists:member(call, Flags);
        _ -> true
    end.

%% @doc Whether nobody else traces a function of a module, as far as we would take that away.
%% `Patterns' are ours.
-spec is_free(tracer(), module(), [pattern()]) -> boolean().
is_free({_, Session, _}, Module, Patterns) ->
    not kprof_vm:is_shared(Session) orelse foreign(Session, Module, Patterns) =:= [].

%% @doc Sets the pattern of a full trace on all functions of modules but those of the tiers, which
%% keep theirs. Returns how many functions these are. The guard knows, before it is done: {@link
%% undo/2} ends that, too.
-spec set_modules(tracer(), [module()], Tiers :: [pattern()]) -> non_neg_integer().
set_modules({_, Session, _} = Tracer, Modules, Tiers) ->
    Shared = kprof_vm:is_shared(Session),
    _ = Shared andalso know(modules, Modules),
    Spec = kprof_match:full(),
    Functions = lists:sum([kprof_vm:pattern(Session, {M, '_', '_'}, Spec) || M <- Modules]),
    case Shared of
        true ->
            ok = set_patterns(Tracer, Tiers);
        % both sessions would tell of each call
        false ->
            lists:foreach(fun({MFA, _}) -> kprof_vm:pattern(Session, MFA, false) end, Tiers)
    end,
    Functions.

%% @doc Takes all patterns off the functions of modules, `Patterns', which are ours, among them, but
%% not those that somebody else has set meanwhile.
-spec undo_modules(tracer(), [module()], [pattern()]) -> ok.
undo_modules({_, Session, _}, Modules, Patterns) ->
    lists:foreach(fun(M) -> undo_module(Session, M, Patterns) end, Modules),
    know(modules, []).

undo_module(Session, Module, Patterns) ->
    case kprof_vm:is_shared(Session) andalso foreign(Session, Module, Patterns) of
        Foreign when is_list(Foreign), Foreign =/= [] ->
            lists:foreach(
                fun(MFA) -> kprof_vm:pattern(Session, MFA, false) end,
                functions(Module) -- Foreign
            );
        _ ->
            _ = kprof_vm:pattern(Session, {Module, '_', '_'}, false),
            ok
    end.

%% The functions of a module that have another pattern than ours.
foreign(Session, Module, Patterns) ->
    Full = kprof_match:full(),
    [
        MFA
     || MFA <- functions(Module),
        Spec <- [kprof_vm:info(Session, MFA, match_spec)],
        Spec =/= false,
        Spec =/= undefined,
        Spec =/= Full,
        not lists:member({MFA, Spec}, Patterns)
    ].

functions(Module) ->
    try Module:module_info(functions) of
        Functions -> [{Module, F, A} || {F, A} <- Functions]
    catch
        % it was unloaded
        error:undef -> []
    end.

%% @doc Has the VM count the calls of functions, but not of those that somebody else counts, and
%% returns which. The guard knows, before it is done: {@link undo/2} ends that, too.
-spec count_calls(tracer(), [mfa()]) -> [mfa()].
count_calls({_, Session, _}, MFAs) ->
    Free = [MFA || MFA <- MFAs, kprof_vm:info(Session, MFA, call_count) =:= false],
    know(counted, Free),
    lists:foreach(fun(MFA) -> kprof_vm:count(Session, MFA, true) end, Free),
    Free.

%% @doc How many there have been, of all of them.
-spec counted_calls(tracer(), [mfa()]) -> non_neg_integer().
counted_calls({_, Session, _}, MFAs) ->
    lists:sum([N || MFA <- MFAs, N <- [kprof_vm:info(Session, MFA, call_count)], is_integer(N)]).

%% @doc Counts them no longer.
-spec count_no_calls(tracer(), [mfa()]) -> ok.
count_no_calls({_, Session, _}, MFAs) ->
    lists:foreach(fun(MFA) -> kprof_vm:count(Session, MFA, false) end, MFAs),
    know(counted, []).

%% What is set besides patterns, for whoever has to undo it.
know(What, List) ->
    _ = ets:whereis(kprof_guard) =:= undefined orelse ets:insert(kprof_guard, {What, List}),
    ok.

known(What) ->
    case ets:whereis(kprof_guard) =/= undefined andalso ets:lookup(kprof_guard, What) of
        [{What, List}] -> List;
        _ -> []
    end.

%% @doc Takes patterns off that are still as we set them.
-spec undo_patterns(tracer(), [pattern()]) -> ok.
undo_patterns({_, Session, _}, Patterns) ->
    lists:foreach(
        fun({MFA, Spec}) ->
            case kprof_vm:info(Session, MFA, match_spec) of
                Spec -> kprof_vm:pattern(Session, MFA, false);
                _ -> 0
            end
        end,
        Patterns
    ).
