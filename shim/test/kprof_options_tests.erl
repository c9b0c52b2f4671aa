%% SPDX-License-Identifier: Apache-2.0
-module(kprof_options_tests).
-include("patient.hrl").

-define(TIERS, {tier_config, [{a, {lists, nth, 2}}]}).

good_test_() -> {timeout, 300, fun good_case/0}.
good_case() ->
    {ok, O} = kprof_options:check([
        {tier_config, [
            {a, {lists, nth, 2}}, {"b", {lists, last, 1}}, {<<"c">>, {string, to_upper, 1}}
        ]},
        {identity_f, fun(_) -> x end},
        {print_calls, true},
        {stats_dumper, {pid, self()}},
        {collector, {"::1", 99}},
        {sample, {one_in, 7}},
        {slow_call_threshold, 1000}
    ]),
    ?assertMatch(
        #{
            tiers := [
                #{name := <<"a">>, mfa := {lists, nth, 2}}, #{name := <<"b">>}, #{name := <<"c">>}
            ],
            flags := [],
            slow_callback := undefined,
            print_calls := true,
            collector := {"::1", {0, 0, 0, 0, 0, 0, 0, 1}, 99},
            sample := {one_in, 7},
            weights := #{},
            slow_us := 1000
        },
        O
    ).

defaults_test_() -> {timeout, 300, fun defaults_case/0}.
defaults_case() ->
    ?assertMatch(
        {ok, #{
            collector := {"127.0.0.1", {127, 0, 0, 1}, 4711},
            sample := {one_in, 1},
            print_calls := false,
            stats_dumper := false,
            slow_us := undefined,
            identity_f := undefined
        }},
        kprof_options:check([?TIERS])
    ).

