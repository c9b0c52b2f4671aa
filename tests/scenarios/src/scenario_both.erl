%% SPDX-License-Identifier: Apache-2.0
%% A second trace of what kprof traces, to a trace port, in a trace session of its own: from OTP 27
%% on. The port writes a file, as dbg's do.
-module(scenario_both).

-export([begins/2, ends/0]).

%% Each function of the modules that kprof has a pattern on gets the same one. Returns how many.
begins(File, Modules) ->
    Self = self(),
    Pid = spawn(fun() ->
        true = register(?MODULE, self()),
        [Of] = [Weak || {kprof, _} = Weak <- trace:session_info(all)],
        Port = (dbg:trace_port(file, File))(),
        Session = trace:session_create(?MODULE, Port, []),
        Patterns = [
            {MFA, Spec}
         || M <- Modules,
            {F, A} <- M:module_info(functions),
            MFA <- [{M, F, A}],
            {match_spec, Spec} <- [trace:info(Of, MFA, match_spec)],
            is_list(Spec)
        ],
        [1 = trace:function(Session, MFA, Spec, [local]) || {MFA, Spec} <- Patterns],
        _ = trace:process(Session, all, true, [call, arity, monotonic_timestamp]),
        Self ! {self(), length(Patterns)},
        receive
            {ends, From} ->
                true = trace:session_destroy(Session),
                _ = erlang:port_control(Port, $f, ""),
                true = port_close(Port),
                From ! {self(), ok}
        end
    end),
    answer(Pid).

%% All that it has traced is in the file then.
ends() ->
    Pid = whereis(?MODULE),
    Pid ! {ends, self()},
    answer(Pid).

answer(Pid) ->
    receive
        {Pid, Answer} -> Answer
    after 20000 -> timeout
    end.
