%% SPDX-License-Identifier: Apache-2.0
%% @doc The options of {@link kprof:sample/1}, and of the option `sampling' of {@link
%% kprof:start_trace/1}, as fields of the message to the collector.
-module(kprof_sample_options).

-export([check/1, standing/1]).

-export_type([wanted/0]).

% as LIMIT_SAMPLE_SECONDS and LIMIT_SLICE_SECONDS of the collector
-define(MOST_SECONDS, 86400).
-define(MOST_SLICE, 43200).
-define(LEAST_SLICE, 5).
-define(MOST_PIDS, 100).
-define(WHOM, "processes (registered, pids) or an application, not both").

-type wanted() :: #{
    seconds := non_neg_integer(), slice_s := non_neg_integer(), atom() => kprof_msgpack:value()
}.
%% The fields of the message to the collector. slice_s: of a run that stands for ever, in profiles
%% of so many seconds; else 0.

%% @doc Checks those of a run that ends.
-spec check(term()) -> {ok, wanted()} | {error, term()}.
check(Options) ->
    checked(Options, usual()).

%% @doc Checks those of a run that stands for ever.
-spec standing(term()) -> {ok, wanted()} | {error, term()}.
standing(Options) ->
    checked(Options, usual_standing()).

checked(Options, Usual) when is_map(Options) ->
    case kprof_option_map:check(Options, Usual, fun value/2) of
        {ok, #{application := Application, registered := Names, pids := Pids} = Given} when
            Application =:= <<>>; Names =:= [], Pids =:= []
        ->
            {ok,
                (maps:without([pids, budget, slice], Given))#{
                    seconds => maps:get(seconds, Given, 0),
                    slice_s => maps:get(slice, Given, 0),
                    processes => Pids,
                    budget_ppm => maps:get(budget, Given)
                }};
        {ok, #{application := Application}} ->
            {error, {bad_value, application, Application, ?WHOM}};
        Error ->
            Error
    end;
checked(Options, _) ->
    {error, {bad_sample, Options}}.

%% As `kprof sample' has them.
usual() ->
    #{
        seconds => 60,
        hz => 99,
        top => 100,
        by => reductions,
        every_ms => 5000,
        budget => 2,
        registered => [],
        pids => [],
        application => <<>>,
        name => <<>>,
        label => <<>>
    }.

%% A hundred looks a second: each takes some 12 bytes, so a day of them takes 100 MB with their
%% stacks, half of what a node may fill; and an hour has 360,000 of them.
usual_standing() ->
    (maps:remove(seconds, usual()))#{
        hz => 5,
        top => 20,
        every_ms => 10000,
        budget => 0.5,
        label => always,
        slice => 3600
    }.

value(seconds, V) ->
    kprof_option_map:number(seconds, 1, ?MOST_SECONDS, V);
value(slice, V) ->
    kprof_option_map:number(slice, ?LEAST_SLICE, ?MOST_SLICE, V);
value(Key, V) when Key =:= hz; Key =:= top ->
    kprof_option_map:number(Key, 1, 1000, V);
value(by, By) when
    By =:= reductions; By =:= memory; By =:= message_queue_len; By =:= binary
->
    By;
value(by, V) ->
    kprof_option_map:bad(by, V, "reductions, memory, message_queue_len or binary");
value(every_ms, V) ->
    kprof_option_map:number(every_ms, 100, 3600000, V);
value(budget, V) when is_number(V), V >= 0.1, V =< 50 ->
    % as it travels
    round(V * 10000);
value(budget, V) ->
    kprof_option_map:bad(budget, V, "percent of one processor, from 0.1 to 50");
value(registered, V) ->
    kprof_option_map:names(registered, V);
value(pids, V) when length(V) =< ?MOST_PIDS ->
    lists:all(fun(P) -> is_pid(P) andalso node(P) =:= node() end, V) orelse bad_pids(V),
    [#{pid => list_to_binary(pid_to_list(Pid))} || Pid <- V];
value(pids, V) ->
    bad_pids(V);
value(Key, V) ->
    % application, name, label
    kprof_option_map:text(Key, V).

-spec bad_pids(term()) -> no_return().
bad_pids(V) ->
    kprof_option_map:bad(pids, V, "a list of processes of this node, 100 at most").
