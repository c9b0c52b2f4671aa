%% SPDX-License-Identifier: Apache-2.0
%% Other tools that trace the node that kprof traces: dbg, who sets and clears for the whole node,
%% and from OTP 27 on somebody with a trace session, as another kprof is.
-module(scenario_beside).

-export([
    sessions/0, dbg_on/0, dbg_off/0, begin_churn/0, end_churn/0, new_traced/0, one_traced/0, stop/1
]).

-define(MFA, {shop_http, handle_request, 2}).

%% Whether this release has trace sessions.
-spec sessions() -> boolean().
sessions() -> list_to_integer(erlang:system_info(otp_release)) >= 27.

%% dbg traces all processes and a function that is a tier; its messages are counted.
-spec dbg_on() -> ok.
dbg_on() ->
    Count = counters:new(1, []),
    persistent_term:put(?MODULE, Count),
    {ok, _} = dbg:tracer(process, {fun(_, _) -> counters:add(Count, 1, 1) end, ok}),
    {ok, _} = dbg:p(all, [c]),
    {M, F, A} = ?MFA,
    {ok, _} = dbg:tpl(M, F, A, [{'_', [], [{return_trace}]}]),
    ok.

%% And clears all that there is on the node, as dbg and recon do. How many messages it got.
-spec dbg_off() -> non_neg_integer().
dbg_off() ->
    _ = dbg:stop(),
    _ = erlang:trace(all, false, [all]),
    _ = erlang:trace_pattern({'_', '_', '_'}, false, [local]),
    _ = erlang:trace_pattern({'_', '_', '_'}, false, []),
    _ = erlang:trace_pattern({'_', '_', '_'}, false, [meta]),
    Count = persistent_term:get(?MODULE),
    _ = persistent_term:erase(?MODULE),
    counters:get(Count, 1).

%% Both, again and again, until end_churn/0.
-spec begin_churn() -> ok.
begin_churn() ->
    true = register(churn, spawn(fun() -> churn([]) end)),
    ok.

%% The messages that dbg got and those of the other session.
-spec end_churn() -> [non_neg_integer()].
end_churn() ->
    churn ! {stop, self()},
    receive
        {churned, Counts} -> Counts
    end.

churn(Rounds) ->
    receive
        {stop, From} ->
            {Dbg, Other} = lists:unzip(Rounds),
            From ! {churned, [lists:sum(Dbg), lists:sum(Other)]}
    after 0 -> churn([round() | Rounds])
    end.

round() ->
    ok = dbg_on(),
    Count = counters:new(1, []),
    Tracer = spawn(fun() -> counted(Count) end),
    Session = trace:session_create(scenario, Tracer, []),
    _ = trace:process(Session, all, true, [call]),
    1 = trace:function(Session, ?MFA, [{'_', [], [{exception_trace}]}], [local]),
    timer:sleep(400),
    Dbg = dbg_off(),
    timer:sleep(200),
    true = trace:session_destroy(Session),
    exit(Tracer, kill),
    {Dbg, counters:get(Count, 1)}.

counted(Count) ->
    receive
        _ ->
            counters:add(Count, 1, 1),
            counted(Count)
    end.

%% Somebody traces new processes, or one; until stop/1.
-spec new_traced() -> pid().
new_traced() -> tracer(new).
-spec one_traced() -> pid().
one_traced() -> tracer(whereis(kernel_sup)).

tracer(What) ->
    Tracer = spawn(fun() ->
        receive
            stop -> ok
        end
    end),
    _ = erlang:trace(What, true, [call, {tracer, Tracer}]),
    Tracer.

-spec stop(pid()) -> ok.
stop(Tracer) ->
    _ = erlang:trace(all, false, [all]),
    Tracer ! stop,
    ok.
