%% SPDX-License-Identifier: Apache-2.0
%% A small JSON writer (OTP has one of its own only from 27 on).
-module(shop_json).

-export([encode/1]).

-type json() :: map() | [json()] | atom() | number() | binary().

-spec encode(json()) -> iolist().
encode(Map) when is_map(Map) ->
    Pairs = [[string(key(K)), $:, encode(V)] || {K, V} <- lists:sort(maps:to_list(Map))],
    [${, lists:join($,, Pairs), $}];
encode(List) when is_list(List) ->
    [$[, lists:join($,, [encode(E) || E <- List]), $]];
encode(Bool) when is_boolean(Bool) ->
    [atom_to_binary(Bool, utf8)];
encode(Atom) when is_atom(Atom) ->
    string(atom_to_binary(Atom, utf8));
encode(Int) when is_integer(Int) ->
    [integer_to_binary(Int)];
encode(Float) when is_float(Float) ->
    [float_to_binary(Float, [{decimals, 3}])];
encode(Bin) when is_binary(Bin) ->
    string(Bin).

key(Atom) when is_atom(Atom) -> atom_to_binary(Atom, utf8);
key(Bin) when is_binary(Bin) -> Bin.

string(Bin) ->
    [$", [escape(C) || <<C>> <= Bin], $"].

%% Bytes above 126 leave as they are: the text is taken for UTF-8.
escape($") -> "\\\"";
escape($\\) -> "\\\\";
escape(C) when C < 32 -> io_lib:format("\\u~4.16.0b", [C]);
escape(C) -> C.
