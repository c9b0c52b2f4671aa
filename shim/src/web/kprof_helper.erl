%% SPDX-License-Identifier: Apache-2.0
%% @doc What the helpers of web servers share: the way to the shim, which may not be there.
%%
%% A helper is configured in a web server, so it belongs to the application, as this module does:
%% either the application has kprof among its dependencies, or it has a copy of this file and of its
%% server's. It needs nothing of kprof to be loaded, let alone started. The shim comes and goes
%% (scripts/start_kprof_node.sh loads and unloads it) and never touches the helpers. While it is not
%% there or does not trace, a helper costs some nanoseconds; and whatever happens in the shim, the
%% request goes on.
-module(kprof_helper).

-export([
    begin_request/2,
    begin_or_upgrade/2,
    send_request/2,
    end_request/2,
    run/3,
    header/2,
    begin_stream/2,
    resume/1,
    has_token/1,
    answer_headers/1
]).

-export_type([request/0, header_fun/0, facts/0]).

% as in kprof_token
-define(KEY, '$kprof_token').

-type request() :: off | non_neg_integer().
-type header_fun() :: fun((Name :: binary()) -> atom() | string() | binary() | undefined).
-type facts() :: #{
    method => term(),
    path => term(),
    route => term(),
    status => term(),
    named => boolean(),
    lost => boolean()
}.
%% See `kprof_web:facts()'.

%% @doc Begins a request in this process. `Header' looks up a header by its name in lower case; it
%% is asked only when one may force a sample, and when the request is traced. `Facts' tells what is
%% known of the request already; it is called only when the request is traced.
-spec begin_request(header_fun(), fun(() -> facts())) -> request().
begin_request(Header, Facts) ->
    case erlang:function_exported(kprof, begin_request, 2) of
        true ->
            try
                kprof:begin_request(Header, Facts)
            catch
                _:_ -> off
            end;
        false ->
            off
    end.

%% @doc As {@link begin_request/2}, where what serves the request goes on with a connection that
%% becomes a websocket: one that asks for that ends at once, or it would last as long as the
%% connection.
-spec begin_or_upgrade(header_fun(), fun(() -> facts())) -> request().
begin_or_upgrade(Header, Facts) ->
    Request = begin_request(Header, Facts),
    case Request =/= off andalso websocket(Header) of
        true ->
            end_request(Request, Facts),
            off;
        false ->
            Request
    end.

websocket(Header) ->
    try Header(<<"upgrade">>) of
        undefined -> false;
        Value -> string:lowercase(iolist_to_binary(Value)) =:= <<"websocket">>
    catch
        _:_ -> false
    end.

%% @doc Its response begins to be sent, and its process goes on with that: it ends with {@link
%% end_request/2} or when its process does. `Facts' as there.
-spec send_request(request(), fun(() -> facts())) -> ok.
send_request(off, _) ->
    ok;
send_request(Request, Facts) ->
    _ =
        erlang:function_exported(kprof, send_request, 2) andalso
            try
                kprof:send_request(Request, Facts)
            catch
                _:_ -> ok
            end,
    ok.

%% @doc Ends it, in a process that has its token. `Facts' is called only when the request is traced.
-spec end_request(request(), fun(() -> facts())) -> ok.
end_request(off, _) ->
    ok;
end_request(Request, Facts) ->
    case erlang:function_exported(kprof, end_request, 2) of
        true ->
            try
                kprof:end_request(Request, Facts)
            catch
                _:_ -> forget(Request)
            end;
        false ->
            forget(Request)
    end,
    ok.

%% @doc Runs `Fun' as a request of {@link begin_or_upgrade/2}. `Facts' is given `begun', then its
%% result or `{raised, Class, Reason}'; what was raised is raised again with its own stack.
-spec run(header_fun(), fun(() -> Result), fun(
    (begun | {returned, Result} | {raised, error | exit | throw, term()}) -> facts()
)) ->
    Result.
run(Header, Fun, Facts) ->
    case begin_or_upgrade(Header, fun() -> Facts(begun) end) of
        off ->
            Fun();
        Request ->
            try Fun() of
                Result ->
                    end_request(Request, fun() -> Facts({returned, Result}) end),
                    Result
            catch
                Class:Reason:Stack ->
                    end_request(Request, fun() -> Facts({raised, Class, Reason}) end),
                    erlang:raise(Class, Reason, Stack)
            end
    end.

%% @doc The header `Name', in lower case, of all that came, as some servers have them: the last one
%% first, and with names in any case. Of several the one that came first.
-spec header(binary(), [{atom() | iodata(), Value}]) -> Value | undefined.
header(Name, Headers) ->
    lists:foldl(
        fun({Key, Value}, Before) ->
            case string:lowercase(text(Key)) of
                Name -> Value;
                _ -> Before
            end
        end,
        undefined,
        Headers
    ).

text(Key) when is_atom(Key) -> atom_to_binary(Key, utf8);
text(Key) -> iolist_to_binary(Key).

%% @doc The headers that the answer of a request is to have besides, with names in lower case: the
%% name of its profile where a header has had it traced fully (`flame_header'), else none. To be
%% asked for as soon as it has begun.
-spec answer_headers(request()) -> [{Name :: binary(), Value :: binary()}].
answer_headers(Request) when is_integer(Request), Request > 0 ->
    case erlang:function_exported(kprof, flame_name, 1) of
        true ->
            try kprof:flame_name(Request) of
                undefined -> [];
                Name -> [{<<"x-kprof-profile">>, Name}]
            catch
                _:_ -> []
            end;
        false ->
            []
    end;
answer_headers(_) ->
    [].

%% --- for processes that serve several requests at a time ---

%% @doc As {@link begin_request/2}, but the process does not remember the request: it may begin
%% others before this one ends. The token is the process' until {@link resume/1} or the next begin.
-spec begin_stream(header_fun(), fun(() -> facts())) -> request().
begin_stream(Header, Facts) ->
    ok = resume(off),
    Request = begin_request(Header, Facts),
    _ = erase(?KEY),
    Request.

%% @doc What the process does next is for this request: it gets its token, or none when the request
%% is not traced.
-spec resume(request()) -> ok.
resume(Request) ->
    case seq_trace:get_token(label) of
        [] when Request =:= off; Request =:= 0 -> ok;
        {label, Request} -> ok;
        _ -> take_up(Request)
    end.

take_up(Request) ->
    Label =
        case Request of
            off -> undefined;
            0 -> undefined;
            _ -> Request
        end,
    case erlang:function_exported(kprof, set_current_label, 1) of
        true ->
            try
                kprof:set_current_label(Label)
            catch
                _:_ -> ok
            end,
            ok;
        false ->
            ok
    end.

%% @doc Whether the process has the token of a request that is traced; true for one that is not.
-spec has_token(request()) -> boolean().
has_token(Request) when is_integer(Request), Request > 0 ->
    seq_trace:get_token(label) =:= {label, Request};
has_token(_) ->
    true.

%% The shim has gone while the request was open. Only what is ours is taken away.
forget(Request) ->
    _ = erase(?KEY),
    case seq_trace:get_token(label) of
        {label, Request} ->
            _ = seq_trace:set_token([]),
            ok;
        _ ->
            ok
    end.
