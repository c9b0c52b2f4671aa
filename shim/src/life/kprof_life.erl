%% SPDX-License-Identifier: Apache-2.0
%% @doc One trace's life: brings a {@link kprof_trace} through
%% ```
%%            start_trace                collector lost, dead man
%%     idle ──────────────> tracing ───────────────────────────> waiting (0.2 .. 2 s between tries)
%%      ^                    │  ^  ^                                │
%%      │ stop_trace         │  │  └────────────────────────────────┘
%%      └── from anywhere    v  │ after a pause that doubles, 1 .. 60 s, at half the sampling
%%                          tripped (by the guard); what is in the port is still delivered
%% '''
%% and a tool takes it from anywhere but idle to `paused' and back. Then only the control connection
%% is there, and so it is after the collector was lost and found again.
-module(kprof_life).
-behaviour(gen_statem).

-export([start_link/0, start_trace/1, stop_trace/0, status/0, warnings/0, armed/0, collector/0]).
-export([flame/1, sample/1]).
-export([callback_mode/0, init/1, handle_event/4, terminate/3]).

-define(CLOCK_MS, 1000).
-define(LOOK_MS, 500).
-define(RETRY_MIN_MS, 200).
-define(RETRY_MAX_MS, 2000).
-define(PAUSE_MIN_MS, 1000).
-define(PAUSE_MAX_MS, 60000).
% armed for this long without a trip: the next pause is the shortest again
-define(CALM_MS, 60000).

-type status() :: idle | tracing | waiting | tripped | paused.

%% Of a state other than idle. In that the data are the slots.
-record(d, {
    slots :: kprof_slots:slots(),
    trace :: kprof_trace:trace(),
    % a tool has paused it: while waiting, too
    paused = false :: boolean(),
    retry_ms = ?RETRY_MIN_MS :: pos_integer(),
    pause_ms = ?PAUSE_MIN_MS :: pos_integer(),
    % ms
    armed_at :: integer()
}).
-type data() :: kprof_slots:slots() | #d{}.

%% @doc Starts the process, registered as `kprof_life'.
-spec start_link() -> {ok, pid()} | ignore | {error, term()}.
start_link() ->
    gen_statem:start_link({local, ?MODULE}, ?MODULE, [], []).

%% @doc Starts a trace with checked options. Returns once everything is armed.
-spec start_trace(kprof_options:options()) -> ok | {error, term()}.
start_trace(Options) ->
    call({start, Options}).

%% @doc Stops the trace.
-spec stop_trace() -> ok | {error, not_started | not_tracing}.
stop_trace() ->
    call(stop).

call(Request) ->
    try
        gen_statem:call(?MODULE, Request, 30000)
    catch
        exit:{noproc, _} -> {error, not_started};
        exit:{shutdown, _} -> {error, not_started}
    end.

%% @doc A line of text for each tier whose function is not on this node, and one when there are
%% processes that cannot be traced.
-spec warnings() -> [string()] | {error, not_started}.
warnings() ->
    call(warnings).

%% @doc What is armed, and what is not.
-spec armed() -> [kprof_armed:line()] | {error, not_started}.
armed() ->
    call(armed).

%% @doc How the trace's collector is reached: where it listens, the secret (empty: none), and what
%% TLS needs (`false': there is none). kprof attach asks it, which has only the text of a
%% configuration whose files are this node's.
-spec collector() -> kprof_control:reached() | {error, not_started | not_tracing}.
collector() ->
    call(collector).

%% @doc Has the collector make a full trace of this node, and waits for its profile's number.
-spec flame(kprof_flame:wanted()) -> {ok, pos_integer()} | {error, term()}.
flame(Wanted) ->
    kprof_caller:call({flame, Wanted}, kprof_flame:patience(Wanted)).

%% @doc Has the collector keep a run of stack sampling of this node, and waits for its profile.
-spec sample(kprof_sample_options:wanted()) -> {ok, kprof_sample:kept()} | {error, term()}.
sample(Wanted) ->
    kprof_caller:call({sample, Wanted}, kprof_sample:patience(Wanted)).

%% @doc The state; never waits for the process.
-spec status() -> not_started | status().
status() ->
    try
        ets:lookup_element(kprof_guard, status, 2)
    catch
        error:badarg -> not_started
    end.

