%% SPDX-License-Identifier: Apache-2.0
-module(kprof_auth_tests).
-include("patient.hrl").

-define(SECRET, <<"0123456789abcdef">>).

secret(Bytes) ->
    {ok, Secret} = kprof_auth:secret(Bytes),
    Secret.

secrets_test_() -> {timeout, 300, fun secrets_case/0}.
secrets_case() ->
    ?assertEqual(?SECRET, (secret(?SECRET))()),
    ?assertEqual(<<"0123456789 abcde">>, (secret(<<"0123456789 abcde\r\n\n">>))()),
    ?assertEqual({error, empty}, kprof_auth:secret(<<"\n\r\n">>)),
    ?assertEqual({error, short}, kprof_auth:secret(<<"0123456789abcde\n">>)),
    ?assertMatch({ok, _}, kprof_auth:secret(binary:copy(<<"x">>, 1024))),
    ?assertEqual({error, long}, kprof_auth:secret(binary:copy(<<"x">>, 1025))),
    ?assertEqual({error, no_binary}, kprof_auth:secret("0123456789abcdef")),
    %% what is printed of it is not it
    ?assertEqual(nomatch, string:find(io_lib:format("~p", [secret(?SECRET)]), "0123")).

files_test_() -> {timeout, 300, fun files_case/0}.
files_case() ->
    Dir = string:trim(os:cmd("mktemp -d")),
    File = filename:join(Dir, "secret"),
    ok = file:write_file(File, [?SECRET, "\n"]),
    [
        begin
            ok = file:change_mode(File, Mode),
            {ok, Secret} = kprof_auth:read_file(File),
            ?assertEqual(?SECRET, Secret())
        end
     || Mode <- [8#600, 8#400, 8#640]
    ],
    [
        begin
            ok = file:change_mode(File, Mode),
            ?assertEqual({error, {mode, Mode}}, kprof_auth:read_file(File)),
            Text = kprof:format_error({bad_secret, File, {mode, Mode}}),
            ?assertNotEqual(
                nomatch, string:find(Text, "mode 6" ++ integer_to_list(Mode band 8#77, 8))
            ),
            ?assertNotEqual(nomatch, string:find(Text, "chmod 600"))
        end
     || Mode <- [8#644, 8#622, 8#611]
    ],
    ok = file:change_mode(File, 8#600),
    [
        begin
            ok = file:write_file(File, Bytes),
            ?assertEqual(
                Result,
                case kprof_auth:read_file(File) of
                    {ok, S} -> S();
                    Error -> Error
                end
            )
        end
     || {Bytes, Result} <- [
            {<<>>, {error, empty}},
            {<<"\n">>, {error, empty}},
            {<<"0123456789abcde\n">>, {error, short}},
            {<<0, 255, 10, 0:112, "\r\n">>, <<0, 255, 10, 0:112>>},
            {binary:copy(<<"x">>, 1000000), {error, long}},
            {[binary:copy(<<"x">>, 1024), "\r\n"], binary:copy(<<"x">>, 1024)}
        ]
    ],
    ?assertEqual({error, no_file}, kprof_auth:read_file(Dir)),
    ?assertEqual({error, enoent}, kprof_auth:read_file(File ++ "x")),
    ok = file:delete(File),
    ok = file:del_dir(Dir).

%% --- the handshake, against a collector's side that is written here once more ---

collector(Secret, Auth) ->
    Nonce = crypto:strong_rand_bytes(32),
    Challenge = encode(#{type => challenge, nonce => {bin, Nonce}}),
    {Challenge, fun(Answer) ->
        Frames = [frame(Auth), frame(Challenge)],
        {ok, #{<<"type">> := <<"answer">>, <<"proof">> := {bin, Proof}}} = kprof_msgpack:decode(
            Answer
        ),
        Good = Proof =:= crypto:mac(hmac, sha256, Secret, ["kprof 1 client", 0, Frames]),
        {Good,
            encode(#{
                type => proven,
                proof =>
                    {bin,
                        crypto:mac(hmac, sha256, Secret, [
                            "kprof 1 collector", 0, Frames, frame(Answer)
                        ])}
            })}
    end}.

encode(Message) -> iolist_to_binary(kprof_msgpack:encode(Message)).
frame(Payload) -> <<(byte_size(Payload)):32, Payload/binary>>.
flip(Bytes, N) ->
    <<A:N/binary, X, B/binary>> = Bytes,
    <<A/binary, (X bxor 1), B/binary>>.

agree_test_() -> {timeout, 300, fun agree_case/0}.
agree_case() ->
    Secret = secret(?SECRET),
    {Auth, S0} = kprof_auth:start(data, 7, undefined),
    ?assertMatch(
        {ok, #{<<"role">> := <<"data">>, <<"session">> := 7, <<"protocol">> := 1}},
        kprof_msgpack:decode(Auth)
    ),
    {Challenge, Check} = collector(?SECRET, Auth),
    {ok, Answer, S1} = kprof_auth:answer(Secret, Challenge, S0),
    {true, Proven} = Check(Answer),
    {ok, Key} = kprof_auth:confirm(Secret, Proven, S1),
    ?assertEqual(
        crypto:mac(hmac, sha256, ?SECRET, [
            "kprof 1 session", 0, [frame(F) || F <- [Auth, Challenge, Answer, Proven]]
        ]),
        Key()
    ),
    {Bound, _} = kprof_auth:start(control, undefined, <<"a certificate">>),
    Certificate = crypto:hash(sha256, <<"a certificate">>),
    ?assertMatch(
        {ok, #{<<"role">> := <<"control">>, <<"certificate">> := {bin, Certificate}}},
        kprof_msgpack:decode(Bound)
    ),
    %% another time everything is different
    {Again, _} = kprof_auth:start(data, 7, undefined),
    ?assertNotEqual(Auth, Again).

wrong_secret_test_() -> {timeout, 300, fun wrong_secret_case/0}.
wrong_secret_case() ->
    {Auth, S0} = kprof_auth:start(control, undefined, undefined),
    {Challenge, Check} = collector(<<"0123456789abcdee">>, Auth),
    {ok, Answer, S1} = kprof_auth:answer(secret(?SECRET), Challenge, S0),
    {Good, Proven} = Check(Answer),
    ?assertNot(Good),
    ?assertEqual(error, kprof_auth:confirm(secret(?SECRET), Proven, S1)).

%% A byte of what the collector sends is another: no proof holds.
tampered_test_() -> {timeout, 300, fun tampered_case/0}.
tampered_case() ->
    Secret = secret(?SECRET),
    {Auth, S0} = kprof_auth:start(control, undefined, undefined),
    {Challenge, Check} = collector(?SECRET, Auth),
    {ok, Answer, S1} = kprof_auth:answer(Secret, Challenge, S0),
    {true, Proven} = Check(Answer),
    [
        begin
            ?assertEqual(error, kprof_auth:confirm(Secret, flip(Proven, N), S1))
        end
     || N <- lists:seq(0, byte_size(Proven) - 1)
    ],
    [
        case kprof_auth:answer(Secret, flip(Challenge, N), S0) of
            error ->
                ok;
            {ok, Other, S} ->
                {Good, P} = Check(Other),
                ?assertNot(Good),
                ?assertEqual(error, kprof_auth:confirm(Secret, P, S))
        end
     || N <- lists:seq(0, byte_size(Challenge) - 1)
    ].

%% What a collector said once is of no use later, and our own words are none of its.
replayed_and_reflected_test_() -> {timeout, 300, fun replayed_and_reflected_case/0}.
replayed_and_reflected_case() ->
    Secret = secret(?SECRET),
    {Auth, S0} = kprof_auth:start(control, undefined, undefined),
    {Challenge, Check} = collector(?SECRET, Auth),
    {ok, Answer, _} = kprof_auth:answer(Secret, Challenge, S0),
    {true, Proven} = Check(Answer),
    {Auth2, S2} = kprof_auth:start(control, undefined, undefined),
    {ok, Answer2, S3} = kprof_auth:answer(Secret, Challenge, S2),
    ?assertEqual(error, kprof_auth:confirm(Secret, Proven, S3)),
    {ok, #{<<"proof">> := Proof}} = kprof_msgpack:decode(Answer2),
    ?assertEqual(error, kprof_auth:confirm(Secret, encode(#{type => proven, proof => Proof}), S3)),
    {ok, #{<<"nonce">> := Nonce}} = kprof_msgpack:decode(Auth2),
    {ok, Answer4, S4} = kprof_auth:answer(Secret, encode(#{type => challenge, nonce => Nonce}), S2),
    {ok, #{<<"proof">> := Proof4}} = kprof_msgpack:decode(Answer4),
    ?assertEqual(error, kprof_auth:confirm(Secret, encode(#{type => proven, proof => Proof4}), S4)).

rubbish_test_() -> {timeout, 300, fun rubbish_case/0}.
rubbish_case() ->
    Secret = secret(?SECRET),
    {_, S} = kprof_auth:start(control, undefined, undefined),
    [
        begin
            ?assertEqual(error, kprof_auth:answer(Secret, Bytes, S)),
            ?assertEqual(error, kprof_auth:confirm(Secret, Bytes, S))
        end
     || Bytes <- [
            <<>>,
            <<16#c0>>,
            <<1, 2, 3>>,
            encode(#{}),
            encode(#{type => challenge}),
            encode(#{type => challenge, nonce => <<"text">>}),
            encode(#{type => challenge, nonce => {bin, <<0:248>>}}),
            encode(#{type => proven, proof => {bin, <<>>}}),
            encode(#{type => proven, proof => {bin, <<0:264>>}}),
            encode(#{type => welcome})
        ]
    ].
