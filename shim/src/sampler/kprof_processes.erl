%% SPDX-License-Identifier: Apache-2.0
%% @doc All processes of the node, some at a time: a list of 100,000 takes a while to go through.
-module(kprof_processes).

-export([all/0, take/2]).

-export_type([processes/0]).

-opaque processes() :: [pid()] | {iterator, term()}.

%% @doc Those that there are now; from OTP 28 on also some of those that come meanwhile.
-spec all() -> processes().
%% Through a variable: a compiler of an older release does not know them.
all() ->
    Vm = erlang,
    case list_to_integer(Vm:system_info(otp_release)) >= 28 of
        true -> {iterator, Vm:processes_iterator()};
        false -> Vm:processes()
    end.

%% @doc The next so many, in no order; none: that were all.
-spec take(non_neg_integer(), processes()) -> {[pid()], processes()}.
take(N, Processes) ->
    take(N, Processes, []).

take(0, Left, Pids) ->
    {Pids, Left};
take(_, [], Pids) ->
    {Pids, []};
take(N, [Pid | Left], Pids) ->
    take(N - 1, Left, [Pid | Pids]);
take(_, {iterator, none}, Pids) ->
    {Pids, {iterator, none}};
take(N, {iterator, Iterator}, Pids) ->
    Vm = erlang,
    case Vm:processes_next(Iterator) of
        {Pid, More} -> take(N - 1, {iterator, More}, [Pid | Pids]);
        none -> {Pids, {iterator, none}}
    end.
