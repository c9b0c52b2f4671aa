%% SPDX-License-Identifier: Apache-2.0
%% Calls while nothing begins a request: counted by the VM in looks of ten seconds, and undone.
-module(kprof_unmarked_tests).
-include("patient.hrl").

-export([called/0, counted_by_others/0]).

-define(CALLED, {?MODULE, called, 0}).

called() -> ok.
counted_by_others() -> ok.

call(N) ->
    _ = [?MODULE:called() || _ <- lists:seq(1, N)],
    ok.

%% In the session of this tracer, where the release has such.
counter(Tracer, MFA) -> kprof_vm:info(element(2, Tracer), MFA, call_count).

with_tracer(Test) ->
    {timeout, 300, fun() ->
        {ok, Tracer, Socket} = kprof_tracer:open(port),
        try
            Test(Tracer)
        after
            kprof_tracer:undo(Tracer, []),
            kprof_tracer:close(Tracer, now),
            gen_tcp:close(Socket)
        end
    end}.

looks_test_() ->
    with_tracer(fun(Tracer) ->
        Look = fun(Ms, Begun, U) ->
            kprof_unmarked:look(Ms, Begun, Tracer, [?CALLED, {nowhere, f, 0}], U)
        end,
        U1 = Look(1000, false, kprof_unmarked:new()),
        call(7),
        U2 = Look(10900, false, U1),
        % it may be too early
        ?assertEqual(0, kprof_unmarked:calls(U2)),
        call(3),
        U3 = Look(11000, false, U2),
        ?assertEqual({10, false}, {kprof_unmarked:calls(U3), counter(Tracer, ?CALLED)}),
        ?assertEqual(#{unmarked => 10, unmarked_calls => 10}, kprof_unmarked:fields(U3)),
        U4 = kprof_unmarked:told(U3),
        ?assertEqual(#{unmarked => 10, unmarked_calls => 0}, kprof_unmarked:fields(U4)),
        % between two looks
        call(5),
        U5 = Look(61000, false, Look(60999, false, U4)),
        ?assertEqual(0, counter(Tracer, ?CALLED)),
        call(2),
        U6 = Look(61500, false, U5),
        ?assertEqual(#{unmarked => 12, unmarked_calls => 2}, kprof_unmarked:fields(U6)),
        %% all is undone by others, and set again
        ok = kprof_tracer:count_no_calls(Tracer, [?CALLED]),
        U7 = Look(62000, false, kprof_unmarked:disarmed(U6)),
        call(1),
        ?assertEqual(13, kprof_unmarked:calls(Look(62500, false, U7))),
        %% the first request ends it for good
        U8 = Look(63000, true, U7),
        ?assertEqual({#{unmarked => 0, unmarked_calls => 0}, false}, {
            kprof_unmarked:fields(U8), counter(Tracer, ?CALLED)
        }),
        ?assertEqual(U8, Look(200000, false, kprof_unmarked:disarmed(U8))),
        ?assertEqual(false, counter(Tracer, ?CALLED))
    end).

%% What nobody calls is not told of.
silence_test_() ->
    with_tracer(fun(Tracer) ->
        Look = fun(Ms, U) -> kprof_unmarked:look(Ms, false, Tracer, [?CALLED], U) end,
        ?assertEqual(0, kprof_unmarked:calls(Look(20000, Look(0, kprof_unmarked:new()))))
    end).

%% Before OTP 27 a function has one counter, and somebody else's stays as it is.
beside_others_test_() ->
    with_tracer(fun(Tracer) ->
        Theirs = {?MODULE, counted_by_others, 0},
        1 = erlang:trace_pattern(Theirs, true, [call_count]),
        ?MODULE:counted_by_others(),
        Look = fun(Ms, U) -> kprof_unmarked:look(Ms, false, Tracer, [?CALLED, Theirs], U) end,
        U = Look(0, kprof_unmarked:new()),
        call(4),
        ?assertEqual(4, kprof_unmarked:calls(Look(10000, U))),
        ?assertEqual({call_count, 1}, erlang:trace_info(Theirs, call_count)),
        1 = erlang:trace_pattern(Theirs, false, [call_count])
    end).
