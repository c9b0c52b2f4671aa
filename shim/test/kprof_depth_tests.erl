%% SPDX-License-Identifier: Apache-2.0
%% How deep stacks are is put back, whoever ends and however.
-module(kprof_depth_tests).
-include("patient.hrl").

depth_test_() ->
    [
        {Name, {timeout, 300, fun() -> put_back(End) end}}
     || {Name, End} <- [
            {"restored", fun(Depth, _) -> kprof_depth:restore(Depth) end},
            {"one of those is killed", fun(_, Pid) -> exit(Pid, kill) end},
            {"one of those ends", fun(_, Pid) -> Pid ! stop end},
            {"the keeper is killed", fun(Depth, _) ->
                exit(kprof_depth:keeper(Depth), kill),
                kprof_depth:keeper_gone(Depth)
            end}
        ]
    ].

put_back(End) ->
    8 = erlang:system_flag(backtrace_depth, 11),
    Pid = spawn(fun() ->
        receive
            stop -> ok
        end
    end),
    Depth = kprof_depth:deepen([self(), Pid]),
    Ref = erlang:monitor(process, kprof_depth:keeper(Depth)),
    ?assertEqual(64, set(64)),
    _ = End(Depth, Pid),
    receive
        {'DOWN', Ref, _, _, _} -> ok
    end,
    ?assertEqual(11, set(8)),
    Pid ! stop.

%% What somebody else has set meanwhile stays.
theirs_test_() -> {timeout, 300, fun theirs_case/0}.
theirs_case() ->
    Depth = kprof_depth:deepen([self()]),
    64 = set(20),
    ok = kprof_depth:restore(Depth),
    ?assertEqual(20, set(8)).

set(Depth) ->
    erlang:system_flag(backtrace_depth, Depth).
