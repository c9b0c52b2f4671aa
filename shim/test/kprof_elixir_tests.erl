%% SPDX-License-Identifier: Apache-2.0
%% Identity functions in Elixir: their clauses as Elixir 1.14 evaluates them, which the node's match
%% specifications can have afterwards. (Scenario 65 runs a real Elixir.)
-module(kprof_elixir_tests).
-include("patient.hrl").

-define(MFA, {m, f, 2}).

var(Name) -> {var, 1, Name}.
atom(A) -> {atom, 1, A}.
map(Fields) -> {map, 1, [{map_field_exact, 1, atom(K), V} || {K, V} <- Fields]}.
arguments(A, B) -> {tuple, 1, [atom(m), atom(f), {cons, 1, A, {cons, 1, B, {nil, 1}}}]}.

%% x.key
dot(X, Key) ->
    {'case', 1, X, [
        {clause, 1, [map([{Key, var('_@1')}])], [], [var('_@1')]},
        {clause, 1, [var('_@1')], [[call(atom(erlang), atom(is_atom), [var('_@1')])]], [
            call(var('_@1'), atom(Key), [])
        ]},
        {clause, 1, [var('_@1')], [], [call(atom(erlang), atom(error), [atom(badkey)])]}
    ]}.

call(Module, Function, Arguments) ->
    {call, 1, {remote, 1, Module, Function}, Arguments}.

fn(Clauses) ->
    {value, Fn, _} = erl_eval:expr(
        {'fun', 1, {clauses, Clauses ++ [{clause, 1, [var('_')], [], [atom(nil)]}]}},
        erl_eval:new_bindings()
    ),
    Fn.

%% What the function says, and that its match specification says the same on the node; or `ask'.
says(Clauses, A, B) ->
    Plain = kprof_elixir:plain(fn(Clauses)),
    Said = Plain({m, f, [A, B]}),
    case kprof_match:rows(kprof_match:prepare(Plain), ?MFA) of
        {spec, Rows} ->
            Spec = [{Head, Guards, [{message, {{Identity}}}]} || {Head, Guards, Identity} <- Rows],
            {ok, {Same}, [], []} = erlang:match_spec_test([A, B], Spec, trace),
            ?assertEqual(Said, Same),
            Said;
        {ask, _} ->
            {ask, Said}
    end.

nil_test_() -> {timeout, 300, fun nil_case/0}.
nil_case() ->
    ?assertEqual(undefined, says([], a, b)),
    ?assertEqual(nil, says([{clause, 1, [arguments(var(x), var('_'))], [], [var(x)]}], nil, b)).

dot_test_() -> {timeout, 300, fun dot_case/0}.
dot_case() ->
    Clauses = [{clause, 1, [arguments(var(x), var('_'))], [], [dot(var(x), method)]}],
    ?assertEqual(<<"GET">>, says(Clauses, #{method => <<"GET">>}, b)),
    Nested = [{clause, 1, [arguments(var(x), var('_'))], [], [dot(dot(var(x), a), b)]}],
    ?assertEqual(17, says(Nested, #{a => #{b => 17}}, b)).

head_test_() -> {timeout, 300, fun head_case/0}.
head_case() ->
    Head = arguments(var(c), map([{route, var(r)}, {kind, atom(page)}, {more, var('_')}])),
    Clauses = [{clause, 1, [Head], [], [{tuple, 1, [dot(var(c), method), var(r)]}]}],
    Meta = #{route => <<"/a">>, kind => page, more => 1},
    ?assertEqual({get, <<"/a">>}, says(Clauses, #{method => get}, Meta)),
    [
        ?assertEqual(undefined, says(Clauses, #{method => get}, Other))
     || Other <- [Meta#{kind := text}, maps:remove(more, Meta), [], page]
    ].

named_test_() -> {timeout, 300, fun named_case/0}.
named_case() ->
    Map = map([{'__struct__', atom(conn)}, {a, map([{b, var(b)}])}]),
    Head = arguments({match, 1, Map, var(c)}, var(x)),
    Guard = {op, 1, '>', var(b), {integer, 1, 3}},
    Clauses = [{clause, 1, [Head], [[Guard]], [{tuple, 1, [dot(var(c), d), var(b)]}]}],
    ?assertEqual({d, 4}, says(Clauses, #{'__struct__' => conn, a => #{b => 4}, d => d}, x)),
    ?assertEqual(undefined, says(Clauses, #{'__struct__' => conn, a => #{b => 3}, d => d}, x)).

%% What no map_get says is left as it is, and asked for.
kept_test_() -> {timeout, 300, fun kept_case/0}.
kept_case() ->
    Twice = [{clause, 1, [arguments(map([{a, var(x)}]), var(x))], [], [var(x)]}],
    ?assertEqual({ask, 1}, says(Twice, #{a => 1}, 1)),
    ?assertEqual({ask, undefined}, says(Twice, #{a => 1}, 2)),
    Inside = [{clause, 1, [arguments(map([{a, {tuple, 1, [var(x)]}}]), var('_'))], [], [var(x)]}],
    ?assertEqual({ask, 1}, says(Inside, #{a => {1}}, b)).

text_test_() -> {timeout, 300, fun text_case/0}.
text_case() ->
    ?assert(kprof_elixir:is_fn(<<"fn {a, b} -> a end">>)),
    ?assert(kprof_elixir:is_fn(<<"fn{a, b} -> a end">>)),
    ?assertNot(kprof_elixir:is_fn(<<"fun(_) -> a end">>)),
    ?assertNot(kprof_elixir:is_fn(<<"fn">>)).

no_elixir_test_() -> {timeout, 300, fun no_elixir_case/0}.
no_elixir_case() ->
    case code:ensure_loaded('Elixir.Code') of
        {module, _} ->
            ok;
        {error, _} ->
            {error, Why} = kprof_elixir:fn(<<"fn _ -> 1 end">>),
            ?assertMatch("this node runs no Elixir" ++ _, Why)
    end.
