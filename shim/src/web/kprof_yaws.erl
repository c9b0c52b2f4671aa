%% SPDX-License-Identifier: Apache-2.0
%% @doc Requests of yaws 2's appmods. Either name this module as the appmod, and yours beside it:
%% ```
%% appmods = </, kprof_yaws>
%% <opaque>
%%     kprof_appmod = my_appmod
%% </opaque>
%% '''
%% or let yours call it: `out(Arg) -> kprof_yaws:out(Arg, fun handle/1)', which also goes for the
%% out functions of .yaws pages.
%%
%% A request is one run of out/1, or several when the body comes in parts (`get_more'). What yaws
%% sends afterwards is not in it, nor are streams. (When a client leaves in the middle of such a
%% body, yaws ends the process, and so the request, in an error.) Its status is that among what
%% out/1 returns; what it raises, or returns as `{'EXIT', Reason}', is an error. `out(Arg, Fun,
%% fun(Method, Path) -> Route end)' names requests; without it see {@link kprof_web:identity/1}.
%% kprof_helper tells how this module gets into a node.
-module(kprof_yaws).

-export([out/1, out/2, out/3]).

% the request whose body comes in parts
-define(KEY, '$kprof_yaws').

%% @doc What yaws calls of an appmod. It goes on to the one that the server's opaque names.
-spec out(term()) -> term().
out(Arg) ->
    Module = appmod(yaws_api:arg_opaque(Arg)),
    out(Arg, fun Module:out/1).

%% @doc As {@link out/3}, without routes.
-spec out(Arg, fun((Arg) -> Out)) -> Out.
out(Arg, Fun) ->
    out(Arg, Fun, undefined).

%% @doc Runs `Fun' as a request. `Route' names it.
-spec out(
    Arg, fun((Arg) -> Out), undefined | fun((Method :: binary(), Path :: binary()) -> term())
) -> Out.
out(Arg, Fun, Route) ->
    Request =
        case erase(?KEY) of
            undefined ->
                kprof_helper:begin_request(
                    fun(Name) -> header(Name, Arg) end,
                    fun() -> facts(Arg, undefined, Route) end
                );
            Open ->
                Open
        end,
    Headers = kprof_helper:answer_headers(Request),
    try Fun(Arg) of
        {get_more, _, _} = More when Request =/= off ->
            _ = put(?KEY, Request),
            More;
        Out ->
            kprof_helper:end_request(Request, fun() -> facts(Arg, status(Out), Route) end),
            with_headers(Headers, Out)
    catch
        Class:Reason:Stack ->
            kprof_helper:end_request(Request, fun() -> facts(Arg, {Class, Reason}, Route) end),
            erlang:raise(Class, Reason, Stack)
    end.

%% Of yaws.conf both are text.
%% What is no answer, or one that lists cannot hold, stays as it is.
with_headers([], Out) ->
    Out;
with_headers(More, Out) ->
    Headers = [{header, unicode:characters_to_list([Name, ": ", Value])} || {Name, Value} <- More],
    Answers = [html, ehtml, exhtml, content, status, header, redirect, streamcontent],
    if
        is_list(Out) ->
            Headers ++ Out;
        is_tuple(Out), tuple_size(Out) > 0 ->
            case lists:member(element(1, Out), Answers) of
                true -> Headers ++ [Out];
                false -> Out
            end;
        true ->
            Out
    end.

appmod(Opaque) ->
    case [Module || {Key, Module} <- Opaque, Key =:= "kprof_appmod" orelse Key =:= kprof_appmod] of
        [Module | _] when is_list(Module) -> list_to_atom(Module);
        [Module | _] when is_atom(Module) -> Module;
        [] -> error({kprof_yaws, "kprof_appmod is not set in the server's opaque"})
    end.

header(Name, Arg) ->
    kprof_helper:header(Name, [
        {Key, Value}
     || {http_header, _, Key, _, Value} <- yaws_api:headers_other(yaws_api:arg_headers(Arg))
    ]).

facts(Arg, Status, Route) ->
    Req = yaws_api:arg_req(Arg),
    Path =
        case yaws_api:http_request_path(Req) of
            {abs_path, Text} -> Text;
            Other -> Other
        end,
    #{
        method => yaws_api:http_request_method(Req),
        path => Path,
        status => Status,
        named => true,
        route => Route
    }.

%% The last one counts, as it does for yaws.
status(Out) when is_list(Out) ->
    lists:foldl(
        fun(Part, Before) ->
            case status(Part) of
                undefined -> Before;
                New -> New
            end
        end,
        undefined,
        Out
    );
status({status, Status}) ->
    Status;
status({'EXIT', Reason}) ->
    {exit, Reason};
status(_) ->
    undefined.
