%% SPDX-License-Identifier: Apache-2.0
-module(kprof_tiers_tests).
-include("patient.hrl").

tiers(List, Fun) ->
    kprof_tiers:new(#{
        tiers => [
            #{name => Name, mfa => MFA, returns => Returns, entry => Entry}
         || {Name, MFA, Returns, Entry} <- List
        ],
        identity_f => Fun,
        flags => []
    }).

%% What the collector is told; whether it has to ask for identities.
fields_test_() -> {timeout, 300, fun fields_case/0}.
fields_case() ->
    List = [{<<"a">>, {lists, nth, 2}, whole, false}, {<<"b">>, {lists, sort, 1}, none, false}],
    Told = [
        #{name => <<"a">>, m => lists, f => nth, a => 2},
        #{name => <<"b">>, m => lists, f => sort, a => 1, returns => none}
    ],
    ?assertEqual(#{tiers => Told, identity => none}, kprof_tiers:fields(tiers(List, undefined))),
    {value, Spec, _} = erl_eval:exprs(
        parsed("fun({lists, nth, [N, _]}) -> N; (_) -> undefined end."), []
    ),
    ?assertEqual(#{tiers => Told, identity => spec}, kprof_tiers:fields(tiers(List, Spec))),
    ?assertMatch(
        #{identity := ask},
        kprof_tiers:fields(
            tiers(List, fun(Call) ->
                self() ! Call,
                undefined
            end)
        )
    ).

parsed(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text),
    {ok, Exprs} = erl_parse:parse_exprs(Tokens),
    Exprs.

%% A tier that is taken off takes its flag with it; one that is not there takes nothing.
take_off_test_() -> {timeout, 300, fun take_off_case/0}.
take_off_case() ->
    All = tiers(
        [{<<"a">>, {lists, nth, 2}, whole, true}, {<<"b">>, {lists, sort, 1}, none, false}],
        undefined
    ),
    ?assertEqual([return_to], kprof_tiers:flags(All)),
    ?assertEqual({[], All}, kprof_tiers:take_off({<<"lists">>, <<"sort">>, 2}, All)),
    {[#{name := <<"b">>}], Rest} = kprof_tiers:take_off({<<"lists">>, <<"sort">>, 1}, All),
    ?assertEqual([], kprof_tiers:flags(Rest)),
    ?assertEqual(
        [{lists, sort, 1}],
        [MFA || {MFA, _} <- kprof_tiers:patterns(All)] --
            [MFA || {MFA, _} <- kprof_tiers:patterns(Rest)]
    ),
    ?assert(kprof_tiers:has_entries(Rest)),
    {[_], None} = kprof_tiers:take_off({<<"lists">>, <<"nth">>, 2}, Rest),
    ?assertNot(kprof_tiers:has_entries(None)).

%% Entry calls of the moment in which the sampling changes are left out by neither or by both: they
%% are told once, and no call that has a label is told to have none.
changing_test_() -> {timeout, 300, fun changing_case/0}.
changing_case() ->
    kprof_guard = ets:new(kprof_guard, [named_table, public]),
    Slots = kprof_slots:create(),
    ok = kprof_slots:open(Slots, kprof_slots:new_base()),
    Tiers = tiers([{<<"e">>, {lists, nth, 2}, whole, true}], undefined),
    [
        begin
            Before = kprof_tiers:arm(Slots, kprof_sampling:new({one_in, Old}), Tiers),
            Told = kprof_slots:unsampled(Slots),
            Changed = kprof_tiers:sample(Slots, kprof_sampling:new({one_in, New}), Before),
            %% while the patterns of the one before stand still
            _ = erlang:system_flag(trace_control_word, 8),
            After = kprof_tiers:count_changing(Slots, Before, Changed),
            _ = erlang:system_flag(trace_control_word, 12),
            _ = kprof_tiers:count_left_out(Slots, After),
            ?assertEqual({Old, New, Count}, {Old, New, kprof_slots:unsampled(Slots) - Told})
        end
     || {Old, New, Count} <- [{1, 4, 3}, {4, 1, 0}, {2, 4, 4 + 3}, {3, 2, 3 + 2}]
    ],
    ok = kprof_entry:uncount(0),
    true = ets:delete(kprof_guard).
