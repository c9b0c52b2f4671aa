%% SPDX-License-Identifier: Apache-2.0
%% The application of scenario 12: a module that is loaded again while requests are in it, and one
%% that is loaded late.
-module(scenario_reload).

-export([
    start/0,
    trace/1,
    trace_entry/1,
    load/2,
    requests/2,
    under_load/1,
    often/2,
    overlapping/1,
    long/0
]).

-define(ARMED_MS, 60000).

-spec start() -> ok.
start() ->
    ok = scenario_truth:start(),
    {loaded, _} = load(scenario_reloaded, 1),
    ok.

%% The second module is not there yet.
-spec trace(inet:port_number()) -> ok | {error, term()}.
trace(Port) ->
    ok = kprof:start(),
    kprof:start_trace([
        {tier_config, [
            {work, {scenario_reloaded, work, 1}},
            {late, {scenario_late, work, 1}},
            {alpha, {scenario_tiers, alpha, 1}}
        ]},
        {collector, {"127.0.0.1", Port}}
    ]).

%% The function that is loaded again is the entry.
-spec trace_entry(inet:port_number()) -> ok | {error, term()}.
trace_entry(Port) ->
    kprof:start_trace([
        {tier_config, [{work, {scenario_reloaded, work, 1}}, {alpha, {scenario_tiers, alpha, 1}}]},
        {entry, {scenario_reloaded, work, 1}},
        {collector, {"127.0.0.1", Port}}
    ]).

