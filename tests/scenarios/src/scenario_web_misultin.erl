%% SPDX-License-Identifier: Apache-2.0
%% Scenario 34: misultin. Drives the loop as misultin 0.9 does, over real HTTP: each request's loop
%% in a process of its own, that asks its connection's process for the request and gives it the
%% response, both by messages. Its module misultin_req is here, too.
-module(scenario_web_misultin).

-export([start/1, loop/1]).

-spec start(map()) -> inet:port_number().
start(_) ->
    scenario_web_http:start(fun connection/1).

-spec loop(term()) -> term().
loop(Req) ->
    {abs_path, Path} = misultin_req:get(uri, Req),
    case
        scenario_web:handle(
            atom_to_binary(misultin_req:get(method, Req), utf8),
            list_to_binary(Path),
            misultin_req:get(body, Req)
        )
    of
        {pieces, Pieces} ->
            Head = misultin_req:stream(head, 200, [], Req),
            [misultin_req:stream(Piece(), Req) || Piece <- scenario_web:pieces(Pieces)],
            misultin_req:stream(close, Req),
            Head;
        {Status, Answer} ->
            misultin_req:respond(Status, [], Answer, Req)
    end.

%% --- misultin's part ---

connection(Request) ->
    Self = self(),
    _ = process_flag(trap_exit, true),
    Loop = fun(Req) ->
        case erlang:function_exported(kprof, misultin_req_loop, 2) of
            true -> kprof:misultin_req_loop(Req, fun ?MODULE:loop/1);
            false -> loop(Req)
        end
    end,
    Pid = spawn_link(fun() -> Loop({misultin_req, Self, none}) end),
    Result = answer(Request, Pid),
    true = unlink(Pid),
    Result.

answer(#{socket := S} = Request, Pid) ->
    receive
        {response, Status, Headers, Body} ->
            sent(scenario_web_http:reply(S, Status, Headers, Body)),
            answer(Request, Pid);
        {Pid, {reqinfo, What}} ->
            Pid ! {self(), info(What, Request)},
            answer(Request, Pid);
        {stream_head, Status, _} ->
            sent(scenario_web_http:begin_chunks(S, Status)),
            answer(Request, Pid);
        {stream_data, Data} ->
            sent(scenario_web_http:chunk(S, Data)),
            answer(Request, Pid);
        stream_close ->
            sent(scenario_web_http:chunk(S, <<>>)),
            answer(Request, Pid);
        {'EXIT', Pid, normal} ->
            keep;
        {'EXIT', Pid, _} ->
            _ = scenario_web_http:reply(S, 500, [], "crashed"),
            close
    end.

%% Without its client misultin ends, and takes the loop with it.
sent(ok) -> ok;
sent({error, _}) -> exit(kill).

info(method, #{method := Method}) ->
    binary_to_atom(Method, utf8);
info(uri, #{path := Path}) ->
    {abs_path, binary_to_list(Path)};
info(headers, #{headers := Headers}) ->
    [{binary_to_list(K), binary_to_list(V)} || {K, V} <- Headers];
info(body, #{body := Body}) ->
    Body.
