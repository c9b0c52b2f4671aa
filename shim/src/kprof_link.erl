%% @doc The two connections to the collector: how they are opened, and the form of the messages on the first.
-module(kprof_link).

-export([connect/3, open_data/4, send/2, decode/1, close/1]).

-define(CONNECT_MS, 2000).
-define(WELCOME_MS, 3000).
-define(MAX_FRAME, 1048576).
-define(SNDBUF, 262144).

-type host() :: inet:ip_address() | inet:hostname().
-type message() :: #{binary() => kprof_msgpack:value()}.

%% @doc Opens the control connection: hello, then welcome. Takes 5 seconds at most. Errors: what gen_tcp says,
%% `timeout', `{bye, Text}' when the collector refuses, `{protocol, _}' when it is none.
-spec connect(host(), inet:port_number(), message() | map()) ->
          {ok, gen_tcp:socket(), Session :: integer(), Key :: binary()} | {error, term()}.
connect(Host, Port, Hello) ->
    Options = [binary, {active, false}, {packet, 4}, {packet_size, ?MAX_FRAME}, {nodelay, true}, {keepalive, true},
               {send_timeout, 5000}, {send_timeout_close, true}],
    case gen_tcp:connect(Host, Port, Options, ?CONNECT_MS) of
        {ok, Socket} ->
            Deadline = erlang:monotonic_time(millisecond) + ?WELCOME_MS,
            case send(Socket, Hello) of
                ok -> welcome(Socket, Deadline);
                {error, _} -> failed(Socket, closed)
            end;
        Error ->
            Error
    end.

welcome(Socket, Deadline) ->
    case gen_tcp:recv(Socket, 0, max(0, Deadline - erlang:monotonic_time(millisecond))) of
        {ok, Bytes} ->
            case decode(Bytes) of
                {ok, #{<<"type">> := <<"welcome">>, <<"session">> := Session, <<"key">> := {bin, Key}}} ->
                    {ok, Socket, Session, Key};
                {ok, #{<<"type">> := <<"bye">>} = Bye} ->
                    failed(Socket, {bye, maps:get(<<"reason">>, Bye, <<"no reason given">>)});
                {ok, #{<<"type">> := _}} ->
                    welcome(Socket, Deadline);
                Bad ->
                    failed(Socket, {protocol, Bad})
            end;
        {error, emsgsize} ->
            failed(Socket, {protocol, emsgsize});
        {error, Why} ->
            failed(Socket, Why)
    end.

failed(Socket, Why) ->
    close(Socket),
    {error, Why}.

%% @doc Opens the data connection of a session: one hello, raw bytes after it.
-spec open_data(host(), inet:port_number(), integer(), binary()) -> {ok, gen_tcp:socket()} | {error, term()}.
open_data(Host, Port, Session, Key) ->
    %% no send_timeout: a slow collector makes the relay wait, and the trace port drop
    Options = [binary, {active, false}, {packet, raw}, {nodelay, true}, {keepalive, true}, {sndbuf, ?SNDBUF}],
    case gen_tcp:connect(Host, Port, Options, ?CONNECT_MS) of
        {ok, Socket} ->
            Hello = iolist_to_binary(kprof_msgpack:encode(#{type => <<"hello">>, role => <<"data">>, protocol => 1,
                                                            session => Session, key => {bin, Key}})),
            case gen_tcp:send(Socket, [<<(byte_size(Hello)):32>>, Hello]) of
                ok -> {ok, Socket};
                {error, Why} -> failed(Socket, Why)
            end;
        Error ->
            Error
    end.

%% @doc Sends one message on the control connection; waits 5 seconds at most, then the connection is closed.
-spec send(gen_tcp:socket(), map()) -> ok | {error, term()}.
send(Socket, Message) ->
    gen_tcp:send(Socket, kprof_msgpack:encode(Message)).

%% @doc One message of the control connection.
-spec decode(binary()) -> {ok, message()} | {error, term()}.
decode(Bytes) ->
    case kprof_msgpack:decode(Bytes) of
        {ok, Map} when is_map(Map) -> {ok, Map};
        {ok, _} -> {error, no_map};
        Error -> Error
    end.

%% @doc Closes a connection; closed already is fine.
-spec close(gen_tcp:socket()) -> ok.
close(Socket) ->
    _ = gen_tcp:close(Socket),
    ok.
