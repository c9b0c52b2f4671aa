%% @doc How much the node traces: bytes of trace messages a second, as the relay counts them; and how many for each second of processor time,
%% while the node is at its limit. The latter is what tracing takes from the application then, however fast the machine is and whatever
%% else runs on it. A node that has time left loses nothing.
-module(kprof_load).

-export([new/0, counter/1, begin_at/2, begin_at/3, look/2, look/4, rate/1, per_cpu/1, interval/0]).

-export_type([load/0]).

-define(INTERVAL_MS, 50).

-record(load, {counted = counters:new(1, []) :: counters:counters_ref(),
               bytes = 0 :: non_neg_integer(),     % at the last look
               cpu_ms = 0 :: non_neg_integer(),    % of this node, at the last look
               at = 0 :: integer(),                % ms
               rate = 0 :: non_neg_integer(),      % these three are smoothed
               cpu = 0 :: non_neg_integer(),       % ms of processor time a second
               waiting = 0 :: non_neg_integer()}). % thousandths of processes and ports that wait to be run, for each scheduler
-opaque load() :: #load{}.

%% @doc Nothing yet.
-spec new() -> load().
new() ->
    #load{}.

%% @doc Where the relay counts.
-spec counter(load()) -> counters:counters_ref().
counter(#load{counted = Counted}) ->
    Counted.

%% @doc Tracing begins now. `Now' is in ms.
-spec begin_at(integer(), load()) -> load().
begin_at(Now, Load) ->
    begin_at(Now, cpu_ms(), Load).

%% @doc The same, told what processor time the node has had.
-spec begin_at(integer(), non_neg_integer(), load()) -> load().
begin_at(Now, CpuMs, #load{counted = Counted} = Load) ->
    Load#load{bytes = counters:get(Counted, 1), cpu_ms = CpuMs, at = Now, rate = 0, cpu = 0, waiting = 0}.

%% @doc Takes a look, to be done every {@link interval/0} ms.
-spec look(integer(), load()) -> load().
look(Now, Load) ->
    look(Now, cpu_ms(), erlang:statistics(total_run_queue_lengths) * 1000 div erlang:system_info(schedulers_online), Load).

%% @doc The same, told what there is to see. All is smoothed over two or three looks: single requests are not the load.
-spec look(integer(), non_neg_integer(), non_neg_integer(), load()) -> load().
look(Now, _, _, #load{at = At} = Load) when Now - At < ?INTERVAL_MS div 2 ->
    Load;       % too short to tell
look(Now, CpuMs, Waiting, #load{counted = Counted, at = At} = Load) ->
    Bytes = counters:get(Counted, 1),
    Smooth = fun(Before, Value) -> (Before + Value) div 2 end,
    Load#load{bytes = Bytes, cpu_ms = CpuMs, at = Now,
              rate = Smooth(Load#load.rate, (Bytes - Load#load.bytes) * 1000 div (Now - At)),
              cpu = Smooth(Load#load.cpu, (CpuMs - Load#load.cpu_ms) * 1000 div (Now - At)),
              waiting = Smooth(Load#load.waiting, Waiting)}.

%% @doc Bytes a second.
-spec rate(load()) -> non_neg_integer().
rate(#load{rate = Rate}) ->
    Rate.

%% @doc Bytes for each second of processor time; 0 while the node is not at its limit: fewer than one process waits for each scheduler. On
%% systems without `/proc' it counts as one that has the time of one scheduler.
-spec per_cpu(load()) -> non_neg_integer().
per_cpu(#load{waiting = Waiting}) when Waiting < 1000 -> 0;
per_cpu(#load{rate = Rate, cpu = 0}) -> Rate;
per_cpu(#load{rate = Rate, cpu = Cpu}) -> Rate * 1000 div Cpu.

%% @doc Milliseconds from one look to the next.
-spec interval() -> pos_integer().
interval() ->
    ?INTERVAL_MS.

%% statistics(runtime) would do, but tells others who ask the time since anybody did. The fields are those of proc(5), in hundredths.
cpu_ms() ->
    case file:open("/proc/self/stat", [read, raw, binary]) of
        {ok, File} ->
            Read = file:read(File, 1024),
            _ = file:close(File),
            cpu_ms(Read);
        {error, _} ->
            0
    end.

cpu_ms({ok, Text}) ->
    [_, Rest] = binary:split(Text, <<") ">>),
    [_, _, _, _, _, _, _, _, _, _, _, User, System | _] = binary:split(Rest, <<" ">>, [global]),
    10 * (binary_to_integer(User) + binary_to_integer(System));
cpu_ms(_) ->
    0.
