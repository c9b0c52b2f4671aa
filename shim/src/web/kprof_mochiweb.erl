%% SPDX-License-Identifier: Apache-2.0
%% @doc Requests of mochiweb 2.12 and newer. Wrap the loop that mochiweb is given, a fun, `{Module,
%% Function}' or `{Module, Function, Args}':
%% ```
%% mochiweb_http:start([{port, 8080}, {loop, kprof_mochiweb:loop({my_web, loop})}])
%% '''
%% A request is one run of the loop. Its status is that of the response which the loop returns, as
%% `mochiweb_request:respond/2' and the like give it; a loop that returns something else has
%% answered, and one that raises an error is one. (A loop that exits with `normal' or `{shutdown,
%% _}' has lost its client.) A loop that goes on with `mochiweb_http:reentry/1' never ends its
%% request: the next one on its connection makes it incomplete, and the end of the connection an
%% error. `loop(Loop, #{route => fun(Method, Path) -> Route})' names requests; without it see {@link
%% kprof_web:identity/1}. kprof_helper tells how this module gets into a node.
-module(kprof_mochiweb).

-export([loop/1, loop/2]).

-type loop() :: fun((Req :: term()) -> term()) | {module(), atom()} | {module(), atom(), [term()]}.

%% @doc As {@link loop/2}, without options.
-spec loop(loop()) -> fun((Req :: term()) -> term()).
loop(Loop) ->
    loop(Loop, #{}).

%% @doc A loop like `Loop' that marks each request. `route' names them.
-spec loop(loop(), #{route => fun((Method :: binary(), Path :: binary()) -> term())}) ->
    fun((Req :: term()) -> term()).
loop(Loop, Options) ->
    fun(Req) ->
        kprof_helper:run(
            fun(Name) -> mochiweb_request:get_header_value(binary_to_list(Name), Req) end,
            fun() -> call(Loop, Req) end,
            fun(Ended) -> facts(Req, Ended, Options) end
        )
    end.

call({M, F, A}, Req) -> apply(M, F, [Req | A]);
call({M, F}, Req) -> M:F(Req);
call(Loop, Req) -> Loop(Req).

facts(Req, Ended, Options) ->
    #{
        method => mochiweb_request:get(method, Req),
        path => mochiweb_request:get(raw_path, Req),
        status => status(Ended),
        named => true,
        route => maps:get(route, Options, undefined)
    }.

status({raised, Class, Reason}) -> {Class, Reason};
status(begun) -> undefined;
status({returned, {mochiweb_response, [_, Status, _]}}) -> Status;
status({returned, _}) -> undefined.
