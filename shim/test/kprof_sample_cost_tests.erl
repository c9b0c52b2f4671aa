%% SPDX-License-Identifier: Apache-2.0
-module(kprof_sample_cost_tests).
-include("patient.hrl").

%% Who is asked does not answer, as it is in native code, or bound to a scheduler that is. A sampler
%% begins all the same, with what is usual.
unanswered_test_() ->
    ?_test(begin
        Stuck = spawn(fun kprof_sampler_tests:in_native_code/0),
        ?assertEqual(112.5, kprof_sample_cost:most_wake(kprof_sample_cost:new([Stuck]))),
        exit(Stuck, kill)
    end).

gone_test_() ->
    ?_test(begin
        {Gone, Ref} = spawn_monitor(fun() -> ok end),
        receive
            {'DOWN', Ref, process, Gone, _} -> ok
        end,
        ?assert(kprof_sample_cost:most_wake(kprof_sample_cost:new([Gone])) > 0)
    end).
