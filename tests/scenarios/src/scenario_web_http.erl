%% SPDX-License-Identifier: Apache-2.0
%% A small HTTP/1.1 server, for the helpers of servers that Debian does not have: what such a server
%% does with its callbacks is done by the modules that start this one. A process serves its
%% connection's requests one after the other.
-module(scenario_web_http).

-export([start/1, reply/4, begin_chunks/2, chunk/2]).

-type request() :: #{
    method := binary(),
    path := binary(),
    headers := [{binary(), binary()}],
    body := binary(),
    socket := gen_tcp:socket()
}.
%% Names of headers are in lower case.

%% Serve answers one request, and says whether the connection stays.
-spec start(fun((request()) -> keep | close)) -> inet:port_number().
start(Serve) ->
    Self = self(),
    _ = spawn(fun() ->
        {ok, L} = gen_tcp:listen(
            0,
            [
                binary,
                {ip, {127, 0, 0, 1}},
                {active, false},
                {packet, http_bin},
                {nodelay, true},
                {backlog, 100}
            ]
        ),
        {ok, Port} = inet:port(L),
        Self ! {self(), Port},
        accept(L, Serve)
    end),
    receive
        {_, Port} when is_integer(Port) -> Port
    end.

accept(L, Serve) ->
    {ok, S} = gen_tcp:accept(L),
    Pid = spawn(fun() ->
        receive
            go -> serve(S, Serve)
        end
    end),
    ok = gen_tcp:controlling_process(S, Pid),
    Pid ! go,
    accept(L, Serve).

serve(S, Serve) ->
    ok = inet:setopts(S, [{packet, http_bin}]),
    case gen_tcp:recv(S, 0) of
        {ok, {http_request, Method, {abs_path, Path}, _}} ->
            Headers = headers(S),
            ok = inet:setopts(S, [{packet, raw}]),
            Body = body(S, Headers),
            case
                Serve(#{
                    method => to_binary(Method),
                    path => Path,
                    headers => Headers,
                    body => Body,
                    socket => S
                })
            of
                keep -> serve(S, Serve);
                close -> gen_tcp:close(S)
            end;
        {error, _} ->
            ok
    end.

headers(S) ->
    case gen_tcp:recv(S, 0) of
        {ok, {http_header, _, Name, _, Value}} ->
            [{string:lowercase(to_binary(Name)), Value} | headers(S)];
        {ok, http_eoh} ->
            []
    end.

body(S, Headers) ->
    case proplists:get_value(<<"expect">>, Headers) of
        undefined -> ok;
        _ -> ok = gen_tcp:send(S, "HTTP/1.1 100 Continue\r\n\r\n")
    end,
    case
        {
            proplists:get_value(<<"transfer-encoding">>, Headers),
            proplists:get_value(<<"content-length">>, Headers)
        }
    of
        {<<"chunked">>, _} ->
            iolist_to_binary(chunks(S));
        {_, undefined} ->
            <<>>;
        {_, <<"0">>} ->
            <<>>;
        {_, Length} ->
            {ok, Body} = gen_tcp:recv(S, binary_to_integer(Length)),
            Body
    end.

chunks(S) ->
    ok = inet:setopts(S, [{packet, line}]),
    {ok, Line} = gen_tcp:recv(S, 0),
    ok = inet:setopts(S, [{packet, raw}]),
    case binary_to_integer(string:trim(Line), 16) of
        0 ->
            {ok, _} = gen_tcp:recv(S, 2),
            [];
        Size ->
            {ok, Bytes} = gen_tcp:recv(S, Size + 2),
            [binary_part(Bytes, 0, Size) | chunks(S)]
    end.

-spec reply(gen_tcp:socket(), pos_integer(), [{iodata(), iodata()}], iodata()) ->
    ok | {error, term()}.
reply(S, Status, Headers, Body) ->
    gen_tcp:send(S, [
        head(Status, [{"Content-Length", integer_to_list(iolist_size(Body))} | Headers]), Body
    ]).

-spec begin_chunks(gen_tcp:socket(), pos_integer()) -> ok | {error, term()}.
begin_chunks(S, Status) ->
    gen_tcp:send(S, head(Status, [{"Transfer-Encoding", "chunked"}])).

%% <<>> is the last.
-spec chunk(gen_tcp:socket(), iodata()) -> ok | {error, term()}.
chunk(S, Data) ->
    gen_tcp:send(S, [integer_to_list(iolist_size(Data), 16), "\r\n", Data, "\r\n"]).

head(Status, Headers) ->
    [
        "HTTP/1.1 ",
        integer_to_list(Status),
        " whatever\r\n",
        [[K, ": ", V, "\r\n"] || {K, V} <- Headers],
        "\r\n"
    ].

to_binary(A) when is_atom(A) -> atom_to_binary(A, utf8);
to_binary(B) -> B.
