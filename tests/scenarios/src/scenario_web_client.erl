%% SPDX-License-Identifier: Apache-2.0
%% What curl cannot do, against the web servers of scenarios 30 to 34: several requests sent before
%% the first answer is read, and a client that leaves in the middle of an answer; and streams of
%% HTTP/2 whose bodies come in turns, by gun. Prints a line METHOD PATH STATUS for each, as the
%% scenarios let curl do.
%%   erl -run scenario_web_client main PORT WHAT N      WHAT is one of run/3 below
-module(scenario_web_client).

-export([main/1]).

-spec main([string()]) -> no_return().
main([Port, What, N]) ->
    try run(list_to_atom(What), list_to_integer(Port), list_to_integer(N)) of
        Lines ->
            io:put_chars(Lines),
            halt(0)
    catch
        Class:Why:Stack ->
            io:format(standard_error, "~0tp: ~0tp ~0tP~n", [Class, Why, Stack, 20]),
            halt(1)
    end.

%% Ids of requests on one connection, without waiting.
run(pipeline, Port, N) ->
    {ok, S} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}, {packet, raw}]),
    Paths = [
        case I rem 5 of
            0 -> "/fail";
            _ -> ["/users/", integer_to_list(I)]
        end
     || I <- lists:seq(1, N)
    ],
    ok = gen_tcp:send(S, [["GET ", P, " HTTP/1.1\r\nHost: h\r\n\r\n"] || P <- Paths]),
    Answers = answers(S, N, <<>>),
    [io_lib:format("GET ~s ~b~n", [P, Status]) || {P, Status} <- lists:zip(Paths, Answers)];
