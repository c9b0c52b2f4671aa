%% SPDX-License-Identifier: Apache-2.0
%% A collector for tests: accepts control and data connections on one port, welcomes, pings, and
%% keeps what came.
-module(kprof_mock_collector).

-export([
    start/0, start/1,
    port/1,
    stop/1,
    control/1,
    wait_control/2, wait_control/3,
    data/1,
    messages/1,
    all_messages/1,
    wait_messages/2,
    send/2,
    set/3,
    clear/1,
    drop_connections/1,
    data_connections/1
]).

start() -> start(0).

%% Unlinked: it outlives the process that starts it.
start(Port) ->
    Owner = self(),
    Pid = spawn(fun() ->
        Listen = listen(Port),
        {ok, Number} = inet:port(Listen),
        Self = self(),
        spawn_link(fun() -> accept(Listen, Self) end),
        Owner ! {self(), Number},
        loop(#{
            port => Number,
            control => [],
            data => [],
            sockets => [],
            datas => [],
            ping => true,
            welcome => true
        })
    end),
    receive
        {Pid, _} -> Pid
    after 60000 -> error(mock_collector)
    end.

%% 0: one that the kernel gives to nobody while the collector is away.
listen(0) ->
    case try_listen(10000 + rand:uniform(19999)) of
        {ok, Listen} -> Listen;
        {error, eaddrinuse} -> listen(0)
    end;
listen(Port) ->
    {ok, Listen} = try_listen(Port),
    Listen.

try_listen(Port) ->
    gen_tcp:listen(Port, [binary, {active, false}, {reuseaddr, true}, {ip, {127, 0, 0, 1}}]).

port(Pid) -> ask(Pid, port).
control(Pid) -> ask(Pid, control).
data(Pid) -> ask(Pid, data).
data_connections(Pid) -> ask(Pid, data_connections).
send(Pid, Message) -> ask(Pid, {send, Message}).
%% ping | welcome | read (of data connections), true | false
set(Pid, Key, Value) -> ask(Pid, {set, Key, Value}).
clear(Pid) -> ask(Pid, clear).
drop_connections(Pid) -> ask(Pid, drop).
stop(Pid) ->
    Ref = erlang:monitor(process, Pid),
    exit(Pid, kill),
    receive
        {'DOWN', Ref, _, _, _} -> ok
    end.

%% The first control message that has Type (and fulfils Fun). Limits are for what hangs. What came
%% instead is told in short: a suite that fails prints it, and logs are kept.
wait_control(Pid, Type) -> wait_control(Pid, Type, fun(_) -> true end).
wait_control(Pid, Type, Fun) -> wait_control(Pid, Type, Fun, deadline()).

