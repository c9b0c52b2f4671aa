%% SPDX-License-Identifier: Apache-2.0
%% @doc What the processes share that hand on what the collector sends back: how they are ended, and
%% names as atoms.
-module(kprof_outlet).

-export([stop/2, named/2]).

%% @doc Ends such a process, after what it has been given; waits so many milliseconds at most.
-spec stop(pid(), pos_integer()) -> ok.
stop(Pid, Ms) ->
    Ref = erlang:monitor(process, Pid),
    _ = unlink(Pid),
    Pid ! stop,
    receive
        {'DOWN', Ref, process, Pid, _} -> ok
    after Ms ->
        exit(Pid, kill),
        _ = erlang:demonitor(Ref, [flush]),
        ok
    end.

%% @doc A map as it came, with atoms for these names.
-spec named(#{binary() => term()}, [atom()]) -> #{atom() | binary() => term()}.
named(Map, Names) ->
    lists:foldl(
        fun(Name, Acc) ->
            Key = atom_to_binary(Name, utf8),
            case maps:take(Key, Acc) of
                {Value, Rest} -> Rest#{Name => Value};
                error -> Acc
            end
        end,
        Map,
        Names
    ).
