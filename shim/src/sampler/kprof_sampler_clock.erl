%% SPDX-License-Identifier: Apache-2.0
%% @doc Wakes a sampler whose timer does not. A timer belongs to the scheduler that its process ran
%% on, and does not fire while that one is in native code. So two others look after it, each bound
%% to a scheduler of its own.
-module(kprof_sampler_clock).

-export([start_link/1, ticked/2, processes/1]).

-export_type([clock/0]).

-define(LOOK_MS, 20).

-opaque clock() :: {[pid()], atomics:atomics_ref()}.

%% @doc The caller gets `kprof_sampler_clock' when it has been silent for 20 ms longer than `Ms'.
-spec start_link(pos_integer()) -> clock().
start_link(Ms) ->
    Ticked = atomics:new(1, []),
    Sampler = self(),
    ok = ticked(erlang:monotonic_time(millisecond), {[], Ticked}),
    Schedulers = lists:usort([1, erlang:system_info(schedulers_online)]),
    Look = fun() ->
        _ = seq_trace:set_token([]),
        look(Sampler, Ms, Ticked)
    end,
    {[spawn_on(N, Look) || N <- Schedulers], Ticked}.

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

%% @doc It has ticked, in ms.
-spec ticked(integer(), clock()) -> ok.
ticked(Now, {_, Ticked}) ->
    atomics:put(Ticked, 1, Now).

%% @doc The processes.
-spec processes(clock()) -> [pid()].
processes({Pids, _}) ->
    Pids.

look(Sampler, Ms, Ticked) ->
    receive
    after ?LOOK_MS -> ok
    end,
    Late = erlang:monotonic_time(millisecond) - atomics:get(Ticked, 1),
    _ = Late > Ms + ?LOOK_MS andalso (Sampler ! ?MODULE),
    look(Sampler, Ms, Ticked).
