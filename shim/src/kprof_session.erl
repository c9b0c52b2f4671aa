%% @doc One trace's life. The session owns the control connection and the trace port, and brings them through
%% ```
%%            start_trace                        collector lost, dead man
%%     idle ──────────────> tracing ────────────────────────────────────> waiting (0.2 .. 2 s between tries)
%%      ^                    │  ^  ^                                         │
%%      │ stop_trace         │  │  └─────────────────────────────────────────┘
%%      └── from anywhere    v  │ after a pause that doubles, 1 .. 60 s, at half the sampling
%%                          paused (the guard has tripped); what is in the port is still delivered
%% '''
%% and a tool takes it from anywhere but idle to `held' and back. Then only the control connection is there, and so it is after the
%% collector was lost and found again.
%%
%% Each arming is hello, welcome, tiers, a new trace port, the data connection, flags and patterns, trace_started.
%% A trace port is never used twice: its next client would begin in the middle of a message.
-module(kprof_session).
-behaviour(gen_statem).

-export([start_link/0, start_trace/1, stop_trace/0, status/0, warnings/0, armed/0, collector/0]).
-export([callback_mode/0, init/1, handle_event/4, terminate/3]).

-define(CLOCK_MS, 1000).
-define(LOOK_MS, 500).
-define(RETRY_MIN_MS, 200).
-define(RETRY_MAX_MS, 2000).
-define(MAX_ONE_IN, 1 bsl 30).
-define(MAX_PER_SECOND, 1000000).
-define(PAUSE_MIN_MS, 1000).
-define(PAUSE_MAX_MS, 60000).
-define(CALM_MS, 60000).        % armed for this long without a trip: the next pause is the shortest again
-define(DRAIN_MS, 2500).

-type tier() :: #{name := binary(), mfa := mfa(), returns := none | whole, entry := boolean(), kind := kprof_match:kind(),
                  rows := [kprof_match:row()], spec := [tuple()]}.
-type status() :: idle | tracing | waiting | paused | held.

-record(d, {slots :: kprof_slots:slots(),
            options = undefined :: undefined | kprof_options:options(),
            tiers = [] :: [tier()],
            spawns = [] :: [kprof_tracer:pattern()],  % of the functions that spawn, those that are ours to trace
            absent = [] :: [kprof_armed:absence()],   % told already
            looked = 0 :: integer(),                  % native time of the last look at flags and patterns; then they were as we set them
            sampling = kprof_sampling:new({one_in, 1}) :: kprof_sampling:sampling(),
            trips = {0, 0} :: {All :: non_neg_integer(), NotTold :: non_neg_integer()},   % of the breaker
            load = kprof_load:new() :: kprof_load:load(),
            lowered_ms = 0 :: non_neg_integer(),      % traced below what was asked for, not yet told to the collector
            draining = undefined :: undefined | {kprof_tracer:tracer(), pid()},   % after a trip
            held = false :: boolean(),                % a tool has paused the trace
            entries = undefined :: undefined | non_neg_integer(),   % entry calls counted, at the last look; those before are told
            control = undefined :: undefined | kprof_link:connection(),
            session = undefined :: undefined | kprof_link:session(),   % from welcome, for the data connection
            tracer = undefined :: undefined | kprof_tracer:tracer(),
            foreign = 0 :: non_neg_integer(),         % processes that somebody else traces
            flags_owner = us :: us | {other, term()},            % who traces new processes, at the last look
            relay = undefined :: undefined | pid(),
            printer = undefined :: undefined | pid(),
            slow = undefined :: undefined | pid(),
            asks = kprof_asks:new() :: kprof_asks:asks(),
            retry_ms = ?RETRY_MIN_MS :: pos_integer(),
            pause_ms = ?PAUSE_MIN_MS :: pos_integer(),
            armed_at = 0 :: integer(),
            untraced_since = undefined :: undefined | integer(),
            untraced_ms = 0 :: non_neg_integer()}).   % not yet told to the collector

