%% SPDX-License-Identifier: Apache-2.0
%% Supervises the connections; none is restarted.
-module(shop_conn_sup).
-behaviour(supervisor).

-export([start_link/0, init/1, serve/1]).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    supervisor:start_link({local, ?MODULE}, ?MODULE, []).

-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    {ok,
        {#{strategy => simple_one_for_one}, [
            #{
                id => conn,
                restart => temporary,
                shutdown => brutal_kill,
                start => {shop_conn, start_link, []}
            }
        ]}}.

%% Called by the socket's owner: gives it to a connection process of its own.
-spec serve(gen_tcp:socket()) -> ok.
serve(Socket) ->
    {ok, Pid} = supervisor:start_child(?MODULE, [Socket]),
    case gen_tcp:controlling_process(Socket, Pid) of
        ok ->
            Pid ! go,
            ok;
        {error, _} ->
            exit(Pid, kill),
            gen_tcp:close(Socket)
    end.
