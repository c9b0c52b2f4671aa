%% SPDX-License-Identifier: Apache-2.0
%% @doc Calls the slow_call_callback, never in a process of a request: one call at a time, each in a
%% process of its own with limits on time and memory. What comes faster than the callback works is
%% thrown away.
-module(kprof_slow).

-export([start_link/1, slow/2, stop/1, spans/1]).

-define(MAX_WAITING, 20).
-define(RUN_MS, 5000).
% 64 MB
-define(HEAP_WORDS, 8000000).
-define(STOP_MS, 1000).

-record(s, {
    callback :: kprof:slow_call_callback(),
    owner :: pid(),
    run = undefined :: undefined | {pid(), reference(), Timer :: reference()},
    waiting = queue:new() :: queue:queue(map()),
    % the last call failed, and has been told; the next success ends that
    failed = false :: boolean()
}).

%% @doc Starts the caller of one trace's callback, linked to the process that starts it.
-spec start_link(kprof:slow_call_callback()) -> pid().
start_link(Callback) ->
    Owner = self(),
    spawn_link(fun() ->
        _ = process_flag(trap_exit, true),
        loop(#s{callback = Callback, owner = Owner})
    end).

%% @doc Gives it a slow request, as the collector tells it.
-spec slow(pid(), map()) -> ok.
slow(Pid, Message) ->
    Pid ! {slow, Message},
    ok.

%% @doc Ends it, and the call that runs after a second at most. What waits is thrown away.
-spec stop(pid()) -> ok.
stop(Pid) ->
    kprof_outlet:stop(Pid, 2 * ?STOP_MS).

loop(#s{run = Run, owner = Owner} = S) ->
    receive
        {slow, Message} ->
            loop(next(wait(Message, S)));
        {'DOWN', Ref, process, _, Why} when Run =/= undefined, Ref =:= element(2, Run) ->
            _ = erlang:cancel_timer(element(3, Run)),
            loop(next(done(Why, S#s{run = undefined})));
        {timeout, Timer, too_long} when Run =/= undefined, Timer =:= element(3, Run) ->
            exit(element(1, Run), kill),
            loop(S);
        stop ->
            last(Run);
        {'EXIT', Owner, Why} ->
            kill(Run),
            exit(Why);
        _ ->
            loop(S)
    end.

wait(Message, #s{waiting = Waiting} = S) ->
    case queue:len(Waiting) < ?MAX_WAITING of
        true -> S#s{waiting = queue:in(Message, Waiting)};
        false -> S
    end.

next(#s{run = undefined, waiting = Waiting, callback = Callback} = S) ->
    case queue:out(Waiting) of
        {{value, Message}, Rest} ->
            Limits = [
                monitor,
                {max_heap_size, #{size => ?HEAP_WORDS, kill => true, error_logger => false}}
            ],
            {Pid, Ref} = spawn_opt(fun() -> run(Callback, Message) end, Limits),
            S#s{run = {Pid, Ref, erlang:start_timer(?RUN_MS, self(), too_long)}, waiting = Rest};
        {empty, _} ->
            S
    end;
next(S) ->
    S.

run(Callback, Message) ->
    try
        Callback(spans(Message), identity(Message))
    catch
        Class:Reason:Stack -> exit({kprof_slow_call, Class, Reason, Stack})
    end.

done(normal, S) ->
    S#s{failed = false};
done(Why, #s{failed = Failed} = S) ->
    _ = Failed orelse logger:warning("kprof: slow_call_callback failed: ~0tP", [reason(Why), 30]),
    S#s{failed = true}.

reason({kprof_slow_call, Class, Reason, Stack}) -> {Class, Reason, Stack};
reason(killed) -> "it took longer than 5 s or more than 64 MB";
reason(Why) -> Why.

%% The callback that runs may end by itself first.
last(undefined) ->
    ok;
last({_, Ref, _} = Run) ->
    receive
        {'DOWN', Ref, process, _, _} -> ok
    after ?STOP_MS -> kill(Run)
    end.

kill(undefined) -> true;
kill({Pid, _, _}) -> exit(Pid, kill).

%% @doc The spans of a message as the callback is given them: atoms for the names that spans are
%% known to have, and for outcomes.
-spec spans(map()) -> [kprof:span()].
spans(#{<<"spans">> := Spans}) when is_list(Spans) ->
    Names = [
        tier,
        depth,
        pid,
        span,
        parent,
        start_us,
        duration_us,
        self_us,
        wait_us,
        gc_us,
        off_cpu_us,
        async,
        outcome
    ],
    [outcome(kprof_outlet:named(Span, Names)) || Span <- Spans, is_map(Span)];
spans(_) ->
    [].

outcome(#{outcome := <<"ok">>} = Span) -> Span#{outcome := ok};
outcome(#{outcome := <<"error">>} = Span) -> Span#{outcome := error};
outcome(#{outcome := <<"open">>} = Span) -> Span#{outcome := open};
outcome(#{outcome := <<"unknown">>} = Span) -> Span#{outcome := unknown};
outcome(Span) -> Span.

identity(#{<<"identity">> := Identity}) when is_binary(Identity) -> Identity;
identity(_) -> <<>>.
