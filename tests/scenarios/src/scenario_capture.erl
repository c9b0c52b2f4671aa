%% SPDX-License-Identifier: Apache-2.0
%% Writes a capture as somebody does who has dbg and no kprof: requests of network_server, arguments
%% and all, whole terms as tokens.
%% data/requests.cap was made by it:  erl -noinput -pa EBIN -run scenario_capture main FILE 40
-module(scenario_capture).

-export([main/1]).

-spec main([string()]) -> no_return().
main([File, N]) ->
    ok = db:start(),
    ok = accounting:start(),
    {ok, _} = dbg:tracer(port, dbg:trace_port(file, File)),
    Spec = [{'_', [{is_seq_trace}], [{message, {get_seq_token}}, {exception_trace}]}],
    [
        {ok, [_ | _]} = dbg:tpl(M, F, A, Spec)
     || {M, F, A} <- [
            {network_server, run, 1},
            {network_server, parse_request, 1},
            {requests, handle_request, 2},
            {db, network_request, 1},
            {formatter, format_response, 1},
            {accounting, incr_reqs, 1}
        ]
    ],
    {ok, _} = dbg:p(all, [call, timestamp]),
    [request(I) || I <- lists:seq(1, list_to_integer(N))],
    timer:sleep(200),
    {ok, _} = dbg:p(all, clear),
    _ = dbg:flush_trace_port(),
    _ = dbg:stop(),
    halt(0).

%% A quarter each of create, update, read and fail.
request(I) ->
    Kind = element(I rem 4 + 1, {"create", "update", "read", "fail"}),
    _ = seq_trace:set_token(label, {request, <<"number">>, I}),
    _ = (catch network_server:run(Kind ++ " " ++ integer_to_list(I))),
    seq_trace:set_token([]).
