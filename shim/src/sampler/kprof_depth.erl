%% SPDX-License-Identifier: Apache-2.0
%% @doc How deep the stacks are that `current_stacktrace' gives is one number for the whole node,
%% which also lengthens the traces of exceptions. While stacks are sampled it is at its most. A
%% process of its own puts the old one back as soon as one of those ends that it works for, whatever
%% ends them.
-module(kprof_depth).

-export([current/0, deepen/1, keeper/1, restore/1, keeper_gone/1]).

-export_type([depth/0]).

% the VM takes no more
-define(DEPTH, 64).
-define(PATIENCE_MS, 5000).

-opaque depth() :: {Keeper :: pid(), Before :: pos_integer()}.

%% @doc How deep they are, as this process sees its own, which it makes deeper for that.
-spec current() -> pos_integer().
current() ->
    down(?DEPTH).

%% Two that call each other, as a function that calls itself is one frame however often it does.
down(0) ->
    {_, Stack} = process_info(self(), current_stacktrace),
    length(Stack);
down(N) ->
    % no last call
    max(1, up(N - 1)).

up(0) -> down(0);
up(N) -> max(1, down(N - 1)).

%% @doc Deepens stacks until {@link restore/1}, or until one of these processes ends. Waits until
%% nobody else does. The caller is to monitor the keeper, and to call {@link keeper_gone/1} when it
%% has ended.
-spec deepen([pid()]) -> depth().
deepen(Pids) ->
    Caller = self(),
    {Keeper, Ref} = spawn_opt(
        fun() ->
            _ = seq_trace:set_token([]),
            %% stopping an application kills every process that has its group leader
            true = group_leader(whereis(init), self()),
            ok = alone(),
            _ = [erlang:monitor(process, Pid) || Pid <- Pids],
            keep(Caller, erlang:system_flag(backtrace_depth, ?DEPTH))
        end,
        [monitor, {priority, high}]
    ),
    receive
        {?MODULE, Keeper, Before} ->
            _ = erlang:demonitor(Ref, [flush]),
            {Keeper, Before};
        {'DOWN', Ref, process, _, Why} ->
            exit(Why)
    end.

%% The one before, whose run has ended a moment ago, puts back what it found before this one looks.
alone() ->
    try register(?MODULE, self()) of
        true -> ok
    catch
        error:badarg ->
            Ref = erlang:monitor(process, ?MODULE),
            receive
                {'DOWN', Ref, process, _, _} -> alone()
            end
    end.

%% @doc The process that puts the old depth back.
-spec keeper(depth()) -> pid().
keeper({Keeper, _}) ->
    Keeper.

%% @doc Puts the old depth back. Returns when that is done.
-spec restore(depth()) -> ok.
restore({Keeper, _}) ->
    Ref = erlang:monitor(process, Keeper),
    Keeper ! restore,
    receive
        {'DOWN', Ref, process, _, _} -> ok
    after ?PATIENCE_MS ->
        _ = erlang:demonitor(Ref, [flush]),
        ok
    end.

%% @doc Puts it back in the keeper's place.
-spec keeper_gone(depth()) -> ok.
keeper_gone({_, Before}) ->
    put_back(Before).

keep(Caller, Before) ->
    Caller ! {?MODULE, self(), Before},
    receive
        restore -> ok;
        {'DOWN', _, process, _, _} -> ok
    end,
    put_back(Before).

put_back(Before) ->
    case erlang:system_flag(backtrace_depth, Before) of
        ?DEPTH ->
            ok;
        Theirs ->
            % somebody else has set it meanwhile
            _ = erlang:system_flag(backtrace_depth, Theirs),
            ok
    end.
