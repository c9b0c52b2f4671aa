%% SPDX-License-Identifier: Apache-2.0
%% Scenario 33: httpd of inets, with this module behind kprof_httpd and mod_esi.
-module(scenario_web_httpd).

-export([start/1, do/1, pieces/3]).

-spec start(map()) -> inet:port_number().
start(_) ->
    ok = inets:start(),
    {ok, Root} = file:get_cwd(),
    {ok, Pid} = inets:start(httpd, [
        {bind_address, {127, 0, 0, 1}},
        {port, 0},
        {server_name, "h"},
        {server_root, Root},
        {document_root, Root},
        {modules, [kprof_httpd, mod_esi, ?MODULE]},
        {erl_script_alias, {"/esi", [?MODULE]}},
        {kprof_route, fun
            (_, <<"/esi/", _/binary>>) -> "/esi";
            (_, _) -> undefined
        end}
    ]),
    [{port, Port}] = httpd:info(Pid, [port]),
    Port.

%% As a module of httpd: answers what no other has.
-spec do(tuple()) -> {proceed, [term()]}.
do(Mod) ->
    %% #mod's data, method, request_uri and entity_body: inets may be missing where this is compiled
    case [element(I, Mod) || I <- [3, 7, 9, 13]] of
        [[], Method, Uri, Body] ->
            {proceed, answer(list_to_binary(Method), list_to_binary(Uri), iolist_to_binary(Body))};
        [Data | _] ->
            {proceed, Data}
    end.

answer(Method, Uri, Body) ->
    {Status, Answer} =
        case scenario_web:handle(Method, Uri, Body) of
            {pieces, Pieces} -> {200, Pieces};
            Other -> Other
        end,
    Text = binary_to_list(iolist_to_binary(Answer)),
    [
        {response,
            {response, [{code, Status}, {content_length, integer_to_list(length(Text))}], Text}}
    ].

%% As a script of mod_esi, whose answer is sent in chunks.
-spec pieces(term(), list(), string()) -> ok.
pieces(Session, _, _) ->
    {pieces, Pieces} = scenario_web:handle(<<"GET">>, <<"/pieces">>, <<>>),
    ok = mod_esi:deliver(Session, "Content-Type: text/plain\r\n\r\n"),
    [ok = mod_esi:deliver(Session, Piece()) || Piece <- scenario_web:pieces(Pieces)],
    ok.
