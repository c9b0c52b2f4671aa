%% @doc How much the node traces: bytes of trace messages a second, as the relay counts them; and how many for each second of processor
%% time, while the node is at its limit. The latter is what tracing takes from the application then, however fast the machine is and
%% whatever else runs on it. A node that has time left loses nothing.
-module(kprof_load).

-export([new/0, counter/1, begin_at/2, look/2, look/4, rate/1, per_cpu/1, interval/0]).

-export_type([load/0]).

-define(INTERVAL_MS, 50).

-record(load, {counted = counters:new(1, []) :: counters:counters_ref(),
               bytes = 0 :: non_neg_integer(),     % at the last look
               cpu_ms = unknown :: cpu_ms(),       % of this node, at the last look
               at = 0 :: integer(),                % ms
               last = none :: none | non_neg_integer(),    % the last look's rate alone
               rate = 0 :: non_neg_integer(),      % of the last two looks
               cpu = 0 :: non_neg_integer(),       % smoothed: ms of processor time a second; 0: not known
               waiting = none :: none | non_neg_integer()}). % smoothed: thousandths of processes and ports that wait, for each scheduler
-opaque load() :: #load{}.

-type cpu_ms() :: non_neg_integer() | unknown.

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
begin_at(Now, #load{counted = Counted} = Load) ->
    Load#load{bytes = counters:get(Counted, 1), cpu_ms = unknown, at = Now, last = none, rate = 0, cpu = 0, waiting = none}.

%% @doc Takes a look, to be done every {@link interval/0} ms.
-spec look(integer(), load()) -> load().
look(Now, Load) ->
    case erlang:statistics(total_run_queue_lengths) of
        0 -> look(Now, unknown, 0, Load);
        Waiting -> look(Now, cpu_ms(), Waiting * 1000 div erlang:system_info(schedulers_online), Load)
    end.

%% @doc The same, told what there is to see; the processor time need not be known while nothing waits. What it says is of two looks or
%% three, as single requests are not the load; but the first one after a begin, before which there was nothing, counts alone: what is too
%% much from the begin on is known in a twentieth of a second.
-spec look(integer(), cpu_ms(), non_neg_integer(), load()) -> load().
look(Now, _, _, #load{at = At} = Load) when Now - At < ?INTERVAL_MS div 2 ->
    Load;       % too short to tell
look(Now, CpuMs, Waiting, #load{counted = Counted, at = At} = Load) ->
    Bytes = counters:get(Counted, 1),
    Rate = (Bytes - Load#load.bytes) * 1000 div (Now - At),
    Load#load{bytes = Bytes, cpu_ms = CpuMs, at = Now, last = Rate,
              rate = smooth(Load#load.last, Rate),
              cpu = cpu(CpuMs, Now - At, Load),
              waiting = smooth(Load#load.waiting, Waiting)}.

smooth(none, Value) -> Value;
smooth(Before, Value) -> (Before + Value) div 2.

cpu(CpuMs, _, #load{cpu_ms = Before}) when CpuMs =:= unknown; Before =:= unknown -> 0;
cpu(CpuMs, Ms, #load{cpu_ms = Before, cpu = 0}) -> (CpuMs - Before) * 1000 div Ms;
cpu(CpuMs, Ms, #load{cpu_ms = Before, cpu = Cpu}) -> smooth(Cpu, (CpuMs - Before) * 1000 div Ms).

%% @doc Bytes a second.
-spec rate(load()) -> non_neg_integer().
rate(#load{rate = Rate}) ->
    Rate.

%% @doc Bytes for each second of processor time; 0 while the node is not at its limit, as fewer than one process waits for each scheduler,
%% and where it is not known, as on systems without `/proc'.
-spec per_cpu(load()) -> non_neg_integer().
per_cpu(#load{waiting = Waiting, cpu = Cpu}) when Waiting =:= none; Waiting < 1000; Cpu =:= 0 -> 0;
per_cpu(#load{rate = Rate, cpu = Cpu}) -> Rate * 1000 div Cpu.

%% @doc Milliseconds from one look to the next.
-spec interval() -> pos_integer().
interval() ->
    ?INTERVAL_MS.

%% statistics(runtime) would do, but tells others who ask the time since anybody did. The fields are those of proc(5), in hundredths.
-spec cpu_ms() -> cpu_ms().
cpu_ms() ->
    case file:open("/proc/self/stat", [read, raw, binary]) of
        {ok, File} ->
            Read = file:read(File, 1024),
            _ = file:close(File),
            cpu_ms(Read);
        {error, _} ->
            unknown
    end.

cpu_ms({ok, Text}) ->
    [_, Rest] = binary:split(Text, <<") ">>),
    [_, _, _, _, _, _, _, _, _, _, _, User, System | _] = binary:split(Rest, <<" ">>, [global]),
    10 * (binary_to_integer(User) + binary_to_integer(System));
cpu_ms(_) ->
    unknown.
