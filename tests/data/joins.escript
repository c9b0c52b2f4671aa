#!/usr/bin/env escript
%% SPDX-License-Identifier: Apache-2.0
%% Usage: joins.escript OUT.cap. What joins calls to their returns and processes to their parents,
%% sent by a real node to a file trace port: tiers with returns (whole) and without (none: return_to
%% and {caller}), spawns, garbage collections, scheduling, deaths. The match specifications are the
%% shim's (kprof_mark, kprof_match).
-mode(compile).

source() ->
    "-module(kprof_mark). -export([request_begin/1, request_end/1]).\n"
    "request_begin(_) -> ok.\n"
    "request_end(_) -> ok.\n"
    "-module(t). -compile([export_all, nowarn_export_all]).\n"
    %% whole: ships its value or what it raises
    "whole(X) -> {whole, X}.\n"
    "boom(Class) -> erlang:raise(Class, boom, []).\n"
    "holds() -> t:stays().\n"
    %% none
    "leaf(X) -> {leaf, X}.\n"
    "body(X) -> {body, t:leaf(X)}.\n"
    "tail(X) -> t:leaf(X).\n"
    "count(0) -> [];\n"
    "count(N) -> [N | t:count(N - 1)].\n"
    "fails(X) -> t:leaf(X), t:boom(error).\n"
    "over(X) -> {over, t:whole(X)}.\n"
    "deep(X) -> {deep, t:raises(X)}.\n"
    "raises(X) -> throw({raises, X}).\n"
    "worker(Parent, X) -> Parent ! {worker, X}, X.\n"
    "stays() -> receive stop -> ok end.\n"
    %% no tiers
    "run(Label, Fun) -> seq_trace:set_token(label, Label), kprof_mark:request_begin(run), R = "
    "t:Fun(), kprof_mark:request_end(ok),\n"
    "                   seq_trace:set_token([]), R.\n"
    "caught() -> X = (catch t:fails(1)), t:leaf(2), X.\n"
    "unwound() -> X = (catch t:deep(5)), t:leaf(6), X.\n"
    "joins() -> A = t:body(1), B = t:tail(2), C = t:count(3), D = caught(), E = t:over(4), F = "
    "unwound(), {A, B, C, D, E, F}.\n"
    "booms() -> [catch t:boom(Class) || Class <- [error, exit, throw]].\n"
    "wait() -> receive {worker, X} -> X end.\n"
    "spawns() -> Self = self(),\n"
    "            spawn(t, worker, [Self, 1]), wait(),\n"
    "            spawn_link(fun() -> t:body(2), t:worker(Self, 2) end), wait(),\n"
    "            spawn_monitor(fun() -> t:worker(Self, 3) end), wait(), receive {'DOWN', _, _, _, "
    "_} -> ok end,\n"
    "            catch spawn_opt(t, worker, [Self, 4], [no_option]).\n"
    "crashes() -> t:over(5), t:boom(exit).\n"
    "killed() -> t:holds().\n"
    "collects() -> L = t:count(2), erlang:garbage_collect(self(), [{type, minor}]), "
    "erlang:garbage_collect(), timer:sleep(2), L.\n".

main([Out]) ->
    ok = logger:set_primary_config(level, none),
    lists:foreach(fun load/1, modules()),
    Tracer = (dbg:trace_port(file, Out))(),
    true = is_port(Tracer),
    lists:foreach(
        fun({MFA, Spec}) -> 1 = erlang:trace_pattern(MFA, [Spec], [local]) end, patterns()
    ),
    _ = erlang:trace(new, true, [call, arity, return_to, monotonic_timestamp, {tracer, Tracer}]),
    Runs = [joins, booms, spawns, crashes, killed, collects],
    lists:foreach(fun run/1, lists:zip(lists:seq(1, length(Runs)), Runs)),
    _ = erlang:trace(all, false, [all]),
    Ref = erlang:trace_delivered(all),
    receive
        {trace_delivered, all, Ref} -> ok
    end,
    % what it buffers is written
    _ = erlang:port_control(Tracer, $f, ""),
    true = port_close(Tracer).

run({Label, Fun}) ->
    {Pid, Ref} = spawn_monitor(t, run, [Label, Fun]),
    _ =
        Fun =:= killed andalso
            begin
                timer:sleep(50),
                exit(Pid, kill)
            end,
    receive
        {'DOWN', Ref, process, Pid, _} -> timer:sleep(50)
    end.

patterns() ->
    Token = [{is_seq_trace}],
    Armed = {trace, [], [garbage_collection, running]},
    Whole = {'_', Token, [{message, {{{get_seq_token}, undefined}}}, {exception_trace}, Armed]},
    None = {'_', Token, [{message, {{{get_seq_token}, {caller}, undefined, none}}}, Armed]},
    [
        {
            {kprof_mark, request_begin, 1},
            {['$1'], Token, [
                {message, {{{get_seq_token}, '$1'}}},
                {trace, [], [exiting, garbage_collection, running]}
            ]}
        },
        {
            {kprof_mark, request_end, 1},
            {['$1'], Token, [
                {message, {{{get_seq_token}, '$1'}}}, {trace, [garbage_collection, running], []}
            ]}
        },
        {{t, whole, 1}, Whole},
        {{t, boom, 1}, Whole},
        {{t, holds, 0}, Whole},
        {
            {t, leaf, 1},
            {['$1'], Token, [{message, {{{get_seq_token}, {caller}, {{leaf, '$1'}}, none}}}, Armed]}
        },
        {
            {t, over, 1},
            {'_', Token, [{message, {{{get_seq_token}, {caller}, ask, '$_', none}}}, Armed]}
        }
        | [
            {{t, F, A}, None}
         || {F, A} <- [
                {body, 1},
                {tail, 1},
                {count, 1},
                {fails, 1},
                {deep, 1},
                {raises, 1},
                {worker, 2},
                {stays, 0}
            ]
        ]
    ] ++
        [
            {{erlang, F, A}, {'_', Token, [{message, {{{get_seq_token}}}}, {return_trace}]}}
         || {F, A} <- [{spawn, 3}, {spawn_link, 3}, {spawn_opt, 4}]
        ].

modules() ->
    {ok, Tokens, _} = erl_scan:string(source()),
    Forms = forms(Tokens, []),
    [Mark | _] = [
        N
     || {N, {attribute, _, module, t}} <- lists:zip(lists:seq(0, length(Forms) - 1), Forms)
    ],
    tuple_to_list(lists:split(Mark, Forms)).

forms([], _) ->
    [];
forms([{dot, _} = Dot | Rest], Acc) ->
    {ok, Form} = erl_parse:parse_form(lists:reverse([Dot | Acc])),
    [Form | forms(Rest, [])];
forms([T | Rest], Acc) ->
    forms(Rest, [T | Acc]).

load(Forms) ->
    {ok, Module, Beam} = compile:forms(Forms),
    {module, Module} = code:load_binary(Module, "joins", Beam).
