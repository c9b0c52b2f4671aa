%% SPDX-License-Identifier: Apache-2.0
%% @doc How many bytes the records of a run that stands for ever may take: 200 MB in any 24 hours.
%%
%% There are 8 MB for each hour, and as much is kept of hours in which little was seen: 24 hours
%% begin with 8 MB at most and add 192. As long as half of that is left all looks are taken; below,
%% as many in proportion as are left. So it does not look at all for a while and then not at all,
%% but finds within an hour or so how often it may look for ever.
-module(kprof_sample_volume).

-export([new/2, refill/2, spend/2, share/1]).

-export_type([volume/0]).

% bytes in an hour, and that are kept
-define(HOUR, 8000000).
-define(HOUR_US, 3600000000).
% of those that are kept
-define(ENOUGH, 0.5).

-opaque volume() :: any | {At :: integer(), Left :: float()}.

%% @doc Of a run that stands for ever, or of one that may take what it wants. `Now' in µs.
-spec new(Stands :: boolean(), integer()) -> volume().
new(true, Now) -> {Now, float(?HOUR)};
new(false, _) -> any.

%% @doc Time has gone on.
-spec refill(integer(), volume()) -> volume().
refill(Now, {At, Left}) when Now > At ->
    {Now, min(float(?HOUR), Left + (Now - At) * ?HOUR / ?HOUR_US)};
refill(_, Volume) ->
    Volume.

%% @doc So many bytes were told.
-spec spend(non_neg_integer(), volume()) -> volume().
spend(_, any) -> any;
spend(Bytes, {At, Left}) -> {At, max(0.0, Left - Bytes)}.

%% @doc The part of its looks that it may take, up to 1.0; never none, as it would not find out that
%% less is to be seen.
-spec share(volume()) -> float().
share(any) -> 1.0;
share({_, Left}) -> max(0.001, min(1.0, Left / (?ENOUGH * ?HOUR))).
