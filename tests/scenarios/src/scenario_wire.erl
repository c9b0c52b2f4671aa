%% SPDX-License-Identifier: Apache-2.0
%% What sits on the wire between shims and collectors, or instead of one of them. Run by scenarios
%% as
%%   erl -run scenario_wire main WHAT ARGUMENT...
-module(scenario_wire).

-export([main/1, hello/1]).

-define(CLOSED_MS, 10000).

-spec main([string()]) -> no_return().
main([What | Arguments]) ->
    try run(list_to_atom(What), Arguments) of
        Result ->
            io:format("~s: ~0tp~n", [What, Result]),
            halt(
                case Result of
                    ok -> 0;
                    _ -> 1
                end
            )
    catch
        Class:Why:Stack ->
            io:format("~s: ~0tp: ~0tp ~0tp~n", [What, Class, Why, Stack]),
            halt(1)
    end.

%% What a shim of a node says first on its control connection.
-spec hello(binary()) -> map().
hello(Node) ->
    #{
        type => hello,
        role => control,
        protocol => 1,
        node => Node,
        otp => <<"25">>,
        os_pid => 1,
        ticks_per_second => 1000000000,
        time_offset => erlang:time_offset(),
        creation => 1,
        version => <<"0">>
    }.

%% Passes on what comes, and keeps it in DIR/N.client and DIR/N.collector. FLIP is `none', or
%% `client:N' or `collector:N': byte N that this side sends on its first connection is changed.
run(proxy, [PortFile, Collector, Dir, Flip]) ->
    Listen = listen(PortFile),
    proxy(Listen, list_to_integer(Collector), Dir, flip(Flip), 1);
%% Speaks TLS with both sides, with certificates and keys of its own, and passes on what they say.
run(between, [PortFile, Collector, Cert, Key, ClientCert, ClientKey]) ->
    {ok, _} = application:ensure_all_started(ssl),
    {ok, Listen} = ssl:listen(0, [
        binary, {active, false}, {ip, {127, 0, 0, 1}}, {certfile, Cert}, {keyfile, Key}
    ]),
    {ok, {_, Port}} = ssl:sockname(Listen),
    write_port(PortFile, Port),
    between(
        Listen,
        list_to_integer(Collector),
        [
            binary,
            {active, false},
            {verify, verify_none},
            {certfile, ClientCert},
            {keyfile, ClientKey}
        ]
    );
%% Sends what somebody said before. ok: the collector closed the connection and welcomed nobody.
run(replay, [Port, File]) ->
    {ok, Bytes} = file:read_file(File),
    Socket = connect(list_to_integer(Port)),
    ok = gen_tcp:send(Socket, Bytes),
    not_welcome(Socket, <<>>);
%% A collector that knows nothing, and sends back what it is sent. Prints the type of every message.
run(impostor, [PortFile]) ->
    impostor(listen(PortFile));
%% A shim with the right secret and a session of its own, that wants to bring the data of another
%% session. ok: it is refused.
run(join, [Port, SecretFile, Victim]) ->
    {ok, Secret} = kprof_auth:read_file(SecretFile),
    Target = #{host => "127.0.0.1", port => list_to_integer(Port), secret => Secret},
    {ok, Control, {_, Key, SessionKey}} =
        kprof_link:connect(Target, hello(<<"joiner@localhost">>)),
    Result = [
        kprof_link:open_data(Target, {list_to_integer(Victim), Key, Try}, 0)
     || Try <- [SessionKey, Secret, undefined]
    ],
    kprof_link:close(Control),
    %% without a handshake the hello goes out before the refusal comes back
    case Result of
        [{error, {bye, _}}, {error, {bye, _}}, {ok, Data}] ->
            kprof_link:close(Data),
            ok;
        _ ->
            Result
    end;
