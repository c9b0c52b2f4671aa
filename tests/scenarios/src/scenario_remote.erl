%% SPDX-License-Identifier: Apache-2.0
%% Requests that go to another node: a process here asks a server there, both nodes are traced, and
%% the token travels with the message.
-module(scenario_remote).

-export([start/1, requests/3, own/1, server/0, front/2, back/1, deep/0]).

-type work() :: quick | nested | slow | fail | mark | {ask, node(), work()}.

%% Starts the server and a trace of this node.
-spec start(inet:port_number()) -> ok | {error, term()}.
start(Port) ->
    Self = self(),
    _ = spawn(fun() ->
        register(?MODULE, self()),
        Self ! registered,
        server()
    end),
    receive
        registered -> ok
    end,
    ok = kprof:start(),
    kprof:start_trace([
        {tier_config, [
            {front, {?MODULE, front, 2}}, {back, {?MODULE, back, 1}}, {deep, {?MODULE, deep, 0}}
        ]},
        {slow_call_threshold, 3000},
        {collector, {"127.0.0.1", Port}}
    ]).

%% N requests, one after the other, that ask Node to do some work, or several nodes at once.
-spec requests(pos_integer(), node() | [node()], work()) -> ok.
requests(N, Node, Work) ->
    _ = [alone(fun() -> kprof:do_apply(?MODULE, front, [Node, Work]) end) || _ <- lists:seq(1, N)],
    ok.

%% N requests of this node itself.
-spec own(pos_integer()) -> ok.
own(N) ->
    _ = [
        alone(fun() ->
            kprof:set_token(mine),
            back(quick),
            kprof:clear_token()
        end)
     || _ <- lists:seq(1, N)
    ],
    ok.

alone(F) ->
    {Pid, Ref} = spawn_monitor(F),
    receive
        {'DOWN', Ref, process, Pid, normal} -> ok
    after 60000 -> exit(hangs)
    end.

front(Nodes, Work) when is_list(Nodes) ->
    [answer(Ref) || Ref <- [ask(Node, Work) || Node <- Nodes]];
front(Node, Work) ->
    answer(ask(Node, Work)).

ask(Node, Work) ->
    Ref = make_ref(),
    {?MODULE, Node} ! {self(), Ref, Work},
    Ref.

answer(Ref) ->
    receive
        {Ref, Answer} -> Answer
    after 60000 -> exit(no_answer)
    end.

server() ->
    receive
        {Client, Ref, Work} ->
            Client !
                {Ref,
                    try
                        back(Work)
                    catch
                        error:Why -> Why
                    end}
    end,
    ?MODULE:server().

back(quick) ->
    ok;
back(nested) ->
    deep(),
    timer:sleep(5),
    deep();
back(slow) ->
    timer:sleep(2500),
    deep();
back(fail) ->
    error(on_purpose);
back({ask, Node, Work}) ->
    answer(ask(Node, Work));
% as code does that marks its requests wherever they come from
back(mark) ->
    kprof:do_apply(?MODULE, deep, []).

deep() -> ok.