%% Loads a version of a module. Gives after how many milliseconds its function was traced, `loaded'
%% when nothing is traced.
-spec load(module(), pos_integer()) -> {loaded | never | non_neg_integer(), At :: integer()}.
load(Module, Version) ->
    Binary = compiled(Module, Version),
    At = now_ns(),
    {module, Module} = code:load_binary(Module, atom_to_list(Module), Binary),
    Version = Module:version(),
    {
        case lists:member(kprof:status(), [tracing]) of
            true -> armed(Module, At);
            false -> loaded
        end,
        At
    }.

compiled(Module, Version) ->
    Tier =
        case Module of
            scenario_reloaded -> "work";
            scenario_late -> "late"
        end,
    Forms = [
        begin
            {ok, Tokens, _} = erl_scan:string(Text),
            {ok, Form} = erl_parse:parse_form(Tokens),
            Form
        end
     || Text <- [
            lists:concat(["-module(", Module, ")."]),
            "-export([work/1, version/0]).",
            "work(F) -> Result = scenario_truth:span(" ++ Tier ++ ", F), {version(), Result}.",
            lists:concat(["version() -> ", Version, "."])
        ]
    ],
    {ok, Module, Binary} = compile:forms(Forms),
    Binary.

armed(Module, At) ->
    Ms = (now_ns() - At) div 1000000,
    case scenario_trace:info({Module, work, 1}, traced) of
        {traced, local} ->
            Ms;
        _ when Ms > ?ARMED_MS -> never;
        _ ->
            timer:sleep(5),
            armed(Module, At)
    end.

%% N requests, one after another, and a second's rest: the shim looks now and then whether something
%% was loaded, and when it finds so, all that went on since it looked before may have lost calls.
-spec requests(atom(), pos_integer()) -> ok.
requests(Identity, N) ->
    {Pid, Ref} = spawn_monitor(fun() ->
        [request(Identity, Identity =:= late) || _ <- lists:seq(1, N)]
    end),
    receive
        {'DOWN', Ref, process, Pid, normal} -> timer:sleep(1000)
    end.

request(Identity, Late) ->
    scenario_tiers:marked(Identity, fun() ->
        Module =
            case Late of
                true -> scenario_late;
                false -> scenario_reloaded
            end,
        {_, ok} = Module:work(fun() ->
            timer:sleep(3),
            scenario_tiers:alpha(fun() -> timer:sleep(15) end),
            ok
        end)
    end).

%% Loads a version while four processes make requests, 300 ms before and 300 ms after it is traced
%% again. Gives after how many milliseconds that was, how many requests were open when it was
%% loaded, and how many there were.
-spec under_load(pos_integer()) ->
    {never | non_neg_integer(), non_neg_integer(), non_neg_integer()}.
under_load(Version) ->
    ok = scenario_truth:clear(),
    Stop = counters:new(1, []),
    Workers = [spawn_monitor(fun() -> until(Stop) end) || _ <- lists:seq(1, 4)],
    timer:sleep(300),
    {Armed, At} = load(scenario_reloaded, Version),
    timer:sleep(300),
    ok = counters:put(Stop, 1, 1),
    [
        receive
            {'DOWN', Ref, process, Pid, normal} -> ok
        end
     || {Pid, Ref} <- Workers
    ],
    {Armed, scenario_truth:open_at(At), ets:info(truth_requests, size)}.

until(Stop) ->
    case counters:get(Stop, 1) of
        0 ->
            request(during, false),
            until(Stop);
        1 ->
            ok
    end.

%% Four processes make requests of the entry while versions from this one on are loaded, one every
%% 1.2 s. Gives how many requests were open when their module was loaded, how many began after that
%% and before it was traced again, for how many ms at least it was not, and how many requests there
%% were. All times are kept for overlapping/1.
-spec often(pos_integer(), pos_integer()) ->
    {non_neg_integer(), non_neg_integer(), non_neg_integer(), non_neg_integer()}.
often(First, Loads) ->
    Stop = counters:new(1, []),
    Workers = [
        spawn_monitor(fun() -> exit({times, until_stopped(Stop, [])}) end)
     || _ <- lists:seq(1, 4)
    ],
    Gaps = [
        begin
            timer:sleep(1200),
            gap(Version)
        end
     || Version <- lists:seq(First, First + Loads - 1)
    ],
    timer:sleep(1200),
    ok = counters:put(Stop, 1, 1),
    Requests = lists:append([
        receive
            {'DOWN', Ref, process, Pid, {times, Times}} -> Times
        end
     || {Pid, Ref} <- Workers
    ]),
    ok = persistent_term:put(?MODULE, {Requests, Gaps}),
    {
        length([R || {Begin, End} = R <- Requests, {Load, _, _} <- Gaps, Begin < Load, End > Load]),
        length([
            R
         || {Begin, _} = R <- Requests, {Load, _, Armed} <- Gaps, Begin >= Load, Begin =< Armed
        ]),
        lists:sum([Off || {_, Off, _} <- Gaps]) div 1000000,
        length(Requests)
    }.

until_stopped(Stop, Times) ->
    case counters:get(Stop, 1) of
        0 ->
            Begin = now_ns(),
            {_, ok} = scenario_reloaded:work(fun() ->
                timer:sleep(3),
                scenario_tiers:alpha(fun() -> timer:sleep(15) end),
                ok
            end),
            until_stopped(Stop, [{Begin, now_ns()} | Times]);
        1 ->
            Times
    end.

%% Loads a version. Gives when, for how long its function was seen at least that it was not traced
%% (the old one may have been while the new one was loaded), and when it was again.
gap(Version) ->
    Binary = compiled(scenario_reloaded, Version),
    Load = now_ns(),
    {module, scenario_reloaded} = code:load_binary(scenario_reloaded, "scenario_reloaded", Binary),
    Loaded = now_ns(),
    gap(Load, Loaded, Loaded).

gap(Load, Loaded, Off) ->
    Now = now_ns(),
    case scenario_trace:info({scenario_reloaded, work, 1}, traced) of
        {traced, local} ->
            {Load, Off - Loaded, now_ns()};
        {traced, false} when Now - Load < ?ARMED_MS * 1000000 ->
            timer:sleep(1),
            gap(Load, Loaded, Now)
    end.

%% How many of those requests were open in that many ms before the module was traced again.
-spec overlapping(non_neg_integer()) -> non_neg_integer().
overlapping(Ms) ->
    {Requests, Gaps} = persistent_term:get(?MODULE),
    length([
        R
     || {Begin, End} = R <- Requests,
        lists:any(
            fun({_, _, Armed}) -> Begin =< Armed andalso End >= Armed - Ms * 1000000 end, Gaps
        )
    ]).

now_ns() -> erlang:monotonic_time(nanosecond).

%% Begins a request that is in the module for so long that the second version from now kills its
%% process.
-spec long() -> ok.
long() ->
    _ = spawn(fun() ->
        scenario_tiers:marked(long, fun() ->
            scenario_reloaded:work(fun() -> timer:sleep(60000) end)
        end)
    end),
    timer:sleep(50).
