%% What a traced call costs the node, measured inside it, with the real shim and a collector that takes the data.
%%
%% Everything is done in bursts of about a millisecond or less, so that most are not disturbed; where messages are made, with pauses,
%% so that they stay below the rate at which the guard trips. Of a burst the time per operation is taken; of all bursts the
%% median. The CPU time is the whole node's: it holds what the trace port, the relay and the guard do for a call.
-module(bench_calls).

-export([main/1, tiny/1, list/1]).

%% Over two ticks of the guard's gauge (10 ms), so that bursts in step with it cannot make 8 refusals in a row.
-define(PAUSE_MS, 25).

-record(m, {operation, prepare = fun() -> ok end, finish = fun() -> ok end, burst, bursts, pause_ms = 0}).

%% Arguments: the collector's port, how many bursts. Prints
%%   cost NAME WALL_NS CPU_NS
%%   status NAME STATUS      the shim's status after a traced measurement: anything but tracing spoils it
%%   traced CALLS REQUESTS   what the collector must have seen
-spec main([string()]) -> no_return().
main([Port, Bursts]) ->
    {ok, _} = application:ensure_all_started(runtime_tools),
    N = list_to_integer(Bursts),
    Collector = {"127.0.0.1", list_to_integer(Port)},
    Call = #m{operation = fun calls/1, burst = 50000, bursts = 5 * N},
    Pair = #m{operation = fun pairs/1, burst = 2000, bursts = 5 * N},
    List = Call#m{operation = fun lists/1, burst = 1000},
    Spawn = #m{operation = fun spawns/1, burst = 200, bursts = 5 * N},
    cost("call_untraced", Call),
    cost("list_untraced", List),
    cost("spawn_untraced", Spawn),
    ok = kprof:start(),
    cost("pair_off", Pair),

    ok = start_trace(Collector, 1000000000, #{}, []),
    cost("call_no_token", Call#m{burst = 2000}),
    cost("spawn_no_token", Spawn),
    status("call_no_token"),
    cost("pair_sampled_out", Pair),
    status("pair_sampled_out"),
    ok = kprof:stop_trace(),

    Flags = [{trace_gc, true}, {trace_scheduling, true}],
    ok = start_trace(Collector, 1000000000, #{}, Flags),
    cost("call_no_token_flags", Call#m{burst = 2000}),
    status("call_no_token_flags"),
    ok = kprof:stop_trace(),

    Token = Call#m{prepare = fun kprof:set_token/0, finish = fun kprof:clear_token/0, burst = 200, bursts = N, pause_ms = ?PAUSE_MS},
    ok = start_trace(Collector, 1, #{}, []),
    cost("call_token", Token),
    status("call_token"),
    Sampled = Pair#m{burst = 200, bursts = N, pause_ms = ?PAUSE_MS},
    cost("pair_sampled", Sampled),
    status("pair_sampled"),
    cost("list_token", Token#m{operation = fun lists/1, burst = 50}),
    status("list_token"),
    cost("spawn_token", Token#m{operation = fun spawns/1, burst = 100}),
    status("spawn_token"),
    ok = kprof:stop_trace(),

    ok = start_trace(Collector, 1, #{}, Flags),
    cost("call_token_flags", Token),
    status("call_token_flags"),
    ok = kprof:stop_trace(),

    ok = start_trace(Collector, 1, #{returns => none}, []),
    cost("call_none", Token),
    status("call_none"),
    cost("list_none", Token#m{operation = fun lists/1, burst = 50}),
    status("list_none"),
    ok = kprof:stop_trace(),

    cost("call_untraced_again", Call),
    io:format("traced ~b ~b~n", [3 * N * Token#m.burst, N * (6 + Sampled#m.burst)]),
    ok = kprof:stop(),
    halt(0).

start_trace(Collector, OneIn, Tier, Options) ->
    kprof:start_trace([{tier_config, [{tiny, {?MODULE, tiny, 1}, Tier}, {list, {?MODULE, list, 1}, Tier}]}, {collector, Collector},
                       {sample, {one_in, OneIn}} | Options]).

status(Name) ->
    io:format("status ~s ~s~n", [Name, kprof:status()]).

cost(Name, #m{burst = Burst, bursts = Bursts} = Measured) ->
    timer:sleep(200),
    _ = statistics(runtime),
    Walls = [burst(Measured) || _ <- lists:seq(1, Bursts)],
    {_, CpuMs} = statistics(runtime),
    Median = lists:nth((Bursts + 1) div 2, lists:sort(Walls)),
    io:format("cost ~s ~.1f ~.1f~n", [Name, Median / Burst, CpuMs * 1.0e6 / (Burst * Bursts)]).

burst(#m{operation = Operation, prepare = Prepare, finish = Finish, burst = Burst, pause_ms = Pause}) ->
    Prepare(),
    Start = erlang:monotonic_time(nanosecond),
    Operation(Burst),
    Ns = erlang:monotonic_time(nanosecond) - Start,
    Finish(),
    timer:sleep(Pause),
    Ns.

calls(0) -> ok;
calls(N) ->
    _ = ?MODULE:tiny(N),
    calls(N - 1).

pairs(0) -> ok;
pairs(N) ->
    kprof:set_token(),
    kprof:clear_token(),
    pairs(N - 1).

lists(0) -> ok;
lists(N) ->
    [_ | _] = ?MODULE:list(x),
    lists(N - 1).

%% A process that does nothing, until it is gone.
spawns(0) -> ok;
spawns(N) ->
    {_, Ref} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', Ref, process, _, normal} -> spawns(N - 1) end.

-spec tiny(integer()) -> integer().
tiny(N) ->
    N + 1.

%% A thousand elements, made anew by every call.
-spec list(atom()) -> [integer()].
list(_) ->
    lists:seq(1001, 2000).
