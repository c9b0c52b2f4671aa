%% SPDX-License-Identifier: Apache-2.0
%% @doc The application's life: what it puts into the node when it starts, and how it leaves without
%% a trace.
-module(kprof_app).
-behaviour(application).

-export([start/2, stop/1, modules/0, unload/0, unload/1]).
-export([purging/0]).

% for kprof_life and the guard to undo everything
-define(END_MS, 10000).
-define(TURN_MS, 20).
-define(TURNS, 1000).
% for what a thread does in the native tracer, some microseconds, at most
-define(NATIVE_MS, 200).

%% @private
-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_Type, _Args) ->
    _ = kprof_slots:create(),
    _ = ets:new(kprof_guard, [named_table, public, set]),
    case kprof_sup:start_link() of
        {ok, Pid} ->
            {ok, Pid};
        Error ->
            _ = kprof_slots:erase(),
            {error, Error}
    end.

%% @private
-spec stop(term()) -> ok.
stop(_State) ->
    case kprof_slots:find() of
        undefined -> ok;
        Slots -> kprof_slots:close(Slots)
    end,
    lists:foreach(fun wait_for_end/1, [kprof_life, kprof_guard]),
    Leaving = kprof_guard:undo_left(),
    _ = kprof_slots:erase(),
    _ = Leaving =:= unload andalso leave(),
    ok.

%% Where the supervisor was killed both still undo what was set, and all processes that have this
%% one's group leader are killed next.
wait_for_end(Name) ->
    Ref = erlang:monitor(process, Name),
    receive
        {'DOWN', Ref, process, _, _} -> ok
    after ?END_MS -> erlang:demonitor(Ref, [flush])
    end.

%% The supervisor has died, and the guard with it, before who brought kprof has taken it out.
leave() ->
    Pid = spawn(fun() ->
        receive
            % whoever comes before takes over what is there
            go -> unload(undefined)
        end
    end),
    true = group_leader(whereis(init), Pid),
    Pid ! go.

%% @doc The modules of the shim, as a target gets them. The web servers' helpers are not among them:
%% they are the application's that is configured with them, which may not miss them, and come and go
%% with it. Nor is {@link kprof_node}, which runs on a node of its own.
-spec modules() -> [module()].
modules() ->
    [
        kprof,
        kprof_app,
        kprof_armed,
        kprof_arming,
        kprof_asker,
        kprof_asks,
        kprof_attach,
        kprof_auth,
        kprof_busiest,
        kprof_caller,
        kprof_control,
        kprof_depth,
        kprof_described,
        kprof_elixir,
        kprof_entry,
        kprof_error,
        kprof_flame,
        kprof_flame_header,
        kprof_full,
        kprof_full_relay,
        kprof_full_traces,
        kprof_guard,
        kprof_identify,
        kprof_json,
        kprof_label,
        kprof_ledger,
        kprof_library,
        kprof_link,
        kprof_load,
        kprof_lookout,
        kprof_mark,
        kprof_match,
        kprof_mfa,
        kprof_misultin,
        kprof_msgpack,
        kprof_native,
        kprof_nearest,
        kprof_option_map,
        kprof_options,
        kprof_outlet,
        kprof_outlets,
        kprof_printer,
        kprof_processes,
        kprof_protocol,
        kprof_questions,
        kprof_queues,
        kprof_random,
        kprof_relay,
        kprof_sample,
        kprof_sample_budget,
        kprof_sample_choice,
        kprof_sample_cost,
        kprof_sample_options,
        kprof_sample_volume,
        kprof_sampled,
        kprof_sampler,
        kprof_sampler_clock,
        kprof_sampler_loop,
        kprof_sampler_pace,
        kprof_sampling,
        kprof_life,
        kprof_slots,
        kprof_slow,
        kprof_stack_records,
        kprof_stacks,
        kprof_stale,
        kprof_suggest,
        kprof_suggest_facts,
        kprof_suggest_identity,
        kprof_suggest_rules,
        kprof_suggest_servers,
        kprof_suggest_stacks,
        kprof_sup,
        kprof_telling,
        kprof_tiers,
        kprof_tls,
        kprof_token,
        kprof_trace,
        kprof_trace_parent,
        kprof_tracer,
        kprof_trigger,
        kprof_trigger_options,
        kprof_triggers,
        kprof_unmarked,
        kprof_upkeep,
        kprof_vm,
        kprof_watch,
        kprof_web
    ].

