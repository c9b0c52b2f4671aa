%% SPDX-License-Identifier: Apache-2.0
%% @doc Options of TLS towards the collector. Its certificate is always verified: there is no option
%% to do without.
-module(kprof_tls).

-export([options/1, as_pem/1]).

-export_type([options/0, pem/0]).

-opaque options() :: fun(() -> [term()]).
%% What ssl:connect/4 takes. In a fun, so that no crash report shows the key.

%% @doc Checks the option `tls' of start_trace and reads its files. Starts the application ssl,
%% which stays started: by the time that tracing ends somebody else may use it.
-spec options(map()) -> options().
%% Throws reasons of kprof_error.
options(Map) ->
    lists:foreach(
        fun(Key) ->
            lists:member(Key, keys()) orelse
                throw({bad_tls, ["there is no ", io_lib:format("~0tP", [Key, 10])]})
        end,
        maps:keys(Map)
    ),
    started(),
    Ca =
        case content(cacertfile, cacerts, Map) of
            undefined -> system_cas();
            {Name, Pem} -> certificates(Name, Pem)
        end,
    Own = own(content(certfile, cert, Map), content(keyfile, key, Map)),
    Name1 =
        case maps:get(server_name, Map, undefined) of
            undefined -> [];
            Text -> [{server_name_indication, text(server_name, Text)}]
        end,
    Options = [
        {verify, verify_peer},
        {cacerts, Ca},
        {depth, 10},
        {versions, ['tlsv1.2', 'tlsv1.3']},
        {log_level, none},
        {customize_hostname_check, [{match_fun, public_key:pkix_verify_hostname_match_fun(https)}]}
        | Own ++ Name1
    ],
    fun() -> Options end.

-type pem() :: {
    Authorities :: binary(), Certificate :: binary(), Key :: binary(), ServerName :: binary()
}.
%% In PEM form, the last one but as text; empty where there is none.

%% @doc What options that were read hold, for somebody who has not their files.
-spec as_pem(options()) -> pem().
as_pem(Options) ->
    All = Options(),
    Certificates = fun(Key) ->
        encoded([
            {'Certificate', der(One), not_encrypted}
         || One <- proplists:get_value(Key, All, [])
        ])
    end,
    Key = encoded([{Type, Der, not_encrypted} || {Type, Der} <- [proplists:get_value(key, All)]]),
    {
        Certificates(cacerts),
        Certificates(cert),
        Key,
        unicode:characters_to_binary(proplists:get_value(server_name_indication, All, ""))
    }.

encoded(Entries) -> iolist_to_binary(public_key:pem_encode(Entries)).

% of the system's
der({cert, Der, _}) -> Der;
der(Der) -> Der.

keys() ->
    [cacertfile, cacerts, certfile, cert, keyfile, key, server_name].

started() ->
    case application:ensure_all_started(ssl) of
        {ok, _} -> ok;
        {error, _} -> throw({no_application, ssl, "TLS"})
    end.

%% The text of a PEM file, or given as such, and what to call it.
content(FileKey, TextKey, Map) ->
    case Map of
        #{FileKey := _, TextKey := _} ->
            throw(
                {bad_tls, [
                    atom_to_list(FileKey), " and ", atom_to_list(TextKey), " exclude each other"
                ]}
            );
        #{FileKey := Path} ->
            case file:read_file(text(FileKey, Path)) of
                {ok, Pem} -> {unicode:characters_to_list(Path), Pem};
                {error, Why} -> throw({bad_tls, [Path, ": ", file:format_error(Why)]})
            end;
        #{TextKey := Pem} when is_binary(Pem) ->
            {atom_to_list(TextKey), Pem};
        #{TextKey := _} ->
            throw({bad_tls, [atom_to_list(TextKey), " is no binary"]});
        _ ->
            undefined
    end.

text(Key, Value) ->
    try unicode:characters_to_list(Value) of
        [_ | _] = Text -> Text;
        _ -> throw({bad_tls, [atom_to_list(Key), " is no text"]})
    catch
        error:badarg -> throw({bad_tls, [atom_to_list(Key), " is no text"]})
    end.

system_cas() ->
    try public_key:cacerts_get() of
        [_ | _] = Cas -> Cas;
        [] -> throw(no_system_cas)
    catch
        _:_ ->
            throw(
                {bad_tls,
                    "this node's system has no certificates of authorities: give a cacertfile"}
            )
    end.

certificates(Name, Pem) ->
    case [Der || {'Certificate', Der, not_encrypted} <- pem(Pem)] of
        [] -> throw({bad_tls, [Name, ": no certificate in it"]});
        Ders -> Ders
    end.

own(undefined, undefined) ->
    [];
own({CertName, Cert}, {KeyName, Key}) ->
    Keys = [
        {Type, Der}
     || {Type, Der, not_encrypted} <- pem(Key),
        lists:member(Type, ['RSAPrivateKey', 'ECPrivateKey', 'DSAPrivateKey', 'PrivateKeyInfo'])
    ],
    case Keys of
        [First | _] -> [{cert, certificates(CertName, Cert)}, {key, First}];
        [] -> throw({bad_tls, [KeyName, ": no private key in it, or an encrypted one"]})
    end;
own(_, _) ->
    throw(
        {bad_tls, "a certificate of this node's own needs its key, and the key its certificate"}
    ).

pem(Bytes) ->
    try
        public_key:pem_decode(Bytes)
    catch
        _:_ -> []
    end.
