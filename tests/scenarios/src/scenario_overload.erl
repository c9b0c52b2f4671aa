%% The sample application under more traced calls than a trace port carries: requests one after the other in some processes, and ten
%% times a second what became of them.
-module(scenario_overload).

-export([start/1, stop/0, untraced/1, worst/3, rates/1, memory/0]).

-type clock() :: wall | cpu.
%% What a second is: of the clock, or of processor time that the node had. The latter is fair where others use the machine, too.

-define(SAMPLE_MS, 100).
-define(WINDOW, 10).        % samples that a rate is taken over: a second

%% Begins N processes that make requests of the shop without end, and the one that watches.
-spec start(pos_integer()) -> ok.
start(N) ->
    Count = counters:new(1, [write_concurrency]),
    Workers = [spawn(fun() -> work(Count, I) end) || I <- lists:seq(1, N)],
    Self = self(),
    true = register(?MODULE, spawn(fun() ->
                                           _ = process_flag(priority, high),
                                           Self ! watching,
                                           watch(Count, Workers, erlang:monotonic_time(millisecond), [])
                                   end)),
    receive watching -> ok end.

work(Count, I) ->
    {200, _} = shop_trace:request(shop_http, handle_request, [read, #{id => 1 + I rem 50}]),
    counters:add(Count, 1, 1),
    work(Count, I + 1).

watch(Count, Workers, Next, Samples) ->
    receive
        {samples, From} ->
            From ! {samples, lists:reverse(Samples)},
            watch(Count, Workers, Next, Samples);
        stop ->
            lists:foreach(fun(Pid) -> exit(Pid, kill) end, Workers)
    after max(0, Next - erlang:monotonic_time(millisecond)) ->
        Sample = {erlang:monotonic_time(millisecond), counters:get(Count, 1), resident(), status(), processor()},
        watch(Count, Workers, Next + ?SAMPLE_MS, [Sample | Samples])
    end.

%% As the system counts it, KB.
resident() ->
    {ok, Text} = file:read_file("/proc/self/statm"),
    [_, Pages | _] = binary:split(Text, <<" ">>, [global]),
    binary_to_integer(Pages) * 4.

%% Milliseconds of processor time that the node has had.
processor() ->
    {ok, Text} = file:read_file("/proc/self/stat"),
    [_, Rest] = binary:split(Text, <<") ">>),
    Fields = binary:split(Rest, <<" ">>, [global]),
    10 * (binary_to_integer(lists:nth(12, Fields)) + binary_to_integer(lists:nth(13, Fields))).

status() ->
    case whereis(kprof_session) of    % there once all modules are loaded
        undefined -> not_started;
        _ -> kprof:status()
    end.

-spec stop() -> ok.
stop() ->
    ?MODULE ! stop,
    ok.

samples() ->
    ?MODULE ! {samples, self()},
    receive {samples, Samples} -> Samples after 5000 -> error(timeout) end.

%% Before tracing began, without the first second, and from then on.
parts() ->
    {Before, After} = lists:splitwith(fun({_, _, _, Status, _}) -> Status =:= not_started orelse Status =:= idle end, samples()),
    {lists:nthtail(?WINDOW, Before), After}.

%% Requests a second while nothing was traced.
-spec untraced(clock()) -> non_neg_integer().
untraced(Clock) ->
    {Before, _} = parts(),
    rate(Clock, hd(Before), lists:last(Before)).

rate(wall, {T0, C0, _, _, _}, {T1, C1, _, _, _}) -> (C1 - C0) * 1000 div max(1, T1 - T0);
rate(cpu, {_, C0, _, _, P0}, {_, C1, _, _, P1}) -> (C1 - C0) * 1000 div max(1, P1 - P0).

%% The lowest rate of any second from `After' ms after the begin of tracing on, for `For' ms.
-spec worst(clock(), non_neg_integer(), pos_integer()) -> non_neg_integer().
worst(Clock, After, For) ->
    {_, [{T0, _, _, _, _} | _] = Samples} = parts(),
    Seen = [S || {T, _, _, _, _} = S <- Samples, T - T0 >= After, T - T0 =< After + For],
    lists:min([rate(Clock, A, B) || {A, B} <- lists:zip(lists:sublist(Seen, length(Seen) - ?WINDOW), lists:nthtail(?WINDOW, Seen))]).

%% Requests in each second since tracing began.
-spec rates(clock()) -> [non_neg_integer()].
rates(Clock) ->
    {_, Samples} = parts(),
    Seconds = [S || {I, S} <- lists:zip(lists:seq(0, length(Samples) - 1), Samples), I rem ?WINDOW =:= 0],
    [rate(Clock, A, B) || {A, B} <- lists:zip(lists:droplast(Seconds), tl(Seconds))].

%% MB that the node's memory was over its highest of before.
-spec memory() -> integer().
memory() ->
    {Before, After} = parts(),
    Most = fun(Samples) -> lists:max([M || {_, _, M, _, _} <- Samples]) end,
    (Most(After) - Most(Before)) div 1024.
