%% SPDX-License-Identifier: Apache-2.0
%% @doc Full traces that this node itself asks its collector for: for a caller of {@link
%% kprof:flame/1}, who waits for the profile, or for a web request ({@link kprof_flame_header}),
%% which waits until it is traced.
%%
%% The collector begins such a trace as it does for a tool, and answers when the profile is kept. It
%% takes one of a node at a time, so at most one is waited for here.
-module(kprof_flame).

-export([new/0, check/1, patience/1, ask/3, flamed/2, lost/1, answer/1]).
-export([begins/3, claim/2, stands/2, gave_up/2, is_gone/1, over/2]).

-export_type([waiting/0, wanted/0, flamed/0]).

-define(REQUESTS, 20).
-define(SECONDS, 30).
%% as LIMIT_FULL_ASKED and LIMIT_FULL_SECONDS of the collector
-define(MOST_REQUESTS, 100000).
-define(MOST_SECONDS, 3600).
-define(MOST_TEXT, 255).
% ms, besides the time that it traces: patterns, fates of requests, the writer
-define(MORE_MS, 60000).

-record(request, {
    label :: kprof_slots:label(),
    process :: pid(),
    answer :: reference(),
    % native time
    until :: integer(),
    % ms, since when its patterns stand
    since = none :: none | integer() | over,
    % how long the collector has for the profile, ms
    patience :: integer()
}).
-type waiting() :: kprof_caller:caller() | #request{}.
-type wanted() :: #{atom() => kprof_msgpack:value()}.
%% The fields of the message to the collector.
-type flamed() :: #{
    profile := non_neg_integer(),
    reason := binary(),
    text := binary(),
    requests := non_neg_integer(),
    incomplete := non_neg_integer(),
    others := non_neg_integer(),
    unseen := non_neg_integer()
}.
%% What the collector says in the end. profile: 0 is none.

%% @doc Nobody waits.
-spec new() -> waiting().
new() ->
    kprof_caller:new().

