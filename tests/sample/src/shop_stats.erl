%% SPDX-License-Identifier: Apache-2.0
%% Latencies of one request type: exact count, mean and maximum; quantiles from buckets that
%% grow by 2 % each, so that a long run needs no more memory than a short one.
-module(shop_stats).

-export([new/0, add/3, merge/2, summary/1]).
-export_type([stats/0, summary/0]).

-record(stats, {count = 0, errors = 0, not_found = 0, sum = 0, max = 0, buckets = #{}}).

-opaque stats() :: #stats{}.
-type summary() :: #{
    count | errors | not_found => non_neg_integer(),
    mean_us | p50_us | p99_us | max_us => float()
}.

-define(GROWTH, 1.02).

-spec new() -> stats().
new() ->
    #stats{}.

-spec add(stats(), 100..599, non_neg_integer()) -> stats().
add(#stats{count = Count, sum = Sum, max = Max, buckets = Buckets} = S, Status, Ns) ->
    Bucket = trunc(math:log(max(Ns, 1)) / math:log(?GROWTH)),
    by_status(
        S#stats{
            count = Count + 1,
            sum = Sum + Ns,
            max = max(Max, Ns),
            buckets = maps:update_with(Bucket, fun(N) -> N + 1 end, 1, Buckets)
        },
        Status
    ).

by_status(#stats{errors = N} = S, Status) when Status >= 500 -> S#stats{errors = N + 1};
by_status(#stats{not_found = N} = S, 404) -> S#stats{not_found = N + 1};
by_status(S, _Status) -> S.

-spec merge(stats(), stats()) -> stats().
merge(A, B) ->
    Add = fun(Bucket, N, Sum) -> maps:update_with(Bucket, fun(M) -> M + N end, N, Sum) end,
    #stats{
        count = A#stats.count + B#stats.count,
        errors = A#stats.errors + B#stats.errors,
        not_found = A#stats.not_found + B#stats.not_found,
        sum = A#stats.sum + B#stats.sum,
        max = max(A#stats.max, B#stats.max),
        buckets = maps:fold(Add, A#stats.buckets, B#stats.buckets)
    }.

-spec summary(stats()) -> summary().
summary(#stats{count = Count, sum = Sum, max = Max} = S) ->
    #{
        count => Count,
        errors => S#stats.errors,
        not_found => S#stats.not_found,
        mean_us => Sum / max(Count, 1) / 1000,
        max_us => Max / 1000,
        p50_us => quantile(S, 0.50),
        p99_us => quantile(S, 0.99)
    }.

quantile(#stats{count = 0}, _Q) ->
    0.0;
quantile(#stats{count = Count, max = Max, buckets = Buckets}, Q) ->
    Bucket = find(ceil(Q * Count), lists:sort(maps:to_list(Buckets))),
    % the bucket's middle
    min(math:pow(?GROWTH, Bucket + 0.5), Max) / 1000.

find(Rank, [{Bucket, N} | _]) when Rank =< N -> Bucket;
find(Rank, [{_, N} | Rest]) -> find(Rank - N, Rest).
