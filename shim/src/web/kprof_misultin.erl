%% SPDX-License-Identifier: Apache-2.0
%% @doc Requests of the misultin web server, for {@link kprof:misultin_req_loop/2}.
%%
%% It assumes a request as misultin 0.6 to 0.9 makes it: a tuple whose first element names the
%% module that exports `get/2', with `get(method, Req)' an atom or text, `get(uri, Req)' a path or
%% `{abs_path, Path}', and `get(headers, Req)' a list of pairs. From anything else the request has
%% no name. misultin answers in another process: the status is known when the loop's last act is to
%% respond, as its result then is `{response, Status, _, _}', `{stream_head, Status, _}' or
%% `{stream_error, Status}'; and a loop that crashes, or that misultin kills because the client has
%% left, is an error.
-module(kprof_misultin).

-export([req_loop/2]).

% what a traced request is called
-define(KEY, '$kprof_misultin').

%% @private
-spec req_loop(Req, fun((Req) -> Result)) -> Result.
req_loop(Req, Loop) ->
    case kprof:begin_request(fun(Name) -> header(Name, Req) end, fun() -> known(Req) end) of
        off ->
            Loop(Req);
        Request ->
            try Loop(Req) of
                Result ->
                    ended(Request, status(Result)),
                    Result
            catch
                Class:Reason:Stack ->
                    ended(Request, {Class, Reason}),
                    erlang:raise(Class, Reason, Stack)
            end
    end.

%% Kept for the end: when the client has gone there is nobody who answers.
known(Req) ->
    Facts = #{method => ask(method, Req), path => path(ask(uri, Req)), named => true},
    _ = put(?KEY, Facts),
    Facts.

ended(Request, Status) ->
    Facts =
        case erase(?KEY) of
            undefined -> #{};
            Known -> Known
        end,
    kprof:end_request(Request, fun() -> Facts#{status => Status} end).

%% Headers that misultin knows are atoms.
header(Name, Req) ->
    Wanted = binary_to_list(Name),
    Found = [V || {K, V} <- ask(headers, Req), string:lowercase(name(K)) =:= Wanted],
    case Found of
        [Value | _] -> Value;
        [] -> undefined
    end.

name(K) when is_atom(K) -> atom_to_list(K);
name(K) -> unicode:characters_to_list(K).

ask(What, Req) ->
    Module = element(1, Req),
    Module:get(What, Req).

path({_Type, Path}) -> path(Path);
path(Path) -> Path.

status({response, Status, _, _}) -> Status;
status({stream_head, Status, _}) -> Status;
status({stream_error, Status}) when is_integer(Status) -> Status;
status({stream_error, _}) -> 500;
status(_) -> undefined.
