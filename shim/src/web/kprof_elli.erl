%% SPDX-License-Identifier: Apache-2.0
%% @doc Requests of elli 2 and 3. Put it first among the modules of elli_middleware:
%% ```
%% elli:start_link([{port, 8080}, {callback, elli_middleware},
%%                  {callback_args, [{mods, [{kprof_elli, []}, {my_callback, []}]}]}])
%% '''
%% A request begins when its body has been read and ends when elli tells that the answer is sent.
%% Statuses from 500 are errors, also those that elli gives for a callback that crashes.
%% `{kprof_elli, [{route, fun(Method, Path) -> Route}]}' names requests; without it see {@link
%% kprof_web:identity/1}. kprof_helper tells how this module gets into a node.
-module(kprof_elli).

%% An elli_handler, which is not there when this is compiled.
-export([handle/2, preprocess/2, postprocess/3, handle_event/3]).

% the request, elli's, and headers of the answer: a file that cannot be opened is told without it
-define(KEY, '$kprof_elli').

%% @private
-spec preprocess(Req, [{route, fun()}]) -> Req.
preprocess(Req, Options) ->
    %% elli looks up names as they came, before 3.3
    Header = fun(Name) -> kprof_helper:header(Name, elli_request:headers(Req)) end,
    case kprof_helper:begin_or_upgrade(Header, fun() -> facts(Req, undefined, Options) end) of
        off -> _ = erase(?KEY);
        Request -> _ = put(?KEY, {Request, Req, kprof_helper:answer_headers(Request)})
    end,
    Req.

%% @private
-spec handle(term(), list()) -> ignore.
handle(_, _) ->
    ignore.

%% @private
-spec postprocess(term(), Response, list()) -> Response.
postprocess(_, Response, _) ->
    case get(?KEY) of
        {_, _, [_ | _] = More} -> with_headers(Response, More);
        _ -> Response
    end.

%% The forms of a response that elli takes.
with_headers({chunk, Headers, Initial}, More) -> {chunk, More ++ Headers, Initial};
with_headers({chunk, Headers}, More) -> {chunk, More ++ Headers};
with_headers({Code, Headers, Body}, More) when is_list(Headers) -> {Code, More ++ Headers, Body};
with_headers({Code, {file, _} = File}, More) -> {Code, More, File};
with_headers({Code, Body}, More) -> {Code, More, Body};
with_headers(Other, _) -> Other.

%% @private
-spec handle_event(atom(), [term()], [{route, fun()}]) -> ok.
handle_event(request_complete, [_, Status | _], Options) -> ended(Status, Options);
handle_event(chunk_complete, [_, Status | _], Options) -> ended(Status, Options);
handle_event(file_error, _, Options) -> ended(500, Options);
handle_event(_, _, _) -> ok.

ended(Status, Options) ->
    case erase(?KEY) of
        undefined ->
            ok;
        {Request, Req, _} ->
            kprof_helper:end_request(Request, fun() -> facts(Req, Status, Options) end)
    end.

facts(Req, Status, Options) ->
    #{
        method => elli_request:method(Req),
        path => elli_request:raw_path(Req),
        status => Status,
        named => true,
        route => proplists:get_value(route, Options)
    }.