wait_control(Pid, Type, Fun, Deadline) ->
    Control = control(Pid),
    case
        {
            [M || #{<<"type">> := T} = M <- Control, T =:= Type, Fun(M)],
            erlang:monotonic_time(millisecond) > Deadline
        }
    of
        {[M | _], _} ->
            M;
        {[], true} ->
            error({no_control_message, Type, short(Control)});
        {[], false} ->
            timer:sleep(20),
            wait_control(Pid, Type, Fun, Deadline)
    end.

deadline() -> erlang:monotonic_time(millisecond) + 100000.

%% The last of a list, in few words.
short(List) ->
    {
        length(List),
        lists:flatten(io_lib:format("~0tP", [lists:nthtail(max(0, length(List) - 20), List), 400]))
    }.

%% The trace messages of all data connections, in the order of the connections; the number dropped
%% is {dropped, N}. The deaths of processes, which come whenever they like, are only among
%% all_messages.
messages(Pid) ->
    [M || M <- all_messages(Pid), tuple_size(M) < 3 orelse element(3, M) =/= out_exited].
all_messages(Pid) -> lists:append([frames(B) || B <- data(Pid)]).

%% Those, once they fulfil Fun. Looking at many takes long: the next look comes after as long a
%% time.
wait_messages(Pid, Fun) -> wait_messages(Pid, Fun, deadline()).

wait_messages(Pid, Fun, Deadline) ->
    {Us, {Messages, Fulfils}} = timer:tc(fun() ->
        Ms = messages(Pid),
        {Ms, Fun(Ms)}
    end),
    case {Fulfils, erlang:monotonic_time(millisecond) > Deadline} of
        {true, _} ->
            Messages;
        {false, true} ->
            error({messages, short(Messages)});
        {false, false} ->
            timer:sleep(50 + Us div 1000),
            wait_messages(Pid, Fun, Deadline)
    end.

frames(<<0, 0:32, R/binary>>) -> frames(R);
frames(<<0, N:32, T:N/binary, R/binary>>) -> [binary_to_term(T) | frames(R)];
frames(<<1, N:32, R/binary>>) -> [{dropped, N} | frames(R)];
frames(_) -> [].

ask(Pid, What) ->
    Ref = erlang:monitor(process, Pid),
    Pid ! {ask, self(), Ref, What},
    receive
        {Ref, Reply} ->
            _ = erlang:demonitor(Ref, [flush]),
            Reply;
        {'DOWN', Ref, _, _, Why} ->
            error({mock_collector, Why})
    after 100000 -> error(mock_collector_timeout)
    end.

accept(Listen, Server) ->
    {ok, Socket} = gen_tcp:accept(Listen),
    Server ! {accepted, Socket},
    spawn(fun() -> connection(Socket, Server) end),
    accept(Listen, Server).

%% The acceptor owns every socket; any process may read a passive one.
connection(Socket, Server) ->
    ok = inet:setopts(Socket, [{packet, raw}]),
    {ok, <<Len:32>>} = gen_tcp:recv(Socket, 4),
    {ok, Bytes} = gen_tcp:recv(Socket, Len),
    {ok, #{<<"type">> := <<"hello">>} = Hello} = kprof_msgpack:decode(Bytes),
    case Hello of
        #{<<"role">> := <<"control">>} ->
            %% before the server looks at it, to know how to frame
            ok = inet:setopts(Socket, [{packet, 4}]),
            Server ! {control, Socket, Hello},
            read_control(Socket, Server);
        #{<<"role">> := <<"data">>} ->
            Server ! {data_open, self(), Hello},
            read_data(Socket, Server)
    end.

read_control(Socket, Server) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, Bytes} ->
            {ok, Message} = kprof_msgpack:decode(Bytes),
            Server ! {message, Message},
            read_control(Socket, Server);
        {error, _} ->
            ok = gen_tcp:close(Socket),
            Server ! {closed, Socket}
    end.

read_data(Socket, Server) ->
    Read =
        case get(read) of
            undefined -> true;
            R -> R
        end,
    receive
        {read, New} -> put(read, New)
    after 0 -> ok
    end,
    case Read andalso gen_tcp:recv(Socket, 0, 200) of
        false ->
            timer:sleep(50),
            read_data(Socket, Server);
        {ok, Bytes} ->
            Server ! {data, self(), Bytes},
            read_data(Socket, Server);
        {error, timeout} ->
            read_data(Socket, Server);
        {error, _} ->
            Server ! {data_closed, self()}
    end.

loop(S) ->
    receive
        {accepted, Socket} ->
            loop(S#{sockets := [Socket | maps:get(sockets, S)]});
        {control, Socket, Hello} ->
            case S of
                #{welcome := true} ->
                    frame(Socket, #{
                        type => welcome,
                        session => 7,
                        key => {bin, <<0:128>>},
                        version => <<"mock">>
                    }),
                    _ = maps:get(ping, S) andalso erlang:send_after(0, self(), ping);
                #{welcome := silent} ->
                    ok;
                #{welcome := Reason} ->
                    frame(Socket, #{type => bye, reason => Reason}),
                    gen_tcp:close(Socket)
            end,
            loop(S#{control := [Hello | maps:get(control, S)], socket => Socket});
        {message, M} ->
            loop(S#{control := [M | maps:get(control, S)]});
        {closed, _} ->
            loop(S);
        {data_open, Pid, #{<<"session">> := 7, <<"key">> := {bin, <<0:128>>}}} ->
            loop(S#{datas := [{Pid, open, []} | maps:get(datas, S)]});
        {data, Pid, Bytes} ->
            {value, {Pid, State, Chunks}, Rest} = lists:keytake(Pid, 1, maps:get(datas, S)),
            loop(S#{datas := [{Pid, State, keep(Bytes, Chunks, S)} | Rest]});
        {data_closed, Pid} ->
            {value, {Pid, _, Chunks}, Rest} = lists:keytake(Pid, 1, maps:get(datas, S)),
            loop(S#{datas := [{Pid, closed, Chunks} | Rest]});
        ping ->
            case S of
                #{ping := true, socket := Socket} ->
                    frame(Socket, #{type => ping}),
                    erlang:send_after(1000, self(), ping);
                _ ->
                    ok
            end,
            loop(S);
        {ask, From, Ref, What} ->
            {Reply, S1} = answer(What, S),
            From ! {Ref, Reply},
            loop(S1)
    end.

keep(_, Chunks, #{keep := false}) -> Chunks;
keep(Bytes, Chunks, _) -> [Bytes | Chunks].

answer(port, S) ->
    {maps:get(port, S), S};
answer(control, S) ->
    {lists:reverse(maps:get(control, S)), S};
answer(data, S) ->
    {[iolist_to_binary(lists:reverse(C)) || {_, _, C} <- lists:reverse(maps:get(datas, S))], S};
answer(data_connections, S) ->
    {[State || {_, State, _} <- maps:get(datas, S)], S};
answer({send, M}, S) ->
    {frame(maps:get(socket, S), M), S};
answer({set, read, V}, S) ->
    {[P ! {read, V} || {P, _, _} <- maps:get(datas, S)], S};
answer({set, K, V}, S) ->
    {ok, S#{K => V}};
answer(clear, S) ->
    {ok, S#{control := [], datas := [{P, St, []} || {P, St, _} <- maps:get(datas, S)]}};
answer(drop, S) ->
    [gen_tcp:close(Socket) || Socket <- maps:get(sockets, S)],
    {ok, S#{sockets := []}}.

frame(Socket, M) ->
    Bytes = iolist_to_binary(kprof_msgpack:encode(M)),
    case inet:getopts(Socket, [packet]) of
        {ok, [{packet, 4}]} -> gen_tcp:send(Socket, Bytes);
        _ -> gen_tcp:send(Socket, [<<(byte_size(Bytes)):32>>, Bytes])
    end.
