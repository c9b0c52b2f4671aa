%% SPDX-License-Identifier: Apache-2.0
%% Reads what kprof_stack_records writes, as a collector would: checks numbers, and puts names in
%% their place.
-module(kprof_stack_reader).

-export([new/0, read/2, samples/1]).

%% Of a run so far.
new() ->
    #{frames => #{}, stacks => #{}, processes => #{}, last => #{}, time => 0}.

%% The records of a batch, each with its time in µs; and the reader for the next one.
read(Bytes, Reader) ->
    read(Bytes, Reader, []).

read(<<>>, Reader, Read) ->
    {lists:reverse(Read), Reader};
read(<<1, Bytes/binary>>, #{frames := Frames} = Reader, Read) ->
    {M, Rest1} = text(Bytes),
    {F, Rest2} = text(Rest1),
    {A, Rest} = integer(Rest2),
    N = map_size(Frames),
    read(Rest, Reader#{frames := Frames#{N => {M, F, A}}}, Read);
read(<<2, Flags, Bytes/binary>>, #{stacks := Stacks, frames := Frames} = Reader, Read) ->
    {Count, Rest0} = integer(Bytes),
    {Numbers, Rest} = integers(Count, Rest0),
    Named = [maps:get(N, Frames) || N <- Numbers],
    Cut =
        case Flags of
            0 -> whole;
            1 -> cut
        end,
    read(Rest, Reader#{stacks := Stacks#{map_size(Stacks) => {Cut, Named}}}, Read);
read(<<3, Bytes/binary>>, #{processes := Processes} = Reader, Read) ->
    {[Pid, Name, Initial, Application], Rest} = texts(4, Bytes),
    Process = #{pid => Pid, name => Name, initial => Initial, application => Application},
    After = Reader#{processes := Processes#{map_size(Processes) => Process}},
    read(Rest, After, [told(process, Process, Reader) | Read]);
read(<<4, Bytes/binary>>, #{time := Time} = Reader, Read) ->
    {Us, Rest} = integer(Bytes),
    true = Us > 0,
    read(Rest, Reader#{time := Time + Us}, Read);
read(<<5, Bytes/binary>>, #{stacks := Stacks, last := Last} = Reader, Read) ->
    {N, <<Status, Rest1/binary>>} = integer(Bytes),
    {Stack, <<Mask, Rest2/binary>>} = integer(Rest1),
    {Values, Rest} = values(Mask, Rest2),
    Named =
        case Stack of
            0 -> maps:get(N, Last);
            _ -> maps:get(Stack - 1, Stacks)
        end,
    Sample = Values#{status => Status, stack => Named, process => process(N, Reader)},
    read(Rest, Reader#{last := Last#{N => Named}}, [told(sample, Sample, Reader) | Read]);
read(<<6, Bytes/binary>>, #{last := Last} = Reader, Read) ->
    {N, <<Status, Rest/binary>>} = integer(Bytes),
    Sample = #{status => Status, stack => maps:get(N, Last), process => process(N, Reader)},
    read(Rest, Reader, [told(unchanged, Sample, Reader) | Read]);
read(<<Of, Bytes/binary>>, Reader, Read) when Of =:= 7; Of =:= 10 ->
    {N, Rest} = integer(Bytes),
    Name = maps:get(Of, #{7 => unanswered, 10 => gone}),
    read(Rest, Reader, [told(Name, process(N, Reader), Reader) | Read]);
read(<<Of, Bytes/binary>>, Reader, Read) when Of =:= 8; Of =:= 9 ->
    {Us, Rest} = integer(Bytes),
    read(Rest, Reader, [told(maps:get(Of, #{8 => held, 9 => late}), Us, Reader) | Read]);
read(<<13, Bytes/binary>>, Reader, Read) ->
    {[N, Label], Rest} = integers(2, Bytes),
    read(Rest, Reader, [told(label, {process(N, Reader), Label}, Reader) | Read]);
read(<<12, Rest/binary>>, #{time := Time} = Reader, Read) ->
    read(Rest, (new())#{time := Time}, [told(forget, all, Reader) | Read]).

told(What, About, #{time := Time}) ->
    {What, Time, About}.

process(N, #{processes := Processes}) ->
    maps:get(N, Processes).

values(Mask, Bytes) ->
    lists:foldl(
        fun
            ({Bit, Keys}, {Values, Rest0}) when Mask band Bit =/= 0 ->
                {Numbers, Rest} = integers(length(Keys), Rest0),
                {maps:merge(Values, maps:from_list(lists:zip(Keys, Numbers))), Rest};
            (_, Acc) ->
                Acc
        end,
        {#{}, Bytes},
        [
            {1, [reductions]},
            {2, [queue]},
            {4, [heap, stack_size]},
            {8, [memory]},
            {16, [minor, old_heap, bin, old_bin]}
        ]
    ).

%% The samples among records, unchanged ones too.
samples(Records) ->
    [Sample || {What, _, Sample} <- Records, What =:= sample orelse What =:= unchanged].

texts(0, Rest) ->
    {[], Rest};
texts(N, Bytes) ->
    {Text, Rest1} = text(Bytes),
    {Texts, Rest} = texts(N - 1, Rest1),
    {[Text | Texts], Rest}.

text(Bytes) ->
    {Size, Rest0} = integer(Bytes),
    <<Text:Size/binary, Rest/binary>> = Rest0,
    {Text, Rest}.

integers(0, Rest) ->
    {[], Rest};
integers(N, Bytes) ->
    {Number, Rest1} = integer(Bytes),
    {Numbers, Rest} = integers(N - 1, Rest1),
    {[Number | Numbers], Rest}.

integer(<<0:1, N:7, Rest/binary>>) ->
    {N, Rest};
integer(<<1:1, N:7, Rest0/binary>>) ->
    {More, Rest} = integer(Rest0),
    {N + (More bsl 7), Rest}.
