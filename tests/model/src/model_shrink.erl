%% SPDX-License-Identifier: Apache-2.0
%% Makes a plan smaller that fails: fewer clients, fewer operations, as long as it still fails and
%% there is time.
-module(model_shrink).

-export([plan/3]).

-include("model.hrl").

%% @doc The smallest plan found within Ms milliseconds for which Fails gives true.
-spec plan(map(), fun((map()) -> boolean()), pos_integer()) -> map().
plan(Plan, Fails, Ms) ->
    put(until, erlang:monotonic_time(millisecond) + Ms),
    Few = clients(Plan, Fails, max(1, length(maps:get(clients, Plan)) div 2)),
    smaller(Few, Fails).

in_time() -> erlang:monotonic_time(millisecond) < get(until).

%% Leaves out runs of clients, long runs first.
clients(Plan, Fails, Length) ->
    % the first one makes the stream a marked one
    Left = leave_out(Plan, Fails, Length, 1),
    case Length of
        1 -> Left;
        _ -> clients(Left, Fails, Length div 2)
    end.

leave_out(#{clients := Clients} = Plan, Fails, Length, At) when At < length(Clients) ->
    {Before, Rest} = lists:split(At, Clients),
    Without = Plan#{clients := Before ++ lists:nthtail(min(Length, length(Rest)), Rest)},
    case in_time() andalso Fails(Without) of
        true -> leave_out(Without, Fails, Length, At);
        false -> leave_out(Plan, Fails, Length, At + Length)
    end;
leave_out(Plan, _, _, _) ->
    Plan.

%% One step after the other.
smaller(Plan, Fails) ->
    case in_time() andalso first(Fails, steps(Plan)) of
        false -> Plan;
        Smaller -> smaller(Smaller, Fails)
    end.

first(_, []) ->
    false;
first(Fails, [Plan | Rest]) ->
    case in_time() andalso Fails(Plan) of
        true -> Plan;
        false -> first(Fails, Rest)
    end.

steps(#{clients := Clients, drops := Drops} = Plan) ->
    [
        Plan#{Option := Simple}
     || {Option, Simple} <- [{batch, 1}, {disorder, 0}, {gc, false}, {sched, false}],
        maps:get(Option, Plan) =/= Simple
    ] ++
        [Plan#{drops := D} || D <- without_one(Drops)] ++
        [Plan#{clients := [hd(Clients) | C]} || C <- without_one(tl(Clients))] ++
        [
            Plan#{clients := [hd(Clients) | C]}
         || C <- each(
                fun({Start, Program}) -> [{Start, P} || P <- programs(Program)] end, tl(Clients)
            )
        ].

without_one(List) ->
    [lists:sublist(List, N - 1) ++ lists:nthtail(N, List) || N <- lists:seq(1, length(List))].

%% The lists that have one element changed in one of the ways that Ways gives.
each(Ways, List) ->
    [
        lists:sublist(List, N - 1) ++ [Other | lists:nthtail(N, List)]
     || N <- lists:seq(1, length(List)), Other <- Ways(lists:nth(N, List))
    ].

%% An operation less, one replaced by what it runs, or one with a smaller program.
programs(Program) ->
    without_one(Program) ++
        [
            lists:sublist(Program, N - 1) ++ Inner ++ lists:nthtail(N, Program)
         || N <- lists:seq(1, length(Program)), Inner <- inner(lists:nth(N, Program))
        ] ++
        each(fun op/1, Program).

inner({'catch', Body, _}) -> [Body];
inner({Kind, _, Body}) when Kind =:= tier; Kind =:= tail; Kind =:= call -> [Body];
inner({helper, Body}) -> [Body];
inner({each, Body}) -> [Body];
inner(_) -> [].

op({gather, Parts}) ->
    [{gather, P} || P <- without_one(Parts), P =/= []] ++
        [{gather, P} || P <- each(fun({W, B}) -> [{W, S} || S <- programs(B)] end, Parts)];
op({'catch', Body, Then}) ->
    [{'catch', B, Then} || B <- programs(Body)] ++ [{'catch', Body, T} || T <- programs(Then)];
op({kill, Body, Ns}) ->
    [{kill, B, Ns} || B <- programs(Body)];
op({hire, Body}) ->
    [{hire, B} || B <- programs(Body)];
op({helper, Body}) ->
    [{helper, B} || B <- programs(Body)];
op({each, Body}) ->
    [{each, B} || B <- programs(Body)];
op({plain, Body}) ->
    [{plain, B} || B <- programs(Body)];
op({request, Label, Identity, Named, How, Body}) ->
    [{request, Label, Identity, Named, How, B} || B <- programs(Body)];
op({Kind, A, Body}) when is_list(Body), Kind =/= request -> [{Kind, A, B} || B <- programs(Body)];
op(_) ->
    [].
