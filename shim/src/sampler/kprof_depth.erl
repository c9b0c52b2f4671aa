%% SPDX-License-Identifier: Apache-2.0
%% @doc How deep the stacks are that `current_stacktrace' gives is one number for the whole node,
%% which also lengthens the traces of exceptions. While stacks are sampled it is at its most. A
%% process of its own puts the old one back as soon as one of those ends that it works for, whatever
%% ends them.
-module(kprof_depth).

-export([deepen/1, restore/1]).

% the VM takes no more
-define(DEPTH, 64).
-define(PATIENCE_MS, 5000).

%% @doc Deepens stacks until {@link restore/1}, or until one of these processes ends. The caller
%% should monitor the process that it gets, which is there for that: without it nothing is put back.
-spec deepen([pid()]) -> pid().
deepen(Pids) ->
    Caller = self(),
    {Keeper, Ref} = spawn_opt(
        fun() ->
            _ = seq_trace:set_token([]),
            %% stopping an application kills every process that has its group leader
            true = group_leader(whereis(init), self()),
            _ = [erlang:monitor(process, Pid) || Pid <- Pids],
            keep(Caller, erlang:system_flag(backtrace_depth, ?DEPTH))
        end,
        [monitor, {priority, high}]
    ),
    receive
        {?MODULE, Keeper} -> _ = erlang:demonitor(Ref, [flush]);
        {'DOWN', Ref, process, _, Why} -> exit(Why)
    end,
    Keeper.

%% @doc Puts the old depth back. Returns when that is done.
-spec restore(pid()) -> ok.
restore(Keeper) ->
    Ref = erlang:monitor(process, Keeper),
    Keeper ! restore,
    receive
        {'DOWN', Ref, process, _, _} -> ok
    after ?PATIENCE_MS ->
        _ = erlang:demonitor(Ref, [flush]),
        ok
    end.

keep(Caller, Before) ->
    Caller ! {?MODULE, self()},
    receive
        restore -> ok;
        {'DOWN', _, process, _, _} -> ok
    end,
    case erlang:system_flag(backtrace_depth, Before) of
        ?DEPTH -> ok;
        % somebody else has set it meanwhile
        Theirs -> erlang:system_flag(backtrace_depth, Theirs)
    end.
