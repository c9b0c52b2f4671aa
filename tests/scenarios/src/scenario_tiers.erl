%% SPDX-License-Identifier: Apache-2.0
%% The tiers of the scenarios, and the processes that run them. A tier does what it is told by a
%% fun, and says to scenario_truth when.
-module(scenario_tiers).
-behaviour(gen_server).

-export([handle/2, alpha/1, beta/1, gamma/1, delta/1, tiers/0]).
-export([request/2, marked/2, start/1, stop/1, call/2, cast/2, hold/2, later/3, ask_all/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-type work() :: fun(() -> term()).
-type body() :: work() | {tail, work(), work()}.
%% {tail, First, Next}: the tier does First, and then Next is its tail call.

-spec tiers() -> [{atom(), mfa()}].
tiers() ->
    [
        {handle, {?MODULE, handle, 2}}
        | [{Tier, {?MODULE, Tier, 1}} || Tier <- [alpha, beta, gamma, delta]]
    ].

%% Names its request, by the identity function of the trace.
-spec handle(atom(), work()) -> term().
handle(_Identity, F) -> scenario_truth:span(handle, F).

-spec alpha(body()) -> term().
alpha({tail, First, Next}) ->
    scenario_truth:tail(alpha, First),
    Next();
alpha(F) ->
    scenario_truth:span(alpha, F).

-spec beta(body()) -> term().
beta({tail, First, Next}) ->
    scenario_truth:tail(beta, First),
    Next();
beta(F) ->
    scenario_truth:span(beta, F).

-spec gamma(body()) -> term().
gamma({tail, First, Next}) ->
    scenario_truth:tail(gamma, First),
    Next();
gamma(F) ->
    scenario_truth:span(gamma, F).

-spec delta(work()) -> term().
delta(F) -> scenario_truth:span(delta, F).

%% --- requests ---

%% A request as one call, named by its first tier.
-spec request(atom(), work()) -> term().
request(Identity, F) ->
    kprof:do_apply(scenario_truth, request, [Identity, fun() -> ?MODULE:handle(Identity, F) end]).

%% A request between two marks, with a name and no tier of its own. An exception of F passes by the
%% second.
-spec marked(atom(), work()) -> term().
marked(Identity, F) ->
    ok = kprof:set_token(Identity),
    Result = scenario_truth:request(Identity, F),
    ok = kprof:clear_token(),
    Result.

%% --- servers ---

%% Linked to nobody.
-spec start(atom()) -> ok.
start(Name) ->
    {ok, _} = gen_server:start({local, Name}, ?MODULE, [], []),
    ok.

-spec stop(atom()) -> ok.
stop(Name) -> gen_server:stop(Name).

%% F is run by the server.
-spec call(atom() | pid(), work()) -> term().
call(Server, F) -> gen_server:call(Server, {do, scenario_truth:ctx(), F}).

-spec cast(atom() | pid(), work()) -> ok.
cast(Server, F) -> gen_server:cast(Server, {do, scenario_truth:ctx(), F}).

%% F gets the caller and its context, and answers whenever it likes.
-spec hold(atom(), fun((term(), scenario_truth:context()) -> term())) -> term().
hold(Server, F) -> gen_server:call(Server, {hold, scenario_truth:ctx(), F}).

%% A timer of the process that calls this, whose work is Context's, or that of whom the process has
%% worked for last.
-spec later(pos_integer(), scenario_truth:context() | latest, work()) -> reference().
later(Ms, Context, F) -> erlang:send_after(Ms, self(), {do, Context, F}).

%% Each server does its work at the same time as the others. Gives their answers.
-spec ask_all([{atom(), work()}]) -> [term()].
ask_all(Questions) ->
    Asked = [
        gen_server:send_request(Server, {do, scenario_truth:ctx(), F})
     || {Server, F} <- Questions
    ],
    [
        begin
            {reply, Answer} = gen_server:receive_response(Id, 5000),
            Answer
        end
     || Id <- Asked
    ].

%% The state is the context of the last message.
init([]) -> {ok, none}.

handle_call({do, Context, F}, _, _) ->
    {reply, scenario_truth:under(Context, F), Context};
handle_call({hold, Context, F}, From, _) ->
    _ = scenario_truth:under(Context, fun() -> F(From, Context) end),
    {noreply, Context}.

handle_cast({do, Context, F}, _) ->
    _ = scenario_truth:under(Context, F),
    {noreply, Context}.

handle_info({do, latest, F}, Latest) ->
    _ = scenario_truth:under(setelement(3, Latest, none), F),
    {noreply, Latest};
handle_info({do, Context, F}, _) ->
    _ = scenario_truth:under(Context, F),
    {noreply, Context}.
