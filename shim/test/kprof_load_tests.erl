-module(kprof_load_tests).
-include_lib("eunit/include/eunit.hrl").

%% 50 kB in each twentieth of a second are 1 MB a second, which the first look tells; then silence.
rate_test() ->
    Rates = rates(kprof_load:begin_at(1000, kprof_load:new()), 1000, [50000, 50000, 50000, 0, 0, 0]),
    ?assertEqual([1000000, 1000000, 1000000, 500000, 0, 0], Rates).

%% What a begun trace brings late, or what comes later on, is known at the second look; what single requests bring is half of it.
late_test() ->
    ?assertEqual([200000, 600000, 1000000], rates(kprof_load:begin_at(0, kprof_load:new()), 0, [10000, 50000, 50000])),
    ?assertEqual([0, 500000, 500000, 0], rates(kprof_load:begin_at(0, kprof_load:new()), 0, [0, 50000, 0, 0])).

rates(_, _, []) ->
    [];
rates(Load0, Before, [Bytes | More]) ->
    Now = Before + kprof_load:interval(),
    counters:add(kprof_load:counter(Load0), 1, Bytes),
    Load = kprof_load:look(Now, Load0),
    [kprof_load:rate(Load) | rates(Load, Now, More)].

%% The same with a quarter of a processor are 4 MB for each second of it, once two looks have seen it and while processes wait; a node with
%% time left is not at its limit.
per_cpu_test() ->
    [0, 0, 0 | PerCpu] = per_cpu(4000, lists:seq(1, 9)),
    ?assert(lists:all(fun(P) -> P > 3400000 andalso P < 4300000 end, PerCpu)),
    ?assertEqual([0], lists:usort(per_cpu(900, lists:seq(1, 9)))).

%% Its processor time is not known while nothing waits.
per_cpu(Waiting, Looks) ->
    Begun = kprof_load:begin_at(0, kprof_load:new()),
    {Seen, _} = lists:mapfoldl(fun(I, Load) ->
                                       counters:add(kprof_load:counter(Load), 1, 50000),
                                       Next = case I > 2 of
                                                  true -> kprof_load:look(50 * I, 7000 + 25 * I div 2, Waiting, Load);
                                                  false -> kprof_load:look(50 * I, unknown, 0, Load)
                                              end,
                                       {kprof_load:per_cpu(Next), Next}
                               end, Begun, Looks),
    Seen.

%% What came before tracing began is none of it, and two looks at once are one.
begin_test() ->
    Load = kprof_load:new(),
    counters:add(kprof_load:counter(Load), 1, 1000000),
    Begun = kprof_load:begin_at(5000, Load),
    ?assertEqual(0, kprof_load:rate(kprof_load:look(5050, Begun))),
    counters:add(kprof_load:counter(Load), 1, 1000),
    Look = kprof_load:look(5050, Begun),
    ?assertEqual(20000, kprof_load:rate(Look)),
    ?assertEqual(Look, kprof_load:look(5060, Look)).
