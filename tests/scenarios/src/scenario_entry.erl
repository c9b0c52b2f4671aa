%% SPDX-License-Identifier: Apache-2.0
%% An application that knows nothing of kprof: a server of lines over TCP, one process a connection,
%% that handles one request after the other. It counts itself what it does. Its client tells how
%% long each request took.
%%
%%   connection: recv ── handle/2 (the entry) ─┬─ compute/1       in the connection's process
%%        ^                │                   ├─ store/1         in a server that is called
%%        └── send <───────┘                   ├─ book/1          in the same server, after a cast
%%               log/1, after the return       └─ part/1          in a process that is spawned
-module(scenario_entry).

-export([
    start/0,
    client/2,
    clients/3,
    finished/0,
    truth/0,
    stamps/0,
    reset/0,
    state/0,
    loop/1,
    loop_client/1
]).
-export([handle/2, compute/1, store/1, book/1, part/1, log/1, serve/1]).

-define(TABLE, ?MODULE).

-spec start() -> ok.
start() ->
    Self = self(),
    _ = spawn(fun() ->
        _ = ets:new(?TABLE, [named_table, public, {write_concurrency, true}]),
        {ok, Listen} = gen_tcp:listen(
            0,
            [
                binary,
                {packet, line},
                {active, false},
                {reuseaddr, true},
                {ip, {127, 0, 0, 1}},
                {backlog, 100}
            ]
        ),
        {ok, Port} = inet:port(Listen),
        persistent_term:put(?MODULE, Port),
        true = register(scenario_entry_store, spawn(fun storage/0)),
        _ = spawn(fun() -> accept(Listen) end),
        Self ! up,
        receive
            stop -> ok
        end
    end),
    receive
        up -> ok
    end.

accept(Listen) ->
    {ok, Socket} = gen_tcp:accept(Listen),
    Pid = spawn(fun() ->
        receive
            go -> connection(Socket)
        end
    end),
    ok = gen_tcp:controlling_process(Socket, Pid),
    Pid ! go,
    accept(Listen).

%% Its token stays with this process: what a port sends takes none away.
connection(Socket) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, Line} ->
            [Op, N] = binary:split(string:trim(Line), <<" ">>),
            Answer =
                try
                    handle(binary_to_existing_atom(Op), binary_to_integer(N))
                catch
                    error:on_purpose -> failed
                end,
            ok = gen_tcp:send(Socket, [io_lib:format("~0p", [Answer]), $\n]),
            log(Op),
            connection(Socket);
        {error, closed} ->
            ok
    end.

-spec handle(atom(), integer()) -> term().
handle(Op, N) ->
    Began = erlang:monotonic_time(nanosecond),
    count({handle, Op}),
    try
        do(Op, N)
    after
        Took = erlang:monotonic_time(nanosecond) - Began,
        ets:update_counter(?TABLE, {ns, Op}, Took, {{ns, Op}, 0})
    end.

do(local, N) ->
    compute(N);
do(stored, N) ->
    compute(N) + ask({store, N});
do(booked, N) ->
    scenario_entry_store ! {book, N},
    compute(N);
do(spawning, N) ->
    Self = self(),
    _ = spawn(fun() -> Self ! {part, part(N)} end),
    _ = spawn(fun() -> Self ! {part, part(N)} end),
    receive
        {part, A} ->
            receive
                {part, B} -> A + B
            end
    end;
do(nested, N) ->
    compute(N) + handle(stored, N) + compute(N) + ask({store, N});
do(fails, N) ->
    _ = compute(N),
    error(on_purpose);
do(dies, N) ->
    _ = compute(N),
    exit(on_purpose);
do(killed, N) ->
    _ = compute(N),
    exit(self(), kill),
    receive
        never -> ok
    end.

-spec compute(integer()) -> integer().
compute(N) ->
    count(compute),
    lists:sum(lists:seq(1, N)).

ask(Request) ->
    Ref = make_ref(),
    scenario_entry_store ! {Request, self(), Ref},
    receive
        {Ref, Answer} -> Answer
    end.

storage() ->
    receive
        {{store, N}, From, Ref} -> From ! {Ref, store(N)};
        {book, N} -> book(N)
    end,
    storage().

-spec store(integer()) -> integer().
store(N) ->
    count(store),
    N.

-spec book(integer()) -> integer().
book(N) ->
    count(book),
    timer:sleep(1),
    N.

-spec part(integer()) -> integer().
part(N) ->
    count(part),
    N.

%% What a connection does behind a request is no part of it.
-spec log(term()) -> term().
log(X) ->
    count(log),
    X.

count(What) -> ets:update_counter(?TABLE, What, 1, {What, 0}).

%% --- clients ---

%% Runs requests one after another over one connection. A request that kills its connection is
%% followed by a new one.
-spec client([atom()], pos_integer()) -> ok.
client(Ops, N) ->
    client(Ops, N, 1).

