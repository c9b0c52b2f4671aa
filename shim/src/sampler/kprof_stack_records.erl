%% SPDX-License-Identifier: Apache-2.0
%% @doc What a sampler sees, as the bytes that go to the collector. Frames, stacks and processes are
%% told once and are numbers from there on. Records are never cut; they gather in batches, which go
%% one by one ({@link take/1}).
%%
%% All integers are unsigned LEB128. Numbers count from 0 in the order in which things are told.
%% ```
%%   1 frame       module, function, each as length and bytes; arity
%%   2 stack       flags (1: cut where the node cuts), count, numbers of frames, outermost first
%%   3 process     pid, name, initial call "m:f/a", application, each as length and bytes.
%%                 What is learned later is told as another process with the same pid
%%   4 time        µs since the time record before
%%   5 sample      process, status, stack + 1 (0: as before), mask, and as that says:
%%                 1: reductions since the sample before; 2: message queue length;
%%                 4: heap, stack (bytes); 8: memory (bytes);
%%                 16: minor collections since the one before, old heap, bin_vheap, bin_old_vheap
%%   6 unchanged   process, status
%%   7 unanswered  process
%%   8 held        µs that the sampler held itself back
%%   9 late        µs that it came late
%%  10 gone        process
%%  12 forget      numbers begin anew; a batch begins with it, so that what comes from there on may
%%                 be kept apart from what came before
%%  13 label       process, label of the request's token that it holds from now on; 0: of none
%% '''
%% (11 is what the collector makes of 13: the request's identity.)
%%
%% The tables are bounded: when one is full ({@link is_full/1}) it is {@link forget/1} that goes on.
-module(kprof_stack_records).

-export([new/1, cut_at/2, is_full/1, forget/1, take/1, close/1, is_waiting/1]).
-export([time/2, stack/2, process/2, sample/5, unchanged/3, unanswered/2, gone/2, held/2, late/2]).
-export([label/3]).

-export_type([records/0, described/0, number_of/0, values/0, status/0, label/0]).

%% No record is longer than 4 KB, names being 255 letters at most: a batch stays below 24 KiB.
-define(BATCH, 20000).
-define(TEXT, 255).
%% The collector takes 10,000, 20,000 and 5,000. Who tells looks whether a table is full after 16
%% answers at most, each of 64 new frames at most.
-define(MOST_FRAMES, 8900).
-define(MOST_STACKS, 19900).
-define(MOST_PROCESSES, 4900).

-record(r, {
    frames = #{} :: #{mfa() => number_of()},
    % the bytes of a stack's record without its first one
    stacks = #{} :: #{binary() => number_of()},
    processes = 0 :: number_of(),
    % frames: so many has a stack that is cut
    cut = 64 :: pos_integer(),
    % native; and µs since then as of the last time record
    began :: integer(),
    time = 0 :: non_neg_integer(),
    out = <<>> :: binary(),
    % finished ones, the first one last
    batches = [] :: [binary()]
}).
-opaque records() :: #r{}.
-type number_of() :: non_neg_integer().
-type described() :: {
    Pid :: pid(), Name :: binary(), Initial :: binary(), Application :: binary()
}.
-type status() ::
    running | runnable | waiting | garbage_collecting | exiting | suspended | atom().
-type values() :: #{
    reductions => non_neg_integer(),
    queue => non_neg_integer(),
    heap => {Heap :: non_neg_integer(), Stack :: non_neg_integer()},
    memory => non_neg_integer(),
    collected => {Minor :: integer(), OldHeap :: integer(), Bin :: integer(), OldBin :: integer()},
    % not part of a sample
    label => label()
}.
%% Sizes in bytes.
-type label() :: kprof_slots:label() | 0.

%% @doc Nothing has been told. Times count from `Began', in native units.
-spec new(integer()) -> records().
new(Began) ->
    #r{began = Began}.

%% @doc Stacks that come are cut at so many frames, not at 64.
-spec cut_at(pos_integer(), records()) -> records().
cut_at(Frames, R) ->
    R#r{cut = Frames}.