%% For so many seconds, connections from many addresses, 127.0.0.2 and on, that say nothing, half of
%% something, nonsense, or prove a wrong secret, as fast as they can be made; and 30 from 127.0.0.1
%% at a time that drip. Prints how many.
run(flood, [Port, Seconds]) ->
    Until = erlang:monotonic_time(millisecond) + 1000 * list_to_integer(Seconds),
    Self = self(),
    Number = list_to_integer(Port),
    Workers =
        [
            {What, {127, 0, 0, 1 + N}}
         || N <- lists:seq(1, 12), What <- [silent, half, nonsense, secret]
        ] ++
            [{drip, {127, 0, 0, 1}} || _ <- lists:seq(1, 30)],
    Pids = [
        spawn(fun() -> Self ! {self(), What, flood(What, From, Number, Until, 0)} end)
     || {What, From} <- Workers
    ],
    Counts = lists:foldl(
        fun(Pid, Acc) ->
            receive
                {Pid, What, N} -> maps:update_with(What, fun(M) -> M + N end, N, Acc)
            end
        end,
        #{},
        Pids
    ),
    [io:format("~s ~b~n", [What, N]) || {What, N} <- maps:to_list(Counts)],
    ok;
%% For so many seconds TLS handshakes, from 127.0.0.9, as fast as they can be made. Prints how many
%% were done.
run(handshakes, [Port, Seconds]) ->
    {ok, _} = application:ensure_all_started(ssl),
    Until = erlang:monotonic_time(millisecond) + 1000 * list_to_integer(Seconds),
    Self = self(),
    Pids = [
        spawn(fun() -> Self ! {self(), handshakes(list_to_integer(Port), Until, 0)} end)
     || _ <- lists:seq(1, 12)
    ],
    io:format("handshakes ~b~n", [
        lists:sum([
            receive
                {Pid, N} -> N
            end
         || Pid <- Pids
        ])
    ]),
    ok.

handshakes(Port, Until, N) ->
    case erlang:monotonic_time(millisecond) < Until of
        true ->
            case
                ssl:connect(
                    "127.0.0.1",
                    Port,
                    [
                        {ip, {127, 0, 0, 9}},
                        {verify, verify_none},
                        {active, false},
                        {log_level, none}
                    ],
                    3000
                )
            of
                {ok, Socket} ->
                    _ = ssl:close(Socket),
                    handshakes(Port, Until, N + 1);
                {error, _} ->
                    handshakes(Port, Until, N)
            end;
        false ->
            N
    end.

flood(What, From, Port, Until, N) ->
    case erlang:monotonic_time(millisecond) < Until of
        true ->
            flood_once(What, From, Port, Until),
            flood(What, From, Port, Until, N + 1);
        false ->
            N
    end.

