%% SPDX-License-Identifier: Apache-2.0
-module(kprof_web_tests).
-include("patient.hrl").

-define(NO_HEADER, fun(_) -> undefined end).
-define(NO_FACTS, fun() -> #{} end).

marks(OneIn, Fun) -> kprof_token_tests:marks(OneIn, Fun).

facts(Method, Path) -> facts(Method, Path, #{}).
facts(Method, Path, More) -> More#{method => Method, path => Path}.

%% --- names ---

identity_test_() ->
    [
        {Path, ?_assertEqual(<<"GET ", Place/binary>>, kprof_web:identity(facts('GET', Path)))}
     || {Path, Place} <-
            [
                {"/", <<"/">>},
                {"", <<"/">>},
                {"*", <<"/*">>},
                {"//", <<"/">>},
                {<<"/users">>, <<"/users">>},
                {"/users/", <<"/users">>},
                {"/users/42", <<"/users/*">>},
                {"/users/42/posts", <<"/users/*">>},
                {"/users?id=42", <<"/users">>},
                {"/users#x", <<"/users">>},
                {"/42", <<"/*">>},
                {"/v1/users", <<"/v1/*">>},
                {"/favicon.ico", <<"/favicon.ico">>},
                {"/3f2504e0-4f89-11d3-9a0c-0305e82c3301", <<"/*">>},
                {"/a1b2c3", <<"/*">>},
                {"/" ++ lists:duplicate(33, $a), <<"/*">>},
                {"/%7Euser/x", <<"/*/*">>},
                {<<"/", 255, 0, 10>>, <<"/*">>},
                {<<"/über"/utf8>>, <<"/*">>},
                {"/a b", <<"/*">>},
                {"http://host:80/users/1", <<"/users/*">>},
                {"http://host", <<"/">>},
                {"/x?u=http://a/b", <<"/x">>},
                {"host:443", <<"/*">>}
            ]
    ].

method_test_() ->
    [
        ?_assertEqual(<<Name/binary, " /x">>, kprof_web:identity(facts(Method, "/x")))
     || {Method, Name} <- [
            {'GET', <<"GET">>},
            {"POST", <<"POST">>},
            {<<"PATCH">>, <<"PATCH">>},
            {<<"BREW">>, <<"OTHER">>},
            {"get", <<"OTHER">>},
            {<<"G\r\nET">>, <<"OTHER">>}
        ]
    ].

route_test_() ->
    Named = fun(Route) ->
        kprof_web:identity(facts('GET', "/users/42?x=1", #{route => Route}))
    end,
    [
        ?_assertEqual(<<"GET /users/:id">>, Named("/users/:id")),
        ?_assertEqual(<<"GET /users/:id">>, Named(<<"/users/:id">>)),
        ?_assertEqual(<<"GET users">>, Named(users)),
        ?_assertEqual(<<"GET GET of /users/42">>, Named(fun(M, P) -> [M, " of ", P] end)),
        ?_assertEqual(<<"GET /users/*">>, Named(undefined)),
        ?_assertEqual(<<"GET /users/*">>, Named(fun(_, _) -> undefined end)),
        ?_assertEqual(<<"GET /users/*">>, Named(fun(_, _) -> error(oops) end)),
        ?_assertEqual(<<"GET /users/*">>, Named(17)),
        ?_assertEqual(<<"GET a?b">>, Named("a\nb")),
        ?_assertEqual(204, byte_size(Named(lists:duplicate(1000, $r))))
    ].

no_route_test_() -> {timeout, 300, fun no_route_case/0}.
no_route_case() ->
    %% whoever tries paths and methods makes no names
    ?assertEqual(
        [
            <<"GET 401">>,
            <<"GET 403">>,
            <<"GET 404">>,
            <<"GET 405">>,
            <<"OTHER 401">>,
            <<"OTHER 403">>,
            <<"OTHER 404">>,
            <<"OTHER 405">>
        ],
        lists:usort([
            kprof_web:identity(facts(Method, [$/, C | "x/admin"], #{status => Status}))
         || Method <- ["GET", "BREW", "QUAFF", lists:duplicate(9000, $M)],
            C <- lists:seq($a, $z),
            Status <- [401, 403, 404, 405]
        ])
    ),
    ?assertEqual(
        <<"POST /orders">>, kprof_web:identity(facts('POST', "/orders", #{status => 422}))
    ),
    ?assertEqual(
        <<"GET /path/*">>,
        kprof_web:identity(facts('GET', lists:append(lists:duplicate(10000, "/path"))))
    ),
    ?assertEqual(
        <<"GET /*">>, kprof_web:identity(facts('GET', [$/ | lists:duplicate(100000, $p)]))
    ),
    ?assertEqual(
        <<"GET /users/:id">>,
        kprof_web:identity(facts('GET', "/users/1", #{status => 404, route => "/users/:id"}))
    ),
    ?assertEqual(undefined, kprof_web:identity(#{})).

outcome_test_() ->
    [
        ?_assertEqual(Outcome, kprof_web:outcome(Status))
     || {Status, Outcome} <- [
            {200, ok},
            {404, ok},
            {499, ok},
            {500, error},
            {503, error},
            {undefined, ok},
            {{error, x}, error},
            {{throw, x}, throw},
            {{exit, x}, exit},
            {{exit, normal}, ok},
            {{exit, {shutdown, closed}}, ok}
        ]
    ].

%% --- begin and end ---

pair_test_() -> {timeout, 300, fun pair_case/0}.
pair_case() ->
    {_, Marks} = marks(1, fun() ->
        L = kprof:begin_request(?NO_HEADER, ?NO_FACTS),
        L = kprof:get_current_label(),
        ok = kprof:end_request(L, fun() -> facts('GET', "/x", #{status => 503}) end),
        [] = seq_trace:get_token(),
        [] = get()
    end),
    ?assertMatch(
        [{web_begin, undefined, L}, {request_end, {error, kept, <<"GET /x">>}, L}], Marks
    ).

%% The begin tells what is known then, and the end what is new. Neither is asked for what is not
%% traced.
named_at_the_begin_test_() -> {timeout, 300, fun named_at_the_begin_case/0}.
named_at_the_begin_case() ->
    Facts = facts('GET', "/x", #{named => true}),
    Try = fun(Begin, End) -> kprof:end_request(kprof:begin_request(?NO_HEADER, Begin), End) end,
    {_, Marks} = marks(1, fun() ->
        Try(
            fun() ->
                [] = seq_trace:get_token(),
                Facts
            end,
            fun() -> Facts#{status => 200} end
        ),
        Try(fun() -> Facts end, fun() -> Facts#{status => 401} end),
        Try(fun() -> Facts end, fun() -> error(oops) end),
        Try(fun() -> error(oops) end, fun() -> facts('GET', "/x", #{status => 500}) end)
    end),
    ?assertMatch(
        [
            {web_begin, <<"GET /x">>, _},
            {request_end, {ok, kept, undefined}, _},
            {web_begin, <<"GET /x">>, _},
            {request_end, {ok, kept, <<"GET 401">>}, _},
            {web_begin, <<"GET /x">>, _},
            {request_end, {ok, kept, undefined}, _},
            {web_begin, undefined, _},
            {request_end, {error, kept, <<"GET /x">>}, _}
        ],
        Marks
    ),
    {_, []} = marks(1000000, fun() ->
        Try(fun() -> error(asked) end, fun() -> error(asked) end)
    end).

bad_facts_test_() -> {timeout, 300, fun bad_facts_case/0}.
bad_facts_case() ->
    {ok, [_, {request_end, {ok, kept, undefined}, _}]} =
        marks(1, fun() ->
            kprof:end_request(kprof:begin_request(?NO_HEADER, ?NO_FACTS), fun() ->
                error(oops)
            end)
        end).

%% A message has brought another request's token: whoever carries the own one past it has it again,
%% and nothing was lost.
with_own_token_test_() -> {timeout, 300, fun with_own_token_case/0}.
with_own_token_case() ->
    {_, Marks} = marks(1, fun() ->
        Other = kprof_helper:begin_stream(?NO_HEADER, ?NO_FACTS),
        kprof:set_current_label(undefined),
        kprof:set_token(x),
        L = kprof:get_current_label(),
        _ = seq_trace:set_token(label, Other),
        L = kprof:with_token(L, fun kprof:get_current_label/0),
        L = kprof:get_current_label(),
        kprof:clear_token()
    end),
    ?assertMatch([_, {request_begin, x, L}, {request_end, ok, L}], Marks).

%% What becomes a websocket ends at once, and the rest of it is nobody's.
websocket_test_() -> {timeout, 300, fun websocket_case/0}.
websocket_case() ->
    Header = fun
        (<<"upgrade">>) -> "WebSocket";
        (_) -> undefined
    end,
    {_, Marks} = marks(1, fun() ->
        off = kprof_helper:begin_or_upgrade(Header, fun() -> facts('GET', "/ws") end),
        [] = seq_trace:get_token(),
        up = kprof_helper:run(
            Header,
            fun() ->
                [] = seq_trace:get_token(),
                up
            end,
            fun(begun) -> facts('GET', "/run") end
        )
    end),
    ?assertMatch(
        [
            {web_begin, <<"GET /ws">>, A},
            {request_end, {ok, kept, <<"GET /ws">>}, A},
            {web_begin, <<"GET /run">>, B},
            {request_end, {ok, kept, <<"GET /run">>}, B}
        ],
        Marks
    ).

off_test_() -> {timeout, 300, fun off_case/0}.
off_case() ->
    ?assertEqual(
        off, kprof:begin_request(fun(_) -> error(asked) end, fun() -> error(asked) end)
    ),
    ?assertEqual(
        off, kprof_helper:begin_request(fun(_) -> error(asked) end, fun() -> error(asked) end)
    ),
    ?assertEqual(17, kprof_helper:run(?NO_HEADER, fun() -> 17 end, fun(_) -> error(asked) end)),
    ok = kprof_helper:end_request(off, fun() -> error(asked) end),
    ok = kprof_helper:resume(off).

%% What the application marks itself lies within.
nested_test_() -> {timeout, 300, fun nested_case/0}.
nested_case() ->
    {_, Marks} = marks(1, fun() ->
        L = kprof:begin_request(?NO_HEADER, ?NO_FACTS),
        kprof:set_token(inner),
        L = kprof:get_current_label(),
        kprof:clear_token(),
        kprof:clear_token(),
        L = kprof:get_current_label(),
        L = kprof:do_apply(kprof, get_current_label, []),
        off = kprof_helper:begin_request(?NO_HEADER, ?NO_FACTS) =:= off orelse off,
        ok
    end),
    ?assertMatch(
        [{web_begin, _, A}, {request_end, {error, token_lost}, A}, {web_begin, _, _}], Marks
    ).

within_marks_test_() -> {timeout, 300, fun within_marks_case/0}.
within_marks_case() ->
    {_, Marks} = marks(1, fun() ->
        kprof:set_token(outer),
        off = kprof:begin_request(?NO_HEADER, ?NO_FACTS),
        kprof:clear_token()
    end),
    ?assertMatch([{request_begin, outer, L}, {request_end, ok, L}], Marks).

%% A process that serves one after the other: a token that a message brought from another open
%% request is not taken for its own.
stale_token_test_() -> {timeout, 300, fun stale_token_case/0}.
stale_token_case() ->
    {_, Marks} = marks(1, fun() ->
        Other = kprof_helper:begin_stream(?NO_HEADER, ?NO_FACTS),
        Other = kprof:get_current_label(),
        L = kprof_helper:begin_request(?NO_HEADER, ?NO_FACTS),
        true = L =/= Other,
        ok = kprof_helper:end_request(L, fun() -> facts('GET', "/second") end),
        ok = kprof_helper:resume(Other),
        true = kprof_helper:has_token(Other),
        ok = kprof_helper:end_request(Other, fun() -> facts('GET', "/first") end),
        [] = get(),
        [] = seq_trace:get_token()
    end),
    ?assertMatch(
        [
            {web_begin, _, A},
            {web_begin, _, B},
            {request_end, {ok, kept, <<"GET /second">>}, B},
            {request_end, {ok, kept, <<"GET /first">>}, A}
        ],
        Marks
    ).

foreign_token_test_() -> {timeout, 300, fun foreign_token_case/0}.
foreign_token_case() ->
    {Token, []} = marks(1, fun() ->
        _ = seq_trace:set_token(label, mine),
        off = kprof_helper:begin_stream(?NO_HEADER, ?NO_FACTS),
        ok = kprof_helper:resume(off),
        seq_trace:get_token(label)
    end),
    ?assertEqual({label, mine}, Token).

lost_test_() -> {timeout, 300, fun lost_case/0}.
lost_case() ->
    {_, Marks} = marks(1, fun() ->
        A = kprof:begin_request(?NO_HEADER, ?NO_FACTS),
        _ = seq_trace:set_token([]),
        kprof:end_request(A, fun() -> #{} end),
        B = kprof:begin_request(?NO_HEADER, ?NO_FACTS),
        kprof:end_request(B, fun() -> #{lost => true} end)
    end),
    ?assertMatch(
        [
            _,
            {request_end, {ok, token_lost, undefined}, _},
            _,
            {request_end, {ok, token_lost, undefined}, _}
        ],
        Marks
    ).

changed_test_() -> {timeout, 300, fun changed_case/0}.
changed_case() ->
    {Other, Marks} = marks(1, fun() ->
        A = kprof:begin_request(?NO_HEADER, ?NO_FACTS),
        _ = seq_trace:set_token(label, A + 1),
        kprof:end_request(A, fun() -> #{} end),
        A + 1
    end),
    ?assertMatch([_, {request_end, {ok, {token_changed, Other}, undefined}, _}], Marks).

run_test_() -> {timeout, 300, fun run_case/0}.
run_case() ->
    Facts = fun
        (begun) -> facts('GET', "/x");
        ({returned, N}) -> facts('GET', "/x", #{status => N});
        ({raised, C, R}) -> facts('PUT', "/x", #{status => {C, R}})
    end,
    {_, Marks} = marks(1, fun() ->
        500 = kprof_helper:run(?NO_HEADER, fun() -> 500 end, Facts),
        {'EXIT', {why, [{here, f, 0, []}]}} =
            (catch kprof_helper:run(
                ?NO_HEADER,
                fun() -> erlang:raise(error, why, [{here, f, 0, []}]) end,
                Facts
            )),
        left =
            (catch kprof_helper:run(?NO_HEADER, fun() -> throw(left) end, fun(_) ->
                error(oops)
            end))
    end),
    ?assertMatch(
        [
            _,
            {request_end, {error, kept, <<"GET /x">>}, _},
            _,
            {request_end, {error, kept, <<"PUT /x">>}, _},
            _,
            {request_end, {ok, kept, undefined}, _}
        ],
        Marks
    ).

unsampled_test_() -> {timeout, 300, fun unsampled_case/0}.
unsampled_case() ->
    {_, []} = marks(1000, fun() ->
        0 = L = kprof:begin_request(?NO_HEADER, ?NO_FACTS),
        kprof:set_token(inner),
        kprof:clear_token(),
        ok = kprof:end_request(L, fun() -> error(asked) end),
        [] = get()
    end).

%% The name that the begin knows has the weight; each name is asked for once.
weights_test_() -> {timeout, 300, fun weights_case/0}.
weights_case() ->
    [ets:new(Table, [named_table, public]) || Table <- [kprof_weights, kprof_guard]],
    Try = fun(Header, Path) ->
        Facts = fun() ->
            put(asked, get(asked) + 1),
            facts('GET', Path, #{named => true})
        end,
        L = kprof:begin_request(Header, Facts),
        kprof:end_request(L, fun() -> facts('GET', Path, #{named => true, status => 200}) end)
    end,
    {Asked, Marks} =
        marks(100, fun() ->
            Slots = kprof_slots:find(),
            kprof_sampling:weigh(#{<<"GET /often">> => 50, <<"GET /never">> => 0}),
            _ = put(asked, 0),
            [
                Try(?NO_HEADER, Path)
             || Path <- ["/often", "/other", "/never"], _ <- lists:seq(1, 200)
            ],
            Weighed = put(asked, 0),
            kprof_web:force(Slots, {<<"x-trace-request">>, 5}),
            Try(fun(_) -> "true" end, "/never"),
            kprof_sampling:weigh(#{}),
            [Try(?NO_HEADER, "/often") || _ <- lists:seq(1, 200)],
            {Weighed, erase(asked)}
        end),
    [true = ets:delete(Table) || Table <- [kprof_weights, kprof_guard]],
    Begun = [Name || {web_begin, Name, _} <- Marks],
    %% without weights, of the last 200, only those that are traced
    ?assertEqual({600, 1 + 2}, Asked),
    ?assertEqual({100 + 2, 2, 1}, {
        length([x || <<"GET /often">> <- Begun]),
        length([x || <<"GET /other">> <- Begun]),
        length([x || <<"GET /never">> <- Begun])
    }).

%% --- the trace of who asks ---

-define(TRACE, "0af7651916cd43dd8448eb211c80319c").
-define(SPAN, "b7ad6b7169203331").

%% Of the header of a request that is traced, and of no other; whatever looks it up.
parent_test_() -> {timeout, 300, fun parent_case/0}.
parent_case() ->
    Header = fun(Value) ->
        fun
            (<<"traceparent">>) -> Value;
            (_) -> undefined
        end
    end,
    Try = fun(Fun) ->
        L = kprof:begin_request(Fun, ?NO_FACTS),
        kprof:end_request(L, fun() -> #{} end),
        L
    end,
    Good = "00-" ++ ?TRACE ++ "-" ++ ?SPAN ++ "-01",
    Headers = [
        Header(list_to_binary(Good)),
        Header(<<"nonsense">>),
        fun(_) -> exit(oops) end,
        Header(Good)
    ],
    {[A, B, C, D], Marks} = marks(1, fun() -> [Try(Fun) || Fun <- Headers] end),
    Parent = <<16#0af7651916cd43dd8448eb211c80319cb7ad6b7169203331:192, 1>>,
    ?assertMatch(
        [
            {web_begin, _, A},
            {trace_parent, Parent, A},
            {request_end, _, A},
            {web_begin, _, B},
            {request_end, _, B},
            {web_begin, _, C},
            {request_end, _, C},
            {web_begin, _, D},
            {trace_parent, Parent, D},
            {request_end, _, D}
        ],
        Marks
    ),
    {Asked, []} = marks(1000, fun() ->
        _ = put(asked, []),
        0 = kprof:begin_request(fun(Name) -> put(asked, [Name | get(asked)]) end, ?NO_FACTS),
        get(asked)
    end),
    ?assertEqual([], Asked).

%% The forms that the standard has (W3C Trace Context, traceparent), and what each of its rules
%% refuses.
read_parent_test_() ->
    Read = fun kprof_trace_parent:read/1,
    Whole = fun(Flags) -> <<16#0af7651916cd43dd8448eb211c80319cb7ad6b7169203331:192, Flags>> end,
    Of = fun(Version, Flags) ->
        lists:append([Version, "-", ?TRACE, "-", ?SPAN, "-", Flags])
    end,
    Changed = fun(What, Into) ->
        lists:flatten(string:replace(Of("00", "01"), What, Into))
    end,
    Taken = [
        {Of("00", "01"), Whole(1)},
        {Of("00", "00"), Whole(0)},
        {Of("00", "03"), Whole(3)},
        {Of("00", "ff"), Whole(3)},
        %% a version that is still to come, whose other flags nobody knows
        {Of("cc", "01"), Whole(1)},
        {Of("fe", "fe"), Whole(0)},
        {Of("01", "01-what-the-future-will-be-like"), Whole(1)},
        {Of("01", "01-" ++ lists:duplicate(100000, $x)), Whole(1)},
        {Of("01", "01-"), Whole(1)}
    ],
    Refused = [
        "",
        "00",
        ?TRACE,
        Of("ff", "01"),
        Of("0", "01"),
        Of("0g", "01"),
        Of("0A", "01"),
        Of("00", "1"),
        Of("00", "0x"),
        Of("00", "0A"),
        Of("00", "01-"),
        Of("00", "01-more"),
        Of("00", "01 "),
        " " ++ Of("00", "01"),
        Of("01", "01.what"),
        Of("01", "010"),
        Of("00", "01") ++ "," ++ Of("00", "01"),
        string:uppercase(Of("00", "01")),
        Changed("0af", "0aF"),
        Changed("b7ad", "B7ad"),
        Changed("319c-", "319cb"),
        Changed("-", "_"),
        Changed("0af", "0a"),
        Changed("0af", "0af7"),
        Changed("b7ad", "b7adb"),
        Changed(?TRACE, lists:duplicate(32, $0)),
        Changed(?SPAN, lists:duplicate(16, $0))
    ],
    [
        {lists:sublist(Value, 80), ?_assertEqual(Wanted, Read(Form(Value)))}
     || Form <- [fun list_to_binary/1, fun(Value) -> Value end],
        {Value, Wanted} <- Taken ++ [{Bad, undefined} || Bad <- Refused]
    ] ++
        [?_assertEqual(undefined, Read(Odd)) || Odd <- [undefined, 17, [a], [300], {}]].

%% --- a header that forces a sample ---

%% Two a second at most: where the machine takes so long that more are right, once more.
forced_test_() -> {timeout, 300, fun() -> forced(10) end}.

forced(Tries) ->
    Start = erlang:monotonic_time(millisecond),
    try
        force_two()
    catch
        error:_ when Tries > 1 ->
            ?assert(erlang:monotonic_time(millisecond) - Start > 750),
            forced(Tries - 1)
    end.

force_two() ->
    _ = ets:new(kprof_guard, [named_table, public]),
    Header = fun(Value) -> fun(<<"x-trace-request">>) -> Value end end,
    Try = fun(Fun) ->
        L = kprof:begin_request(Fun, ?NO_FACTS),
        kprof:end_request(L, fun() -> #{} end),
        L > 0
    end,
    {Result, Marks} =
        marks(1000000, fun() ->
            Slots = kprof_slots:find(),
            Not = Try(fun(_) -> error(asked) end),
            kprof_web:force(Slots, {<<"x-trace-request">>, 2}),
            Values = [
                Try(Header(V))
             || V <- [undefined, "false", <<>>, 17, "maybe", "no, true", ",true", "true;"]
            ],
            Forced = [Try(Header(V)) || V <- ["true", <<" True ,no">>, "1", "1"]],
            Crashed = Try(fun(_) -> error(oops) end),
            timer:sleep(550),
            Later = [Try(Header("true")) || _ <- [1, 2]],
            kprof_web:force(Slots, undefined),
            {Not, Values, Forced, Crashed, Later, Try(Header("true"))}
        end),
    true = ets:delete(kprof_guard),
    ?assertEqual(
        {false, lists:duplicate(8, false), [true, true, false, false], false, [true, false],
            false},
        Result
    ),
    ?assertEqual(6, length(Marks)).

helper_header_test_() -> {timeout, 300, fun helper_header_case/0}.
helper_header_case() ->
    Headers = [{<<"X-A">>, last}, {'Host', h}, {"x-a", first}, {"X-B", b}],
    ?assertEqual([first, h, b, undefined], [
        kprof_helper:header(Name, Headers)
     || Name <- [<<"x-a">>, <<"host">>, <<"x-b">>, <<"x-c">>]
    ]).

%% However many ask at a time for however long, and whatever share of the node's load they are.
forced_bound_test_() -> {timeout, 300, fun forced_bound_case/0}.
forced_bound_case() ->
    _ = ets:new(kprof_guard, [named_table, public]),
    Forced = fun() ->
        L = kprof:begin_request(fun(_) -> "true" end, ?NO_FACTS),
        kprof:end_request(L, fun() -> #{} end),
        L > 0
    end,
    Until = fun Until(T, N) ->
        case erlang:monotonic_time(millisecond) < T of
            true ->
                Until(
                    T,
                    case Forced() of
                        true -> N + 1;
                        false -> N
                    end
                );
            false ->
                N
        end
    end,
    %% from before they were allowed
    InTime = fun(Ms, Before) ->
        T0 = erlang:monotonic_time(millisecond),
        Pids = [
            spawn_monitor(fun() -> exit({forced, Until(T0 + Ms, 0)}) end)
         || _ <- [1, 2, 3, 4]
        ],
        N = lists:sum([
            receive
                {'DOWN', Ref, process, _, {forced, M}} -> M
            end
         || {_, Ref} <- Pids
        ]),
        {N, erlang:monotonic_time(millisecond) - Before}
    end,
    {{{N, Took}, {M, Later}}, _} =
        marks(1000000, fun() ->
            Slots = kprof_slots:find(),
            Began = erlang:monotonic_time(millisecond),
            kprof_web:force(Slots, {<<"x-trace-request">>, 300}),
            All = InTime(500, Began),
            Again = erlang:monotonic_time(millisecond),
            kprof_web:force(Slots, {<<"x-trace-request">>, 300}),
            %% the guard lets a thousandth of all requests through
            Lowered = kprof_sampling:tripped(
                1 bsl 60,
                0,
                kprof_sampling:tripped(
                    1 bsl 60,
                    0,
                    kprof_sampling:new({one_in, 1000000})
                )
            ),
            kprof_sampling:put(Slots, Lowered),
            {All, InTime(500, Again)}
        end),
    true = ets:delete(kprof_guard),
    ?assert(N =< 300 + 300 * (Took + 1) div 1000 + 1),
    ?assert(N >= 100),
    ?assert(M =< 1 + (Later + 999) div 1000),
    ?assert(M >= 1).

%% --- funs and labels carried by hand ---

wrap_test_() -> {timeout, 300, fun wrap_case/0}.
wrap_case() ->
    {Result, Marks} =
        marks(1, fun() ->
            Plain = fun() -> plain end,
            Plain = kprof:wrap(Plain),
            kprof:set_token(x),
            L = kprof:get_current_label(),
            Funs = {
                kprof:wrap(fun() -> kprof:get_current_label() end),
                kprof:wrap(fun(A, B, C, D) -> {A, B, C, D, kprof:get_current_label()} end),
                kprof:wrap(fun(X) -> throw(X) end)
            },
            Five = fun(_, _, _, _, _) -> ok end,
            Five = kprof:wrap(Five),
            Self = self(),
            _ = seq_trace:set_token([]),
            spawn(fun() -> Self ! {done, called(Funs)} end),
            R =
                receive
                    {done, Got} -> Got
                end,
            kprof:set_current_label(L),
            kprof:clear_token(),
            {R =:= {L, {1, 2, 3, 4, L}, {thrown, 9}, undefined, []}, kprof:get_current_label()}
        end),
    ?assertEqual({true, undefined}, Result),
    ?assertMatch([{request_begin, x, L}, {request_end, ok, L}], Marks).

called({F0, F4, F1}) ->
    A = F0(),
    B = F4(1, 2, 3, 4),
    C =
        try
            F1(9)
        catch
            throw:X -> {thrown, X}
        end,
    {A, B, C, kprof:get_current_label(), seq_trace:get_token()}.

%% A worker that is in the middle of another request goes on with that.
with_token_test_() -> {timeout, 300, fun with_token_case/0}.
with_token_case() ->
    {Result, Marks} =
        marks(1, fun() ->
            Other = kprof_helper:begin_stream(?NO_HEADER, ?NO_FACTS),
            kprof:set_current_label(undefined),
            kprof:set_token(x),
            L = kprof:get_current_label(),
            Other = kprof:with_token(Other, fun kprof:get_current_label/0),
            undefined = kprof:with_token(undefined, fun kprof:get_current_label/0),
            {'EXIT', {oops, _}} = (catch kprof:with_token(Other, fun() -> error(oops) end)),
            Same = L =:= kprof:get_current_label(),
            kprof:clear_token(),
            {Same, seq_trace:get_token(), get()}
        end),
    ?assertEqual({true, [], []}, Result),
    ?assertMatch([_, {request_begin, x, L}, {request_end, ok, L}], Marks).

%% A fun that lies in a table is still good when kprof has left the node.
wrapped_outlives_test_() -> {timeout, 300, fun wrapped_outlives_case/0}.
wrapped_outlives_case() ->
    {F, _} = marks(1, fun() ->
        kprof:set_token(),
        F = kprof:wrap(fun(X) -> 2 * X end),
        kprof:clear_token(),
        F
    end),
    {module, M} = erlang:fun_info(F, module),
    ?assertEqual(erl_eval, M),
    ?assertEqual(14, F(7)).