%% @doc The options of {@link kprof:flame/1} as fields of the message.
-spec check(term()) -> {ok, wanted()} | {error, term()}.
check(Options) when is_map(Options) ->
    case kprof_option_map:check(Options, usual(), fun value/2) of
        {ok, #{identity := Identity, all_modules := All} = Given} ->
            {ok, (maps:without([identity, all_modules], Given))#{only => Identity, all => All}};
        Error ->
            Error
    end;
check(Options) ->
    {error, {bad_flame, Options}}.

usual() ->
    #{
        requests => ?REQUESTS,
        seconds => ?SECONDS,
        identity => undefined,
        name => <<>>,
        applications => [],
        modules => [],
        all_modules => false
    }.

value(requests, V) ->
    kprof_option_map:number(requests, 1, ?MOST_REQUESTS, V);
value(seconds, V) ->
    kprof_option_map:number(seconds, 1, ?MOST_SECONDS, V);
value(identity, undefined) ->
    <<>>;
value(identity, V) ->
    case kprof_identify:text(V) of
        Text when is_binary(Text), Text =/= <<>>, byte_size(Text) =< ?MOST_TEXT -> Text;
        _ -> kprof_option_map:bad(identity, V, "an identity: text, or {text, text}")
    end;
value(name, V) ->
    kprof_option_map:text(name, V);
value(Names, V) when Names =:= applications; Names =:= modules ->
    kprof_option_map:names(Names, V);
value(all_modules, B) when is_boolean(B) -> B;
value(all_modules, V) ->
    kprof_option_map:bad(all_modules, V, "true or false").

%% @doc How long the caller waits at most, in ms: requests are waited for before it traces, too.
-spec patience(wanted()) -> pos_integer().
patience(#{seconds := Seconds}) ->
    2000 * Seconds + ?MORE_MS.

%% @doc Somebody is about to wait; `Until' in ms.
-spec ask(gen_statem:from(), integer(), waiting()) -> {ok, waiting()} | {error, flame_runs}.
ask(From, Until, Waiting) ->
    case is_free(Waiting) andalso kprof_caller:wait(From, Until, kprof_caller:new()) of
        false -> {error, flame_runs};
        {ok, _} = Ok -> Ok
    end.

is_free(#request{patience = Until}) -> now_ms() > Until;
is_free(Caller) -> kprof_caller:is_free(Caller).

%% --- of a web request ---

%% @doc A request is about to begin: what the collector is to be asked. Where that cannot be now,
%% the request has its answer.
-spec begins(kprof_flame_header:ask(), wanted(), waiting()) -> {ok, wanted(), waiting()} | no.
begins(#{label := Label, process := Pid, answer := Answer, until := Until}, Wanted, Waiting) ->
    Native = erlang:monotonic_time(),
    case is_free(Waiting) of
        % it has given up
        _ when Native >= Until ->
            no;
        true ->
            {ok,
                Wanted#{
                    requests => 1,
                    name => kprof_flame_header:name(Label),
                    label => Label,
                    scheduling => kprof_vm:unsafe(running) =:= no
                },
                #request{
                    label = Label,
                    process = Pid,
                    answer = Answer,
                    until = Until,
                    patience = now_ms() + patience(Wanted)
                }};
        false ->
            Answer ! {Answer, {no, "another one is traced so, or its profile is not kept yet"}},
            no
    end.

%% @doc The collector has told to trace the request of this label: its process, if it waits still.
-spec claim(term(), waiting()) -> {ok, pid()} | late.
claim(Label, #request{label = Label, process = Pid, until = Until, since = none}) ->
    case erlang:monotonic_time() < Until of
        true -> {ok, Pid};
        false -> late
    end;
claim(_, _) ->
    late.

%% @doc All stands, and the request may begin; unless that took too long.
-spec stands(kprof_slots:slots(), waiting()) -> {ok | late, waiting()}.
stands(Slots, #request{label = Label, answer = Answer, until = Until} = R) ->
    Waiting = R#request{since = now_ms()},
    case erlang:monotonic_time() < Until of
        true ->
            % before the request asks for its name
            ok = kprof_slots:set_full(Slots, Label),
            Answer ! {Answer, stands},
            logger:notice("kprof: a header has a request traced fully, as ~ts", [
                kprof_flame_header:name(Label)
            ]),
            {ok, Waiting};
        false ->
            {late, Waiting}
    end.

%% @doc The request of this label is over, or waits no longer: whether it is traced until now.
-spec gave_up(kprof_slots:label(), waiting()) -> {boolean(), waiting()}.
gave_up(Label, #request{label = Label, since = Since} = R) ->
    {is_integer(Since), R#request{until = erlang:monotonic_time()}};
gave_up(_, Waiting) ->
    {false, Waiting}.

%% @doc Whether the process of a request that is traced is gone: then it has ended, though nobody
%% may have said so.
-spec is_gone(waiting()) -> boolean().
is_gone(#request{process = Pid, since = Since}) when is_integer(Since) ->
    not is_process_alive(Pid);
is_gone(_) ->
    false.

%% @doc The patterns stand no longer.
-spec over(kprof_slots:slots(), waiting()) -> waiting().
over(Slots, #request{since = Since} = R) when is_integer(Since) ->
    ok = kprof_slots:set_full(Slots, 0),
    ok = kprof_slots:charge_flame(Slots, now_ms() - Since),
    R#request{since = over};
over(_, Waiting) ->
    Waiting.

%% --- the end ---

%% @doc The collector has told the end.
-spec flamed(flamed(), waiting()) -> waiting().
flamed(Told, #request{answer = Answer, since = none}) ->
    %% who has given up is not there any more
    {error, {_, Why}} = answer(Told),
    Answer ! {Answer, {no, Why}},
    none;
flamed(Told, #request{label = Label}) ->
    Name = kprof_flame_header:name(Label),
    case answer(Told) of
        {ok, Profile} ->
            logger:notice("kprof: ~ts is kept as profile ~b", [Name, Profile]);
        {error, {_, Why}} ->
            logger:warning("kprof: ~ts: there is no profile: ~ts", [Name, Why])
    end,
    none;
flamed(Told, Caller) ->
    kprof_caller:reply(answer(Told), Caller).

%% @doc The collector is gone, or this trace is over.
-spec lost(waiting()) -> waiting().
lost(#request{since = none}) ->
    none;
lost(#request{label = Label}) ->
    logger:warning("kprof: ~ts: there is no profile: the connection to the collector ended", [
        kprof_flame_header:name(Label)
    ]),
    none;
lost(Caller) ->
    kprof_caller:reply({error, {no_profile, "the connection to the collector ended"}}, Caller).

%% @doc What it comes to: the profile's number, or why there is none.
-spec answer(flamed()) -> {ok, pos_integer()} | {error, {no_profile, string()}}.
answer(#{profile := Profile}) when Profile > 0 ->
    {ok, Profile};
answer(#{reason := Reason, text := Text} = Told) ->
    #{incomplete := Incomplete, others := Others, unseen := Unseen} = Told,
    Why =
        if
            (Reason =:= <<"error">> orelse Reason =:= <<"no_function">>), Text =/= <<>> ->
                unicode:characters_to_list(Text);
            Incomplete > 0 ->
                came(Incomplete, "of each messages were lost or could not be joined");
            Unseen > 0 ->
                came(
                    Unseen,
                    "through processes that were not followed, or through none of these modules"
                );
            Others > 0 ->
                came(Others, "none of this identity");
            Text =/= <<>> ->
                "no request came; " ++ unicode:characters_to_list(Text);
            true ->
                "no request came"
        end,
    {error, {no_profile, Why}}.

came(1, Why) -> "1 request came, but " ++ Why;
came(N, Why) -> lists:flatten(io_lib:format("~b requests came, but ~ts", [N, Why])).

now_ms() ->
    erlang:monotonic_time(millisecond).
