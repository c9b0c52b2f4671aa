%% SPDX-License-Identifier: Apache-2.0
-module(kprof_full_tests).
-include("patient.hrl").

-export([init/1, waits/0, huge/1]).

%% A process without a name that OTP began.
init(Parent) ->
    ok = proc_lib:init_ack(Parent, {ok, self()}),
    waits().

waits() ->
    receive
        stop -> ok
    end.

text(Pid) -> list_to_binary(pid_to_list(Pid)).

%% Where the machine takes its processor away the shim gives up.
named(Texts) -> named(Texts, 20).

named([_ | _] = Texts, Tries) when Tries > 1 ->
    case named(Texts, 1) of
        [] -> named(Texts, Tries - 1);
        Names -> Names
    end;
named(Texts, _) ->
    [{Text, unicode:characters_to_binary(Name)} || {Text, Name} <- kprof_full:named(Texts)].

%% Registered names; else what a process began with, if that tells anything.
named_test_() -> {timeout, 300, fun named_case/0}.
named_case() ->
    {ok, Began} = proc_lib:start_link(?MODULE, init, [self()]),
    Spawned = spawn_link(?MODULE, waits, []),
    Fun = spawn_link(fun waits/0),
    Gone = spawn(fun() -> ok end),
    Kernel = text(whereis(kernel_sup)),
    ok = wait_until_gone(Gone),
    ?assertEqual(
        [
            {Kernel, <<"kernel_sup">>},
            {text(Began), <<"kprof_full_tests:init/1">>},
            {text(Spawned), <<"kprof_full_tests:waits/0">>}
        ],
        named([
            Kernel,
            text(Began),
            text(Spawned),
            text(Fun),
            text(Gone),
            <<"<9999.1.0>">>,
            <<"no pid">>,
            <<>>
        ])
    ),
    ?assertEqual([], named([])),
    ?assertEqual(100, length(named(lists:duplicate(300, Kernel)))),
    [Pid ! stop || Pid <- [Began, Spawned, Fun]].

%% One whose dictionary is huge is asked in vain where all of it would be copied for that.
huge_dictionary_test_() -> {timeout, 300, fun huge_dictionary_case/0}.
huge_dictionary_case() ->
    {ok, Huge} = proc_lib:start_link(?MODULE, huge, [self()]),
    Name =
        case named([text(Huge)]) of
            [] -> none;
            [{_, <<"kprof_full_tests:huge/1">>}] -> told
        end,
    ?assert(Name =:= none orelse list_to_integer(erlang:system_info(otp_release)) > 25),
    Huge ! stop.

huge(Parent) ->
    put(huge, lists:seq(1, 2000000)),
    init(Parent).

%% It ends by itself when it has made too much.
bounds_test_() -> {timeout, 300, fun bounds_case/0}.
bounds_case() ->
    ?assertEqual(no, kprof_full:too_much({5000000, 500000000})),
    ?assertEqual("it had made 5 million messages", kprof_full:too_much({5000001, 1})),
    ?assertEqual("it had made 500 MB of messages", kprof_full:too_much({1, 500000001})).

wait_until_gone(Pid) ->
    Ref = monitor(process, Pid),
    receive
        {'DOWN', Ref, process, Pid, _} -> ok
    end.
