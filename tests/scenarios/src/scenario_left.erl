%% SPDX-License-Identifier: Apache-2.0
%% What a node looks like to those who want to know whether something was left in it.
-module(scenario_left).

-export([prepare/0, snapshot/1, differences/1]).

%% As in a release, all modules are there from the start: what OTP loads when it is first used would
%% look like something left.
prepare() ->
    Apps = [kernel, stdlib, compiler, runtime_tools, crypto],
    % OTP starts it when it first looks for a host: for who is to be answered, say
    _ = inet_gethost_native:gethostbyname("localhost"),
    lists:foreach(
        fun(App) ->
            _ = application:load(App),
            {ok, Modules} = application:get_key(App, modules),
            lists:foreach(fun code:ensure_loaded/1, Modules)
        end,
        Apps
    ),
    ok.

%% snapshot(Name): keeps what is there under that name.
snapshot(Name) ->
    put_away(Name, take()),
    ok.

%% differences(Name): what is there and was not, and what is missing, by kind; [] when nothing is.
%% While kprof goes, its modules are purged one after the other: that is waited for.
differences(Name) ->
    {ok, [Before]} = file:consult(file(Name)),
    wait_while_purged(proplists:get_value(modules, Before), 300),
    [
        {Kind, {more, New -- Old}, {less, Old -- New}}
     || {{Kind, New}, {Kind, Old}} <- lists:zip(take(), Before), New =/= Old
    ].

wait_while_purged(_, 0) ->
    ok;
wait_while_purged(Before, Times) ->
    case is_going(Before) of
        true ->
            timer:sleep(100),
            wait_while_purged(Before, Times - 1);
        false ->
            ok
    end.

%% Whether kprof is out, but its last modules or what purges them (kprof_app:purging/0) is not.
is_going(Before) ->
    code:is_loaded(kprof) =:= false andalso
        (lists:any(fun is_purging/1, processes()) orelse
            lists:any(
                fun({M, _}) -> lists:prefix("kprof", atom_to_list(M)) end,
                [Loaded || {M, _} = Loaded <- code:all_loaded(), not lists:member(M, Before)]
            )).

is_purging(P) -> process_info(P, initial_call) =:= {initial_call, {erl_eval, exprs, 2}}.

put_away(Name, Term) -> ok = file:write_file(file(Name), io_lib:format("~0tp.~n", [Term])).

file(Name) -> filename:join(os:getenv("HOME"), Name ++ ".snapshot").

%% Texts only, so that what is no term on paper (pids, funs) can be kept.
take() ->
    Modules = lists:sort([M || {M, _} <- code:all_loaded()]),
    [
        {modules, Modules},
        {old_code, [M || M <- Modules, erlang:check_old_code(M)]},
        {patterns, [
            {M, F, A, text(Info)}
         || M <- Modules,
            {F, A} <- M:module_info(functions),
            Info <- [erlang:trace_info({M, F, A}, all)],
            Info =/= {all, false},
            Info =/= {all, undefined}
        ]},
        {flags,
            [
                text({who(P), Flags})
             || P <- processes(), {flags, Flags} <- [erlang:trace_info(P, flags)], Flags =/= []
            ] ++
                [text({New, erlang:trace_info(New, flags)}) || New <- [new_processes, new_ports]]},
        {trace_sessions, sessions()},
        {seq_tracer, text(seq_trace:get_system_tracer())},
        {trace_control_word, [erlang:system_info(trace_control_word)]},
        {backtrace_depth, [depth()]},
        {processes, lists:sort([text(who(P)) || P <- processes()])},
        {registered, lists:sort(registered())},
        {ports, lists:sort([text(erlang:port_info(P, name)) || P <- erlang:ports()])},
        {listeners,
            lists:sort([
                text(inet:sockname(P))
             || P <- erlang:ports(), {ok, [listen | _]} <- [prim_inet:getstatus(P)]
            ])},
        {drivers, lists:sort(element(2, erl_ddll:loaded_drivers()))},
        {persistent_terms, lists:sort([text(Key) || {Key, _} <- persistent_term:get()])},
        {tables, lists:sort([text(ets:info(T, name)) || T <- ets:all()])},
        {applications, lists:sort(application:loaded_applications())}
    ].

%% Trace sessions, which hold patterns and flags that nobody else sees; before OTP 27 there are
%% none.
sessions() ->
    case erlang:function_exported(trace, session_info, 1) of
        true -> lists:sort([text(Session) || Session <- trace:session_info(all)]);
        false -> []
    end.

%% It cannot be read without setting it.
depth() ->
    Depth = erlang:system_flag(backtrace_depth, 8),
    _ = erlang:system_flag(backtrace_depth, Depth),
    Depth.

who(P) ->
    case process_info(P, [registered_name, initial_call, dictionary]) of
        [{registered_name, Name}, {initial_call, Call}, {dictionary, D}] ->
            {Name, proplists:get_value('$initial_call', D, Call)};
        undefined ->
            gone
    end.

text(Term) -> lists:flatten(io_lib:format("~0tp", [Term])).
