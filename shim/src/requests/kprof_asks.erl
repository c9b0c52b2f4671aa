%% SPDX-License-Identifier: Apache-2.0
%% @doc The collector's questions to the identity function: some are answered at a time, each by a
%% process of its own ({@link kprof_identify}), the others wait, a bounded number and size of them.
-module(kprof_asks).

-export([new/1, forget/1, ask/2, answered/3]).

-export_type([asks/0, question/0, answer/0]).

-define(MAX_RUNNING, 16).
% as many as the collector has open
-define(MAX_WAITING, 1000).
% of their arguments
-define(MAX_BYTES, 1048576).

-type question() :: {Id :: integer(), M :: binary(), F :: binary(), Args :: binary()}.
-type answer() :: {Id :: integer(), Identity :: binary() | nil}.
-record(asks, {
    f :: kprof:identity_fun() | undefined,
    running = #{} :: #{reference() => integer()},
    waiting = queue:new() :: queue:queue(question()),
    count = 0 :: non_neg_integer(),
    bytes = 0 :: non_neg_integer()
}).
-opaque asks() :: #asks{}.

%% @doc No question yet to this function, or where there is none.
-spec new(kprof:identity_fun() | undefined) -> asks().
new(Fun) ->
    #asks{f = Fun}.

%% @doc Forgets all questions: what still answers one is nobody's.
-spec forget(asks()) -> asks().
forget(#asks{f = Fun}) ->
    new(Fun).

%% @doc One more question, with its answer where there is nobody to ask. Who asks remembers the
%% answer: when there are too many questions, none is better than a wrong one.
-spec ask(question(), asks()) -> {answer() | none, asks()}.
ask({Id, _, _, _}, #asks{f = undefined} = Asks) ->
    {{Id, nil}, Asks};
ask({_, _, _, Args} = Question, #asks{waiting = Waiting, count = Count, bytes = Bytes} = Asks) when
    Count < ?MAX_WAITING, Bytes + byte_size(Args) =< ?MAX_BYTES
->
    {none,
        next(Asks#asks{
            waiting = queue:in(Question, Waiting),
            count = Count + 1,
            bytes = Bytes + byte_size(Args)
        })};
ask(_, Asks) ->
    {none, Asks}.

%% @doc What a `DOWN' message answers; `none' when it is of no question.
-spec answered(reference(), Why :: term(), asks()) -> {answer() | none, asks()}.
answered(Ref, Why, #asks{running = Running} = Asks) ->
    case maps:take(Ref, Running) of
        {Id, Rest} -> {{Id, kprof_identify:result(Why)}, next(Asks#asks{running = Rest})};
        error -> {none, Asks}
    end.

next(#asks{f = Fun, running = Running, waiting = Waiting, count = Count, bytes = Bytes} = Asks) when
    Count > 0, map_size(Running) < ?MAX_RUNNING
->
    {{value, {Id, M, F, Args}}, Rest} = queue:out(Waiting),
    {_, Ref} = kprof_identify:start(Fun, {M, F, Args}),
    next(Asks#asks{
        running = Running#{Ref => Id},
        waiting = Rest,
        count = Count - 1,
        bytes = Bytes - byte_size(Args)
    });
next(Asks) ->
    Asks.
