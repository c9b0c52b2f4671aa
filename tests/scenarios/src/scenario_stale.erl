%% SPDX-License-Identifier: Apache-2.0
%% An application with websockets, as far as a tracer can tell: a request starts a process that goes
%% on for long after its end, and asks others while it does. Beside it requests that are over soon,
%% and one that takes as long as all of that.
-module(scenario_stale).

-export([start/0, handle/1, event/1, store/1, step/1, sockets/2, finished/0, truth/0]).

-define(EVENT_MS, 20).
% events that a socket goes on for while its token is still there
-define(MOST_MORE, 1500).

start() ->
    _ = ets:new(?MODULE, [named_table, public, {write_concurrency, true}, {keypos, 1}]),
    true = register(scenario_stale_store, spawn(fun serve/0)),
    true = register(scenario_stale_owner, self()),
    receive
    after infinity -> ok
    end.

%% --- what is traced ---

%% The entry.
handle(plain) ->
    ask(plain),
    done(plain, event, ?MODULE:event(plain)),
    count(plain);
handle(long) ->
    steps(),
    count(long);
handle(borrow) ->
    borrow(),
    count(borrow);
handle({socket, Events}) ->
    spawn(fun holder/0),
    spawn(fun() -> socket(Events, Events, erlang:monotonic_time(millisecond)) end),
    count(socket).

event(Kind) -> Kind.
store(Kind) -> Kind.
step(X) -> X.

%% --- what runs ---

%% Many sockets and, while they are there, plain requests over a few connections and a long one.
sockets(Sockets, Events) ->
    _ = spawn(fun() ->
        ?MODULE:handle(long),
        put_done(long)
    end),
    _ = spawn(fun borrowed/0),
    _ = [
        spawn(fun() ->
            plain(),
            put_done({plain, N})
        end)
     || N <- [1, 2, 3]
    ],
    _ = [
        spawn(fun() ->
            timer:sleep(N * 10),
            ?MODULE:handle({socket, Events})
        end)
     || N <- lists:seq(1, Sockets)
    ],
    ets:insert(?MODULE, {sockets, Sockets}),
    ok.

finished() -> length(ets:match(?MODULE, {{done, '_'}})) =:= 5.

%% [{{Kind, Tier}, Calls}], of calls under a token that was still there behind them; [{Kind,
%% Requests}]; and [{over, Ms}] of each socket, from its request's end, or a little before, to the
%% event behind which it had no token.
truth() -> [Row || Row <- ets:tab2list(?MODULE), tuple_size(Row) =:= 2].

put_done(Who) -> ets:insert(?MODULE, {{done, Who}}).
count(Key) -> ets:update_counter(?MODULE, Key, 1, {Key, 0}).

done(Kind, Tier, Kind) -> seq_trace:get_token() =/= [] andalso count({Kind, Tier}).

closed() -> ets:lookup(?MODULE, closed).
all_closed() ->
    case {closed(), ets:lookup(?MODULE, sockets)} of
        {[{_, N}], [{_, N}]} -> true;
        _ -> false
    end.

plain() ->
    ?MODULE:handle(plain),
    timer:sleep(?EVENT_MS),
    all_closed() orelse plain().

steps() ->
    done(long, step, ?MODULE:step(long)),
    timer:sleep(?EVENT_MS),
    all_closed() orelse steps().

%% Waits, and then asks under the label that a holder hands on.
borrow() ->
    ets:insert(?MODULE, {borrower, self()}),
    receive
        lent -> ok
    end,
    [?MODULE:event(borrow) || _ <- [1, 2, 3]].

%% Holds the label of a socket, calls nothing under it, and hands it on to whoever waits.
holder() ->
    case ets:take(?MODULE, borrower) of
        [{_, Pid}] ->
            Pid ! lent;
        [] ->
            timer:sleep(?EVENT_MS),
            ets:member(?MODULE, {done, borrow}) orelse holder()
    end.

borrowed() ->
    case all_closed() of
        true ->
            ?MODULE:handle(borrow),
            put_done(borrow);
        false ->
            timer:sleep(?EVENT_MS),
            borrowed()
    end.

%% Every tenth event asks the store, too.
socket(All, N, Since) ->
    case N =< 0 andalso (N =< -?MOST_MORE orelse seq_trace:get_token() =:= []) of
        true -> count(closed);
        false -> socket_event(All, N, Since)
    end.

socket_event(All, N, Since) ->
    Had = seq_trace:get_token() =/= [],
    done(socket, event, ?MODULE:event(socket)),
    _ = Had andalso N rem 10 =:= 0 andalso seq_trace:get_token() =/= [] andalso ask(socket),
    case Had andalso seq_trace:get_token() =:= [] of
        true -> ets:insert(?MODULE, {{over, self()}, erlang:monotonic_time(millisecond) - Since});
        false -> ok
    end,
    timer:sleep(?EVENT_MS),
    socket(All, N - 1, Since).

ask(Kind) ->
    Ref = make_ref(),
    scenario_stale_store ! {self(), Ref, Kind},
    receive
        Ref -> ok
    end.

serve() ->
    receive
        {From, Ref, Kind} ->
            done(Kind, store, ?MODULE:store(Kind)),
            From ! Ref
    end,
    serve().