%% @doc Starts the session, registered as `kprof_session'.
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
    try gen_statem:call(?MODULE, Request, 30000)
    catch
        exit:{noproc, _} -> {error, not_started};
        exit:{shutdown, _} -> {error, not_started}
    end.

%% @doc A line of text for each tier whose function is not on this node, and one when there are processes that cannot be traced.
-spec warnings() -> [string()] | {error, not_started}.
warnings() ->
    call(warnings).

%% @doc What is armed, and what is not.
-spec armed() -> [kprof_armed:line()] | {error, not_started}.
armed() ->
    call(armed).

%% @doc Where the trace's collector listens.
-spec collector() -> {binary(), inet:port_number()} | {error, not_started | not_tracing}.
collector() ->
    call(collector).

%% @doc What the session does; never waits for it.
-spec status() -> not_started | status().
status() ->
    try ets:lookup_element(kprof_guard, status, 2)
    catch error:badarg -> not_started
    end.

%% @private
-spec callback_mode() -> gen_statem:callback_mode_result().
callback_mode() ->
    [handle_event_function, state_enter].

%% @private
-spec init([]) -> {ok, status(), #d{}}.
init([]) ->
    _ = process_flag(trap_exit, true),
    _ = process_flag(priority, high),     % it lowers the sampling of a node that has no time
    {ok, idle, #d{slots = kprof_slots:create()}}.

%% @private
-spec handle_event(gen_statem:event_type() | enter, term(), status(), #d{}) ->
          gen_statem:event_handler_result(status(), #d{}) | gen_statem:state_enter_result(status(), #d{}).
handle_event(enter, _, State, _) ->
    true = ets:insert(kprof_guard, {status, State}),
    keep_state_and_data;

handle_event({call, From}, {start, Options}, idle, D) ->
    _ = seq_trace:set_token([]),
    start(From, Options, D);
handle_event({call, From}, {start, _}, _, _) ->
    {keep_state_and_data, {reply, From, {error, already_tracing}}};
handle_event({call, From}, stop, idle, _) ->
    {keep_state_and_data, {reply, From, {error, not_tracing}}};
handle_event({call, From}, stop, _, D) ->
    {next_state, idle, stop(D), [{reply, From, ok} | no_timers()]};
handle_event({call, From}, warnings, _, D) ->
    {keep_state_and_data, {reply, From, [kprof_armed:absent(Absence, D#d.tiers) || Absence <- D#d.absent] ++ kprof_armed:foreign(D#d.foreign)}};
handle_event({call, From}, armed, _, #d{tiers = Tiers, tracer = Tracer} = D) ->
    More = [{warning, unicode:characters_to_binary(Line)} || Line <- kprof_armed:foreign(D#d.foreign)],
    {keep_state_and_data, {reply, From, kprof_armed:lines(Tiers, Tracer) ++ More}};
handle_event({call, From}, collector, idle, _) ->
    {keep_state_and_data, {reply, From, {error, not_tracing}}};
handle_event({call, From}, collector, _, D) ->
    {Text, _, Port} = maps:get(collector, D#d.options),
    {keep_state_and_data, {reply, From, {unicode:characters_to_binary(Text), Port}}};

handle_event(info, {Tag, Socket, Bytes}, State, #d{control = {_, Socket}} = D) when Tag =:= tcp; Tag =:= ssl ->
    ok = kprof_guard:heard(),
    _ = kprof_link:active(D#d.control),
    case kprof_link:decode(Bytes) of
        {ok, #{<<"type">> := Type} = Message} -> message(Type, Message, State, D);
        _ -> lost("it does not speak kprof's protocol", State, D)
    end;
handle_event(info, {Tag, Socket}, State, #d{control = {_, Socket}} = D) when Tag =:= tcp_closed; Tag =:= ssl_closed ->
    lost("it closed the connection", State, D);
handle_event(info, {Tag, Socket, Why}, State, #d{control = {_, Socket}} = D) when Tag =:= tcp_error; Tag =:= ssl_error ->
    lost(kprof_error:network(Why), State, D);

handle_event(info, {'EXIT', Pid, _}, _, #d{draining = {Tracer, Pid}} = D) ->
    kprof_tracer:close(Tracer, now),
    {keep_state, D#d{draining = undefined}};
handle_event(info, {'EXIT', Pid, Why}, State, #d{relay = Pid} = D) when is_pid(Pid) ->
    lost(io_lib:format("the data connection ended (~0tp)", [Why]), State, D#d{relay = undefined});
handle_event(info, {'EXIT', Port, Why}, State, D) when is_port(Port) ->
    case D#d.tracer =/= undefined andalso kprof_tracer:port(D#d.tracer) =:= Port of
        true -> lost(io_lib:format("the trace port ended (~0tp)", [Why]), State, D);
        false -> keep_state_and_data
    end;
handle_event(info, {'EXIT', Pid, _}, _, #d{printer = Pid} = D) when is_pid(Pid) ->
    {keep_state, D#d{printer = printer(D#d.options)}};
handle_event(info, {'EXIT', Pid, _}, _, #d{slow = Pid} = D) when is_pid(Pid) ->
    {keep_state, D#d{slow = slow(D#d.options)}};

handle_event(info, {kprof_guard, tripped}, tracing, D) ->
    tripped(D);
handle_event(info, {kprof_guard, dead_man}, tracing, D) ->
    _ = tell_stopped(dead_man, <<"no word from the collector">>, D),
    lost("it has been silent for too long", tracing, D);

handle_event(info, {'DOWN', Ref, process, _, Why}, State, #d{options = #{identity_f := Fun}} = D) when State =/= idle, is_function(Fun) ->
    case kprof_asks:answered(Ref, Why, Fun, D#d.asks) of
        {Id, Identity, Asks} ->
            _ = tell(#{type => <<"identify_reply">>, id => Id, identity => Identity}, D),
            {keep_state, D#d{asks = Asks}};
        none ->
            keep_state_and_data
    end;

handle_event({timeout, clock}, clock, State, D) ->
    case clock(D) of
        {ok, D1} -> {keep_state, calm(State, D1), clock_later()};
        {error, Why} -> lost(io_lib:format("~0tp", [Why]), State, D)
    end;
handle_event({timeout, look}, look, State, D) ->
    {keep_state, look(State, D), look_later()};
handle_event({timeout, load}, load, tracing, D) ->
    {keep_state, follow(D#d{load = kprof_load:look(now_ms(), D#d.load)}), load_later()};
handle_event({timeout, again}, again, _, D) ->
    again(D);

handle_event(_, _, _, _) ->
    keep_state_and_data.

%% @private
-spec terminate(term(), status(), #d{}) -> ok.
terminate(_, idle, _) ->
    ok;
terminate(_, _, D) ->
    _ = stop(D),
    ok.

%% --- starting, arming, stopping ---

start(From, Options, #d{slots = Slots} = D0) ->
    Prepared = kprof_match:prepare(maps:get(identity_f, Options)),
    How = #{flags => maps:get(flags, Options), deaths => kprof_vm:kills_in_silence()},
    Tiers = [begin
                 {Kind, Rows} = kprof_match:rows(Prepared, MFA),
                 Tier#{kind => Kind, rows => Rows, spec => kprof_match:spec(Rows, How#{returns => Returns})}
             end || #{mfa := MFA, returns := Returns} = Tier <- maps:get(tiers, Options)],
    %% what hands things on to the user is there before new processes are traced
    D1 = #d{slots = Slots, options = Options, tiers = Tiers, sampling = kprof_sampling:new(maps:get(sample, Options)), printer = printer(Options), slow = slow(Options)},
    case arm(D1) of
        {ok, D} ->
            tell_state(tracing, "", D),
            {next_state, tracing, D, [{reply, From, ok}, clock_later(), look_later(), load_later()]};
        {error, Why, D} ->
            stop_handing_on(D),
            {keep_state, #d{slots = D0#d.slots}, {reply, From, {error, Why}}}
    end.

%% From what is there to everything armed. On an error everything is undone and both connections are closed.
arm(#d{control = undefined} = D) ->
    case kprof_vm:foreign_tracer() of
        none -> connect(D);
        Foreign -> {error, {foreign_tracer, element(2, Foreign)}, D}
    end;
arm(D) ->
    case tell(tiers(D), D) of
        ok when D#d.held ->
            _ = kprof_link:active(D#d.control),
            {ok, D};
        ok ->
            case kprof_tracer:open() of
                {ok, Tracer, In} -> arm_data(D#d{tracer = Tracer}, In);
                {error, Why} -> {error, Why, let_go(D)}
            end;
        {error, Why} ->
            {error, collector_error(Why, D), let_go(D)}
    end.

connect(D) ->
    case kprof_link:connect(target(D), hello()) of
        {ok, Control, Session} -> arm(D#d{control = Control, session = Session});
        {error, Why} -> {error, collector_error(Why, D), D}
    end.

arm_data(#d{session = Session, slots = Slots, tracer = Tracer} = D0, In) ->
    case kprof_link:open_data(target(D0), Session) of
        {ok, Out} ->
            D1 = D0#d{relay = kprof_relay:start_link(In, Out, kprof_load:counter(D0#d.load)), load = kprof_load:begin_at(now_ms(), D0#d.load),
                        armed_at = now_ms(), spawns = spawns(D0), absent = []},
            ok = kprof_slots:open(Slots, kprof_slots:new_base()),
            D = entry_specs(count_entries(D1)),
            %% the guard knows before anything is set
            ok = kprof_guard:arm(Tracer, patterns(D)),
            kprof_tracer:set_patterns(Tracer, patterns(D)),
            kprof_tracer:set_flags(Tracer, more_flags(D), own_processes(D)),
            Looked = erlang:monotonic_time(),
            ok = kprof_sampling:weigh(maps:get(weights, D#d.options)),
            ok = kprof_web:force(Slots, maps:get(force_header, D#d.options)),
            kprof_sampling:put(Slots, D#d.sampling),
            yield_to_guard(D),
            _ = tell(#{type => <<"trace_started">>, at => erlang:monotonic_time(), labels => kprof_slots:base_number(Slots)}, D),
            _ = kprof_link:active(D#d.control),
            {ok, tell_absent(tell_untraceable(traced(D#d{looked = Looked, flags_owner = us})))};
        {error, Why} ->
            {error, collector_error(Why, D0), let_go(D0)}
    end.

target(#d{options = #{collector := {_, Host, Port}, secret := Secret, tls := Tls}}) ->
    #{host => Host, port => Port, secret => Secret, tls => Tls}.

collector_error(Why, D) ->
    {Text, _, Port} = maps:get(collector, D#d.options),
    {collector, Text, Port, Why}.

%% Stops for good: tokens, flags and patterns first, then what is on its way, then the connections.
stop(D0) ->
    ok = kprof_slots:close(D0#d.slots),
    D = (entries_left_out(end_draining(D0)))#d{entries = undefined},
    disarm(D),
    _ = clear_tokens(D),
    _ = D#d.tracer =:= undefined orelse kprof_tracer:close(D#d.tracer, drain),
    _ = D#d.relay =:= undefined orelse kprof_relay:drain(D#d.relay, ?DRAIN_MS),
    _ = clock(D),
    _ = tell_stopped(stopped, <<"stop_trace was called">>, D),
    stop_handing_on(D),
    _ = let_go(D#d{relay = undefined}),
    #d{slots = D#d.slots}.

stop_handing_on(#d{printer = Printer, slow = Slow}) ->
    _ = Printer =:= undefined orelse kprof_printer:stop(Printer),
    _ = Slow =:= undefined orelse kprof_slow:stop(Slow),
    ok.

%% The guard undoes; when it is not there (it died, and we are being taken down after it) we do it ourselves.
disarm(#d{tracer = undefined}) ->
    ok;
disarm(#d{tracer = Tracer} = D) ->
    try kprof_guard:disarm()
    catch exit:_ -> kprof_tracer:undo(Tracer, patterns(D))
    end.

%% Undoes and closes everything at once, keeping only what the next try needs.
let_go(D0) ->
    D = end_draining(D0),
    ok = kprof_slots:close(D#d.slots),
    disarm(D),
    _ = drop_relay(D#d.relay),
    _ = D#d.tracer =:= undefined orelse kprof_tracer:close(D#d.tracer, now),
    _ = D#d.control =:= undefined orelse kprof_link:close(D#d.control),
    %% an answer must not reach the next session: its questions have the same numbers
    untraced(D#d{control = undefined, tracer = undefined, relay = undefined, entries = undefined, asks = kprof_asks:new()}).

drop_relay(undefined) -> ok;
drop_relay(Pid) -> exit(Pid, kill).

%% What is still to be delivered after a trip is given up.
end_draining(#d{draining = undefined} = D) ->
    D;
end_draining(#d{draining = {Tracer, Pid}} = D) ->
    _ = drop_relay(Pid),
    kprof_tracer:close(Tracer, now),
    D#d{draining = undefined}.

%% --- losing the collector, tripping, coming back ---

lost(Why, State, D) ->
    {Text, _, Port} = maps:get(collector, D#d.options),
    State =:= waiting orelse logger:warning("kprof: the collector at ~ts:~b is lost: ~ts; trying again", [Text, Port, Why]),
    D1 = let_go(D),
    case State of
        paused -> {keep_state, D1};    % its pause ends in a new connection
        _ -> {next_state, waiting, D1#d{retry_ms = ?RETRY_MIN_MS}, again_in(?RETRY_MIN_MS)}
    end.

%% The guard has undone everything and closed the port.
tripped(D0) ->
    #d{trips = {All, NotTold}, load = Load, sampling = Sampling} = D0,
    Rate = kprof_load:rate(kprof_load:look(now_ms(), Load)),
    D = D0#d{tracer = undefined, entries = undefined, trips = {All + 1, NotTold + 1}, sampling = kprof_sampling:tripped(Rate, now_ms(), Sampling),
             pause_ms = min(2 * D0#d.pause_ms, ?PAUSE_MAX_MS), relay = undefined, draining = {D0#d.tracer, D0#d.relay}},
    Text = io_lib:format("the node made trace messages faster than its trace port takes them: paused for ~b s, then ~ts",
                         [D0#d.pause_ms div 1000, kprof_sampling:describe(D#d.sampling)]),
    logger:warning("kprof: ~ts", [Text]),
    _ = tell_stopped(tripped, unicode:characters_to_binary(Text), D),
    tell_state(paused, Text, D),
    ok = kprof_relay:drain(D0#d.relay),
    {next_state, paused, untraced(D), again_in(D0#d.pause_ms)}.

again(D0) ->
    case arm(end_draining(D0)) of
        {ok, #d{held = true} = D} ->
            tell_state(held, "", D),
            {next_state, held, D#d{retry_ms = ?RETRY_MIN_MS}, [clock_later()]};
        {ok, D} ->
            logger:notice("kprof: tracing again"),
            tell_state(tracing, "", D),
            {next_state, tracing, D#d{retry_ms = ?RETRY_MIN_MS}, [clock_later(), look_later(), load_later()]};
        {error, Why, D} ->
            Wait = D#d.retry_ms,
            {next_state, waiting, untraced((yield_to_other(Why, D))#d{retry_ms = min(2 * Wait, ?RETRY_MAX_MS)}), again_in(Wait)}
    end.

%% Told once: who traces new processes keeps them until it ends.
yield_to_other({foreign_tracer, Tracer} = Why, #d{flags_owner = Before} = D) ->
    Owner = {other, Tracer},
    Owner =:= Before orelse logger:warning("kprof: ~ts; waiting for its end", [kprof_error:format(Why)]),
    D#d{flags_owner = Owner};
yield_to_other(_, D) ->
    D.

calm(tracing, #d{armed_at = At} = D) ->
    case now_ms() - At > ?CALM_MS of
        true -> D#d{pause_ms = ?PAUSE_MIN_MS};
        false -> D
    end;
calm(_, D) ->
    D.

%% --- what is untraced since when ---

untraced(#d{untraced_since = undefined} = D) -> D#d{untraced_since = now_ms()};
untraced(D) -> D.

traced(#d{} = D) -> (count_untraced(D))#d{untraced_since = undefined}.

count_untraced(#d{untraced_since = undefined} = D) -> D;
count_untraced(#d{untraced_since = Since, untraced_ms = Ms} = D) ->
    Now = now_ms(),
    D#d{untraced_since = Now, untraced_ms = Ms + Now - Since}.

%% --- messages from the collector ---

message(<<"identify">>, #{<<"id">> := Id, <<"m">> := M, <<"f">> := F, <<"args">> := {bin, Args}}, _, D)
  when is_integer(Id), is_binary(M), is_binary(F) ->
    case maps:get(identity_f, D#d.options) of
        Fun when is_function(Fun) ->
            {keep_state, D#d{asks = kprof_asks:ask({Id, M, F, Args}, Fun, D#d.asks)}};
        _ ->
            _ = tell(#{type => <<"identify_reply">>, id => Id, identity => nil}, D),
            keep_state_and_data
    end;
message(<<"disarm">>, #{<<"m">> := M, <<"f">> := F, <<"a">> := A} = Message, _, D) ->
    disarm_tier([M, F, A], maps:get(<<"reason">>, Message, <<"no reason given">>), D);
message(<<"steer">>, #{<<"id">> := Id} = Message, State, D) ->
    steer(Message, State, D, fun(Ok, Text, D1) ->
                                     _ = tell(#{type => <<"steered">>, id => Id, ok => Ok, text => unicode:characters_to_binary(Text)}, D1),
                                     D1
                             end);
message(<<"stats">>, #{<<"rows">> := Rows}, _, #d{printer = Pid}) when is_list(Rows), is_pid(Pid) ->
    kprof_printer:stats(Pid, [kprof_printer:row(R) || R <- Rows, is_map(R)]),
    keep_state_and_data;
message(<<"calls">>, Message, _, #d{printer = Pid}) when is_pid(Pid) ->
    kprof_printer:calls(Pid, Message),
    keep_state_and_data;
message(<<"slow">>, Message, _, #d{slow = Pid}) when is_pid(Pid) ->
    kprof_slow:slow(Pid, Message),
    keep_state_and_data;
message(<<"bye">>, Message, State, D) ->
    lost(["it said: ", element(2, kprof_link:bye(Message))], State, D);
message(_, _, _, _) ->
    keep_state_and_data.

%% What a tool wants. Reply(Ok, Text, D) answers it.
steer(#{<<"command">> := <<"pause">>}, held, D, Reply) ->
    {keep_state, Reply(true, "is paused already", D)};
steer(#{<<"command">> := <<"pause">>}, _, D0, Reply) ->
    D = hold(D0),
    {next_state, held, Reply(true, "paused", D), [{{timeout, again}, cancel}, {{timeout, look}, cancel}]};
steer(#{<<"command">> := <<"resume">>}, tracing, D, Reply) ->
    {keep_state, Reply(true, "is being traced already", D)};
steer(#{<<"command">> := <<"resume">>}, _, D0, Reply) ->
    case again(D0#d{held = false}) of
        {next_state, tracing, D, Timers} ->
            {next_state, tracing, Reply(true, ["traced again: ", kprof_sampling:describe(D#d.sampling)], D), [{{timeout, again}, cancel} | Timers]};
        NotYet ->
            NotYet      % the connection is gone, and with it who asked
    end;
steer(#{<<"command">> := <<"sample">>, <<"one_in">> := N}, State, D, Reply) when is_integer(N), N >= 1, N =< ?MAX_ONE_IN ->
    sample({one_in, N}, State, D, Reply);
steer(#{<<"command">> := <<"sample">>, <<"per_second">> := R}, State, D, Reply) when is_integer(R), R >= 1, R =< ?MAX_PER_SECOND ->
    case has_entries(D) of
        true -> {keep_state, Reply(false, "entry functions are sampled by one in N only", D)};
        false -> sample({per_second, R}, State, D, Reply)
    end;
steer(#{<<"command">> := <<"sample">>}, _, D, Reply) ->
    {keep_state, Reply(false, "that number is too large", D)};
steer(_, _, D, Reply) ->
    {keep_state, Reply(false, "its shim cannot do that; it may be of an older release", D)}.

sample(Asked, State, D0, Reply) ->
    D = set_sampling(kprof_sampling:ask(Asked, D0#d.sampling), State, D0),
    {keep_state, Reply(true, ["samples ", kprof_sampling:describe(D#d.sampling)], D)}.

%% Everything off but the control connection. What was sent arrives.
hold(D0) ->
    ok = kprof_slots:close(D0#d.slots),
    D1 = entries_left_out(end_draining(D0)),
    disarm(D1),
    clear_tokens(D1),
    _ = D1#d.tracer =:= undefined orelse kprof_tracer:close(D1#d.tracer, drain),
    _ = D1#d.relay =:= undefined orelse kprof_relay:drain(D1#d.relay, ?DRAIN_MS),
    _ = D1#d.tracer =:= undefined orelse kprof_tracer:close(D1#d.tracer, now),
    D = untraced(D1#d{held = true, tracer = undefined, relay = undefined, entries = undefined}),
    logger:notice("kprof: paused by a tool"),
    _ = tell_stopped(held, <<"paused by a tool">>, D),
    tell_state(held, "", D),
    D.

%% --- every twentieth of a second ---

follow(#d{sampling = Before, load = Load} = D0) ->
    D = case kprof_sampling:lowered(Before) of
            true -> D0#d{lowered_ms = D0#d.lowered_ms + kprof_load:interval()};
            false -> D0
        end,
    case kprof_sampling:follow(kprof_load:rate(Load), kprof_load:per_cpu(Load), now_ms(), Before) of
        Before ->
            D;
        Sampling ->
            log_level(Before, Sampling, Load),
            set_sampling(Sampling, tracing, D)
    end.

%% Only its begin and end: what lies between is told to the collector.
log_level(Before, Sampling, Load) ->
    case {kprof_sampling:lowered(Before), kprof_sampling:lowered(Sampling)} of
        {false, true} ->
            logger:notice("kprof: ~b kB of trace messages a second are too much for this node: sampling ~ts, and more again as the load falls",
                          [kprof_load:rate(Load) div 1000, kprof_sampling:describe(Sampling)]);
        {true, false} ->
            logger:notice("kprof: the load has fallen: sampling ~ts again", [kprof_sampling:describe(Sampling)]);
        _ ->
            ok
    end.

%% The one place where the sampling changes while a trace is there.
set_sampling(Sampling, State, D0) ->
    D = case State of
            tracing -> resample(Sampling, D0);
            _ -> D0#d{sampling = Sampling}
        end,
    tell_state(State, ["samples ", kprof_sampling:describe(Sampling)], D),
    D.

resample(Sampling, #d{slots = Slots} = D0) ->
    D = entry_specs((entries_left_out(D0))#d{sampling = Sampling}),
    kprof_sampling:put(Slots, Sampling),
    ok = kprof_guard:update(patterns(D)),
    kprof_tracer:set_patterns(D#d.tracer, patterns(D) -- patterns(D0)),
    yield_to_guard(D),
    D.

disarm_tier(Wanted, Reason, D) ->
    {Off, Stay} = lists:partition(fun(#{mfa := {M, F, A}}) ->
                                          [atom_to_binary(M, utf8), atom_to_binary(F, utf8), A] =:= Wanted
                                  end, D#d.tiers),
    D1 = D#d{tiers = Stay},
    lists:foreach(fun(#{name := Name, mfa := MFA, spec := Spec}) ->
                          _ = D#d.tracer =:= undefined orelse kprof_tracer:undo_patterns(D#d.tracer, [{MFA, Spec}]),
                          ok = kprof_guard:update(patterns(D1)),
                          Text = io_lib:format("the tier ~ts (~0tp) is taken off: ~ts", [Name, MFA, Reason]),
                          logger:warning("kprof: ~ts", [Text]),
                          _ = tell(tiers(D1), D1),
                          note(warning, Text, D1)
                  end, Off),
    _ = D#d.tracer =/= undefined andalso more_flags(D) =/= more_flags(D1) andalso kprof_tracer:no_return_to(D#d.tracer, own_processes(D)),
    {keep_state, D1}.

%% --- every second ---

clock(#d{control = undefined} = D) ->
    {ok, D};
clock(#d{slots = Slots, trips = {All, NotTold}} = D0) ->
    D = entries_left_out(count_untraced(D0)),
    Unsampled = kprof_slots:unsampled(Slots),
    case tell(#{type => <<"clock">>, at => erlang:monotonic_time(), time_offset => erlang:time_offset(),
                unsampled => Unsampled, paused_ms => D#d.untraced_ms, trips => NotTold, lowered_ms => D#d.lowered_ms}, D) of
        ok ->
            ok = kprof_slots:sub_unsampled(Slots, Unsampled),
            {ok, D#d{untraced_ms = 0, trips = {All, 0}, lowered_ms = 0}};
        Error ->
            Error
    end.

%% --- every half second ---

%% A reload takes the patterns of its module, and another tool's clear takes flags: both are set again, and what was called
%% since the look before may be missing.
look(tracing, #d{tracer = Tracer} = D) ->
    case kprof_guard:armed(Tracer) of
        true -> look(D);
        false -> D      % it has undone everything: its word is on its way
    end;
look(_, D) ->
    D.

look(D) ->
    At = erlang:monotonic_time(),
    look_at_patterns(D),
    D1 = look_at_flags(D),
    yield_to_guard(D1),
    (tell_absent(D1))#d{looked = At}.

look_at_patterns(#d{tiers = Tiers} = D) ->
    case kprof_tracer:missing(D#d.tracer, patterns(D)) of
        [] ->
            ok;
        Missing ->
            kprof_tracer:set_patterns(D#d.tracer, Missing),
            Names = lists:join(", ", [kprof_armed:name(MFA, Tiers) || {MFA, _} <- Missing]),
            gap(reload, Names, D),
            note(info, ["patterns set again after a code reload: ", Names], D)
    end.

look_at_flags(#d{tracer = Tracer} = D) ->
    look_at_flags(kprof_tracer:flags_owner(Tracer), D).

look_at_flags(us, D) ->
    D#d{flags_owner = us};
look_at_flags(nobody, #d{tracer = Tracer} = D) ->
    kprof_tracer:set_flags(Tracer, more_flags(D), own_processes(D)),
    gap(flags, "all tiers", D),
    note(warning, "somebody took the trace flags off; they are set again", D),
    tell_untraceable(D#d{flags_owner = us});
look_at_flags({other, Tracer} = Owner, #d{flags_owner = Before} = D) ->
    gap(flags, "all tiers", D),
    Text = io_lib:format("somebody else (~0tp) traces new processes now, and before OTP 27 a process has one tracer: requests are incomplete "
                         "until that ends", [Tracer]),
    Owner =:= Before orelse note(warning, Text, D),
    D#d{flags_owner = Owner}.

gap(Reason, Text, #d{looked = Looked} = D) ->
    _ = tell(#{type => <<"gap">>, from => Looked, until => erlang:monotonic_time(), reason => Reason,
               text => unicode:characters_to_binary(Text)}, D),
    ok.

%% What is not on this node is told once, and again when it has come and gone.
tell_absent(#d{absent = Before} = D) ->
    Absent = [{MFA, case erlang:module_loaded(M) of true -> function; false -> module end}
              || {M, _, _} = MFA <- kprof_tracer:absent(D#d.tracer, patterns(D))],
    lists:foreach(fun(Absence) -> note(warning, kprof_armed:absent(Absence, D#d.tiers), D) end, Absent -- Before),
    D#d{absent = Absent}.

tell_untraceable(#d{tracer = Tracer} = D0) ->
    D = D0#d{foreign = kprof_tracer:foreign_processes(Tracer)},
    lists:foreach(fun(Line) -> note(warning, Line, D) end, kprof_armed:foreign(D#d.foreign)),
    D.

%% What was just set stays only while the guard watches it: it may have undone everything a moment ago, and its word is on its way.
yield_to_guard(#d{tracer = Tracer, slots = Slots} = D) ->
    case kprof_guard:armed(Tracer) of
        true ->
            ok;
        false ->
            ok = kprof_slots:close(Slots),
            kprof_tracer:undo(Tracer, patterns(D))
    end.

%% --- messages to the collector ---

hello() ->
    Version = case application:get_key(kprof, vsn) of
                  {ok, V} -> list_to_binary(V);
                  undefined -> <<"unknown">>
              end,
    #{type => <<"hello">>, role => <<"control">>, protocol => 1, node => node(),
      otp => list_to_binary(erlang:system_info(otp_release)), os_pid => list_to_integer(os:getpid()),
      ticks_per_second => erlang:convert_time_unit(1, second, native), time_offset => erlang:time_offset(),
      creation => erlang:system_info(creation), version => Version}.

tiers(#d{tiers = Tiers, options = Options}) ->
    Kinds = [Kind || #{kind := Kind} <- Tiers],
    Identity = case {maps:get(identity_f, Options), lists:member(ask, Kinds)} of
                   {undefined, _} -> none;
                   {_, true} -> ask;
                   {_, false} -> spec
               end,
    Base = #{type => <<"tiers">>, identity => Identity,
             stats => maps:get(stats_dumper, Options) =/= false, calls => maps:get(print_calls, Options),
             slow => maps:get(slow_callback, Options) =/= undefined,
             tiers => [tier(Tier) || Tier <- Tiers]},
    case maps:get(slow_us, Options) of
        undefined -> Base;
        Us -> Base#{slow_threshold_us => Us}
    end.

tier(#{name := Name, mfa := {M, F, A}, returns := whole}) -> #{name => Name, m => M, f => F, a => A};
tier(#{returns := none} = Tier) -> (tier(Tier#{returns := whole}))#{returns => none}.

tell_stopped(Reason, Text, D) ->
    tell(#{type => <<"trace_stopped">>, at => erlang:monotonic_time(), reason => Reason, text => Text}, D).

tell_state(State, Text, #d{sampling = Sampling, trips = {Trips, _}} = D) ->
    _ = tell((kprof_sampling:fields(Sampling))#{type => <<"state">>, state => State, trips => Trips,
                                                text => unicode:characters_to_binary(Text)}, D),
    ok.

note(Level, Text, D) ->
    _ = tell(#{type => <<"note">>, level => Level, text => unicode:characters_to_binary(Text)}, D),
    ok.

tell(_, #d{control = undefined}) -> ok;
tell(Message, #d{control = Control}) -> kprof_link:send(Control, Message).

%% --- entries ---

has_entries(#d{tiers = Tiers}) ->
    lists:any(fun(#{entry := Entry}) -> Entry end, Tiers).

count_entries(D) ->
    case has_entries(D) of
        true -> ok = kprof_guard:counting(kprof_entry:count()), D#d{entries = 0};
        false -> D
    end.

%% The patterns of entries are made for the running trace and its sampling.
entry_specs(#d{tiers = Tiers, slots = Slots, options = Options, sampling = Sampling} = D) ->
    Settings = #{base => kprof_slots:base(Slots), olds => kprof_slots:old_bases(Slots), one_in => kprof_sampling:one_in(Sampling),
                 flags => maps:get(flags, Options)},
    D#d{tiers = [case Tier of
                     #{entry := true, rows := Rows} -> Tier#{spec := kprof_entry:spec(Rows, Settings)};
                     _ -> Tier
                 end || Tier <- Tiers]}.

%% Those that the sampler left out since the last time are unsampled requests.
entries_left_out(#d{entries = undefined} = D) ->
    D;
entries_left_out(#d{slots = Slots, entries = Before, sampling = Sampling} = D) ->
    Now = erlang:system_info(trace_control_word),
    ok = kprof_slots:count_unsampled(Slots, kprof_entry:unsampled(Before, Now, kprof_sampling:one_in(Sampling))),
    D#d{entries = Now}.

clear_tokens(D) ->
    has_entries(D) andalso kprof_entry:clear_tokens() =:= foreign andalso
        logger:notice("kprof: this node uses seq_trace itself: tokens of kprof's are left to get lost by themselves").

%% --- small things ---

patterns(#d{tiers = Tiers, spawns = Spawns, options = Options}) ->
    kprof_mark:patterns(maps:get(flags, Options)) ++ Spawns ++ [{MFA, Spec} || #{mfa := MFA, spec := Spec} <- Tiers].

%% A function that spawns may be a tier, or be traced by somebody else: then it is none of these.
spawns(#d{tiers = Tiers}) ->
    Named = [MFA || #{mfa := MFA} <- Tiers],
    [Pattern || {MFA, _} = Pattern <- kprof_match:spawns(), not lists:member(MFA, Named), kprof_vm:function(MFA) =:= free].

more_flags(#d{tiers = Tiers}) ->
    [return_to || lists:any(fun(#{returns := Returns}) -> Returns =:= none end, Tiers)].

own_processes(#d{relay = Relay, tracer = Tracer, printer = Printer, slow = Slow}) ->
    [P || P <- [self(), Relay, kprof_tracer:keeper(Tracer), Printer, Slow, whereis(kprof_guard), whereis(kprof_sup)], is_pid(P)].

printer(#{stats_dumper := false, print_calls := false}) -> undefined;
printer(#{stats_dumper := Dumper, leader := Leader}) -> kprof_printer:start_link(Dumper, Leader).

slow(#{slow_callback := undefined}) -> undefined;
slow(#{slow_callback := Callback}) -> kprof_slow:start_link(Callback).

clock_later() -> {{timeout, clock}, ?CLOCK_MS, clock}.
load_later() -> {{timeout, load}, kprof_load:interval(), load}.
again_in(Ms) -> {{timeout, again}, Ms, again}.
look_later() -> {{timeout, look}, ?LOOK_MS, look}.
no_timers() -> [{{timeout, clock}, cancel}, {{timeout, look}, cancel}, {{timeout, load}, cancel}, {{timeout, again}, cancel}].

now_ms() ->
    erlang:monotonic_time(millisecond).
