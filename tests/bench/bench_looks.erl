%% SPDX-License-Identifier: Apache-2.0
%% Nodes that are not there, whose stacks are sampled: each sends what a sampler of 100 processes at
%% 99 Hz makes of looks, all of which find something new. So the collector has the work of so many
%% nodes, and this machine has not.
-module(bench_looks).

-export([main/1]).

-define(PROCESSES, 100).
-define(STACKS, 300).
-define(DEPTH, 20).
-define(FRAMES, 1000).
-define(HZ, 99).

%% `PORT NODES': prints `node NAME' for each once it is connected, and `done LOOKS' when the runs of
%% all have been stopped. Each answers one run.
-spec main([string()]) -> no_return().
main([Port, Nodes]) ->
    Self = self(),
    Names = [lists:concat(["looked", I, "@bench"]) || I <- lists:seq(1, list_to_integer(Nodes))],
    Pids = [spawn_link(fun() -> node(list_to_integer(Port), N, Self) end) || N <- Names],
    Looks = [
        receive
            {Pid, Looks} -> Looks
        end
     || Pid <- Pids
    ],
    io:format("done ~b~n", [lists:sum(Looks)]),
    halt(0).

node(Port, Name, Owner) ->
    {Told, Second} = second(),
    {Control, _} = scenario_many:control(Port, Name, 1),
    io:format("node ~s~n", [Name]),
    ok = scenario_many:clock(Control),
    Id = asked(Control),
    tell(Control, stacks_started, Id, #{text => <<>>}),
    ok = taken(Control, Id, Told, 0),
    Looks = seconds(Control, Id, Second, erlang:monotonic_time(millisecond), 0),
    tell(Control, stacks_stopped, Id, (totals(Looks))#{reason => stopped, text => <<>>}),
    Owner ! {self(), Looks},
    timer:sleep(infinity).

%% What is told once, and the looks of a second, which are always the same.
second() ->
    R0 = kprof_stack_records:new(0),
    {Numbers, R1} = lists:mapfoldl(fun kprof_stack_records:stack/2, R0, [
        [{module((S * 7 + F) rem ?FRAMES), f, F} || F <- lists:seq(1, ?DEPTH)]
     || S <- lists:seq(1, ?STACKS)
    ]),
    {_, R2} = lists:mapfoldl(fun kprof_stack_records:process/2, R1, [
        {list_to_pid(lists:concat(["<0.", 1000 + P, ".0>"])), <<>>, <<"m:init/1">>, <<"bench">>}
     || P <- lists:seq(1, ?PROCESSES)
    ]),
    {Told, R3} = all(kprof_stack_records:close(R2), []),
    Native = erlang:convert_time_unit(1, second, native),
    Looks = lists:foldl(
        fun(Turn, R) ->
            lists:foldl(
                fun(P, Acc) -> look(P, Turn, Numbers, Acc) end,
                kprof_stack_records:time(Turn * Native div ?HZ, R),
                lists:seq(0, ?PROCESSES - 1)
            )
        end,
        R3,
        lists:seq(1, ?HZ)
    ),
    {Second, _} = all(kprof_stack_records:close(Looks), []),
    {Told, Second}.

module(Number) -> list_to_atom("module" ++ integer_to_list(Number)).

look(P, Turn, Numbers, R) ->
    Values = #{
        reductions => 1000 + P + Turn,
        queue => Turn rem 10,
        heap => {2000 * (1 + Turn rem 5), 100 + P}
    },
    Stack = lists:nth(1 + (P * 3 + Turn) rem ?STACKS, Numbers),
    kprof_stack_records:sample(P, running, Stack, Values, R).

all(R, Batches) ->
    case kprof_stack_records:take(R) of
        {Batch, Rest} -> all(Rest, [Batch | Batches]);
        none -> {lists:reverse(Batches), R}
    end.

asked(Control) ->
    case heard(Control, infinity) of
        #{<<"type">> := <<"stacks">>, <<"id">> := Id} -> Id;
        _ -> asked(Control)
    end.

heard(Control, Timeout) ->
    receive
        {tcp, Control, Bytes} ->
            {ok, Message} = kprof_msgpack:decode(Bytes),
            Message
    after Timeout -> none
    end.

%% A second after the other, until it is stopped.
seconds(Control, Id, Second, At, Looks) ->
    ok = taken(Control, Id, Second, Looks),
    ok = scenario_many:clock(Control),
    case stopped(Control, At + 1000) of
        true -> Looks + ?HZ * ?PROCESSES;
        false -> seconds(Control, Id, Second, At + 1000, Looks + ?HZ * ?PROCESSES)
    end.

stopped(Control, Until) ->
    case heard(Control, max(0, Until - erlang:monotonic_time(millisecond))) of
        none -> false;
        #{<<"type">> := <<"stacks_stop">>} -> true;
        _ -> stopped(Control, Until)
    end.

taken(Control, Id, Batches, Looks) ->
    lists:foreach(
        fun(Bytes) ->
            tell(Control, stacks_taken, Id, (totals(Looks))#{bytes => {bin, Bytes}})
        end,
        Batches
    ).

totals(Looks) ->
    #{
        samples => Looks,
        unchanged => 0,
        unanswered => 0,
        held_ms => 0,
        late_ms => 0,
        cost_us => 0,
        processes => ?PROCESSES
    }.

tell(Control, Type, Id, More) ->
    At = erlang:monotonic_time(),
    ok = scenario_many:say(Control, More#{type => Type, id => Id, at => At}).
