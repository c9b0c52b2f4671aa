%% SPDX-License-Identifier: Apache-2.0
%% What the collector's database must say, worked out from what happened: by the rules of
%% ../shared/DESIGN.md and request_tree.h, and by other algorithms than the collector's.
-module(model_truth).

-export([of_capture/3, request_rows/2]).

-include("model.hrl").

-define(LEDGER, [
    messages,
    dropped_messages,
    decode_errors,
    requests_complete,
    requests_incomplete,
    requests_expired,
    orphan_returns,
    stale_calls,
    unwound_frames,
    ambiguous_returns,
    lost_tokens
]).
% so many spans the collector looks ahead for what a sender does next
-define(AHEAD, 64).

%% @doc For each identity the numbers of its complete requests; the ledger; and what was found out.
%%   rows: identity => #{{tier, Name} | {path, Text} => Numbers}
%%   Numbers: {requests, calls, errors, async_calls, total, self, async, wait, gc, off, waiting,
%%     min, max}, times in ns
%%   ledger: column => number
%%   blind: of the requests with calls without values those that are complete, and the others
%%   wrong: what the rules must not do
-spec of_capture(#{integer() => #span{}}, #{integer() => #req{}}, [
    #event{} | {lost, [#event{}]}
]) ->
    map().
of_capture(Spans, Requests, Items) ->
    #{fates := Fates, counts := Counts} = Read = model_reader:read(Items),
    ByRequest = maps:groups_from_list(fun(#span{req = Id}) -> Id end, maps:values(Spans)),
    Whole = [
        {told(maps:get(Id, Requests), F, Read), seen(F, maps:get(Id, ByRequest, []), Read)}
     || {Id, #fate{fate = complete} = F} <- lists:keysort(1, maps:to_list(Fates))
    ],
    Named = maps:groups_from_list(fun({R, Seen}) -> identity(R, Seen) end, Whole),
    Rows = maps:map(
        fun(_, Same) ->
            lists:foldl(fun({R, Seen}, Sum) -> merge(request_rows(R, Seen), Sum) end, #{}, Same)
        end,
        Named
    ),
    Blind = [Fate || #fate{fate = Fate, blind = N} <- maps:values(Fates), N > 0],
    Unknown = length([
        x
     || {_, Seen} <- Whole,
        #span{tier = T, stop = Stop, error = false} <- Seen,
        Stop =/= open,
        model_plan:returns(T) =:= none
    ]),
    #{
        rows => Rows,
        total => lists:foldl(fun merge/2, #{}, maps:values(Rows)),
        ledger => (maps:merge(maps:from_keys(?LEDGER, 0), Counts))#{
            unknown_outcomes => Unknown
        },
        blind => {
            length([x || complete <- Blind]), length([x || Fate <- Blind, Fate =/= complete])
        },
        wrong => wrong(Requests, Fates, Read) ++ guessed(Whole, Spans)
    }.

identity(#req{named = mark, identity = Identity}, _) -> atom_to_binary(Identity);
identity(_, []) -> <<"undefined">>;
identity(#req{identity = Identity}, _) -> atom_to_binary(Identity).

%% A request as far as the collector can know it: with its end, and without what came after it was
%% closed.
told(
    #req{links = Links, acts = Acts} = R,
    #fate{closed = Closed, stop = Stop, error = Error, stop_pid = Pid},
    #{seen := Seen}
) ->
    InTime = fun(Time) ->
        case Seen of
            #{Time := Place} -> Place < Closed;
            _ -> true
        end
    end,
    R#req{
        stop = Stop,
        error = Error,
        stop_pid = Pid,
        acts = [A || {_, Time} = A <- Acts, InTime(Time)],
        links = maps:filter(fun(_, {_, _, _, Told}) -> InTime(Told) end, Links)
    }.

%% The spans of which the call was taken, with their ends as far as these came in time, and what is
%% known of how they ended.
seen(#fate{key = Key, closed = Closed}, Spans, #{taken := Taken, seen := Seen, raised := Raised}) ->
    % lost is more than any number
    [
        case Seen of
            #{Stop := Place} when Place >= Closed -> S#span{stop = open};
            _ -> known(S, Raised)
        end
     || #span{start = Start, stop = Stop} = S <- Spans, maps:get(Start, Taken, none) =:= Key
    ].

known(#span{tier = Tier, start = Start, error = Error} = S, Raised) ->
    S#span{
        error =
            case model_plan:returns(Tier) of
                none -> is_map_key(Start, Raised);
                whole -> Error
            end
    }.

%% What the rules must not do: doubt requests that nothing speaks against; and take something else
%% for the end than the first end marker, unless that did not come, or not in time; nor call a
%% request complete of which a message was lost up to its end.
wrong(Requests, Fates, #{seen := Seen, counts := Counts}) ->
    [
        io_lib:format("rules: ~s is doubted, and has only calls with values", [Name])
     || not is_map_key(dropped_messages, Counts),
        {Id, #fate{damaged = true, blind = 0, lost = false}} <- maps:to_list(Fates),
        #req{identity = Name} <- [maps:get(Id, Requests)]
    ] ++
        [
            io_lib:format("rules: ~s ends at ~b, not ~b", [Name, Stop, First])
         || {Id, #fate{fate = complete, stop = Stop, closed = Closed}} <- maps:to_list(Fates),
            #req{identity = Name, stop = First} <- [maps:get(Id, Requests)],
            First =/= none,
            First =/= Stop,
            maps:get(First, Seen) < Closed
        ] ++
        [
            io_lib:format("rules: ~s is complete without its message of ~b", [Name, Time])
         || {Id, #fate{fate = complete, stop = Stop}} <- maps:to_list(Fates),
            #req{identity = Name, acts = Acts} <- [maps:get(Id, Requests)],
            {_, Time} <- Acts,
            Time =< Stop,
            maps:get(Time, Seen, none) =:= lost
        ].

%% Nor say of a call that it raised which has not.
guessed(Whole, Spans) ->
    [
        io_lib:format("rules: the call of ~s at ~b is said to have raised", [T, Start])
     || {_, Seen} <- Whole,
        #span{id = Id, tier = T, start = Start, error = true, stop = Stop} <- Seen,
        Stop =/= open,
        #{Id := #span{error = false}} <- [Spans]
    ].

merge(A, B) -> maps:merge_with(fun(_, X, Y) -> add(X, Y) end, A, B).

add(A, B) ->
    [Min1, Max1 | Sums1] = lists:reverse(tuple_to_list(A)),
    [Min2, Max2 | Sums2] = lists:reverse(tuple_to_list(B)),
    list_to_tuple(
        lists:reverse([
            max(Min1, Min2), min(Max1, Max2) | lists:zipwith(fun erlang:'+'/2, Sums1, Sums2)
        ])
    ).

%% -- one request ----------------------------------------------------------------------------------

%% @doc What a request with these spans is worth.
request_rows(#req{start = Begin, stop = End, error = Error} = R, Seen) ->
    Spans = lists:keysort(#span.start, Seen),
    {Parents, Waits} = parents(R, Spans),
    ById = maps:from_list([{S#span.id, S} || S <- Spans]),
    Times = moments(Begin, End, Spans, Parents, Waits),
    Waiting = lists:sum([T || {{waiting, _}, T} <- maps:to_list(Times)]),
    Whole =
        {1, 1, count(Error), 0, End - Begin, maps:get({self, none}, Times, 0), 0, 0, 0, 0, Waiting,
            End - Begin, End - Begin},
    lists:foldl(
        fun
            (#span{stop = open}, Rows) ->
                Rows;
            (S, Rows) ->
                Numbers = numbers(
                    S,
                    End,
                    Parents,
                    ById,
                    maps:get({self, S#span.id}, Times, 0),
                    maps:get({waiting, S#span.id}, Times, 0),
                    maps:get(S#span.id, Waits, 0)
                ),
                first(
                    S#span.tier,
                    merge(
                        #{
                            {tier, atom_to_binary(S#span.tier)} => Numbers,
                            {path, path(S#span.id, Parents, ById)} => at_path(
                                S, Parents, ById, Numbers
                            )
                        },
                        Rows
                    )
                )
        end,
        #{{tier, <<"_total">>} => Whole},
        Spans
    ).

%% A request counts once for each tier that it called.
first(Tier, Rows) ->
    Key = {tier, atom_to_binary(Tier)},
    Rows#{Key := setelement(1, maps:get(Key, Rows), 1)}.

numbers(#span{start = Start, stop = Stop} = S, End, Parents, ById, Self, Waiting, Wait) ->
    Duration = Stop - Start,
    {Async, Total, Late} =
        case Stop > End of
            true ->
                {1, 0, Duration};
            false ->
                {0,
                    case recursive(S, Parents, ById) of
                        true -> 0;
                        false -> Duration
                    end, 0}
        end,
    {0, 1, count(S#span.error), Async, Total, Self, Late, Wait, S#span.gc, S#span.off, Waiting,
        Duration, Duration}.

%% At a position, only a call that hangs below one of the same position is a recursion.
at_path(
    #span{id = Id, tier = Tier, stop = Stop, start = Start},
    Parents,
    ById,
    {_, _, _, 0, _, _, _, _, _, _, _, _, _} = Numbers
) ->
    case maps:get(Id, Parents) of
        Parent when is_map_key(Parent, ById), (map_get(Parent, ById))#span.tier =:= Tier ->
            setelement(5, Numbers, 0);
        _ ->
            setelement(5, Numbers, Stop - Start)
    end;
at_path(_, _, _, Numbers) ->
    Numbers.

count(true) -> 1;
count(false) -> 0.

%% Whether a call of the same tier goes on above this one.
recursive(#span{id = Id, tier = Tier, start = Start}, Parents, ById) ->
    lists:any(
        fun(#span{tier = T, stop = Stop}) ->
            T =:= Tier andalso (Stop =:= open orelse Stop >= Start)
        end,
        above(Id, Parents, ById)
    ).

above(Id, Parents, ById) ->
    case maps:get(Id, Parents) of
        none -> [];
        Parent -> [maps:get(Parent, ById) | above(Parent, Parents, ById)]
    end.

%% The tiers from the request down. One that calls itself is one position.
path(Id, Parents, ById) ->
    Tiers = lists:reverse([
        atom_to_binary(T)
     || #span{tier = T} <- [maps:get(Id, ById) | above(Id, Parents, ById)]
    ]),
    iolist_to_binary(lists:join(<<" > ">>, once(Tiers))).

once([T, T | Rest]) -> once([T | Rest]);
once([T | Rest]) -> [T | once(Rest)];
once([]) -> [].

%% What the time of a request is, cut at every border, piece by piece: {self, Id} of the spans that
%% run (none: of the request itself), {waiting, Id} of the one that is waited for; where there are
%% several, of the one that begins first. Spans that end after the request are nothing.
moments(Begin, End, Spans, Parents, Waits) ->
    InTime = [S || #span{stop = Stop} = S <- Spans, Stop =/= open, Stop =< End],
    Sent = fun(#span{id = Id, start = Start}) -> Start - maps:get(Id, Waits, 0) end,
    Borders = lists:usort(
        [Begin, End] ++
            [
                T
             || #span{start = A, stop = B} = S <- InTime,
                T <- [A, B, Sent(S)],
                T > Begin,
                T < End
            ]
    ),
    Below = maps:groups_from_list(fun(#span{id = Id}) -> maps:get(Id, Parents) end, InTime),
    lists:foldl(
        fun({A, B}, Times) ->
            Open = [S || #span{start = From, stop = To} = S <- InTime, From =< A, To >= B],
            Children = fun(Id) -> maps:get(Id, Below, []) end,
            Above =
                [{Id, To, Children(Id), Children(Id)} || #span{id = Id, stop = To} <- Open] ++
                    [{none, End, Children(none), InTime} || Open =:= []],
            Is = [
                {Id, waited(A, To, Own, All, Sent)}
             || {Id, To, Own, All} <- Above, not covered(A, B, Own)
            ],
            Awaited = lists:keysort(#span.start, [S || {_, #span{} = S} <- Is]),
            lists:foldl(
                fun(Key, So) -> maps:update_with(Key, fun(T) -> T + B - A end, B - A, So) end,
                Times,
                [{self, Id} || {Id, none} <- Is] ++
                    [{waiting, S#span.id} || S <- lists:sublist(Awaited, 1)]
            )
        end,
        #{},
        lists:zip(lists:droplast(Borders), tl(Borders))
    ).

covered(A, B, Spans) ->
    lists:any(fun(#span{start = From, stop = To}) -> From =< A andalso To >= B end, Spans).

%% The first of the children for which is waited at a time: not while one of those that begin before
%% it runs, or is still to come, nor when it begins only after the end.
waited(Time, End, Children, All, Sent) ->
    Candidates = [
        S
     || #span{start = Start} = S <- Children,
        Start > Time,
        Start =< End,
        Sent(S) =< Time,
        not lists:any(fun(#span{start = T, stop = To}) -> T < Start andalso To > Time end, All)
    ],
    case Candidates of
        [First | _] -> First;
        [] -> none
    end.

%% -- parents --------------------------------------------------------------------------------------

%% The context of a process: {Parent, Giver, AllGivers, Latest}: where its outermost spans hang,
%% from which process it got the work, from which it ever got some, and the last outermost span. The
%% rules are those of request_tree.h; a token tells only which process had it last, so the truth is
%% what these rules make of it:
%%   - a process that shows itself as From goes on with what it was doing;
%%   - a span hangs below what was open in the sender when it began, not when the message was sent;
%%     where nothing was, below what the sender had done last if it went on while the span ran, or
%%     had ended the request; else beside it;
%%   - a second message of the same sender shows only by what the sender did in between;
%%   - a process without spans of its own that was not spawned within the request is not there;
%%   - where all calls are in the process that began the request, nothing has come from elsewhere.
parents(#req{pid = Home} = R, Spans) ->
    case lists:all(fun(#span{pid = Pid}) -> Pid =:= Home end, Spans) of
        true -> {maps:from_list([{S#span.id, stack_parent(S, Spans)} || S <- Spans]), #{}};
        false -> placed(R, Spans)
    end.

placed(#req{links = Links} = R, Spans) ->
    Steps = lists:keysort(
        1,
        [{S#span.start, S} || S <- Spans] ++
            [
                {Born, {Child, Spawner, Open}}
             || {Child, {Spawner, Open, Born, _}} <- maps:to_list(Links)
            ]
    ),
    {Parents, Waits, _} = lists:foldl(
        fun({_, Step}, So) -> placed(Step, R, Spans, So) end, {#{}, #{}, #{}}, Steps
    ),
    {Parents, Waits}.

%% A spawned process hangs below the span that was open in the spawner, or what the spawner hangs
%% below.
placed({Child, Spawner, Open}, _, _, {Parents, Waits, Contexts}) ->
    Parent =
        case Open of
            none -> element(1, context(Spawner, Contexts));
            _ -> Open
        end,
    {Parents, Waits, Contexts#{{spawned, Child} => {Parent, Spawner, [Spawner], none}}};
placed(#span{id = Id, pid = Pid} = S, R, Spans, {Parents, Waits, Contexts}) ->
    case stack_parent(S, Spans) of
        none ->
            {Wait, Shown, {Parent, Giver, Givers, _}} = arrives(S, R, Spans, Contexts),
            Given = [S#span.stop | maps:get({given, Giver}, Contexts, [])],
            {Parents#{Id => Parent}, Waits#{Id => Wait}, Contexts#{
                Pid => {Parent, Giver, Givers, S},
                {given, Giver} => Given,
                {shown, Shown} => true
            }};
        Below ->
            {Parents#{Id => Below}, Waits, Contexts}
    end.

stack_parent(#span{below = none}, _) ->
    none;
stack_parent(#span{below = Below}, Spans) ->
    case lists:keymember(Below, #span.id, Spans) of
        true -> Below;
        false -> none
    end.

%% An outermost span of its process: how long it waited, whom it has shown as a sender, and the
%% context that it has.
arrives(#span{pid = Pid, from = From, start = Start} = S, R, Spans, Contexts) ->
    {_, Giver, Givers, Latest} = Context = context(Pid, Contexts),
    Sent = [T || T <- events(From, R, Contexts), T =< Start],
    Same =
        Giver =:= From andalso
            case Latest of
                none -> false;
                #span{stop = open} -> true;
                #span{stop = Stop} -> lists:max([0 | Sent]) =< Stop
            end,
    % since it was spawned, perhaps
    Slept =
        Latest =:= none andalso Giver =/= none andalso not is_map_key({shown, Pid}, Contexts),
    if
        Slept, From =:= Pid orelse From =:= Giver ->
            {Start - element(3, maps:get(Pid, R#req.links)), none, Context};
        From =:= Pid ->
            {0, none, Context};
        Sent =:= []; Same ->
            {0, From, Context};
        true ->
            case works_for(From, Pid, Contexts, 64) of
                % it is an answer
                true ->
                    {0, From, Context};
                false ->
                    {Start - lists:max(Sent), From, {
                        open_in(From, S, R, Spans, Contexts), From, [From | Givers], Latest
                    }}
            end
    end.

%% What a process is known to have done or got back: began the request, began or ended a span,
%% spawned, was spawned, or had an outermost span of another process end that it had given work to.
%% (That is an atom when it has not ended, and later than any time.)
events(Pid, #req{acts = Acts, links = Links}, Contexts) ->
    [T || {P, T} <- Acts, P =:= Pid] ++
        [
            T
         || {Child, {Spawner, _, T, _}} <- maps:to_list(Links),
            Child =:= Pid orelse Spawner =:= Pid
        ] ++
        maps:get({given, Pid}, Contexts, []).

%% A process is born with a context when it was spawned within the request.
context(Pid, Contexts) ->
    case Contexts of
        #{Pid := Known} -> Known;
        #{{spawned, Pid} := Known} -> Known;
        _ -> {none, none, [], none}
    end.

works_for(_, _, _, 0) ->
    false;
works_for(Pid, For, Contexts, N) ->
    {_, Giver, Givers, _} = context(Pid, Contexts),
    lists:member(For, Givers) orelse
        (Giver =/= none andalso works_for(Giver, For, Contexts, N - 1)).

%% The innermost span open in the sender; else what it did last if it does not wait for this span,
%% else what it hangs below itself.
open_in(Sender, S, #req{stop = End, stop_pid = Ender}, Spans, Contexts) ->
    #span{start = Start, stop = Stop} = S,
    % the latest first
    Own = lists:reverse([E || #span{pid = P, start = T} = E <- Spans, P =:= Sender, T < Start]),
    % any number is less than the atom open
    During = lists:sublist(
        [P || #span{pid = P, start = T} <- Spans, T > Start, T < Stop], ?AHEAD
    ),
    GoesOn = lists:member(Sender, During) orelse (Sender =:= Ender andalso End < Stop),
    case {[E || #span{stop = Over} = E <- Own, Over =:= open orelse Over >= Start], Own} of
        {[#span{id = Open} | _], _} -> Open;
        {[], [#span{id = Last} | _]} when GoesOn -> Last;
        _ -> element(1, context(Sender, Contexts))
    end.
