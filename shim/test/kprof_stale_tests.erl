%% SPDX-License-Identifier: Apache-2.0
%% Labels of requests that are over: gathered, set now and then, forgotten; and what the patterns do
%% with them.
-module(kprof_stale_tests).
-include("patient.hrl").

-export([called/1]).

-define(LABEL, (5 bsl 32 bor 7)).

called(X) -> X.

gathered_test_() -> {timeout, 300, fun gathered_case/0}.
gathered_case() ->
    {None, S0} = kprof_stale:due(0, kprof_stale:new()),
    ?assertEqual(#{}, None),
    S1 = lists:foldl(fun({Tier, Label}, S) -> kprof_stale:told(0, Tier, Label, S) end, S0, [
        {<<"a">>, 1}, {<<"b">>, 2}, {<<"a">>, 3}
    ]),
    {Due, S2} = kprof_stale:due(0, S1),
    ?assertEqual(#{<<"a">> => [3, 1], <<"b">> => [2]}, Due),
    S3 = kprof_stale:changed(0, 4, S2),
    %% known ones change nothing, new ones only their tier, when it is time
    S4 = kprof_stale:told(10, <<"b">>, 4, kprof_stale:told(10, <<"a">>, 1, S3)),
    ?assertEqual({#{}, S4}, kprof_stale:due(1003, S4)),
    {Next, S5} = kprof_stale:due(1004, S4),
    ?assertEqual(#{<<"b">> => [4, 2]}, Next),
    %% a change that takes long: one part in fifty
    S6 = kprof_stale:told(1010, <<"a">>, 9, kprof_stale:changed(1004, 1104, S5)),
    ?assertEqual({#{}, S6}, kprof_stale:due(1104 + 4999, S6)),
    ?assertMatch({#{<<"a">> := [9, 3, 1]}, _}, kprof_stale:due(1104 + 5000, S6)).

forgotten_test_() -> {timeout, 300, fun forgotten_case/0}.
forgotten_case() ->
    S1 = lists:foldl(
        fun(Label, S) -> kprof_stale:told(Label, <<"a">>, Label, S) end,
        kprof_stale:new(),
        lists:seq(1, 70)
    ),
    {#{<<"a">> := Labels}, S2} = kprof_stale:due(1000, S1),
    ?assertEqual(lists:seq(70, 7, -1), Labels),
    ?assertMatch({#{<<"a">> := [70, 69]}, _}, kprof_stale:due(60068, S2)),
    {Gone, S3} = kprof_stale:due(60070, S2),
    ?assertEqual(#{<<"a">> => []}, Gone),
    ?assertEqual({#{}, S3}, kprof_stale:due(60071, S3)).

%% Calls of a new process under these tokens, traced with this spec: for each its message and the
%% label that the process has then.
traced(Spec, Labels) ->
    Tracer = self(),
    1 = erlang:trace_pattern({?MODULE, called, 1}, Spec, [local]),
    {_, Ref} = spawn_monitor(fun() ->
        1 = erlang:trace(self(), true, [call, {tracer, Tracer}]),
        exit([
            begin
                _ = seq_trace:set_token(label, L),
                _ = ?MODULE:called(L),
                {L,
                    case seq_trace:get_token(label) of
                        {label, Kept} -> Kept;
                        [] -> none
                    end}
            end
         || L <- Labels
        ])
    end),
    Kept =
        receive
            {'DOWN', Ref, process, _, K} -> K
        end,
    1 = erlang:trace_pattern({?MODULE, called, 1}, false, [local]),
    Delivered = erlang:trace_delivered(all),
    receive
        {trace_delivered, all, Delivered} -> ok
    end,
    Told = told(),
    [{L, Has, proplists:get_value(L, Told, false)} || {L, Has} <- Kept].

told() ->
    receive
        {trace, _, call, {_, called, [L]}, {{_, L, _, _, _}, left_out, over}} ->
            [{L, left_out} | told()];
        {trace, _, call, {_, called, [L]}, _} ->
            [{L, true} | told()];
        {trace, _, _, _, _} ->
            told()
    after 0 -> []
    end.

patterns_test_() -> {timeout, 300, fun patterns_case/0}.
patterns_case() ->
    Rows = [{['$1'], [{'>', '$1', ?LABEL}], late}, {'_', [], undefined}],
    [
        begin
            Spec = kprof_match:spec(Rows, #{returns => Returns, flags => [], stale => Stale}),
            ?assertEqual(
                [
                    case lists:member(L, Stale) of
                        true -> {L, none, left_out};
                        false -> {L, L, true}
                    end
                 || L <- [?LABEL - 1, ?LABEL, ?LABEL + 1]
                ],
                traced(Spec, [?LABEL - 1, ?LABEL, ?LABEL + 1])
            )
        end
     || Returns <- [whole, none],
        Stale <- [[], [?LABEL], [?LABEL + 1, ?LABEL | lists:seq(100, 161)]]
    ].

%% An entry begins a request under such a label.
entry_test_() -> {timeout, 300, fun entry_case/0}.
entry_case() ->
    Before = kprof_entry:count(),
    Settings = #{
        base => 5 bsl 32, olds => [], one_in => 1, flags => [], returns => whole, stale => [?LABEL]
    },
    [{?LABEL, New, true}, {Other, Other, true}] =
        traced(kprof_entry:spec([{'_', [], undefined}], Settings), [?LABEL, ?LABEL + 1]),
    ok = kprof_entry:uncount(Before),
    ?assertEqual({?LABEL + 1, 5 bsl 1 bor 1}, {Other, New bsr 31}).
