%% SPDX-License-Identifier: Apache-2.0
%% Processes that hand something on which another one gave back: the next in the queue gets its
%% answer while they handle the message of the one before. Nothing in here knows of kprof.
%%
%%   hand     a process with a queue of waiters, written by hand: {out, From, Ref} and {in, Worker}
%%   boy      a gen_server that monitors who has a worker: a call that may wait, and a cast behind
%%            which gen_server:reply/2 ends one
%%   holder   a table for each connection, which stands for it: ets:give_away/3 lends it and brings
%%            it back; its user works in a process of its own
%%   lock     one at a time
%%   cache    the first who asks for a key works the answer out, for all who have asked meanwhile
-module(scenario_lenders).
-behaviour(gen_server).

-export([start/2, take/1, give/2, look_up/2, put/3, stop/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([lender/0, lent/0]).

-type lender() :: {hand | boy | holder | lock | cache, pid()}.
-type lent() :: term().

-record(boy, {
    free :: [pid()], waiting = queue:new() :: queue:queue(), users = #{} :: #{pid() => reference()}
}).
-record(holder, {free :: [ets:tid()], waiting = queue:new() :: queue:queue()}).
-record(lock, {held = false :: boolean(), waiting = queue:new() :: queue:queue()}).
-record(cache, {values = #{} :: #{term() => {value, term()} | {waiting, [term()]}}}).

%% Lends out these workers.
-spec start(atom(), [pid()]) -> lender().
start(hand, Workers) ->
    {hand, spawn(fun() -> hand(Workers, queue:new()) end)};
start(Way, Workers) ->
    {ok, Pid} = gen_server:start(?MODULE, {Way, Workers}, []),
    {Way, Pid}.

-spec stop(lender()) -> true.
stop({_, Pid}) -> exit(Pid, kill).

%% Waits until something is free. What comes back is for give/2; its first element is the worker.
-spec take(lender()) -> {pid() | undefined, lent()}.
take({hand, Pool}) ->
    Ref = make_ref(),
    Pool ! {out, self(), Ref},
    receive
        {Ref, Worker} -> {Worker, Worker}
    end;
take({boy, Pool}) ->
    Worker = gen_server:call(Pool, take, 60000),
    {Worker, Worker};
take({holder, Pool}) ->
    Lock = monitor(process, Pool),
    Pool ! {take, self(), Lock},
    receive
        {'ETS-TRANSFER', Table, Pool, Lock} ->
            demonitor(Lock, [flush]),
            [{connection, Connection}] = ets:lookup(Table, connection),
            {Connection, Table}
    end;
take({lock, Lock}) ->
    ok = gen_server:call(Lock, take, infinity),
    {undefined, lock}.

-spec give(lender(), {pid() | undefined, lent()}) -> ok.
give({hand, Pool}, {_, Worker}) ->
    Pool ! {in, Worker},
    ok;
give({boy, Pool}, {_, Worker}) ->
    gen_server:cast(Pool, {give, Worker});
give({holder, Pool}, {_, Table}) ->
    true = ets:give_away(Table, Pool, back),
    ok;
give({lock, Lock}, _) ->
    gen_server:cast(Lock, give).

%% What a cache has, or the order to work it out.
-spec look_up(lender(), term()) -> {value, term()} | work.
look_up({cache, Cache}, Key) -> gen_server:call(Cache, {look_up, Key}, 60000).

-spec put(lender(), term(), term()) -> ok.
put({cache, Cache}, Key, Value) -> gen_server:cast(Cache, {put, Key, Value}).

%% --- by hand ---

hand(Free, Waiting) ->
    receive
        {out, From, Ref} when Free =:= [] -> hand(Free, queue:in({From, Ref}, Waiting));
        {out, From, Ref} ->
            From ! {Ref, hd(Free)},
            hand(tl(Free), Waiting);
        {in, Worker} ->
            case queue:out(Waiting) of
                {{value, {From, Ref}}, Rest} ->
                    From ! {Ref, Worker},
                    hand(Free, Rest);
                {empty, _} ->
                    hand([Worker | Free], Waiting)
            end
    end.

%% --- servers ---

init({boy, Workers}) ->
    {ok, #boy{free = Workers}};
init({holder, Workers}) ->
    Tables = [ets:new(scenario_holder, [public]) || _ <- Workers],
    [true = ets:insert(T, {connection, W}) || {T, W} <- lists:zip(Tables, Workers)],
    {ok, #holder{free = Tables}};
init({lock, _}) ->
    {ok, #lock{}};
init({cache, _}) ->
    {ok, #cache{}}.

handle_call(take, From, #boy{free = []} = S) ->
    {noreply, S#boy{waiting = queue:in(From, S#boy.waiting)}};
handle_call(take, {User, _}, #boy{free = [Worker | Free]} = S) ->
    {reply, Worker, lent(Worker, User, S#boy{free = Free})};
handle_call(take, From, #lock{held = true} = S) ->
    {noreply, S#lock{waiting = queue:in(From, S#lock.waiting)}};
handle_call(take, _, #lock{} = S) ->
    {reply, ok, S#lock{held = true}};
handle_call({look_up, Key}, From, #cache{values = Values} = S) ->
    case Values of
        #{Key := {value, Value}} ->
            {reply, {value, Value}, S};
        #{Key := {waiting, Others}} ->
            {noreply, S#cache{values = Values#{Key := {waiting, [From | Others]}}}};
        #{} ->
            {reply, work, S#cache{values = Values#{Key => {waiting, []}}}}
    end.

handle_cast({give, Worker}, #boy{users = Users} = S) ->
    #{Worker := Ref} = Users,
    true = demonitor(Ref, [flush]),
    {noreply, given_back(Worker, S#boy{users = maps:remove(Worker, Users)})};
handle_cast(give, #lock{waiting = Waiting} = S) ->
    case queue:out(Waiting) of
        {{value, From}, Rest} ->
            gen_server:reply(From, ok),
            {noreply, S#lock{waiting = Rest}};
        {empty, _} ->
            {noreply, S#lock{held = false}}
    end;
handle_cast({put, Key, Value}, #cache{values = Values} = S) ->
    #{Key := {waiting, Others}} = Values,
    _ = [gen_server:reply(From, {value, Value}) || From <- lists:reverse(Others)],
    {noreply, S#cache{values = Values#{Key := {value, Value}}}}.

%% Who dies with a worker gives it back.
handle_info({'DOWN', Ref, process, _, _}, #boy{users = Users} = S) ->
    case [W || {W, R} <- maps:to_list(Users), R =:= Ref] of
        [Worker] -> {noreply, given_back(Worker, S#boy{users = maps:remove(Worker, Users)})};
        [] -> {noreply, S}
    end;
handle_info({take, User, Lock}, #holder{free = []} = S) ->
    {noreply, S#holder{waiting = queue:in({User, Lock}, S#holder.waiting)}};
handle_info({take, User, Lock}, #holder{free = [Table | Free]} = S) ->
    true = ets:give_away(Table, User, Lock),
    {noreply, S#holder{free = Free}};
handle_info({'ETS-TRANSFER', Table, _, back}, #holder{free = Free, waiting = Waiting} = S) ->
    case queue:out(Waiting) of
        {{value, {User, Lock}}, Rest} ->
            true = ets:give_away(Table, User, Lock),
            {noreply, S#holder{waiting = Rest}};
        {empty, _} ->
            {noreply, S#holder{free = [Table | Free]}}
    end.

lent(Worker, User, #boy{users = Users} = S) ->
    S#boy{users = Users#{Worker => monitor(process, User)}}.

given_back(Worker, #boy{free = Free, waiting = Waiting} = S) ->
    case queue:out(Waiting) of
        {{value, {User, _} = From}, Rest} ->
            gen_server:reply(From, Worker),
            lent(Worker, User, S#boy{waiting = Rest});
        {empty, _} ->
            S#boy{free = [Worker | Free]}
    end.
