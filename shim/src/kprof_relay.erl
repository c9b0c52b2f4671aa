%% @doc Carries the bytes of the trace port to the collector, unchanged. When the collector is slow it waits, the trace
%% port's queue fills and the port counts what it drops: nothing in the node waits.
%%
%% A few bytes are no reason to wake up: after little it lets some milliseconds' messages gather in its socket's buffer, and takes them in
%% one go. That is most of what a message costs the node while there are few: else each wakes a poll thread, this process and the collector.
-module(kprof_relay).

-export([start_link/3, drain/1, drain/2]).

-define(IDLE_MS, 200).
-define(GATHER_MS, 10).
-define(GATHER_MAX_MS, 40).
-define(LITTLE, 32768).     % bytes: an eighth of the socket's buffer, so that there is room for a burst of what follows

%% @doc Starts a relay from the trace port's socket, which stays whose it is ({@link kprof_tracer:open/0}), to a connection of the caller's, which
%% it becomes the owner of. It exits with `{trace_port, Reason}' or
%% `{collector, Reason}', telling which side ended. `Counted' counts the bytes that came from the port.
-spec start_link(gen_tcp:socket(), kprof_link:connection(), counters:counters_ref()) -> pid().
start_link(In, {Module, Out}, Counted) ->
    Pid = spawn_opt(fun() -> receive go -> loop({In, Module, Out, Counted}, false) end end, [link, {fullsweep_after, 20}]),
    _ = Module:controlling_process(Out, Pid),
    Pid ! go,
    Pid.

%% @doc Has the relay carry on until nothing has come for 200 ms, then close the connection; waits for that, `Timeout' ms
%% at most, and then kills it. The caller must be the one that started it, and trap exits.
-spec drain(pid(), timeout()) -> ok.
drain(Pid, Timeout) ->
    ok = drain(Pid),
    receive {'EXIT', Pid, _} -> ok
    after Timeout -> kill(Pid)
    end.

%% @doc The same without waiting: the relay's exit tells when it is done.
-spec drain(pid()) -> ok.
drain(Pid) ->
    Pid ! drain,
    ok.

kill(Pid) ->
    exit(Pid, kill),
    receive {'EXIT', Pid, _} -> ok end.

loop({In, Module, Out, Counted} = Way, Drain) ->
    case gen_tcp:recv(In, 0, ?IDLE_MS) of
        {ok, Bytes} ->
            counters:add(Counted, 1, byte_size(Bytes)),
            case Module:send(Out, Bytes) of
                ok -> loop(Way, gather(byte_size(Bytes), Drain));
                {error, Why} -> exit({collector, Why})
            end;
        {error, timeout} when not Drain ->
            loop(Way, told(0));
        {error, Why} ->
            kprof_link:close({Module, Out}),
            exit({trace_port, Why})
    end.

%% Whether to drain. What is drained is on its way without delay.
gather(_, true) -> true;
gather(Size, false) when Size < ?LITTLE div 8 -> told(?GATHER_MAX_MS);
gather(Size, false) when Size < ?LITTLE -> told(?GATHER_MS);
gather(_, false) -> told(0).

told(Ms) ->
    receive drain -> true after Ms -> false end.
