%% SPDX-License-Identifier: Apache-2.0
-module(kprof_sample_cost_tests).
-include("patient.hrl").

%% Who is asked does not answer, as it is in native code, or bound to a scheduler that is. A sampler
%% begins all the same, with what is usual.
unanswered_test_() ->
    ?_test(begin
        Unanswered = fun() ->
            % to load it waits for native code
            {module, _} = code:ensure_loaded(kprof_sample_cost),
            Stuck = kprof_sampler_tests:in_native_code(),
            Cost = kprof_sample_cost:new([Stuck]),
            kprof_sampler_tests:killed(Stuck),
            exit({most_wake, kprof_sample_cost:most_wake(Cost)})
        end,
        {_, Ref} = spawn_opt(Unanswered, [monitor, {scheduler, 1}]),
        receive
            {'DOWN', Ref, process, _, Why} -> ?assertEqual({most_wake, 112.5}, Why)
        end
    end).

gone_test_() ->
    ?_test(begin
        {Gone, Ref} = spawn_monitor(fun() -> ok end),
        receive
            {'DOWN', Ref, process, Gone, _} -> ok
        end,
        ?assert(kprof_sample_cost:most_wake(kprof_sample_cost:new([Gone])) > 0)
    end).
