%% SPDX-License-Identifier: Apache-2.0
-module(kprof_flame_header_tests).
-include("patient.hrl").

-define(SECRET, <<"0123456789abcdefABCDEF">>).

%% --- the secret ---

fits_test_() ->
    Secret = fun() -> ?SECRET end,
    Size = byte_size(?SECRET),
    Other = fun(I) ->
        <<Before:I/binary, C, After/binary>> = ?SECRET,
        <<Before/binary, (C bxor 1), After/binary>>
    end,
    [
        ?_assert(kprof_flame_header:fits(V, Secret))
     || V <- [
            ?SECRET,
            binary_to_list(?SECRET),
            <<" ", ?SECRET/binary, " ">>,
            <<?SECRET/binary, ",other">>
        ]
    ] ++
        [?_assertNot(kprof_flame_header:fits(Other(I), Secret)) || I <- lists:seq(0, Size - 1)] ++
        [
            ?_assertNot(kprof_flame_header:fits(V, Secret))
         || V <- [
                undefined,
                <<>>,
                <<"true">>,
                binary:part(?SECRET, 0, Size - 1),
                <<?SECRET/binary, "0">>,
                string:uppercase(?SECRET)
            ]
        ] ++
        [?_assert(kprof_flame_header:fits(V, any)) || V <- [<<"true">>, "1", <<" Yes,no">>]] ++
        [?_assertNot(kprof_flame_header:fits(V, any)) || V <- [undefined, <<"false">>, <<>>]].

%% It takes as many steps wherever a guess goes wrong.
constant_time_test_() ->
    Secret = binary:copy(<<"s">>, 200),
    Steps = fun(Guess) ->
        lists:min([steps(Guess, fun() -> Secret end) || _ <- lists:seq(1, 20)])
    end,
    [
        ?_assertEqual(Steps(Secret), Steps(<<(binary:copy(<<"s">>, I))/binary, "x", After/binary>>))
     || I <- [0, 1, 100, 199], After <- [binary:copy(<<"s">>, 199 - I)]
    ].

steps(Guess, Secret) ->
    Self = self(),
    _ = spawn(fun() ->
        {_, Before} = process_info(self(), reductions),
        _ = kprof_flame_header:fits(Guess, Secret),
        {_, After} = process_info(self(), reductions),
        Self ! {steps, After - Before}
    end),
    receive
        {steps, N} -> N
    end.

%% --- how many ---

with_slots(Fun) ->
    Slots = kprof_slots:create(),
    ok = kprof_slots:open(Slots, kprof_slots:new_base()),
    _ = ets:new(kprof_guard, [named_table, public]),
    try
        Fun(Slots)
    after
        true = ets:delete(kprof_guard),
        kprof_slots:close(Slots),
        kprof_slots:erase()
    end.

%% Five at once and no more; what has stood long uses up those to come; a new arming gives none.
rate_test_() -> {timeout, 300, fun rate_case/0}.
rate_case() ->
    with_slots(fun(Slots) ->
        Taken = fun() -> length([x || _ <- lists:seq(1, 100), kprof_slots:take_flame(Slots)]) end,
        kprof_slots:set_flame_header(Slots, true),
        ?assertEqual(5, Taken()),
        kprof_slots:set_flame_header(Slots, true),
        ?assertEqual(0, Taken()),
        % as if twenty-four seconds had passed
        kprof_slots:charge_flame(Slots, -2400),
        ?assertEqual(2, Taken()),
        kprof_slots:charge_flame(Slots, -2400),
        kprof_slots:charge_flame(Slots, 2400),
        ?assertEqual(0, Taken())
    end).

refusals_test_() -> {timeout, 300, fun refusals_case/0}.
refusals_case() ->
    with_slots(fun(Slots) ->
        Told = length([x || _ <- lists:seq(1, 1000), kprof_slots:take_refusal(Slots)]),
        % a second may end meanwhile
        ?assert(Told >= 1 andalso Told =< 3)
    end).

%% --- the wait ---

