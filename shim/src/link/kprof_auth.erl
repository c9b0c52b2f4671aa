%% SPDX-License-Identifier: Apache-2.0
%% @doc The shared secret, and the handshake in which the shim and the collector prove to each other
%% that they know it. Pure: what is sent and received is {@link kprof_link}'s. include/net/auth.h
%% tells the messages, and what they are worth.
-module(kprof_auth).

-export([available/0, secret/1, read_file/1, start/3, answer/3, confirm/3]).

-include_lib("kernel/include/file.hrl").

-export_type([secret/0, handshake/0]).

-define(LEAST, 16).
-define(MOST, 1024).
-define(NONCE, 32).

-opaque secret() :: fun(() -> binary()).
%% In a fun, so that no crash report or trace of a state shows it.

-opaque handshake() :: iodata().
%% All frames so far, with their lengths.

%% @doc Whether this node can do it: HMAC comes from OTP's application crypto, which a release may
%% leave out.
-spec available() -> boolean().
available() ->
    code:ensure_loaded(crypto) =:= {module, crypto}.

%% @doc A secret given as bytes. Newlines at its end do not count.
-spec secret(term()) -> {ok, secret()} | {error, empty | short | long | no_binary}.
secret(Bytes) when is_binary(Bytes) ->
    case trim(Bytes) of
        <<>> -> {error, empty};
        Secret when byte_size(Secret) < ?LEAST -> {error, short};
        Secret when byte_size(Secret) > ?MOST -> {error, long};
        Secret -> {ok, fun() -> Secret end}
    end;
secret(_) ->
    {error, no_binary}.

trim(Bytes) ->
    Size = byte_size(Bytes) - 1,
    case Bytes of
        <<Rest:Size/binary, Last>> when Last =:= $\n; Last =:= $\r -> trim(Rest);
        _ -> Bytes
    end.

%% @doc A secret from a file, which must be closed to others than its owner and group.
-spec read_file(file:name_all()) ->
    {ok, secret()}
    | {error,
        empty
        | short
        | long
        | no_file
        | {mode, non_neg_integer()}
        | file:posix()
        | badarg
        | terminated
        | system_limit}.
read_file(Path) ->
    case file:read_file_info(Path, [raw]) of
        {ok, #file_info{type = Type}} when Type =/= regular -> {error, no_file};
        {ok, #file_info{mode = Mode}} when Mode band 8#007 =/= 0 ->
            {error, {mode, Mode band 8#777}};
        {ok, _} ->
            read(file:open(Path, [read, raw, binary]));
        Error ->
            Error
    end.

%% Not the whole of a file that happens to be large.
read({ok, File}) ->
    Read = file:read(File, ?MOST + 3),
    ok = file:close(File),
    case Read of
        {ok, Bytes} -> secret(Bytes);
        eof -> {error, empty};
        Error -> Error
    end;
read(Error) ->
    Error.

%% @doc The first message. Role is `control', or `data' with the number of its session. Certificate
%% is the collector's, as DER, where the connection is one of TLS.
-spec start(control | data, undefined | integer(), undefined | binary()) ->
    {Payload :: binary(), handshake()}.
start(Role, Session, Certificate) ->
    Seen =
        case Certificate of
            undefined -> undefined;
            _ -> crypto:hash(sha256, Certificate)
        end,
    Payload = encode(kprof_protocol:auth(Role, Session, Seen, crypto:strong_rand_bytes(?NONCE))),
    {Payload, frame(Payload)}.

%% @doc The answer to the collector's challenge.
-spec answer(secret(), Challenge :: binary(), handshake()) ->
    {ok, Payload :: binary(), handshake()} | error.
answer(Secret, Challenge, Frames0) ->
    case kprof_protocol:decode(Challenge) of
        {ok, {challenge, <<_:?NONCE/binary>>}} ->
            Frames = [Frames0 | frame(Challenge)],
            Payload = encode(
                kprof_protocol:answer(hmac(Secret, <<"kprof 1 client">>, Frames))
            ),
            {ok, Payload, [Frames | frame(Payload)]};
        _ ->
            error
    end.

%% @doc Checks the collector's own proof. What is returned proves that a data connection belongs to
%% the control connection that this was.
-spec confirm(secret(), Proven :: binary(), handshake()) -> {ok, SessionKey :: secret()} | error.
confirm(Secret, Proven, Frames0) ->
    Wanted = hmac(Secret, <<"kprof 1 collector">>, Frames0),
    case kprof_protocol:decode(Proven) of
        {ok, {proven, <<Proof:32/binary>>}} ->
            case crypto:hash_equals(Wanted, Proof) of
                true ->
                    Key = hmac(Secret, <<"kprof 1 session">>, [Frames0 | frame(Proven)]),
                    {ok, fun() -> Key end};
                false ->
                    error
            end;
        _ ->
            error
    end.

hmac(Secret, Label, Frames) ->
    crypto:mac(hmac, sha256, Secret(), [Label, 0, Frames]).

encode(Message) ->
    iolist_to_binary(kprof_protocol:encode(Message)).

frame(Payload) ->
    [<<(byte_size(Payload)):32>>, Payload].
