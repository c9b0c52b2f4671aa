#!/usr/bin/env escript
%% SPDX-License-Identifier: Apache-2.0
%% Usage: messages.escript CAPTURE OUT. Writes what the VM's own decoder finds in each message, one
%% line a message:
%%   other
%%   call|return|exception PID M F ARITY TIME TOKEN FROM NOTE CALLER
%%   return_to PID TIME TARGET
%%   gc_start|gc_end|out|in|exited PID TIME
%% PID is ID.SERIAL. TIME is mNUMBER (monotonic), wNUMBER (ns since 1970) or -. TOKEN counts the
%% labels in the order of their first appearance, - for none; FROM is a pid, "remote" or "port".
%% NOTE is "identity" or "arguments", or -. CALLER and TARGET count the functions that control goes
%% back to in the same way, with the labels; CALLER is - where the return has a value.
-mode(compile).
main([In, Out]) ->
    {ok, B} = file:read_file(In),
    {Lines, _} = lists:mapfoldl(fun line/2, [], frames(B)),
    ok = file:write_file(Out, Lines).

frames(<<0, N:32, T:N/binary, R/binary>>) when N > 0 -> [binary_to_term(T) | frames(R)];
frames(<<_, _:32, R/binary>>) -> frames(R);
frames(<<>>) -> [].

line(T, Labels) when element(1, T) =:= trace_ts, is_pid(element(2, T)) ->
    [_, P, K | Rest] = tuple_to_list(T),
    line(P, K, lists:droplast(Rest), time(lists:last(Rest)), Labels);
line(T, Labels) when element(1, T) =:= trace, is_pid(element(2, T)) ->
    [_, P, K | Rest] = tuple_to_list(T),
    line(P, K, Rest, "-", Labels);
line(_, Labels) ->
    {"other\n", Labels}.

line(P, call, [MFA | Notes], Time, Labels) ->
    {Token, Note} = note(Notes),
    {Text, Some} = token(P, Token, Labels),
    {Caller, More} =
        case Notes of
            [{_, To, _, none}] -> number({to, To}, Some);
            [{_, To, ask, _, none}] -> number({to, To}, Some);
            _ -> {"-", Some}
        end,
    {[["call ", pid(P), mfa(MFA), Time, Text, Note, " ", Caller], $\n], More};
line(P, return_from, [MFA, _ | _], Time, Labels) ->
    {["return ", pid(P), mfa(MFA), Time, " - - - -\n"], Labels};
line(P, exception_from, [MFA, _ | _], Time, Labels) ->
    {["exception ", pid(P), mfa(MFA), Time, " - - - -\n"], Labels};
line(P, return_to, [To], Time, Labels) ->
    {Target, More} = number({to, To}, Labels),
    {["return_to ", pid(P), Time, " ", Target, $\n], More};
line(P, Event, [_], Time, Labels) when Event =:= gc_minor_start; Event =:= gc_major_start ->
    {["gc_start ", pid(P), Time, $\n], Labels};
line(P, Event, [_], Time, Labels) when Event =:= gc_minor_end; Event =:= gc_major_end ->
    {["gc_end ", pid(P), Time, $\n], Labels};
line(P, out, [_], Time, Labels) ->
    {["out ", pid(P), Time, $\n], Labels};
line(P, in, [_], Time, Labels) ->
    {["in ", pid(P), Time, $\n], Labels};
line(P, out_exited, [_], Time, Labels) ->
    {["exited ", pid(P), Time, $\n], Labels};
line(_, _, _, _, Labels) ->
    {"other\n", Labels}.

numbers(P) ->
    B = term_to_binary(P),
    <<Id:32, Serial:32, Creation:32>> = binary:part(B, byte_size(B), -12),
    {node(P), Creation, Id, Serial}.
pid(P) ->
    {_, _, Id, Serial} = numbers(P),
    io_lib:format("~b.~b ", [Id, Serial]).
mfa({M, F, As}) when is_list(As) -> mfa({M, F, length(As)});
mfa({M, F, A}) -> io_lib:format("~ts ~ts ~b ", [M, F, A]).

time({Mega, S, Us}) -> io_lib:format("w~b", [((Mega * 1000000 + S) * 1000000 + Us) * 1000]);
time({T, _}) -> time(T);
time(T) -> io_lib:format("m~b", [T]).

is_token(T) ->
    is_tuple(T) andalso tuple_size(T) =:= 5 andalso is_integer(element(1, T)) andalso
        (is_pid(element(4, T)) orelse is_port(element(4, T))).
note([]) ->
    {none, " -"};
note([N | _]) when not is_tuple(N) -> {none, " -"};
note([N | _]) ->
    case {is_token(N), lists:filter(fun is_token/1, tuple_to_list(N))} of
        {true, _} ->
            {N, " -"};
        {_, []} ->
            {none, " -"};
        {_, [Token | _]} when element(1, N) =/= Token -> {Token, " -"};
        {_, [Token | _]} when tuple_size(N) =:= 2 -> {Token, " identity"};
        {_, [Token | _]} when tuple_size(N) =:= 3, element(2, N) =:= ask -> {Token, " arguments"};
        {_, [Token | _]} when tuple_size(N) =:= 4, element(4, N) =:= none -> {Token, " identity"};
        {_, [Token | _]} when tuple_size(N) =:= 5, element(3, N) =:= ask, element(5, N) =:= none ->
            {Token, " arguments"};
        {_, [Token | _]} ->
            {Token, " -"}
    end.

token(_, none, Labels) ->
    {" - -", Labels};
token(P, {_, Label, _, From, _}, Labels) ->
    {N, More} = number({label, Label}, Labels),
    {io_lib:format(" ~s ~s", [N, from(P, From)]), More}.

%% What stands for a label or a function: its place among those of its kind that have been seen.
number({Kind, _} = What, Seen) ->
    More =
        case lists:member(What, Seen) of
            true -> Seen;
            false -> Seen ++ [What]
        end,
    {
        integer_to_list(
            length([K || {K, _} <- lists:takewhile(fun(W) -> W =/= What end, More), K =:= Kind])
        ),
        More
    }.

from(_, From) when is_port(From) -> "port";
from(P, From) ->
    {Node, Creation, _, _} = numbers(P),
    case numbers(From) of
        {Node, Creation, Id, Serial} -> io_lib:format("~b.~b", [Id, Serial]);
        _ -> "remote"
    end.
