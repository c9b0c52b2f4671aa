%% SPDX-License-Identifier: Apache-2.0
%% A load of HTTP requests from a program of its own, which measures each of them: from before it is
%% sent until its answer has been read to the end.
%%
%%   erl -noinput -run scenario_load main PORT CLIENTS REQUESTS THINK FILE
%%
%% FILE is of Erlang terms: {Identity, Method, Path, Headers, Body} each (CLIENT in a body stands
%% for the client's number), which the clients send in turn, REQUESTS each, over a connection each
%% that stays open as far as the server lets it, and think so many milliseconds after each. Prints
%% IDENTITY|REQUESTS|FAILED|MICROSECONDS for each identity; failed is a status other than 2xx.
-module(scenario_load).

-export([main/1]).

-spec main([string()]) -> no_return().
main([Port, Clients, Requests, Think, File]) ->
    {ok, Kinds} = file:consult(File),
    Self = self(),
    N = list_to_integer(Clients),
    _ = [
        spawn_link(fun() ->
            Self !
                {seen,
                    client(
                        list_to_integer(Port),
                        list_to_integer(Think),
                        [own(I, Kind) || Kind <- turned(I, Kinds)],
                        list_to_integer(Requests)
                    )}
        end)
     || I <- lists:seq(1, N)
    ],
    Seen = lists:foldl(
        fun(_, Sums) ->
            receive
                {seen, More} -> maps:merge_with(fun(_, A, B) -> add(A, B) end, Sums, More)
            end
        end,
        #{},
        lists:seq(1, N)
    ),
    _ = [
        io:format("~ts|~b|~b|~b~n", [Identity, Count, Failed, Ns div 1000])
     || {Identity, {Count, Failed, Ns}} <- lists:sort(maps:to_list(Seen))
    ],
    halt(0).

add({A, B, C}, {D, E, F}) -> {A + D, B + E, C + F}.

own(I, {Identity, Method, Path, Headers, Body}) ->
    {Identity, Method, Path, Headers, string:replace(Body, "CLIENT", integer_to_list(I), all)}.

%% Each client begins with another kind.
turned(I, Kinds) ->
    {First, Rest} = lists:split(I rem length(Kinds), Kinds),
    Rest ++ First.

client(Port, Think, Kinds, N) ->
    client({Port, Think}, closed, [], Kinds, N, #{}).

client(_, _, _, _, 0, Seen) ->
    Seen;
client(How, Socket, [], Kinds, N, Seen) ->
    client(How, Socket, Kinds, Kinds, N, Seen);
client({Port, _} = How, closed, Turn, Kinds, N, Seen) ->
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [
        binary, {active, false}, {nodelay, true}
    ]),
    client(How, Socket, Turn, Kinds, N, Seen);
client(
    {_, Think} = How, Socket, [{Identity, Method, Path, Headers, Body} | Turn], Kinds, N, Seen
) ->
    Request = [
        Method,
        " ",
        Path,
        " HTTP/1.1\r\nHost: localhost\r\n",
        [[K, ": ", V, "\r\n"] || {K, V} <- Headers],
        "Content-Length: ",
        integer_to_list(iolist_size(Body)),
        "\r\n\r\n",
        Body
    ],
    Before = erlang:monotonic_time(nanosecond),
    ok = gen_tcp:send(Socket, Request),
    {Status, Next} = answer(Socket),
    Took = erlang:monotonic_time(nanosecond) - Before,
    Failed =
        case Status div 100 of
            2 -> 0;
            _ -> 1
        end,
    timer:sleep(Think),
    client(
        How,
        Next,
        Turn,
        Kinds,
        N - 1,
        maps:update_with(
            Identity, fun(Sum) -> add(Sum, {1, Failed, Took}) end, {1, Failed, Took}, Seen
        )
    ).

%% The status, and the connection for the next request.
answer(Socket) ->
    ok = inet:setopts(Socket, [{packet, http_bin}]),
    {ok, {http_response, _, Status, _}} = gen_tcp:recv(Socket, 0, 20000),
    Headers = headers(Socket),
    case Headers of
        #{<<"transfer-encoding">> := <<"chunked">>} ->
            chunks(Socket);
        #{<<"content-length">> := <<"0">>} ->
            ok;
        #{<<"content-length">> := Length} ->
            ok = inet:setopts(Socket, [{packet, raw}]),
            {ok, _} = gen_tcp:recv(Socket, binary_to_integer(Length), 20000);
        _ when Status =:= 204; Status =:= 304 -> ok
    end,
    case Headers of
        #{<<"connection">> := <<"close">>} ->
            ok = gen_tcp:close(Socket),
            {Status, closed};
        _ ->
            {Status, Socket}
    end.

headers(Socket) ->
    case gen_tcp:recv(Socket, 0, 20000) of
        {ok, {http_header, _, Name, _, Value}} ->
            maps:put(string:lowercase(text(Name)), string:lowercase(Value), headers(Socket));
        {ok, http_eoh} ->
            #{}
    end.

text(A) when is_atom(A) -> atom_to_binary(A);
text(B) -> B.

chunks(Socket) ->
    ok = inet:setopts(Socket, [{packet, line}]),
    {ok, Line} = gen_tcp:recv(Socket, 0, 20000),
    ok = inet:setopts(Socket, [{packet, raw}]),
    Size = binary_to_integer(string:trim(hd(binary:split(Line, <<";">>))), 16),
    {ok, _} = gen_tcp:recv(Socket, Size + 2, 20000),
    Size =:= 0 orelse chunks(Socket).
