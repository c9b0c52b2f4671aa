%% SPDX-License-Identifier: Apache-2.0
%% The load generator: runs clients in parallel until each has made its requests or the time is
%% over, and adds up what they measured.
-module(shop_load).

-export([run/1, table/1]).

-type options() :: #{
    port := inet:port_number(),
    host => inet:hostname(),
    clients => pos_integer(),
    requests => pos_integer(),
    seconds => number(),
    think => non_neg_integer(),
    seed => integer(),
    mix => [{shop_truth:route(), non_neg_integer()}]
}.

-define(DEFAULTS, #{
    host => "127.0.0.1",
    clients => 8,
    seconds => 10,
    think => 0,
    seed => 1,
    mix => shop_client:types()
}).
-define(NO_LIMIT, 1000000000).

%% requests is the number of all clients together. A run with requests and no seconds still ends:
%% after an hour.
-spec run(options()) -> map().
run(Given) ->
    Limit =
        case Given of
            #{requests := _} -> #{seconds => 3600};
            #{} -> #{requests => ?NO_LIMIT}
        end,
    #{clients := Clients} = Options = maps:merge(maps:merge(?DEFAULTS, Limit), Given),
    Start = erlang:monotonic_time(),
    Workers = [
        spawn_monitor(fun() -> exit({done, shop_client:run(plan(I, Start, Options))}) end)
     || I <- lists:seq(1, Clients)
    ],
    Results = [
        receive
            {'DOWN', Ref, process, Pid, Reason} -> result(Reason)
        end
     || {Pid, Ref} <- Workers
    ],
    Elapsed =
        erlang:convert_time_unit(erlang:monotonic_time() - Start, native, microsecond) / 1.0e6,
    summary(Clients, Elapsed, Results).

plan(I, Start, #{clients := Clients, requests := Requests, seconds := Seconds} = Options) ->
    Share = Requests div Clients + min(1, max(0, Requests rem Clients - I + 1)),
    Deadline = Start + erlang:convert_time_unit(round(Seconds * 1000), millisecond, native),
    #{
        host => maps:get(host, Options),
        port => maps:get(port, Options),
        mix => maps:get(mix, Options),
        think_ms => maps:get(think, Options),
        seed => {maps:get(seed, Options), I, 0},
        requests => Share,
        deadline => Deadline
    }.

result({done, Result}) -> Result;
result(Crash) -> error({client, Crash}).

summary(Clients, Elapsed, Results) ->
    Add = fun(#{types := Types}, Sum) -> merge(Types, Sum) end,
    Types = maps:map(
        fun(_, Stats) -> shop_stats:summary(Stats) end, lists:foldl(Add, #{}, Results)
    ),
    Total = fun(Key) -> lists:sum([maps:get(Key, T) || T <- maps:values(Types)]) end,
    Requests = Total(count),
    #{
        clients => Clients,
        seconds => Elapsed,
        requests => Requests,
        requests_per_s => Requests / Elapsed,
        errors => Total(errors),
        not_found => Total(not_found),
        connection_errors => lists:sum([N || #{connection_errors := N} <- Results]),
        clients_gave_up => length([gave_up || #{gave_up := true} <- Results]),
        types => Types
    }.

merge(Types, Sum) ->
    maps:fold(
        fun(Type, Stats, Acc) ->
            maps:update_with(Type, fun(S) -> shop_stats:merge(S, Stats) end, Stats, Acc)
        end,
        Sum,
        Types
    ).

-spec table(map()) -> iolist().
table(#{types := Types} = Summary) ->
    Head = io_lib:format(
        "~-8s ~9s ~8s ~9s ~10s ~10s ~10s ~10s~n",
        ["type", "requests", "errors", "not found", "mean us", "p50 us", "p99 us", "max us"]
    ),
    Rows = [
        row(Type, maps:get(Type, Types))
     || {Type, _} <- shop_client:types(), is_map_key(Type, Types)
    ],
    Foot = io_lib:format(
        "~b requests in ~.2f s: ~.1f requests/s, ~b clients, ~b errors, "
        "~b connection errors, ~b clients gave up~n",
        [
            maps:get(Key, Summary)
         || Key <- [
                requests,
                seconds,
                requests_per_s,
                clients,
                errors,
                connection_errors,
                clients_gave_up
            ]
        ]
    ),
    [Head, Rows, Foot].

row(Type, Row) ->
    Counts = [maps:get(Key, Row) || Key <- [count, errors, not_found]],
    Times = [maps:get(Key, Row) || Key <- [mean_us, p50_us, p99_us, max_us]],
    io_lib:format("~-8s ~9b ~8b ~9b ~10.1f ~10.1f ~10.1f ~10.1f~n", [Type | Counts ++ Times]).
