%% SPDX-License-Identifier: Apache-2.0
-module(kprof_app_tests).
-include("patient.hrl").

-export([sleeper/0]).

%% Each process is asked for each module: between two of them the others have a turn, the longer the
%% more there are.
purging_test_() -> {timeout, 300, fun purging_case/0}.
purging_case() ->
    Modules = [kprof_purged_1, kprof_purged_2, kprof_purged_3],
    lists:foreach(fun deleted/1, Modules),
    Pids = [spawn(?MODULE, sleeper, []) || _ <- lists:seq(1, 5000)],
    {module, timer} = code:ensure_loaded(timer),
    1 = erlang:trace_pattern({timer, sleep, 1}, true, []),
    Purger = spawn(fun purges/0),
    Ref = erlang:monitor(process, Purger),
    1 = erlang:trace(Purger, true, [call]),
    Purger ! {purge, Modules},
    receive
        {'DOWN', Ref, process, Purger, Why} -> ?assertEqual(normal, Why)
    end,
    Delivered = erlang:trace_delivered(all),
    receive
        {trace_delivered, all, Delivered} -> ok
    end,
    1 = erlang:trace_pattern({timer, sleep, 1}, false, []),
    ?assertEqual([], [M || M <- Modules, erlang:check_old_code(M)]),
    Rests = rests(Purger),
    ?assertEqual(length(Modules), length(Rests)),
    ?assert(lists:min(Rests) >= 50, Rests),
    lists:foreach(fun(P) -> exit(P, kill) end, Pids).

purges() ->
    receive
        {purge, Modules} ->
            erl_eval:exprs(kprof_app:purging(), [{'Modules', Modules}, {'Native', 0}])
    end.

rests(Purger) ->
    receive
        {trace, Purger, call, {timer, sleep, [Ms]}} -> [Ms | rests(Purger)]
    after 0 -> []
    end.

deleted(Module) ->
    {ok, Module, Beam} = compile:forms([{attribute, 1, module, Module}]),
    {module, Module} = code:load_binary(Module, atom_to_list(Module), Beam),
    true = code:delete(Module),
    true = erlang:check_old_code(Module).

sleeper() ->
    receive
        never -> ok
    end.
