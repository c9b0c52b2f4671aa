%% SPDX-License-Identifier: Apache-2.0
%% @doc Requests of cowboy 2, over HTTP/1.1 and HTTP/2. Put it first among the stream handlers:
%% ```
%% cowboy:start_clear(Name, TransportOptions, #{
%%     env => #{dispatch => Dispatch}, stream_handlers => [kprof_cowboy, cowboy_stream_h]
%% })
%% '''
%% A request begins with its headers and ends when its response is handed to the connection or
%% broken off. It is called by its method and the path pattern of the dispatch rules that it fits,
%% or what `kprof_route => fun(Method, Path) -> Route' among the protocol options makes of it.
%% Without either, see {@link kprof_web:identity/1}. Statuses from 500 and crashes are errors. What
%% cowboy refuses before it is a request (`early_error') is not counted. What becomes a websocket
%% ends with its upgrade; what its process does at once for the socket is asynchronous work of it.
%%
%% A connection process has many requests, open at the same time over HTTP/2, each handled in a
%% process of its own. So a callback here first takes up the token of its stream. It keeps it
%% afterwards: what cowboy then does for the stream, such as sending it more of the body, is the
%% request's. kprof_helper tells how this module gets into a node.
-module(kprof_cowboy).

%% A cowboy_stream, which is not there when this is compiled.
-export([init/3, data/4, info/3, terminate/3, early_error/5, takeover/7]).

-record(stream, {
    request :: kprof_helper:request(),
    asked :: {Method :: binary(), Host :: binary(), Path :: binary()},
    version :: atom(),
    opts :: map(),
    status = undefined :: undefined | integer() | {error | exit | throw, term()},
    % the request's process was without the token
    lost = false :: boolean(),
    % headers that the answer has besides
    answer = #{} :: #{binary() => binary()},
    next :: term()
}).

%% @private
-spec init(term(), map(), map()) -> {list(), #stream{}}.
init(Id, #{method := Method, path := Path, headers := Headers} = Req, Opts) ->
    S0 = #stream{
        request = off,
        asked = {Method, maps:get(host, Req, <<>>), Path},
        version = maps:get(version, Req, undefined),
        opts = Opts,
        next = undefined
    },
    Request = kprof_helper:begin_stream(
        fun(Name) -> maps:get(Name, Headers, undefined) end, fun() -> facts(S0) end
    ),
    S = S0#stream{
        request = Request, answer = maps:from_list(kprof_helper:answer_headers(Request))
    },
    try cowboy_stream:init(Id, Req, Opts) of
        {Commands, Next} -> {answer(Commands, S), sent(Commands, S#stream{next = Next})}
    catch
        Class:Reason:Stack ->
            %% cowboy knows no stream that could be terminated
            ended({Class, Reason}, S),
            erlang:raise(Class, Reason, Stack)
    end.

%% @private
-spec data(term(), fin | nofin, binary(), #stream{}) -> {list(), #stream{}}.
data(Id, IsFin, Data, #stream{next = Next0} = S) ->
    ok = kprof_helper:resume(S#stream.request),
    {Commands, Next} = cowboy_stream:data(Id, IsFin, Data, Next0),
    {answer(Commands, S), sent(Commands, S#stream{next = Next})}.

%% @private
-spec info(term(), term(), #stream{}) -> {list(), #stream{}}.
info(Id, Info, #stream{request = Request, next = Next0} = S) ->
    Lost = S#stream.lost orelse is_answer(Info) andalso not kprof_helper:has_token(Request),
    ok = kprof_helper:resume(Request),
    {Commands, Next} = cowboy_stream:info(Id, Info, Next0),
    switching(answer(Commands, S), left(Info, sent(Commands, S#stream{lost = Lost, next = Next}))).

%% @private
-spec terminate(term(), term(), #stream{}) -> term().
terminate(Id, Reason, #stream{next = Next} = S) ->
    ok = kprof_helper:resume(S#stream.request),
    try
        cowboy_stream:terminate(Id, Reason, Next)
    after
        ended(
            case Reason of
                {internal_error, _, _} -> {error, Reason};
                _ -> S#stream.status
            end,
            S
        )
    end.

%% What becomes a websocket is no request any more. Over HTTP/2 it goes on as the same stream, in
%% the request's process. Over HTTP/1.1 cowboy terminates the stream, but the last message from the
%% request's process, its exit, brings the token back when we have ended it: so the connection is
%% taken over by us first.
switching(Commands, #stream{request = Request, version = Version} = S) when is_integer(Request) ->
    case lists:keyfind(switch_protocol, 1, Commands) of
        {_, Headers, cowboy_websocket = Protocol, State} = Switch when Version =:= 'HTTP/1.1' ->
            Ours = {switch_protocol, Headers, ?MODULE, {Protocol, State}},
            {
                [
                    case Command of
                        Switch -> Ours;
                        _ -> Command
                    end
                 || Command <- Commands
                ],
                S
            };
        {_, _, Protocol, _} when Version =/= 'HTTP/1.1', Protocol =/= cowboy_http2 ->
            ended(S#stream.status, S),
            {Commands, S#stream{request = off}};
        _ ->
            {Commands, S}
    end;
switching(Commands, S) ->
    {Commands, S}.

%% @private
-spec takeover(pid(), term(), term(), module(), map(), binary(), {module(), term()}) -> no_return().
takeover(Parent, Ref, Socket, Transport, Opts, Buffer, {Protocol, State}) ->
    ok = kprof_helper:resume(off),
    Protocol:takeover(Parent, Ref, Socket, Transport, Opts, Buffer, State).

%% @private
-spec early_error(term(), term(), map(), Resp, map()) -> Resp.
early_error(Id, Reason, PartialReq, Resp, Opts) ->
    cowboy_stream:early_error(Id, Reason, PartialReq, Resp, Opts).

ended(Status, #stream{request = Request, lost = Lost} = S) ->
    kprof_helper:end_request(Request, fun() -> (facts(S))#{status => Status, lost => Lost} end).

facts(#stream{asked = {Method, Host, Path}, opts = Opts}) ->
    #{
        method => Method,
        path => Path,
        named => true,
        route =>
            case Opts of
                #{kprof_route := Route} -> Route;
                _ -> pattern(Host, Path, Opts)
            end
    }.

%% --- what was answered ---

%% What the request's process sends, under its token.
is_answer(Info) when is_tuple(Info), tuple_size(Info) > 0 ->
    lists:member(element(1, Info), [
        response, headers, data, trailers, inform, push, read_body, switch_protocol
    ]);
is_answer(_) ->
    false.

%% The commands with our headers in the answer.
answer(Commands, #stream{answer = More}) when map_size(More) =:= 0 ->
    Commands;
answer(Commands, #stream{answer = More}) ->
    [
        case Command of
            {What, Status, Headers, Body} when
                is_map(Headers), What =:= response orelse What =:= error_response
            ->
                {What, Status, maps:merge(Headers, More), Body};
            {headers, Status, Headers} when is_map(Headers) ->
                {headers, Status, maps:merge(Headers, More)};
            _ ->
                Command
        end
     || Command <- Commands
    ].

sent(Commands, S) -> lists:foldl(fun command/2, S, Commands).

%% The first status is the one that the client gets; a crash after it is one all the same.
command({internal_error, Reason, _}, S) ->
    S#stream{status = {error, Reason}};
command(Command, #stream{status = undefined} = S) when
    element(1, Command) =:= response;
    element(1, Command) =:= headers;
    element(1, Command) =:= error_response
->
    S#stream{status = status(element(2, Command))};
command(_, S) ->
    S.

%% When the request's process is killed, cowboy answers nothing.
left({'EXIT', _, Reason}, #stream{status = undefined} = S) when Reason =/= normal ->
    S#stream{status = {exit, Reason}};
left(_, S) ->
    S.

status(Status) when is_integer(Status) -> Status;
status(<<Digits:3/binary, _/bits>>) ->
    try
        binary_to_integer(Digits)
    catch
        error:badarg -> undefined
    end;
status(_) ->
    undefined.

%% --- dispatch rules, as cowboy_router compiles them ---

pattern(Host, Path, #{env := #{dispatch := {persistent_term, Key}} = Env} = Opts) ->
    pattern(Host, Path, Opts#{env := Env#{dispatch := persistent_term:get(Key)}});
pattern(Host, Path, #{env := #{dispatch := Rules}}) ->
    Segments = binary:split(Path, <<"/">>, [global, trim_all]),
    HostParts = lists:reverse(binary:split(string:lowercase(Host), <<".">>, [global, trim_all])),
    case first(HostParts, Rules) of
        {_, _, Paths} -> text(first(Segments, Paths));
        none -> undefined
    end;
pattern(_, _, _) ->
    undefined.

%% The first rule that fits is the one, for hosts as for paths.
first(Parts, [Rule | Rules]) ->
    case fits(element(1, Rule), Parts, #{}) of
        Bound when is_map(Bound) ->
            case lists:all(fun(Field) -> allowed(Field, Bound) end, element(2, Rule)) of
                true -> Rule;
                false -> first(Parts, Rules)
            end;
        false ->
            first(Parts, Rules)
    end;
first(_, []) ->
    none.

fits('_', _, Bound) ->
    Bound;
fits(['...'], _, Bound) ->
    Bound;
fits([Part | Match], [Part | Parts], Bound) ->
    fits(Match, Parts, Bound);
fits(['_' | Match], [_ | Parts], Bound) ->
    fits(Match, Parts, Bound);
fits([Name | Match], [Part | Parts], Bound) when
    is_atom(Name), Name =/= '...', map_get(Name, Bound) =:= Part
->
    fits(Match, Parts, Bound);
fits([Name | Match], [Part | Parts], Bound) when
    is_atom(Name), Name =/= '...', not is_map_key(Name, Bound)
->
    fits(Match, Parts, Bound#{Name => Part});
fits([], [], Bound) ->
    Bound;
fits(_, _, _) ->
    false.

allowed({Name, Constraints}, Bound) when is_map_key(Name, Bound) ->
    element(1, cowboy_constraints:validate(map_get(Name, Bound), Constraints)) =:= ok;
allowed(_, _) ->
    true.

text({[], _, _, _}) -> <<"/">>;
text({Match, _, _, _}) when is_list(Match) -> <<<<"/", (part(Part))/binary>> || Part <- Match>>;
text(_) -> undefined.

part('...') -> <<"[...]">>;
part(Name) when is_atom(Name) -> <<":", (atom_to_binary(Name, utf8))/binary>>;
part(Part) -> Part.