%% @private
-spec callback_mode() -> gen_statem:callback_mode_result().
callback_mode() ->
    handle_event_function.

%% @private
-spec init([]) -> {ok, status(), data()}.
init([]) ->
    _ = process_flag(trap_exit, true),
    % it lowers the sampling of a node that has no time
    _ = process_flag(priority, high),
    ok = kprof_guard:take_over(),
    true = ets:insert(kprof_guard, {status, idle}),
    {ok, idle, kprof_slots:create()}.

%% @private
-spec terminate(term(), status(), data()) -> ok.
terminate(_, idle, _) -> ok;
terminate(_, _, #d{trace = Trace}) -> kprof_trace:stop(Trace).

%% @private
-spec handle_event(gen_statem:event_type(), term(), status(), data()) ->
    gen_statem:event_handler_result(status(), data()).
handle_event({call, From}, {start, Options}, idle, Slots) ->
    _ = seq_trace:set_token([]),
    start(From, Options, Slots);
handle_event({call, From}, stop, idle, _) ->
    {keep_state_and_data, {reply, From, {error, not_tracing}}};
handle_event({call, From}, {What, _}, idle, _) when What =:= flame; What =:= sample ->
    {keep_state_and_data, {reply, From, {error, not_tracing}}};
handle_event({call, From}, collector, idle, _) ->
    {keep_state_and_data, {reply, From, {error, not_tracing}}};
handle_event({call, From}, What, idle, _) when What =:= warnings; What =:= armed ->
    {keep_state_and_data, {reply, From, []}};
handle_event(_, _, idle, _) ->
    keep_state_and_data;
handle_event({call, From}, {start, _}, _, _) ->
    {keep_state_and_data, {reply, From, {error, already_tracing}}};
handle_event({call, From}, stop, _, #d{slots = Slots, trace = Trace}) ->
    ok = kprof_trace:stop(Trace),
    next(idle, Slots, [{reply, From, ok} | no_timers()]);
handle_event({call, From}, warnings, _, #d{trace = Trace}) ->
    {keep_state_and_data, {reply, From, kprof_trace:warnings(Trace)}};
handle_event({call, From}, armed, _, #d{trace = Trace}) ->
    {keep_state_and_data, {reply, From, kprof_trace:armed(Trace)}};
handle_event({call, From}, collector, _, #d{trace = Trace}) ->
    {keep_state_and_data, {reply, From, kprof_trace:reached(Trace)}};
handle_event({call, From}, {flame, Wanted}, tracing, #d{trace = Trace0} = D) ->
    %% who asks may work for a request, and what is sent from here does not
    _ = seq_trace:set_token([]),
    case kprof_trace:flame(From, Wanted, Trace0) of
        {ok, Trace} -> {keep_state, D#d{trace = Trace}};
        {error, _} = Error -> {keep_state_and_data, {reply, From, Error}}
    end;
handle_event({call, From}, {flame, _}, State, _) ->
    {keep_state_and_data, {reply, From, {error, {not_now, State}}}};
handle_event({call, From}, {sample, Wanted}, State, #d{trace = Trace0} = D) ->
    _ = seq_trace:set_token([]),
    case kprof_trace:sample_stacks(From, Wanted, State, Trace0) of
        {ok, Trace} -> {keep_state, D#d{trace = Trace}};
        {error, _} = Error -> {keep_state_and_data, {reply, From, Error}}
    end;
handle_event(info, {'EXIT', From, Why}, State, #d{trace = Trace0} = D) ->
    case kprof_trace:ended(From, Why, Trace0) of
        {ok, Trace} -> {keep_state, D#d{trace = Trace}};
        {lost, Text, Trace} -> lost(Text, State, D#d{trace = Trace})
    end;
handle_event(info, {'DOWN', Ref, process, _, Why}, _, #d{trace = Trace} = D) ->
    {keep_state, D#d{trace = kprof_trace:answered(Ref, Why, Trace)}};
handle_event(info, {kprof_guard, tripped}, tracing, #d{trace = Trace, pause_ms = Pause} = D) ->
    next(
        tripped,
        D#d{trace = kprof_trace:tripped(Pause, Trace), pause_ms = min(2 * Pause, ?PAUSE_MAX_MS)},
        again_in(Pause)
    );
handle_event(info, {kprof_guard, full}, tracing, #d{trace = Trace} = D) ->
    {keep_state, D#d{trace = kprof_trace:full_tripped(Trace)}};
handle_event(info, {kprof_full_relay, Pid, Why}, tracing, #d{trace = Trace} = D) ->
    {keep_state, D#d{trace = kprof_trace:full_cut_off(Pid, Why, Trace)}};
handle_event(info, {kprof_sampler, _, _} = Told, _, #d{trace = Trace} = D) ->
    {keep_state, D#d{trace = kprof_trace:sampler(Told, Trace)}};
handle_event(info, {kprof_lookout, _, _} = Told, _, #d{trace = Trace} = D) ->
    {keep_state, D#d{trace = kprof_trace:lookout(Told, Trace)}};
handle_event(info, {kprof_guard, {reset, From, Until, MFAs}}, tracing, #d{trace = Trace}) ->
    ok = kprof_trace:reset({From, Until}, MFAs, Trace),
    keep_state_and_data;
handle_event(info, {kprof_guard, dead_man}, tracing, #d{trace = Trace} = D) ->
    ok = kprof_trace:silent(Trace),
    lost("it has been silent for too long", tracing, D);
handle_event(info, {kprof_flame_header, What}, tracing, #d{trace = Trace} = D) ->
    {keep_state, D#d{trace = kprof_trace:flame_header(What, Trace)}};
handle_event(info, Info, State, #d{trace = Trace} = D) ->
    case kprof_trace:event(Info, Trace) of
        {message, {steer, Id, Command}} ->
            steer(Command, Id, State, D);
        {message, Message} ->
            {keep_state, D#d{trace = kprof_trace:message(Message, Trace)}};
        {lost, Why} ->
            lost(Why, State, D);
        none ->
            keep_state_and_data
    end;
handle_event({timeout, load}, load, tracing, #d{trace = Trace} = D) ->
    {keep_state, D#d{trace = kprof_trace:load(Trace)}, load_later(kprof_trace:load_ms(Trace))};
handle_event({timeout, look}, look, tracing, #d{trace = Trace} = D) ->
    {keep_state, D#d{trace = kprof_trace:look(Trace)}, look_later()};
handle_event({timeout, clock}, clock, State, #d{trace = Trace0} = D) ->
    case kprof_trace:clock(Trace0) of
        {ok, Trace} -> {keep_state, calm(State, D#d{trace = Trace}), clock_later()};
        {error, Why} -> lost(io_lib:format("~0tp", [Why]), State, D)
    end;
handle_event({timeout, again}, again, _, D) ->
    again(D);
handle_event(_, _, _, _) ->
    keep_state_and_data.

%% --- starting, losing the collector, coming back ---

start(From, Options, Slots) ->
    case connect_and_arm(kprof_trace:new(Slots, Options)) of
        {ok, Trace} ->
            ok = kprof_trace:tell_state(tracing, "", Trace),
            next(tracing, #d{slots = Slots, trace = Trace, armed_at = now_ms()}, [
                {reply, From, ok} | timers()
            ]);
        {error, Why, Trace} ->
            ok = kprof_trace:discard(Trace),
            {keep_state_and_data, {reply, From, {error, Why}}}
    end.

connect_and_arm(Trace0) ->
    case kprof_trace:connect(Trace0) of
        {ok, Trace} -> kprof_trace:arm(Trace);
        Error -> Error
    end.

lost(Why, State, #d{trace = Trace} = D0) ->
    {Host, Port} = kprof_trace:collector(Trace),
    State =:= waiting orelse
        logger:warning("kprof: the collector at ~ts:~b is lost: ~ts; trying again", [
            Host, Port, Why
        ]),
    D = D0#d{trace = kprof_trace:let_go(Trace)},
    case State of
        % its pause ends in a new connection
        tripped -> {keep_state, D};
        _ -> next(waiting, D#d{retry_ms = ?RETRY_MIN_MS}, again_in(?RETRY_MIN_MS))
    end.

again(#d{paused = true, trace = Trace0} = D) ->
    case kprof_trace:connect(Trace0) of
        {ok, Trace} ->
            ok = kprof_trace:listen(Trace),
            ok = kprof_trace:tell_state(paused, "", Trace),
            next(paused, D#d{trace = Trace, retry_ms = ?RETRY_MIN_MS}, [clock_later()]);
        Error ->
            wait(Error, D)
    end;
again(#d{trace = Trace0} = D) ->
    case connect_and_arm(Trace0) of
        {ok, Trace} ->
            logger:notice("kprof: tracing again"),
            ok = kprof_trace:tell_state(tracing, "", Trace),
            next(
                tracing, D#d{trace = Trace, retry_ms = ?RETRY_MIN_MS, armed_at = now_ms()}, timers()
            );
        Error ->
            wait(Error, D)
    end.

wait({error, Why, Trace}, #d{retry_ms = Wait} = D) ->
    next(
        waiting,
        D#d{trace = kprof_trace:waits(Why, Trace), retry_ms = min(2 * Wait, ?RETRY_MAX_MS)},
        again_in(Wait)
    ).

%% Who hears of a state by an answer finds it in status/0 at once.
next(State, Data, Actions) ->
    true = ets:insert(kprof_guard, {status, State}),
    {next_state, State, Data, Actions}.

calm(tracing, #d{armed_at = At} = D) ->
    case now_ms() - At > ?CALM_MS of
        true -> D#d{pause_ms = ?PAUSE_MIN_MS};
        false -> D
    end;
calm(_, D) ->
    D.

%% --- what a tool wants ---

steer(pause, Id, paused, D) ->
    steered(Id, true, "is paused already", D);
steer(pause, Id, _, #d{trace = Trace0} = D) ->
    Trace = kprof_trace:pause(Trace0),
    logger:notice("kprof: paused by a tool"),
    ok = kprof_trace:tell_state(paused, "", Trace),
    Next = next(paused, D#d{trace = Trace, paused = true}, [
        {{timeout, again}, cancel}, {{timeout, look}, cancel}
    ]),
    ok = kprof_trace:steered(Id, true, "paused", Trace),
    Next;
steer(resume, Id, tracing, D) ->
    steered(Id, true, "is being traced already", D);
steer(resume, Id, _, #d{trace = Trace0} = D0) ->
    case again(D0#d{paused = false, trace = kprof_trace:wanted(Trace0)}) of
        {next_state, tracing, #d{trace = Trace} = D, Timers} ->
            ok = kprof_trace:steered(
                Id, true, ["traced again: ", kprof_trace:describe(Trace)], Trace
            ),
            {next_state, tracing, D, [{{timeout, again}, cancel} | Timers]};
        NotYet ->
            % the connection is gone, and with it who asked
            NotYet
    end;
steer({sample, Asked}, Id, State, #d{trace = Trace0} = D) ->
    case kprof_trace:sample(Asked, State, Trace0) of
        {ok, Trace} ->
            steered(Id, true, ["samples ", kprof_trace:describe(Trace)], D#d{trace = Trace});
        {error, Text} ->
            steered(Id, false, Text, D)
    end;
steer({trigger, Order}, Id, _, #d{trace = Trace} = D) ->
    {keep_state, D#d{trace = kprof_trace:trigger(Id, Order, Trace)}};
steer(unknown, Id, _, D) ->
    steered(Id, false, "its shim cannot do that; it may be of an older release", D).

steered(Id, Ok, Text, #d{trace = Trace} = D) ->
    ok = kprof_trace:steered(Id, Ok, Text, Trace),
    {keep_state, D}.

%% --- time ---

timers() -> [clock_later(), look_later(), load_later(kprof_load:interval())].
clock_later() -> {{timeout, clock}, ?CLOCK_MS, clock}.
load_later(Ms) -> {{timeout, load}, Ms, load}.
again_in(Ms) -> {{timeout, again}, Ms, again}.
look_later() -> {{timeout, look}, ?LOOK_MS, look}.
no_timers() ->
    [
        {{timeout, clock}, cancel},
        {{timeout, look}, cancel},
        {{timeout, load}, cancel},
        {{timeout, again}, cancel}
    ].

now_ms() ->
    erlang:monotonic_time(millisecond).
