%% SPDX-License-Identifier: Apache-2.0
%% A shim that lies: speaks kprof's protocol as far as told, then sends what no shim would. Run by
%% scenario 04 as
%%   erl -run scenario_peer main PORT WHAT
%% and ends with 0 when the collector closed the connection that misbehaved.
-module(scenario_peer).

-export([main/1]).

-define(CLOSED_MS, 15000).

-spec main([string()]) -> no_return().
main([Port, What]) ->
    Result =
        try
            peer(list_to_atom(What), list_to_integer(Port))
        catch
            Class:Why:Stack -> {Class, Why, Stack}
        end,
    io:format("~s: ~0tp~n", [What, Result]),
    halt(
        case Result of
            closed -> 0;
            _ -> 1
        end
    ).

%% Not even a hello.
peer(deep, Port) ->
    raw(Port, framed([binary:copy(<<16#91>>, 500000), 1]));
peer(wide, Port) ->
    raw(Port, framed(<<16#dd, 16#3d0a0000:32, 16#dd, 16#3d0a0000:32>>));
peer(stranger, Port) ->
    raw(Port, framed(kprof_msgpack:encode(#{type => clock})));
peer(version, Port) ->
    raw(Port, framed(kprof_msgpack:encode(hello(#{protocol => 99}))));
peer(no_session, Port) ->
    raw(
        Port,
        framed(
            kprof_msgpack:encode(#{
                type => hello,
                role => data,
                protocol => 1,
                session => 1,
                key => {bin, binary:copy(<<0>>, 16)}
            })
        )
    );
%% A good hello, then damage on the control connection.
peer(control_huge, Port) ->
    {ok, {_, Control}, _} = connect(Port),
    ok = inet:setopts(Control, [{packet, raw}]),
    ok = gen_tcp:send(Control, <<16#ffffffff:32, "and so on">>),
    closed(Control);
%% A good hello, then notes for the log without an end, or nearly.
peer(chatter, Port) ->
    {ok, {_, Socket} = Control, _} = connect(Port),
    [
        ok = kprof_link:send(Control, #{type => note, level => warning, text => <<"chatter">>})
     || _ <- lists:seq(1, 20000)
    ],
    ok = inet:setopts(Socket, [{packet, raw}]),
    ok = gen_tcp:send(Socket, <<16#ffffffff:32, "and so on">>),
    closed(Socket);
%% A good hello and a good data connection, then a stream that is none.
peer(data_huge, Port) ->
    data(Port, <<0, 16#ffffffff:32, 131, 104, 5>>);
peer(data_random, Port) ->
    data(Port, <<255, (rand:bytes(100000))/binary>>);
%% Frames whole and well counted, with terms that are damaged: counted, and the connection stays.
peer(data_terms, Port) ->
    {ok, Control, Session} = connect(Port),
    {ok, {_, Data}} = kprof_link:open_data(target(Port), Session, 0),
    [
        ok = gen_tcp:send(Data, [<<0, (byte_size(B)):32>>, B])
     || _ <- lists:seq(1, 100), B <- [rand:bytes(50)]
    ],
    timer:sleep(500),
    ok = kprof_link:send(Control, #{
        type => trace_stopped, at => erlang:monotonic_time(), reason => stopped, text => <<>>
    }),
    gen_tcp:close(Data),
    timer:sleep(300),
    kprof_link:close(Control),
    closed;
%% 3000 sessions, one behind the other, of 30 names. What is refused since the last of that name is
%% still there is made again.
peer(hellos, Port) ->
    hellos(Port, 3000);
%% A session whose data connection is opened anew a thousand times, each time with a stream that is
%% none.
peer(streams, Port) ->
    {ok, Control, Session} = connect(Port),
    [
        begin
            {ok, {_, Data}} = kprof_link:open_data(target(Port), Session, 0),
            ok = gen_tcp:send(Data, <<255, 0, 0>>),
            closed = closed(Data)
        end
     || _ <- lists:seq(1, 1000)
    ],
    kprof_link:close(Control),
    closed.

hellos(_, 0) ->
    closed;
hellos(Port, N) ->
    Name = list_to_binary(["liar", integer_to_list(N rem 30), "@localhost"]),
    case kprof_link:connect(target(Port), hello(#{node => Name})) of
        {ok, Control, _} ->
            kprof_link:close(Control),
            hellos(Port, N - 1);
        _ ->
            timer:sleep(10),
            hellos(Port, N)
    end.

data(Port, Bytes) ->
    {ok, Control, Session} = connect(Port),
    {ok, {_, Data}} = kprof_link:open_data(target(Port), Session, 0),
    ok = gen_tcp:send(Data, Bytes),
    Result = closed(Data),
    kprof_link:close(Control),
    Result.

connect(Port) ->
    {ok, Control, Session} = kprof_link:connect(target(Port), hello(#{})),
    ok = kprof_link:send(Control, #{
        type => tiers,
        identity => none,
        stats => false,
        calls => false,
        tiers => [#{name => <<"http">>, m => shop_http, f => handle_request, a => 2}]
    }),
    {ok, Control, Session}.

target(Port) ->
    #{host => "127.0.0.1", port => Port}.

hello(More) ->
    maps:merge(
        scenario_wire:hello(<<"liar@localhost">>),
        More
    ).

framed(Payload) ->
    Bytes = iolist_to_binary(Payload),
    [<<(byte_size(Bytes)):32>>, Bytes].

raw(Port, Bytes) ->
    {ok, Socket} = gen_tcp:connect("127.0.0.1", Port, [binary, {active, false}]),
    ok = gen_tcp:send(Socket, Bytes),
    closed(Socket).

%% Reads what comes (pings, a bye) until the other side closes.
closed(Socket) ->
    closed(Socket, erlang:monotonic_time(millisecond) + ?CLOSED_MS).

closed(Socket, Deadline) ->
    case gen_tcp:recv(Socket, 0, max(0, Deadline - erlang:monotonic_time(millisecond))) of
        {ok, _} -> closed(Socket, Deadline);
        {error, timeout} -> still_open;
        {error, _} -> closed
    end.
