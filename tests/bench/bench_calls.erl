%% SPDX-License-Identifier: Apache-2.0
%% What a traced call costs the node, measured inside it, with the real shim and a collector that
%% takes the data.
%%
%% Everything is done in bursts of about a millisecond or less, so that most are not disturbed;
%% where messages are made, with pauses, so that they stay below the rate at which the guard trips.
%% Of a burst the time per operation is taken; of all bursts the median. The CPU time is the whole
%% node's: it holds what the trace port, the relay and the guard do for a call.
-module(bench_calls).

-export([main/1, tiny/1, list/1]).

%% Over two ticks of the guard's gauge (10 ms), so that bursts in step with it cannot make 8
%% refusals in a row.
-define(PAUSE_MS, 25).
-define(ROUNDS, 5).

-record(m, {
    operation, prepare = fun() -> ok end, finish = fun() -> ok end, burst, bursts, pause_ms = 0
}).

%% Arguments: the collector's port, how many bursts. Prints
%%   cost NAME WALL_NS CPU_NS
%%   status NAME STATUS      the shim's status after a traced measurement: anything but tracing
%%                           spoils it
%%   traced CALLS REQUESTS   what the collector must have seen: calls of tiny/1 under a token, and
%%                           requests, those included that the sampler left out
-spec main([string()]) -> no_return().
main([Port, Bursts]) ->
    {ok, _} = application:ensure_all_started(runtime_tools),
    N = list_to_integer(Bursts),
    Collector = {"127.0.0.1", list_to_integer(Port)},
    Call = #m{operation = fun calls/1, burst = 50000, bursts = 5 * N},
    Pair = #m{operation = fun pairs/1, burst = 2000, bursts = 5 * N},
    %% With the pauses that their traced ones have: what comes after a pause is slower.
    Spawn = #m{operation = fun spawns/1, burst = 100, bursts = N div 2, pause_ms = ?PAUSE_MS},
    cost("call_untraced", Call),
    cost("list_untraced", Spawn#m{operation = fun lists/1, burst = 50}),
    cost("spawn_untraced", Spawn),
    cost("yield_untraced", Spawn#m{operation = fun yields/1, burst = 200}),
    cost("gc_untraced", Spawn#m{operation = fun collections/1, burst = 50}),
    ok = kprof:start(),
    cost("pair_off", Pair),

    ok = start_trace(Collector, 1000000000, #{}, []),
    cost("call_no_token", Call#m{burst = 2000}),
    cost("spawn_no_token", Spawn),
    status("call_no_token"),
    cost("pair_sampled_out", Pair),
    status("pair_sampled_out"),
    ok = kprof:stop_trace(),

    %% What this release refuses, as it could kill the node, is not measured.
    Flags = [
        {Option, true}
     || {Option, Flag} <- [{trace_gc, garbage_collection}, {trace_scheduling, running}],
        kprof_vm:unsafe(Flag) =:= no
    ],
    io:format("flags ~s~n", [lists:join(" ", [atom_to_list(Option) || {Option, true} <- Flags])]),
    ok = start_trace(Collector, 1000000000, #{}, Flags),
    cost("call_no_token_flags", Call#m{burst = 2000}),
    status("call_no_token_flags"),
    ok = kprof:stop_trace(),

    ok = start_trace(Collector, 1, #{}, []),
    Sampled = Pair#m{burst = 200, bursts = N, pause_ms = ?PAUSE_MS},
    cost("pair_sampled", Sampled),
    status("pair_sampled"),
    ok = kprof:stop_trace(),

    %% What is compared with each other is measured in turns, as a machine is not always as fast.
    Token = Call#m{
        prepare = fun kprof:set_token/0,
        finish = fun kprof:clear_token/0,
        burst = 200,
        bursts = N div ?ROUNDS,
        pause_ms = ?PAUSE_MS
    },
    ListToken = Token#m{operation = fun lists/1, burst = 50},
    YieldToken = Token#m{operation = fun yields/1},
    GcToken = Token#m{operation = fun collections/1, burst = 50},
    Traces = [
        {#{}, [], [
            {"call_token", Token},
            {"list_token", ListToken},
            {"spawn_token", Token#m{operation = fun spawns/1, burst = 100}},
            {"yield_token", YieldToken},
            {"gc_token", GcToken}
        ]},
        {
            #{},
            Flags,
            [{"call_token_flags", Token}] ++
                [
                    {"yield_token_flags", YieldToken}
                 || lists:keymember(trace_scheduling, 1, Flags)
                ] ++
                [{"gc_token_flags", GcToken} || lists:keymember(trace_gc, 1, Flags)]
        },
        {#{returns => none}, [], [{"call_none", Token}, {"list_none", ListToken}]}
    ],
    costs(
        lists:append([in_turn(Collector, Trace) || _ <- lists:seq(1, ?ROUNDS), Trace <- Traces])
    ),

    cost("call_untraced_again", Call),
    % each burst of them is a request
    InTurn = lists:sum([length(Measured) || {_, _, Measured} <- Traces]),
    io:format("traced ~b ~b~n", [
        3 * ?ROUNDS * Token#m.bursts * Token#m.burst,
        made(Pair) + made(Sampled) + InTurn * ?ROUNDS * Token#m.bursts
    ]),
    ok = kprof:stop(),
    halt(0).

made(#m{burst = Burst, bursts = Bursts}) -> Burst * Bursts.

in_turn(Collector, {Tier, Options, Measured}) ->
    ok = start_trace(Collector, 1, Tier, Options),
    Results = [
        begin
            Result = measure(Name, M),
            status(Name),
            Result
        end
     || {Name, M} <- Measured
    ],
    ok = kprof:stop_trace(),
    Results.

start_trace(Collector, OneIn, Tier, Options) ->
    kprof:start_trace([
        {tier_config, [{tiny, {?MODULE, tiny, 1}, Tier}, {list, {?MODULE, list, 1}, Tier}]},
        {collector, Collector},
        {sample, {one_in, OneIn}}
        | Options
    ]).

status(Name) ->
    io:format("status ~s ~s~n", [Name, kprof:status()]).

cost(Name, M) ->
    costs([measure(Name, M)]).

%% {Name, operations in a burst, its bursts' times in ns, the node's CPU time in ms}
measure(Name, #m{burst = Burst, bursts = Bursts} = M) ->
    timer:sleep(200),
    _ = statistics(runtime),
    Walls = [burst(M) || _ <- lists:seq(1, Bursts)],
    {_, CpuMs} = statistics(runtime),
    {Name, Burst, Walls, CpuMs}.

%% Prints what was measured, under each name once.
costs(Results) ->
    lists:foreach(
        fun(Name) ->
            [{_, Burst, _, _} | _] = Same = [R || {N, _, _, _} = R <- Results, N =:= Name],
            Walls = lists:sort(lists:append([W || {_, _, W, _} <- Same])),
            Median = lists:nth((length(Walls) + 1) div 2, Walls),
            Cpu = lists:sum([Ms || {_, _, _, Ms} <- Same]) * 1.0e6 / (Burst * length(Walls)),
            io:format("cost ~s ~.1f ~.1f~n", [Name, Median / Burst, Cpu])
        end,
        lists:usort([N || {N, _, _, _} <- Results])
    ).

burst(#m{
    operation = Operation, prepare = Prepare, finish = Finish, burst = Burst, pause_ms = Pause
}) ->
    Prepare(),
    Start = erlang:monotonic_time(nanosecond),
    Operation(Burst),
    Ns = erlang:monotonic_time(nanosecond) - Start,
    Finish(),
    timer:sleep(Pause),
    Ns.

calls(0) ->
    ok;
calls(N) ->
    _ = ?MODULE:tiny(N),
    calls(N - 1).

pairs(0) ->
    ok;
pairs(N) ->
    kprof:set_token(),
    kprof:clear_token(),
    pairs(N - 1).

lists(0) ->
    ok;
lists(N) ->
    [_ | _] = ?MODULE:list(x),
    lists(N - 1).

%% A process that does nothing, until it is gone.
spawns(0) ->
    ok;
spawns(N) ->
    {_, Ref} = spawn_monitor(fun() -> ok end),
    receive
        {'DOWN', Ref, process, _, normal} -> spawns(N - 1)
    end.

yields(0) ->
    ok;
yields(N) ->
    true = erlang:yield(),
    yields(N - 1).

collections(0) ->
    ok;
collections(N) ->
    true = erlang:garbage_collect(),
    collections(N - 1).

-spec tiny(integer()) -> integer().
tiny(N) ->
    N + 1.

%% A thousand elements, made anew by every call.
-spec list(atom()) -> [integer()].
list(_) ->
    lists:seq(1001, 2000).
