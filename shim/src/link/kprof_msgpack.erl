%% SPDX-License-Identifier: Apache-2.0
%% @doc As much of msgpack as the control connection needs.
%%
%% ```
%%   Erlang                         msgpack
%%   integer (64 bit)               int
%%   float                          float 64
%%   true, false, nil               the same
%%   binary, other atom             str
%%   {bin, Binary}                  bin
%%   list                           array
%%   map (keys binary or atom)      map
%% '''
%% Decoding gives binaries for str, `{bin, B}' for bin and `{ext, Type, B}' for extensions. It takes
%% bytes that a stranger may have made: depth is capped, and a count is believed only as far as the
%% bytes that are there.
-module(kprof_msgpack).

-export([encode/1, decode/1]).

-export_type([value/0]).

-define(MAX_DEPTH, 16).

-type value() ::
    integer()
    | float()
    | boolean()
    | nil
    | binary()
    | {bin, binary()}
    | {ext, -128..127, binary()}
    | [value()]
    | #{value() => value()}
    | atom().

%% @doc The bytes of a value. Fails with `badarg' on what has no form in msgpack, such as integers
%% beyond 64 bits.
-spec encode(value()) -> iodata().
encode(nil) ->
    <<16#c0>>;
encode(false) ->
    <<16#c2>>;
encode(true) ->
    <<16#c3>>;
encode(A) when is_atom(A) -> encode_str(atom_to_binary(A, utf8));
encode(I) when is_integer(I) -> encode_int(I);
encode(F) when is_float(F) -> <<16#cb, F:64/float>>;
encode(B) when is_binary(B) -> encode_str(B);
encode({bin, B}) when is_binary(B) -> [head(byte_size(B), none, 16#c4, 16#c5, 16#c6), B];
encode(L) when is_list(L) ->
    [head(length(L), {16, 16#90}, none, 16#dc, 16#dd) | [encode(E) || E <- L]];
encode(M) when is_map(M) ->
    [
        head(map_size(M), {16, 16#80}, none, 16#de, 16#df)
        | maps:fold(fun(K, V, Acc) -> [encode(K), encode(V) | Acc] end, [], M)
    ];
encode(Other) ->
    error(badarg, [Other]).

encode_int(I) when I >= 0, I < 16#80 -> <<I>>;
encode_int(I) when I < 0, I >= -32 -> <<I:8/signed>>;
encode_int(I) when I >= 0, I =< 16#ff -> <<16#cc, I>>;
encode_int(I) when I >= 0, I =< 16#ffff -> <<16#cd, I:16>>;
encode_int(I) when I >= 0, I =< 16#ffffffff -> <<16#ce, I:32>>;
encode_int(I) when I >= 0, I =< 16#ffffffffffffffff -> <<16#cf, I:64>>;
encode_int(I) when I < 0, I >= -16#80 -> <<16#d0, I:8/signed>>;
encode_int(I) when I < 0, I >= -16#8000 -> <<16#d1, I:16/signed>>;
encode_int(I) when I < 0, I >= -16#80000000 -> <<16#d2, I:32/signed>>;
encode_int(I) when I < 0, I >= -16#8000000000000000 -> <<16#d3, I:64/signed>>;
encode_int(I) -> error(badarg, [I]).

encode_str(B) ->
    [head(byte_size(B), {32, 16#a0}, 16#d9, 16#da, 16#db), B].

%% The shortest head for N elements or bytes: in the tag itself, or followed by 8, 16 or 32 bits.
head(N, {Limit, Tag}, _, _, _) when N < Limit -> <<(Tag bor N)>>;
head(N, _, Tag, _, _) when is_integer(Tag), N =< 16#ff -> <<Tag, N>>;
head(N, _, _, Tag, _) when N =< 16#ffff -> <<Tag, N:16>>;
head(N, _, _, _, Tag) when N =< 16#ffffffff -> <<Tag, N:32>>.

%% @doc Decodes exactly one value. Errors: `truncated', `too_deep', `trailing' (bytes after the
%% value), `bad_tag'. A float that is no number (NaN, infinity) decodes to `nil'.
-spec decode(binary()) -> {ok, value()} | {error, truncated | too_deep | trailing | bad_tag}.
decode(Bin) when is_binary(Bin) ->
    try value(Bin, ?MAX_DEPTH) of
        {Value, <<>>} -> {ok, Value};
        {_, _} -> {error, trailing}
    catch
        throw:Reason -> {error, Reason}
    end.

