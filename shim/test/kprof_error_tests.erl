%% SPDX-License-Identifier: Apache-2.0
%% What ssl returns, as it was seen on OTP 25, 27 and 29, and the lines that become of it.
-module(kprof_error_tests).

-include("patient.hrl").

alert_test_() ->
    [
        ?_assertEqual(
            "the collector at c:1 " ++ Line,
            kprof_error:format({collector, "c", 1, {tls_alert, Alert}})
        )
     || {Line, Alert} <-
            [
                {"cannot be trusted: TLS: the certificate is for another name",
                    {handshake_failure,
                        "TLS client: In state certify at ssl_handshake.erl:2113 "
                        "generated CLIENT ALERT: Fatal - Handshake Failure\n"
                        " {bad_cert,hostname_check_failed}"}},
                {"cannot be trusted: TLS: the certificate is for another name",
                    {bad_certificate,
                        "TLS client: In state wait_cert_cr at ssl_handshake.erl:2183 "
                        "generated CLIENT ALERT: Fatal - Bad Certificate\n"
                        " {bad_cert,{hostname_check_failed,{requested,\"other.example\"},\n"
                        "                                  "
                        "{received,[{dNSName,\"localhost\"}]}}}"}},
                {"cannot be trusted: TLS: the certificate is of an unknown authority",
                    {unknown_ca,
                        "TLS client: In state certify at ssl_handshake.erl:2304 generated "
                        "CLIENT ALERT: Fatal - Unknown CA\n"}},
                {"does not trust this node: TLS: the certificate is of an unknown authority",
                    {unknown_ca,
                        "TLS client: In state connection received SERVER ALERT: Fatal - Unknown "
                        "CA\n"}},
                {"does not trust this node: TLS: Fatal - Handshake Failure",
                    {handshake_failure,
                        "TLS client: In state hello received SERVER ALERT: Fatal - Handshake "
                        "Failure\n"}},
                {"cannot be trusted: TLS: something else", {internal_error, "something else"}}
            ]
    ].

function_test_() ->
    [
        ?_assertEqual(
            "--entry shop_htp:page/1: there is no module shop_htp, but shop_http, shop_https; with "
            "--wait it is traced once it is "
            "loaded",
            kprof_error:format(
                {nowhere, "--entry ", {shop_htp, page, 1},
                    {module, [<<"shop_http">>, <<"shop_https">>]}}
            )
        ),
        ?_assertEqual(
            "--tier db=lists:sm/1: there is no such function; with --wait it is traced once it is "
            "there",
            kprof_error:format(
                {nowhere, ["--tier ", <<"db">>, "="], {lists, sm, 1}, {function, []}}
            )
        ),
        ?_assertEqual(
            "--identity MyApp.Endpont.call/2:1: that is no entry and no tier, and only calls "
            "of these can name a request; want one of "
            "MyApp.Endpoint.call/2, lists:sum/1",
            kprof_error:format(
                {names_nothing, {'Elixir.MyApp.Endpont', call, 2}, 1, [
                    {'Elixir.MyApp.Endpoint', call, 2}, {lists, sum, 1}
                ]}
            )
        ),
        ?_assertEqual(
            "the tier db: there is no function lists:sm/1",
            kprof_error:format({unknown_function, <<"db">>, {lists, sm, 1}})
        ),
        ?_assertEqual(
            "there is no function lists:sm/1",
            kprof_error:format({unknown_function, <<"lists:sm/1">>, {lists, sm, 1}})
        ),
        ?_assertEqual(
            "entry list:sum/1: no module list on this node (yet); it is traced once it is loaded",
            kprof_armed:absent({{list, sum, 1}, module}, [
                #{name => <<"list:sum/1">>, mfa => {list, sum, 1}}
            ])
        ),
        ?_assertEqual(
            "tier db: no module list on this node (yet); it is traced once it is loaded",
            kprof_armed:absent({{list, sum, 1}, module}, [
                #{name => <<"db">>, mfa => {list, sum, 1}}
            ])
        ),
        ?_assertEqual(
            "tier db: there is no function list:sum/1 (any more)",
            kprof_armed:absent({{list, sum, 1}, function}, [
                #{name => <<"db">>, mfa => {list, sum, 1}}
            ])
        )
    ].