%% @doc Whether a table has no room for more.
-spec is_full(records()) -> boolean().
is_full(#r{frames = Frames, stacks = Stacks, processes = Processes}) ->
    map_size(Frames) > ?MOST_FRAMES orelse map_size(Stacks) > ?MOST_STACKS orelse
        Processes > ?MOST_PROCESSES.

%% @doc All numbers begin anew, with another batch, and what was last told of processes is
%% forgotten.
-spec forget(records()) -> records().
forget(#r{out = <<>>} = R) -> R#r{out = <<12>>, frames = #{}, stacks = #{}, processes = 0};
forget(R) -> forget(close(R)).

%% @doc The first batch that is finished.
-spec take(records()) -> {binary(), records()} | none.
take(#r{batches = []}) ->
    none;
take(#r{batches = Batches} = R) ->
    First = lists:last(Batches),
    {First, R#r{batches = lists:droplast(Batches)}}.

%% @doc Whether one is finished and has not been taken.
-spec is_waiting(records()) -> boolean().
is_waiting(#r{batches = Batches}) ->
    Batches =/= [].

%% @doc Finishes a batch, be it empty.
-spec close(records()) -> records().
close(#r{out = Out, batches = Batches} = R) ->
    R#r{out = <<>>, batches = [Out | Batches]}.

put_out(Out, R) when byte_size(Out) < ?BATCH -> R#r{out = Out};
put_out(Out, R) -> close(R#r{out = Out}).

%% --- what is told once ---

%% @doc The number of a stack, which is told where it is new. Frames as `current_stacktrace' has
%% them, the innermost first, without places.
-spec stack([mfa()], records()) -> {number_of(), records()}.
stack(Frames, R0) ->
    {Numbers, Count, R} = frames(Frames, R0),
    Flags =
        if
            Count >= R#r.cut -> 1;
            true -> 0
        end,
    Key = <<Flags, (number(Count))/binary, Numbers/binary>>,
    case R#r.stacks of
        #{Key := N} ->
            {N, R};
        Stacks ->
            N = map_size(Stacks),
            #r{out = Out} = R,
            {N, put_out(<<Out/binary, 2, Key/binary>>, R#r{stacks = Stacks#{Key => N}})}
    end.

%% The outermost first: the last of them are written before the others.
frames([], R) ->
    {<<>>, 0, R};
frames([Frame | Outer], R0) ->
    {Numbers, Count, R1} = frames(Outer, R0),
    {N, R} = frame(Frame, R1),
    {varint(N, Numbers), Count + 1, R}.

frame(Frame, #r{frames = Frames} = R) ->
    case Frames of
        #{Frame := N} ->
            {N, R};
        _ ->
            {M, F, A} = Frame,
            N = map_size(Frames),
            #r{out = Out} = R,
            Named = text(atom_to_binary(F, utf8), text(atom_to_binary(M, utf8), <<Out/binary, 1>>)),
            {N, put_out(varint(A, Named), R#r{frames = Frames#{Frame => N}})}
    end.

%% @doc Tells a process; its number.
-spec process(described(), records()) -> {number_of(), records()}.
process({Pid, Name, Initial, Application}, #r{processes = N, out = Out} = R) ->
    Texts = [list_to_binary(pid_to_list(Pid)), Name, Initial, Application],
    Told = lists:foldl(fun(T, To) -> text(cut(T), To) end, <<Out/binary, 3>>, Texts),
    {N, put_out(Told, R#r{processes = N + 1})}.

cut(Text) ->
    case string:length(Text) > ?TEXT of
        true -> unicode:characters_to_binary(string:slice(Text, 0, ?TEXT));
        false -> Text
    end.

%% --- what is seen ---

%% @doc What follows is of that time, in native units. A time before the last one counts as that.
-spec time(integer(), records()) -> records().
time(At, #r{began = Began, time = Before, out = Out} = R) ->
    case erlang:convert_time_unit(At - Began, native, microsecond) of
        Us when Us > Before -> put_out(varint(Us - Before, <<Out/binary, 4>>), R#r{time = Us});
        _ -> R
    end.

%% @doc A sample of a process; `same': its stack is that of its sample before.
-spec sample(number_of(), status(), same | number_of(), values(), records()) -> records().
sample(Process, Status, Stack, Values, #r{out = Out} = R) ->
    Number =
        case Stack of
            same -> 0;
            _ -> Stack + 1
        end,
    Head = varint(Number, <<(varint(Process, <<Out/binary, 5>>))/binary, (status(Status))>>),
    {Mask, Bytes} = lists:foldl(
        fun({Key, Bit}, {Mask0, Bytes0}) ->
            case Values of
                #{Key := V} -> {Mask0 bor Bit, value(V, Bytes0)};
                _ -> {Mask0, Bytes0}
            end
        end,
        {0, <<>>},
        [{reductions, 1}, {queue, 2}, {heap, 4}, {memory, 8}, {collected, 16}]
    ),
    put_out(<<Head/binary, Mask, Bytes/binary>>, R).

value(N, To) when is_integer(N) -> varint(max(0, N), To);
value(Tuple, To) -> lists:foldl(fun value/2, To, tuple_to_list(Tuple)).

%% @doc Its reductions stood still.
-spec unchanged(number_of(), status(), records()) -> records().
unchanged(Process, Status, #r{out = Out} = R) ->
    put_out(<<(varint(Process, <<Out/binary, 6>>))/binary, (status(Status))>>, R).

%% @doc It did not answer in time.
-spec unanswered(number_of(), records()) -> records().
unanswered(Process, #r{out = Out} = R) ->
    put_out(varint(Process, <<Out/binary, 7>>), R).

%% @doc The sampler held itself back for so many µs.
-spec held(pos_integer(), records()) -> records().
held(Us, #r{out = Out} = R) ->
    put_out(varint(Us, <<Out/binary, 8>>), R).

%% @doc It came so many µs late.
-spec late(pos_integer(), records()) -> records().
late(Us, #r{out = Out} = R) ->
    put_out(varint(Us, <<Out/binary, 9>>), R).

%% @doc It has ended.
-spec gone(number_of(), records()) -> records().
gone(Process, #r{out = Out} = R) ->
    put_out(varint(Process, <<Out/binary, 10>>), R).

%% @doc The token that it holds from now on is of the request of this label; 0: of none.
-spec label(number_of(), label(), records()) -> records().
label(Process, Label, #r{out = Out} = R) ->
    put_out(varint(Label, varint(Process, <<Out/binary, 13>>)), R).

status(running) -> 0;
status(runnable) -> 1;
status(waiting) -> 2;
status(garbage_collecting) -> 3;
status(exiting) -> 4;
status(suspended) -> 5;
status(_) -> 6.

%% --- bytes ---

text(Text, To) ->
    <<(varint(byte_size(Text), To))/binary, Text/binary>>.

number(N) ->
    varint(N, <<>>).

varint(N, To) when N < 128 -> <<To/binary, N>>;
varint(N, To) -> varint(N bsr 7, <<To/binary, 1:1, N:7>>).
