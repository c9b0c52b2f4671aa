%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs of stack sampling that this node itself asks its collector for: for a caller of {@link
%% kprof:sample/1}, who waits for the profile, and the one of the option `sampling', which stands
%% for ever. The collector begins them as it does for a tool. ({@link kprof_stacks} is what looks.)
%%
%% The standing one is asked for whenever there is a connection and none stands, again some time
%% after the collector has said that it is over or cannot be.
-module(kprof_sample).

-export([new/1, patience/1, ask/4, stand/3, begun/2, none_more/1, kept/3, lost/1, answer/1]).

-export_type([samples/0, told/0, kept/0]).

% ms, besides the time for which it looks: the node's and the writer's
-define(MORE_MS, 60000).
% ms, in which a collector asks for what this node has asked it for
-define(ANSWER_MS, 30000).
-define(AGAIN_MS, 60000).

-record(samples, {
    caller = kprof_caller:new() :: kprof_caller:caller(),
    standing :: undefined | kprof_sample_options:wanted(),
    % ms, when it is asked for; asked: until when the collector has time for it
    state = due :: due | {asked, integer()} | stands | {again, integer()},
    % why it does not stand, as the log has it
    said = "" :: string()
}).
-opaque samples() :: #samples{}.
-type told() :: #{
    profile := non_neg_integer(),
    slice_s := non_neg_integer(),
    reason := binary(),
    text := binary(),
    atom() => non_neg_integer()
}.
%% What the collector says in the end. profile: 0 is none; slice_s: of the standing one, else 0; and
%% the totals of {@link kprof_sampler}.
-type kept() :: #{profile := pos_integer(), atom() => non_neg_integer()}.

%% @doc Nobody waits, and none stands yet. undefined: none shall.
-spec new(undefined | kprof_sample_options:wanted()) -> samples().
new(Standing) ->
    #samples{standing = Standing}.

%% --- of a caller ---

%% @doc How long the caller waits at most, in ms.
-spec patience(kprof_sample_options:wanted()) -> pos_integer().
patience(#{seconds := Seconds}) ->
    1000 * Seconds + ?MORE_MS.

%% @doc Asks the collector. Who waits for the profile gets a reply.
-spec ask(
    gen_statem:from(), kprof_sample_options:wanted(), kprof_control:control(), samples()
) ->
    {ok, samples()} | {error, sample_runs}.
ask(From, Wanted, Control, #samples{caller = Before} = S) ->
    Until = erlang:monotonic_time(millisecond) + patience(Wanted),
    case kprof_caller:wait(From, Until, Before) of
        {ok, Caller} ->
            ok = kprof_control:told(kprof_protocol:stacks(Wanted), Control),
            {ok, S#samples{caller = Caller}};
        taken ->
            {error, sample_runs}
    end.

%% --- the standing one ---

%% @doc To be called from time to time while there is a connection: asks for it, where it is due.
%% `Now' in ms.
-spec stand(integer(), kprof_control:control(), samples()) -> samples().
stand(_, _, #samples{standing = undefined} = S) ->
    S;
stand(Now, Control, #samples{standing = Wanted, state = due} = S) ->
    ok = kprof_control:told(kprof_protocol:stacks(Wanted), Control),
    S#samples{state = {asked, Now + ?ANSWER_MS}};
stand(Now, Control, #samples{state = {again, At}} = S) when Now >= At ->
    stand(Now, Control, S#samples{state = due});
stand(Now, _, #samples{state = {asked, Until}} = S) when Now >= Until ->
    again(Now, "the collector did not answer: it may be of an older release", S);
stand(_, _, S) ->
    S.

%% @doc The collector has a run begin: it may be this one.
-spec begun(kprof_stacks:wanted(), samples()) -> samples().
begun(#{slice_s := Slice}, #samples{standing = Wanted} = S) when Slice > 0, Wanted =/= undefined ->
    S#samples{state = stands};
begun(_, S) ->
    S.

%% @doc It is not asked for any more.
-spec none_more(samples()) -> samples().
none_more(S) ->
    S#samples{standing = undefined}.

%% The log says it once, until it is another reason.
again(Now, Why, #samples{said = Said} = S) ->
    Why =:= Said orelse
        logger:warning("kprof: stacks are not sampled for ever: ~ts; trying again", [Why]),
    S#samples{state = {again, Now + ?AGAIN_MS}, said = Why}.

%% --- the end ---

%% @doc The collector has told the end. `Now' in ms.
-spec kept(integer(), told(), samples()) -> samples().
kept(Now, #{slice_s := Slice} = Told, S) when Slice > 0 ->
    {error, {no_profile, Why}} = answer(Told#{profile := 0}),
    again(Now, Why, S);
kept(_, Told, #samples{caller = Caller} = S) ->
    S#samples{caller = kprof_caller:reply(answer(Told), Caller)}.

%% @doc The collector is gone.
-spec lost(samples()) -> samples().
lost(#samples{caller = Caller} = S) ->
    Gone = {error, {no_profile, "the connection to the collector ended"}},
    S#samples{caller = kprof_caller:reply(Gone, Caller), state = due}.

%% @doc What it comes to: the profile's number with the totals of the run, or why there is none.
-spec answer(told()) -> {ok, kept()} | {error, {no_profile, string()}}.
answer(#{profile := Profile} = Told) when Profile > 0 ->
    {ok, maps:without([reason, text, slice_s], Told)};
answer(#{text := <<>>}) ->
    {error, {no_profile, "there was nothing to look at"}};
answer(#{text := Text}) ->
    {error, {no_profile, unicode:characters_to_list(Text)}}.
