%% SPDX-License-Identifier: Apache-2.0
%% OTP's own way to read a capture: dbg:trace_client(file, ...) with a handler that sums calls and
%% inclusive time per tier.
%%
%% The handler does as little as that can take: a map from process to its stack of tiers and starts,
%% and an array of counters. No requests, no histograms, no identities. (Tried and no faster: stacks
%% in the process dictionary. With a handler that only counts messages the client takes about nine
%% tenths of the time.)
-module(bench_trace_client).

-export([main/1]).

%% Arguments: the capture, then NAME=M:F/A for each tier. Prints
%%   messages N cpu_ms N wall_ms N
%%   tier NAME CALLS INCLUSIVE_NS
-spec main([string()]) -> no_return().
main([File | Tiers]) ->
    Named = [tier(T) || T <- Tiers],
    Count = length(Named),
    Index = maps:from_list(lists:zip([MFA || {_, MFA} <- Named], lists:seq(1, Count))),
    Sums = counters:new(1 + 2 * Count, []),
    Self = self(),
    Handler = fun
        (end_of_trace, _) -> Self ! done;
        (Message, Stacks) -> handle(Message, Stacks, Index, Sums)
    end,
    _ = statistics(runtime),
    Start = erlang:monotonic_time(millisecond),
    Ref = monitor(process, dbg:trace_client(file, File, {Handler, #{}})),
    receive
        done ->
            ok;
        {'DOWN', Ref, _, _, Why} ->
            io:format(standard_error, "trace_client ended: ~0p~n", [Why]),
            halt(1)
    end,
    Wall = erlang:monotonic_time(millisecond) - Start,
    {_, Cpu} = statistics(runtime),
    io:format("messages ~b cpu_ms ~b wall_ms ~b~n", [counters:get(Sums, 1), Cpu, Wall]),
    [
        io:format("tier ~s ~b ~b~n", [
            Name, counters:get(Sums, 2 * I), counters:get(Sums, 2 * I + 1)
        ])
     || {I, {Name, _}} <- lists:zip(lists:seq(1, Count), Named)
    ],
    halt(0).

tier(Text) ->
    [Name, Function] = string:split(Text, "="),
    [M, Rest] = string:split(Function, ":"),
    [F, A] = string:split(Rest, "/"),
    {Name, {list_to_atom(M), list_to_atom(F), list_to_integer(A)}}.

handle({trace_ts, Pid, call, MFA, _Token, Ts}, Stacks, Index, Sums) ->
    counters:add(Sums, 1, 1),
    case Index of
        #{MFA := I} ->
            case Stacks of
                #{Pid := Stack} -> Stacks#{Pid := [I, Ts | Stack]};
                #{} -> Stacks#{Pid => [I, Ts]}
            end;
        #{} ->
            Stacks
    end;
handle({trace_ts, Pid, Kind, MFA, _Value, Ts}, Stacks, Index, Sums) when
    Kind =:= return_from; Kind =:= exception_from
->
    counters:add(Sums, 1, 1),
    case Index of
        #{MFA := I} ->
            case Stacks of
                #{Pid := Stack} -> return(Pid, pop(I, Ts, Stack, Sums), Stacks);
                #{} -> Stacks
            end;
        #{} ->
            Stacks
    end;
handle(_, Stacks, _, Sums) ->
    counters:add(Sums, 1, 1),
    Stacks.

return(Pid, [], Stacks) -> maps:remove(Pid, Stacks);
return(Pid, Stack, Stacks) -> Stacks#{Pid := Stack}.

%% Calls above the one that returns never returned themselves, and are dropped.
pop(I, Ts, [I, Start | Stack], Sums) ->
    counters:add(Sums, 2 * I, 1),
    counters:add(Sums, 2 * I + 1, Ts - Start),
    Stack;
pop(I, Ts, [_, _ | Stack], Sums) ->
    pop(I, Ts, Stack, Sums);
pop(_, _, [], _) ->
    [].
