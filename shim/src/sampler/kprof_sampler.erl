%% SPDX-License-Identifier: Apache-2.0
%% @doc A process that looks at the stacks of others, so many times a second each, and hands what it
%% saw to its owner in batches. This is the owner's side: {@link kprof_sampler_loop} is the process,
%% and {@link kprof_stacks} has its runs.
-module(kprof_sampler).

-export([start_link/1, go/1, stop/1, anew/1, kill/1, acknowledge/1]).
-export([pid/1, processes/1, no_totals/0]).

-export_type([sampler/0, told/0, totals/0]).

-define(READY_MS, 5000).

-opaque sampler() :: {pid(), [pid()]}.
-type totals() :: #{
    samples := non_neg_integer(),
    unchanged := non_neg_integer(),
    unanswered := non_neg_integer(),
    held_ms := non_neg_integer(),
    late_ms := non_neg_integer(),
    cost_us := non_neg_integer(),
    processes := non_neg_integer()
}.
-type told() ::
    {kprof_sampler, pid(),
        {taken, At :: integer(), binary(), totals()}
        | {less, Share :: float()}
        | {over, At :: integer(), done | stopped | no_process, unicode:chardata(), totals()}}.
%% `taken' is to be followed by {@link acknowledge/1}. `less': a run that stands for ever looks less
%% often for a while, that part of what is wanted, so as to keep to its bytes ({@link
%% kprof_sample_volume}).

%% @doc Starts one, which waits for {@link go/1}. `At' is when its times count from, `Text' are
%% notes for people. The caller is linked to it, and must trap exits.
-spec start_link(kprof_stacks:wanted()) ->
    {ok, sampler(), At :: integer(), Text :: unicode:chardata()}
    | {error, no_process | error, unicode:chardata()}.
start_link(Wanted) ->
    case kprof_sample_choice:check(Wanted) of
        {ok, Text} -> start(Wanted, Text);
        {error, Why} -> {error, no_process, Why}
    end.

start(Wanted, Text) ->
    Owner = self(),
    Pid = spawn_opt(
        fun() ->
            _ = seq_trace:set_token([]),
            kprof_sampler_loop:init(Owner, Wanted)
        end,
        [link, {priority, high}, {fullsweep_after, 1000}]
    ),
    receive
        {kprof_sampler, Pid, {ready, At, Processes}} -> {ok, {Pid, [Pid | Processes]}, At, Text};
        {'EXIT', Pid, Why} -> {error, error, io_lib:format("no sampler: ~0tP", [Why, 20])}
    after ?READY_MS ->
        ok = kill({Pid, []}),
        {error, error, "the node is too busy for a sampler to start"}
    end.

%% @doc Has it begin.
-spec go(sampler()) -> ok.
go({Pid, _}) ->
    Pid ! {kprof_sampler, go},
    ok.

%% @doc Has it stop. What it has is told before `over'.
-spec stop(sampler()) -> ok.
stop({Pid, _}) ->
    Pid ! {kprof_sampler, stop},
    ok.

%% @doc Has it tell anew what it tells once, from now on.
-spec anew(sampler()) -> ok.
anew({Pid, _}) ->
    Pid ! {kprof_sampler, anew},
    ok.

%% @doc The batch is on its way.
-spec acknowledge(sampler()) -> ok.
acknowledge({Pid, _}) ->
    Pid ! {kprof_sampler, acknowledged},
    ok.

%% @doc Ends it at once, and returns when all is as it was before. The caller started it.
-spec kill(sampler()) -> ok.
kill({Pid, Processes}) ->
    true = unlink(Pid),
    Refs = [erlang:monitor(process, P) || P <- [Pid | Processes]],
    true = exit(Pid, kill),
    lists:foreach(
        fun(Ref) ->
            receive
                {'DOWN', Ref, process, _, _} -> ok
            after ?READY_MS -> erlang:demonitor(Ref, [flush])
            end
        end,
        Refs
    ),
    receive
        {'EXIT', Pid, _} -> ok
    after 0 -> ok
    end.

%% @doc The process.
-spec pid(sampler()) -> pid().
pid({Pid, _}) ->
    Pid.

%% @doc All that it consists of.
-spec processes(sampler()) -> [pid()].
processes({_, Processes}) ->
    Processes.

%% @doc Of one that has not begun.
-spec no_totals() -> totals().
no_totals() ->
    maps:from_keys(
        [samples, unchanged, unanswered, held_ms, late_ms, cost_us, processes], 0
    ).