%% It thinks for some ms behind each: the trace port shall not be what is tested, nor the guard.
client(Ops, N, ThinkMs) ->
    run(connect(), Ops, Ops, N, ThinkMs).

connect() ->
    {ok, Socket} = gen_tcp:connect(
        {127, 0, 0, 1},
        persistent_term:get(?MODULE),
        [binary, {packet, line}, {active, false}, {nodelay, true}]
    ),
    Socket.

run(Socket, _, _, 0, _) ->
    gen_tcp:close(Socket);
run(Socket, [], Ops, N, ThinkMs) ->
    run(Socket, Ops, Ops, N, ThinkMs);
run(Socket, [Op | Rest], Ops, N, ThinkMs) ->
    Began = erlang:monotonic_time(nanosecond),
    ok = gen_tcp:send(Socket, [atom_to_binary(Op), " ", integer_to_binary(200 + N rem 200), $\n]),
    case gen_tcp:recv(Socket, 0, 60000) of
        {ok, _} ->
            ets:update_counter(
                ?TABLE, {client_ns, Op}, erlang:monotonic_time(nanosecond) - Began, {
                    {client_ns, Op}, 0
                }
            ),
            timer:sleep(ThinkMs),
            run(Socket, Rest, Ops, N - 1, ThinkMs);
        {error, closed} ->
            run(connect(), Rest, Ops, N - 1, ThinkMs)
    end.

%% So many clients at once, in the background.
-spec clients(pos_integer(), [atom()], pos_integer()) -> ok.
clients(Clients, Ops, N) ->
    persistent_term:put(scenario_entry_clients, [
        spawn(fun() -> client(Ops, N, 2 * Clients) end)
     || _ <- lists:seq(1, Clients)
    ]),
    ok.

%% Whether they have ended.
-spec finished() -> boolean().
finished() -> not lists:any(fun is_process_alive/1, persistent_term:get(scenario_entry_clients)).

%% --- a loop as an entry ---

-spec loop(pos_integer()) -> ok.
loop(N) ->
    true = register(scenario_entry_loop, spawn(?MODULE, serve, [0])),
    loop_client(N).

-spec serve(integer()) -> no_return().
serve(Served) ->
    receive
        {From, Ref} -> From ! {Ref, store(Served)}
    end,
    serve(Served + 1).

-spec loop_client(non_neg_integer()) -> ok.
loop_client(0) ->
    ok;
loop_client(N) ->
    Ref = make_ref(),
    scenario_entry_loop ! {self(), Ref},
    receive
        {Ref, _} -> ok
    end,
    % more at a time than a trace port takes would trip the guard
    _ = [timer:sleep(2) || N rem 50 =:= 0],
    loop_client(N - 1).

%% --- the truth ---

%% What was counted, by function, and requests by their kind.
-spec truth() -> [{term(), integer()}].
truth() -> lists:sort([Row || {Key, _} = Row <- ets:tab2list(?TABLE), not is_time(Key)]).

%% Nanoseconds of all requests of a kind: measured inside of the entry, and by the client.
-spec stamps() -> [{atom(), integer(), integer()}].
stamps() ->
    lists:sort([
        {Op, Ns, proplists:get_value({client_ns, Op}, ets:tab2list(?TABLE), 0)}
     || {{ns, Op}, Ns} <- ets:tab2list(?TABLE)
    ]).

is_time({Key, _}) -> Key =:= ns orelse Key =:= client_ns;
is_time(_) -> false.

-spec reset() -> ok.
reset() ->
    true = ets:delete_all_objects(?TABLE),
    ok.

%% All of this node that tracing entries changes.
-spec state() -> term().
state() ->
    Kprof = fun(T) -> string:find(io_lib:format("~0p", [T]), "kprof") =/= nomatch end,
    Of = fun(Item) ->
        lists:usort([I || P <- processes(), {_, I} <- [erlang:trace_info(P, Item)]])
    end,
    {
        [Of(flags), Of(tracer), scenario_trace:sessions()],
        [erlang:trace_info(W, I) || W <- [new, new_processes, new_ports], I <- [flags, tracer]],
        lists:usort([
            I
         || {M, _} <- code:all_loaded(),
            {F, A} <- M:module_info(functions),
            {_, I} <- [erlang:trace_info({M, F, A}, all)],
            I =/= false
        ]),
        [
            X
         || X <-
                [M || {M, _} <- code:all_loaded()] ++ [K || {K, _} <- persistent_term:get()] ++
                    ets:all() ++ registered(),
            Kprof(X)
        ],
        [P || P <- erlang:ports(), {_, "trace_ip" ++ _} <- [erlang:port_info(P, name)]],
        erlang:system_info(trace_control_word),
        seq_trace:get_system_tracer(),
        [T || P <- processes(), {_, T} <- [process_info(P, sequential_trace_token)], T =/= []]
    }.
