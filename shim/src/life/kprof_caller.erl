%% SPDX-License-Identifier: Apache-2.0
%% @doc Who waits until the collector has kept a profile: a caller of {@link kprof:flame/1} or of
%% {@link kprof:sample/1}, one of each at a time.
-module(kprof_caller).

-export([call/2, new/0, is_free/1, wait/3, reply/2]).

-export_type([caller/0]).

-type caller() :: none | {gen_statem:from(), Until :: integer()}.

%% @doc Asks {@link kprof_life}, and waits for so many ms.
-spec call(term(), pos_integer()) -> {ok, term()} | {error, term()}.
call(Request, Patience) ->
    try
        gen_statem:call(kprof_life, Request, Patience)
    catch
        exit:{timeout, _} -> {error, no_answer};
        exit:{noproc, _} -> {error, not_started};
        exit:{shutdown, _} -> {error, not_started}
    end.

%% @doc Nobody.
-spec new() -> caller().
new() ->
    none.

%% @doc Whether another one may come. A collector that knows nothing of this never answers.
-spec is_free(caller()) -> boolean().
is_free(none) -> true;
is_free({_, Until}) -> erlang:monotonic_time(millisecond) > Until.

%% @doc Somebody waits until then, in ms.
-spec wait(gen_statem:from(), integer(), caller()) -> {ok, caller()} | taken.
wait(From, Until, Caller) ->
    case is_free(Caller) of
        true -> {ok, {From, Until}};
        false -> taken
    end.

%% @doc Who waits, if anybody does, has the answer.
-spec reply(term(), caller()) -> none.
reply(_, none) ->
    none;
reply(Answer, {From, _}) ->
    gen_statem:reply(From, Answer),
    none.
