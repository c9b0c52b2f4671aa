%% SPDX-License-Identifier: Apache-2.0
%% A flame graph in the way that eflame makes one: the chosen processes, and what they spawn, send a
%% message for each call of any function, each return and each time they are scheduled, to one
%% process, which keeps their stacks. Arguments are not sent, only how many there are.
-module(bench_eflame).

-export([start/2, stop/0]).

-define(FLAGS, [call, return_to, running, arity, timestamp, set_on_spawn]).

-record(state, {
    % Pid => {Stack, innermost first, each element the position of its frame; since when, µs}
    processes = #{} :: map(),
    % {position below, function} => position
    positions = #{} :: map(),
    % position => µs
    times = #{} :: map(),
    calls = #{} :: map()
}).

%% Modules: those whose functions are traced; '_' is all.
-spec start([pid()], [module()]) -> ok.
start(Pids, Modules) ->
    Tracer = spawn(fun() -> loop(#state{}) end),
    true = register(?MODULE, Tracer),
    Spec = [{'_', [], [{message, {{cp}}}]}],
    _ = [erlang:trace_pattern({M, '_', '_'}, Spec, [local]) || M <- Modules],
    [1 = erlang:trace(Pid, true, [{tracer, Tracer} | ?FLAGS]) || Pid <- Pids],
    ok.

%% How often each function was called, and how many µs each position of a stack took.
-spec stop() -> {Calls :: #{mfa() => pos_integer()}, Times :: #{pos_integer() => number()}}.
stop() ->
    _ = erlang:trace(all, false, [all]),
    _ = erlang:trace_pattern({'_', '_', '_'}, false, [local]),
    Ref = erlang:trace_delivered(all),
    receive
        {trace_delivered, all, Ref} -> ok
    end,
    {Tracer, Monitor} = {whereis(?MODULE), make_ref()},
    Tracer ! {stop, self(), Monitor},
    receive
        {Monitor, Told} -> Told
    end.

loop(State) ->
    receive
        {stop, From, Ref} ->
            From ! {Ref, {State#state.calls, State#state.times}};
        Message ->
            loop(message(Message, State))
    end.

message({trace_ts, Pid, call, Mfa, {Cp}, At}, #state{calls = Calls} = S) ->
    {Stack, S1} = spent(Pid, us(At), S),
    {Called, S2} = called(Mfa, Cp, Stack, S1#state{
        calls = maps:update_with(Mfa, fun(N) -> N + 1 end, 1, Calls)
    }),
    since(Pid, Called, us(At), S2);
message({trace_ts, Pid, return_to, Mfa, At}, S) ->
    {Stack, S1} = spent(Pid, us(At), S),
    since(Pid, lists:dropwhile(fun({_, F}) -> F =/= Mfa end, Stack), us(At), S1);
message({trace_ts, Pid, out, _, At}, S) ->
    {Stack, S1} = spent(Pid, us(At), S),
    {Asleep, S2} = pushed(sleep, Stack, S1),
    since(Pid, Asleep, us(At), S2);
message({trace_ts, Pid, in, _, At}, S) ->
    {Stack, S1} = spent(Pid, us(At), S),
    since(Pid, lists:dropwhile(fun({_, F}) -> F =:= sleep end, Stack), us(At), S1);
message(_, S) ->
    S.

%% A call from the function on top lies on it; from one further down it is a tail call's, which has
%% ended what was above; from one that was never seen that is taken to be there.
called(Mfa, Cp, [{_, Cp} | _] = Stack, S) ->
    pushed(Mfa, Stack, S);
called(Mfa, undefined, _, S) ->
    pushed(Mfa, [], S);
called(Mfa, Cp, Stack, S) ->
    case lists:dropwhile(fun({_, F}) -> F =/= Cp end, Stack) of
        [] ->
            {Below, S1} = pushed(Cp, Stack, S),
            pushed(Mfa, Below, S1);
        Below ->
            pushed(Mfa, Below, S)
    end.

%% A function that calls itself stays where it is.
pushed(F, [{_, F} | _] = Stack, S) ->
    {Stack, S};
pushed(F, Stack, #state{positions = Positions} = S) ->
    Key = {top(Stack), F},
    case Positions of
        #{Key := At} ->
            {[{At, F} | Stack], S};
        #{} ->
            At = map_size(Positions) + 1,
            {[{At, F} | Stack], S#state{positions = Positions#{Key => At}}}
    end.

top([{At, _} | _]) -> At;
top([]) -> 0.

spent(Pid, At, #state{processes = Processes, times = Times} = S) ->
    case Processes of
        #{Pid := {Stack, Since}} ->
            Add = fun(Us) -> Us + At - Since end,
            {Stack, S#state{times = maps:update_with(top(Stack), Add, At - Since, Times)}};
        #{} ->
            {[], S}
    end.

since(Pid, Stack, At, #state{processes = Processes} = S) ->
    S#state{processes = Processes#{Pid => {Stack, At}}}.

us({Mega, Seconds, Micro}) ->
    (Mega * 1000000 + Seconds) * 1000000 + Micro.
