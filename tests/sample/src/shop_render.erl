%% SPDX-License-Identifier: Apache-2.0
%% Tier `render`: turns what a worker found into a page, in a few processes of its own.
-module(shop_render).
-behaviour(gen_server).

-export([start_link/2, render/2, page/2]).
-export([init/1, handle_call/3, handle_cast/2]).

-spec start_link(atom(), term()) -> {ok, pid()} | {error, term()}.
start_link(Name, _Place) ->
    gen_server:start_link({local, Name}, ?MODULE, [], []).

%% In the caller: has the next renderer make the page.
-spec render(shop_truth:route(), term()) -> binary().
render(Route, Data) ->
    shop_call:one(shop_group:next(?MODULE), {page, Route, Data}).

-spec page(shop_truth:route(), term()) -> binary().
page(Route, Data) ->
    shop_truth:span(render, Route, fun() ->
        shop_cost:burn(render),
        iolist_to_binary([shop_json:encode(Data), $\n])
    end).

-spec init([]) -> {ok, none}.
init([]) ->
    {ok, none}.

-spec handle_call(term(), gen_server:from(), none) -> {reply, term(), none}.
handle_call({page, Route, Data}, _From, State) ->
    {reply, shop_call:answer(fun() -> page(Route, Data) end), State}.

-spec handle_cast(term(), none) -> {noreply, none}.
handle_cast(_Message, State) ->
    {noreply, State}.