%% For a node whose stacks are to be sampled, and no more.
nothing_timed_test_() ->
    [
        ?_assertMatch({ok, #{tiers := []}}, kprof_options:check(Options))
     || Options <- [
            [{tier_config, []}],
            [{tier_config, []}, {print_calls, true}]
        ]
    ].

%% Each error names what is wrong, in a line of text.
errors_test_() ->
    [
        {Word,
            ?_test(begin
                {error, Reason} = kprof_options:check(Options),
                Line = kprof:format_error(Reason),
                ?assertNotEqual({Line, nomatch}, {Line, string:find(Line, Word)}),
                ?assertEqual(nomatch, string:find(Line, "\n"))
            end)}
     || {Word, Options} <-
            [
                {"list", nonsense},
                {"list", [?TIERS | improper]},
                {"tier_config", [{print_calls, true}]},
                {"tier_config", []},
                {"colour", [?TIERS, {colour, red}]},
                {"verbose", [?TIERS, verbose]},
                {"given twice", [?TIERS, ?TIERS]},
                {"print_calls", [?TIERS, {print_calls, yes}]},
                {"identity_f", [?TIERS, {identity_f, fun() -> x end}]},
                {"stats_dumper", [?TIERS, {stats_dumper, stdout}]},
                {"/nowhere/at/all", [?TIERS, {stats_dumper, {file, "/nowhere/at/all"}}]},
                {"stats_dumper", [?TIERS, {stats_dumper, {file, ""}}]},
                {"collector", [?TIERS, {collector, "localhost"}]},
                {"collector", [?TIERS, {collector, {"h", 0}}]},
                {"collector", [?TIERS, {collector, {{1, 2}, 5}}]},
                {"sample", [?TIERS, {sample, {one_in, 0}}]},
                {"sample", [?TIERS, {sample, {per_second, 0}}]},
                {"sample", [?TIERS, {sample, {per_second, 1000001}}]},
                {"sample", [{entry, [{lists, nth, 2}]}, {sample, {per_second, 5}}]},
                {"weights", [?TIERS, {sample_weights, [{a, 1}]}]},
                {"weights", [?TIERS, {sample_weights, #{a => -1}}]},
                {"weights", [?TIERS, {sample_weights, #{{a, 7} => 1}}]},
                {"weights", [?TIERS, {sample_weights, #{undefined => 1}}]},
                {"sample", [?TIERS, {sample, 10}]},
                {"{Module, Function, Arity}", [{entry, lists}]},
                {"{Module, Function, Arity}", [{entry, [{lists, nth, '_'}]}]},
                {"{Module, Function, Arity}", [{entry, {lists, nth, 256}}]},
                {"lists:nth/2 is given twice", [{entry, [{lists, nth, 2}, {lists, nth, 2}]}]},
                {"none or whole", [{entry, {{lists, nth, 2}, #{returns => some}}}]},
                {"the only one is returns", [{entry, {{lists, nth, 2}, #{x => 1}}}]},
                {"{Module, Function, Arity}", [{entry, {{lists, nth, '_'}, #{returns => none}}}]},
                {"{Module, Function, Arity}", [{entry, [{lists, nth}]}]},
                {"lists:nth/2 is given twice", [
                    {entry, [{lists, nth, 2}, {{lists, nth, 2}, #{returns => none}}]}
                ]},
                {"kprof_token:set/3", [{entry, {kprof_token, set, 3}}]},
                {"lists:nope/1", [{entry, {lists, nope, 1}}]},
                {"or an entry", [{print_calls, true}]},
                {"two tiers are named", [
                    {tier_config, [{"lists:nth/2", {lists, last, 1}}]}, {entry, {lists, nth, 2}}
                ]},
                {"slow_call_threshold", [?TIERS, {slow_call_threshold, -1}]},
                {"tier_config", [{tier_config, lists}]},
                {"lists:nth", [{tier_config, ['lists:nth']}]},
                {"wildcard", [{tier_config, [{t, {lists, '_', 1}}]}]},
                {"wildcard", [{tier_config, [{t, {'_', '_', '_'}}]}]},
                {"wildcard", [{tier_config, [{t, {lists, nth, '_'}}]}]},
                {"lists:nope/1", [{tier_config, [{t, {lists, nope, 1}}]}]},
                {"colour", [{tier_config, [{t, {lists, nth, 2}, #{colour => red}}]}]},
                {"none or whole", [{tier_config, [{t, {lists, nth, 2}, #{returns => some}}]}]},
                {"returns", [{tier_config, [{t, {lists, nth, 2}, []}]}]},
                {"tier is", [{tier_config, [{t, lists}]}]},
                {"trace_gc", [?TIERS, {trace_gc, 1}]},
                {"trace_scheduling", [?TIERS, {trace_scheduling, on}]},
                {"slow_call_callback", [?TIERS, {slow_call_callback, fun(_) -> ok end}]},
                {"kprof_token:set/3", [{tier_config, [{t, {kprof_token, set, 3}}]}]},
                {"two tiers are named same", [
                    {tier_config, [{same, {lists, nth, 2}}, {"same", {lists, last, 1}}]}
                ]},
                {"lists:nth/2", [{tier_config, [{a, {lists, nth, 2}}, {b, {lists, nth, 2}}]}]},
                {"_total", [{tier_config, [{'_total', {lists, nth, 2}}]}]},
                {"tier name", [{tier_config, [{17, {lists, nth, 2}}]}]},
                {"255", [{tier_config, [{lists:duplicate(256, $x), {lists, nth, 2}}]}]},
                {"256", [{tier_config, lists:duplicate(300, {a, {lists, nth, 2}})}]}
            ]
    ].

%% An entry is a tier: under the name that the tiers give it, or under its own.
entry_test_() -> {timeout, 300, fun entry_case/0}.
entry_case() ->
    Tiers = fun(Options) ->
        {ok, #{tiers := Ts}} = kprof_options:check(Options),
        [{N, MFA, E} || #{name := N, mfa := MFA, entry := E} <- Ts]
    end,
    ?assertEqual([{<<"lists:nth/2">>, {lists, nth, 2}, true}], Tiers([{entry, {lists, nth, 2}}])),
    ?assertEqual(
        [{<<"a">>, {lists, nth, 2}, true}, {<<"lists:last/1">>, {lists, last, 1}, true}],
        Tiers([?TIERS, {entry, [{lists, nth, 2}, {lists, last, 1}]}])
    ),
    ?assertEqual([{<<"a">>, {lists, nth, 2}, false}], Tiers([?TIERS])),
    ?assertEqual(
        [{<<"My.App.all/2">>, {'Elixir.My.App', all, 2}, true}],
        Tiers([{entry, [{'Elixir.My.App', all, 2}]}])
    ),
    ?assertEqual([{<<"a">>, {lists, nth, 2}, false}], Tiers([?TIERS, {entry, []}])).

%% Its value travels unless one of both says that it shall not.
entry_returns_test_() -> {timeout, 300, fun entry_returns_case/0}.
entry_returns_case() ->
    Returns = fun(Options) ->
        {ok, #{tiers := Ts}} = kprof_options:check(Options),
        [{E, R} || #{entry := E, returns := R} <- Ts]
    end,
    ?assertEqual([{true, none}], Returns([{entry, {{lists, nth, 2}, #{returns => none}}}])),
    ?assertEqual(
        [{true, whole}, {true, none}],
        Returns([{entry, [{lists, nth, 2}, {{lists, last, 1}, #{returns => none}}]}])
    ),
    Tier = {tier_config, [{a, {lists, nth, 2}, #{returns => none}}]},
    ?assertEqual([{true, none}], Returns([Tier, {entry, {lists, nth, 2}}])),
    ?assertEqual([{true, whole}], Returns([Tier, {entry, {{lists, nth, 2}, #{returns => whole}}}])),
    ?assertEqual([{true, none}], Returns([?TIERS, {entry, {{lists, nth, 2}, #{returns => none}}}])).

%% A module that is not loaded yet is loaded.
loads_test_() -> {timeout, 300, fun loads_case/0}.
loads_case() ->
    _ = code:purge(zip),
    _ = code:delete(zip),
    _ = code:purge(zip),
    ?assertMatch({ok, _}, kprof_options:check([{tier_config, [{z, {zip, unzip, 2}}]}])),
    ?assertNotEqual(false, code:is_loaded(zip)).

%% One that cannot be loaded may come later.
absent_module_test_() -> {timeout, 300, fun absent_module_case/0}.
absent_module_case() ->
    ?assertMatch(
        {ok, #{tiers := [#{mfa := {no_such_mod, f, 1}}]}},
        kprof_options:check([{tier_config, [{t, {no_such_mod, f, 1}}]}])
    ).

returns_test_() -> {timeout, 300, fun returns_case/0}.
returns_case() ->
    {ok, #{tiers := Tiers}} =
        kprof_options:check([
            {tier_config, [
                {a, {lists, nth, 2}},
                {b, {lists, last, 1}, #{}},
                {c, {lists, sum, 1}, #{returns => none}},
                {d, {lists, max, 1}, #{returns => whole}}
            ]}
        ]),
    ?assertEqual([whole, whole, none, whole], [Returns || #{returns := Returns} <- Tiers]).

more_flags_test_() -> {timeout, 300, fun more_flags_case/0}.
more_flags_case() ->
    Callback = fun(_, _) -> ok end,
    Safe = [Flag || Flag <- [garbage_collection, running], kprof_vm:unsafe(Flag) =:= no],
    ?assertMatch(
        {ok, #{flags := Safe, slow_callback := Callback}},
        kprof_options:check([
            ?TIERS,
            {trace_gc, lists:member(garbage_collection, Safe)},
            {trace_scheduling, lists:member(running, Safe)},
            {slow_call_callback, Callback}
        ])
    ),
    ?assertMatch(
        {ok, #{flags := []}},
        kprof_options:check([?TIERS, {trace_gc, false}, {trace_scheduling, false}])
    ).

%% What could kill the node is refused, with the reason, on the releases on which it could.
unsafe_flags_test_() -> {timeout, 300, fun unsafe_flags_case/0}.
unsafe_flags_case() ->
    Check = fun(Option) -> kprof_options:check([?TIERS, {Option, true}]) end,
    Refuses = fun(Option, Issue) ->
        {error, {unsafe_option, Option, _, _, {Issue, _}} = Why} = Check(Option),
        Text = kprof:format_error(Why),
        [
            ?assertNotEqual(nomatch, string:find(Text, Part))
         || Part <- [
                lists:concat(["the option ", Option, " could kill this node"]),
                lists:concat(["issues/", Issue])
            ]
        ]
    end,
    Early = kprof_vm:version() < [13, 2],
    case list_to_integer(erlang:system_info(otp_release)) of
        _ when Early -> [Refuses(Option, 6448) || Option <- [trace_gc, trace_scheduling]];
        Otp when Otp >= 27 -> Refuses(trace_gc, 11624);
        _ -> ?assertMatch({ok, #{flags := [garbage_collection]}}, Check(trace_gc))
    end,
    Early orelse ?assertMatch({ok, #{flags := [running]}}, Check(trace_scheduling)).

unsafe_versions_test_() -> {timeout, 300, fun unsafe_versions_case/0}.
unsafe_versions_case() ->
    All = [
        [13, 0],
        [13, 1, 5],
        [13, 2],
        [13, 2, 2, 11],
        [14, 2, 5],
        [15, 0],
        [15, 2, 7, 1],
        [16, 0],
        [17, 1],
        [18, 0]
    ],
    Unsafe = fun(Flag) -> [V || V <- All, kprof_vm:unsafe(Flag, V) =/= no] end,
    ?assertEqual(
        [[13, 0], [13, 1, 5], [15, 0], [15, 2, 7, 1], [16, 0], [17, 1], [18, 0]],
        Unsafe(garbage_collection)
    ),
    ?assertEqual([[13, 0], [13, 1, 5]], Unsafe(running)).

%% A percentile is of a tier that there is; the rest is kprof_trigger_options'.
triggers_test_() -> {timeout, 300, fun triggers_case/0}.
triggers_case() ->
    P99 = fun(Tier) -> {triggers, [{tier_p99, Tier, {above_ms, 5}}]} end,
    ?assertMatch({ok, #{triggers := []}}, kprof_options:check([?TIERS])),
    ?assertMatch({ok, #{triggers := [#{above := 5}]}}, kprof_options:check([?TIERS, P99(a)])),
    {error, Reason} = kprof_options:check([?TIERS, P99(b)]),
    ?assertEqual("no tier is named b", kprof_error:format(Reason)),
    ?assertMatch(
        {error, {bad_value, triggers, _, _}}, kprof_options:check([?TIERS, {triggers, x}])
    ).

force_header_test_() -> {timeout, 300, fun force_header_case/0}.
force_header_case() ->
    Forced = fun(V) ->
        {ok, #{force_header := F}} = kprof_options:check([?TIERS, {force_header, V}]),
        F
    end,
    ?assertEqual({<<"x-trace-request">>, 5}, Forced("X-Trace-Request")),
    ?assertEqual({<<"x-trace-request">>, 9}, Forced({<<"x-trace-request">>, 9})),
    ?assertMatch({ok, #{force_header := undefined}}, kprof_options:check([?TIERS])),
    [
        ?assertMatch(
            {error, {bad_value, force_header, _, _}},
            kprof_options:check([?TIERS, {force_header, Bad}])
        )
     || Bad <- [
            "", "x y", <<"x\n">>, "ü", 17, {"x", 0}, {"x", 1001}, {"x", y}, lists:duplicate(65, $x)
        ]
    ].

%% Whatever is wrong with it, the secret is not in the error.
flame_header_test_() -> {timeout, 300, fun flame_header_case/0}.
flame_header_case() ->
    Secret = "0123456789abcdef",
    {ok, #{flame_header := {Name, Fun, #{seconds := 30}}}} = kprof_options:check(
        [?TIERS, {flame_header, "X-Flame", Secret}]
    ),
    ?assertEqual({<<"x-flame">>, <<"0123456789abcdef">>}, {Name, Fun()}),
    ?assertMatch(
        {ok, #{flame_header := {_, any, #{seconds := 7, modules := [_]}}}},
        kprof_options:check(
            [?TIERS, {flame_header, x, any, #{seconds => 7, modules => ["my_*"]}}]
        )
    ),
    ?assertMatch({ok, #{flame_header := undefined}}, kprof_options:check([?TIERS])),
    [
        begin
            {error, Reason} = kprof_options:check([?TIERS, Bad]),
            Text = kprof_error:format(Reason),
            ?assertEqual(nomatch, string:find(Text, "0123456789")),
            ?assertNotEqual(nomatch, string:find(Text, "flame_header"))
        end
     || Bad <- [
            {flame_header, "X-Flame"},
            {flame_header, "x y", Secret},
            {flame_header, "X-Flame", "0123456789abcde"},
            {flame_header, "X-Flame", "0123456789abcdef "},
            {flame_header, "X-Flame", {secret, Secret}},
            {flame_header, "X-Flame", Secret, [{seconds, 7}]},
            {flame_header, "X-Flame", Secret, #{requests => 7}},
            {flame_header, "X-Flame", Secret, #{}, more}
        ]
    ].

already_traced_test_() -> {timeout, 300, fun already_traced_case/0}.
already_traced_case() ->
    1 = erlang:trace_pattern({lists, nth, 2}, true, [local]),
    Sessions = list_to_integer(erlang:system_info(otp_release)) >= 27,
    try kprof_options:check([?TIERS]) of
        {ok, _} ->
            ?assert(Sessions);
        Error ->
            ?assertMatch(
                {false, {error, {already_traced, <<"a">>, {lists, nth, 2}}}}, {Sessions, Error}
            )
    after
        erlang:trace_pattern({lists, nth, 2}, false, [local])
    end.

parse_test_() ->
    [
        ?_assertEqual({ok, [{a, 1}, {b, [2]}]}, kprof_options:parse(<<"[{a, 1}, {b, [2]}].\n">>)),
        ?_assertEqual(
            {ok, [{a, 1}, {b, [2]}]},
            kprof_options:parse(<<"%% text\n{a, 1}.\n\n{b, [2]}.\n% end">>)
        ),
        ?_assertEqual({ok, []}, kprof_options:parse(<<>>)),
        ?_assertMatch(
            {ok, [{identity_f, _}]}, kprof_options:parse(<<"{identity_f, fun(_) -> x end}.">>)
        ),
        ?_assertEqual({ok, [{n, "über"}]}, kprof_options:parse(<<"{n, \"über\"}."/utf8>>))
    ] ++
        [
            {Text, ?_assertMatch({error, {config, _, _}}, kprof_options:parse(Text))}
         || Text <- [
                <<"{a, 1}">>,
                <<"{a, }.">>,
                <<"\"abc">>,
                <<"{a, 1}.\n{b, hd([])}.">>,
                <<255, 254>>,
                <<"{a, X}.">>
            ]
        ].

parse_end_test_() ->
    [
        {Text,
            ?_assertEqual(
                "line 1: it ends too early: is an end, a bracket or a quote missing?",
                begin
                    {error, Why} = kprof_options:parse(Text),
                    kprof:format_error(Why)
                end
            )}
     || Text <- [<<"{a, [1]">>, <<"fun(_) -> x.">>, <<"{a, [1">>]
    ].

parse_line_test_() -> {timeout, 300, fun parse_line_case/0}.
parse_line_case() ->
    {error, Why} = kprof_options:parse(<<"{a, 1}.\n{b, }.\n">>),
    ?assertEqual("line 2", string:slice(kprof:format_error(Why), 0, 6)).
