%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs of stack sampling that this node itself asks its collector for: for a caller of {@link
%% kprof:sample/1}, who waits for the profile. The collector begins such a run as it does for a
%% tool, and answers when the profile is kept. ({@link kprof_stacks} is what looks.)
-module(kprof_sample).

-export([new/0, patience/1, ask/4, kept/2, lost/1, answer/1]).

-export_type([samples/0, told/0, kept/0]).

% ms, besides the time for which it looks: the node's and the writer's
-define(MORE_MS, 60000).

-opaque samples() :: kprof_caller:caller().
-type told() :: #{
    profile := non_neg_integer(), reason := binary(), text := binary(), atom() => non_neg_integer()
}.
%% What the collector says in the end. profile: 0 is none; and the totals of {@link kprof_sampler}.
-type kept() :: #{profile := pos_integer(), atom() => non_neg_integer()}.

%% @doc Nobody waits.
-spec new() -> samples().
new() ->
    kprof_caller:new().

%% @doc How long the caller waits at most, in ms.
-spec patience(kprof_sample_options:wanted()) -> pos_integer().
patience(#{seconds := Seconds}) ->
    1000 * Seconds + ?MORE_MS.

%% @doc Asks the collector. Who waits for the profile gets a reply.
-spec ask(
    gen_statem:from(), kprof_sample_options:wanted(), kprof_control:control(), samples()
) ->
    {ok, samples()} | {error, sample_runs}.
ask(From, Wanted, Control, Before) ->
    Until = erlang:monotonic_time(millisecond) + patience(Wanted),
    case kprof_caller:wait(From, Until, Before) of
        {ok, Samples} ->
            ok = kprof_control:told(kprof_protocol:stacks(Wanted), Control),
            {ok, Samples};
        taken ->
            {error, sample_runs}
    end.

%% @doc The collector has told the end.
-spec kept(told(), samples()) -> samples().
kept(Told, Samples) ->
    kprof_caller:reply(answer(Told), Samples).

%% @doc The collector is gone.
-spec lost(samples()) -> samples().
lost(Samples) ->
    kprof_caller:reply(
        {error, {no_profile, "the connection to the collector ended"}}, Samples
    ).

%% @doc What it comes to: the profile's number with the totals of the run, or why there is none.
-spec answer(told()) -> {ok, kept()} | {error, {no_profile, string()}}.
answer(#{profile := Profile} = Told) when Profile > 0 ->
    {ok, maps:without([reason, text], Told)};
answer(#{text := <<>>}) ->
    {error, {no_profile, "there was nothing to look at"}};
answer(#{text := Text}) ->
    {error, {no_profile, unicode:characters_to_list(Text)}}.
