%% SPDX-License-Identifier: Apache-2.0
%% Tier `accounting`: books what changed. It is reached by a cast and takes its time, so that a
%% booking usually ends after the response has been sent.
-module(shop_accounting).
-behaviour(gen_server).

-export([start_link/2, submit/1, book/1, init_pending/0, pending/0, drain/1]).
-export([init/1, handle_call/3, handle_cast/2]).

-define(POLL_MS, 20).

-spec start_link(atom(), term()) -> {ok, pid()} | {error, term()}.
start_link(Name, _Place) ->
    gen_server:start_link({local, Name}, ?MODULE, [], []).

%% In the caller: leaves the entry to the next accountant.
-spec submit(#{route := shop_truth:route(), subject := map()}) -> ok.
submit(Entry) ->
    atomics:add(persistent_term:get(?MODULE), 1, 1),
    gen_server:cast(shop_group:next(?MODULE), {book, Entry}).

-spec book(#{route := shop_truth:route(), subject := map()}) -> ok.
book(#{route := Route}) ->
    shop_truth:span(accounting, Route, fun() ->
        shop_cost:burn(accounting),
        timer:sleep(application:get_env(shop, accounting_wait_ms, 0))
    end).

-spec init_pending() -> ok.
init_pending() ->
    persistent_term:put(?MODULE, atomics:new(1, [])).

%% How many submitted entries are not booked yet.
-spec pending() -> non_neg_integer().
pending() ->
    atomics:get(persistent_term:get(?MODULE), 1).

%% Waits until all entries are booked, at most so many milliseconds.
-spec drain(non_neg_integer()) -> drained | timeout.
drain(Ms) ->
    case pending() of
        0 ->
            drained;
        _ when Ms =< 0 -> timeout;
        _ ->
            timer:sleep(?POLL_MS),
            drain(Ms - ?POLL_MS)
    end.

-spec init([]) -> {ok, none}.
init([]) ->
    {ok, none}.

-spec handle_call(term(), gen_server:from(), none) -> {reply, ok, none}.
handle_call(_Message, _From, State) ->
    {reply, ok, State}.

-spec handle_cast({book, map()}, none) -> {noreply, none}.
handle_cast({book, Entry}, State) ->
    try
        book(Entry)
    after
        atomics:sub(persistent_term:get(?MODULE), 1, 1)
    end,
    {noreply, State}.
