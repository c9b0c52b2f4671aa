#!/usr/bin/env escript
%% SPDX-License-Identifier: Apache-2.0
%% Writes the shim as a C file, so that the kprof tool can bring it into nodes without any Erlang of
%% its own: terms in external format.
%%   shim_modules  [{Module, File, Beam}], as code:atomic_load/1 takes them; the beams carry their
%%                 abstract code
%%   shim_app      the application specification
%% shim_enter_expr, shim_leave_expr   expressions for erl_eval that call kprof_attach:enter(Me,
%%                                    Modules, App) and leave(Who) with these
%% bindings Usage: embed_shim.escript EBIN-FOLDER OUT.c
main([Ebin, Out]) ->
    {ok, [{application, kprof, _} = App]} = file:consult(filename:join(Ebin, "kprof.app")),
    {module, kprof_app} = code:load_abs(filename:join(Ebin, "kprof_app")),
    Modules = [module(Ebin, M) || M <- kprof_app:modules()],
    {_, _, Attach} = lists:keyfind(kprof_attach, 1, Modules),
    {ok, {_, [{abstract_code, {_, Forms}}]}} = beam_lib:chunks(Attach, [abstract_code]),
    ok = file:write_file(Out, [
        "#include \"shim_bytes.h\"\n",
        bytes(modules, Modules),
        bytes(app, App),
        bytes(enter_expr, call(enter, ['Me', 'Modules', 'App'], Forms)),
        bytes(leave_expr, call(leave, ['Who'], Forms))
    ]);
main(_) ->
    io:put_chars(standard_error, "usage: embed_shim.escript EBIN-FOLDER OUT.c\n"),
    halt(2).

%% The folder in the name marks modules that came from outside: kprof_node and kprof_attach look for
%% it.
module(Ebin, M) ->
    {ok, Beam} = file:read_file(filename:join(Ebin, atom_to_list(M) ++ ".beam")),
    {M, "kprof_node/" ++ atom_to_list(M) ++ ".beam", Beam}.

%% An expression that calls a function whose definition it brings along.
call(Name, Parameters, Forms) ->
    [Clauses] = [
        Clauses
     || {function, _, F, A, Clauses} <- Forms, F =:= Name, A =:= length(Parameters)
    ],
    {call, 1, {'fun', 1, {clauses, Clauses}}, [{var, 1, P} || P <- Parameters]}.

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
