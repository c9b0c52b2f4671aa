%% SPDX-License-Identifier: Apache-2.0
-module(kprof_slow_tests).
-include("patient.hrl").

message(N) ->
    #{
        <<"type">> => <<"slow">>,
        <<"identity">> => <<"r", (integer_to_binary(N))/binary>>,
        <<"spans">> => [
            #{
                <<"tier">> => <<"db">>,
                <<"depth">> => 0,
                <<"pid">> => <<"<0.9.0>">>,
                <<"start_us">> => 1.0,
                <<"duration_us">> => 7.0,
                <<"self_us">> => 2.0,
                <<"wait_us">> => 0.5,
                <<"async">> => false,
                <<"outcome">> => <<"error">>,
                <<"new">> => 1
            },
            17
        ]
    }.

quietly(Fun) ->
    Level = maps:get(level, logger:get_primary_config()),
    logger:set_primary_config(level, none),
    try
        Fun()
    after
        logger:set_primary_config(level, Level)
    end.

calls(Pid, Numbers) -> lists:foreach(fun(N) -> kprof_slow:slow(Pid, message(N)) end, Numbers).

spans_test_() -> {timeout, 300, fun spans_case/0}.
spans_case() ->
    Self = self(),
    Pid = kprof_slow:start_link(fun(Spans, Identity) -> Self ! {self(), Identity, Spans} end),
    calls(Pid, [1]),
    receive
        {Caller, <<"r1">>, Spans} ->
            ?assert(Caller =/= Pid andalso Caller =/= Self),
            ?assertEqual(
                [
                    #{
                        tier => <<"db">>,
                        depth => 0,
                        pid => <<"<0.9.0>">>,
                        start_us => 1.0,
                        duration_us => 7.0,
                        self_us => 2.0,
                        wait_us => 0.5,
                        async => false,
                        outcome => error,
                        <<"new">> => 1
                    }
                ],
                Spans
            )
    after 60000 -> error(nothing)
    end,
    kprof_slow:stop(Pid).

%% Whatever comes as a message is no spans at worst.
nonsense_test_() ->
    [
        ?_assertEqual([], kprof_slow:spans(M))
     || M <- [#{}, #{<<"spans">> => 17}, #{<<"spans">> => [1, nil]}]
    ].

%% One at a time, in order, 20 waiting, the rest thrown away.
bounded_test_() -> {timeout, 300, fun bounded_case/0}.
bounded_case() ->
    Self = self(),
    Pid = kprof_slow:start_link(fun(_, Identity) ->
        Self ! {Identity, self()},
        receive
            go -> ok
        end
    end),
    calls(Pid, lists:seq(1, 50)),
    %% so many, and what comes within a moment behind them; what comes later than that is among the
    %% next
    Seen = fun Seen(Left, Acc) ->
        receive
            {<<"r", _/binary>> = Identity, Caller} ->
                timer:sleep(5),
                Caller ! go,
                Seen(Left - 1, [Identity | Acc])
        after if
            Left > 0 -> 60000;
            true -> 300
        end -> lists:reverse(Acc)
        end
    end,
    ?assertEqual([<<"r", (integer_to_binary(N))/binary>> || N <- lists:seq(1, 21)], Seen(21, [])),
    calls(Pid, [51]),
    ?assertEqual([<<"r51">>], Seen(1, [])),
    kprof_slow:stop(Pid).

%% A callback that crashes, hangs or eats memory harms nobody, and the next one is called.
failing_test_() ->
    {timeout, 300,
        ?_test(
            quietly(fun() ->
                Self = self(),
                Hungry = fun Hungry(L) -> Hungry([L | L]) end,
                Pid = kprof_slow:start_link(fun
                    (_, <<"r1">>) ->
                        error(oops);
                    (_, <<"r2">>) ->
                        receive
                            never -> ok
                        end;
                    (_, <<"r3">>) ->
                        Hungry([]);
                    (_, Identity) ->
                        Self ! Identity
                end),
                calls(Pid, [1, 2, 3, 4]),
                receive
                    <<"r4">> -> ok
                after 60000 -> error(nothing)
                end,
                kprof_slow:stop(Pid)
            end)
        )}.

stop_test_() -> {timeout, 300, fun stop_case/0}.
stop_case() ->
    Self = self(),
    Pid = kprof_slow:start_link(fun(_, _) ->
        Self ! self(),
        receive
            never -> ok
        end
    end),
    calls(Pid, [1, 2]),
    Caller =
        receive
            P when is_pid(P) -> P
        after 60000 -> error(nothing)
        end,
    Ref = erlang:monitor(process, Caller),
    kprof_slow:stop(Pid),
    receive
        {'DOWN', Ref, process, _, killed} -> ok
    after 60000 -> error(lives)
    end,
    ?assertEqual(false, is_process_alive(Pid)).

%% It goes when its owner goes, and takes the call with it.
owner_test_() -> {timeout, 300, fun owner_case/0}.
owner_case() ->
    Self = self(),
    Owner = spawn(fun() ->
        Self !
            {pid,
                kprof_slow:start_link(fun(_, _) ->
                    Self ! {caller, self()},
                    receive
                        never -> ok
                    end
                end)},
        receive
            never -> ok
        end
    end),
    Pid =
        receive
            {pid, P} -> P
        end,
    calls(Pid, [1]),
    Caller =
        receive
            {caller, C} -> C
        after 60000 -> error(nothing)
        end,
    Refs = [erlang:monitor(process, X) || X <- [Pid, Caller]],
    exit(Owner, kill),
    [
        receive
            {'DOWN', Ref, process, _, _} -> ok
        after 60000 -> error(lives)
        end
     || Ref <- Refs
    ].
