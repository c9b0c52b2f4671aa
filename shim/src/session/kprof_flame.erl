%% SPDX-License-Identifier: Apache-2.0
%% @doc Full traces that this node itself asks its collector for ({@link kprof:flame/1}): what may
%% be asked for, who waits for the profile, and what he is told.
%%
%% The collector begins such a trace as it does for a tool, and answers when the profile is kept. It
%% takes one of a node at a time, so at most one is waited for here.
-module(kprof_flame).

-export([new/0, check/1, patience/1, ask/3, flamed/2, lost/1, answer/1]).

-export_type([waiting/0, wanted/0, flamed/0]).

-define(REQUESTS, 20).
-define(SECONDS, 30).
-define(MOST_REQUESTS, 100000).
-define(MOST_SECONDS, 3600).
-define(MOST_NAMES, 100).
-define(MOST_TEXT, 255).
% ms, besides the time that it traces: patterns, fates of requests, the writer
-define(MORE_MS, 60000).

-type waiting() :: none | {gen_statem:from(), Until :: integer()}.
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
    none.

%% @doc The options of {@link kprof:flame/1} as fields of the message.
-spec check(term()) -> {ok, wanted()} | {error, term()}.
check(Options) when is_map(Options) ->
    try
        maps:foreach(
            fun(Key, Value) ->
                is_map_key(Key, defaults()) orelse throw({bad_option, {Key, Value}})
            end,
            Options
        ),
        Given = maps:map(fun value/2, maps:merge(defaults(), Options)),
        #{identity := Identity, all_modules := All} = Given,
        {ok, (maps:without([identity, all_modules], Given))#{
            only => Identity,
            all => All
        }}
    catch
        throw:Reason -> {error, Reason}
    end;
check(Options) ->
    {error, {bad_flame, Options}}.

defaults() ->
    #{
        requests => ?REQUESTS,
        seconds => ?SECONDS,
        identity => undefined,
        name => <<>>,
        applications => [],
        modules => [],
        all_modules => false
    }.

value(requests, N) when is_integer(N), N >= 1, N =< ?MOST_REQUESTS -> N;
value(requests, V) ->
    bad(requests, V, "a number from 1 to 100000");
value(seconds, N) when is_integer(N), N >= 1, N =< ?MOST_SECONDS -> N;
value(seconds, V) ->
    bad(seconds, V, "a number from 1 to 3600");
value(identity, undefined) ->
    <<>>;
value(identity, V) ->
    case kprof_identify:text(V) of
        Text when is_binary(Text), Text =/= <<>>, byte_size(Text) =< ?MOST_TEXT -> Text;
        _ -> bad(identity, V, "an identity: text, or {text, text}")
    end;
value(name, V) ->
    text(name, V);
value(Names, V) when Names =:= applications; Names =:= modules ->
    is_list(V) andalso length(V) =< ?MOST_NAMES orelse
        bad(Names, V, "a list of names, 100 at most"),
    [#{name => text(Names, Name)} || Name <- V];
value(all_modules, B) when is_boolean(B) -> B;
value(all_modules, V) ->
    bad(all_modules, V, "true or false").

text(Key, V) ->
    case is_atom(V) orelse is_binary(V) orelse is_list(V) of
        true ->
            case kprof_identify:text(V) of
                Text when is_binary(Text), byte_size(Text) =< ?MOST_TEXT -> Text;
                _ -> bad(Key, V, "text of 255 bytes at most")
            end;
        false ->
            bad(Key, V, "text of 255 bytes at most")
    end.

-spec bad(atom(), term(), string()) -> no_return().
bad(Name, Value, Wanted) ->
    throw({bad_value, Name, Value, Wanted}).

%% @doc How long the caller waits at most, in ms: requests are waited for before it traces, too.
-spec patience(wanted()) -> pos_integer().
patience(#{seconds := Seconds}) ->
    2000 * Seconds + ?MORE_MS.

%% @doc Somebody is about to wait; `Until' in ms.
-spec ask(gen_statem:from(), integer(), waiting()) -> {ok, waiting()} | {error, flame_runs}.
ask(From, Until, none) ->
    {ok, {From, Until}};
ask(From, Until, {_, Before}) ->
    %% a collector that knows nothing of this never answers
    case erlang:monotonic_time(millisecond) > Before of
        true -> {ok, {From, Until}};
        false -> {error, flame_runs}
    end.

%% @doc The collector has told the end.
-spec flamed(flamed(), waiting()) -> waiting().
flamed(_, none) ->
    none;
flamed(Told, {From, _}) ->
    gen_statem:reply(From, answer(Told)),
    none.

%% @doc The collector is gone, or this trace is over.
-spec lost(waiting()) -> waiting().
lost(none) ->
    none;
lost({From, _}) ->
    gen_statem:reply(From, {error, {no_profile, "the connection to the collector ended"}}),
    none.

%% @doc What it comes to: the profile's number, or why there is none.
-spec answer(flamed()) -> {ok, pos_integer()} | {error, {no_profile, string()}}.
answer(#{profile := Profile}) when Profile > 0 ->
    {ok, Profile};
answer(#{reason := Reason, text := Text} = Told) ->
    #{incomplete := Incomplete, others := Others, unseen := Unseen} = Told,
    Why =
        if
            Reason =:= <<"error">>, Text =/= <<>> ->
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
