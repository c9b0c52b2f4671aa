%% SPDX-License-Identifier: Apache-2.0
-module(kprof_token_tests).
-include("patient.hrl").

-export([marks/2, run_inner/0, raise/2, identity_of/1, get/2]).

%% Runs Fun in a process of its own with tokens on (one in N); returns its result and the marker
%% calls of all processes.
marks(OneIn, Fun) ->
    marks(OneIn, Fun, [request_begin, web_begin, trace_parent, request_end]).

marks(OneIn, Fun, Markers) ->
    Slots = kprof_slots:create(),
    ok = kprof_slots:open(Slots, kprof_slots:new_base()),
    ok = kprof_slots:set_one_in(Slots, OneIn),
    {module, _} = code:ensure_loaded(kprof_mark),
    [
        erlang:trace_pattern(
            {kprof_mark, F, 1}, [{['_'], [{is_seq_trace}], [{message, {get_seq_token}}]}], [local]
        )
     || F <- Markers
    ],
    Self = self(),
    Pid = spawn(fun() ->
        receive
            go -> ok
        end,
        Self ! {result, catch Fun()}
    end),
    _ = erlang:trace(Pid, true, [
        call, set_on_spawn, strict_monotonic_timestamp, {tracer, self()}
    ]),
    Pid ! go,
    Result =
        receive
            {result, R} -> R
        after 60000 -> timeout
        end,
    Ref = erlang:trace_delivered(all),
    receive
        {trace_delivered, all, Ref} -> ok
    end,
    _ = erlang:trace_pattern({kprof_mark, '_', '_'}, false, [local]),
    kprof_slots:close(Slots),
    _ = kprof_slots:erase(),
    _ = seq_trace:set_token([]),
    {Result, [Mark || {_, Mark} <- lists:keysort(1, collect())]}.

%% Of two processes the messages may come in another order than they were made.
collect() ->
    receive
        {trace_ts, _, call, {kprof_mark, F, [X]}, {_, Label, _, _, _}, At} ->
            [{At, {F, X, Label}} | collect()];
        {trace_ts, _, call, _, _, At} = Other ->
            [{At, Other} | collect()]
    after 0 -> []
    end.

%% What the application says of a process is marked, under the token of what it says; and what it
%% says again when a function is over.
said_test_() -> {timeout, 300, fun said_case/0}.
said_case() ->
    {{A, B}, Marks} = marks(
        1,
        fun() ->
            ok = kprof:set_token(x),
            A = kprof:get_current_label(),
            B = A bxor 1,
            ok = kprof:set_current_label(A),
            1 = kprof:with_token(A, fun() -> kprof:with_token(A, fun() -> 1 end) end),
            2 = kprof:with_token(A, fun() ->
                kprof:with_token(B, fun() ->
                    B = kprof:get_current_label(),
                    2
                end)
            end),
            3 = kprof:with_token(undefined, fun() -> 3 end),
            %% a message without a token came meanwhile
            4 = kprof:with_token(B, fun() ->
                seq_trace:set_token([]),
                4
            end),
            A = kprof:get_current_label(),
            ok = kprof:clear_token(),
            {A, B}
        end,
        [request_begin, request_end, says]
    ),
    ?assertEqual(
        [
            {request_begin, x, A},
            {says, from_now, A},
            {says, within, A},
            {says, within, A},
            {says, no_more, A},
            {says, within, A},
            {says, within, B},
            {says, within, A},
            {says, no_more, A},
            {says, within, B},
            {says, no_more, B},
            {request_end, ok, A}
        ],
        Marks
    ).

off_test_() -> {timeout, 300, fun off_case/0}.
off_case() ->
    ok = kprof:set_token(x),
    ok = kprof:clear_token(),
    ?assertEqual(undefined, kprof:get_current_label()),
    ok = kprof:set_current_label(17),
    ok = kprof:set_current_label(undefined),
    ?assertEqual(3, kprof:do_apply(erlang, '+', [1, 2])),
    ?assertEqual([], seq_trace:get_token()).

