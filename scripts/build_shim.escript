#!/usr/bin/env escript
%% SPDX-License-Identifier: Apache-2.0
%% Compiles the shim, all below shim/src, into an ebin folder, with the options of
%% shim/rebar.config. What rebar3 does, without rebar3: who only wants to run kprof needs nothing
%% but Erlang and its compiler. (The shim's tests run through rebar3.)
%%
%% Usage: build_shim.escript SHIM-FOLDER EBIN-FOLDER
main([Shim, Ebin]) ->
    {ok, Config} = file:consult(filename:join(Shim, "rebar.config")),
    Options = proplists:get_value(erl_opts, Config, []),
    ok = filelib:ensure_path(Ebin),
    Sources = lists:sort(filelib:wildcard(filename:join([Shim, "src", "**", "*.erl"]))),
    Modules = [
        compiled(compile:file(Source, [report, {outdir, Ebin} | Options]))
     || Source <- Sources
    ],
    {ok, [{application, Name, Keys}]} = file:consult(filename:join([Shim, "src", "kprof.app.src"])),
    %% the release that compiled them: an older one cannot load them
    Env = [
        {built_on, list_to_integer(erlang:system_info(otp_release))}
        | proplists:get_value(env, Keys, [])
    ],
    App =
        {application, Name,
            lists:keystore(
                env, 1, lists:keystore(modules, 1, Keys, {modules, Modules}), {env, Env}
            )},
    ok = file:write_file(filename:join(Ebin, "kprof.app"), io_lib:format("~tp.~n", [App]));
main(_) ->
    io:put_chars(standard_error, "usage: build_shim.escript SHIM-FOLDER EBIN-FOLDER\n"),
    halt(2).

%% The compiler has said what is wrong.
compiled({ok, Module}) -> Module;
compiled({ok, Module, _Warnings}) -> Module;
compiled(error) -> halt(1).
