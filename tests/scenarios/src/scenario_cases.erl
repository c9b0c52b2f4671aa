%% SPDX-License-Identifier: Apache-2.0
%% The application of scenario 11: every construct that a request can be made of, one a function,
%% under an identity of its own.
-module(scenario_cases).

-export([start/0, trace/3, run/3, names/0, stale_timer/1, foreign/0, armed/0, truth/1]).
-export([nested/1, siblings/1, many/1, recursion/1, mutual/1, tail/1, tail_raises/1]).
-export([
    chain/1,
    relay/1,
    queued/1,
    cast/1,
    spawned/1,
    spawns/1,
    pool/1,
    orphan/1,
    interleaved/1,
    timer/1,
    elsewhere/1,
    keep_alive/1
]).
-export([
    error_caught/1,
    exit_caught/1,
    throw_caught/1,
    raised_again/1,
    deep/1,
    fails/1,
    crash/1,
    worker_crash/1
]).
-export([
    worker_killed/1,
    killed/1,
    rpc_lost/1,
    rpc_kept/1,
    reply_lost/1,
    lent/1,
    do_apply/1,
    asleep/1,
    garbage/1,
    large/1
]).

-import(scenario_tiers, [
    handle/2, alpha/1, beta/1, gamma/1, delta/1, request/2, marked/2, call/2, hold/2
]).

-define(SERVERS, [one, two, three, idle]).

-spec start() -> ok.
start() ->
    ok = scenario_truth:start(),
    lists:foreach(fun scenario_tiers:start/1, ?SERVERS).

