%% SPDX-License-Identifier: Apache-2.0
%% The guard's word of patterns that were taken off: from when until when calls may not have been
%% traced.
-module(kprof_guard_tests).
-include("patient.hrl").

-define(RELOADED, kprof_guard_reloaded).

%% A module with f/0, loaded, or loaded again: that takes its patterns off.
load() ->
    {ok, ?RELOADED, Beam} = compile:forms([
        {attribute, 1, module, ?RELOADED},
        {attribute, 1, export, [{f, 0}]},
        {function, 1, f, 0, [{clause, 1, [], [], [{atom, 1, ok}]}]}
    ]),
    _ = code:purge(?RELOADED),
    {module, ?RELOADED} = code:load_binary(?RELOADED, "nowhere", Beam),
    ok.

guarded(Test) ->
    kprof_guard = ets:new(kprof_guard, [named_table, public]),
    {ok, Guard} = kprof_guard:start_link(),
    {ok, Tracer, Socket} = kprof_tracer:open(port),
    ok = load(),
    Pattern = {{?RELOADED, f, 0}, [{'_', [], []}]},
    ok = kprof_guard:arm(Tracer, [Pattern], busy),
    ok = kprof_tracer:set_patterns(Tracer, [Pattern]),
    ok = kprof_guard:is_set(Tracer),
    try
        Test(Tracer, Pattern, Socket)
    after
        ok = kprof_guard:disarm(),
        kprof_tracer:close(Tracer, now),
        gen_tcp:close(Socket),
        ok = gen_server:stop(Guard),
        true = ets:delete(kprof_guard)
    end.

%% Reloads, and has the guard look from then on. It was seen last before the reload was over, and is
%% there again after it has begun.
told(Tracer, Pattern, Look) ->
    Before = erlang:monotonic_time(),
    ok = load(),
    After = erlang:monotonic_time(),
    % some looks
    timer:sleep(50),
    Look(),
    receive
        {kprof_guard, {reset, From, Until, MFAs}} ->
            ?assertEqual([{?RELOADED, f, 0}], MFAs),
            ?assert(From =< After),
            ?assert(Until >= Before)
    after 60000 -> error(not_told)
    end,
    ?assertEqual([], kprof_tracer:missing(Tracer, [Pattern])).

reload_test_() -> {timeout, 300, fun reload_case/0}.
reload_case() ->
    guarded(fun(Tracer, Pattern, _) -> told(Tracer, Pattern, fun() -> ok end) end).

%% While their owner sets others nothing is looked at; what a reload takes off then was so since the
%% look before, not since all were set.
reload_while_others_are_set_test_() -> {timeout, 300, fun reload_while_others_are_set_case/0}.
reload_while_others_are_set_case() ->
    guarded(fun(Tracer, Pattern, _) ->
        timer:sleep(50),
        ok = kprof_guard:update([Pattern, {{lists, seq, 2}, [{'_', [], []}]}]),
        told(Tracer, Pattern, fun() ->
            ?assertEqual([Pattern], kprof_tracer:missing(Tracer, [Pattern])),
            ok = kprof_tracer:set_patterns(Tracer, [{{lists, seq, 2}, [{'_', [], []}]}]),
            ok = kprof_guard:is_set(Tracer)
        end)
    end).

%% Each question to the port wakes the relay and the collector: hardly any are put where next to
%% nothing is traced, until that changes. A machine that has no time for the guard puts off most of
%% the others, too: then it is tried again.
pace_test_() ->
    {timeout, 300, fun() -> guarded(fun pace/3) end}.

pace(_, Pattern, Socket) ->
    ?assertEqual(differs, pace(10, Pattern, Socket, [])).

pace(0, _, _, Tries) ->
    {asked, Tries};
pace(Left, Pattern, Socket, Tries) ->
    Before = asked(Socket),
    ok = kprof_guard:update([Pattern], calm),
    Calm = asked(Socket),
    ok = kprof_guard:update([Pattern], busy),
    After = asked(Socket),
    case is_busy(Before) andalso is_calm(Calm) andalso is_busy(After) of
        true -> differs;
        false -> pace(Left - 1, Pattern, Socket, [{Before, Calm, After} | Tries])
    end.

%% A calm guard asks every half second, a busy one as often as this process wakes up.
is_busy({Times, Woke, Ms}) -> 3 * Times > Woke andalso Times > Ms div 500 + 1.
is_calm({Times, _, Ms}) -> Times > 0 andalso Times =< Ms div 500 + 1.

%% How often in some two seconds; how often a process beside it that wakes up every 10 ms, as the
%% guard does, woke up meanwhile; and how many ms that were. Each question is a frame without a
%% message. All of this takes longer than the collector may be silent.
asked(Socket) ->
    ok = kprof_guard:heard(),
    _ = read(Socket, 0),
    Begin = erlang:monotonic_time(millisecond),
    Woke = wake(Begin + 2000, 0),
    Bytes = read(Socket, 0),
    {Bytes div 5, Woke, erlang:monotonic_time(millisecond) - Begin}.

wake(Until, Woke) ->
    timer:sleep(10),
    case erlang:monotonic_time(millisecond) < Until of
        true -> wake(Until, Woke + 1);
        false -> Woke + 1
    end.

read(Socket, Before) ->
    case gen_tcp:recv(Socket, 0, 0) of
        {ok, Bytes} -> read(Socket, Before + byte_size(Bytes));
        {error, timeout} -> Before
    end.
