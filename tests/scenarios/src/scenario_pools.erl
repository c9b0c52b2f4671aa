%% SPDX-License-Identifier: Apache-2.0
%% The application of scenario 39: clients that share workers, a lock or worked-out answers, more of
%% them than there is to share, and the truth about each of their requests: what it asked for, and
%% how long that took, measured by the processes that did it.
%%
%%   client ── handle/2 ─┬─ its helper (carried, handed, said) ─┬─ waits in a lender
%%   (scenario_lenders)
%%                       └──────────────────────────────────────┴─ asks the worker: db/1 there
%%
%% holder: db/1 is called where it asks, and wire/1 in the connection. deep: the worker has no tier
%% and asks a backend, with db/1 there.
%%
%% A fast request calls db twice for a millisecond, a slow one once for ten. With the cache, the
%% first for a key calls db once more.
-module(scenario_pools).
-behaviour(gen_server).

-export([start/0, trace/3, run/3, run_in_bucket/3, truth/1, made/0]).
-export([handle/2, use/1, db/1, wire/1, request/1]).
-export([init/1, handle_call/3, handle_cast/2]).

-export_type([mode/0]).

-type mode() :: entry | marked | handed | said | deep | carried.
%% entry, marked: requests begin with an entry, or with markers; tiers are in the processes that are
%% asked. handed: another process, in which a tier is open, does it for the one that began it. deep:
%% who is asked has no tier, but asks somebody who has. carried: as handed, without the tier. said:
%% as carried, and the helper says whose work it does: set_current_label/1 behind the wait,
%% with_token/2 or wrap/1 around it.

-record(row, {
    id :: pos_integer(),
    identity :: atom(),
    way :: atom(),
    waiters :: pos_integer(),
    start :: integer(),
    stop :: integer() | undefined,
    db = 0 :: integer(),
    db_ns = 0 :: integer(),
    wire = 0 :: integer(),
    wire_ns = 0 :: integer()
}).

% of a client, every other one fast
-define(REQUESTS, 10).

%% --- tracing ---

-spec start() -> ok.
start() ->
    Self = self(),
    _ = spawn(fun() ->
        ?MODULE = ets:new(?MODULE, [
            named_table, public, {keypos, #row.id}, {write_concurrency, true}
        ]),
        Self ! up,
        receive
            stop -> ok
        end
    end),
    receive
        up -> ok
    end.

-spec trace(inet:port_number(), mode(), port | native) -> ok | {error, term()}.
trace(Port, Mode, Tracer) ->
    true = ets:delete_all_objects(?MODULE),
    ok = kprof:start(),
    Tiers =
        [{db, {?MODULE, db, 1}}, {wire, {?MODULE, wire, 1}}] ++
            [{use, {?MODULE, use, 1}} || Mode =:= handed],
    Begin =
        case marks(Mode) of
            true -> [{tier_config, [{handle, {?MODULE, handle, 2}} | Tiers]}];
            false -> [{tier_config, Tiers}, {entry, {?MODULE, handle, 2}}]
        end,
    %% so that all of them are kept
    kprof:start_trace([
        {collector, {"127.0.0.1", Port}},
        {slow_call_threshold, 0},
        {tracer, Tracer},
        {identity_f, fun
            ({scenario_pools, handle, [Identity, _]}) -> Identity;
            (_) -> undefined
        end}
        | Begin
    ]).

marks(Mode) -> lists:member(Mode, [marked, said, carried]).

%% --- running ---

%% So many waiters for each worker, and all their requests. Gives how many these were.
-spec run(mode(), atom(), pos_integer()) -> pos_integer().
run(Mode, Way, Waiters) ->
    Backends = [server() || Mode =:= deep, _ <- [1, 2]],
    Shared =
        case Way of
            lock -> [server()];
            _ -> [server(), server()]
        end,
    Lender = scenario_lenders:start(Way, Shared),
    Clients = length(Shared) * (1 + Waiters),
    Ways = [
        #{
            mode => Mode,
            way => Way,
            waiters => Waiters,
            lender => Lender,
            client => I,
            worker => nth(I, Shared),
            backend =>
                case Backends of
                    [] -> none;
                    _ -> nth(I, Backends)
                end
        }
     || I <- lists:seq(1, Clients)
    ],
    Pids = [spawn_monitor(fun() -> client(W) end) || W <- Ways],
    _ = [
        receive
            {'DOWN', Ref, process, Pid, Why} -> normal = Why
        after 60000 -> exit(hangs)
        end
     || {Pid, Ref} <- Pids
    ],
    scenario_lenders:stop(Lender),
    lists:foreach(fun gen_server:stop/1, Shared ++ Backends),
    Clients * ?REQUESTS.