flood_once(secret, _, Port, _) ->
    {ok, Wrong} = kprof_auth:secret(<<"this is not the secret">>),
    {error, _} = kprof_link:connect(#{host => "127.0.0.1", port => Port, secret => Wrong}, #{});
flood_once(What, From, Port, Until) ->
    case gen_tcp:connect("127.0.0.1", Port, [binary, {active, false}, {ip, From}], 5000) of
        {ok, Socket} ->
            stay(What, Socket, Until),
            gen_tcp:close(Socket);
        {error, _} ->
            timer:sleep(5)
    end.

stay(silent, Socket, _) ->
    gen_tcp:recv(Socket, 0, 200);
stay(half, Socket, _) ->
    _ = gen_tcp:send(Socket, [<<16#3f00:32>>, binary:copy(<<"a">>, 15000)]),
    gen_tcp:recv(Socket, 0, 200);
stay(nonsense, Socket, _) ->
    _ = gen_tcp:send(Socket, rand:bytes(200)),
    gen_tcp:recv(Socket, 0, 200);
stay(drip, Socket, Until) ->
    _ = gen_tcp:send(Socket, <<0, 0, 2, 0>>),
    drip(Socket, Until).

drip(Socket, Until) ->
    timer:sleep(100),
    case erlang:monotonic_time(millisecond) < Until andalso gen_tcp:send(Socket, <<"a">>) of
        ok -> drip(Socket, Until);
        _ -> ok
    end.

listen(PortFile) ->
    {ok, Listen} = gen_tcp:listen(0, [
        binary, {active, false}, {ip, {127, 0, 0, 1}}, {backlog, 100}
    ]),
    {ok, Port} = inet:port(Listen),
    write_port(PortFile, Port),
    Listen.

write_port(PortFile, Port) ->
    ok = file:write_file(PortFile ++ ".new", integer_to_list(Port)),
    ok = file:rename(PortFile ++ ".new", PortFile).

between(Listen, Port, Options) ->
    {ok, Waiting} = ssl:transport_accept(Listen),
    {ok, Client} = ssl:handshake(Waiting, 5000),
    {ok, Collector} = ssl:connect("127.0.0.1", Port, Options),
    Both = [
        spawn(fun() -> tell_all(A, B) end)
     || {A, B} <- [{Client, Collector}, {Collector, Client}]
    ],
    [ok = ssl:controlling_process(S, Pid) || {S, Pid} <- lists:zip([Client, Collector], Both)],
    between(Listen, Port, Options).

tell_all(From, To) ->
    case ssl:recv(From, 0) of
        {ok, Bytes} ->
            _ = ssl:send(To, Bytes),
            tell_all(From, To);
        {error, _} ->
            ssl:close(To)
    end.

connect(Port) ->
    {ok, Socket} = gen_tcp:connect("127.0.0.1", Port, [binary, {active, false}, {nodelay, true}]),
    Socket.

flip("none") ->
    none;
flip(Text) ->
    [Side, N] = string:split(Text, ":"),
    {Side, list_to_integer(N)}.

proxy(Listen, Port, Dir, Flip, N) ->
    {ok, Client} = gen_tcp:accept(Listen),
    Collector = connect(Port),
    Name = filename:join(Dir, integer_to_list(N)),
    pass("client", Client, Collector, Name, Flip),
    pass("collector", Collector, Client, Name, Flip),
    proxy(Listen, Port, Dir, none, N + 1).

pass(Side, From, To, Name, Flip) ->
    Offset =
        case Flip of
            {Side, At} -> At;
            _ -> -1
        end,
    Pid = spawn(fun() ->
        {ok, File} = file:open(Name ++ "." ++ Side, [write, raw, binary]),
        receive
            go -> pass(From, To, File, Offset)
        end
    end),
    ok = gen_tcp:controlling_process(From, Pid),
    Pid ! go.

pass(From, To, File, Offset) ->
    case gen_tcp:recv(From, 0) of
        {ok, Bytes} ->
            Sent = changed(Bytes, Offset),
            ok = file:write(File, Sent),
            _ = gen_tcp:send(To, Sent),
            pass(From, To, File, Offset - byte_size(Bytes));
        {error, _} ->
            _ = gen_tcp:close(From),
            _ = gen_tcp:close(To)
    end.

changed(Bytes, Offset) when Offset >= 0, Offset < byte_size(Bytes) ->
    <<A:Offset/binary, X, B/binary>> = Bytes,
    <<A/binary, (X bxor 1), B/binary>>;
changed(Bytes, _) ->
    Bytes.

not_welcome(Socket, Got) ->
    case gen_tcp:recv(Socket, 0, ?CLOSED_MS) of
        {ok, Bytes} ->
            not_welcome(Socket, <<Got/binary, Bytes/binary>>);
        {error, timeout} ->
            still_open;
        {error, _} ->
            case binary:match(Got, [<<"welcome">>, <<"proven">>]) of
                nomatch -> ok;
                _ -> {welcomed, Got}
            end
    end.

impostor(Listen) ->
    {ok, Socket} = gen_tcp:accept(Listen),
    ok = inet:setopts(Socket, [{packet, 4}]),
    reflect(Socket),
    impostor(Listen).

reflect(Socket) ->
    case gen_tcp:recv(Socket, 0, 5000) of
        {ok, Bytes} ->
            {ok, #{<<"type">> := Type} = Message} = kprof_msgpack:decode(Bytes),
            io:format("got ~ts~n", [Type]),
            Reply =
                case Message of
                    #{<<"nonce">> := Nonce} -> #{type => challenge, nonce => Nonce};
                    #{<<"proof">> := Proof} -> #{type => proven, proof => Proof};
                    _ -> #{type => welcome, session => 1, key => {bin, <<0:128>>}}
                end,
            _ = gen_tcp:send(Socket, kprof_msgpack:encode(Reply)),
            reflect(Socket);
        {error, Why} ->
            io:format("~0p~n", [Why]),
            gen_tcp:close(Socket)
    end.
