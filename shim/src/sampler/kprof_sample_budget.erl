%% SPDX-License-Identifier: Apache-2.0
%% @doc What a sampler may cost: so many µs of processor time in each second, of which choosing
%% processes anew may take a quarter. Time that is not used is kept for a quarter of a second. What
%% was used beyond is owed.
-module(kprof_sample_budget).

-export([new/2, refill/2, spend/3, may/2, affords/2, cost/1]).

-export_type([budget/0]).

-define(KEPT_US, 250000).
-define(SCAN_PART, 4).

-record(b, {
    ppm :: pos_integer(),
    % µs
    at :: integer(),
    left :: float(),
    for_scans :: float(),
    cost = 0.0 :: float(),
    % of a look, as those of late
    look = 3.0 :: float()
}).
-opaque budget() :: #b{}.

%% @doc From `Now' on, in µs.
-spec new(pos_integer(), integer()) -> budget().
new(Ppm, Now) ->
    #b{ppm = Ppm, at = Now, left = most(Ppm), for_scans = most(Ppm) / ?SCAN_PART}.

most(Ppm) ->
    Ppm * ?KEPT_US / 1.0e6.

%% @doc Time has gone on.
-spec refill(integer(), budget()) -> budget().
refill(Now, #b{ppm = Ppm, at = At, left = Left, for_scans = Scans} = B) ->
    More = max(0, Now - At) * Ppm / 1.0e6,
    B#b{
        at = max(At, Now),
        left = min(most(Ppm), Left + More),
        for_scans = min(most(Ppm) / ?SCAN_PART, Scans + More / ?SCAN_PART)
    }.

%% @doc So many µs were used: for looks at so many processes, for a scan, or otherwise.
-spec spend({looks, pos_integer()} | scan | other, float(), budget()) -> budget().
spend(For, Us, #b{left = Left, for_scans = Scans, cost = Cost, look = Look} = B) ->
    Spent = B#b{left = Left - Us, cost = Cost + Us},
    case For of
        {looks, N} -> Spent#b{look = Look + (Us / N - Look) * min(1.0, N / 500)};
        scan -> Spent#b{for_scans = Scans - Us};
        other -> Spent
    end.

%% @doc Whether there is some left.
-spec may(look | scan, budget()) -> boolean().
may(look, #b{left = Left}) -> Left > 0;
may(scan, #b{left = Left, for_scans = Scans}) -> Left > 0 andalso Scans > 0.

%% @doc How many of these looks it affords.
-spec affords(non_neg_integer(), budget()) -> non_neg_integer().
affords(N, #b{left = Left, look = Look}) ->
    max(0, min(N, trunc(Left / max(0.1, Look)))).

%% @doc What was used in all, in µs.
-spec cost(budget()) -> non_neg_integer().
cost(#b{cost = Cost}) ->
    round(Cost).
