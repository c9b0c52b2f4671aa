%% SPDX-License-Identifier: Apache-2.0
%% @doc Requests of web servers: which are traced although the sampler leaves them out, and what
%% they are called. The servers' helpers ({@link kprof_helper} and those on top of it) come here; so
%% much of a request's name as strangers choose is kept from making more names than anybody can
%% read.
-module(kprof_web).

-export([
    begin_request/4,
    send_request/2,
    end_request/2,
    force/2,
    outcome/1,
    identity/1,
    is_method/1,
    is_true/1,
    first_value/1
]).

-export_type([facts/0]).

-type text() :: atom() | string() | binary().
-type facts() :: #{
    method => text(),
    path => text(),
    route => text() | fun((Method :: binary(), Path :: binary()) -> text()) | undefined,
    status => integer() | {error | exit | throw, term()},
    named => boolean(),
    lost => boolean()
}.
%% What a helper knows of a request when it begins and when it ends. `path': as it was asked for.
%% `route': the pattern that it matched, or a function that makes one of method and path. At the
%% end: `status': of HTTP, or what was raised. `named': the begin has told the same, there is
%% nothing new but the status. `lost': the token got lost on the way.

% whatever the path: there is nothing, or nothing for this client
-define(REFUSALS, [400, 401, 403, 404, 405, 410, 421, 429, 501]).
-define(MAX_ROUTE, 200).
-define(MAX_SEGMENT, 32).
-define(MAX_DIGITS, 2).
-define(METHODS, [
    <<"GET">>,
    <<"HEAD">>,
    <<"POST">>,
    <<"PUT">>,
    <<"DELETE">>,
    <<"PATCH">>,
    <<"OPTIONS">>,
    <<"TRACE">>,
    <<"CONNECT">>,
    <<"PROPFIND">>,
    <<"PROPPATCH">>,
    <<"MKCOL">>,
    <<"COPY">>,
    <<"MOVE">>,
    <<"LOCK">>,
    <<"UNLOCK">>,
    <<"REPORT">>,
    <<"SEARCH">>
]).

%% @doc Begins a request. `Header' looks up a header of it by its name in lower case; it is asked
%% only when a header may force a sample, and, when the request is traced, for its `traceparent'.
%% `Facts' is asked only when the request is traced. What it tells is the name of a request whose
%% end tells none, as its process was killed, say.
-spec begin_request(kprof_slots:slots(), pos_integer(), fun((binary()) -> text() | undefined), fun(
    () -> facts()
)) ->
    kprof_slots:label() | 0 | off.
begin_request(Slots, OneIn, Header, Facts) ->
    kprof_token:begin_web(Slots, OneIn, fun
        ({full, none}) ->
            kprof_flame_header:inside_entry(Slots, Header);
        ({full, Label}) ->
            kprof_flame_header:begins(Slots, Header, Label);
        (forced) ->
            forced(Slots, Header);
        (name) ->
            try
                identity(Facts())
            catch
                _:_ -> undefined
            end;
        (parent) ->
            try
                kprof_trace_parent:read(Header(<<"traceparent">>))
            catch
                _:_ -> undefined
            end
    end).

%% @doc Its response is on its way. `Facts' tells what {@link end_request/2} would, which is still
%% to come.
-spec send_request(kprof_slots:label() | 0, fun(() -> facts())) -> ok.
send_request(0, _) ->
    ok;
send_request(Label, Get) ->
    {Outcome, Lost, Identity} = asked(Get),
    kprof_token:send_web(Label, Outcome, Lost, Identity).

%% @doc Ends it. `Facts' is asked only when the request is traced; when it fails, the request has
%% the name of its begin, if any.
-spec end_request(kprof_slots:label() | 0, fun(() -> facts())) -> ok.
end_request(0, _) ->
    kprof_token:end_web(0, ok, false, undefined);
end_request(Label, Get) ->
    {Outcome, Lost, Identity} = asked(Get),
    kprof_token:end_web(Label, Outcome, Lost, Identity),
    kprof_flame_header:ended(Label).

%% A fun that fails has nothing to tell.
asked(Get) ->
    try
        told(Get())
    catch
        _:_ -> {ok, false, undefined}
    end.

told(Facts) ->
    {
        outcome(maps:get(status, Facts, undefined)),
        maps:get(lost, Facts, false) =:= true,
        try
            news(Facts)
        catch
            _:_ -> undefined
        end
    }.

