%% SPDX-License-Identifier: Apache-2.0
%% @doc Triggers as they are written in the option `triggers' of {@link kprof:start_trace/1}, or
%% sent by a tool, checked and brought into one form.
-module(kprof_trigger_options).

-export([check/1, sent/1, most/0]).

-define(MOST, 16).
-define(MOST_NAME, 100).
-define(MOST_ABOVE, 1 bsl 53).
-define(GAUGES, [run_queue, message_queue_len, memory, reductions]).
-define(SAMPLED_S, 30).
-define(MOST_SAMPLED_S, 3600).

%% @doc How many triggers a trace may have.
-spec most() -> pos_integer().
most() ->
    ?MOST.

%% @doc The triggers of a list of {@type kprof:trigger()}. Throws a reason that {@link kprof_error}
%% knows.
-spec check(term()) -> [kprof_trigger:spec()].
check(Triggers) when is_list(Triggers) ->
    length(Triggers) =< ?MOST orelse throw({too_many_triggers, length(Triggers), ?MOST}),
    Specs = [trigger(T) || T <- Triggers],
    Names = [Name || #{name := Name} <- Specs],
    _ = [throw({duplicate_trigger, Name}) || Name <- Names -- lists:usort(Names)],
    Specs;
check(V) ->
    throw({bad_value, triggers, V, "a list of triggers, such as {run_queue, {above, 8}}"}).

trigger({tier_p99, Tier, Above}) when not is_tuple(Tier) ->
    trigger({tier_p99, Tier, Above, #{}});
trigger({tier_p99, Tier, {above_ms, N}, Options}) ->
    Name = text(tier_p99, Tier),
    made({tier_p99, Name}, <<"tier_p99 ", Name/binary>>, N, Options);
trigger({Of, Above}) ->
    trigger({Of, Above, #{}});
trigger({Of, {above, N}, Options}) ->
    lists:member(Of, ?GAUGES) orelse throw({bad_trigger, {Of, {above, N}}}),
    made(Of, atom_to_binary(Of, utf8), N, Options);
trigger(Other) ->
    throw({bad_trigger, Other}).

made(Of, Usual, Above, Options) when is_map(Options) ->
    is_number(Above) andalso Above >= 0 andalso Above =< ?MOST_ABOVE orelse
        throw({bad_trigger, Usual, {bad_value, above, Above, "a number from 0 on"}}),
    case kprof_option_map:check(Options, usual(Usual, Options), fun value/2) of
        {ok, #{name := Name, high_water := HighWater, for := For, every := Every} = Checked} ->
            HighWater andalso is_map_key(for, Options) andalso
                throw({bad_trigger, Usual, {bad_value, for, For / 1000, "no high_water"}}),
            #{
                name => Name,
                of_what => Of,
                above => Above,
                for_ms => For,
                high_water => HighWater,
                every_ms => Every,
                sample => sample(Of, Name, maps:get(sample, Checked))
            };
        {error, Reason} ->
            throw({bad_trigger, Usual, Reason})
    end;
made(_, Usual, _, Options) ->
    throw({bad_trigger, Usual, {bad_value, options, Options, "a map"}}).

usual(Name, Options) ->
    For =
        case Options of
            #{high_water := true} -> 0;
            _ -> 5
        end,
    #{name => Name, for => For, every => 600, high_water => false, sample => #{}}.

value(name, V) ->
    text(name, V);
value(for, S) when is_number(S), S >= 0, S =< 3600 -> round(S * 1000);
value(for, V) ->
    kprof_option_map:bad(for, V, "seconds, from 0 to 3600");
value(every, S) when is_number(S), S >= 10, S =< 604800 -> round(S * 1000);
value(every, V) ->
    kprof_option_map:bad(every, V, "seconds, from 10 to 604800");
value(high_water, B) when is_boolean(B) -> B;
value(high_water, V) ->
    kprof_option_map:bad(high_water, V, "true or false");
value(sample, Map) when is_map(Map) -> Map;
value(sample, V) ->
    kprof_option_map:bad(sample, V, "a map, the options of kprof:sample/1").

%% It goes on into texts for people.
text(Key, V) ->
    Text = kprof_option_map:text(Key, V),
    Text =/= <<>> andalso byte_size(Text) =< ?MOST_NAME andalso
        is_list(unicode:characters_to_list(Text)) orelse
        kprof_option_map:bad(Key, V, "text of 1 to 100 bytes"),
    Text.

%% What it looks at is by itself what the trigger is about.
sample(Of, Name, Given) ->
    By =
        case Of of
            message_queue_len -> message_queue_len;
            memory -> memory;
            _ -> reductions
        end,
    Usual = #{seconds => ?SAMPLED_S, by => By, label => Name},
    case kprof_sample_options:check(maps:merge(Usual, Given)) of
        {ok, #{seconds := Seconds}} when Seconds > ?MOST_SAMPLED_S ->
            throw({bad_trigger, Name, {bad_value, seconds, Seconds, "3600 at most"}});
        {ok, Wanted} ->
            Wanted;
        {error, Reason} ->
            throw({bad_trigger, Name, Reason})
    end.

%% @doc The trigger that a tool's message wants added. What is not in it is as usual.
-spec sent(#{binary() => kprof_msgpack:value()}) -> {ok, kprof_trigger:spec()} | {error, term()}.
sent(Map) ->
    try
        [Spec] = check([written(Map)]),
        {ok, Spec}
    catch
        throw:Reason -> {error, Reason}
    end.

written(#{<<"trigger">> := <<"tier_p99">>} = Map) ->
    {tier_p99, maps:get(<<"tier">>, Map, <<>>), {above_ms, above(Map)}, written_options(Map)};
written(Map) ->
    Text = maps:get(<<"trigger">>, Map, <<>>),
    case [Of || Of <- ?GAUGES, atom_to_binary(Of, utf8) =:= Text] of
        [Of] -> {Of, {above, above(Map)}, written_options(Map)};
        [] -> throw({bad_trigger, Text})
    end.

above(Map) ->
    maps:get(<<"above">>, Map, none).

written_options(Map) ->
    Own = given([{<<"name">>, name}, {<<"high_water">>, high_water}], Map),
    Times = maps:map(
        fun
            (_, Ms) when is_integer(Ms) -> Ms / 1000;
            (_, Other) -> Other
        end,
        given([{<<"for_ms">>, for}, {<<"every_ms">>, every}], Map)
    ),
    Sample = given([{<<"seconds">>, seconds}, {<<"hz">>, hz}, {<<"label">>, label}], Map),
    maps:merge(Own, Times#{sample => Sample}).

given(Keys, Map) ->
    maps:from_list([{Key, maps:get(Field, Map)} || {Field, Key} <- Keys, is_map_key(Field, Map)]).