%% @doc Stops the application, then deletes and purges its modules. The last step is done by a
%% process that runs code of the standard library only: one that runs ours would be in its own way.
%% What is still used, by a long request in {@link kprof:do_apply/3} say, is left until it is not.
%%
%% Who comes and who goes take turns ({@link kprof_visit:enter/8}): the modules that are deleted
%% must not be those that somebody has just brought. Who does not get its turn for 20 s goes all the
%% same.
-spec unload() -> ok.
unload() ->
    Mine = my_turn(?TURNS),
    try
        take_out()
    after
        Mine andalso done()
    end.

my_turn(0) ->
    false;
my_turn(N) ->
    is_my_turn() orelse
        begin
            timer:sleep(?TURN_MS),
            my_turn(N - 1)
        end.

is_my_turn() -> global:set_lock({?MODULE, self()}, [node()], 0).
done() -> global:del_lock({?MODULE, self()}, [node()]).

%% @doc The same, while `Sup' is the application's supervisor still; undefined: while there is none.
%% Who comes meanwhile takes it out or over by itself.
-spec unload(pid() | undefined) -> ok.
unload(Sup) ->
    case whereis(kprof_sup) =:= Sup andalso is_my_turn() of
        true ->
            try whereis(kprof_sup) =:= Sup andalso take_out() of
                _ -> ok
            after
                done()
            end;
        false ->
            case whereis(kprof_sup) of
                Sup ->
                    timer:sleep(?TURN_MS),
                    unload(Sup);
                _ ->
                    ok
            end
    end.

take_out() ->
    %% stopping an application kills every process that has its group leader, and the guard's
    %% children do
    true = group_leader(whereis(init), self()),
    %% nobody else has to take it out
    _ =
        try
            ets:delete(kprof_guard, attended)
        catch
            % it is stopped already
            error:badarg -> ok
        end,
    _ = application:stop(kprof),
    _ = application:unload(kprof),
    Modules = [M || M <- modules(), code:is_loaded(M) =/= false],
    Native =
        case kprof_native:is_loaded() of
            true -> ?NATIVE_MS;
            false -> 0
        end,
    % another may do the same at this time
    lists:foreach(fun(M) -> code:soft_purge(M) andalso code:delete(M) end, Modules),
    _ = spawn(erl_eval, exprs, [purging(), [{'Modules', Modules}, {'Native', Native}]]),
    ok.

%% @private
%% What purges `Modules', in `Native' ms: a library goes with its module, and the VM does not wait
%% for what its threads for dirty work do in there. For each module the VM has every process of the
%% node look whether it uses that: 0.2 s of processor time where there are 100,000, at priority
%% high, in which the node's own processes hardly run. So it gives way after each.
-spec purging() -> [erl_parse:abstract_expr()].
purging() ->
    {ok, Tokens, _} = erl_scan:string(
        "\n"
        "        Is_purged = fun(M) ->\n"
        "                        Purged = code:soft_purge(M),\n"
        "                        timer:sleep(erlang:system_info(process_count) div 100),\n"
        "                        Purged\n"
        "                end,\n"
        "        Purge = fun Again(Ms, Wait) ->\n"
        "                        case [M || M <- Ms, not Is_purged(M)] of\n"
        "                            Left when Left =/= [], Wait < 60000 -> timer:sleep(Wait), "
        "Again(Left, 2 * Wait);\n"
        "                            _ -> ok\n"
        "                        end\n"
        "                end,\n"
        "        _ = Native > 0 andalso timer:sleep(Native),\n"
        "        Purge(Modules, 10)."
    ),
    {ok, Exprs} = erl_parse:parse_exprs(Tokens),
    Exprs.
