%% SPDX-License-Identifier: Apache-2.0
%% @doc Writes JSON: one value, no white space, so that a row is a line.
-module(kprof_json).

-export([encode/1]).

-export_type([value/0]).

-type value() ::
    null
    | nil
    | boolean()
    | atom()
    | integer()
    | float()
    | binary()
    | [value()]
    | #{atom() | binary() => value()}.

%% @doc JSON text as UTF-8. `nil', `null' and `undefined' become null; other atoms and binaries
%% strings; bytes that are no UTF-8 become U+FFFD. The keys of objects are sorted.
-spec encode(value()) -> iodata().
encode(V) when V =:= nil; V =:= null; V =:= undefined -> <<"null">>;
encode(true) ->
    <<"true">>;
encode(false) ->
    <<"false">>;
encode(A) when is_atom(A) -> string(atom_to_binary(A, utf8));
encode(I) when is_integer(I) -> integer_to_binary(I);
encode(F) when is_float(F) -> float_to_binary(F, [short]);
encode(B) when is_binary(B) -> string(B);
encode(L) when is_list(L) -> [$[, lists:join($,, [encode(E) || E <- L]), $]];
encode(M) when is_map(M) ->
    Pairs = lists:sort([{key(K), V} || {K, V} <- maps:to_list(M)]),
    [${, lists:join($,, [[string(K), $:, encode(V)] || {K, V} <- Pairs]), $}].

key(K) when is_atom(K) -> atom_to_binary(K, utf8);
key(K) when is_binary(K) -> K.

string(B) ->
    [$", string(B, <<>>), $"].

%% bits, not binary: the test for whole bytes is an instruction of older compilers that OTP 29 does
%% not load.
string(<<>>, Acc) ->
    Acc;
string(<<$", R/bits>>, Acc) ->
    string(R, <<Acc/binary, "\\\"">>);
string(<<$\\, R/bits>>, Acc) ->
    string(R, <<Acc/binary, "\\\\">>);
string(<<$\n, R/bits>>, Acc) ->
    string(R, <<Acc/binary, "\\n">>);
string(<<C, R/bits>>, Acc) when C < 32; C =:= 127 ->
    string(R, <<Acc/binary, (iolist_to_binary(io_lib:format("\\u~4.16.0b", [C])))/binary>>);
string(<<C/utf8, R/bits>>, Acc) ->
    string(R, <<Acc/binary, C/utf8>>);
string(<<_, R/bits>>, Acc) ->
    string(R, <<Acc/binary, 16#fffd/utf8>>).
