%% @doc How many requests get a token: what the user asked for, and the level, the part of it that the guard lets through.
%% {@link put/2} writes the product of both where `set_token' reads it.
-module(kprof_sampling).

-export([new/1, ask/2, asked/1, lower/2, raise/1, level/1, one_in/1, put/2, describe/1, fields/1]).

-export_type([asked/0, sampling/0]).

-define(WHOLE, 1000000).        % the level is told in millionths
-define(LEAST, 1).
-define(MAX_ONE_IN, 1 bsl 30).

-type asked() :: {one_in, pos_integer()}.
-record(sampling, {asked :: asked(), level = ?WHOLE :: pos_integer()}).
-opaque sampling() :: #sampling{}.

%% @doc As it was asked for.
-spec new(asked()) -> sampling().
new(Asked) ->
    #sampling{asked = Asked}.

%% @doc Something else is asked for; the level stays.
-spec ask(asked(), sampling()) -> sampling().
ask(Asked, S) ->
    S#sampling{asked = Asked}.

-spec asked(sampling()) -> asked().
asked(#sampling{asked = Asked}) ->
    Asked.

%% @doc The level becomes a part of itself, half of it for example.
-spec lower(float(), sampling()) -> sampling().
lower(Part, #sampling{level = Level} = S) when Part < 1 ->
    S#sampling{level = max(?LEAST, trunc(Level * Part))}.

%% @doc The level doubles, up to what was asked for.
-spec raise(sampling()) -> sampling().
raise(#sampling{level = Level} = S) ->
    S#sampling{level = min(?WHOLE, 2 * Level)}.

%% @doc In millionths; 1000000 is all that was asked for.
-spec level(sampling()) -> pos_integer().
level(#sampling{level = Level}) ->
    Level.

%% @doc Puts it in force.
-spec put(kprof_slots:slots(), sampling()) -> ok.
put(Slots, S) ->
    kprof_slots:set_one_in(Slots, one_in(S)).

%% @doc One request in how many is in force.
-spec one_in(sampling()) -> pos_integer().
one_in(#sampling{asked = {one_in, N}, level = Level}) ->
    min(?MAX_ONE_IN, (N * ?WHOLE + Level - 1) div Level).

%% @doc What is in force, in words.
-spec describe(sampling()) -> string().
describe(S) ->
    case one_in(S) of
        1 -> "every request";
        N -> "one request in " ++ integer_to_list(N)
    end.

%% @doc What the collector is told.
-spec fields(sampling()) -> #{one_in := non_neg_integer(), per_second := non_neg_integer(), level_ppm := pos_integer()}.
fields(#sampling{asked = {one_in, N}, level = Level}) ->
    #{one_in => N, per_second => 0, level_ppm => Level}.