pair_test_() -> {timeout, 300, fun pair_case/0}.
pair_case() ->
    {L, Marks} = marks(1, fun() ->
        kprof:set_token(create),
        L = kprof:get_current_label(),
        kprof:clear_token(),
        [] = seq_trace:get_token(),
        undefined = kprof:get_current_label(),
        [] = get(),
        L
    end),
    ?assertEqual([{request_begin, create, L}, {request_end, ok, L}], Marks),
    ?assert(is_integer(L) andalso L > 16#ffffffff).

labels_differ_test_() -> {timeout, 300, fun labels_differ_case/0}.
labels_differ_case() ->
    One = fun() ->
        kprof:set_token(),
        L = kprof:get_current_label(),
        kprof:clear_token(),
        L
    end,
    {Labels, _} = marks(1, fun() -> [One() || _ <- lists:seq(1, 100)] end),
    ?assertEqual(100, length(lists:usort(Labels))).

nested_test_() -> {timeout, 300, fun nested_case/0}.
nested_case() ->
    {{A, B}, Marks} = marks(1, fun() ->
        kprof:set_token(outer),
        A = kprof:get_current_label(),
        kprof:set_token(inner),
        B = kprof:get_current_label(),
        kprof:clear_token(),
        A = kprof:get_current_label(),
        kprof:clear_token(),
        undefined = kprof:get_current_label(),
        {A, B}
    end),
    ?assertEqual(A, B),
    ?assertEqual([{request_begin, outer, A}, {request_end, ok, A}], Marks).

%% A message without a token clears ours: the process' next word about the request takes it up
%% again.
lost_and_found_test_() -> {timeout, 300, fun lost_and_found_case/0}.
lost_and_found_case() ->
    {L, Marks} = marks(1, fun() ->
        kprof:set_token(x),
        L = kprof:get_current_label(),
        seq_trace:set_token([]),
        kprof:set_token(y),
        L = kprof:get_current_label(),
        kprof:clear_token(),
        kprof:clear_token(),
        L
    end),
    ?assertEqual([{request_begin, x, L}, {request_end, {ok, token_lost}, L}], Marks).

%% The request's end says that the token was lost, whoever found it missing.
lost_test_() ->
    Lose = fun() -> seq_trace:set_token([]) end,
    Other = fun() ->
        seq_trace:set_token(label, kprof_slots:base(kprof_slots:find()) + 16#fffffff)
    end,
    [
        {Name,
            ?_test(begin
                {_, Marks} = marks(1, Fun),
                ?assertMatch([{request_begin, _, L}, {request_end, End, L}], Marks)
            end)}
     || {Name, End, Fun} <-
            [
                {"at the end", {ok, token_lost}, fun() ->
                    kprof:set_token(x),
                    Lose(),
                    kprof:clear_token(),
                    [] = seq_trace:get_token()
                end},
                {"another's, with sampling", {ok, token_lost}, fun() ->
                    kprof:set_token(x),
                    Other(),
                    kprof_slots:set_one_in(kprof_slots:find(), 2),
                    kprof:clear_token()
                end},
                {"an earlier trace's", {ok, token_lost}, fun() ->
                    kprof:set_token(x),
                    seq_trace:set_token(
                        label, (kprof_slots:base_number(kprof_slots:find()) bxor 1) bsl 32
                    ),
                    kprof:clear_token()
                end},
                {"a foreign one", {ok, token_lost}, fun() ->
                    kprof:set_token(x),
                    seq_trace:set_token(label, 17),
                    kprof:clear_token(),
                    {label, 17} = seq_trace:get_token(label)
                end},
                {"in do_apply", {ok, token_lost}, fun() ->
                    kprof:do_apply(seq_trace, set_token, [[]])
                end},
                {"in do_apply that raises", {throw, token_lost}, fun() ->
                    catch kprof:do_apply(erlang, apply, [
                        fun() ->
                            Lose(),
                            throw(x)
                        end,
                        []
                    ])
                end},
                {"found by a nested do_apply", {ok, token_lost}, fun() ->
                    kprof:set_token(x),
                    Lose(),
                    kprof:do_apply(erlang, self, []),
                    true = is_integer(kprof:get_current_label()),
                    kprof:clear_token()
                end},
                {"found in another process", {ok, token_lost}, fun() ->
                    kprof:set_token(x),
                    Self = self(),
                    spawn(fun() ->
                        kprof:set_token(y),
                        Lose(),
                        kprof:set_token(z),
                        kprof:clear_token(),
                        kprof:clear_token(),
                        Self ! done
                    end),
                    receive
                        done -> ok
                    end,
                    kprof:clear_token()
                end},
                {"taken up by hand", ok, fun() ->
                    kprof:set_token(x),
                    L = kprof:get_current_label(),
                    Lose(),
                    kprof:set_current_label(L),
                    kprof:clear_token(),
                    [] = get()
                end},
                {"taken up by hand in do_apply", error, fun() ->
                    catch kprof:do_apply(
                        erlang,
                        apply,
                        [
                            fun() ->
                                L = kprof:get_current_label(),
                                Lose(),
                                kprof:set_current_label(L),
                                error(x)
                            end,
                            []
                        ]
                    ),
                    [] = seq_trace:get_token(),
                    [] = get()
                end},
                {"ended by who was sent the token", ok, fun() ->
                    kprof:set_token(x),
                    Self = self(),
                    spawn(fun() ->
                        kprof:clear_token(),
                        Self ! done
                    end),
                    receive
                        done -> ok
                    end
                end}
            ]
    ].

%% Another request's token, as from who gave back a pool's worker, hides no call.
changed_test_() ->
    Other = fun() ->
        L = kprof_slots:base(kprof_slots:find()) + 16#fffffff,
        _ = seq_trace:set_token(label, L),
        L
    end,
    [
        {Name,
            ?_test(begin
                {O, Marks} = marks(1, fun() -> Fun(Other) end),
                ?assertMatch(
                    [{request_begin, _, L}, {request_end, {Outcome, {token_changed, O}}, L}], Marks
                )
            end)}
     || {Name, Outcome, Fun} <-
            [
                {"set and cleared", ok, fun(F) ->
                    kprof:set_token(x),
                    O = F(),
                    kprof:clear_token(),
                    [] = seq_trace:get_token(),
                    O
                end},
                {"do_apply", ok, fun(F) -> kprof:do_apply(erlang, apply, [F, []]) end},
                {"raised", throw, fun(F) ->
                    try
                        kprof:do_apply(erlang, apply, [fun() -> throw(F()) end, []])
                    catch
                        O -> O
                    end
                end}
            ]
    ].

carried_test_() -> {timeout, 300, fun carried_case/0}.
carried_case() ->
    {L, Marks} = marks(1, fun() ->
        kprof:set_token(x),
        L = kprof:get_current_label(),
        Self = self(),
        spawn(fun() ->
            kprof:set_token(y),
            L = kprof:get_current_label(),
            kprof:clear_token(),
            L = kprof:get_current_label(),
            kprof:clear_token(),
            undefined = kprof:get_current_label(),
            Self ! done
        end),
        receive
            done -> ok
        end,
        % x has ended over there: this is a new request
        kprof:set_token(z),
        M = kprof:get_current_label(),
        true = M =/= L,
        kprof:clear_token(),
        {L, M}
    end),
    {L1, M1} = L,
    ?assertEqual(
        [
            {request_begin, x, L1},
            {request_end, ok, L1},
            {request_begin, z, M1},
            {request_end, ok, M1}
        ],
        Marks
    ).

abandoned_test_() -> {timeout, 300, fun abandoned_case/0}.
abandoned_case() ->
    {{L, M}, Marks} = marks(1, fun() ->
        kprof:set_token(x),
        L = kprof:get_current_label(),
        {L, 1, At, own} = get('$kprof_token'),
        put('$kprof_token', {L, 1, At - 60001, own}),
        kprof:set_token(y),
        M = kprof:get_current_label(),
        kprof:clear_token(),
        {L, M}
    end),
    ?assertEqual([{request_begin, x, L}, {request_begin, y, M}, {request_end, ok, M}], Marks).

stale_test_() -> {timeout, 300, fun stale_case/0}.
stale_case() ->
    {{L, M}, Marks} = marks(1, fun() ->
        kprof:set_token(x),
        L = kprof:get_current_label(),
        kprof_slots:open(kprof_slots:find(), kprof_slots:new_base()),
        kprof_slots:set_one_in(kprof_slots:find(), 1),
        undefined = kprof:get_current_label(),
        kprof:set_token(y),
        M = kprof:get_current_label(),
        kprof:clear_token(),
        {L, M}
    end),
    ?assertNotEqual(L bsr 32, M bsr 32),
    ?assertEqual([{request_begin, x, L}, {request_begin, y, M}, {request_end, ok, M}], Marks).

%% Tracing ends in the middle of a request: the process is left clean.
off_in_between_test_() -> {timeout, 300, fun off_in_between_case/0}.
off_in_between_case() ->
    {ok, Marks} = marks(1, fun() ->
        kprof:set_token(x),
        kprof_slots:close(kprof_slots:find()),
        kprof:clear_token(),
        [] = seq_trace:get_token(),
        [] = get(),
        ok
    end),
    ?assertMatch([{request_begin, x, _}, {request_end, ok, _}], Marks).

foreign_test_() ->
    [
        ?_test(begin
            Run = fun() ->
                seq_trace:set_token(label, Label),
                T = seq_trace:get_token(),
                kprof:set_token(x),
                T = seq_trace:get_token(),
                kprof:clear_token(),
                T = seq_trace:get_token(),
                7 = kprof:do_apply(erlang, '+', [3, 4]),
                kprof:set_current_label(undefined),
                kprof:set_current_label(kprof_slots:base(kprof_slots:find()) + 1),
                T = seq_trace:get_token(),
                undefined = kprof:get_current_label(),
                ok
            end,
            ?assertEqual({ok, []}, marks(1, Run))
        end)
     || Label <- [17, {my, label}, 16#123400000001]
    ].

sampling_test_() -> {timeout, 300, fun sampling_case/0}.
sampling_case() ->
    {{Began, Unsampled}, Marks} =
        marks(10, fun() ->
            Ls = [
                begin
                    kprof:set_token(x),
                    kprof:set_token(y),
                    L = kprof:get_current_label(),
                    kprof:clear_token(),
                    L = kprof:get_current_label(),
                    kprof:clear_token(),
                    L
                end
             || _ <- lists:seq(1, 100)
            ],
            {length([L || L <- Ls, L =/= undefined]), kprof_slots:unsampled(kprof_slots:find())}
        end),
    ?assertEqual({10, 90}, {Began, Unsampled}),
    ?assertEqual(20, length(Marks)).

identity_test_() ->
    Long = binary:copy(<<"x">>, 300),
    [
        ?_test(begin
            {_, [{request_begin, Got, _} | _]} = marks(1, fun() ->
                kprof:set_token(Given),
                kprof:clear_token()
            end),
            ?assertEqual(Want, Got)
        end)
     || {Given, Want} <- [
            {a, a},
            {"text", "text"},
            {<<"b">>, <<"b">>},
            {{a, "b"}, {a, "b"}},
            {undefined, undefined},
            {self(), undefined},
            {#{}, undefined},
            {Long, binary:part(Long, 0, 255)},
            {binary_to_list(Long), binary_to_list(binary:part(Long, 0, 255))},
            {[a | b], undefined}
        ]
    ].

do_apply_test_() -> {timeout, 300, fun do_apply_case/0}.
do_apply_case() ->
    {{R, L}, Marks} = marks(1, fun() ->
        R = kprof:do_apply(?MODULE, run_inner, []),
        [] = seq_trace:get_token(),
        R
    end),
    ?assertEqual(ran, R),
    ?assertEqual([{request_begin, undefined, L}, {request_end, ok, L}], Marks).

run_inner() ->
    L = kprof:get_current_label(),
    %% nested: keeps the outer one, ends nothing
    L = kprof:do_apply(kprof, get_current_label, []),
    {ran, L}.

raise(Class, Reason) -> erlang:raise(Class, Reason, [{?MODULE, here, 0, []}]).

do_apply_raises_test_() ->
    [
        ?_test(begin
            Run = fun() ->
                try
                    kprof:do_apply(?MODULE, raise, [Class, why])
                catch
                    C:R:S ->
                        [] = seq_trace:get_token(),
                        [] = get(),
                        {C, R, S}
                end
            end,
            {{Class, why, [{?MODULE, here, 0, []}]}, Marks} = marks(1, Run),
            ?assertMatch([{request_begin, undefined, L}, {request_end, Class, L}], Marks)
        end)
     || Class <- [error, exit, throw]
    ].

do_apply_unsampled_test_() -> {timeout, 300, fun do_apply_unsampled_case/0}.
do_apply_unsampled_case() ->
    {Result, []} = marks(1000, fun() -> kprof:do_apply(?MODULE, identity_of, [x]) end),
    ?assertEqual({x, undefined}, Result).

identity_of(X) -> {X, kprof:get_current_label()}.

by_hand_test_() -> {timeout, 300, fun by_hand_case/0}.
by_hand_case() ->
    {ok, Marks} = marks(1, fun() ->
        kprof:set_token(x),
        L = kprof:get_current_label(),
        Self = self(),
        kprof:set_current_label(undefined),
        undefined = kprof:get_current_label(),
        spawn(fun() ->
            undefined = kprof:get_current_label(),
            kprof:set_current_label(L),
            L = kprof:get_current_label(),
            kprof:clear_token(),
            Self ! done
        end),
        receive
            done -> ok
        end
    end),
    ?assertMatch([{request_begin, x, L}, {request_end, ok, L}], Marks).

%% A fake misultin request: a tuple whose module exports get/2.
get(method, {?MODULE, Method, _}) -> Method;
get(uri, {?MODULE, _, Uri}) -> Uri;
get(headers, _) -> [{'Host', "h"}, {"X-Trace-Request", "true"}].

misultin_test_() ->
    [
        ?_test(begin
            {Result, [{web_begin, Got, _}, {request_end, {End, kept, undefined}, _}]} =
                marks(1, fun() -> kprof:misultin_req_loop(Req, fun(_) -> Result end) end),
            ?assertEqual({Outcome, Identity}, {End, Got})
        end)
     || {Req, Result, Outcome, Identity} <-
            [
                {
                    {?MODULE, 'GET', {abs_path, "/a/b?c=d"}},
                    {response, 200, [], "x"},
                    ok,
                    <<"GET /a/*">>
                },
                {{?MODULE, <<"POST">>, <<"/x">>}, {stream_head, 503, []}, error, <<"POST /x">>},
                {{?MODULE, 'GET', "/x"}, whatever, ok, <<"GET /x">>},
                {{?MODULE, 'GET', 17}, ok, ok, undefined},
                {not_a_request, ok, ok, undefined}
            ]
    ].

misultin_crash_test_() -> {timeout, 300, fun misultin_crash_case/0}.
misultin_crash_case() ->
    Crash = fun() ->
        catch kprof:misultin_req_loop({?MODULE, 'GET', "/x"}, fun(_) -> raise(error, why) end)
    end,
    ?assertMatch(
        {{'EXIT', {why, [{?MODULE, here, 0, []} | _]}}, [
            {web_begin, <<"GET /x">>, _}, {request_end, {error, kept, undefined}, _}
        ]},
        marks(1, Crash)
    ).

misultin_off_test_() -> {timeout, 300, fun misultin_off_case/0}.
misultin_off_case() ->
    ?assertEqual(done, kprof:misultin_req_loop(not_a_request, fun(not_a_request) -> done end)).

%% Any well-paired use leaves the process as it was, with as many ends as begins.
pairs_test_() -> {timeout, 300, fun pairs_case/0}.
pairs_case() ->
    _ = rand:seed(exsss, {4, 5, 6}),
    {ok, Marks} = marks(3, fun() ->
        [pairs(rand:uniform(4)) || _ <- lists:seq(1, 300)],
        [] = seq_trace:get_token(),
        ok
    end),
    ?assertEqual(
        length([x || {request_begin, _, _} <- Marks]), length([x || {request_end, _, _} <- Marks])
    ),
    ?assertEqual(100, length(Marks) div 2).

pairs(0) ->
    ok;
pairs(N) ->
    kprof:set_token(N),
    [pairs(N - 1) || _ <- lists:seq(1, rand:uniform(2) - 1)],
    kprof:clear_token().

%% --- inside of an entry's call ---

%% As its match specification does it: another token of ours, in the process that calls.
enter() ->
    Label =
        kprof_slots:base(kprof_slots:find()) bor 16#80000000 bor erlang:unique_integer([positive]),
    _ = seq_trace:set_token([]),
    _ = seq_trace:set_token(label, Label),
    Label.

facts(Status) -> fun() -> #{method => "GET", path => "/a", status => Status} end.
no_header(_) -> undefined.

%% A web server's helper draws no lot again, has a label of its own, and leaves the entry's token
%% behind.
web_inside_test_() -> {timeout, 300, fun web_inside_case/0}.
web_inside_case() ->
    {{E, W}, Marks} = marks(1000000, fun() ->
        E = enter(),
        W = kprof:begin_request(fun no_header/1, facts(undefined)),
        {label, W} = seq_trace:get_token(label),
        ok = kprof:end_request(W, facts(500)),
        {label, E} = seq_trace:get_token(label),
        [] = get(),
        {E, W}
    end),
    ?assert(E =/= W),
    ?assertEqual(
        [{web_begin, <<"GET /a">>, W}, {request_end, {error, kept, <<"GET /a">>}, W}], Marks
    ).

%% Another entry's call within has given the process its token: nothing is lost by that.
web_inside_nested_test_() -> {timeout, 300, fun web_inside_nested_case/0}.
web_inside_nested_case() ->
    {{E, W}, Marks} = marks(1, fun() ->
        _ = enter(),
        W = kprof:begin_request(fun no_header/1, facts(undefined)),
        E = enter(),
        ok = kprof:end_request(W, facts(200)),
        {label, E} = seq_trace:get_token(label),
        {E, W}
    end),
    ?assertEqual([{web_begin, <<"GET /a">>, W}, {request_end, {ok, kept, <<"GET /a">>}, W}], Marks),
    ?assert(E =/= W).

%% A marker begins nothing there, but names what is there.
marker_inside_test_() -> {timeout, 300, fun marker_inside_case/0}.
marker_inside_case() ->
    {E, Marks} = marks(1, fun() ->
        E = enter(),
        ok = kprof:set_token(create),
        ok = kprof:clear_token(),
        ok = kprof:set_token(),
        ok = kprof:clear_token(),
        ok = kprof:clear_token(),
        {label, E} = seq_trace:get_token(label),
        [] = get(),
        E
    end),
    ?assertEqual([{request_begin, create, E}], Marks).

%% A response that is on its way keeps its token until its end.
sending_test_() -> {timeout, 300, fun sending_case/0}.
sending_case() ->
    {W, Marks} = marks(1, fun() ->
        W = kprof:begin_request(fun no_header/1, facts(undefined)),
        ok = kprof:send_request(W, facts(200)),
        {label, W} = seq_trace:get_token(label),
        ok = kprof:end_request(W, facts(200)),
        [] = seq_trace:get_token(),
        [] = get(),
        W
    end),
    ?assertEqual(
        [
            {web_begin, <<"GET /a">>, W},
            {request_end, {ok, sending, <<"GET /a">>}, W},
            {request_end, {ok, kept, <<"GET /a">>}, W}
        ],
        Marks
    ).

%% What an entry left in a request that the sampler left out goes with that.
left_out_test_() -> {timeout, 300, fun left_out_case/0}.
left_out_case() ->
    {_, Marks} = marks(1000000, fun() ->
        0 = kprof:begin_request(fun no_header/1, facts(undefined)),
        _ = enter(),
        ok = kprof:end_request(0, facts(200)),
        [] = seq_trace:get_token(),
        [] = get()
    end),
    ?assertEqual([], Marks).
