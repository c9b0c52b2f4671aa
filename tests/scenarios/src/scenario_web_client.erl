%% What curl cannot do, against the web servers of scenarios 30 to 34: several requests sent before the first answer is read, and a
%% client that leaves in the middle of an answer; and streams of HTTP/2 whose bodies come in turns, by gun. Prints a line METHOD PATH STATUS for each, as the scenarios let curl do.
%%   erl -run scenario_web_client main PORT pipeline|leave|streams N
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
