%% SPDX-License-Identifier: Apache-2.0
%% HTTP on a passive socket, both sides: one message in ({packet, http_bin} head, then the body),
%% one out. Heads and bodies are bounded.
-module(shop_wire).

-export([options/0, recv/2, respond/4, send_request/4]).

-define(MOST_HEADERS, 100).
-define(MOST_BODY, 1048576).

-type start() ::
    {http_request, atom() | binary(), term(), {integer(), integer()}}
    | {http_response, {integer(), integer()}, integer(), binary()}.

-spec options() -> [gen_tcp:option()].
options() ->
    [binary, {packet, http_bin}, {active, false}, {nodelay, true}].

%% The next message: its first line, whether the other side keeps the connection, its body.
-spec recv(gen_tcp:socket(), timeout()) -> {ok, start(), boolean(), binary()} | {error, term()}.
recv(Socket, Timeout) ->
    case gen_tcp:recv(Socket, 0, Timeout) of
        {ok, {http_error, _}} -> {error, malformed};
        {ok, Start} -> headers(Socket, Timeout, Start, {0, true}, ?MOST_HEADERS);
        {error, _} = Error -> Error
    end.

headers(_Socket, _Timeout, _Start, _Head, 0) ->
    {error, too_many_headers};
headers(Socket, Timeout, Start, {Length, Keep} = Head, Left) ->
    case gen_tcp:recv(Socket, 0, Timeout) of
        {ok, {http_header, _, 'Content-Length', _, Text}} ->
            headers(Socket, Timeout, Start, {length_of(Text), Keep}, Left - 1);
        {ok, {http_header, _, 'Connection', _, Text}} ->
            Stay = string:lowercase(Text) =/= <<"close">>,
            headers(Socket, Timeout, Start, {Length, Stay}, Left - 1);
        {ok, {http_header, _, _, _, _}} ->
            headers(Socket, Timeout, Start, Head, Left - 1);
        {ok, http_eoh} ->
            case body(Socket, Timeout, Length) of
                {ok, Body} -> {ok, Start, Keep, Body};
                {error, _} = Error -> Error
            end;
        {ok, _} ->
            {error, malformed};
        {error, _} = Error ->
            Error
    end.

length_of(Text) ->
    try
        binary_to_integer(Text)
    catch
        error:badarg -> -1
    end.

body(_Socket, _Timeout, 0) ->
    {ok, <<>>};
body(Socket, Timeout, Length) when Length > 0, Length =< ?MOST_BODY ->
    %% A socket that closes meanwhile refuses setopts; recv then says so.
    _ = inet:setopts(Socket, [{packet, raw}]),
    Body = gen_tcp:recv(Socket, Length, Timeout),
    _ = inet:setopts(Socket, [{packet, http_bin}]),
    Body;
body(_Socket, _Timeout, _Length) ->
    {error, bad_length}.

-spec respond(gen_tcp:socket(), 100..599, boolean(), iodata()) -> ok | {error, term()}.
respond(Socket, Status, Keep, Body) ->
    Connection =
        case Keep of
            true -> "keep-alive";
            false -> "close"
        end,
    send(
        Socket,
        [
            "HTTP/1.1 ",
            integer_to_list(Status),
            " ",
            phrase(Status),
            "\r\nConnection: ",
            Connection
        ],
        Body
    ).

-spec send_request(gen_tcp:socket(), iodata(), iodata(), iodata()) -> ok | {error, term()}.
send_request(Socket, Method, Target, Body) ->
    send(Socket, [Method, " ", Target, " HTTP/1.1\r\nHost: shop"], Body).

send(Socket, Head, Body) ->
    gen_tcp:send(Socket, [
        Head,
        "\r\nContent-Length: ",
        integer_to_list(iolist_size(Body)),
        "\r\n\r\n",
        Body
    ]).

phrase(200) -> "OK";
phrase(201) -> "Created";
phrase(404) -> "Not Found";
phrase(500) -> "Internal Server Error".