%% The same, begun early in a bucket of 10 s: so the requests are within one, with what comes late
%% of them.
-spec run_in_bucket(mode(), atom(), pos_integer()) -> pos_integer().
run_in_bucket(Mode, Way, Waiters) ->
    case erlang:system_time(millisecond) rem 10000 of
        Early when Early < 6000 -> run(Mode, Way, Waiters);
        Late ->
            timer:sleep(10000 - Late),
            run_in_bucket(Mode, Way, Waiters)
    end.

nth(I, List) -> lists:nth(1 + I rem length(List), List).

%% Every client has a name of its own for its fast requests and one for its slow ones.
client(#{mode := Mode, way := Way, waiters := Waiters, client := Client} = W) ->
    Helper = spawn_link(fun helper/0),
    Of = fun(Kind) ->
        list_to_atom(lists:flatten(io_lib:format("~s.~b.~s.~b", [Way, Waiters, Kind, Client])))
    end,
    Kinds = {{fast, Of(fast)}, {slow, Of(slow)}},
    lists:foreach(
        fun(N) ->
            {Kind, Identity} = element(1 + (N + Client) rem 2, Kinds),
            Id = erlang:unique_integer([positive]),
            begins(Mode, Kind, Identity, W#{
                id => Id, kind => Kind, key => N, helper => Helper, identity => Identity
            })
        end,
        lists:seq(1, ?REQUESTS)
    ),
    unlink(Helper),
    exit(Helper, kill).

begins(Mode, slow, Identity, W) ->
    case marks(Mode) of
        true ->
            ok = kprof:set_token(Identity),
            request(W),
            ok = kprof:clear_token();
        false ->
            ?MODULE:handle(Identity, W)
    end;
begins(Mode, fast, Identity, W) ->
    case marks(Mode) of
        true -> kprof:do_apply(?MODULE, handle, [Identity, W]);
        false -> ?MODULE:handle(Identity, W)
    end.

-spec handle(atom(), map()) -> ok.
handle(_, W) -> request(W).

