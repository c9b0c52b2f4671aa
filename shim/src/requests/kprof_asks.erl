%% SPDX-License-Identifier: Apache-2.0
%% @doc The collector's questions to the identity function: some are answered at a time, each by a
%% process of its own ({@link kprof_identify}), the others wait, a bounded number and size of them.
-module(kprof_asks).

-export([new/0, ask/3, answered/4]).

-export_type([asks/0, question/0]).

-define(MAX_RUNNING, 16).
% as many as the collector has open
-define(MAX_WAITING, 1000).
% of their arguments
-define(MAX_BYTES, 1048576).

-type question() :: {Id :: integer(), M :: binary(), F :: binary(), Args :: binary()}.
-record(asks, {
    running = #{} :: #{reference() => integer()},
    waiting = queue:new() :: queue:queue(question()),
    count = 0 :: non_neg_integer(),
    bytes = 0 :: non_neg_integer()
}).
-opaque asks() :: #asks{}.

%% @doc No question.
-spec new() -> asks().
new() ->
    #asks{}.

%% @doc One more question. Who asks remembers the answer: when there are too many questions, none is
%% better than a wrong one.
-spec ask(question(), kprof:identity_fun(), asks()) -> asks().
ask(
    {_, _, _, Args} = Question, Fun, #asks{waiting = Waiting, count = Count, bytes = Bytes} = Asks
) when
    Count < ?MAX_WAITING, Bytes + byte_size(Args) =< ?MAX_BYTES
->
    next(Fun, Asks#asks{
        waiting = queue:in(Question, Waiting), count = Count + 1, bytes = Bytes + byte_size(Args)
    });
ask(_, _, Asks) ->
    Asks.

%% @doc What a `DOWN' message answers; `none' when it is of no question.
-spec answered(reference(), Why :: term(), kprof:identity_fun(), asks()) ->
    {Id :: integer(), binary() | nil, asks()} | none.
answered(Ref, Why, Fun, #asks{running = Running} = Asks) ->
    case maps:take(Ref, Running) of
        {Id, Rest} -> {Id, kprof_identify:result(Why), next(Fun, Asks#asks{running = Rest})};
        error -> none
    end.

next(Fun, #asks{running = Running, waiting = Waiting, count = Count, bytes = Bytes} = Asks) when
    Count > 0, map_size(Running) < ?MAX_RUNNING
->
    {{value, {Id, M, F, Args}}, Rest} = queue:out(Waiting),
    {_, Ref} = kprof_identify:start(Fun, {M, F, Args}),
    next(Fun, Asks#asks{
        running = Running#{Ref => Id},
        waiting = Rest,
        count = Count - 1,
        bytes = Bytes - byte_size(Args)
    });
next(_, Asks) ->
    Asks.
