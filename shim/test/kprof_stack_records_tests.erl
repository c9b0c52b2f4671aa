%% SPDX-License-Identifier: Apache-2.0
%% What goes in comes out of the bytes, in batches of a bounded size.
-module(kprof_stack_records_tests).
-include("patient.hrl").

%% One of each, with the numbers that take more bytes than one.
round_trip_test_() -> {timeout, 300, fun round_trip_case/0}.
round_trip_case() ->
    Began = erlang:monotonic_time(),
    After = fun(Us) -> Began + erlang:convert_time_unit(Us, microsecond, native) end,
    R0 = kprof_stack_records:new(Began),
    {0, R1} = kprof_stack_records:process({self(), <<"a">>, <<"m:f/0">>, <<"kernel">>}, R0),
    {1, R2} = kprof_stack_records:process({self(), <<>>, <<>>, <<>>}, R1),
    R3 = kprof_stack_records:time(After(300), R2),
    {0, R4} = kprof_stack_records:stack([{in, f, 2}, {out, g, 0}], R3),
    Values = #{
        reductions => 1 bsl 40,
        queue => 128,
        heap => {16384, 127},
        memory => 0,
        collected => {3, 200, 300, 1 bsl 33}
    },
    R5 = kprof_stack_records:sample(0, waiting, 0, Values, R4),
    R6 = kprof_stack_records:sample(0, running, same, #{queue => 1}, R5),
    {0, R7} = kprof_stack_records:stack([{in, f, 2}, {out, g, 0}], R6),
    {1, R8} = kprof_stack_records:stack([{other, f, 2}, {out, g, 0}], R7),
    R9 = kprof_stack_records:sample(1, suspended, 1, #{}, R8),
    R10 = kprof_stack_records:unchanged(0, waiting, kprof_stack_records:time(After(200), R9)),
    R11 = kprof_stack_records:unanswered(1, kprof_stack_records:time(After(100000), R10)),
    R12 = kprof_stack_records:held(500, kprof_stack_records:late(70000, R11)),
    R = kprof_stack_records:gone(0, R12),
    Process = #{
        pid => list_to_binary(pid_to_list(self())),
        name => <<"a">>,
        initial => <<"m:f/0">>,
        application => <<"kernel">>
    },
    Other = Process#{name := <<>>, initial := <<>>, application := <<>>},
    Stack = {whole, [{<<"out">>, <<"g">>, 0}, {<<"in">>, <<"f">>, 2}]},
    ?assertEqual(
        [
            {process, 0, Process},
            {process, 0, Other},
            {sample, 300, #{
                process => Process,
                status => 2,
                stack => Stack,
                reductions => 1 bsl 40,
                queue => 128,
                heap => 16384,
                stack_size => 127,
                memory => 0,
                minor => 3,
                old_heap => 200,
                bin => 300,
                old_bin => 1 bsl 33
            }},
            {sample, 300, #{process => Process, status => 0, stack => Stack, queue => 1}},
            {sample, 300, #{
                process => Other,
                status => 5,
                stack => {whole, [{<<"out">>, <<"g">>, 0}, {<<"other">>, <<"f">>, 2}]}
            }},
            {unchanged, 300, #{process => Process, status => 2, stack => Stack}},
            {unanswered, 100000, Other},
            {late, 100000, 70000},
            {held, 100000, 500},
            {gone, 100000, Process}
        ],
        read(kprof_stack_records:close(R))
    ).

%% Bytes as protocol and collector have them.
bytes_test_() -> {timeout, 300, fun bytes_case/0}.
bytes_case() ->
    R0 = kprof_stack_records:new(0),
    {0, R1} = kprof_stack_records:stack([{b, c, 1}, {a, d, 0}], R0),
    R2 = kprof_stack_records:sample(200, exiting, 0, #{queue => 5}, R1),
    {Bytes, _} = kprof_stack_records:take(kprof_stack_records:close(R2)),
    ?assertEqual(
        <<1, 1, "a", 1, "d", 0, 1, 1, "b", 1, "c", 1, 2, 0, 2, 0, 1, 5, 200, 1, 4, 1, 2, 5>>, Bytes
    ).

%% The longest names there are, 64 in each stack: no batch is over 24 KiB, and all of them together
%% can be read.
batches_test_() -> {timeout, 300, fun batches_case/0}.
batches_case() ->
    Name = fun(N) ->
        list_to_atom(lists:duplicate(250, 16#10400) ++ integer_to_list(N))
    end,
    Stacks = [[{Name(S * 64 + F), Name(F), F} || F <- lists:seq(1, 64)] || S <- lists:seq(1, 5)],
    Long = unicode:characters_to_binary(lists:duplicate(400, 16#10400)),
    R = lists:foldl(
        fun(Stack, R0) ->
            {N, R1} = kprof_stack_records:process({self(), Long, Long, Long}, R0),
            {S, R2} = kprof_stack_records:stack(Stack, R1),
            kprof_stack_records:sample(N, waiting, S, #{}, R2)
        end,
        kprof_stack_records:new(0),
        Stacks
    ),
    Batches = batches(kprof_stack_records:close(R)),
    ?assert(length(Batches) > 10),
    ?assertEqual([], [byte_size(B) || B <- Batches, byte_size(B) > 24 * 1024]),
    Told = [S || {sample, _, #{stack := S}} <- read(R)],
    ?assertEqual(5, length(Told)),
    [
        begin
            {cut, Frames} = Read,
            Wanted = [
                {atom_to_binary(M, utf8), atom_to_binary(F, utf8), A}
             || {M, F, A} <- lists:reverse(Stack)
            ],
            ?assertEqual(Wanted, Frames)
        end
     || {Read, Stack} <- lists:zip(Told, Stacks)
    ],
    [#{name := Cut} | _] = [P || {process, _, P} <- read(R)],
    ?assertEqual(255, string:length(Cut)).

%% A full table is said to be full, and numbers begin anew behind the word.
forget_test_() -> {timeout, 300, fun forget_case/0}.
forget_case() ->
    Told = lists:foldl(
        fun(_, R) ->
            {_, R1} = kprof_stack_records:process({self(), <<>>, <<>>, <<>>}, R),
            R1
        end,
        kprof_stack_records:new(0),
        lists:seq(1, 4900)
    ),
    ?assertNot(kprof_stack_records:is_full(Told)),
    {4900, Full} = kprof_stack_records:process({self(), <<>>, <<>>, <<>>}, Told),
    ?assert(kprof_stack_records:is_full(Full)),
    {0, _} = kprof_stack_records:process(
        {self(), <<>>, <<>>, <<>>}, kprof_stack_records:forget(Full)
    ),
    Frames = lists:foldl(
        fun(N, R) ->
            {_, R1} = kprof_stack_records:stack([{m, f, N}], R),
            R1
        end,
        kprof_stack_records:new(0),
        lists:seq(0, 8900)
    ),
    ?assert(kprof_stack_records:is_full(Frames)),
    {0, Anew} = kprof_stack_records:stack([{m, f, 7}], kprof_stack_records:forget(Frames)),
    ?assertMatch([{forget, 0, all}], read(Anew)).

batches(R0) ->
    case kprof_stack_records:take(R0) of
        {Bytes, R} -> [Bytes | batches(R)];
        none -> []
    end.

read(R) ->
    {Read, _} = lists:foldl(
        fun(Bytes, {Before, Reader0}) ->
            {Records, Reader} = kprof_stack_reader:read(Bytes, Reader0),
            {Before ++ Records, Reader}
        end,
        {[], kprof_stack_reader:new()},
        batches(kprof_stack_records:close(R))
    ),
    Read.
