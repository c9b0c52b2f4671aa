%% SPDX-License-Identifier: Apache-2.0
%% Tiers that call each other themselves, with nothing between: what ends them can be told from
%% outside, or not.
%%
%%   run/1 ── catch ── outer/1 ── inner/1            raises, or returns
%%   worker ── whole/1 ── outer/1 ── inner/1         exits, or is killed
-module(scenario_raises).

-export([tiers/0, run/1, whole/1, outer/1, inner/1]).

%% whole/1 sends what it returns.
-spec tiers() -> [{atom(), mfa()} | {atom(), mfa(), map()}].
tiers() ->
    [
        {whole, {?MODULE, whole, 1}}
        | [{Name, {?MODULE, Name, 1}, #{returns => none}} || Name <- [outer, inner]]
    ].

%% N requests, each with one call that returns and three that do not.
-spec run(pos_integer()) -> ok.
run(N) ->
    lists:foreach(
        fun(_) ->
            ok = kprof:set_token(raises),
            {returned, returned} = ?MODULE:outer(returns),
            error =
                try
                    ?MODULE:outer(raises)
                catch
                    error:on_purpose -> error
                end,
            ok = ends_in(exits),
            ok = ends_in(is_killed),
            ok = kprof:clear_token()
        end,
        lists:seq(1, N)
    ).

%% A process' death takes no token away.
ends_in(How) ->
    {Pid, Ref} = spawn_monitor(fun() -> ?MODULE:whole(How) end),
    receive
        {'DOWN', Ref, process, Pid, _} -> ok
    end.

-spec whole(atom()) -> {returned, term()}.
whole(How) -> {returned, outer(How)}.

-spec outer(atom()) -> {returned, term()}.
outer(How) -> {returned, inner(How)}.

-spec inner(atom()) -> returned.
inner(returns) ->
    returned;
inner(raises) ->
    error(on_purpose);
inner(exits) ->
    exit(on_purpose);
inner(is_killed) ->
    exit(self(), kill),
    receive
        never -> returned
    end.
