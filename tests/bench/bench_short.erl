%% SPDX-License-Identifier: Apache-2.0
%% Short requests, of fourteen calls each, for the benchmark of the native tracer. What a request
%% works is told in units, which bench_native fits to the time that it is to take.
-module(bench_short).

-export([request/1]).
-export([front/2, pool/2, storage/3, index/3, render/2, row/2]).
-export([tiers/0, calls/0]).

%% A request, marked as an application marks its own.
-spec request(pos_integer()) -> ok.
request(Units) ->
    kprof:set_token(short),
    {ok, _} = ?MODULE:front(#{id => Units, path => [items, Units]}, Units div calls()),
    kprof:clear_token().

-spec tiers() -> [{atom(), mfa()}].
tiers() ->
    [{F, {?MODULE, F, A}} || {F, A} <- [{front, 2}, {pool, 2}, {storage, 3}, {index, 3}]] ++
        [{F, {?MODULE, F, 2}} || F <- [render, row]].

%% Of these, in a request.
-spec calls() -> pos_integer().
calls() -> 14.

-spec front(map(), non_neg_integer()) -> {ok, [tuple()]}.
front(Request, Units) ->
    Seed = bench_native:work(Units, 1),
    Found = ?MODULE:pool(Request, Units),
    {ok, ?MODULE:render([Seed | Found], Units)}.

-spec pool(map(), non_neg_integer()) -> [integer()].
pool(#{id := Id}, Units) ->
    Seed = bench_native:work(Units, Id),
    [?MODULE:storage(Seed, N, Units) || N <- [1, 2, 3, 4]].

-spec storage(integer(), integer(), non_neg_integer()) -> integer().
storage(Seed, N, Units) ->
    Place = ?MODULE:index(Seed, N, Units),
    bench_native:work(Units, Place).

-spec index(integer(), integer(), non_neg_integer()) -> integer().
index(Seed, N, Units) ->
    bench_native:work(Units, Seed + N).

-spec render([integer()], non_neg_integer()) -> [tuple()].
render([_, A, B, C | _] = Values, Units) ->
    Seed = bench_native:work(Units, length(Values)),
    [?MODULE:row(Seed + V, Units) || V <- [A, B, C]].

-spec row(integer(), non_neg_integer()) -> {row, integer()}.
row(Value, Units) ->
    {row, bench_native:work(Units, Value)}.