%% Starts a trace of the tiers, of which some, or all, have returns => none.
-spec trace(inet:port_number(), all | [atom()], [kprof:option()]) -> ok | {error, term()}.
trace(Port, None, Options) ->
    ok = kprof:start(),
    kprof:start_trace([
        {tier_config, [
            case None =:= all orelse lists:member(Name, None) of
                true -> {Name, MFA, #{returns => none}};
                false -> {Name, MFA}
            end
         || {Name, MFA} <- scenario_tiers:tiers()
        ]},
        {identity_f, fun
            ({scenario_tiers, handle, [Identity, _]}) -> Identity;
            (_) -> undefined
        end},
        {collector, {"127.0.0.1", Port}}
        | Options
    ]).

-spec names() -> [atom()].
names() ->
    [
        nested,
        siblings,
        many,
        recursion,
        mutual,
        tail,
        tail_raises,
        chain,
        relay,
        queued,
        cast,
        spawned,
        spawns,
        pool,
        orphan,
        interleaved,
        timer,
        elsewhere,
        keep_alive,
        error_caught,
        exit_caught,
        throw_caught,
        raised_again,
        deep,
        fails,
        crash,
        worker_crash,
        worker_killed,
        killed,
        rpc_lost,
        rpc_kept,
        reply_lost,
        lent,
        do_apply
    ].

%% Runs each of the cases N times, each in a process of its own that nobody sends a message to.
%% Their requests have the case's name and the round's number for an identity.
-spec run([atom()], pos_integer(), pos_integer()) -> ok.
run(Names, N, Round) ->
    % what crashes says so in this node's log
    group_leader(whereis(user), self()),
    [
        ok = once(Name, list_to_atom(lists:concat([Name, ".", Round])))
     || Name <- Names, _ <- lists:seq(1, N)
    ],
    ok.

once(Name, Identity) ->
    {Pid, Ref} = spawn_monitor(fun() -> _ = ?MODULE:Name(Identity) end),
    _ =
        Name =:= killed andalso
            begin
                ms(25),
                kill(Pid)
            end,
    receive
        {'DOWN', Ref, process, Pid, Why} -> ended(Name, Pid, Why)
    after 60000 -> exit({hangs, Name})
    end.

ended(crash, Pid, {on_purpose, _}) ->
    scenario_truth:died(Pid, erlang:monotonic_time(nanosecond));
ended(killed, _, killed) ->
    ok;
ended(_, _, normal) ->
    ok.

%% When a process is killed is known to the one that kills it: between the signal and its being
%% gone.
kill(Pid) ->
    Ref = monitor(process, Pid),
    Before = erlang:monotonic_time(nanosecond),
    exit(Pid, kill),
    receive
        {'DOWN', Ref, process, Pid, _} -> ok
    end,
    scenario_truth:died(Pid, (Before + erlang:monotonic_time(nanosecond)) div 2).

ms(Ms) -> timer:sleep(Ms).

%% Takes a processor for so long.
busy(Ms) -> busy_until(erlang:monotonic_time(microsecond) + Ms * 1000).
busy_until(Until) ->
    case erlang:monotonic_time(microsecond) < Until of
        true -> busy_until(Until);
        false -> ok
    end.

sleeps(Ms) -> fun() -> ms(Ms) end.

%% --- in one process ---

-spec nested(atom()) -> term().
nested(I) ->
    request(I, fun() ->
        ms(3),
        alpha(fun() ->
            ms(4),
            beta(fun() ->
                busy(3),
                gamma(sleeps(6)),
                busy(2)
            end),
            ms(5)
        end),
        ms(2)
    end).

-spec siblings(atom()) -> term().
siblings(I) ->
    marked(I, fun() ->
        alpha(sleeps(4)),
        ms(3),
        beta(sleeps(5)),
        alpha(sleeps(6)),
        gamma(fun() -> busy(3) end),
        ms(2)
    end).

-spec many(atom()) -> term().
many(I) ->
    request(I, fun() ->
        ms(15),
        [alpha(sleeps(1)) || _ <- lists:seq(1, 20)],
        [beta(fun() -> ok end) || _ <- lists:seq(1, 50)]
    end).

-spec recursion(atom()) -> term().
recursion(I) ->
    request(I, fun() -> down(4) end).

down(0) ->
    ms(5);
down(N) ->
    alpha(fun() ->
        ms(2),
        down(N - 1),
        ms(2)
    end).

-spec mutual(atom()) -> term().
mutual(I) ->
    marked(I, fun() ->
        ping(6),
        alpha(sleeps(4))
    end).

ping(0) ->
    ms(5);
ping(N) ->
    alpha(fun() ->
        ms(2),
        pong(N - 1),
        ms(1)
    end).
pong(N) ->
    beta(fun() ->
        ms(3),
        ping(N - 1)
    end).

-spec tail(atom()) -> term().
tail(I) ->
    request(I, fun() ->
        ms(2),
        alpha(
            {tail, sleeps(4), fun() ->
                beta(
                    {tail, sleeps(3), fun() ->
                        gamma(fun() ->
                            ms(2),
                            delta(sleeps(3)),
                            ms(2)
                        end)
                    end}
                )
            end}
        ),
        beta(sleeps(4))
    end).

-spec tail_raises(atom()) -> term().
tail_raises(I) ->
    request(I, fun() ->
        catch alpha(
            {tail, sleeps(4), fun() ->
                beta(fun() ->
                    ms(5),
                    error(on_purpose)
                end)
            end}
        ),
        ms(3)
    end).

%% --- between processes ---

-spec chain(atom()) -> term().
chain(I) ->
    request(I, fun() ->
        call(one, fun() ->
            alpha(fun() ->
                call(two, fun() ->
                    beta(fun() ->
                        call(three, fun() -> gamma(sleeps(6)) end),
                        ms(4)
                    end)
                end),
                ms(3)
            end)
        end),
        ms(2)
    end).

%% Who asks has no tier open: what was called there before is not what the answering process works
%% for.
-spec relay(atom()) -> term().
relay(I) ->
    request(I, fun() ->
        call(one, fun() ->
            alpha(sleeps(4)),
            call(two, fun() -> beta(sleeps(8)) end),
            gamma(sleeps(3))
        end),
        ms(2)
    end),
    marked(I, fun() ->
        alpha(sleeps(4)),
        call(one, fun() -> beta(sleeps(8)) end),
        gamma(sleeps(3))
    end).

%% The server is busy with something that is no request's when the client sends: for 20 ms, or as
%% long as scenario_busy_ms says.
-spec queued(atom()) -> term().
queued(I) ->
    ok = scenario_tiers:cast(one, sleeps(persistent_term:get(scenario_busy_ms, 20))),
    ms(2),
    marked(I, fun() -> alpha(fun() -> call(one, fun() -> beta(sleeps(6)) end) end) end).

-spec cast(atom()) -> term().
cast(I) ->
    request(I, fun() ->
        alpha(fun() ->
            scenario_tiers:cast(one, fun() ->
                beta(fun() ->
                    ms(40),
                    gamma(sleeps(10))
                end)
            end),
            ms(6)
        end)
    end),
    ms(60).

-spec spawned(atom()) -> term().
spawned(I) ->
    request(I, fun() ->
        Self = self(),
        ms(2),
        Pids = [
            scenario_truth:spawn(fun() ->
                alpha(sleeps(Ms)),
                beta(sleeps(3)),
                Self ! {done, self()}
            end)
         || Ms <- [8, 16, 12]
        ],
        [
            receive
                {done, Pid} -> ok
            end
         || Pid <- Pids
        ],
        ms(4)
    end).

%% The ways to spawn: each child belongs to the call that was open when it was spawned, whatever its
%% parent does by the time it begins to work.
-spec spawns(atom()) -> term().
spawns(I) ->
    Hows = [
        fun erlang:spawn_link/1,
        fun erlang:spawn_monitor/1,
        fun proc_lib:spawn/1,
        fun proc_lib:spawn_link/1,
        fun(F) -> erlang:spawn_opt(F, [link, {priority, high}]) end,
        fun(F) ->
            proc_lib:start_link(erlang, apply, [
                fun() ->
                    proc_lib:init_ack(ok),
                    F()
                end,
                []
            ])
        end
    ],
    request(I, fun() ->
        Self = self(),
        alpha(fun() ->
            [
                scenario_truth:spawn(How, fun() ->
                    ms(3),
                    beta(sleeps(10)),
                    Self ! done
                end)
             || How <- Hows
            ]
        end),
        gamma(fun() ->
            [
                receive
                    done -> ok
                end
             || _ <- Hows
            ]
        end),
        ms(2)
    end).

-spec pool(atom()) -> term().
pool(I) ->
    marked(I, fun() ->
        alpha(fun() ->
            scenario_tiers:ask_all([
                {one, fun() -> beta(sleeps(8)) end},
                {two, fun() -> beta(sleeps(15)) end},
                {three, fun() ->
                    gamma(sleeps(5)),
                    gamma(sleeps(6))
                end}
            ]),
            ms(3)
        end)
    end).

%% A process that ends before the one that it spawned, and a call that ends before the process that
%% it spawned.
-spec orphan(atom()) -> term().
orphan(I) ->
    request(I, fun() ->
        alpha(fun() ->
            scenario_truth:spawn(fun() ->
                beta(fun() ->
                    scenario_truth:spawn(fun() -> gamma(sleeps(20)) end),
                    ms(6)
                end)
            end),
            ms(12)
        end),
        ms(15)
    end).

%% Two requests in one server: each is taken in, worked on by another process, and answered when
%% that comes back. What an answer brings goes on with what there was, and has not waited.
-spec interleaved(atom()) -> term().
interleaved(I) ->
    {Other, Ref} = spawn_monitor(fun() ->
        ms(3),
        request(I, fun() -> deferred(three, 25) end)
    end),
    request(I, fun() -> deferred(two, 12) end),
    receive
        {'DOWN', Ref, process, Other, normal} -> ok
    after 60000 -> exit(hangs)
    end.

deferred(Worker, Ms) ->
    ms(2),
    hold(one, fun(From, Caller) ->
        alpha(fun() ->
            scenario_tiers:cast(Worker, fun() ->
                beta(sleeps(Ms)),
                gen_server:cast(
                    one,
                    {do, setelement(3, Caller, none), fun() ->
                        gamma(sleeps(4)),
                        gen_server:reply(From, ok)
                    end}
                )
            end),
            ms(2)
        end)
    end),
    ms(3).

%% The server's timer, set for one request, fires while the server has the token of the next, which
%% goes on: it counts there, for nothing in the node says whose it is.
-spec timer(atom()) -> term().
timer(I) ->
    marked(I, fun() ->
        alpha(fun() ->
            ms(4),
            call(one, fun() ->
                scenario_tiers:later(25, latest, fun() -> gamma(sleeps(6)) end)
            end)
        end)
    end),
    marked(I, fun() ->
        alpha(fun() ->
            call(one, fun() -> beta(sleeps(4)) end),
            ms(40)
        end)
    end).

%% Begun in one process, ended in another.
-spec elsewhere(atom()) -> term().
elsewhere(I) ->
    ok = kprof:set_token(I),
    ok = scenario_truth:begins(I),
    alpha(fun() -> call(one, fun() -> beta(sleeps(5)) end) end),
    beta(fun() ->
        {Request, _, _} = scenario_truth:ctx(),
        put(request, Request)
    end),
    Ender = fun() ->
        ms(10),
        scenario_truth:ends(ok),
        kprof:clear_token()
    end,
    gen_server:cast(two, {do, {erase(request), top, none}, Ender}),
    erase(truth),
    ms(25).

%% One process serves a connection, request after request.
-spec keep_alive(atom()) -> term().
keep_alive(I) ->
    {ok, Listen} = gen_tcp:listen(0, [
        binary, {ip, {127, 0, 0, 1}}, {active, false}, {packet, line}
    ]),
    {ok, Port} = inet:port(Listen),
    {Client, Ref} = spawn_monitor(fun() ->
        {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [
            binary, {active, false}, {packet, line}
        ]),
        [
            begin
                ok = gen_tcp:send(Socket, <<"work\n">>),
                {ok, <<"done\n">>} = gen_tcp:recv(Socket, 0, 60000)
            end
         || _ <- lists:seq(1, 6)
        ],
        ok = gen_tcp:close(Socket)
    end),
    {ok, Socket} = gen_tcp:accept(Listen, 5000),
    ok = inet:setopts(Socket, [{active, true}]),
    ok = serve(I, Socket, 0),
    receive
        {'DOWN', Ref, process, Client, normal} -> ok
    after 60000 -> exit(hangs)
    end,
    ok = gen_tcp:close(Listen).

serve(I, Socket, N) ->
    receive
        {tcp, Socket, <<"work\n">>} when N rem 2 =:= 0 ->
            marked(I, fun() ->
                call(one, fun() -> beta(sleeps(3)) end),
                alpha(sleeps(4))
            end),
            ok = gen_tcp:send(Socket, <<"done\n">>),
            serve(I, Socket, N + 1);
        {tcp, Socket, <<"work\n">>} ->
            ok = request(I, fun() ->
                ms(3),
                gen_tcp:send(Socket, <<"done\n">>)
            end),
            serve(I, Socket, N + 1);
        {tcp_closed, Socket} ->
            ok
    after 60000 -> exit(hangs)
    end.

%% --- exceptions ---

-spec error_caught(atom()) -> term().
error_caught(I) ->
    request(I, fun() ->
        ms(2),
        catch alpha(fun() ->
            ms(4),
            error(on_purpose)
        end),
        beta(sleeps(4))
    end).

-spec exit_caught(atom()) -> term().
exit_caught(I) ->
    marked(I, fun() ->
        alpha(fun() ->
            catch beta(fun() ->
                ms(4),
                gamma(fun() ->
                    ms(3),
                    exit(on_purpose)
                end)
            end),
            ms(3)
        end)
    end).

-spec throw_caught(atom()) -> term().
throw_caught(I) ->
    marked(I, fun() ->
        catch alpha(fun() ->
            ms(3),
            beta(fun() ->
                ms(4),
                throw(on_purpose)
            end)
        end),
        ms(4)
    end).

-spec raised_again(atom()) -> term().
raised_again(I) ->
    request(I, fun() ->
        catch alpha(fun() ->
            ms(6),
            try
                beta(fun() ->
                    ms(4),
                    gamma(fun() ->
                        ms(3),
                        throw(first)
                    end)
                end)
            catch
                throw:first ->
                    delta(sleeps(3)),
                    error(second)
            end
        end),
        ms(4)
    end).

%% Raised far below, through calls that are no tiers, out of a recursion.
-spec deep(atom()) -> term().
deep(I) ->
    request(I, fun() ->
        alpha(fun() ->
            catch fall(3),
            ms(3),
            beta(sleeps(3))
        end)
    end).

fall(0) ->
    ms(2),
    error(on_purpose);
fall(N) ->
    [_ | _] = [
        beta(fun() ->
            ms(2),
            fall(N - 1)
        end)
    ].

%% The request itself fails, and its caller goes on.
-spec fails(atom()) -> term().
fails(I) ->
    error =
        try
            request(I, fun() ->
                ms(4),
                alpha(fun() ->
                    ms(5),
                    error(on_purpose)
                end)
            end)
        catch
            Class:_ -> Class
        end,
    throw =
        try
            request(I, fun() ->
                ms(4),
                throw(on_purpose)
            end)
        catch
            Class2:_ -> Class2
        end,
    marked(I, fun() -> beta(sleeps(4)) end).

%% The request's process dies of an exception, and nobody marks its end.
-spec crash(atom()) -> term().
crash(I) ->
    ok = kprof:set_token(I),
    ok = scenario_truth:begins(I),
    ms(10),
    handle(I, fun() ->
        ms(5),
        alpha(fun() ->
            ms(15),
            error(on_purpose)
        end)
    end).

-spec worker_crash(atom()) -> term().
worker_crash(I) ->
    request(I, fun() ->
        Pid = scenario_truth:spawn(fun() ->
            alpha(fun() ->
                ms(4),
                beta(fun() ->
                    ms(6),
                    exit(on_purpose)
                end)
            end)
        end),
        dead(Pid),
        ms(3)
    end).

-spec worker_killed(atom()) -> term().
worker_killed(I) ->
    request(I, fun() ->
        Pid = scenario_truth:spawn(fun() ->
            alpha(fun() ->
                ms(4),
                beta(sleeps(5000))
            end)
        end),
        ms(20),
        Before = erlang:monotonic_time(nanosecond),
        exit(Pid, kill),
        dead(Pid),
        scenario_truth:died(Pid, Before),
        ms(4)
    end).

%% The message of a process' death brings no token and takes none.
dead(Pid) ->
    Ref = monitor(process, Pid),
    receive
        {'DOWN', Ref, process, Pid, _} -> ok
    end.

-spec killed(atom()) -> term().
killed(I) ->
    marked(I, fun() ->
        handle(I, fun() ->
            ms(5),
            alpha(fun() ->
                beta(sleeps(4)),
                gamma(sleeps(5000))
            end)
        end)
    end).

%% --- tokens lost ---

%% The answer from another node comes without the token, on older releases: what follows is not
%% seen, and the request must not hang.
-spec rpc_lost(atom()) -> term().
rpc_lost(I) ->
    marked(I, fun() ->
        alpha(fun() -> remote() end),
        beta(sleeps(4))
    end).

remote() ->
    pong = rpc:call(persistent_term:get(scenario_other_node), net_adm, ping, [node()]).

%% The application carries its label past the call.
-spec rpc_kept(atom()) -> term().
rpc_kept(I) ->
    request(I, fun() ->
        alpha(fun() ->
            Label = kprof:get_current_label(),
            remote(),
            ok = kprof:set_current_label(Label),
            beta(sleeps(4))
        end),
        gamma(sleeps(5))
    end).

%% The answer comes when somebody who works for no request tells the server so, and brings no token.
-spec reply_lost(atom()) -> term().
reply_lost(I) ->
    erlang:spawn(fun() ->
        until_held(one),
        scenario_tiers:cast(one, fun() -> gen_server:reply(erase(held), ok) end)
    end),
    request(I, fun() ->
        hold(one, fun(From, _) ->
            alpha(fun() ->
                ms(3),
                put(held, From)
            end)
        end)
    end).

%% Without a message to the server.
until_held(Server) ->
    ms(15),
    {dictionary, Known} = process_info(whereis(Server), dictionary),
    lists:keymember(held, 1, Known) orelse until_held(Server).

%% A pool's worker that has to be waited for: what comes is the token of the request that gives it
%% back, and the application carries its own past that.
-spec lent(atom()) -> term().
lent(I) ->
    erlang:spawn(fun() ->
        until_held(one),
        request(I, fun() ->
            scenario_tiers:cast(one, fun() -> gen_server:reply(erase(held), ok) end),
            ms(5)
        end)
    end),
    request(I, fun() ->
        Label = kprof:get_current_label(),
        hold(one, fun(From, _) ->
            alpha(fun() ->
                ms(3),
                put(held, From)
            end)
        end),
        ok = kprof:set_current_label(Label),
        beta(sleeps(12))
    end).

%% What a tier returns is large.
-spec large(atom()) -> term().
large(I) ->
    List = lists:seq(1001, 2000),
    request(I, fun() ->
        [alpha(fun() -> List end) || _ <- lists:seq(1, 20)],
        beta(sleeps(2))
    end).

-spec do_apply(atom()) -> term().
do_apply(I) ->
    request(I, fun() ->
        ms(3),
        kprof:do_apply(scenario_tiers, alpha, [
            fun() ->
                ms(4),
                kprof:do_apply(scenario_tiers, beta, [sleeps(5)])
            end
        ]),
        caught =
            try
                kprof:do_apply(scenario_tiers, gamma, [
                    fun() ->
                        ms(4),
                        throw(on_purpose)
                    end
                ])
            catch
                throw:on_purpose -> caught
            end,
        ok = kprof:set_token(inner),
        delta(sleeps(4)),
        ok = kprof:clear_token(),
        delta(sleeps(4))
    end).

%% --- garbage and scheduling ---

%% alpha and delta do nothing but sleep; beta does next to nothing; gamma sleeps only in delta.
-spec asleep(atom()) -> term().
asleep(I) ->
    roomy(),
    request(I, fun() ->
        alpha(sleeps(20)),
        beta(fun() -> ok end),
        gamma(fun() -> delta(sleeps(12)) end)
    end).

%% alpha makes garbage, beta makes none, and gamma only through alpha.
-spec garbage(atom()) -> term().
garbage(I) ->
    roomy(),
    request(I, fun() ->
        alpha(fun() -> litter(8) end),
        beta(fun() -> busy(1) end),
        gamma(fun() -> alpha(fun() -> litter(8) end) end)
    end).

litter(0) ->
    ok;
litter(N) ->
    _ = length(lists:seq(1, 500000)),
    litter(N - 1).

%% From here on nothing small makes the process collect its garbage.
roomy() ->
    _ = process_flag(min_heap_size, 200000),
    true = erlang:garbage_collect(),
    ok.

%% How processes are armed while tiers are traced for garbage or scheduling: one inside its request,
%% and after it; a server that a request has used, and after it has done something for nobody; and
%% processes that had nothing to do with requests: 0 if they are not.
-spec armed() -> #{atom() => [atom()] | non_neg_integer()}.
armed() ->
    Self = self(),
    {Pid, Ref} = spawn_monitor(fun() ->
        Inside = marked(armed, fun() ->
            alpha(fun() ->
                call(idle, fun() -> beta(fun() -> ok end) end),
                armed(self())
            end)
        end),
        Self ! {Inside, armed(self())}
    end),
    receive
        {'DOWN', Ref, process, Pid, normal} -> ok
    end,
    {Inside, After} =
        receive
            {_, _} = Both -> Both
        end,
    % that answer brought one
    _ = seq_trace:set_token([]),
    Server = whereis(idle),
    Used = armed(Server),
    ok = scenario_tiers:cast(idle, fun() -> beta(fun() -> ok end) end),
    _ = sys:get_state(idle),
    Others = [
        P
     || P <- processes(),
        armed(P) =/= [],
        P =/= Server,
        not lists:member(P, [whereis(S) || S <- ?SERVERS])
    ],
    #{
        inside => Inside,
        'after' => After,
        server_used => Used,
        server_after => armed(Server),
        others => length(Others)
    }.

