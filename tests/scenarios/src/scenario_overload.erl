%% The sample application under more traced calls than a trace port carries: requests one after the other in some processes, and ten
%% times a second what became of them.
-module(scenario_overload).

-export([start/1, stop/0, untraced/0, worst/2, rates/0, memory/0, trips/0]).

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
        Sample = {erlang:monotonic_time(millisecond), counters:get(Count, 1), resident(), status()},
        watch(Count, Workers, Next + ?SAMPLE_MS, [Sample | Samples])
    end.

%% As the system counts it, KB.
resident() ->
    {ok, Text} = file:read_file("/proc/self/statm"),
    [_, Pages | _] = binary:split(Text, <<" ">>, [global]),
    binary_to_integer(Pages) * 4.

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
    {Before, After} = lists:splitwith(fun({_, _, _, Status}) -> Status =:= not_started orelse Status =:= idle end, samples()),
    {lists:nthtail(?WINDOW, Before), After}.

%% Requests a second while nothing was traced.
-spec untraced() -> non_neg_integer().
untraced() ->
    {Before, _} = parts(),
    rate(hd(Before), lists:last(Before)).

rate({T0, C0, _, _}, {T1, C1, _, _}) ->
    (C1 - C0) * 1000 div max(1, T1 - T0).

%% The lowest rate of any second from `After' ms after the begin of tracing on, for `For' ms.
-spec worst(non_neg_integer(), pos_integer()) -> non_neg_integer().
worst(After, For) ->
    {_, [{T0, _, _, _} | _] = Samples} = parts(),
    Seen = [S || {T, _, _, _} = S <- Samples, T - T0 >= After, T - T0 =< After + For],
    lists:min([rate(A, B) || {A, B} <- lists:zip(lists:sublist(Seen, length(Seen) - ?WINDOW), lists:nthtail(?WINDOW, Seen))]).

%% Requests in each second since tracing began.
-spec rates() -> [non_neg_integer()].
rates() ->
    {_, Samples} = parts(),
    Seconds = [S || {I, S} <- lists:zip(lists:seq(0, length(Samples) - 1), Samples), I rem ?WINDOW =:= 0],
    [rate(A, B) || {A, B} <- lists:zip(lists:droplast(Seconds), tl(Seconds))].

%% MB that the node's memory was over its highest of before.
-spec memory() -> integer().
memory() ->
    {Before, After} = parts(),
    Most = fun(Samples) -> lists:max([M || {_, _, M, _} <- Samples]) end,
    (Most(After) - Most(Before)) div 1024.

%% How often tracing was paused, and for how many ms together, as seen from outside of the shim.
-spec trips() -> {non_neg_integer(), non_neg_integer()}.
trips() ->
    {_, After} = parts(),
    Paused = [{A, B} || {A, B} <- lists:zip(lists:droplast(After), tl(After)), element(4, A) =:= paused],
    Ends = [ok || {_, B} <- Paused, element(4, B) =/= paused],
    {length(Ends), lists:sum([element(1, B) - element(1, A) || {A, B} <- Paused])}.
