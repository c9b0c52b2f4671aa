%% SPDX-License-Identifier: Apache-2.0
%% What of a full trace stands on the node that this runs on; and the shim's own processes, to be
%% killed in the middle of one.
-module(scenario_undone).

-export([stands/0, await/1, victims/0, kill/1, hold/2]).

%% How many functions have the pattern of a full trace, in any trace session.
-spec stands() -> non_neg_integer().
stands() ->
    lists:sum([stands(Session) || Session <- sessions()]).

stands(Session) ->
    Spec = [{'_', [{is_seq_trace}], [{message, {{{get_seq_token}, {caller}, undefined, none}}}]}],
    length([
        F
     || {M, _} <- code:all_loaded(),
        {F, A} <- functions(M),
        {match_spec, Set} <- [info(Session, {M, F, A}, match_spec)],
        Set =:= Spec
    ]).

%% Waits until some have, or none. The flags come after the patterns: it waits for them, too, as
%% long as they may come, which may be those of processes that are still to be made. Then the shim
%% tells the collector so, for which a busy machine may need a while; patterns stand for 5 s.
-spec await(boolean()) -> ok.
await(Some) ->
    ok = await(Some, 600),
    _ = Some andalso flagged(100),
    timer:sleep(1000).

await(Some, Tries) when Tries > 0 ->
    case stands() > 0 of
        Some ->
            ok;
        _ ->
            timer:sleep(50),
            await(Some, Tries - 1)
    end.

flagged(0) ->
    ok;
flagged(Tries) ->
    Full = [S || S <- sessions(), stands(S) > 0],
    Who = [new_processes | processes()],
    case [P || S <- Full, P <- Who, {flags, [_ | _]} <- [info(S, P, flags)]] of
        [_ | _] ->
            ok;
        [] ->
            timer:sleep(50),
            flagged(Tries - 1)
    end.

functions(Module) ->
    try
        Module:module_info(functions)
    catch
        % it is being unloaded
        error:undef -> []
    end.

info(legacy, What, Item) ->
    erlang:trace_info(What, Item);
info(Session, What, Item) ->
    try
        trace:info(Session, What, Item)
    catch
        % it has ended meanwhile
        error:badarg -> ended
    end.

sessions() ->
    case erlang:function_exported(trace, session_info, 1) of
        true -> [S || {_, _} = S <- trace:session_info(all)];
        false -> [legacy]
    end.

%% The names of the shim's processes: the registered one, or the function of the shim's that they
%% began with.
-spec victims() -> [atom()].
victims() ->
    lists:usort([Name || {Name, _} <- own()]).

own() ->
    Shim = [M || {M, _} <- code:all_loaded(), lists:prefix("kprof", atom_to_list(M))],
    lists:append([[{Name, P} || Name <- names(P, Shim)] || P <- processes()]).

names(P, Shim) ->
    case process_info(P, [registered_name, current_stacktrace, dictionary]) of
        [{_, Registered}, {_, Stack}, {_, Dictionary}] ->
            {_, {Module, _, _}} = lists:keyfind(
                '$initial_call', 1, Dictionary ++ [{'$initial_call', {none, none, 0}}]
            ),
            Called = [M || {M, _, _, _} <- lists:reverse(Stack), lists:member(M, Shim)],
            case Called ++ [M || M <- [Module, Registered], lists:member(M, Shim ++ [kprof_sup])] of
                [] -> [];
                _ when is_atom(Registered) -> [Registered];
                [M | _] -> [M]
            end;
        undefined ->
            []
    end.

%% Does something while none of that name can work.
-spec hold(atom(), fun(() -> Result)) -> Result.
hold(Name, Fun) ->
    Pids = [P || {N, P} <- own(), N =:= Name],
    true = Pids =/= [],
    lists:foreach(fun(P) -> true = erlang:suspend_process(P) end, Pids),
    Result = Fun(),
    _ = [erlang:resume_process(P) || P <- Pids, is_process_alive(P)],
    Result.

%% Kills all of that name, and says how many they were.
-spec kill(atom()) -> non_neg_integer().
kill(Name) ->
    Pids = lists:usort([P || {N, P} <- own(), N =:= Name]),
    lists:foreach(fun(P) -> exit(P, kill) end, Pids),
    length(Pids).
