%% SPDX-License-Identifier: Apache-2.0
%% @doc The guard: whatever happens, tracing does not hurt the node. It runs at priority max, apart
%% from everything else, and undoes what was set by itself, without asking {@link kprof_life}.
%%
%% <ul>
%% <li>Gauge: every 10 ms an empty command to the trace port that must not wait. 8 refusals in a row
%% mean that the node makes messages faster than the port takes them, and trip the breaker. The
%% command goes all the way to the collector, and wakes five threads: with neither tiers nor
%% entries, where only what marks requests makes messages, it is every 500 ms until one is refused.
%% The native tracer refuses nothing: that it has dropped messages since the look before
%% counts as a refusal.</li>
%% <li>The same every 10 ms of the process that full traces are traced to ({@link
%% kprof_full_relay:look/2}). It ends these alone: the trace port has nothing to do with
%% them.</li>
%% <li>Every 10 ms also a look whether the patterns are still set, 100 ns each: the load of a module
%% takes its functions' off. They are set again at once, and kprof_life is told for how long they
%% may have been off. Of more than 64, so many at a time.</li>
%% <li>Dead man's switch: 10 s without a byte from the collector, and all is undone. 10 s without a
%% word from who loaded us, a kprof node or `kprof attach', and all is undone and unloaded.
%% (The application's environment can say `silence_ms' for another time.)</li>
%% <li>The death of kprof_life: what it had set is undone, before the next one begins. What an
%% earlier guard left behind is undone at the start.</li>
%% </ul>
-module(kprof_guard).
-behaviour(gen_server).