%% What is allowed, and seldom: N requests on one connection, each after the answer before;
%% HTTP/1.0; a request in very many pieces; many headers, also those of kprof's own, repeated and in
%% upper case; and a body that waits until it is asked for.
run(odd, Port, N) ->
    Get = fun(Path, Headers) -> ["GET ", Path, " HTTP/1.1\r\nHost: h\r\n", Headers, "\r\n"] end,
    One = fun(Method, Path, Send) ->
        {ok, S} = gen_tcp:connect({127, 0, 0, 1}, Port, [
            binary, {active, false}, {packet, raw}, {nodelay, true}
        ]),
        ok = Send(S),
        [Status] = answers(S, 1, <<>>),
        ok = gen_tcp:close(S),
        io_lib:format("~s ~s ~b~n", [Method, Path, Status])
    end,
    Sends = fun(Bytes) -> fun(S) -> gen_tcp:send(S, Bytes) end end,
    {ok, Kept} = gen_tcp:connect({127, 0, 0, 1}, Port, [
        binary, {active, false}, {packet, raw}, {nodelay, true}
    ]),
    [
        [
            begin
                ok = gen_tcp:send(Kept, Get("/users/1", [])),
                io_lib:format("GET /users/1 ~b~n", answers(Kept, 1, <<>>))
            end
         || _ <- lists:seq(1, N)
        ],
        One("GET", "/users/2", Sends("GET /users/2 HTTP/1.0\r\n\r\n")),
        One(
            "GET", "/users/3", Sends("GET /users/3 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        ),
        One("GET", "/users/4", fun(S) ->
            [
                begin
                    ok = gen_tcp:send(S, [B]),
                    timer:sleep(1)
                end
             || <<B>> <= iolist_to_binary(Get("/users/4", []))
            ],
            ok
        end),
        One(
            "GET",
            "/users/5",
            Sends(
                Get("/users/5", [
                    ["X-Some-", integer_to_list(I), ": ", lists:duplicate(100, $v), "\r\n"]
                 || I <- lists:seq(1, 40)
                ])
            )
        ),
        One(
            "GET",
            "/users/6",
            Sends(
                Get(
                    "/users/6",
                    "X-TRACE-REQUEST: TRUE\r\nx-trace-request: no\r\nX-Trace-Request:\r\n"
                )
            )
        ),
        One("GET", "/users/7", Sends(Get("/users/7", ["X-Trace-Request: ", 255, 254, "\r\n"]))),
        One("POST", "/echo", fun(S) ->
            ok = gen_tcp:send(S, [
                "POST /echo HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n",
                "Content-Length: 5\r\n\r\n"
            ]),
            {ok, <<"HTTP/1.1 100", _/binary>>} = gen_tcp:recv(S, 0, 60000),
            gen_tcp:send(S, "hello")
        end)
    ];
%% Answers whose handler crashes behind them: who left at once might be gone before that.
run(after_crash, Port, N) ->
    [
        begin
            {ok, S} = gen_tcp:connect({127, 0, 0, 1}, Port, [
                binary, {active, false}, {packet, raw}
            ]),
            ok = gen_tcp:send(S, "GET /odd/after HTTP/1.1\r\nHost: h\r\n\r\n"),
            [200] = answers(S, 1, <<>>),
            timer:sleep(300),
            ok = gen_tcp:close(S),
            "GET /odd/after 200\n"
        end
     || _ <- lists:seq(1, N)
    ];
%% Clients that read the first bytes of a long answer and go.
run(leave, Port, N) ->
    [
        begin
            {ok, S} = gen_tcp:connect({127, 0, 0, 1}, Port, [
                binary, {active, false}, {packet, raw}
            ]),
            ok = gen_tcp:send(S, "GET /endless HTTP/1.1\r\nHost: h\r\n\r\n"),
            {ok, <<"HTTP/1.1 ", Status:3/binary, _/binary>>} = gen_tcp:recv(S, 100, 60000),
            ok = gen_tcp:close(S),
            ["GET /endless ", Status, $\n]
        end
     || _ <- lists:seq(1, N)
    ];
%% Clients that go in the middle of their own body.
run(abandon, Port, N) ->
    [
        begin
            {ok, S} = gen_tcp:connect({127, 0, 0, 1}, Port, [
                binary, {active, false}, {packet, raw}
            ]),
            ok = gen_tcp:send(S, [
                "POST /upload HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n",
                lists:duplicate(9000, $x)
            ]),
            timer:sleep(200),
            ok = gen_tcp:close(S),
            "POST /upload 000\n"
        end
     || _ <- lists:seq(1, N)
    ];
%% What is no request: no server may hand it to its application.
run(refused, Port, N) ->
    [
        _ = answer(Port, Bytes, 3000)
     || _ <- lists:seq(1, N),
        Bytes <- ["nonsense\r\n\r\n", "GET\r\n\r\n", <<0, 1, 2, 3, "\r\n\r\n">>]
    ],
    [];
%% The same, as cowboy tells it: a bad line, a header that is too long, a request that does not come
%% in time.
run(early, Port, N) ->
    Long = ["GET / HTTP/1.1\r\nHost: h\r\nX: ", lists:duplicate(10000, $x), "\r\n\r\n"],
    [
        [<<"400">>, <<"431">>, <<"408">>] =
            [
                answer(Port, Bytes, 60000)
             || Bytes <- ["nonsense\r\n\r\n", Long, "GET / HTTP/1.1\r\nHost: h\r\n"]
            ]
     || _ <- lists:seq(1, N)
    ],
    [];
%% A websocket: a request, and afterwards one message there and back.
run(upgrade, Port, N) ->
    [
        begin
            {ok, S} = gen_tcp:connect({127, 0, 0, 1}, Port, [
                binary, {active, false}, {packet, raw}
            ]),
            ok = gen_tcp:send(
                S,
                "GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: "
                "websocket\r\nSec-WebSocket-Version: 13\r\n"
                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            ),
            {ok, <<"HTTP/1.1 101", _/binary>>} = gen_tcp:recv(S, 0, 60000),
            ok = gen_tcp:send(S, [<<1:1, 0:3, 1:4, 1:1, 2:7, 0:32>>, "hi"]),
            {ok, <<1:1, 0:3, 1:4, 0:1, 2:7, "hi">>} = gen_tcp:recv(S, 4, 60000),
            ok = gen_tcp:close(S),
            "GET /ws 101\n"
        end
     || _ <- lists:seq(1, N)
    ];
%% Requests at a time on one connection, that is closed by the server, and by the client.
run(stuck, Port, N) ->
    Gun = http2(Port),
    Ref = monitor(process, Gun),
    Streams = [gun:get(Gun, "/stuck") || _ <- lists:seq(1, N)],
    receive
        {gun_down, Gun, http2, _, _} -> ok;
        {gun_down, Gun, http2, _, _, _} -> ok;
        {'DOWN', Ref, process, _, _} -> ok
    end,
    ["GET /stuck 000\n" || _ <- Streams];
run(left, Port, N) ->
    Gun = http2(Port),
    Streams = [gun:get(Gun, "/stuck?left") || _ <- lists:seq(1, N)],
    timer:sleep(300),
    ok = gun:close(Gun),
    ["GET /stuck?left 000\n" || _ <- Streams];
%% The same over HTTP/2 (RFC 8441), where it is a stream among others; it lasts longer than what is
%% still a request's would.
run(upgrade2, Port, N) ->
    {ok, S} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}, {packet, raw}]),
    Head = [
        {<<":method">>, <<"CONNECT">>},
        {<<":protocol">>, <<"websocket">>},
        {<<":scheme">>, <<"http">>},
        {<<":path">>, <<"/ws">>},
        {<<":authority">>, <<"h">>},
        {<<"sec-websocket-version">>, <<"13">>}
    ],
    Ids = [2 * I - 1 || I <- lists:seq(1, N)],
    {Blocks, _} = lists:mapfoldl(
        fun(_, State) -> cow_hpack:encode(Head, State) end, cow_hpack:init(), Ids
    ),
    Heads = [cow_http2:headers(Id, nofin, Block) || {Id, Block} <- lists:zip(Ids, Blocks)],
    ok = gen_tcp:send(S, ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", cow_http2:settings(#{})]),
    Settled = frames(
        S,
        fun
            ({settings, _}) -> settings;
            (_) -> none
        end,
        [settings],
        <<>>
    ),
    ok = gen_tcp:send(S, [cow_http2:settings_ack(), Heads]),
    Rest = frames(
        S,
        fun
            ({headers, Id, _, _, _}) -> Id;
            (_) -> none
        end,
        Ids,
        Settled
    ),
    _ = lists:foldl(
        fun(_, Rest0) ->
            timer:sleep(300),
            ok = gen_tcp:send(S, [
                cow_http2:data(Id, nofin, <<1:1, 0:3, 1:4, 1:1, 2:7, 0:32, "hi">>)
             || Id <- Ids
            ]),
            frames(
                S,
                fun
                    ({data, Id, _, <<1:1, 0:3, 1:4, 0:1, 2:7, "hi">>}) -> Id;
                    (_) -> none
                end,
                Ids,
                Rest0
            )
        end,
        Rest,
        lists:seq(1, 5)
    ),
    ok = gen_tcp:close(S),
    ["CONNECT /ws 200\n" || _ <- Ids];
run(streams, Port, N) ->
    Gun = http2(Port),
    Streams = [
        {I, gun:post(Gun, "/echo", [{<<"content-type">>, "text/plain"}])}
     || I <- lists:seq(1, N)
    ],
    Piece = fun(I) -> integer_to_binary(1000000 + I) end,
    [
        begin
            ok = gun:data(Gun, S, Fin, Piece(I)),
            timer:sleep(1)
        end
     || Fin <- [nofin, nofin, nofin, fin], {I, S} <- Streams
    ],
    [
        begin
            {response, nofin, Status, _} = gun:await(Gun, S, 10000),
            {ok, Body} = gun:await_body(Gun, S, 10000),
            true = Body =:= binary:copy(Piece(I), 4),
            io_lib:format("POST /echo ~b~n", [Status])
        end
     || {I, S} <- Streams
    ].

http2(Port) ->
    {ok, _} = application:ensure_all_started(gun),
    {ok, Gun} = gun:open({127, 0, 0, 1}, Port, #{protocols => [http2], retry => 0}),
    {ok, http2} = gun:await_up(Gun),
    Gun.

%% Reads frames of HTTP/2 until one of each of the streams is such that Which tells it.
frames(_, _, [], Bytes) ->
    Bytes;
frames(S, Which, Ids, Bytes) ->
    case cow_http2:parse(Bytes) of
        {ok, Frame, Rest} ->
            frames(S, Which, Ids -- [Which(Frame)], Rest);
        {ignore, Rest} ->
            frames(S, Which, Ids, Rest);
        more ->
            {ok, More} = gen_tcp:recv(S, 0, 60000),
            frames(S, Which, Ids, <<Bytes/binary, More/binary>>)
    end.

%% The status, or nothing when the connection is closed without one, or so long nothing comes.
answer(Port, Bytes, Ms) ->
    {ok, S} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}, {packet, raw}]),
    ok = gen_tcp:send(S, Bytes),
    Answer = gen_tcp:recv(S, 0, Ms),
    ok = gen_tcp:close(S),
    case Answer of
        {ok, <<"HTTP/1.", _, " ", Status:3/binary, _/binary>>} -> Status;
        _ -> none
    end.

%% The statuses of N answers that have a content-length.
answers(_, 0, _) ->
    [];
answers(S, N, Bytes) ->
    case binary:split(Bytes, <<"\r\n\r\n">>) of
        [<<"HTTP/1.", _, " ", Status:3/binary, _/binary>> = Head, Rest] ->
            {match, [Length]} = re:run(Head, "content-length: *([0-9]+)", [
                caseless, {capture, all_but_first, list}
            ]),
            [
                binary_to_integer(Status)
                | answers(S, N - 1, behind(S, Rest, list_to_integer(Length)))
            ];
        [_] ->
            {ok, More} = gen_tcp:recv(S, 0, 60000),
            answers(S, N, <<Bytes/binary, More/binary>>)
    end.

behind(_, Bytes, Length) when byte_size(Bytes) >= Length ->
    binary_part(Bytes, Length, byte_size(Bytes) - Length);
behind(S, Bytes, Length) ->
    {ok, More} = gen_tcp:recv(S, 0, 60000),
    behind(S, <<Bytes/binary, More/binary>>, Length).
