%% SPDX-License-Identifier: Apache-2.0
%% What is traced on the node that this runs on, on every release: from OTP 27 on kprof traces in a
%% session of its own.
-module(scenario_trace).

-export([info/2, sessions/0, left/0]).

%% What erlang:trace_info tells, of kprof's session where there is one.
-spec info(pid() | new | mfa(), atom()) -> {atom(), term()} | undefined.
info(What, Item) ->
    case sessions() of
        [Session] -> trace:info(Session, What, Item);
        [] -> erlang:trace_info(What, Item)
    end.

%% The trace sessions of kprof; always none before OTP 27.
-spec sessions() -> [term()].
sessions() ->
    case erlang:function_exported(trace, session_info, 1) of
        true -> [S || {kprof, _} = S <- trace:session_info(all)];
        false -> []
    end.

%% Flags that processes have without a session, and sessions of kprof.
-spec left() -> {[atom()], [term()]}.
left() ->
    {
        lists:usort(
            lists:append([
                Flags
             || P <- processes(), {flags, Flags} <- [erlang:trace_info(P, flags)]
            ])
        ),
        sessions()
    }.