armed(Pid) ->
    case scenario_trace:info(Pid, flags) of
        {flags, Flags} -> [F || F <- [garbage_collection, running], lists:member(F, Flags)];
        undefined -> []
    end.

%% --- calls that are nobody's ---

%% A server's timer under the token of a request that has been closed by then. Returns at once.
-spec stale_timer(atom()) -> ok.
stale_timer(I) ->
    {Pid, Ref} = spawn_monitor(fun() ->
        marked(I, fun() ->
            alpha(fun() ->
                ms(4),
                call(idle, fun() ->
                    scenario_tiers:later(2600, none, fun() -> gamma(sleeps(1)) end)
                end)
            end)
        end)
    end),
    receive
        {'DOWN', Ref, process, Pid, normal} -> ok
    end.

%% An application with labels of its own: kprof counts its calls nowhere and leaves its tokens
%% alone. Gives how many requests it tried to begin under them.
-spec foreign() -> pos_integer().
foreign() ->
    Labels = [{app, 1}, "text", <<"bytes">>, an_atom, [1, {2}], 1 bsl 70, 42, -1],
    {Pid, Ref} = spawn_monitor(fun() -> lists:foreach(fun foreign/1, Labels) end),
    receive
        {'DOWN', Ref, process, Pid, normal} -> length(Labels)
    end.

