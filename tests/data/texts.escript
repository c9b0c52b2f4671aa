#!/usr/bin/env escript
%% -*- coding: utf-8 -*-
%% SPDX-License-Identifier: Apache-2.0
%% Usage: texts.escript OUT.bin OUT.txt.
%% Terms, and the text of each as an identity: what include/codec/term.h says of term_text, written
%% a second time in Erlang.
main([Bin, Txt]) ->
    Cases = cases(),
    Encoded = [
        begin
            B = term_to_binary(T, O),
            <<(byte_size(B)):32, B/binary>>
        end
     || {T, O} <- Cases
    ],
    ok = file:write_file(Bin, Encoded),
    ok = file:write_file(Txt, [[text(T), $\n] || {T, _} <- Cases]).
cases() ->
    % atoms as OTP 26 sends them
    New = [{minor_version, 2}],
    % as OTP 25 does
    Old = [{minor_version, 1}],
    [
        {T, O}
     || O <- [New, Old],
        T <- [
            create,
            'Elixir.MyApp.Repo',
            {'Elixir.MyApp', all},
            'Elixir.x',
            'Elixir.',
            'Two words',
            'grün',
            '',
            "create",
            "",
            <<"delete">>,
            <<>>,
            <<"größe"/utf8>>,
            "grün",
            [8364, 960, 128512],
            0,
            1,
            -1,
            255,
            256,
            -2147483648,
            2147483647,
            {},
            {get},
            {get, item},
            {shop, "checkout", <<"v2">>, 17},
            {[8364], "tail", b},
            {[8364, 960], x},
            lists:duplicate(300, $a),
            {"", "", ""},
            {1, -7, 300}
        ]
    ] ++
        [{list_to_atom(lists:duplicate(255, $q)), New}].
text(T) when is_tuple(T) -> lists:join($_, [element_text(E) || E <- tuple_to_list(T)]);
text(T) -> element_text(T).
element_text(T) when is_atom(T) ->
    case atom_to_binary(T, utf8) of
        <<"Elixir.", C, _/bits>> = Module when C >= $A, C =< $Z ->
            binary:part(Module, 7, byte_size(Module) - 7);
        Name ->
            Name
    end;
element_text(T) when is_binary(T) -> T;
element_text(T) when is_integer(T) -> integer_to_list(T);
element_text(T) when is_list(T) -> unicode:characters_to_binary(T);
element_text(T) ->
    io_lib:format("~p", [T]).
