%% SPDX-License-Identifier: Apache-2.0
%% @doc Options that are a map, as {@link kprof:flame/1} and {@link kprof:sample/1} take them: each
%% is checked, and those that are not given are the usual ones.
-module(kprof_option_map).

-export([check/3, number/4, text/2, names/2, bad/3]).

-define(MOST_NAMES, 100).
-define(MOST_TEXT, 255).

%% @doc `Usual' are all that there are; `Value' returns an option's value in the form that is
%% wanted, or throws ({@link bad/3}).
-spec check(map(), Usual :: #{atom() => term()}, fun((atom(), term()) -> term())) ->
    {ok, #{atom() => term()}} | {error, term()}.
check(Options, Usual, Value) ->
    try
        maps:foreach(
            fun(Key, V) -> is_map_key(Key, Usual) orelse throw({bad_option, {Key, V}}) end,
            Options
        ),
        {ok, maps:map(Value, maps:merge(Usual, Options))}
    catch
        throw:Reason -> {error, Reason}
    end.

%% @doc An integer within these bounds.
-spec number(atom(), integer(), integer(), term()) -> integer().
number(_, Least, Most, N) when is_integer(N), N >= Least, N =< Most -> N;
number(Key, Least, Most, V) ->
    bad(Key, V, lists:flatten(io_lib:format("a number from ~b to ~b", [Least, Most]))).

%% @doc A text of 255 bytes at most.
-spec text(atom(), term()) -> binary().
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

%% @doc A list of such texts, as a message has them.
-spec names(atom(), term()) -> [#{name := binary()}].
% what is no proper list has no length
names(Key, V) when length(V) =< ?MOST_NAMES ->
    [#{name => text(Key, Name)} || Name <- V];
names(Key, V) ->
    bad(Key, V, "a list of names, 100 at most").

%% @doc A value is none that this option may have.
-spec bad(atom(), term(), string()) -> no_return().
bad(Name, Value, Wanted) ->
    throw({bad_value, Name, Value, Wanted}).
