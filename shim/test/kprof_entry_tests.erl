%% SPDX-License-Identifier: Apache-2.0
%% The trace patterns of entries, on the VM that runs the tests.
-module(kprof_entry_tests).
-include("patient.hrl").

-export([entry/2, plain/1]).

-define(BASE, (5 bsl 32)).
-define(OLD, (4 bsl 32)).
-define(ENTRY, {?MODULE, entry, 2}).

entry(Name, F) when is_function(F) -> {Name, F()};
entry(Name, X) -> {Name, ?MODULE:plain(X)}.
plain(X) -> X.

settings(OneIn) ->
    #{base => ?BASE, olds => [?OLD, 0], one_in => OneIn, flags => [], returns => whole}.

rows(Text) ->
    {ok, [F]} = kprof_options:parse(list_to_binary(Text ++ ".")),
    {_, Rows} = kprof_match:rows(kprof_match:prepare(F), ?ENTRY),
    Rows.

%% What a new process that runs Fun sends while the entry is traced so: {Function, Note} of each
%% call, and its token in the end.
traced(Spec, Fun) ->
    Before = kprof_entry:count(),
    Tracer = self(),
    1 = erlang:trace_pattern(?ENTRY, Spec, [local]),
    1 = erlang:trace_pattern(
        {?MODULE, plain, 1},
        kprof_match:spec([{'_', [], undefined}], #{returns => whole, flags => []}),
        [local]
    ),
    {Pid, Ref} = spawn_monitor(fun() ->
        1 = erlang:trace(self(), true, [call, arity, {tracer, Tracer}]),
        Fun(),
        1 = erlang:trace(self(), false, [call, arity]),
        exit(seq_trace:get_token())
    end),
    Token =
        receive
            {'DOWN', Ref, process, Pid, T} -> T
        end,
    _ = [erlang:trace_pattern(MFA, false, [local]) || MFA <- [?ENTRY, {?MODULE, plain, 1}]],
    ok = kprof_entry:uncount(Before),
    Delivered = erlang:trace_delivered(Pid),
    receive
        {trace_delivered, Pid, Delivered} -> ok
    end,
    {messages(Pid), label(Token)}.

messages(Pid) ->
    receive
        {trace, Pid, call, {_, F, _}, Note} -> [{F, Note} | messages(Pid)];
        {trace, Pid, return_from, {_, F, _}, _} -> [{returned, F} | messages(Pid)];
        {trace, Pid, exception_from, {_, F, _}, _} -> [{raised, F} | messages(Pid)];
        {trace, Pid, out_exited, _} -> messages(Pid)
    after 0 -> []
    end.

label({_, Label, _, _, _}) -> Label;
label([]) -> none.

token(Label) -> seq_trace:set_token(label, Label).

%% What an upgrade tells: of an entry's token, which goes. All others stay.
upgrades_test_() -> {timeout, 300, fun upgrades_case/0}.
upgrades_case() ->
    [{{cowboy_websocket, takeover, 7}, Spec} | _] = kprof_entry:upgrades(?BASE),
    Ours = ?BASE bor 16#80000001,
    ?assertMatch(
        {[{entry, {{_, Ours, _, _, _}, upgraded}}], none},
        traced(Spec, fun() ->
            token(Ours),
            entry(create, fun() -> ok end)
        end)
    ),
    [
        ?assertEqual(
            {[], Label},
            traced(Spec, fun() ->
                token(Label),
                entry(create, fun() -> ok end)
            end)
        )
     || Label <- [?BASE bor 1, ?OLD bor 16#80000001, foreign]
    ],
    ?assertEqual({[], none}, traced(Spec, fun() -> entry(create, fun() -> ok end) end)).

begins_test_() -> {timeout, 300, fun begins_case/0}.
begins_case() ->
    Spec = kprof_entry:spec(
        rows(
            "fun({_, _, [create, _]}) -> c; ({_, _, [X, _]}) when is_integer(X) -> X; (_) -> "
            "undefined end"
        ),
        settings(1)
    ),
    {Messages, Last} = traced(
        Spec,
        fun() ->
            entry(create, 1),
            entry(17, 2),
            entry("x", 3),
            catch entry(create, fun() -> error(no) end)
        end
    ),
    ?assertMatch(
        [
            {entry, {{_, _, _, _, _}, entry, c}},
            {plain, {_, undefined}},
            {returned, plain},
            {returned, entry},
            {entry, {_, entry, 17}},
            {plain, _},
            {returned, plain},
            {returned, entry},
            {entry, {_, entry, undefined}},
            {plain, _},
            {returned, plain},
            {returned, entry},
            {entry, {_, entry, c}},
            {raised, entry}
        ],
        Messages
    ),
    Labels = [label(T) || {entry, {T, entry, _}} <- Messages],
    ?assertEqual(4, length(lists:usort(Labels))),
    ?assertEqual([5], lists:usort([L bsr 32 || L <- Labels])),
    ?assertEqual([1], lists:usort([(L bsr 31) band 1 || L <- Labels])),
    ?assertEqual(Last, lists:last(Labels)),
    %% what is called inside is under the same token
    ?assertEqual(lists:sublist(Labels, 3), [label(T) || {plain, {T, _}} <- Messages]).

%% Without its value an entry tells where it returns to, and the VM when it does: under its own
%% token, and under a marker's.
without_value_test_() -> {timeout, 300, fun without_value_case/0}.
without_value_case() ->
    Spec = kprof_entry:spec([{'_', [], x}], (settings(1))#{returns := none}),
    {
        [
            {entry, First},
            {plain, _},
            {returned, plain},
            {entry, Second},
            {plain, _},
            {returned, plain}
        ],
        _
    } =
        traced(Spec, fun() ->
            entry(a, 1),
            token(?BASE + 5),
            entry(a, 1),
            ok
        end),
    ?assertMatch(
        {{_, L, _, _, _}, entry, {?MODULE, _, _}, x, none} when L > ?BASE + 16#80000000, First
    ),
    ?assertMatch({{_, ?BASE + 5, _, _, _}, {?MODULE, _, _}, x, none}, Second),
    ?assertMatch(
        {[{entry, {_, entry, {_, _, _}, ask, [a, 1], none}} | _], _},
        traced(kprof_entry:spec([{'_', [], ask}], (settings(1))#{returns := none}), fun() ->
            entry(a, 1),
            ok
        end)
    ).

asks_test_() -> {timeout, 300, fun asks_case/0}.
asks_case() ->
    {[{entry, {_, entry, ask, [a, 1]}}, {plain, _} | _], _} =
        traced(kprof_entry:spec([{'_', [], ask}], settings(1)), fun() -> entry(a, 1) end).

%% Tokens of ours are replaced, those of markers kept, those of others left alone, whatever term
%% they are.
tokens_test_() -> {timeout, 300, fun tokens_case/0}.
tokens_case() ->
    Spec = kprof_entry:spec([{'_', [], x}], settings(1)),
    Under = fun(Label) ->
        {[First | _], Last} = traced(Spec, fun() ->
            token(Label),
            entry(a, 1)
        end),
        {First, Last}
    end,
    [
        ?assertMatch({{entry, {{_, L, _, _, _}, entry, x}}, L} when L =/= Label, Under(Label))
     || Label <- [?BASE + 16#80000000, ?BASE + 16#ffffffff, ?OLD, ?OLD + 77, ?OLD + 16#80000001]
    ],
    [
        ?assertMatch({{entry, {{_, Label, _, _, _}, x}}, Label}, Under(Label))
     || Label <- [?BASE, ?BASE + 16#7fffffff]
    ],
    [
        ?assertMatch({{plain, _}, Label}, Under(Label))
     || Label <- [
            0,
            17,
            foo,
            {a, b},
            "text",
            <<"b">>,
            self(),
            make_ref(),
            ?BASE - (1 bsl 33),
            ?BASE + (1 bsl 32),
            float(1 bsl 70),
            1 bsl 90,
            #{}
        ]
    ].

%% One in three gets a token; the others have none afterwards, and who had one tells that it is
%% gone.
samples_test_() -> {timeout, 300, fun samples_case/0}.
samples_case() ->
    Spec = kprof_entry:spec([{'_', [], x}], settings(3)),
    {Messages, none} = traced(Spec, fun() -> [entry(N, 1) || N <- lists:seq(0, 8)] end),
    ?assertEqual(3, length([1 || {entry, {_, entry, x}} <- Messages])),
    ?assertEqual(3, length([1 || {entry, {_, left_out, entry}} <- Messages])),
    ?assertEqual(3, length([1 || {plain, _} <- Messages])),
    %% under others' tokens and markers' nothing is drawn
    {Foreign, foo} = traced(Spec, fun() ->
        token(foo),
        [entry(N, 1) || N <- lists:seq(0, 8)]
    end),
    ?assertEqual([], [1 || {entry, _} <- Foreign]),
    {Marker, ?BASE + 1} = traced(Spec, fun() ->
        token(?BASE + 1),
        [entry(N, 1) || N <- lists:seq(0, 8)]
    end),
    ?assertEqual(9, length([1 || {entry, {_, x}} <- Marker])),
    %% a token of an earlier trace is taken away in silence
    {Old, none} = traced(Spec, fun() ->
        entry(0, 1),
        seq_trace:set_token([]),
        token(?OLD + 1),
        entry(1, 1)
    end),
    ?assertEqual([], [1 || {entry, {_, left_out, entry}} <- Old]),
    %% none at all
    {[], none} = traced(kprof_entry:spec([{'_', [], x}], settings(0)), fun() ->
        [entry(N, 1) || N <- lists:seq(0, 8)]
    end).

unsampled_test_() -> {timeout, 300, fun unsampled_case/0}.
unsampled_case() ->
    [
        ?assertEqual(
            {From, To, N, length([1 || I <- lists:seq(From, To - 1), I rem N =/= 0])},
            {From, To, N, kprof_entry:unsampled(From, To, N)}
        )
     || From <- lists:seq(0, 12), To <- lists:seq(From, 25), N <- [1, 2, 3, 7]
    ],
    ?assertEqual(5, kprof_entry:unsampled(0, 5, 0)),
    [
        ?assertEqual(
            {From, One, Other, length([
                1
             || I <- lists:seq(From, 24), I rem One =/= 0, Other =:= 0 orelse I rem Other =/= 0
            ])},
            {From, One, Other, kprof_entry:unsampled(From, 25, One, Other)}
        )
     || From <- lists:seq(0, 12), One <- [1, 2, 3, 6], Other <- [0, 1, 3, 4]
    ],
    ?assertEqual(3 + 2, kprof_entry:unsampled(16#fffffff - 2, 3, 4)),
    %% a thread that was interrupted has taken others' counts back
    ?assertEqual(0, kprof_entry:unsampled(500, 11, 4)),
    ?assertEqual(0, kprof_entry:unsampled(16#fffffff, 16#fffffff - 1, 4)).

%% Calls at the same time have labels of their own, but for few: the kernel may take the processor
%% away in between. If then, which is rare, the count goes back, all since have their labels twice.
concurrent_test_() ->
    {timeout, 300, fun() ->
        ?assert(lists:any(fun(_) -> have_their_own(2000) end, lists:seq(1, 5)))
    end}.

have_their_own(N) ->
    {Labels, _} = at_the_same_time(1, N),
    ?assertEqual(8 * N, length(Labels)),
    length(lists:usort(Labels)) >= 8 * N - 16.

%% None is told as left out that began, however they are drawn.
concurrent_draws_test_() ->
    {timeout, 300, fun() ->
        [
            begin
                {Labels, Counted} = at_the_same_time(2, 10000),
                ?assertEqual([], [L || L <- Labels, L rem 2 =/= 0]),
                Unsampled = kprof_entry:unsampled(0, Counted, 2),
                ?assert(length(Labels) + Unsampled =< 8 * 10000),
                %% the kernel takes the processor away at times, and counts with it
                ?assert(length(Labels) + Unsampled > 4 * 10000)
            end
         || _ <- lists:seq(1, 3)
        ]
    end}.

%% The labels of the entry calls, so many of eight processes each, and how many were counted.
at_the_same_time(OneIn, Calls) ->
    Before = kprof_entry:count(),
    Tracer = self(),
    1 = erlang:trace_pattern(?ENTRY, kprof_entry:spec([{'_', [], x}], settings(OneIn)), [local]),
    Runs = [
        spawn_monitor(fun() ->
            1 = erlang:trace(self(), true, [call, arity, {tracer, Tracer}]),
            [entry(a, 1) || _ <- lists:seq(1, Calls)]
        end)
     || _ <- lists:seq(1, 8)
    ],
    [
        receive
            {'DOWN', Ref, process, _, normal} -> ok
        end
     || {_, Ref} <- Runs
    ],
    Counted = erlang:system_info(trace_control_word),
    1 = erlang:trace_pattern(?ENTRY, false, [local]),
    ok = kprof_entry:uncount(Before),
    Delivered = erlang:trace_delivered(all),
    receive
        {trace_delivered, all, Delivered} -> ok
    end,
    {labels(), Counted}.

labels() ->
    receive
        {trace, _, call, {_, entry, _}, {Token, entry, x}} -> [label(Token) | labels()];
        {trace, _, _, _, _} -> labels();
        {trace, _, _, _} -> labels()
    after 0 -> []
    end.

%% Tokens are taken off everybody, unless somebody else has one.
clear_tokens_test_() -> {timeout, 300, fun clear_tokens_case/0}.
clear_tokens_case() ->
    Slots = kprof_slots:create(),
    ok = kprof_slots:open(Slots, ?BASE),
    Holder = fun(Label) ->
        spawn(fun() ->
            token(Label),
            receive
                stop -> ok
            end
        end)
    end,
    Ours = Holder(?BASE + 16#80000005),
    wait(fun() -> holds(Ours) end),
    Foreign = Holder(foo),
    wait(fun() -> holds(Foreign) end),
    ?assertEqual(foreign, kprof_entry:clear_tokens()),
    ?assert(holds(Ours) andalso holds(Foreign)),
    exit(Foreign, kill),
    wait(fun() -> not is_process_alive(Foreign) end),
    ?assertEqual(ok, kprof_entry:clear_tokens()),
    ?assertNot(holds(Ours)),
    exit(Ours, kill),
    _ = kprof_slots:erase().

holds(Pid) ->
    {sequential_trace_token, Token} = process_info(Pid, sequential_trace_token),
    is_tuple(Token).

wait(F) ->
    F() orelse
        begin
            timer:sleep(10),
            wait(F)
        end.
