%% SPDX-License-Identifier: Apache-2.0
%% @doc Which processes a run of sampling looks at: the busiest of all or of an application, or
%% those that are named.
-module(kprof_sample_choice).

-export([check/1, busiest/2, named/1, may_come/1, there/1]).

% that are named
-define(MOST, 1000).

%% @doc Whether there are such processes, with what people should know; else why not.
-spec check(kprof_stacks:wanted()) -> {ok, unicode:chardata()} | {error, unicode:chardata()}.
check(#{registered := [], processes := [], application := <<>>}) ->
    {ok, ""};
check(#{registered := [], processes := [], application := Name}) ->
    case leader(Name) of
        undefined -> {error, ["no application runs here that is called ", Name]};
        _ -> {ok, ""}
    end;
check(#{registered := Names, processes := Pids} = Wanted) ->
    Missing =
        [Name || Name <- Names, registered_as(Name) =:= []] ++
            [P || P <- Pids, there(kprof_protocol:own_pid(P)) =:= []],
    Text = [io_lib:format("not here: ~ts", [lists:join(", ", Missing)]) || Missing =/= []],
    case named(Wanted) of
        [] -> {error, ["none of these processes is here: ", lists:join(", ", Missing)]};
        _ -> {ok, Text}
    end.

%% @doc Who finds the busiest, not counting its own processes; none: they are named.
-spec busiest(kprof_stacks:wanted(), [pid()]) -> none | kprof_busiest:busiest().
busiest(#{registered := [], processes := []} = Wanted, Own) ->
    #{by := By, top := Top, application := Name} = Wanted,
    Leader =
        case Name of
            <<>> -> any;
            _ -> leader(Name)
        end,
    kprof_busiest:new(By, Top, Leader, Own);
busiest(_, _) ->
    none.

%% All processes of an application have its master as their group leader.
leader(Name) ->
    try application_controller:get_master(binary_to_existing_atom(Name, utf8)) of
        Pid when is_pid(Pid) -> Pid;
        _ -> undefined
    catch
        error:badarg -> undefined
    end.

%% @doc Those that are named and are there.
-spec named(kprof_stacks:wanted()) -> [pid()].
named(#{registered := Names, processes := Texts}) ->
    Pids = lists:flatmap(fun kprof_protocol:own_pid/1, Texts),
    All = lists:append([registered_as(N) || N <- Names]) ++ there(Pids),
    lists:sublist(lists:usort(All), ?MOST).

%% @doc Whether one may come that is not there.
-spec may_come(kprof_stacks:wanted()) -> boolean().
may_come(#{registered := Names}) ->
    Names =/= [].

registered_as(Name) ->
    try whereis(binary_to_existing_atom(Name, utf8)) of
        Pid when is_pid(Pid) -> [Pid];
        _ -> []
    catch
        error:badarg -> []
    end.

%% @doc Those of them that are there. (is_process_alive/1 waits for native code to end.) A monitor's
%% signal may be on its way until this process gives up its turn.
-spec there([pid()]) -> [pid()].
there([]) ->
    [];
there(Pids) ->
    Monitored = [{erlang:monitor(process, Pid), Pid} || Pid <- Pids],
    true = erlang:yield(),
    [
        Pid
     || {Ref, Pid} <- Monitored,
        receive
            {'DOWN', Ref, process, _, _} -> false
        after 0 -> erlang:demonitor(Ref, [flush])
        end
    ].