%% The request, in the process that begins it.
-spec request(map()) -> ok.
request(
    #{
        id := Id,
        identity := Identity,
        way := Way,
        waiters := Waiters,
        mode := Mode,
        helper := Helper
    } = W
) ->
    true = ets:insert(?MODULE, #row{
        id = Id, identity = Identity, way = Way, waiters = Waiters, start = os_ns()
    }),
    case lists:member(Mode, [handed, said, carried]) of
        true ->
            Helper ! {do, self(), job(W)},
            receive
                {Helper, ok} -> ok
            end;
        false ->
            works(W)
    end,
    true = ets:update_element(?MODULE, Id, {#row.stop, os_ns()}),
    ok.

%% The clock that kprof's times are told by.
os_ns() -> erlang:system_time(nanosecond).

%% What a helper does for the request. Each of the three ways to say so has its turn.
job(#{mode := handed} = W) ->
    fun() -> ?MODULE:use(W) end;
job(#{mode := carried} = W) ->
    fun() -> works(W) end;
job(#{mode := said, key := Key} = W) ->
    Label = kprof:get_current_label(),
    case Key rem 3 of
        0 -> fun() -> works(W#{label => Label}) end;
        1 -> fun() -> kprof:with_token(Label, fun() -> works(W) end) end;
        2 -> kprof:wrap(fun() -> works(W) end)
    end.

helper() ->
    receive
        {do, From, Job} ->
            ok = Job(),
            From ! {self(), ok}
    end,
    helper().

-spec use(map()) -> ok.
use(W) ->
    works(W),
    ok.

works(#{way := cache, lender := Cache, worker := Worker, key := Key} = W) ->
    case scenario_lenders:look_up(Cache, Key) of
        work ->
            asks(Worker, 10, W),
            scenario_lenders:put(Cache, Key, worked_out);
        {value, worked_out} ->
            ok
    end,
    says(W),
    asks_all(Worker, W);
works(#{lender := Lender, worker := Fixed} = W) ->
    {Worker, _} = Lent = scenario_lenders:take(Lender),
    says(W),
    asks_all(
        case Worker of
            undefined -> Fixed;
            _ -> Worker
        end,
        W
    ),
    scenario_lenders:give(Lender, Lent).

says(#{label := Label}) -> ok = kprof:set_current_label(Label);
says(_) -> ok.

asks_all(Worker, #{kind := fast} = W) ->
    asks(Worker, 1, W),
    asks(Worker, 1, W);
asks_all(Worker, #{kind := slow} = W) ->
    asks(Worker, 10, W).

asks(Connection, Ms, #{way := holder, mode := Mode, id := Id}) when Mode =/= deep ->
    measured(#row.db, Id, fun() -> ?MODULE:db({Connection, Id, Ms}) end);
asks(Worker, Ms, #{id := Id, backend := Backend}) ->
    gen_server:call(Worker, {db, Id, Ms, Backend}, 60000).

%% --- what is asked ---

-spec db(pos_integer() | {pid(), pos_integer(), pos_integer()}) -> ok.
db({Connection, Id, Ms}) -> gen_server:call(Connection, {wire, Id, Ms}, 60000);
db(Ms) -> timer:sleep(Ms).

-spec wire(pos_integer()) -> ok.
wire(Ms) -> timer:sleep(Ms).

server() ->
    {ok, Pid} = gen_server:start(?MODULE, [], []),
    Pid.

init([]) -> {ok, none}.

handle_call({db, Id, Ms, none}, _, S) ->
    {reply, measured(#row.db, Id, fun() -> ?MODULE:db(Ms) end), S};
handle_call({db, Id, Ms, Backend}, _, S) ->
    {reply, gen_server:call(Backend, {db, Id, Ms, none}, 60000), S};
handle_call({wire, Id, Ms}, _, S) ->
    {reply, measured(#row.wire, Id, fun() -> ?MODULE:wire(Ms) end), S}.

handle_cast(_, S) -> {noreply, S}.

%% --- the truth ---

%% Counts a call for its request, in the column What, and its time in the next one.
measured(What, Id, F) ->
    Start = erlang:monotonic_time(nanosecond),
    Result = F(),
    Took = erlang:monotonic_time(nanosecond) - Start,
    _ = ets:update_counter(?MODULE, Id, [{What, 1}, {What + 1, Took}]),
    Result.

%% Into a file, a line a request: identity, way, waiters, begin and end in ns since 1970, calls of
%% db and their ns, those of wire.
-spec truth(file:name_all()) -> pos_integer().
truth(File) ->
    Rows = lists:keysort(#row.start, ets:tab2list(?MODULE)),
    ok = file:write_file(File, [
        io_lib:format(
            "~s|~s|~b|~b|~b|~b|~b|~b|~b~n",
            [
                R#row.identity,
                R#row.way,
                R#row.waiters,
                R#row.start,
                R#row.stop,
                R#row.db,
                R#row.db_ns,
                R#row.wire,
                R#row.wire_ns
            ]
        )
     || R <- Rows
    ]),
    length(Rows).

%% How many requests there were.
-spec made() -> non_neg_integer().
made() -> ets:info(?MODULE, size).