%% A kprof_life that does what it is told, and what it was told.
with_life(Answer, Fun) ->
    Self = self(),
    forget_messages(),
    Life = spawn_link(fun() ->
        true = register(kprof_life, self()),
        Self ! ready,
        life(Self, Answer)
    end),
    receive
        ready -> ok
    end,
    try
        with_slots(fun(Slots) ->
            ok = kprof_flame_header:set(Slots, {<<"x-flame">>, fun() -> ?SECRET end, #{}}),
            Fun(Slots)
        end)
    after
        true = unlink(Life),
        Ref = monitor(process, Life),
        exit(Life, kill),
        receive
            {'DOWN', Ref, process, _, _} -> ok
        end
    end.

%% What an earlier test's processes still had to say, traced to their end.
forget_messages() ->
    receive
        _ -> forget_messages()
    after 0 -> ok
    end.

life(Test, Answer) ->
    receive
        {kprof_flame_header, {begins, #{answer := Alias} = Ask}} ->
            Test ! {told, seq_trace:get_token(), maps:get(label, Ask)},
            Answer(Alias),
            life(Test, Answer);
        {kprof_flame_header, Else} ->
            Test ! {told, seq_trace:get_token(), Else},
            life(Test, Answer);
        {all_told, Test} ->
            Test ! all_told,
            life(Test, Answer)
    end.

%% What this process has told so far has come back.
all_told() ->
    kprof_life ! {all_told, self()},
    receive
        all_told -> ok
    end.

told() ->
    receive
        {told, Token, What} -> {Token, What}
    after 60000 -> nothing
    end.

begins(Slots) ->
    kprof_flame_header:begins(Slots, fun(<<"x-flame">>) -> ?SECRET end, 77).

%% A machine that stands still for 50 ms makes it late: then it asks again, once the next refusal
%% may be told.
begins_in_time(Slots, Again) ->
    _ = seq_trace:set_token(label, 17),
    case begins(Slots) of
        true ->
            ok;
        false when Again > 0 ->
            ?assertEqual([{[], 77}, {[], {gave_up, 77}}], [told_of_wait(), told_of_wait()]),
            _ = timer:sleep(1100),
            all_told(),
            forget_messages(),
            begins_in_time(Slots, Again - 1)
    end.

stands_test_() -> {timeout, 300, fun stands_case/0}.
stands_case() ->
    with_life(fun(Alias) -> Alias ! {Alias, stands} end, fun(Slots) ->
        ok = begins_in_time(Slots, 4),
        ?assertEqual({label, 17}, seq_trace:get_token(label)),
        _ = seq_trace:set_token([]),
        ?assertEqual({[], 77}, told()),
        ok = kprof_slots:set_full(Slots, 77),
        ?assertEqual(<<"flame-25">>, kprof_flame_header:name_of(77)),
        ?assertEqual(undefined, kprof_flame_header:name_of(78)),
        % one at a time
        ?assertNot(begins(Slots)),
        ?assertMatch({[], {refused, _}}, told()),
        kprof_flame_header:ended(78),
        kprof_flame_header:ended(77),
        ?assertEqual({[], {ended, 77}}, told()),
        ?assertEqual({messages, []}, process_info(self(), messages))
    end).

refused_test_() -> {timeout, 300, fun refused_case/0}.
refused_case() ->
    with_life(fun(Alias) -> Alias ! {Alias, {no, "not now"}} end, fun(Slots) ->
        {Us, false} = timer:tc(fun() -> begins(Slots) end),
        ?assertEqual({[], 77}, told()),
        % where the machine stood still meanwhile, it gave up
        Us < 50000 andalso ?assertEqual({[], {refused, "not now"}}, told()),
        all_told(),
        forget_messages(),
        ?assertNot(kprof_flame_header:begins(Slots, fun(_) -> <<"true">> end, 77)),
        ?assertNot(kprof_flame_header:begins(Slots, fun(_) -> error(oops) end, 77)),
        ok = kprof_flame_header:set(Slots, undefined),
        ?assertNot(kprof_flame_header:begins(Slots, fun(_) -> ?SECRET end, 77)),
        ?assertEqual({messages, []}, process_info(self(), messages))
    end).

%% It waits no longer than it may, and what comes later is nobody's.
late_test_() -> {timeout, 300, fun late_case/0}.
late_case() ->
    Test = self(),
    % the answer comes when the test says so: a second of which nothing came would be seen below
    Late = fun(Alias) ->
        Test ! {asked, self()},
        receive
            answer -> Alias ! {Alias, stands}
        after 60000 -> ok
        end
    end,
    with_life(Late, fun(Slots) ->
        Waited = fun() ->
            {Us, Begins} = timer:tc(fun() -> begins(Slots) end),
            ?assertNot(Begins),
            receive
                {asked, Life} -> Life ! answer
            end,
            ?assertEqual([{[], 77}, {[], {gave_up, 77}}], [told_of_wait(), told_of_wait()]),
            Us
        end,
        First = Waited(),
        % the log is told the first time, and again in each second that begins meanwhile
        ?assertMatch({[], {refused, _}}, told()),
        % 50 ms, and what a busy machine adds to the quickest of some
        Waits = [First, Waited(), Waited()],
        ?assert(lists:min(Waits) >= 50000),
        ?assert(lists:min(Waits) < 1000000),
        timer:sleep(50),
        {messages, Left} = process_info(self(), messages),
        ?assertEqual([], [M || M <- Left, not is_refusal(M)])
    end).

told_of_wait() ->
    case told() of
        {[], {refused, _}} -> told_of_wait();
        Told -> Told
    end.

is_refusal({told, [], {refused, _}}) -> true;
is_refusal(_) -> false.

without_life_test_() -> {timeout, 300, fun without_life_case/0}.
without_life_case() ->
    with_slots(fun(Slots) ->
        ok = kprof_flame_header:set(Slots, {<<"x-flame">>, any, #{}}),
        ?assertNot(kprof_flame_header:begins(Slots, fun(_) -> <<"true">> end, 77))
    end).
