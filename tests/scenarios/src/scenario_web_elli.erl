%% SPDX-License-Identifier: Apache-2.0
%% Scenario 34: elli. Drives the callbacks in the order that elli and elli_middleware document, over
%% real HTTP. elli's module elli_request is here, too.
-module(scenario_web_elli).

-export([start/1, handle/2, handle_event/3]).

-define(MODS, [{kprof_elli, []}, {?MODULE, []}]).

-spec start(map()) -> inet:port_number().
start(_) ->
    scenario_web_http:start(fun drive/1).

%% --- the callback module of an application ---

-spec handle(term(), list()) -> term().
handle(Req, _) ->
    case
        scenario_web:handle(
            method(elli_request:method(Req)), elli_request:raw_path(Req), elli_request:body(Req)
        )
    of
        {pieces, Pieces} ->
            Elli = self(),
            _ = spawn(fun() ->
                [Elli ! {chunk, Piece()} || Piece <- scenario_web:pieces(Pieces)],
                Elli ! {chunk, close}
            end),
            {chunk, []};
        {Status, Answer} ->
            {Status, [], iolist_to_binary(Answer)}
    end.

method(Method) when is_atom(Method) -> atom_to_binary(Method, utf8);
method(Method) -> Method.

-spec handle_event(atom(), list(), list()) -> ok.
handle_event(_, _, _) -> ok.

%% --- elli's part ---

drive(#{socket := S} = Request) ->
    Req = elli_request:new(Request),
    Answer =
        try
            Before = lists:foldl(
                fun({M, Args}, R) -> optional(M, preprocess, [R, Args], R) end, Req, ?MODS
            ),
            lists:foldl(
                fun({M, Args}, A) -> optional(M, postprocess, [Before, A, Args], A) end,
                process(Before, ?MODS),
                lists:reverse(?MODS)
            )
        catch
            Class:Reason:Stack ->
                Event =
                    case Class of
                        throw -> request_throw;
                        error -> request_error;
                        exit -> request_exit
                    end,
                event(Event, [Req, Reason, Stack]),
                {500, [], <<"Internal server error">>}
        end,
    answer(Answer, Req, S).

process(Req, [{M, Args} | Mods]) ->
    case M:handle(Req, Args) of
        ignore -> process(Req, Mods);
        Answer -> Answer
    end.

answer({chunk, Headers}, Req, S) ->
    ok = scenario_web_http:begin_chunks(S, 200),
    ok = inet:setopts(S, [{active, once}]),
    event(chunk_complete, [Req, 200, Headers, chunks(S), {[], []}]),
    close;
answer({Status, Headers, Body}, Req, S) ->
    _ =
        scenario_web_http:reply(S, Status, Headers, Body) =:= ok orelse
            event(client_closed, [before_response]),
    event(request_complete, [Req, Status, Headers, Body, {[], []}]),
    keep.

chunks(S) ->
    receive
        {tcp_closed, S} ->
            client;
        {chunk, close} ->
            _ = scenario_web_http:chunk(S, <<>>),
            server;
        {chunk, Data} ->
            _ = scenario_web_http:chunk(S, Data),
            chunks(S)
    end.

event(Name, Args) ->
    lists:foreach(fun({M, Config}) -> M:handle_event(Name, Args, Config) end, lists:reverse(?MODS)).

optional(M, F, Args, Default) ->
    case erlang:function_exported(M, F, length(Args)) of
        true -> apply(M, F, Args);
        false -> Default
    end.