%% Only the end tells that there is nothing at a path, or nothing for this client.
news(#{named := true} = Facts) ->
    case lists:member(maps:get(status, Facts, undefined), ?REFUSALS) of
        true -> identity(Facts);
        false -> undefined
    end;
news(Facts) ->
    identity(Facts).

%% --- the header that forces a sample ---

%% @doc Sets the header that forces a sample, and how many requests a second it may force;
%% `undefined' is none.
-spec force(kprof_slots:slots(), undefined | {Name :: binary(), PerSecond :: pos_integer()}) -> ok.
force(Slots, undefined) ->
    kprof_slots:set_forced(Slots, 0);
force(Slots, {Name, PerSecond}) ->
    true = ets:insert(kprof_guard, {force_header, Name}),
    kprof_slots:set_forced(Slots, PerSecond).

forced(Slots, Header) ->
    kprof_slots:may_force(Slots) andalso
        try
            is_true(Header(ets:lookup_element(kprof_guard, force_header, 2)))
        catch
            _:_ -> false
        end andalso
        kprof_slots:take_forced(Slots).

%% @doc Whether a header's value says yes.
-spec is_true(text() | undefined) -> boolean().
is_true(undefined) ->
    false;
is_true(Value) ->
    lists:member(string:lowercase(first_value(Value)), [<<"true">>, <<"1">>, <<"yes">>, <<"on">>]).

%% @doc Of several values the first one. Some servers join the values of a header that came several
%% times, others give the first one.
-spec first_value(text()) -> binary().
first_value(Value) ->
    [First | _] = binary:split(to_binary(Value), <<",">>),
    string:trim(First).

%% --- what happened ---

%% @doc A status of 500 and more is an error, and so is what was raised; but a process that ends in
%% order has lost its client.
-spec outcome(term()) -> kprof:outcome().
outcome(Status) when is_integer(Status), Status >= 500 -> error;
outcome({exit, Reason}) when Reason =:= normal; Reason =:= shutdown -> ok;
outcome({exit, {shutdown, _}}) -> ok;
outcome({Class, _}) when Class =:= error; Class =:= exit; Class =:= throw -> Class;
outcome(_) -> ok.

%% --- names ---

%% @doc Method and route. Where no route is known: the method, the first part of the path if it
%% looks like a name and not like data, and whether more follows. What a server refuses, with 404 or
%% 401 say, is called by its method and that number: strangers who try paths make no names. Where
%% anything else is answered to any path, they do: let a function of yours make the routes there.
-spec identity(facts()) -> kprof:identity().
identity(#{method := Method0, path := Path0} = Facts) ->
    Method = method(Method0),
    Path = path(to_binary(Path0)),
    case route(maps:get(route, Facts, undefined), Method, Path) of
        undefined ->
            <<Method/binary, " ", (place(maps:get(status, Facts, undefined), Path))/binary>>;
        Route ->
            <<Method/binary, " ", Route/binary>>
    end;
identity(_) ->
    undefined.

method(Method0) ->
    Method = to_binary(Method0),
    case is_method(Method) of
        true -> Method;
        false -> <<"OTHER">>
    end.

%% @doc Whether that is a method of HTTP.
-spec is_method(binary()) -> boolean().
is_method(Method) ->
    lists:member(Method, ?METHODS).

route(undefined, _, _) ->
    undefined;
route(Route, Method, Path) when is_function(Route, 2) ->
    try Route(Method, Path) of
        Made when is_function(Made) -> undefined;
        Made -> route(Made, Method, Path)
    catch
        _:_ -> undefined
    end;
route(Route, _, _) ->
    try
        clean(to_binary(Route))
    catch
        error:_ -> undefined
    end.

%% Without query and fragment, nor what stands before an absolute form's path.
path(Path) ->
    [Bare | _] = binary:split(Path, [<<"?">>, <<"#">>]),
    case binary:split(Bare, <<"://">>) of
        [_, Rest] when binary_part(Bare, 0, 1) =/= <<"/">> ->
            case binary:split(Rest, <<"/">>) of
                [_, Local] -> <<"/", Local/binary>>;
                [_] -> <<"/">>
            end;
        _ ->
            Bare
    end.

place(Status, Path) ->
    case {lists:member(Status, ?REFUSALS), binary:split(Path, <<"/">>, [global, trim_all])} of
        {true, _} -> integer_to_binary(Status);
        {false, []} -> <<"/">>;
        {false, [First]} -> <<"/", (segment(First))/binary>>;
        {false, [First | _]} -> <<"/", (segment(First))/binary, "/*">>
    end.

%% Ids, keys and attempts at mischief are all the same place.
segment(Segment) when byte_size(Segment) =< ?MAX_SEGMENT ->
    Digits = length([C || <<C>> <= Segment, C >= $0, C =< $9]),
    Odd = [C || <<C>> <= Segment, not name_char(C)],
    case Odd =:= [] andalso Digits =< ?MAX_DIGITS andalso Digits < byte_size(Segment) of
        true -> Segment;
        false -> <<"*">>
    end;
segment(_) ->
    <<"*">>.

name_char(C) ->
    C >= $a andalso C =< $z orelse C >= $A andalso C =< $Z orelse C >= $0 andalso C =< $9 orelse
        lists:member(C, "-_.~+").

clean(Text0) ->
    Text = binary:part(Text0, 0, min(?MAX_ROUTE, byte_size(Text0))),
    <<
        <<
            (case C < 32 orelse C =:= 127 of
                true -> $?;
                false -> C
            end)
        >>
     || <<C>> <= Text
    >>.

to_binary(B) when is_binary(B) -> B;
to_binary(A) when is_atom(A) -> atom_to_binary(A, utf8);
to_binary(L) when is_list(L) ->
    case unicode:characters_to_binary(L) of
        B when is_binary(B) -> B;
        _ -> error(badarg)
    end.
