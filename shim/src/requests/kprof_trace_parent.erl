%% SPDX-License-Identifier: Apache-2.0
%% @doc The header `traceparent' of W3C Trace Context: the span of somebody's trace that has asked
%% for a web request.
-module(kprof_trace_parent).

-export([read/1]).
-export_type([parent/0]).

%% The trace's id (16 bytes), the span's (8 bytes), and the flags (a byte).
-type parent() :: <<_:200>>.

% of version 00; later ones may have more behind that
-define(LENGTH, 55).
-define(SAMPLED, 1).
% that the trace's id was made at random
-define(RANDOM, 2).

%% @doc Reads the header's value, which a stranger has chosen; `undefined' for any that is not
%% valid. Of a later version it takes what this one has, as the standard wants.
-spec read(atom() | string() | binary() | undefined) -> parent() | undefined.
read(Value) ->
    try
        parts(text(Value))
    catch
        error:_ -> undefined
    end.

%% A byte more than is needed, however long it is.
text(Value) when is_list(Value) -> list_to_binary(lists:sublist(Value, ?LENGTH + 1));
text(Value) when is_binary(Value) -> Value.

parts(<<Version:2/bytes, $-, Trace:32/bytes, $-, Span:16/bytes, $-, Flags:2/bytes, More/bytes>>) ->
    true = ends(Version, More),
    <<_>> = bytes(Version),
    TraceId = bytes(Trace),
    SpanId = bytes(Span),
    <<Bits>> = bytes(Flags),
    true = TraceId =/= <<0:128>> andalso SpanId =/= <<0:64>>,
    <<TraceId/binary, SpanId/binary, (Bits band known(Version))>>.

ends(<<"ff">>, _) -> false;
ends(_, <<>>) -> true;
ends(<<"00">>, _) -> false;
ends(_, <<$-, _/binary>>) -> true;
ends(_, _) -> false.

%% Flags that a later version may have besides say something else.
known(<<"00">>) -> ?SAMPLED bor ?RANDOM;
known(_) -> ?SAMPLED.

bytes(Hex) -> <<<<(digit(C)):4>> || <<C>> <= Hex>>.

digit(C) when C >= $0, C =< $9 -> C - $0;
digit(C) when C >= $a, C =< $f -> C - $a + 10.
