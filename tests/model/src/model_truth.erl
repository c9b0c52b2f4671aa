%% What the collector's database must say, worked out from what happened: by the rules of ../shared/DESIGN.md and request_tree.h, and by other
%% algorithms than the collector's.
-module(model_truth).

-export([of_capture/3]).

-include("model.hrl").

-define(AHEAD, 64). % so many spans the collector looks ahead for what a sender does next

%% @doc For each identity what is known of its requests, and the ledger.
%%   rows: identity => {sure | vague, #{{tier, Name} | {path, Text} => Numbers}}
%%   Numbers: {requests, calls, errors, async_calls, total, self, async, wait, gc, off, min, max}, times in ns
%%   ledger: column => {AtLeast, AtMost}
-spec of_capture(#{integer() => #span{}}, #{integer() => #req{}}, map()) -> #{rows := map(), ledger := map(), total := map() | vague}.
of_capture(Spans, Requests, Stream) ->
    ByRequest = maps:groups_from_list(fun(#span{req = Id}) -> Id end, maps:values(Spans)),
    Judged = [{R, judge(R, maps:get(Id, ByRequest, []), Stream)} || {Id, R} <- lists:keysort(1, maps:to_list(Requests))],
    Named = maps:groups_from_list(fun({R, {_, Seen}}) -> identity(R, Seen) end, Judged),
    Rows = maps:filtermap(fun(_, Same) -> rows(Same) end, Named),
    #{rows => Rows, total => total(maps:values(Rows)), ledger => ledger(Judged, Spans, Stream)}.

identity(#req{named = mark, identity = Identity}, _) -> atom_to_binary(Identity);
identity(_, []) -> <<"undefined">>;
identity(#req{identity = Identity}, _) -> atom_to_binary(Identity).

%% What becomes of a request: {complete | incomplete | expired | absent | unknown | unsure | unclear, SpansSeen}. unknown: not complete; unsure:
%% complete or not; unclear: nor is known which of its messages were in time.
judge(#req{id = Id} = R, Spans, #{opened := Opened, hit := Hit, late := Late} = Stream) ->
    Seen = [S#span{stop = case Late of #{Stop := true} -> open; _ -> Stop end} || #span{start = Start, stop = Stop} = S <- Spans, maps:get(Start, Late, false) =/= true],
    Vague = lists:any(fun(#span{start = Start, stop = Stop}) -> maps:get(Start, Late, false) =:= vague orelse maps:get(Stop, Late, false) =:= vague end, Spans)
        orelse (is_integer(R#req.stop) andalso R#req.stop > R#req.start + ?TIMEOUT - ?S),
    Fate = case Hit of
               _ when not is_map_key(Id, Opened) -> absent;
               _ when R#req.again, Hit =/= #{} -> unclear; % its label was another's, who may have lost his begin

               #{Id := true} -> unknown;
               #{Id := vague} when Vague -> unclear;
               #{Id := vague} -> perhaps(R, Seen, Stream);
               _ when Vague -> unclear;
               _ -> fate(R, Seen, Stream)
           end,
    {Fate, Seen}.

%% Complete, as it looks, or not.
perhaps(R, Seen, Stream) ->
    case fate(R, Seen, Stream) of
        complete -> unsure;
        Vague when Vague =:= unsure; Vague =:= unclear -> Vague;
        _ -> unknown
    end.

fate(#req{doubted = true}, _, _) -> unclear;
fate(#req{stop = none, blurred = Blurred}, _, _) when Blurred =/= never -> unknown; % its begin process' death may look like the end
fate(#req{stop = none, id = Id}, _, #{expired := Expired}) ->
    case maps:get(Id, Expired) of
        true -> expired;
        false -> incomplete;
        vague -> unknown
    end;
fate(#req{lost = true, blurred = never}, _, _) -> incomplete;
fate(#req{blurred = Blurred, stop = Stop}, _, _) when Blurred < Stop + ?GRACE -> incomplete;
fate(#req{blurred = Blurred, stop = Stop}, _, _) when Blurred < Stop + ?GRACE + 100 * ?MS -> unsure;
fate(#req{stop = Stop, stop_pid = Pid}, Seen, _) ->
    %% what the process that ended the request has open for ever is a return that never came; and a call without a value may have ended in
    %% silence
    case [S || #span{pid = P, tier = T, start = Start, stop = open} = S <- Seen, P =:= Pid andalso Start =< Stop orelse model_plan:returns(T) =:= none] of
        [] -> complete;
        _ -> incomplete
    end.

rows(Same) ->
    Fates = [Fate || {_, {Fate, _}} <- Same],
    case lists:member(unsure, Fates) orelse lists:member(unclear, Fates) of
        true ->
            case Same of
                [{R, {unsure, Seen}}] -> {true, {vague, request_rows(R, Seen)}};
                _ -> {true, {vague, any}}
            end;
        false ->
            case [request_rows(R, Seen) || {R, {complete, Seen}} <- Same] of
                [] -> false;
                Whole -> {true, {sure, lists:foldl(fun merge/2, #{}, Whole)}}
            end
    end.

total(Rows) ->
    case lists:keymember(vague, 1, Rows) of
        true -> vague;
        false -> lists:foldl(fun({sure, Same}, All) -> merge(Same, All) end, #{}, Rows)
    end.

merge(A, B) -> maps:merge_with(fun(_, X, Y) -> add(X, Y) end, A, B).

add(A, B) ->
    [Min1, Max1 | Sums1] = lists:reverse(tuple_to_list(A)),
    [Min2, Max2 | Sums2] = lists:reverse(tuple_to_list(B)),
    list_to_tuple(lists:reverse([max(Min1, Min2), min(Max1, Max2) | lists:zipwith(fun erlang:'+'/2, Sums1, Sums2)])).

ledger(Judged, Spans, #{late := Late, dropped := Dropped, messages := Messages}) ->
    Count = fun(Wanted) -> length([x || {_, {Fate, _}} <- Judged, lists:member(Fate, Wanted)]) end,
    Stale = fun(How) -> length([x || #span{start = Start} <- maps:values(Spans), maps:get(Start, Late, false) =:= How]) end,
    %% what was left in silence takes others with it when a return_to seems to be its own
    Unjoined = case lists:any(fun({R, _}) -> R#req.blurred =/= never end, Judged) of true -> infinity; false -> 0 end,
    All = #{messages => {Messages, Messages}, dropped_messages => {Dropped, Dropped}, decode_errors => {0, 0},
            requests_complete => {Count([complete]), Count([complete, unsure, unclear])}},
    case Dropped of
        0 -> All#{requests_incomplete => {Count([incomplete]), Count([incomplete, unknown, unsure, unclear])},
                  requests_expired => {Count([expired]), Count([expired, unknown, unclear])},
                  orphan_returns => {0, Unjoined}, unwound_frames => {0, Unjoined},
                  stale_calls => {Stale(true), infinity}};
        _ -> All
    end.

%% -- one request ---------------------------------------------------------------------------------------------------------

request_rows(#req{start = Begin, stop = End, error = Error} = R, Seen) ->
    Spans = lists:keysort(#span.start, Seen),
    {Parents, Waits} = parents(R, Spans),
    ById = maps:from_list([{S#span.id, S} || S <- Spans]),
    Children = maps:groups_from_list(fun(#span{id = Id}) -> maps:get(Id, Parents) end, Spans),
    Whole = {1, 1, count(Error), 0, End - Begin, uncovered(Begin, End, Spans), 0, 0, 0, 0, End - Begin, End - Begin},
    lists:foldl(fun(#span{stop = open}, Rows) -> Rows;
                   (S, Rows) ->
                        Numbers = numbers(S, End, Parents, ById, maps:get(S#span.id, Children, []), maps:get(S#span.id, Waits, 0)),
                        first(S#span.tier, merge(#{{tier, atom_to_binary(S#span.tier)} => Numbers,
                                                   {path, path(S#span.id, Parents, ById)} => at_path(S, Parents, ById, Numbers)}, Rows))
                end, #{{tier, <<"_total">>} => Whole}, Spans).

%% A request counts once for each tier that it called.
first(Tier, Rows) ->
    Key = {tier, atom_to_binary(Tier)},
    Rows#{Key := setelement(1, maps:get(Key, Rows), 1)}.

numbers(#span{start = Start, stop = Stop} = S, End, Parents, ById, Children, Wait) ->
    Duration = Stop - Start,
    {Async, Total, Self, Late} = case Stop > End of
                                     true -> {1, 0, 0, Duration};
                                     false -> {0, case recursive(S, Parents, ById) of true -> 0; false -> Duration end, uncovered(Start, Stop, Children), 0}
                                 end,
    {0, 1, count(S#span.error andalso model_plan:returns(S#span.tier) =:= whole), Async, Total, Self, Late, Wait, S#span.gc, S#span.off, Duration, Duration}.

%% At a position, only a call that hangs below one of the same position is a recursion.
at_path(#span{id = Id, tier = Tier, stop = Stop, start = Start}, Parents, ById, {_, _, _, 0, _, _, _, _, _, _, _, _} = Numbers) ->
    case maps:get(Id, Parents) of
        Parent when is_map_key(Parent, ById), (map_get(Parent, ById))#span.tier =:= Tier -> setelement(5, Numbers, 0);
        _ -> setelement(5, Numbers, Stop - Start)
    end;
at_path(_, _, _, Numbers) -> Numbers.

count(true) -> 1;
count(false) -> 0.

%% Whether a call of the same tier goes on above this one.
recursive(#span{id = Id, tier = Tier, start = Start}, Parents, ById) ->
    lists:any(fun(#span{tier = T, stop = Stop}) -> T =:= Tier andalso (Stop =:= open orelse Stop >= Start) end, above(Id, Parents, ById)).

above(Id, Parents, ById) ->
    case maps:get(Id, Parents) of
        none -> [];
        Parent -> [maps:get(Parent, ById) | above(Parent, Parents, ById)]
    end.

%% The tiers from the request down. One that calls itself is one position.
path(Id, Parents, ById) ->
    Tiers = lists:reverse([atom_to_binary(T) || #span{tier = T} <- [maps:get(Id, ById) | above(Id, Parents, ById)]]),
    iolist_to_binary(lists:join(<<" > ">>, once(Tiers))).

once([T, T | Rest]) -> once([T | Rest]);
once([T | Rest]) -> [T | once(Rest)];
once([]) -> [].

%% How much of a stretch of time no span covers: cut at every border, piece by piece.
uncovered(From, To, Spans) ->
    Reach = fun(open) -> To; (Stop) -> Stop end,
    Borders = lists:usort([From, To] ++ [T || #span{start = A, stop = B} <- Spans, T <- [A, Reach(B)], T > From, T < To]),
    Pieces = lists:zip(lists:droplast(Borders), tl(Borders)),
    lists:sum([B - A || {A, B} <- Pieces, not lists:any(fun(#span{start = S, stop = E}) -> S =< A andalso Reach(E) >= B end, Spans)]).

%% -- parents --------------------------------------------------------------------------------------------------------------

%% The context of a process: {Parent, Giver, AllGivers, Latest}: where its outermost spans hang, from which process it got the work,
%% from which it ever got some, and the last outermost span. The rules are those of request_tree.h; a token tells only which process
%% had it last, so the truth is what these rules make of it:
%%   - a process that shows itself as From goes on with what it was doing;
%%   - a span hangs below what was open in the sender when it began, not when the message was sent; where nothing was, below what the sender
%%     had done last if it went on while the span ran, or had ended the request; else beside it;
%%   - a second message of the same sender shows only by what the sender did in between;
%%   - a process without spans of its own that was not spawned within the request is not there.
%%   - where all calls are in the process that began the request, nothing has come from elsewhere.
parents(#req{pid = Home} = R, Spans) ->
    case lists:all(fun(#span{pid = Pid}) -> Pid =:= Home end, Spans) of
        true -> {maps:from_list([{S#span.id, stack_parent(S, Spans)} || S <- Spans]), #{}};
        false -> placed(R, Spans)
    end.

placed(R, Spans) ->
    {Parents, Waits, _} =
        lists:foldl(fun(#span{id = Id, pid = Pid, from = From} = S, {Parents, Waits, Before}) ->
                        case stack_parent(S, Spans) of
                            none ->
                                Contexts = known(From, R, Before, S#span.start),
                                {Wait, {Parent, Giver, Givers, _}} = arrives(S, R, Spans, Contexts),
                                Given = [S#span.stop | maps:get({given, Giver}, Contexts, [])],
                                Shown = case {maps:is_key(Pid, Contexts), R#req.links} of
                                            {false, #{Pid := {From, _, _}}} -> none; % which may have slept ever since
                                            _ when From =:= Pid -> none;
                                            _ -> From
                                        end,
                                {Parents#{Id => Parent}, Waits#{Id => Wait},
                                 Contexts#{Pid => {Parent, Giver, Givers, S}, {given, Giver} => Given, {shown, Shown} => true}};
                            Below -> {Parents#{Id => Below}, Waits, Before}
                        end
                    end, {#{}, #{}, #{}}, Spans),
    {Parents, Waits}.

stack_parent(#span{below = none}, _) -> none;
stack_parent(#span{below = Below}, Spans) ->
    case lists:keymember(Below, #span.id, Spans) of
        true -> Below;
        false -> none
    end.

%% An outermost span of its process: how long it waited, and the context that it has.
arrives(#span{pid = Pid, from = From, start = Start} = S, R, Spans, Contexts) ->
    {_, Giver, Givers, Latest} = Context = context(Pid, R, Contexts, Start),
    Sent = [T || T <- events(From, R, Contexts), T =< Start],
    Same = Giver =:= From andalso case Latest of
                                      none -> true;
                                      #span{stop = open} -> true;
                                      #span{stop = Stop} -> lists:max([0 | Sent]) =< Stop
                                  end,
    if
        Latest =:= none, Giver =/= none, From =:= Pid orelse From =:= Giver -> % what it was spawned for
            {_, _, Born} = maps:get(Pid, R#req.links),
            {case maps:is_key({shown, Pid}, Contexts) of true -> 0; false -> Start - Born end, Context};
        From =:= Pid; Sent =:= []; Same -> {0, Context};
        true ->
            case works_for(From, Pid, R, Contexts, Start, 64) of
                true -> {0, Context}; % it is an answer
                false -> {Start - lists:max(Sent), {open_in(From, S, R, Spans, Contexts), From, [From | Givers], Latest}}
            end
    end.

%% What a process is known to have done or got back: began the request, began or ended a span, spawned, was spawned, or had an outermost span of
%% another process end that it had given work to. (That is an atom when it has not ended, and later than any time.)
events(Pid, #req{acts = Acts, links = Links}, Contexts) ->
    [T || {P, T} <- Acts, P =:= Pid] ++ [T || {_, _, T} <- [maps:get(Pid, Links, none)]] ++ maps:get({given, Pid}, Contexts, []).

%% What a spawned process without spans hangs below is found out when it first shows itself.
known(Pid, #req{links = Links} = R, Contexts, Time) when is_map_key(Pid, Links), not is_map_key(Pid, Contexts), not is_map_key({born, Pid}, Contexts) ->
    Contexts#{{born, Pid} => context(Pid, R, Contexts, Time)};
known(_, _, Contexts, _) -> Contexts.

%% A process is born with a context when it was spawned within the request.
context(Pid, #req{links = Links} = R, Contexts, Time) ->
    case {Contexts, Links} of
        {#{Pid := Known}, _} -> Known;
        {#{{born, Pid} := Known}, _} -> Known;
        {_, #{Pid := {Spawner, _, Born}}} when Born =< Time -> {above_spawner(Pid, R, Contexts), Spawner, [Spawner], none};
        _ -> {none, none, [], none}
    end.

%% What a spawned process hangs below: the span that was open in the spawner, or what the spawner hangs below when this is asked.
above_spawner(Pid, #req{links = Links} = R, Contexts) ->
    case Links of
        #{Pid := {Spawner, none, _}} when is_map_key(Spawner, Contexts) -> element(1, maps:get(Spawner, Contexts));
        #{Pid := {Spawner, none, _}} -> above_spawner(Spawner, R, Contexts);
        #{Pid := {_, Open, _}} -> Open;
        _ -> none
    end.

works_for(_, _, _, _, _, 0) -> false;
works_for(Pid, For, R, Contexts, Time, N) ->
    {_, Giver, Givers, _} = context(Pid, R, Contexts, Time),
    lists:member(For, Givers) orelse (Giver =/= none andalso works_for(Giver, For, R, Contexts, Time, N - 1)).

%% The innermost span open in the sender; else what it did last if it does not wait for this span, else what it hangs below itself.
open_in(Sender, S, #req{stop = End, stop_pid = Ender} = R, Spans, Contexts) ->
    #span{start = Start, stop = Stop} = S,
    Own = lists:reverse([E || #span{pid = P, start = T} = E <- Spans, P =:= Sender, T < Start]), % the latest first
    During = lists:sublist([P || #span{pid = P, start = T} <- Spans, T > Start, T < Stop], ?AHEAD), % any number is less than the atom open
    GoesOn = lists:member(Sender, During) orelse (Sender =:= Ender andalso End < Stop),
    case {[E || #span{stop = Over} = E <- Own, Over =:= open orelse Over >= Start], Own} of
        {[#span{id = Open} | _], _} -> Open;
        {[], [#span{id = Last} | _]} when GoesOn -> Last;
        _ -> element(1, context(Sender, R, Contexts, Start))
    end.
