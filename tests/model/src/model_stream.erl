%% SPDX-License-Identifier: Apache-2.0
%% From what happened to what the collector receives: messages in the order of the stream, with
%% losses.
-module(model_stream).

-export([make/2]).

-include("model.hrl").

%% @doc The bytes, and the messages in them with the losses.
-spec make(map(), [#event{}]) -> {iodata(), [#event{} | {lost, [#event{}]}]}.
make(#{drops := Drops, disorder := Disorder, batch := Batch}, Events) ->
    Items = lose(Drops, arrange(Disorder, Events)),
    {encode(Batch, Items), Items}.

%% Exact order in each process; between processes a message may come up to Disorder later than
%% others of a later time.
arrange(Disorder, Events) ->
    {Arriving, _} = lists:mapfoldl(
        fun(#event{time = Time, proc = Id} = E, Before) ->
            Arrives = max(Time + erlang:phash2({Time, Id}, Disorder + 1), maps:get(Id, Before, 0)),
            {{Arrives, Time, E}, Before#{Id => Arrives}}
        end,
        #{},
        Events
    ),
    [E || {_, _, E} <- lists:sort(Arriving)].

%% From the first message of a time on, so many are lost.
lose([], Events) ->
    Events;
lose(Drops, Events) ->
    Numbered = lists:zip(lists:seq(1, length(Events)), Events),
    Ranges = lists:append([range(Drop, Numbered) || Drop <- Drops]),
    gather(
        Numbered,
        sets:from_list([N || {From, To} <- Ranges, N <- lists:seq(From, To - 1)], [{version, 2}])
    ).

%% unseen: all that is in the stream of a request before its begin, so that nothing of it has been
%% seen when it is lost.
range({unseen, Since}, Numbered) ->
    Later = lists:sublist([E || {_, #event{time = T}} = E <- Numbered, T >= Since], 3000),
    Begins = [
        {Id, N}
     || {N, #event{about = [Id], term = Term}} <- Later,
        element(4, Term) =:= {kprof_mark, request_begin, 1}
    ],
    lists:sublist(
        [
            {First, Begin}
         || {Id, Begin} <- Begins,
            First <- lists:sublist([N || {N, #event{about = [I]}} <- Later, I =:= Id], 1),
            First < Begin
        ],
        1
    );
range({Since, Count}, Numbered) ->
    [
        {First, First + Count}
     || {First, _} <- lists:sublist([E || {_, #event{time = T}} = E <- Numbered, T >= Since], 1)
    ].

gather([], _) ->
    [];
gather([{N, E} | Rest] = All, Lost) ->
    case sets:is_element(N, Lost) of
        false ->
            [E | gather(Rest, Lost)];
        true ->
            {Gone, Kept} = lists:splitwith(fun({I, _}) -> sets:is_element(I, Lost) end, All),
            [{lost, [G || {_, G} <- Gone]} | gather(Kept, Lost)]
    end.

%% -- bytes ----------------------------------------------------------------------------------------

encode(_, []) ->
    [];
encode(Batch, [{lost, Events} | Rest]) ->
    [<<1, (length(Events)):32>> | encode(Batch, Rest)];
encode(native, [#event{term = Term} | Rest]) ->
    [block(Term) | encode(native, Rest)];
encode(1, [#event{term = Term} | Rest]) ->
    [frame(Term) | encode(1, Rest)];
% as a tracer process sends them
encode(Batch, Items) ->
    {Together, Rest} = batch(Batch, Items, []),
    [frame(Together) | encode(Batch, Rest)].

batch(N, [#event{term = Term} | Rest], Terms) when N > 0 -> batch(N - 1, Rest, [Term | Terms]);
batch(_, Rest, Terms) -> {lists:reverse(Terms), Rest}.

%% As the native tracer tells a call and a message that is sent or taken: a block of one record
%% (include/model/message/native.h). Other messages say the same as the trace port's.
block({trace_ts, Pid, sent, {_, _, _, From, _} = Token, Time}) ->
    block(Pid, Time, [process(From), head(16#1c, Token), 0, 0, token(Token), 15]);
block({trace_ts, Pid, taken, {_, _, _, From, _} = Token, Time}) ->
    block(Pid, Time, [process(From), head(16#1d, Token), 0, 0, token(Token), 15]);
block({trace_ts, Pid, call, {M, F, A}, Note, Time}) when is_tuple(element(1, Note)) ->
    [{_, _, _, From, _} = Token | Rest] = tuple_to_list(Note),
    Terms = [encoded(Term) || Term <- Rest],
    block(Pid, Time, [
        process(From),
        [0, A, encoded(M), encoded(F)],
        [head(16#53, Token), 0, 0, 0, token(Token)],
        [number(iolist_size(Terms)), length(Terms), Terms, 15]
    ]);
block(Term) ->
    frame(Term).

block(Pid, Time, Records) ->
    Block = [<<1, 0>>, encoded(node(Pid)), <<Time:64/little>>, process(Pid), Records],
    [<<2, (iolist_size(Block)):32>>, Block].

process(Pid) -> [1, number(id(Pid))].

head(Kind, {_, Label, _, _, _}) when is_integer(Label) -> Kind;
head(Kind, _) -> Kind bor 16#80.

%% Its process is the second that is told.
token({_, Label, Serial, _, Heard}) ->
    [label(Label), number(word(Serial)), 2, number(word(Heard))].

label(Label) when is_integer(Label) ->
    number(signed(Label));
label(Label) ->
    Term = encoded(Label),
    [number(byte_size(Term)), Term].

encoded(Term) ->
    <<131, Bytes/binary>> = term_to_binary(Term),
    Bytes.

id(Pid) ->
    Bytes = term_to_binary(Pid),
    <<Id:32, _:64>> = binary:part(Bytes, byte_size(Bytes), -12),
    Id.

word(N) -> N band 16#ffffffffffffffff.

signed(N) when N < 0 -> -2 * N - 1;
signed(N) -> 2 * N.

number(N) when N < 128 -> [N];
number(N) -> [128 + N rem 128 | number(N div 128)].

frame(Term) ->
    Bytes = term_to_binary(Term),
    [<<0, (byte_size(Bytes)):32>>, Bytes].
