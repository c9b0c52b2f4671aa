%% SPDX-License-Identifier: Apache-2.0
%% Listens on a port of the loopback interface and holds the acceptors.
-module(shop_listener).
-behaviour(gen_server).

-export([start_link/0, port/0]).
-export([init/1, handle_call/3, handle_cast/2]).

-define(PAUSE_MS, 100).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% The port in use, which matters when the configured one is 0.
-spec port() -> inet:port_number().
port() ->
    gen_server:call(?MODULE, port).

-spec init([]) -> {ok, gen_tcp:socket()} | {stop, {listen, term()}}.
init([]) ->
    {ok, Port} = application:get_env(shop, port),
    {ok, Acceptors} = application:get_env(shop, acceptors),
    Options = [{ip, {127, 0, 0, 1}}, {reuseaddr, true}, {backlog, 128} | shop_wire:options()],
    case gen_tcp:listen(Port, Options) of
        {ok, Listen} ->
            [spawn_link(fun() -> accept(Listen) end) || _ <- lists:seq(1, Acceptors)],
            {ok, Listen};
        {error, Reason} ->
            {stop, {listen, Reason}}
    end.

accept(Listen) ->
    case gen_tcp:accept(Listen) of
        {ok, Socket} -> shop_conn_sup:serve(Socket);
        {error, closed} -> exit(normal);
        % out of descriptors, say: they come back
        {error, _} -> timer:sleep(?PAUSE_MS)
    end,
    accept(Listen).

-spec handle_call(port, gen_server:from(), gen_tcp:socket()) ->
    {reply, inet:port_number(), gen_tcp:socket()}.
handle_call(port, _From, Listen) ->
    {ok, Port} = inet:port(Listen),
    {reply, Port, Listen}.

-spec handle_cast(term(), gen_tcp:socket()) -> {noreply, gen_tcp:socket()}.
handle_cast(_Message, Listen) ->
    {noreply, Listen}.
