%% From what happened to what the collector receives: messages in the order of the stream, with losses; and what of it the collector can
%% have known when.
%%
%% A request is open for the collector from the first call or marker of it that arrives until GRACE after its end, which it notices with the first
%% message of a later time; it looks once in SLACK. What falls between "surely not noticed" and "surely noticed" is `vague'.
-module(model_stream).

-export([make/3]).

-include("model.hrl").

-define(SLACK, (60 * ?MS)).           % looks are 50 ms of the stream's time apart
-define(EXPIRY_SLACK, (1300 * ?MS)).  % requests without an end are looked at once a second
-define(UNSEEN, (10 * ?MS)).          % what begins so soon after a loss may have been hit before its begin came

%% latest: of all messages up to now; handled: of those whose time surely counts
-record(walk, {requests, latest = -1, handled = -1, opened = #{}, first = #{}, hit = #{}, late = #{}, losses = [], waiting = []}).

%% @doc The bytes; and about the stream:
%%   opened    the requests that the collector knows of
%%   hit       of these the ones that lost something or were open at a loss: true; vague
%%   late      times of those messages that came after their request was closed: true; vague
%%   expired   of requests without an end: true | false | vague
%%   dropped, messages   how many
-spec make(map(), #{integer() => #req{}}, [#event{}]) -> {iodata(), map()}.
make(#{drops := Drops, disorder := Disorder, batch := Batch}, Requests, Events) ->
    Items = lose(Drops, arrange(Disorder, Events)),
    W = lists:foldl(fun walk/2, #walk{requests = Requests}, Items),
    Expired = maps:map(fun(Id, First) -> passed(W, min(First, (maps:get(Id, Requests))#req.start) + ?TIMEOUT, ?EXPIRY_SLACK) end, W#walk.first),
    {encode(Batch, Items),
     #{opened => W#walk.opened, hit => W#walk.hit, late => W#walk.late, expired => Expired,
       dropped => lists:sum([length(Lost) || {lost, Lost} <- Items]), messages => length([seen || #event{} <- Items])}}.

%% Exact order in each process; between processes a message may come up to Disorder later than others of a later time.
arrange(Disorder, Events) ->
    {Arriving, _} = lists:mapfoldl(fun(#event{time = Time, proc = Id} = E, Before) ->
                                       Arrives = max(Time + erlang:phash2({Time, Id}, Disorder + 1), maps:get(Id, Before, 0)),
                                       {{Arrives, Time, E}, Before#{Id => Arrives}}
                                   end, #{}, Events),
    [E || {_, _, E} <- lists:sort(Arriving)].

%% From the first message of a time on, so many are lost.
lose([], Events) -> Events;
lose(Drops, Events) ->
    Numbered = lists:zip(lists:seq(1, length(Events)), Events),
    Ranges = lists:append([range(Drop, Numbered) || Drop <- Drops]),
    gather(Numbered, sets:from_list([N || {From, To} <- Ranges, N <- lists:seq(From, To - 1)], [{version, 2}])).

%% unseen: all that is in the stream of a request before its begin, so that nothing of it has been seen when it is lost.
range({unseen, Since}, Numbered) ->
    Later = lists:sublist([E || {_, #event{time = T}} = E <- Numbered, T >= Since], 3000),
    Begins = [{Id, N} || {N, #event{about = [Id], opens = true, term = Term}} <- Later, element(4, Term) =:= {kprof_mark, request_begin, 1}],
    lists:sublist([{First, Begin} || {Id, Begin} <- Begins,
                                     First <- lists:sublist([N || {N, #event{about = [I], opens = true}} <- Later, I =:= Id], 1), First < Begin], 1);
range({Since, Count}, Numbered) ->
    [{First, First + Count} || {First, _} <- lists:sublist([E || {_, #event{time = T}} = E <- Numbered, T >= Since], 1)].

gather([], _) -> [];
gather([{N, E} | Rest] = All, Lost) ->
    case sets:is_element(N, Lost) of
        false -> [E | gather(Rest, Lost)];
        true ->
            {Gone, Kept} = lists:splitwith(fun({I, _}) -> sets:is_element(I, Lost) end, All),
            [{lost, [G || {_, G} <- Gone]} | gather(Kept, Lost)]
    end.

%% -- what the collector knows ------------------------------------------------------------------------------------------------

walk({lost, Events}, #walk{opened = Opened, requests = Requests} = W) ->
    Own = lists:usort(lists:append([About || #event{about = About} <- Events])),
    Hit = maps:fold(fun(Id, _, Hits) ->
                        case closed(W, maps:get(Id, Requests), Id) of
                            true -> Hits;
                            vague -> maps:merge(#{Id => vague}, Hits);
                            false -> Hits#{Id => true}
                        end
                    end, W#walk.hit, Opened),
    Sure = lists:foldl(fun(Id, Hits) ->
                           case maps:is_key(Id, Opened) of
                               true -> Hits; % open, or closed before
                               false -> Hits#{Id => true}
                           end
                       end, Hit, Own),
    Never = maps:from_list([{Time, true} || #event{time = Time} <- Events]), % of closed requests, or of such as are hit
    W#walk{hit = Sure, late = maps:merge(W#walk.late, Never), losses = [W#walk.latest | W#walk.losses], waiting = [none | W#walk.waiting]};
walk(#event{time = Time, about = About, opens = Opens, kind = Kind} = E, #walk{latest = Latest, handled = Handled, waiting = Waiting} = W0) ->
    Timed = Opens orelse Kind =:= return_from orelse Kind =:= exception_from,
    W1 = W0#walk{latest = max(Latest, Time), handled = case Timed of true -> max(Handled, Time); false -> Handled end,
                 waiting = [case After of none when Timed -> Time; _ -> After end || After <- Waiting]},
    W2 = lists:foldl(fun(Id, W) -> late(Id, E, W) end, W1, About),
    case Opens of
        true -> lists:foldl(fun(Id, W) -> opens(Id, Time, W) end, W2, About);
        false -> W2
    end.

late(Id, #event{time = Time}, #walk{late = Late, requests = Requests} = W) ->
    case closed(W, maps:get(Id, Requests), Id) of
        false -> W;
        Closed -> W#walk{late = Late#{Time => Closed}}
    end.

opens(Id, Time, #walk{opened = Opened, first = First} = W) when is_map_key(Id, Opened) ->
    W#walk{first = First#{Id := min(Time, maps:get(Id, First))}};
opens(Id, Time, #walk{opened = Opened, first = First, losses = Losses, waiting = Waiting, hit = Hit, requests = Requests} = W) ->
    #req{start = Start} = maps:get(Id, Requests),
    Near = lists:any(fun({Before, After}) -> After =:= none orelse min(Start, Time) =< max(Before, After) + ?UNSEEN end, lists:zip(Losses, Waiting)),
    W#walk{opened = Opened#{Id => true}, first = First#{Id => Time},
           hit = case Near of true -> maps:merge(#{Id => vague}, Hit); false -> Hit end}.

%% Whether a request has been closed by now: true | false | vague.
closed(W, #req{stop = none}, Id) ->
    case W#walk.first of
        #{Id := First} -> passed(W, First + ?TIMEOUT, ?EXPIRY_SLACK);
        _ -> false
    end;
closed(W, #req{stop = Stop}, _) -> passed(W, Stop + ?GRACE, ?SLACK).

passed(#walk{latest = Latest}, Time, _) when Latest < Time -> false;
passed(#walk{handled = Handled}, Time, Slack) when Handled >= Time + Slack -> true;
passed(_, _, _) -> vague.

%% -- bytes -------------------------------------------------------------------------------------------------------------

encode(_, []) -> [];
encode(Batch, [{lost, Events} | Rest]) -> [<<1, (length(Events)):32>> | encode(Batch, Rest)];
encode(1, [#event{term = Term} | Rest]) -> [frame(Term) | encode(1, Rest)];
encode(Batch, Items) -> % as a tracer process sends them
    {Together, Rest} = batch(Batch, Items, []),
    [frame(Together) | encode(Batch, Rest)].

batch(N, [#event{term = Term} | Rest], Terms) when N > 0 -> batch(N - 1, Rest, [Term | Terms]);
batch(_, Rest, Terms) -> {lists:reverse(Terms), Rest}.

frame(Term) ->
    Bytes = term_to_binary(Term),
    [<<0, (byte_size(Bytes)):32>>, Bytes].
