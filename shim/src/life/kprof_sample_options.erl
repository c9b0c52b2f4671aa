%% SPDX-License-Identifier: Apache-2.0
%% @doc The options of {@link kprof:sample/1}, as fields of the message to the collector.
-module(kprof_sample_options).

-export([check/1]).

-export_type([wanted/0]).

% as LIMIT_SAMPLE_SECONDS of the collector
-define(MOST_SECONDS, 86400).
-define(MOST_PIDS, 100).
-define(WHOM, "processes (registered, pids) or an application, not both").

-type wanted() :: #{seconds := non_neg_integer(), atom() => kprof_msgpack:value()}.
%% The fields of the message to the collector.

%% @doc Checks them.
-spec check(term()) -> {ok, wanted()} | {error, term()}.
check(Options) when is_map(Options) ->
    case kprof_option_map:check(Options, usual(), fun value/2) of
        {ok, #{application := Application, registered := Names, pids := Pids} = Given} when
            Application =:= <<>>; Names =:= [], Pids =:= []
        ->
            {ok, (maps:without([pids, budget], Given))#{
                processes => Pids, budget_ppm => maps:get(budget, Given)
            }};
        {ok, #{application := Application}} ->
            {error, {bad_value, application, Application, ?WHOM}};
        Error ->
            Error
    end;
check(Options) ->
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

value(seconds, V) ->
    kprof_option_map:number(seconds, 1, ?MOST_SECONDS, V);
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
