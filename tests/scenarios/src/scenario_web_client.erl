%% What curl cannot do, against the web servers of scenarios 30 to 34: several requests sent before the first answer is read, and a
%% client that leaves in the middle of an answer; and streams of HTTP/2 whose bodies come in turns, by gun. Prints a line METHOD PATH STATUS for each, as the scenarios let curl do.
%%   erl -run scenario_web_client main PORT pipeline|leave|abandon|refused|early|upgrade|streams N
-module(scenario_web_client).

-export([main/1]).

-spec main([string()]) -> no_return().
main([Port, What, N]) ->
    try run(list_to_atom(What), list_to_integer(Port), list_to_integer(N)) of
        Lines -> io:put_chars(Lines), halt(0)
    catch
        Class:Why:Stack -> io:format(standard_error, "~0tp: ~0tp ~0tP~n", [Class, Why, Stack, 20]), halt(1)
    end.

%% Ids of requests on one connection, without waiting.
run(pipeline, Port, N) ->
    {ok, S} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}, {packet, raw}]),
    Paths = [case I rem 5 of 0 -> "/fail"; _ -> ["/users/", integer_to_list(I)] end || I <- lists:seq(1, N)],
    ok = gen_tcp:send(S, [["GET ", P, " HTTP/1.1\r\nHost: h\r\n\r\n"] || P <- Paths]),
    Answers = answers(S, N, <<>>),
    [io_lib:format("GET ~s ~b~n", [P, Status]) || {P, Status} <- lists:zip(Paths, Answers)];
%% Clients that read the first bytes of a long answer and go.
run(leave, Port, N) ->
    [begin
         {ok, S} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}, {packet, raw}]),
         ok = gen_tcp:send(S, "GET /endless HTTP/1.1\r\nHost: h\r\n\r\n"),
         {ok, <<"HTTP/1.1 ", Status:3/binary, _/binary>>} = gen_tcp:recv(S, 100, 10000),
         ok = gen_tcp:close(S),
         ["GET /endless ", Status, $\n]
     end || _ <- lists:seq(1, N)];
%% Clients that go in the middle of their own body.
run(abandon, Port, N) ->
    [begin
         {ok, S} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}, {packet, raw}]),
         ok = gen_tcp:send(S, ["POST /upload HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n", lists:duplicate(9000, $x)]),
         timer:sleep(200),
         ok = gen_tcp:close(S),
         "POST /upload 000\n"
     end || _ <- lists:seq(1, N)];
%% What is no request: no server may hand it to its application.
run(refused, Port, N) ->
    [_ = answer(Port, Bytes) || _ <- lists:seq(1, N), Bytes <- ["nonsense\r\n\r\n", "GET\r\n\r\n", <<0, 1, 2, 3, "\r\n\r\n">>]],
    [];
%% The same, as cowboy tells it: a bad line, a header that is too long, a request that does not come in time.
run(early, Port, N) ->
    [[<<"400">>, <<"431">>, <<"408">>] =
         [answer(Port, Bytes) || Bytes <- ["nonsense\r\n\r\n", ["GET / HTTP/1.1\r\nHost: h\r\nX: ", lists:duplicate(10000, $x), "\r\n\r\n"],
                                           "GET / HTTP/1.1\r\nHost: h\r\n"]] || _ <- lists:seq(1, N)],
    [];
%% A websocket: a request, and afterwards one message there and back.
run(upgrade, Port, N) ->
    [begin
         {ok, S} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}, {packet, raw}]),
         ok = gen_tcp:send(S, "GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                              "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"),
         {ok, <<"HTTP/1.1 101", _/binary>>} = gen_tcp:recv(S, 0, 5000),
         ok = gen_tcp:send(S, [<<1:1, 0:3, 1:4, 1:1, 2:7, 0:32>>, "hi"]),
         {ok, <<1:1, 0:3, 1:4, 0:1, 2:7, "hi">>} = gen_tcp:recv(S, 4, 5000),
         ok = gen_tcp:close(S),
         "GET /ws 101\n"
     end || _ <- lists:seq(1, N)];
run(streams, Port, N) ->
    {ok, _} = application:ensure_all_started(gun),
    {ok, Gun} = gun:open({127, 0, 0, 1}, Port, #{protocols => [http2]}),
    {ok, http2} = gun:await_up(Gun),
    Streams = [{I, gun:post(Gun, "/echo", [{<<"content-type">>, "text/plain"}])} || I <- lists:seq(1, N)],
    Piece = fun(I) -> integer_to_binary(1000000 + I) end,
    [begin ok = gun:data(Gun, S, Fin, Piece(I)), timer:sleep(1) end || Fin <- [nofin, nofin, nofin, fin], {I, S} <- Streams],
    [begin
         {response, nofin, Status, _} = gun:await(Gun, S, 10000),
         {ok, Body} = gun:await_body(Gun, S, 10000),
         true = Body =:= binary:copy(Piece(I), 4),
         io_lib:format("POST /echo ~b~n", [Status])
     end || {I, S} <- Streams].

%% The status, or nothing when the connection is closed without one.
answer(Port, Bytes) ->
    {ok, S} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}, {packet, raw}]),
    ok = gen_tcp:send(S, Bytes),
    Answer = gen_tcp:recv(S, 0, 3000),
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
        [<<"HTTP/1.1 ", Status:3/binary, _/binary>> = Head, Rest] ->
            {match, [Length]} = re:run(Head, "content-length: *([0-9]+)", [caseless, {capture, all_but_first, list}]),
            [binary_to_integer(Status) | answers(S, N - 1, behind(S, Rest, list_to_integer(Length)))];
        [_] ->
            {ok, More} = gen_tcp:recv(S, 0, 10000),
            answers(S, N, <<Bytes/binary, More/binary>>)
    end.

behind(_, Bytes, Length) when byte_size(Bytes) >= Length ->
    binary_part(Bytes, Length, byte_size(Bytes) - Length);
behind(S, Bytes, Length) ->
    {ok, More} = gen_tcp:recv(S, 0, 10000),
    behind(S, <<Bytes/binary, More/binary>>, Length).