-export([
    start_link/0,
    arm/3,
    armed/1,
    is_set/1,
    yield/2,
    update/1, update/2,
    counting/1,
    watch/1,
    disarm/0,
    take_over/0,
    heard/0,
    attend/1, attend/2,
    leave/0, leave/1,
    word/1,
    attended_by/0,
    undo_left/0
]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-define(TICK_MS, 10).
% where hardly any message is made
-define(CALM_TICK_MS, 500).
% a tick that is later has been held up with all else
-define(LATE_MS, 1000).
-define(REFUSALS, 8).
-define(SILENCE_MS, 10000).
-define(WATCH_MS, 1000).

% patterns looked at in a tick
-define(LOOKS, 64).

-record(s, {
    armed = undefined ::
        undefined | {kprof_tracer:tracer(), [kprof_tracer:pattern()], pid(), reference()},
    pace = busy :: pace(),
    % the next tick
    timer = undefined :: undefined | reference(),
    refusals = 0 :: non_neg_integer(),
    % of full traces, while some run
    full = none :: none | kprof_full_relay:gauge(),
    % at the patterns; not while their owner sets some
    looks = false :: boolean(),
    % not looked at yet in this round, which began at round_at;
    unseen = [] :: [kprof_tracer:pattern()],
    % native time. At
    round_at = 0 :: integer(),
    % all were set; undefined: never yet
    set_at = undefined :: undefined | integer(),
    silence_ms = ?SILENCE_MS :: pos_integer(),
    % ms without a byte of the collector's, as of the last tick; and when that was
    silent = 0 :: non_neg_integer(),
    ticked = 0 :: integer(),
    % ms without a word of the kprof node's
    attended = undefined :: undefined | {node(), non_neg_integer(), leaving()}
}).

-type pace() :: calm | busy.
%% calm: no functions are traced but those that mark requests.
-type leaving() :: unload | stop | stop_trace.
%% What is done when that node goes: everything is taken out, or the application stopped that was
%% there already, or its trace only.

%% @doc Starts the guard, registered as `kprof_guard'.
-spec start_link() -> {ok, pid()} | ignore | {error, term()}.
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% @doc Tells what the caller, the tracer's owner, is about to set. From now on the guard watches
%% its port and the caller. After an undo of its own it sends the caller `{kprof_guard, tripped |
%% dead_man}'. The port is left open, for what is in it to be delivered or counted: the caller
%% closes it.
-spec arm(kprof_tracer:tracer(), [kprof_tracer:pattern()], pace()) -> ok.
arm(Tracer, Patterns, Pace) ->
    gen_server:call(?MODULE, {arm, Tracer, Patterns, Pace}, 10000).

%% @doc Whether the guard watches this tracer.
-spec armed(kprof_tracer:tracer()) -> boolean().
armed(Tracer) ->
    ets:match_object(?MODULE, {armed, Tracer, '_'}) =/= [].

%% @doc All that was told of by {@link arm/2} or {@link update/1} is set. From now on the guard sets
%% patterns again that are taken off, and sends the owner `{kprof_guard, {reset, From, Until,
%% MFAs}}': in that native time calls of these may not have been traced.
-spec is_set(kprof_tracer:tracer()) -> ok.
is_set(Tracer) ->
    gen_server:cast(?MODULE, {set, Tracer, erlang:monotonic_time()}).

%% @doc To be called by who has set flags or patterns: they stay only while the guard watches them.
%% It may have undone everything a moment ago, and its word is on its way. The guard gives up {@link
%% armed/1} before it undoes, so that one of the two sees what the other did.
-spec yield(kprof_tracer:tracer(), [kprof_tracer:pattern()]) -> ok.
yield(Tracer, Patterns) ->
    case armed(Tracer) of
        true ->
            ok;
        false ->
            close_slots(),
            kprof_tracer:undo(Tracer, Patterns)
    end.

%% @doc Replaces the patterns that would be undone.
-spec update([kprof_tracer:pattern()]) -> ok.
update(Patterns) ->
    gen_server:call(?MODULE, {update, Patterns}, 10000).

%% @doc The same, and how often is looked from now on.
-spec update([kprof_tracer:pattern()], pace()) -> ok.
update(Patterns, Pace) ->
    gen_server:call(?MODULE, {update, Patterns, Pace}, 10000).

%% @doc kprof_life counts entry calls in the trace control word, which is to be put back when all
%% is undone.
-spec counting(non_neg_integer()) -> ok.
counting(Before) ->
    true = ets:insert(?MODULE, {counting, Before}),
    ok.

%% @doc From now on the guard looks at that, too, or no longer. When it is over it ends all full
%% traces, but for what their owner knows, and sends that one `{kprof_guard, full}'.
-spec watch(none | kprof_full_relay:gauge()) -> ok.
watch(Gauge) ->
    gen_server:cast(?MODULE, {watch, Gauge}).

%% @doc Undoes flags and patterns and stops watching. The port stays open.
-spec disarm() -> ok.
disarm() ->
    gen_server:call(?MODULE, disarm, 10000).

%% @doc To be called by the next owner, before it begins. What one that is dead had set is undone
%% when this returns: that it died may be told later than the next one begins.
-spec take_over() -> ok.
take_over() ->
    gen_server:call(?MODULE, take_over, infinity).

%% @doc A byte came from the collector.
-spec heard() -> ok.
heard() ->
    gen_server:cast(?MODULE, heard).

%% @doc A kprof node has loaded the shim, and from now on gives its {@link word/1}.
-spec attend(node()) -> ok.
attend(Node) ->
    attend(Node, unload).

%% @doc The same, for a node that may have found a kprof that is not its own to unload.
-spec attend(node(), leaving()) -> ok.
attend(Node, Leaving) ->
    gen_server:call(?MODULE, {attend, Node, Leaving}, 10000).

%% @doc The node that {@link attend/2} named goes now. Returns when everything is as it was before
%% it came, but for modules that it had loaded.
-spec leave() -> ok.
leave() ->
    leave(gen_server:call(?MODULE, leave, 10000)).

%% @private
-spec leave(leaving() | undefined) -> ok.
leave(unload) ->
    kprof_app:unload();
leave(stop) ->
    %% stopping an application kills every process that has its group leader
    true = group_leader(whereis(init), self()),
    _ = kprof:stop(),
    ok;
leave(stop_trace) ->
    _ = kprof:stop_trace(),
    ok;
leave(undefined) ->
    ok.

%% Somebody else may be coming at this moment.
abandoned(unload, Sup) -> kprof_app:unload(Sup);
abandoned(Leaving, _) -> leave(Leaving).

%% @doc The kprof node's word that it is there. Returns what the shim does.
-spec word(node()) -> idle | tracing | waiting | tripped | paused | not_started.
word(Node) ->
    gen_server:cast(?MODULE, {word, Node}),
    kprof:status().

%% @doc The kprof node that loaded the shim, if one did.
-spec attended_by() -> node() | undefined.
attended_by() ->
    gen_server:call(?MODULE, attended_by, 10000).

%% @doc Undoes what a guard has left that was killed. Returns how who brought kprof wanted it to go;
%% undefined: nobody did.
-spec undo_left() -> leaving() | undefined.
undo_left() ->
    lists:foreach(
        fun({armed, Tracer, Patterns}) -> _ = undo(Tracer, Patterns) end, ets:lookup(?MODULE, armed)
    ),
    case ets:lookup(?MODULE, attended) of
        [{attended, _, Leaving}] -> Leaving;
        [] -> undefined
    end.

%% @private
-spec init([]) -> {ok, #s{}}.
init([]) ->
    _ = process_flag(priority, max),
    _ = process_flag(trap_exit, true),
    _ = undo_left(),
    Attended =
        case ets:lookup(?MODULE, attended) of
            [{attended, Node, Leaving}] ->
                _ = watch_later(),
                {Node, 0, Leaving};
            [] ->
                undefined
        end,
    {ok, #s{attended = Attended, silence_ms = application:get_env(kprof, silence_ms, ?SILENCE_MS)}}.

%% @private
-spec handle_call(term(), gen_server:from(), #s{}) -> {reply, term(), #s{}}.
handle_call({arm, Tracer, Patterns, Pace}, {Owner, _}, S0) ->
    S = forget(S0),
    true = ets:insert(?MODULE, {armed, Tracer, Patterns}),
    Ref = erlang:monitor(process, Owner),
    {reply, ok,
        tick_later(S#s{
            armed = {Tracer, Patterns, Owner, Ref},
            pace = Pace,
            refusals = 0,
            silent = 0,
            ticked = now_ms(),
            looks = false,
            set_at = undefined
        })};
handle_call({update, Patterns, Pace}, From, S) ->
    handle_call({update, Patterns}, From, tick_later(S#s{pace = Pace}));
handle_call({update, Patterns}, _, #s{armed = {Tracer, _, Owner, Ref}} = S) ->
    true = ets:insert(?MODULE, {armed, Tracer, Patterns}),
    {reply, ok, S#s{armed = {Tracer, Patterns, Owner, Ref}, looks = false}};
handle_call({update, _}, _, S) ->
    {reply, ok, S};
handle_call(disarm, _, #s{armed = {Tracer, Patterns, _, _}} = S) ->
    _ = undo(Tracer, Patterns),
    {reply, ok, forget(S)};
handle_call(disarm, _, S) ->
    {reply, ok, S};
handle_call(take_over, _, #s{armed = {_, _, Owner, _}} = S) ->
    case is_process_alive(Owner) of
        true -> {reply, ok, S};
        false -> {reply, ok, orphaned(S)}
    end;
handle_call(take_over, _, S) ->
    {reply, ok, S};
handle_call({attend, Node, Leaving}, _, S) ->
    _ = S#s.attended =/= undefined orelse watch_later(),
    true = ets:insert(?MODULE, {attended, Node, Leaving}),
    {reply, ok, S#s{attended = {Node, 0, Leaving}}};
handle_call(leave, _, #s{attended = undefined} = S) ->
    {reply, undefined, S};
handle_call(leave, _, #s{attended = {_, _, Leaving}} = S) ->
    {reply, Leaving, unattended(S)};
handle_call(attended_by, _, #s{attended = undefined} = S) ->
    {reply, undefined, S};
handle_call(attended_by, _, #s{attended = {Node, _, _}} = S) ->
    {reply, Node, S}.

%% @private
-spec handle_cast(term(), #s{}) -> {noreply, #s{}}.
handle_cast(heard, S) ->
    {noreply, S#s{silent = 0}};
handle_cast({set, Tracer, At}, #s{armed = {Tracer, _, _, _}, set_at = Before} = S) ->
    %% those that were set before may have been taken off while the others were set
    From =
        case Before of
            undefined -> At;
            _ -> Before
        end,
    {noreply, S#s{looks = true, unseen = [], round_at = From, set_at = From}};
handle_cast({set, _, _}, S) ->
    {noreply, S};
handle_cast({watch, Gauge}, S) ->
    {noreply, tick_later(S#s{full = Gauge})};
handle_cast({word, Node}, #s{attended = {Node, _, Leaving}} = S) ->
    {noreply, S#s{attended = {Node, 0, Leaving}}};
handle_cast({word, _}, S) ->
    {noreply, S}.

%% @private
-spec handle_info(term(), #s{}) -> {noreply, #s{}}.
handle_info(tick, #s{armed = undefined} = S) ->
    {noreply, S};
handle_info(tick, #s{armed = {Tracer, _, _, _}} = S0) ->
    Now = now_ms(),
    %% for as long as this node stands still itself, nobody's word can come
    Silent = S0#s.silent + min(Now - S0#s.ticked, ?LATE_MS),
    S = S0#s{refusals = refusals(Tracer, S0#s.refusals), silent = Silent, ticked = Now},
    if
        S#s.refusals >= ?REFUSALS ->
            {noreply, act(tripped, S)};
        Silent > S#s.silence_ms ->
            {noreply, act(dead_man, S)};
        true ->
            {noreply, tick_later(look(gauge(Now, S)))}
    end;
handle_info({'DOWN', Ref, process, _, _}, #s{armed = {_, _, _, Ref}} = S) ->
    {noreply, orphaned(S)};
handle_info(watch, #s{attended = undefined} = S) ->
    {noreply, S};
%% Looks are counted, not the time: for as long as this node stands still itself, nobody's word can
%% come.
handle_info(watch, #s{attended = {Node, Before, Leaving}} = S) ->
    Silent = Before + ?WATCH_MS,
    case Silent > S#s.silence_ms of
        true ->
            logger:warning("kprof: no word from ~ts for ~b ms, leaving", [Node, S#s.silence_ms]),
            Sup = whereis(kprof_sup),
            _ = spawn(fun() -> abandoned(Leaving, Sup) end),
            {noreply, unattended(S)};
        false ->
            _ = watch_later(),
            {noreply, S#s{attended = {Node, Silent, Leaving}}}
    end;
handle_info(_, S) ->
    {noreply, S}.

%% The application ends, and kprof_life was killed before us for taking too long: what it had set
%% is undone in any case.
%% @private
-spec terminate(term(), #s{}) -> ok.
terminate(_, #s{armed = undefined}) ->
    ok;
terminate(_, #s{armed = {Tracer, Patterns, _, _}}) ->
    _ = undo(Tracer, Patterns),
    ok.

refusals(Tracer, Before) ->
    case kprof_tracer:is_full(Tracer) of
        false -> 0;
        true -> Before + 1
    end.

gauge(_, #s{full = none} = S) ->
    S;
gauge(Now, #s{full = Gauge, armed = {_, _, Owner, _}} = S) ->
    case kprof_full_relay:look(Now, Gauge) of
        over ->
            ok = kprof_tracer:end_full(),
            Owner ! {?MODULE, full},
            S#s{full = none};
        Looked ->
            S#s{full = Looked}
    end.

%% --- patterns ---

%% A pattern that is not there has been taken off since the round before began.
look(#s{looks = false} = S) ->
    S;
look(#s{unseen = [], armed = {_, Patterns, _, _}, round_at = Before} = S) ->
    look(S#s{unseen = Patterns, round_at = erlang:monotonic_time(), set_at = Before}, ?LOOKS);
look(S) ->
    look(S, ?LOOKS).

look(#s{unseen = []} = S, _) ->
    S;
look(#s{unseen = Unseen, armed = {Tracer, _, Owner, _}, set_at = From} = S, N) ->
    {Now, Later} = lists:split(min(N, length(Unseen)), Unseen),
    case kprof_tracer:missing(Tracer, Now) of
        [] ->
            S#s{unseen = Later};
        Missing ->
            kprof_tracer:set_patterns(Tracer, Missing),
            Owner ! {?MODULE, {reset, From, erlang:monotonic_time(), [MFA || {MFA, _} <- Missing]}},
            S#s{unseen = Later}
    end.

%% First what stops the messages, then the word. What has piled up in the port is a bounded amount
%% once nothing is added.
act(Why, #s{armed = {Tracer, Patterns, Owner, _}} = S) ->
    _ = undo(Tracer, Patterns),
    Owner ! {?MODULE, Why},
    forget(S).

undo(Tracer, Patterns) ->
    true = ets:delete(?MODULE, armed),
    close_slots(),
    kprof_tracer:undo(Tracer, Patterns),
    case ets:take(?MODULE, counting) of
        [{counting, Before}] ->
            kprof_entry:uncount(Before),
            counted;
        [] ->
            ok
    end.

%% The owner is dead.
orphaned(#s{armed = {Tracer, Patterns, _, _}} = S) ->
    _ = undo(Tracer, Patterns) =:= counted andalso spawn(kprof_entry, clear_tokens, []),
    kprof_tracer:close(Tracer, now),
    forget(S).

close_slots() ->
    case kprof_slots:find() of
        undefined -> ok;
        Slots -> kprof_slots:close(Slots)
    end.

unattended(S) ->
    true = ets:delete(?MODULE, attended),
    S#s{attended = undefined}.

forget(#s{armed = undefined} = S) ->
    S;
forget(#s{armed = {_, _, _, Ref}} = S) ->
    _ = erlang:demonitor(Ref, [flush]),
    true = ets:delete(?MODULE, armed),
    S#s{armed = undefined, refusals = 0, full = none, timer = undefined}.

%% Instead of the tick that was to come, if one was.
tick_later(#s{armed = undefined} = S) ->
    S;
tick_later(#s{timer = Before} = S) ->
    _ = Before =/= undefined andalso erlang:cancel_timer(Before),
    S#s{timer = erlang:send_after(tick_ms(S), self(), tick)}.

tick_ms(#s{pace = calm, refusals = 0, full = none}) -> ?CALM_TICK_MS;
tick_ms(_) -> ?TICK_MS.

watch_later() ->
    erlang:send_after(?WATCH_MS, self(), watch).

now_ms() ->
    erlang:monotonic_time(millisecond).
