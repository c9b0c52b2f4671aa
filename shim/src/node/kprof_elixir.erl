%% SPDX-License-Identifier: Apache-2.0
%% @doc Identity functions written in Elixir, for nodes that run it. Elixir evaluates the text; its
%% clauses are then made such as {@link kprof_match} compiles, so that arguments stay on the node:
%% `conn.method' and `%{route: route}' in a head become `map_get', and `nil' names nothing.
-module(kprof_elixir).

-export([is_fn/1, fn/1, plain/1]).

-define(CODE, 'Elixir.Code').
-define(EXCEPTION, 'Elixir.Exception').

%% @doc Whether a text is Elixir's: it begins with `fn'.
-spec is_fn(binary()) -> boolean().
is_fn(<<"fn", C, _/bits>>) -> lists:member(C, " \t\n({");
is_fn(_) -> false.

%% @doc The function that a text evaluates to, or why not, for people.
-spec fn(binary()) -> {ok, kprof:identity_fun()} | {error, unicode:chardata()}.
fn(Text) ->
    case code:ensure_loaded(?CODE) of
        {module, Code} ->
            try Code:eval_string(Text) of
                {Fn, _} when is_function(Fn, 1) -> {ok, plain(Fn)};
                _ -> {error, "want one fn of one argument"}
            catch
                _:Why -> {error, why(Why)}
            end;
        {error, _} ->
            {error, "this node runs no Elixir: write a fun of Erlang's"}
    end.

why(Why) ->
    Exception = ?EXCEPTION,
    try
        Exception:message(Why)
    catch
        _:_ -> io_lib:format("cannot be evaluated: ~0tP", [Why, 20])
    end.

%% @doc The same function with clauses that have no maps in their heads, where that can be.
-spec plain(kprof:identity_fun()) -> kprof:identity_fun().
plain(Fn) ->
    case erl_eval:fun_data(Fn) of
        {fun_data, Bindings, Clauses} ->
            Form = {'fun', 1, {clauses, [clause(Clause) || Clause <- Clauses]}},
            {value, Plain, _} = erl_eval:expr(Form, Bindings),
            Plain;
        _ ->
            Fn
    end.

clause({clause, At, Head, Guards, Body}) ->
    Dotless = nothing(dots(Body)),
    try
        {Plain, {_, Tests, Values}} = heads(Head, {0, [], #{}}),
        %% a name that stands twice says that both are the same
        _ = values(Plain, Values) =:= Plain orelse throw(keep),
        {clause, At, Plain, with(lists:reverse(Tests), values(Guards, Values)),
            values(Dotless, Values)}
    catch
        throw:keep -> {clause, At, Head, Guards, Dotless}
    end.

with([], Guards) -> Guards;
with(Tests, []) -> [Tests];
with(Tests, Guards) -> [Tests ++ Guard || Guard <- Guards].

%% In Elixir that is nothing.
nothing([{atom, At, nil}]) -> [{atom, At, undefined}];
nothing([Expr | Exprs]) when Exprs =/= [] -> [Expr | nothing(Exprs)];
nothing(Body) -> Body.

%% x.key, which Elixir makes a case of, that also calls functions of modules.
dots({'case', At, Of, [{clause, _, [{map, _, [Field]}], [], [{var, _, V}]} | _] = Clauses}) ->
    case Field of
        {map_field_exact, _, {atom, _, _} = Key, {var, _, V}} ->
            get(At, Key, dots(Of));
        _ ->
            {'case', At, dots(Of), dots(Clauses)}
    end;
dots(Tuple) when is_tuple(Tuple) -> list_to_tuple(dots(tuple_to_list(Tuple)));
dots([Head | Tail]) -> [dots(Head) | dots(Tail)];
dots(Other) -> Other.

get(At, Key, Of) ->
    call(At, map_get, [Key, Of]).

call(At, Name, Arguments) ->
    {call, At, {remote, At, {atom, At, erlang}, {atom, At, Name}}, Arguments}.

%% --- maps in heads ---

%% Each map is a variable, with a test for each of its keys; what its values are called is kept.
heads({match, At, {map, _, _} = Map, {var, _, _} = Var}, State) ->
    named(At, Var, Map, State);
heads({match, At, {var, _, _} = Var, {map, _, _} = Map}, State) ->
    named(At, Var, Map, State);
heads({map, At, _} = Map, {N, Tests, Values}) ->
    Var = {var, At, list_to_atom("_kprof@" ++ integer_to_list(N))},
    named(At, Var, Map, {N + 1, Tests, Values});
heads(Tuple, State) when is_tuple(Tuple) ->
    {Elements, Next} = heads(tuple_to_list(Tuple), State),
    {list_to_tuple(Elements), Next};
heads([Head | Tail], State0) ->
    {Plain, State1} = heads(Head, State0),
    {Rest, State} = heads(Tail, State1),
    {[Plain | Rest], State};
heads(Other, State) ->
    {Other, State}.

named(At, Var, Map, {N, Tests, Values}) ->
    {Var, fields(At, Var, Map, {N, [call(At, is_map, [Var]) | Tests], Values})}.

fields(At, Of, {map, _, Fields}, State) ->
    lists:foldl(
        fun
            ({map_field_exact, _, {atom, _, _} = Key, Value}, {N, Tests, Values}) ->
                Test = call(At, is_map_key, [Key, Of]),
                field(At, get(At, Key, Of), Value, {N, [Test | Tests], Values});
            (_, _) ->
                throw(keep)
        end,
        State,
        Fields
    ).

field(_, _, {var, _, '_'}, State) ->
    State;
field(_, _, {var, _, Name}, {_, _, Values}) when is_map_key(Name, Values) ->
    throw(keep);
field(_, Get, {var, _, Name}, {N, Tests, Values}) ->
    {N, Tests, Values#{Name => Get}};
field(At, Get, {map, _, _} = Map, State) ->
    fields(At, Get, Map, State);
field(At, Get, {Literal, _, _} = Value, {N, Tests, Values}) when
    Literal =:= atom; Literal =:= integer; Literal =:= bin
->
    {N, [{op, At, '=:=', Get, Value} | Tests], Values};
field(_, _, _, _) ->
    throw(keep).

%% The names of values in maps stand for how they are got.
values(Exprs, Values) when map_size(Values) =:= 0 -> Exprs;
values({var, _, Name}, Values) when is_map_key(Name, Values) -> maps:get(Name, Values);
values(Tuple, Values) when is_tuple(Tuple) ->
    list_to_tuple(values(tuple_to_list(Tuple), Values));
values([Head | Tail], Values) ->
    [values(Head, Values) | values(Tail, Values)];
values(Other, _) ->
    Other.
