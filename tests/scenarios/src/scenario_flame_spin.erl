%% SPDX-License-Identifier: Apache-2.0
%% Runs for so long, and remembers for how long it was: of scenario_flame, in a module without
%% patterns.
-module(scenario_flame_spin).

-export([start/0, requests/2, spin/2, sleep/2, truth/0, forget/0]).

%% The table lives as long as the node.
start() ->
    Self = self(),
    spawn(fun() ->
        ?MODULE = ets:new(?MODULE, [named_table, public]),
        Self ! made,
        timer:sleep(infinity)
    end),
    receive
        made -> ok
    end.

%% Makes requests one behind the other.
requests(Handle, N) ->
    lists:foreach(
        fun(_) ->
            Begin = erlang:monotonic_time(),
            ok = Handle(create),
            count(request, erlang:monotonic_time() - Begin)
        end,
        lists:seq(1, N)
    ).

%% The caller's own time.
spin(Who, Ms) ->
    Begin = erlang:monotonic_time(),
    until(Begin + erlang:convert_time_unit(Ms, millisecond, native)),
    count(Who, erlang:monotonic_time() - Begin).

%% In which it is kept from running, on its own account likewise.
sleep(Who, Ms) ->
    Begin = erlang:monotonic_time(),
    timer:sleep(Ms),
    count(Who, erlang:monotonic_time() - Begin).

until(End) ->
    case erlang:monotonic_time() >= End of
        true -> ok;
        false -> until(End)
    end.

count(What, Time) ->
    _ = ets:update_counter(?MODULE, What, Time, {What, 0}),
    ok.

%% Microseconds by name.
truth() ->
    [{F, erlang:convert_time_unit(T, native, microsecond)} || {F, T} <- ets:tab2list(?MODULE)].

forget() ->
    true = ets:delete_all_objects(?MODULE),
    ok.
