%% SPDX-License-Identifier: Apache-2.0
%% @doc The two connections to the collector: how they are opened, and the form of the messages on
%% the first.
-module(kprof_link).

-export([connect/2, open_data/3, send/2, active/1, finish/1, close/1]).

-export_type([target/0, connection/0, session/0]).

-define(CONNECT_MS, 2000).
-define(WELCOME_MS, 3000).
-define(FINISH_MS, 1000).
-define(MAX_FRAME, 1048576).
-define(SNDBUF, 262144).

-type target() :: #{
    host := inet:ip_address() | inet:hostname(),
    port := inet:port_number(),
    secret => undefined | kprof_auth:secret(),
    tls => undefined | kprof_tls:options()
}.
%% Where the collector is. With `secret', nothing is said before both sides have proven that they
%% know it; with `tls', through TLS.
-type connection() :: {gen_tcp, gen_tcp:socket()} | {ssl, ssl:sslsocket()}.
%% The module whose functions the socket is for. Messages `{tcp | ssl, Socket, Bytes}', `{tcp_closed
%% | ssl_closed, Socket}' and `{tcp_error | ssl_error, Socket, Why}' come from an active one.
-opaque session() :: {integer(), Key :: binary(), undefined | kprof_auth:secret()}.
%% What a data connection proves with that it belongs to the control connection.

%% @doc Opens the control connection: handshakes, hello, then welcome. Takes 7 seconds at most.
%% Errors: what gen_tcp and ssl say, `timeout', `no_tls' when it closes instead of speaking TLS,
%% `{bye, Text}' when it refuses, `unproven' when it does not know the secret, `{protocol, _}' when
%% it is no collector.
-spec connect(target(), kprof_protocol:message()) ->
    {ok, connection(), session()} | {error, term()}.
connect(Target, Hello) ->
    Options = [{packet_size, ?MAX_FRAME}, {send_timeout, 5000}, {send_timeout_close, true}],
    opened(
        Target,
        Options,
        control,
        undefined,
        maps:get(secret, Target, undefined),
        fun(Connection, Key, Deadline) ->
            case send(Connection, Hello) of
                ok -> welcome(Connection, Key, Deadline);
                {error, _} -> {error, closed}
            end
        end
    ).

welcome(Connection, SessionKey, Deadline) ->
    case next(Connection, Deadline) of
        {ok, {welcome, Id, Key}, _} ->
            {ok, Connection, {Id, Key, SessionKey}};
        {ok, {bye, _} = Bye, _} ->
            {error, Bye};
        {ok, _, _} ->
            welcome(Connection, SessionKey, Deadline);
        Error ->
            Error
    end.