value(<<T, R/binary>>, _) when T < 16#80 -> {T, R};
value(<<T, R/binary>>, D) when T < 16#90 -> map(T band 15, R, D);
value(<<T, R/binary>>, D) when T < 16#a0 -> array(T band 15, R, D);
value(<<T, R/binary>>, _) when T < 16#c0 -> bytes(T band 31, R);
value(<<T, R/binary>>, _) when T >= 16#e0 -> {T - 256, R};
value(<<16#c0, R/binary>>, _) -> {nil, R};
value(<<16#c1, _/binary>>, _) -> throw(bad_tag);
value(<<16#c2, R/binary>>, _) -> {false, R};
value(<<16#c3, R/binary>>, _) -> {true, R};
value(<<16#c4, N:8, R/binary>>, _) -> bin(N, R);
value(<<16#c5, N:16, R/binary>>, _) -> bin(N, R);
value(<<16#c6, N:32, R/binary>>, _) -> bin(N, R);
value(<<16#c7, N:8, R/binary>>, _) -> ext(N, R);
value(<<16#c8, N:16, R/binary>>, _) -> ext(N, R);
value(<<16#c9, N:32, R/binary>>, _) -> ext(N, R);
value(<<16#ca, F:32/float, R/binary>>, _) -> {F, R};
value(<<16#ca, _:32, R/binary>>, _) -> {nil, R};
value(<<16#cb, F:64/float, R/binary>>, _) -> {F, R};
value(<<16#cb, _:64, R/binary>>, _) -> {nil, R};
value(<<16#cc, I:8, R/binary>>, _) -> {I, R};
value(<<16#cd, I:16, R/binary>>, _) -> {I, R};
value(<<16#ce, I:32, R/binary>>, _) -> {I, R};
value(<<16#cf, I:64, R/binary>>, _) -> {I, R};
value(<<16#d0, I:8/signed, R/binary>>, _) -> {I, R};
value(<<16#d1, I:16/signed, R/binary>>, _) -> {I, R};
value(<<16#d2, I:32/signed, R/binary>>, _) -> {I, R};
value(<<16#d3, I:64/signed, R/binary>>, _) -> {I, R};
value(<<16#d4, R/binary>>, _) -> ext(1, R);
value(<<16#d5, R/binary>>, _) -> ext(2, R);
value(<<16#d6, R/binary>>, _) -> ext(4, R);
value(<<16#d7, R/binary>>, _) -> ext(8, R);
value(<<16#d8, R/binary>>, _) -> ext(16, R);
value(<<16#d9, N:8, R/binary>>, _) -> bytes(N, R);
value(<<16#da, N:16, R/binary>>, _) -> bytes(N, R);
value(<<16#db, N:32, R/binary>>, _) -> bytes(N, R);
value(<<16#dc, N:16, R/binary>>, D) -> array(N, R, D);
value(<<16#dd, N:32, R/binary>>, D) -> array(N, R, D);
value(<<16#de, N:16, R/binary>>, D) -> map(N, R, D);
value(<<16#df, N:32, R/binary>>, D) -> map(N, R, D);
value(_, _) -> throw(truncated).

bytes(N, Bin) ->
    case Bin of
        <<B:N/binary, R/binary>> -> {B, R};
        _ -> throw(truncated)
    end.

bin(N, Bin) ->
    {B, R} = bytes(N, Bin),
    {{bin, B}, R}.

ext(N, <<Type:8/signed, Bin/binary>>) ->
    {B, R} = bytes(N, Bin),
    {{ext, Type, B}, R};
ext(_, _) ->
    throw(truncated).

array(_, _, 0) -> throw(too_deep);
array(N, Bin, _) when N > byte_size(Bin) -> throw(truncated);
array(N, Bin, D) -> array(N, Bin, D - 1, []).

array(0, Bin, _, Acc) ->
    {lists:reverse(Acc), Bin};
array(N, Bin, D, Acc) ->
    {V, R} = value(Bin, D),
    array(N - 1, R, D, [V | Acc]).

map(_, _, 0) -> throw(too_deep);
map(N, Bin, _) when 2 * N > byte_size(Bin) -> throw(truncated);
map(N, Bin, D) -> map(N, Bin, D - 1, []).

map(0, Bin, _, Acc) ->
    {maps:from_list(lists:reverse(Acc)), Bin};
map(N, Bin, D, Acc) ->
    {K, R1} = value(Bin, D),
    {V, R2} = value(R1, D),
    map(N - 1, R2, D, [{K, V} | Acc]).
