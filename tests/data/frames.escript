#!/usr/bin/env escript
%% SPDX-License-Identifier: Apache-2.0
%% Usage: frames.escript CAPTURE OUT. Writes one line a frame, found with the VM's own decoder:
%% "term SIZE ARITY KIND", "dropped N", "empty 0".
main([In, Out]) ->
    {ok, B} = file:read_file(In),
    ok = file:write_file(Out, frames(B)).
frames(<<0, 0:32, R/binary>>) ->
    ["empty 0\n" | frames(R)];
frames(<<0, N:32, T:N/binary, R/binary>>) ->
    {Term, N} = binary_to_term(T, [used]),
    [io_lib:format("term ~b ~b ~s~n", [N, size(Term), kind(Term)]) | frames(R)];
frames(<<1, N:32, R/binary>>) ->
    [io_lib:format("dropped ~b~n", [N]) | frames(R)];
frames(<<>>) ->
    [];
frames(Rest) ->
    [io_lib:format("rest ~b~n", [byte_size(Rest)])].
kind(T) when element(1, T) =:= seq_trace -> "seq_trace";
kind(T) -> atom_to_list(element(3, T)).
