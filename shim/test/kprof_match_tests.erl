%% SPDX-License-Identifier: Apache-2.0
-module(kprof_match_tests).
-include("patient.hrl").

-define(MFA, {requests, handle_request, 2}).

%% A fun as a shell or a configuration text makes it.
fun_of(Text) ->
    {ok, [F]} = kprof_options:parse(unicode:characters_to_binary(Text ++ ".")),
    F.

-define(WHOLE, #{returns => whole, flags => []}).

kind(F, MFA) -> element(1, kprof_match:rows(kprof_match:prepare(F), MFA)).

spec(F, MFA, How) ->
    {Kind, Rows} = kprof_match:rows(F, MFA),
    {Kind, kprof_match:spec(Rows, How)}.

%% What the VM would put into the trace message for a call: the identity of the message element.
identity(F, {M, N, _} = MFA, Args) ->
    {spec, Spec} = spec(kprof_match:prepare(F), MFA, ?WHOLE),
    %% is_seq_trace has no value in a test: leave it out
    Bare = [
        {Head, Guards -- [{is_seq_trace}], [{message, Identity}]}
     || {Head, [{is_seq_trace} | _] = Guards, [
            {message, {{{get_seq_token}, Identity}}}, {exception_trace}
        ]} <- Spec
    ],
    {ok, _, Flags, _} = erlang:match_spec_test(
        Args, [{H, G, [{message, I}]} || {H, G, [{message, I}]} <- Bare], trace
    ),
    _ = {M, N, Flags},
    {ok, Result, _, []} = erlang:match_spec_test(
        Args, [{H, G, [{message, I}]} || {H, G, [{message, I}]} <- Bare], trace
    ),
    Result.

said(F, {M, N, _}, Args) ->
    try
        F({M, N, Args})
    catch
        error:_ -> undefined
    end.

%% The match specification says what the fun says, for calls of all kinds.
agrees(Text, MFA, Calls) ->
    F = fun_of(Text),
    [
        ?_assertEqual({Args, said(F, MFA, Args)}, {Args, value(identity(F, MFA, Args))})
     || Args <- Calls
    ].

%% erlang:match_spec_test gives the message in place of `true'.
value(true) -> no_message;
value(V) -> V.

issue() ->
    "fun({requests, handle_request, [create, _]}) -> create;\n"
    "        ({requests, handle_request, [update, _]}) -> update;\n"
    "        (_) -> undefined end".

calls() ->
    [
        [create, 1],
        [update, 2],
        [delete, 3],
        ["create", 1],
        [<<"create">>, x],
        [1, 1],
        [1, 2],
        [1.0, 1],
        [[], []],
        [{a, b}, c],
        [{user, 7}, {opts, [x]}],
        ["/users/12", get],
        [self(), make_ref()],
        ['$1', '_'],
        [undefined, undefined],
        [#{a => 1}, 5],
        [-1, 3.5]
    ].

spec_test_() ->
    [
        agrees(issue(), ?MFA, calls()),
        agrees(
            "fun({_, _, [X, _]}) when is_atom(X) -> X; ({_, _, [\"create\", _]}) -> \"text\";\n"
            "                ({_, _, [<<\"create\">>, _]}) -> <<\"bin\">> end",
            ?MFA,
            calls()
        ),
        agrees(
            "fun({_, _, [X, X]}) -> same; ({_, _, [X, Y]}) when is_integer(X), Y > 1; is_float(Y) "
            "-> {X, big};"
            " ({requests, F, [{user, N} | _]}) -> {F, N}; ({other, _, _}) -> other; ({_, _, [_, "
            "_, _]}) -> three end",
            ?MFA,
            calls()
        ),
        agrees(
            "fun({_, _, [\"/users/\" ++ _, M]}) -> {users, M}; ({_, _, [[], _]}) -> nil; ({_, _, "
            "[-1, 3.5]}) -> 'neg' end",
            ?MFA,
            calls()
        ),
        agrees(
            "fun({_, _, [X, _]}) when hd(X) =:= $c -> c; ({_, _, [X, _]}) when element(1, X) =:= "
            "user orelse X =:= 1 -> u;"
            " ({_, _, ['$odd' | _]}) -> odd end",
            {requests, handle_request, 1},
            [[X] || [X, _] <- calls()]
        ),
        agrees(
            "fun({_, _, [create, _]}) -> undefined; ({_, _, [_, _]}) -> '$1' end", ?MFA, calls()
        ),
        agrees(
            "begin Who = 'the one', fun({_, _, [create, _]}) -> {Who, 1}; ({_, _, [X, _]}) when X "
            "=:= Who -> Who end end",
            ?MFA,
            calls()
        ),
        agrees("fun({requests, F, _}) -> F end", ?MFA, calls()),
        agrees(
            "fun({_, _, [R, _]}) when is_map_key(a, R) -> {map_get(a, R), map_get(b, R)};\n"
            "                ({_, _, [R, _]}) -> {element(1, R), erlang:map_size(R)} end",
            ?MFA,
            [[#{a => 1, b => 2}, x], [#{a => 1}, x], [#{b => 1}, x], [{t}, x], [[], y]]
        ),
        agrees(
            "fun({_, _, [R, _]}) when R =:= 1; is_tuple(R) -> element(2, R); ({_, _, [_, R]}) -> "
            "hd(R); (_) -> none end",
            ?MFA,
            [[1, [2]], [{a, b}, c], [{a}, [c]], [x, [c]], [x, []], [x, y]]
        ),
        agrees("fun(_) -> all end", ?MFA, calls()),
        agrees("fun({_, _, _}) -> undefined end", ?MFA, calls())
    ].

%% Clauses after one that takes everything are not even looked at; nor are those of other functions.
irrelevant_test_() ->
    [
        ?_assertEqual(
            spec, kind(fun_of("fun({_, _, _}) -> x; ({_, _, [A, _]}) -> io:format(A) end"), ?MFA)
        ),
        ?_assertEqual(
            spec,
            kind(fun_of("fun({m, f, [A, _]}) -> io:format(A); ({requests, _, _}) -> x end"), ?MFA)
        ),
        ?_assertMatch(
            {spec, [{'_', _, [{message, {{{get_seq_token}, undefined}}}, _]}]},
            spec(kprof_match:prepare(fun_of("fun({m, f, [a]}) -> x end")), ?MFA, ?WHOLE)
        )
    ].

ask_test_() ->
    [
        ?_assertEqual(ask, kind(fun_of(Text), ?MFA))
     || Text <- [
            "fun({_, _, [A, _]}) -> list_to_atom(A) end",
            "fun({_, _, [A, _]}) -> case A of x -> y; _ -> z end end",
            "fun({_, _, [#{a := X}, _]}) -> X end",
            "fun({_, _, [<<A, _/binary>>, _]}) -> A end",
            "fun({_, _, [A, _]}) -> B = A, B end",
            "fun({_, _, Args}) -> hd(Args) end",
            "fun(X) -> element(2, X) end",
            "fun F({_, _, [A, _]}) -> A end",
            "fun({_, _, ['$1', _]}) -> x end",
            "fun({M, _, [M, _]}) -> x end",
            "fun({_, _, [A, _]}) when is_function(A, 2) -> x end",
            "fun({_, _, [A, _]}) -> {A, b, c} end"
        ]
    ].

none_test_() -> {timeout, 300, fun none_case/0}.
none_case() ->
    ?assertMatch(
        {none, [
            {'_', [{is_seq_trace}], [{message, {{{get_seq_token}, undefined}}}, {exception_trace}]}
        ]},
        spec(kprof_match:prepare(undefined), ?MFA, ?WHOLE)
    ).

ask_spec_test_() -> {timeout, 300, fun ask_spec_case/0}.
ask_spec_case() ->
    ?assertEqual(
        {ask, [
            {'_', [{is_seq_trace}], [{message, {{{get_seq_token}, ask, '$_'}}}, {exception_trace}]}
        ]},
        spec(opaque, ?MFA, ?WHOLE)
    ).

%% Without returns the caller is told in their place; nothing else differs.
returns_none_test_() -> {timeout, 300, fun returns_none_case/0}.
returns_none_case() ->
    None = #{returns => none, flags => []},
    ?assertEqual(
        {none, [
            {'_', [{is_seq_trace}], [
                {message, {{{get_seq_token}, {caller}, undefined, none}}}, {trace, [], [exiting]}
            ]}
        ]},
        spec(none, ?MFA, None)
    ),
    ?assertEqual(
        {ask, [
            {'_', [{is_seq_trace}], [
                {message, {{{get_seq_token}, {caller}, ask, '$_', none}}}, {trace, [], [exiting]}
            ]}
        ]},
        spec(opaque, ?MFA, None)
    ),
    {spec, Whole} = spec(kprof_match:prepare(fun_of(issue())), ?MFA, ?WHOLE),
    {spec, Spec} = spec(kprof_match:prepare(fun_of(issue())), ?MFA, None),
    ?assertEqual(
        [
            {H, G, [{message, {{{get_seq_token}, {caller}, I, none}}}, {trace, [], [exiting]}]}
         || {H, G, [{message, {{{get_seq_token}, I}}}, {exception_trace}]} <- Whole
        ],
        Spec
    ).

%% What a process is traced for besides is put on with the token and taken off without it.
flags_test_() -> {timeout, 300, fun flags_case/0}.
flags_case() ->
    Flags = [garbage_collection, running],
    {none, [With, Without]} = spec(none, ?MFA, #{returns => whole, flags => Flags}),
    ?assertEqual(
        {'_', [{is_seq_trace}], [
            {message, {{{get_seq_token}, undefined}}}, {exception_trace}, {trace, [], Flags}
        ]},
        With
    ),
    ?assertEqual({'_', [], [{message, false}, {trace, Flags, []}]}, Without),
    {spec, Spec} = spec(kprof_match:prepare(fun_of(issue())), ?MFA, #{
        returns => none, flags => [running]
    }),
    Armed = [{trace, [], [running, exiting]}],
    ?assertEqual(
        [Armed, Armed, Armed, [{message, false}, {trace, [running], []}]],
        [
            case Body of
                [{message, {_}} | More] -> More;
                _ -> Body
            end
         || {_, _, Body} <- Spec
        ]
    ).

%% Compiled funs: found through debug information when there is just one in the function.
compiled() ->
    fun
        ({_, _, [create, _]}) -> create;
        (_) -> undefined
    end.
two() -> {fun({_, _, [a, _]}) -> a end, fun({_, _, [b, _]}) -> b end}.
closure(X) -> fun({_, _, [a, _]}) -> X end.

compiled_test_() ->
    [
        ?_assertEqual(spec, kind(compiled(), ?MFA)),
        ?_assertEqual(create, value(identity(compiled(), ?MFA, [create, 1]))),
        ?_assertEqual(ask, kind(element(2, two()), ?MFA)),
        ?_assertEqual(ask, kind(closure(y), ?MFA)),
        ?_assertEqual(ask, kind(fun erlang:element/2, ?MFA))
    ].

%% The VM accepts every pattern we make.
accepted_test_() ->
    [
        ?_assertEqual({Text, 1}, {Text, trace_pattern(Text, #{returns => Returns, flags => Flags})})
     || Text <- [issue(), "fun({_, _, [A, _]}) -> {A, \"x\"} end", "fun(X) -> X end"],
        Returns <- [whole, none],
        Flags <- [[], [garbage_collection, running]]
    ] ++
        [
            ?_assertEqual({MFA, 1}, {MFA, trace_pattern(MFA, Spec)})
         || Flags <- [[], [running]],
            {MFA, Spec} <- kprof_mark:patterns(Flags) ++ kprof_match:spawns()
        ].

trace_pattern(Text, How) when is_list(Text) ->
    MFA = {lists, nth, 2},
    {_, Spec} = spec(kprof_match:prepare(fun_of(Text)), MFA, How),
    trace_pattern(MFA, Spec);
trace_pattern(MFA, Spec) ->
    {module, _} = code:ensure_loaded(element(1, MFA)),
    try
        erlang:trace_pattern(MFA, Spec, [local])
    after
        erlang:trace_pattern(MFA, false, [local])
    end.