%% @doc Opens a data connection of a session: handshakes, one hello, raw bytes after it. `Stream' is
%% its number.
-spec open_data(target(), session(), Stream :: non_neg_integer()) ->
    {ok, connection()} | {error, term()}.
open_data(Target, {Id, Key, SessionKey}, Stream) ->
    %% no send_timeout: a slow collector makes the relay wait, and the trace port drop
    opened(
        Target,
        [{sndbuf, ?SNDBUF}],
        data,
        Id,
        SessionKey,
        fun({Module, Socket} = Connection, _, _) ->
            Sent = send(Connection, kprof_protocol:data_hello(Id, Key, Stream)),
            case Sent =:= ok andalso setopts(Module, Socket, [{packet, raw}]) of
                ok -> {ok, Connection};
                false -> Sent;
                Error -> Error
            end
        end
    ).

%% Opens a connection and proves the secret; then Use goes on. On an error it is closed.
opened(#{host := Host, port := Port} = Target, More, Role, Id, Secret, Use) ->
    Options = [binary, {active, false}, {packet, 4}, {nodelay, true}, {keepalive, true} | More],
    case open(Host, Port, Options, maps:get(tls, Target, undefined)) of
        {ok, Connection} ->
            Deadline = erlang:monotonic_time(millisecond) + ?WELCOME_MS,
            Result =
                case authenticate(Connection, Role, Id, Secret, Deadline) of
                    {ok, Key} -> Use(Connection, Key, Deadline);
                    Failed -> Failed
                end,
            _ = is_tuple(Result) andalso element(1, Result) =:= error andalso close(Connection),
            Result;
        Error ->
            Error
    end.

open(Host, Port, Options, undefined) ->
    case gen_tcp:connect(Host, Port, Options, ?CONNECT_MS) of
        {ok, Socket} -> {ok, {gen_tcp, Socket}};
        Error -> Error
    end;
open(Host, Port, Options, Tls) ->
    case ssl:connect(Host, Port, Options ++ Tls(), ?CONNECT_MS) of
        {ok, Socket} -> {ok, {ssl, Socket}};
        {error, Gone} when Gone =:= closed; Gone =:= econnreset -> {error, no_tls};
        Error -> Error
    end.

authenticate(_, _, _, undefined, _) ->
    {ok, undefined};
authenticate(Connection, Role, Id, Secret, Deadline) ->
    {Auth, Begun} = kprof_auth:start(Role, Id, certificate(Connection)),
    case exchange(Connection, Auth, Deadline) of
        {ok, Challenge} ->
            case kprof_auth:answer(Secret, Challenge, Begun) of
                {ok, Answer, Answered} -> confirm(Connection, Secret, Answer, Answered, Deadline);
                error -> {error, unproven}
            end;
        Error ->
            Error
    end.

%% The one that the collector has shown. A connection that has ended meanwhile has none: what is
%% sent next tells.
certificate({ssl, Socket}) ->
    case ssl:peercert(Socket) of
        {ok, Der} -> Der;
        {error, _} -> <<>>
    end;
certificate({gen_tcp, _}) ->
    undefined.

confirm(Connection, Secret, Answer, Answered, Deadline) ->
    case exchange(Connection, Answer, Deadline) of
        {ok, Proven} ->
            case kprof_auth:confirm(Secret, Proven, Answered) of
                {ok, _} = Key -> Key;
                error -> {error, unproven}
            end;
        Error ->
            Error
    end.

%% Sends a frame of the handshake. The bytes of what answers it, unless that is a refusal.
exchange({Module, Socket} = Connection, Frame, Deadline) ->
    case Module:send(Socket, Frame) =:= ok andalso next(Connection, Deadline) of
        {ok, {bye, _} = Bye, _} -> {error, Bye};
        {ok, _, Bytes} -> {ok, Bytes};
        false -> {error, closed};
        Error -> Error
    end.

%% The next message: what it says, and its bytes.
next({Module, Socket}, Deadline) ->
    case Module:recv(Socket, 0, max(0, Deadline - erlang:monotonic_time(millisecond))) of
        {ok, Bytes} ->
            case kprof_protocol:decode(Bytes) of
                {ok, Message} -> {ok, Message, Bytes};
                {error, Why} -> {error, {protocol, Why}}
            end;
        {error, emsgsize} ->
            {error, {protocol, emsgsize}};
        Error ->
            Error
    end.

%% @doc Sends one message on the control connection; waits 5 seconds at most, then the connection is
%% closed.
-spec send(connection(), kprof_protocol:message()) -> ok | {error, term()}.
send({Module, Socket}, Message) ->
    Module:send(Socket, kprof_protocol:encode(Message)).

%% @doc Has the next message sent to the connection's owner.
-spec active(connection()) -> ok | {error, term()}.
active({Module, Socket}) ->
    setopts(Module, Socket, [{active, once}]).

setopts(gen_tcp, Socket, Options) -> inet:setopts(Socket, Options);
setopts(ssl, Socket, Options) -> ssl:setopts(Socket, Options).

%% @doc Has what was sent arrive before the connection is closed: says that no more comes, and drops
%% what comes until the other side closes, for a second at most. A socket that is closed while
%% something lies in it unread takes back what is on its way (RFC 1122, 4.2.2.13).
-spec finish(connection()) -> ok.
finish({Module, Socket} = Connection) ->
    Deadline = erlang:monotonic_time(millisecond) + ?FINISH_MS,
    try
        _ = setopts(Module, Socket, [{active, false}]),
        _ = Module:shutdown(Socket, write) =:= ok andalso drop(Connection, Deadline),
        ok
    catch
        % ssl is stopped
        _:_ -> ok
    end.

drop({Module, Socket} = Connection, Deadline) ->
    case Module:recv(Socket, 0, max(0, Deadline - erlang:monotonic_time(millisecond))) of
        {ok, _} -> drop(Connection, Deadline);
        {error, _} -> ok
    end.

%% @doc Closes a connection; closed already is fine.
-spec close(connection()) -> ok.
close({Module, Socket}) ->
    try Module:close(Socket) of
        _ -> ok
    catch
        % ssl is stopped
        _:_ -> ok
    end.
