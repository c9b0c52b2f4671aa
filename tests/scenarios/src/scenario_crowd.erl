%% SPDX-License-Identifier: Apache-2.0
%% Nodes in large numbers, in one VM.
%%   erl -noinput -pa EBIN -run scenario_crowd main PORT pods N          one after the other, each
%%                                                                       with names of its own
%%   erl -noinput -pa EBIN -run scenario_crowd main PORT names N FILE    all at once, each with a
%%                                                                       megabyte of names, until
%%                                                                       FILE is there
-module(scenario_crowd).

-export([main/1]).

-define(PACE_MS, 60).
-define(STAY_MS, 2000).

-spec main([string()]) -> no_return().
main([Port, What | Arguments]) ->
    try crowd(list_to_atom(What), list_to_integer(Port), Arguments) of
        ok -> halt(0)
    catch
        Class:Why:Stack ->
            io:format("~s: ~0tp: ~0tp ~0tp~n", [What, Class, Why, Stack]),
            halt(1)
    end.

crowd(pods, Port, [N]) ->
    All = [
        begin
            timer:sleep(?PACE_MS),
            spawn_monitor(fun() -> pod(Port, I) end)
        end
     || I <- lists:seq(1, list_to_integer(N))
    ],
    [
        receive
            {'DOWN', Ref, process, Pid, normal} -> ok;
            {'DOWN', Ref, process, Pid, Why} -> error(Why)
        end
     || {Pid, Ref} <- All
    ],
    ok;
crowd(names, Port, [N, File]) ->
    Self = self(),
    Nodes = [
        begin
            Node = spawn_link(fun() -> names(Port, I, Self) end),
            receive
                {Node, said} -> Node
            end
        end
     || I <- lists:seq(1, list_to_integer(N))
    ],
    io:format("held ~b~n", [length(Nodes)]),
    true = until(File),
    ok.

until(File) ->
    filelib:is_file(File) orelse
        begin
            timer:sleep(100),
            until(File)
        end.

%% Two tiers, one within the other, in one request. It stays for some seconds: what it has sent is
%% read by then.
pod(Port, I) ->
    Node = iolist_to_binary(io_lib:format("pod~b@host", [I])),
    {Control, Session} = connect(Port, Node),
    ok = tiers(Control, [
        #{name => <<Node/binary, " ", T/binary>>, m => pod, f => binary_to_atom(T), a => 1}
     || T <- [<<"a">>, <<"b">>]
    ]),
    {ok, {_, Data} = Stream} = kprof_link:open_data(target(Port), Session, 0),
    T = erlang:monotonic_time(),
    Token = {18, I, 0, self(), 0},
    Pid = self(),
    ok = gen_tcp:send(Data, [
        frame(Message)
     || Message <- [
            {trace_ts, Pid, call, {kprof_mark, request_begin, 1}, {Token, <<Node/binary, " work">>},
                T},
            {trace_ts, Pid, call, {pod, a, 1}, {Token, undefined}, T + 1000},
            {trace_ts, Pid, call, {pod, b, 1}, {Token, undefined}, T + 2000},
            {trace_ts, Pid, return_from, {pod, b, 1}, ok, T + 3000},
            {trace_ts, Pid, return_from, {pod, a, 1}, ok, T + 4000},
            {trace_ts, Pid, call, {kprof_mark, request_end, 1}, {Token, ok}, T + 5000},
            % however the stream ends, nothing behind this can have been the request's
            {trace_ts, Pid, in, {pod, a, 1}, T + 50000000}
        ]
    ]),
    ok = kprof_link:send(Control, #{
        type => trace_stopped, at => erlang:monotonic_time(), reason => stopped, text => <<>>
    }),
    ok = kprof_link:close(Stream),
    timer:sleep(?STAY_MS),
    ok = kprof_link:close(Control).

%% As much as a control message may be, in names that are as long as they may be, or longer. Then it
%% says the time, as a shim does: who is silent is taken for gone. Where the collector is slow, some
%% come while as many as may be are on their way. They are closed, and come again, as a shim does.
names(Port, I, Crowd) ->
    ok = announce(Port, I, fun() -> Crowd ! {self(), said} end).

announce(Port, I, Said) ->
    {Control, _} = connect(Port, iolist_to_binary(io_lib:format("names~b@host", [I]))),
    Long = fun(K, Bytes) ->
        iolist_to_binary([io_lib:format("~b.~b.", [I, K]), binary:copy(<<"x">>, Bytes - 10)])
    end,
    _ = tiers(Control, [
        #{name => Long(K, 2000), m => Long(K, 1000), f => Long(K, 1000), a => 1}
     || K <- lists:seq(1, 240)
    ]),
    _ = Said(),
    _ = says_the_time(Control),
    timer:sleep(200),
    announce(Port, I, fun() -> ok end).

says_the_time(Control) ->
    Clock = #{
        type => clock, at => erlang:monotonic_time(), time_offset => erlang:time_offset()
    },
    case kprof_link:send(Control, Clock) of
        ok ->
            timer:sleep(500),
            says_the_time(Control);
        Error ->
            Error
    end.

frame(Message) ->
    Term = term_to_binary(Message),
    [<<0, (byte_size(Term)):32>>, Term].

target(Port) -> #{host => "127.0.0.1", port => Port}.

%% A shim tries again until there is room.
connect(Port, Node) ->
    Hello = scenario_wire:hello(Node),
    case kprof_link:connect(target(Port), Hello) of
        {ok, Control, Session} ->
            {Control, Session};
        {error, _} ->
            timer:sleep(200),
            connect(Port, Node)
    end.

tiers(Control, Tiers) ->
    kprof_link:send(Control, #{
        type => tiers, identity => none, stats => false, calls => false, tiers => Tiers
    }).
