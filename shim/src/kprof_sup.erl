%% SPDX-License-Identifier: Apache-2.0
%% @doc Supervises the guard and {@link kprof_life}. The table in which the latter writes what it is
%% about to set is the application's ({@link kprof_app:start/2}), so that it can be undone whoever
%% dies first.
-module(kprof_sup).
-behaviour(supervisor).

-export([start_link/0, init/1]).

%% @doc Starts the supervisor, registered as `kprof_sup'.
-spec start_link() -> {ok, pid()} | ignore | {error, term()}.
start_link() ->
    supervisor:start_link({local, ?MODULE}, ?MODULE, []).

%% @private
-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    _ = ets:new(kprof_weights, [named_table, public, set, {read_concurrency, true}]),
    Child = fun(M, Shutdown) ->
        #{id => M, start => {M, start_link, []}, shutdown => Shutdown, modules => [M]}
    end,
    %% the guard undoes what a kprof_life that was killed has left, which must not be cut short: a
    %% timer that is set right after the whole machine was suspended may fire at once
    {ok,
        {#{strategy => rest_for_one, intensity => 3, period => 60}, [
            Child(kprof_guard, infinity), Child(kprof_life, 8000)
        ]}}.
