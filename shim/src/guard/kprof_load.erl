%% SPDX-License-Identifier: Apache-2.0
%% @doc How much the node traces: bytes of trace messages a second, as the relay counts them; and
%% how many for each second of processor time, once half a second on end has proved that the node is
%% at its limit. The latter is what tracing takes from the application then, however fast the
%% machine is and whatever else runs on it. A node that has time left loses nothing.
%%
%% The proof: at two looks in three more processes and ports wait than there are schedulers. One is
%% allowed for, that this look itself keeps waiting. All looks would be too much to ask: on a busy
%% machine who is waited for may stand still itself for a while, and nothing waits.
-module(kprof_load).

-export([new/0, counter/1, begin_at/2, look/2, look/4, rate/1, per_cpu/1, at/1, interval/0]).

-export_type([load/0]).

-define(INTERVAL_MS, 50).
-define(PROOF_MS, 500).

-record(load, {
    % bytes, and messages
    counted = counters:new(2, []) :: counters:counters_ref(),
    % at the last look
    bytes = 0 :: non_neg_integer(),
    % ms
    at = 0 :: integer(),
    % the last look's rate alone
    last = none :: none | non_neg_integer(),
    % of the last two looks
    rate = 0 :: non_neg_integer(),
    %% the half second under way: its begin, the looks so far, and those of them at which too many
    %% waited
    since = none :: none | {At :: integer(), Bytes :: non_neg_integer(), cpu_ms()},
    looks = 0 :: non_neg_integer(),
    full = 0 :: non_neg_integer(),
    % of the half second before
    per_cpu = 0 :: non_neg_integer()
}).
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
begin_at(Now, #load{counted = Counted}) ->
    #load{counted = Counted, bytes = counters:get(Counted, 1), at = Now}.

%% @doc Takes a look, to be done every {@link interval/0} ms.
-spec look(integer(), load()) -> load().
look(Now, Load) ->
    look(
        Now,
        erlang:statistics(total_run_queue_lengths) > erlang:system_info(schedulers_online),
        fun cpu_ms/0,
        Load
    ).

%% @doc The same, told whether too many wait, and how to ask for the processor time that the node
%% has had, which costs something. What it says of the rate is of two looks or three, as single
%% requests are not the load; but the first one after a begin, before which there was nothing,
%% counts alone: what is too much from the begin on is known in a twentieth of a second.
-spec look(integer(), boolean(), fun(() -> cpu_ms()), load()) -> load().
look(Now, _, _, #load{at = At} = Load) when Now - At < ?INTERVAL_MS div 2 ->
    % too short to tell
    Load;
look(Now, IsFull, CpuMs, #load{counted = Counted, at = At} = Load) ->
    Bytes = counters:get(Counted, 1),
    Rate = (Bytes - Load#load.bytes) * 1000 div (Now - At),
    prove(IsFull, CpuMs, Load#load{
        bytes = Bytes, at = Now, last = Rate, rate = smooth(Load#load.last, Rate)
    }).

smooth(none, Value) -> Value;
smooth(Before, Value) -> (Before + Value) div 2.

prove(_, CpuMs, #load{at = Now, bytes = Bytes, since = none} = Load) ->
    Load#load{since = {Now, Bytes, CpuMs()}, looks = 0, full = 0};
prove(
    IsFull, CpuMs, #load{at = Now, bytes = Bytes, since = {Begin, BytesThen, CpuMsThen}} = Load0
) ->
    Load = Load0#load{
        looks = Load0#load.looks + 1,
        full =
            Load0#load.full +
                case IsFull of
                    true -> 1;
                    false -> 0
                end
    },
    case Now - Begin >= ?PROOF_MS of
        true ->
            Cpu = CpuMs(),
            PerCpu =
                case Load#load.full * 3 >= Load#load.looks * 2 of
                    true -> for_each_second(Bytes - BytesThen, CpuMsThen, Cpu);
                    false -> 0
                end,
            Load#load{since = {Now, Bytes, Cpu}, looks = 0, full = 0, per_cpu = PerCpu};
        false ->
            Load
    end.

for_each_second(Bytes, Before, After) when
    is_integer(Before), is_integer(After), After > Before
->
    Bytes * 1000 div (After - Before);
for_each_second(_, _, _) ->
    0.

%% @doc Bytes a second.
-spec rate(load()) -> non_neg_integer().
rate(#load{rate = Rate}) ->
    Rate.

%% @doc Bytes for each second of processor time; 0 while the node is not at its limit, and where it
%% is not known, as on systems without `/proc'.
-spec per_cpu(load()) -> non_neg_integer().
per_cpu(#load{per_cpu = PerCpu}) ->
    PerCpu.

%% @doc When the last look was, in ms.
-spec at(load()) -> integer().
at(#load{at = At}) ->
    At.

%% @doc Milliseconds from one look to the next, on a machine that has time for it.
-spec interval() -> pos_integer().
interval() ->
    ?INTERVAL_MS.

%% statistics(runtime) would do, but tells others who ask the time since anybody did. The fields are
%% those of proc(5), in hundredths.
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
