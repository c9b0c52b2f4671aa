%% SPDX-License-Identifier: Apache-2.0
%% Tracing, as seen by the application: request/3 marks one request, start/0 and stop/0 switch dbg
%% on and off. Modes none and kprof are the same here, since kprof is loaded from outside: a request
%% goes through kprof:do_apply/3 whenever that function is there. Mode dbg marks requests by itself
%% and lets dbg write what trace-port readers can replay.
-module(shop_trace).

-export([request/3, start/0, stop/0]).

-spec request(module(), atom(), [term()]) -> term().
request(Module, Function, Args) ->
    case persistent_term:get(?MODULE) of
        dbg ->
            marked(Module, Function, Args);
        off ->
            case erlang:function_exported(kprof, do_apply, 3) of
                true -> kprof:do_apply(Module, Function, Args);
                false -> apply(Module, Function, Args)
            end
    end.

marked(Module, Function, Args) ->
    seq_trace:set_token(label, erlang:unique_integer([positive])),
    try
        apply(Module, Function, Args)
    after
        seq_trace:set_token([])
    end.

-spec start() -> ok.
start() ->
    case application:get_env(shop, trace, none) of
        dbg ->
            {ok, File} = application:get_env(shop, capture),
            start_dbg(File);
        Mode when Mode =:= none; Mode =:= kprof ->
            persistent_term:put(?MODULE, off)
    end.

start_dbg(File) ->
    {ok, _} = dbg:tracer(port, dbg:trace_port(file, File)),
    Spec = [{'_', [{is_seq_trace}], [{message, {get_seq_token}}, {exception_trace}]}],
    [{ok, [_ | _]} = dbg:tpl(M, F, A, Spec) || {_Tier, {M, F, A}} <- shop_truth:tiers()],
    {ok, _} = dbg:p(all, [call, arity, monotonic_timestamp]),
    persistent_term:put(?MODULE, dbg).

%% Flags off first, then a round trip through the port: it queues behind the trace messages, so
%% when it is back they have all been written, and closing cannot cut the last one.
-spec stop() -> ok.
stop() ->
    case persistent_term:get(?MODULE, off) of
        dbg ->
            persistent_term:put(?MODULE, off),
            {ok, _} = dbg:p(all, clear),
            [{ok, _} = dbg:ctpl(M, F, A) || {_Tier, {M, F, A}} <- shop_truth:tiers()],
            _ = dbg:flush_trace_port(),
            _ = dbg:stop(),
            ok;
        off ->
            ok
    end.
