%% SPDX-License-Identifier: Apache-2.0
%% The application of scenario 76: clients that ask a server, whose process itself knows how long
%% each message has waited for it: from just before it was sent until just after it was taken.
%%
%%   client ── handle/2 ── (relay) ── server: works for a while in no tier, then in db/1
%%
%% Ways, which are the identities: idle: the server has nothing else to do. busy: it serves several
%% clients, one after the other, and sleeps meanwhile. relayed: by way of a process without tiers.
%% crowded: as idle, while other processes take all there is of the processors.
-module(scenario_waiting).
-behaviour(gen_server).

-export([trace/3, run/2, truth/1]).
-export([handle/2, db/1]).
-export([init/1, handle_call/3, handle_cast/2]).

-type way() :: idle | busy | relayed | crowded.

% in no tier, and in db/1; what is waited for is not judged to less than some us
-define(OWN_MS, 2).
-define(DB_MS, 3).
-define(CLIENTS, 3).

-spec trace(inet:port_number(), port | native, boolean()) -> ok | {error, term()}.
trace(Port, Tracer, Scheduling) ->
    ok = kprof:start(),
    kprof:start_trace([
        {collector, {"127.0.0.1", Port}},
        {slow_call_threshold, 0},
        {tracer, Tracer},
        {trace_scheduling, Scheduling},
        {tier_config, [{db, {?MODULE, db, 1}}]},
        {entry, {?MODULE, handle, 2}},
        {identity_f, fun
            ({scenario_waiting, handle, [Way, _]}) -> Way;
            (_) -> undefined
        end}
    ]).

%% So many requests of each client, all in servers of their own, after one that is none of theirs:
%% it makes the server known. Gives how many there were, and what their messages have waited in all,
%% in ns.
-spec run(way(), pos_integer()) -> {pos_integer(), non_neg_integer()}.
run(Way, Times) ->
    {ok, Server} = gen_server:start(?MODULE, none, []),
    {ok, Relay} = gen_server:start(?MODULE, Server, []),
    To =
        case Way of
            relayed -> Relay;
            _ -> Server
        end,
    ok = clients(first, To, 1, 1),
    _ = truth(Server),
    _ = truth(Relay),
    Hogs = [spawn_link(fun hog/0) || Way =:= crowded, _ <- lists:seq(1, 6)],
    Clients =
        case Way of
            busy -> ?CLIENTS;
            _ -> 1
        end,
    ok = clients(Way, To, Clients, Times),
    _ = [unlink(Hog) || Hog <- Hogs],
    _ = [exit(Hog, kill) || Hog <- Hogs],
    Waited = truth(Server) + truth(Relay),
    ok = gen_server:stop(Relay),
    ok = gen_server:stop(Server),
    {Clients * Times, Waited}.

%% In processes of their own, so that no token stays in this one.
clients(Way, To, Clients, Times) ->
    Pids = [spawn_monitor(fun() -> client(Way, To, Times) end) || _ <- lists:seq(1, Clients)],
    lists:foreach(
        fun({Pid, Ref}) ->
            receive
                {'DOWN', Ref, process, Pid, Why} -> normal = Why
            after 60000 -> exit(hangs)
            end
        end,
        Pids
    ).

client(Way, To, Times) ->
    _ = [
        begin
            ok = ?MODULE:handle(Way, To),
            % so that the server is idle again
            timer:sleep(5)
        end
     || _ <- lists:seq(1, Times)
    ],
    ok.

-spec handle(way() | first, pid()) -> ok.
handle(_, To) -> gen_server:call(To, {work, now_ns()}, 60000).

-spec db(pos_integer()) -> ok.
db(Ms) -> timer:sleep(Ms).

hog() ->
    _ = lists:sum(lists:seq(1, 1000)),
    hog().

now_ns() -> erlang:monotonic_time(nanosecond).

%% What its messages have waited since the last time, ns.
-spec truth(pid()) -> non_neg_integer().
truth(Server) -> gen_server:call(Server, truth, 60000).

%% State: {Server that it relays to | none, ns}.
init(To) -> {ok, {To, 0}}.

handle_call({work, Sent}, _, {To, Waited}) ->
    Taken = now_ns(),
    works(To),
    {reply, ok, {To, Waited + Taken - Sent}};
handle_call(truth, _, {To, Waited}) ->
    {reply, Waited, {To, 0}}.

handle_cast(_, State) -> {noreply, State}.

works(none) ->
    timer:sleep(?OWN_MS),
    ?MODULE:db(?DB_MS);
works(Server) ->
    timer:sleep(?OWN_MS),
    gen_server:call(Server, {work, now_ns()}, 60000).
