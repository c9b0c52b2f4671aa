%% SPDX-License-Identifier: Apache-2.0
%% @doc Labels of requests that are over and that processes still work under, as those of a
%% websocket do under the label of the request that asked for it: no match specification runs when
%% an entry returns, and a token travels on with each message. The collector, which knows what is
%% over, tells of such calls ("stale"). From then on whoever calls that tier under that label loses
%% the token there, and one message says so: he is out of the trace until a request gives him a
%% token again. (He may have been lent that label, and work for a request that is open: that one is
%% incomplete.) Nothing else is touched.
%%
%% For that the tier's pattern is set anew, which costs the node some 0.1 ms, and kprof_life up to
%% some 20 where the node has no time. So changes are gathered: one a second at most, and fewer when
%% one takes long. A label is kept for a minute, and a tier has the latest 64: what comes under a
%% forgotten one is told again.
-module(kprof_stale).

-export([new/0, told/4, due/2, changed/3]).

-export_type([stale/0]).

-define(APART_MS, 1000).
% of the time that changes may take: one in so many parts
-define(SHARE, 50).
-define(KEEP_MS, 60000).
-define(LABELS, 64).

-record(stale, {
    % the latest first
    labels = #{} :: #{Tier :: binary() => [{kprof_slots:label(), Told :: integer()}]},
    changed = [] :: [Tier :: binary()],
    % when the next change may be, ms
    next = undefined :: undefined | integer()
}).
-opaque stale() :: #stale{}.

%% @doc None.
-spec new() -> stale().
new() ->
    #stale{}.

%% @doc At `Now', in ms, a call of this tier was told of. Known ones change nothing.
-spec told(integer(), Tier :: binary(), kprof_slots:label(), stale()) -> stale().
told(Now, Tier, Label, #stale{labels = All, changed = Changed} = S) ->
    Labels = maps:get(Tier, All, []),
    case lists:keymember(Label, 1, Labels) of
        true ->
            S;
        false ->
            S#stale{
                labels = All#{Tier => lists:sublist([{Label, Now} | Labels], ?LABELS)},
                changed = lists:usort([Tier | Changed])
            }
    end.

%% @doc All labels of the tiers whose labels are others than at the last change, if it is time for
%% the next.
-spec due(integer(), stale()) -> {#{Tier :: binary() => [kprof_slots:label()]}, stale()}.
due(Now, #stale{next = Next} = S) when is_integer(Next), Now < Next ->
    {#{}, S};
due(Now, #stale{labels = Before, changed = Changed} = S) ->
    Kept = maps:map(
        fun(_, Labels) -> [L || {_, Told} = L <- Labels, Now - Told < ?KEEP_MS] end, Before
    ),
    Due = maps:filter(
        fun(Tier, Labels) ->
            lists:member(Tier, Changed) orelse Labels =/= maps:get(Tier, Before)
        end,
        Kept
    ),
    {maps:map(fun(_, Labels) -> [L || {L, _} <- Labels] end, Due), S#stale{
        labels = maps:filter(fun(_, Labels) -> Labels =/= [] end, Kept), changed = []
    }}.

%% @doc The patterns have been changed, from `Began' to `Ended', in ms.
-spec changed(integer(), integer(), stale()) -> stale().
changed(Began, Ended, S) ->
    S#stale{next = Ended + max(?APART_MS, ?SHARE * (Ended - Began))}.
