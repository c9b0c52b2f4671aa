%% SPDX-License-Identifier: Apache-2.0
%% A node that is idle, busy and too busy, at times that it tells.
-module(scenario_heat).

-export([start/0, phases/1, works/0, sleeps/0]).

start() ->
    true = register(scenario_heat_works, spawn(fun works/0)),
    true = register(scenario_heat_sleeps, spawn(fun sleeps/0)),
    ok.

%% Writes a line for each phase: its name, and when it began and ended, in ms since 1970. Too busy
%% is a node whose schedulers all run processes that go before all others.
phases(File) ->
    Phases = [
        phase(idle, fun() -> timer:sleep(1500) end),
        phase(busy, fun() -> done(scenario_heat_works, 2000) end),
        phase(idle, fun() -> timer:sleep(1000) end),
        phase(too_busy, fun() -> too_busy(1500) end),
        phase(idle, fun() -> timer:sleep(1500) end)
    ],
    file:write_file(File, [
        io_lib:format("~s ~b ~b~n", [Name, Begin, End])
     || {Name, Begin, End} <- Phases
    ]).

phase(Name, Fun) ->
    Begin = erlang:system_time(millisecond),
    Fun(),
    {Name, Begin, erlang:system_time(millisecond)}.

done(Process, Ms) ->
    Process ! {self(), Ms},
    receive
        {Process, over} -> ok
    end.

works() ->
    receive
        {From, Ms} ->
            spin(erlang:monotonic_time(millisecond) + Ms),
            From ! {scenario_heat_works, over}
    end,
    works().

spin(Until) ->
    case erlang:monotonic_time(millisecond) < Until of
        true -> spin(Until);
        false -> ok
    end.

too_busy(Ms) ->
    Until = erlang:monotonic_time(millisecond) + Ms,
    Refs = [
        element(2, spawn_opt(fun() -> spin(Until) end, [monitor, {priority, max}]))
     || _ <- lists:seq(1, 2 * erlang:system_info(schedulers_online))
    ],
    [
        receive
            {'DOWN', Ref, process, _, normal} -> ok
        end
     || Ref <- Refs
    ],
    ok.

sleeps() ->
    receive
        never -> ok
    end.
