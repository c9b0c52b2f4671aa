%% SPDX-License-Identifier: Apache-2.0
%% @doc Requests of httpd, the web server of inets. Put it first among the modules that are always
%% run:
%% ```
%% inets:start(httpd, [
%%     {modules, [kprof_httpd, mod_alias, mod_esi, mod_get, mod_head, mod_log]}, ...
%% ])
%% '''
%% It runs those behind it, as httpd would, so a request lasts from the first module to the last;
%% what httpd itself sends after them is not in it. A crash of a module is an error, and httpd's to
%% answer; its log names this module then. A request whose body comes in parts
%% (`max_client_body_chunk') lasts until the last one. `{kprof_route, fun(Method, Path) -> Route}'
%% in the server's configuration names requests; without it see {@link kprof_web:identity/1}.
%% kprof_helper tells how this module gets into a node.
-module(kprof_httpd).

-export([do/1, store/2]).

%% #mod of inets/include/httpd.hrl, which need not be there when this is compiled.
-define(DATA, 3).
-define(CONFIG, 6).
-define(METHOD, 7).
-define(URI, 9).
-define(HEADERS, 12).

% the request whose body comes in parts
-define(KEY, '$kprof_httpd').

%% @private
%% Only for what is ours: httpd goes on with the next module when no clause fits.
-spec store({kprof_route, term()}, [term()]) -> {ok, {kprof_route, fun()}} | {error, term()}.
store({kprof_route, Route} = Property, _) when is_function(Route, 2) -> {ok, Property};
store({kprof_route, _} = Property, _) -> {error, {wrong_type, Property}}.

%% @private
-spec do(tuple()) -> done | {break, [term()]} | {continue, term()}.
do(Info) ->
    Request =
        case erase(?KEY) of
            undefined ->
                kprof_helper:begin_request(fun(Name) -> header(Name, Info) end, fun() ->
                    facts(Info, undefined)
                end);
            Open ->
                Open
        end,
    try modules(behind(httpd_util:lookup(element(?CONFIG, Info), modules, [])), Info) of
        {continue, _} = Continue when Request =/= off ->
            _ = put(?KEY, Request),
            Continue;
        Result ->
            kprof_helper:end_request(Request, fun() -> facts(Info, status(Result)) end),
            Result
    catch
        Class:Reason:Stack ->
            kprof_helper:end_request(Request, fun() -> facts(Info, {Class, Reason}) end),
            erlang:raise(Class, Reason, Stack)
    end.

behind([?MODULE | Modules]) -> Modules;
behind([_ | Modules]) -> behind(Modules);
behind([]) -> [].

modules([], Info) ->
    {break, element(?DATA, Info)};
modules([Module | Modules], Info) ->
    case Module:do(Info) of
        {proceed, Data} -> modules(Modules, setelement(?DATA, Info, Data));
        Result -> Result
    end.

header(Name, Info) ->
    kprof_helper:header(Name, element(?HEADERS, Info)).

facts(Info, Status) ->
    #{
        method => element(?METHOD, Info),
        path => element(?URI, Info),
        status => Status,
        named => true,
        route => httpd_util:lookup(element(?CONFIG, Info), kprof_route, undefined)
    }.

%% As httpd reads it. Nothing at all is 501 to it.
status({break, Data}) ->
    case {proplists:get_value(status, Data), proplists:get_value(response, Data)} of
        {{Status, _, _}, _} -> Status;
        {undefined, {already_sent, Status, _}} -> Status;
        {undefined, {response, Head, _}} -> proplists:get_value(code, Head);
        {undefined, {Status, _}} -> Status;
        {undefined, undefined} -> 501
    end;
status(_) ->
    undefined.