foreign(Label) ->
    _ = seq_trace:set_token(label, Label),
    ok = request_of_nobody(),
    alpha(sleeps(1)),
    {label, Label} = call(one, fun() -> beta(fun() -> seq_trace:get_token(label) end) end),
    undefined = kprof:get_current_label(),
    ok = kprof:set_current_label(1 bsl 40),
    ok = kprof:clear_token(),
    {label, Label} = seq_trace:get_token(label),
    _ = seq_trace:set_token([]).

request_of_nobody() ->
    kprof:do_apply(scenario_tiers, handle, [nobody, fun() -> ok end]).

%% --- the truth ---

%% What the statistics should say of the requests since the last time, in File.tiers and File.paths,
%% and how many should be complete and incomplete.
-spec truth(string()) -> {non_neg_integer(), non_neg_integer()}.
truth(File) ->
    Losing = losing(),
    Is = fun(Row) -> lists:any(fun(Name) -> lists:prefix(Name, Row) end, Losing) end,
    {Lost, Rows} = lists:partition(Is, scenario_truth:rows()),
    ok = file:write_file(File ++ ".tiers", [[Row, $\n] || Row <- Rows]),
    ok = file:write_file(File ++ ".paths", [
        [Row, $\n]
     || Row <- scenario_truth:paths(), not Is(Row)
    ]),
    ok = scenario_truth:clear(),
    {requests(Rows), requests(Lost)}.

%% The cases that lose their token. rpc:call has stopped doing so in some release.
losing() ->
    Self = self(),
    _ = spawn(fun() ->
        _ = seq_trace:set_token(label, 17),
        _ = rpc:call(persistent_term:get(scenario_other_node), erlang, node, []),
        Self ! {token, seq_trace:get_token()}
    end),
    receive
        {token, []} -> ["rpc_lost.", "reply_lost."];
        {token, _} -> ["reply_lost."]
    end.

requests(Rows) ->
    lists:sum([
        list_to_integer(Calls)
     || Row <- Rows, [_, "_total", Calls | _] <- [string:lexemes(Row, "|")]
    ]).
