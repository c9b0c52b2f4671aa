%% SPDX-License-Identifier: Apache-2.0
%% @doc Wakes a sampler whose timer does not. A timer belongs to the scheduler that its process ran
%% on, and does not fire while that one is in native code. So two others look after it, each bound
%% to a scheduler of its own.
-module(kprof_sampler_clock).

-export([start_link/0, ticks/3, wakes/2, processes/1]).

-export_type([clock/0]).

-define(LATE_MS, 20).
%% How often they look, in ms: as seldom as the second one, or once in two ticks, when it has been
%% in time for a second or two.
-define(LOOK_MS, 20).
-define(SELDOM_MS, 80).
-define(TICKS, 2).
% what it tells them: when it ticks, and from which tick to which
-define(AT, 1).
-define(TICK, 2).

-opaque clock() :: {[pid()], atomics:atomics_ref()}.

%% @doc The caller gets `kprof_sampler_clock' when it is 20 ms later than it said. Where it has been
%% in time for a second or two, it may be 100 ms, or two ticks.
-spec start_link() -> clock().
start_link() ->
    Told = atomics:new(2, []),
    Sampler = self(),
    ok = ticks(erlang:monotonic_time(millisecond), 0, {[], Told}),
    Schedulers = lists:usort([1, erlang:system_info(schedulers_online)]),
    Look = fun() ->
        _ = seq_trace:set_token([]),
        look(Sampler, Told, ?LOOK_MS)
    end,
    {[spawn_on(N, Look) || N <- Schedulers], Told}.

%% OTP's own tests bind processes so, from OTP 25 to 29. A release that does not know it any more
%% may still have them on two schedulers by chance.
spawn_on(Scheduler, Fun) ->
    Vm = erlang,
    Options = [link, {priority, high}],
    try
        Vm:spawn_opt(Fun, [{scheduler, Scheduler} | Options])
    catch
        error:badarg -> spawn_opt(Fun, Options)
    end.

%% @doc It will tick at that time, in ms, so many after the tick before.
-spec ticks(integer(), non_neg_integer(), clock()) -> ok.
ticks(At, Ms, {_, Told}) ->
    ok = atomics:put(Told, ?TICK, Ms),
    atomics:put(Told, ?AT, At).

%% @doc How often they wake in so many ms, where ticks are that far from each other.
-spec wakes(number(), clock()) -> float().
wakes(Ms, {Pids, Told}) ->
    length(Pids) * Ms / seldom(atomics:get(Told, ?TICK)).

%% @doc The processes.
-spec processes(clock()) -> [pid()].
processes({Pids, _}) ->
    Pids.

look(Sampler, Told, Ms) ->
    receive
    after Ms -> ok
    end,
    case erlang:monotonic_time(millisecond) - atomics:get(Told, ?AT) > ?LATE_MS of
        true ->
            Sampler ! ?MODULE,
            look(Sampler, Told, ?LOOK_MS);
        false ->
            look(Sampler, Told, min(seldom(atomics:get(Told, ?TICK)), Ms + Ms div ?LOOK_MS))
    end.

seldom(TickMs) -> max(?SELDOM_MS, ?TICKS * TickMs).
