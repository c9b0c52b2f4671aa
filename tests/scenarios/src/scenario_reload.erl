%% The application of scenario 12: a module that is loaded again while requests are in it, and one that is loaded late.
-module(scenario_reload).

-export([start/0, trace/1, load/2, requests/2, under_load/1, long/0]).

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
    kprof:start_trace([{tier_config,
                        [{work, {scenario_reloaded, work, 1}}, {late, {scenario_late, work, 1}}, {alpha, {scenario_tiers, alpha, 1}}]},
                       {collector, {"127.0.0.1", Port}}]).

%% Loads a version of a module. Gives after how many milliseconds its function was traced, `loaded' when nothing is traced.
-spec load(module(), pos_integer()) -> {loaded | never | non_neg_integer(), At :: integer()}.
load(Module, Version) ->
    Tier = case Module of scenario_reloaded -> "work"; scenario_late -> "late" end,
    Forms = [begin {ok, Tokens, _} = erl_scan:string(Text), {ok, Form} = erl_parse:parse_form(Tokens), Form end
             || Text <- [lists:concat(["-module(", Module, ")."]), "-export([work/1, version/0]).",
                         "work(F) -> Result = scenario_truth:span(" ++ Tier ++ ", F), {version(), Result}.",
                         lists:concat(["version() -> ", Version, "."])]],
    {ok, Module, Binary} = compile:forms(Forms),
    At = erlang:monotonic_time(nanosecond),
    {module, Module} = code:load_binary(Module, atom_to_list(Module), Binary),
    Version = Module:version(),
    {case lists:member(kprof:status(), [tracing]) of
         true -> armed(Module, At);
         false -> loaded
     end, At}.

armed(Module, At) ->
    Ms = (erlang:monotonic_time(nanosecond) - At) div 1000000,
    case scenario_trace:info({Module, work, 1}, traced) of
        {traced, local} -> Ms;
        _ when Ms > ?ARMED_MS -> never;
        _ -> timer:sleep(5), armed(Module, At)
    end.

%% N requests, one after another, and a second's rest: the shim looks now and then whether something was loaded, and when it finds so,
%% all that went on since it looked before may have lost calls.
-spec requests(atom(), pos_integer()) -> ok.
requests(Identity, N) ->
    {Pid, Ref} = spawn_monitor(fun() -> [request(Identity, Identity =:= late) || _ <- lists:seq(1, N)] end),
    receive {'DOWN', Ref, process, Pid, normal} -> timer:sleep(1000) end.

request(Identity, Late) ->
    scenario_tiers:marked(Identity, fun() ->
        Module = case Late of true -> scenario_late; false -> scenario_reloaded end,
        {_, ok} = Module:work(fun() -> timer:sleep(3), scenario_tiers:alpha(fun() -> timer:sleep(15) end), ok end)
    end).

%% Loads a version while four processes make requests, 300 ms before and 300 ms after it is traced again. Gives after how many
%% milliseconds that was, how many requests were open when it was loaded, and how many there were.
-spec under_load(pos_integer()) -> {never | non_neg_integer(), non_neg_integer(), non_neg_integer()}.
under_load(Version) ->
    ok = scenario_truth:clear(),
    Stop = counters:new(1, []),
    Workers = [spawn_monitor(fun() -> until(Stop) end) || _ <- lists:seq(1, 4)],
    timer:sleep(300),
    {Armed, At} = load(scenario_reloaded, Version),
    timer:sleep(300),
    ok = counters:put(Stop, 1, 1),
    [receive {'DOWN', Ref, process, Pid, normal} -> ok end || {Pid, Ref} <- Workers],
    {Armed, scenario_truth:open_at(At), ets:info(truth_requests, size)}.

until(Stop) ->
    case counters:get(Stop, 1) of
        0 -> request(during, false), until(Stop);
        1 -> ok
    end.

%% Begins a request that is in the module for so long that the second version from now kills its process.
-spec long() -> ok.
long() ->
    _ = spawn(fun() -> scenario_tiers:marked(long, fun() -> scenario_reloaded:work(fun() -> timer:sleep(60000) end) end) end),
    timer:sleep(50).
