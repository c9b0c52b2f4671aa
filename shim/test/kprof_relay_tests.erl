%% SPDX-License-Identifier: Apache-2.0
-module(kprof_relay_tests).
-include("patient.hrl").

%% A stream is counted alike in whatever pieces it comes.
count_test_() -> {timeout, 300, fun count_case/0}.
count_case() ->
    Stream = iolist_to_binary([
        frame(<<1:800>>),
        <<0, 0:32>>,
        frame(<<131>>),
        <<1, 70000:32>>,
        <<0, 0:32>>,
        frame(<<2:160>>),
        <<1, 0:32>>
    ]),
    ?assertEqual({70003, 0}, kprof_relay:count(Stream, 0)),
    [
        ?assertEqual({Size, 70003, 0}, pieces(Stream, Size))
     || Size <- lists:seq(1, byte_size(Stream))
    ],
    %% what is begun is counted, and how much of it is still to come is known
    ?assertEqual({1, 96}, kprof_relay:count(binary:part(Stream, 0, 9), 0)),
    ?assertEqual({0, <<0, 0, 0>>}, kprof_relay:count(binary:part(Stream, 0, 3), 0)).

frame(Message) -> <<0, (byte_size(Message)):32, Message/binary>>.

pieces(Stream, Size) ->
    {N, Place} = pieces(Stream, Size, {0, 0}),
    {Size, N, Place}.

pieces(Stream, Size, {N, Place}) when byte_size(Stream) > Size ->
    <<Piece:Size/binary, Rest/binary>> = Stream,
    {More, Next} = kprof_relay:count(Piece, Place),
    pieces(Rest, Size, {N + More, Next});
pieces(Stream, _, {N, Place}) ->
    {More, Next} = kprof_relay:count(Stream, Place),
    {N + More, Next}.

relay_test_() ->
    [
        {Name, {timeout, 300, Test}}
     || {Name, Test} <- [
            {"drained", fun drained/0}, {"given up", fun given_up/0}, {"ended", fun ended/0}
        ]
    ].

%% All arrives, and then the connection ends.
drained() ->
    with_relay(fun(Port, Relay, Collector) ->
        [ok = gen_tcp:send(Port, frame(<<I:800>>)) || I <- lists:seq(1, 1000)],
        ok = kprof_relay:drain(Relay),
        {ok, Bytes} = gen_tcp:recv(Collector, 105 * 1000, 50000),
        ?assertEqual({1000, 0}, kprof_relay:count(Bytes, 0)),
        ?assertEqual({error, closed}, gen_tcp:recv(Collector, 0, 50000)),
        ok = gone(Relay, {trace_port, timeout}),
        ?assertEqual({1000, 0}, kprof_relay:total(Relay))
    end).

%% A collector that does not read holds up neither the word to give it up nor the count of what is
%% lost; what it reads in the end are the first of these messages.
given_up() ->
    with_relay(fun(Port, Relay, Collector) ->
        Frames = binary:copy(frame(<<7:8000>>), 100),
        {Writer, Ref} = spawn_monitor(fun() ->
            [ok = gen_tcp:send(Port, Frames) || _ <- lists:seq(1, 200)]
        end),
        receive
            {'DOWN', Ref, process, Writer, _} -> error(not_held_up)
        after 1000 -> ok
        end,
        ok = kprof_relay:give_up(Relay),
        receive
            {'DOWN', Ref, process, Writer, Why} -> ?assertEqual(normal, Why)
        after 50000 -> error(held_up)
        end,
        ok = kprof_relay:finish(Relay),
        {Messages, Unsent} = kprof_relay:total(Relay),
        ?assertEqual(20000, Messages),
        {Read, _} = kprof_relay:count(all(Collector), 0),
        ?assert(Read > 0 andalso Read < 20000),
        % the last piece may have arrived in part
        ?assert(Unsent > 0 andalso Unsent =< 20000 - Read + 300)
    end).

%% Nothing is carried any more, and all is counted until there is no more to come.
ended() ->
    with_relay(fun(Port, Relay, Collector) ->
        Pid = kprof_relay:pid(Relay),
        ok = gen_tcp:send(Port, frame(<<1>>)),
        {ok, _} = gen_tcp:recv(Collector, 6, 50000),
        ok = gen_tcp:close(Collector),
        Sent = until_told(Pid, Port, 0),
        [ok = gen_tcp:send(Port, frame(<<2>>)) || _ <- lists:seq(1, 10)],
        timer:sleep(500),
        ?assert(is_process_alive(Pid)),
        ok = gen_tcp:close(Port),
        ok = gone(Relay, {trace_port, closed}),
        {Messages, Unsent} = kprof_relay:total(Relay),
        ?assertEqual(Sent + 11, Messages),
        ?assert(Unsent > 10 andalso Unsent =< Sent + 10)
    end).

until_told(Pid, Port, N) ->
    receive
        {kprof_relay, Pid, _} -> N
    after 20 ->
        ok = gen_tcp:send(Port, frame(<<3>>)),
        until_told(Pid, Port, N + 1)
    end.

all(Socket) ->
    case gen_tcp:recv(Socket, 0, 1000) of
        {ok, Bytes} -> <<Bytes/binary, (all(Socket))/binary>>;
        {error, _} -> <<>>
    end.

gone(Relay, Why) ->
    Pid = kprof_relay:pid(Relay),
    receive
        {'EXIT', Pid, Reason} ->
            ?assertEqual(Why, Reason),
            ok
    after 50000 -> error(still_there)
    end.

%% Port is the end that a trace port would write to, Collector that of who reads.
with_relay(Fun) ->
    Trap = process_flag(trap_exit, true),
    {Port, In} = pair(),
    {Out, Collector} = pair(),
    Relay = kprof_relay:start_link(In, {gen_tcp, Out}, counters:new(2, [])),
    try
        Fun(Port, Relay, Collector)
    after
        [exit(P, kill) || P <- kprof_relay:processes(Relay)],
        [gen_tcp:close(S) || S <- [Port, In, Collector]],
        timer:sleep(50),
        flush(),
        process_flag(trap_exit, Trap)
    end.

flush() ->
    receive
        {'EXIT', _, _} -> flush()
    after 0 -> ok
    end.

pair() ->
    % as kprof_tracer's: after little the relay lets more gather
    Options = [binary, {active, false}, {buffer, 262144}],
    {ok, Listen} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}} | Options]),
    {ok, Number} = inet:port(Listen),
    {ok, A} = gen_tcp:connect({127, 0, 0, 1}, Number, Options),
    {ok, B} = gen_tcp:accept(Listen),
    ok = gen_tcp:close(Listen),
    {A, B}.
