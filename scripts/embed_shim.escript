#!/usr/bin/env escript
%% SPDX-License-Identifier: Apache-2.0
%% Writes the shim as a C file, so that the kprof tool can bring it into nodes without any Erlang of
%% its own: terms in external format.
%%   shim_modules  what kprof_visit:modules/1 gives
%%   shim_app      what kprof_visit:application/1 gives
%%   shim_enter_expr, shim_leave_expr   what erl_eval has to evaluate, see kprof_visit:expression/2
%% Usage: embed_shim.escript EBIN-FOLDER OUT.c
-mode(compile).

main([Ebin, Out]) ->
    [
        {module, M} = code:load_abs(filename:join(Ebin, atom_to_list(M)))
     || M <- [kprof_app, kprof_library, kprof_visit]
    ],
    Visit = filename:join(Ebin, "kprof_visit"),
    ok = file:write_file(Out, [
        "#include \"shim_bytes.h\"\n",
        bytes(modules, kprof_visit:modules(Ebin)),
        bytes(app, kprof_visit:application(Ebin)),
        bytes(enter_expr, kprof_visit:expression(enter, Visit)),
        bytes(leave_expr, kprof_visit:expression(leave, Visit))
    ]);
main(_) ->
    io:put_chars(standard_error, "usage: embed_shim.escript EBIN-FOLDER OUT.c\n"),
    halt(2).

bytes(Name, Term) ->
    <<131, Bytes/binary>> = term_to_binary(Term),
    Rows = rows(Bytes),
    io_lib:format(
        "~nstatic const unsigned char ~ts[] = {~n~ts};~nconst struct slice shim_~ts = {~ts, "
        "sizeof ~ts};~n",
        [Name, Rows, Name, Name, Name]
    ).

rows(<<Row:32/binary, Rest/binary>>) -> [row(Row) | rows(Rest)];
rows(Row) -> [row(Row)].

row(Row) -> [[[integer_to_list(Byte), $,] || <<Byte>> <= Row], $\n].
