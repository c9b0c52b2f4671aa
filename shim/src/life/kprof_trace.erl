%% SPDX-License-Identifier: Apache-2.0
%% @doc One trace: its connection to the collector, its tiers and how they are sampled, and what is
%% armed. {@link kprof_life} owns it and decides what happens when; it gets this process' messages,
%% and traps exits.
%%
%% Each arming is hello, welcome, clock, tiers, a new trace port, the data connection, flags and
%% patterns, trace_started.
-module(kprof_trace).

-export([
    new/2,
    connect/1,
    listen/1,
    arm/1,
    pause/1,
    wanted/1,
    let_go/1,
    tripped/2,
    silent/1,
    waits/2,
    stop/1,
    discard/1
]).
-export([flame/3, flame_header/2, full_tripped/1, full_cut_off/3, sample_stacks/4, sampler/2]).
-export([trigger/3, lookout/2]).
-export([event/2, ended/3, answered/3, message/2, sample/3, load/1, look/1, reset/3, clock/1]).
-export([load_ms/1]).
-export([tell_state/3, steered/4, describe/1, warnings/1, armed/1, collector/1, reached/1]).

-export_type([trace/0]).

% so much later a full trace may be looked at for the first time
-define(CALM_LOAD_MS, 250).

-record(trace, {
    slots :: kprof_slots:slots(),
    options :: kprof_options:options(),
    control :: kprof_control:control(),
    tiers :: kprof_tiers:tiers(),
    sampling :: kprof_sampling:sampling(),
    outlets :: kprof_outlets:outlets(),
    arming :: kprof_arming:arming(),
    watch = kprof_watch:new() :: kprof_watch:watch(),
    load = kprof_load:new() :: kprof_load:load(),
    ledger = kprof_ledger:new() :: kprof_ledger:ledger(),
    full = kprof_full_traces:new() :: kprof_full_traces:full_traces(),
    stacks = kprof_stacks:new() :: kprof_stacks:stacks(),
    samples :: kprof_sample:samples(),
    triggers :: kprof_triggers:triggers(),
    asks :: kprof_asks:asks()
}).
-opaque trace() :: #trace{}.

%% @doc A trace with these options, neither connected nor armed.
-spec new(kprof_slots:slots(), kprof_options:options()) -> trace().
new(
    Slots,
    #{
        sample := Asked,
        sampling := Standing,
        identity_f := Fun,
        triggers := Triggers,
        tracer := Tracer
    } = Options
) ->
    %% what hands things on to the user is there before new processes are traced
    #trace{
        slots = Slots,
        options = Options,
        control = kprof_control:new(Options),
        tiers = kprof_tiers:new(Options),
        arming = kprof_arming:new(Tracer),
        sampling = kprof_sampling:new(Asked),
        samples = kprof_sample:new(Standing),
        asks = kprof_asks:new(Fun),
        outlets = kprof_outlets:start(Options),
        triggers = kprof_triggers:new(Triggers)
    }.

%% --- arming and undoing ---

%% @doc Connects to the collector, unless that is done, and tells it the time and the tiers. After
%% an error nothing is connected or armed.
-spec connect(trace()) -> {ok, trace()} | {error, term(), trace()}.
connect(#trace{control = Control} = T) ->
    case kprof_control:is_connected(Control) of
        true -> introduce(T);
        false -> reach(kprof_vm:foreign_tracer(), T)
    end.

reach({tracer, Tracer}, T) ->
    {error, {foreign_tracer, Tracer}, T};
reach(none, T) ->
    case kprof_control:connect(T#trace.control) of
        {ok, Control} -> introduce(T#trace{control = Control});
        {error, Why} -> {error, Why, T}
    end.

%% The time goes first: the collector reads no trace before the tiers, and without the time it takes
%% its own clock for ours.
introduce(T0) ->
    case clock(T0) of
        {ok, T} -> introduced(tell_tiers(T), T);
        Error -> introduced(Error, T0)
    end.

introduced(ok, #trace{triggers = Triggers} = T) ->
    ok = tell_p99(kprof_triggers:p99(Triggers), T),
    {ok, tell_total(T)};
introduced({error, Why}, #trace{control = Control} = T) ->
    {error, kprof_control:failure(Why, Control), let_go(T)}.

tell_tiers(#trace{tiers = Tiers, outlets = Outlets, control = Control}) ->
    kprof_telling:tiers(Tiers, Outlets, Control).

%% @doc Has the collector's next message sent to this process, for {@link event/2}. Arming does so,
%% too.
-spec listen(trace()) -> ok.
listen(#trace{control = Control}) ->
    kprof_control:listen(Control).

%% @doc Arms everything, once connected. On an error all is undone, and the connection closed.
-spec arm(trace()) -> {ok, trace()} | {error, term(), trace()}.
arm(#trace{control = Control, load = Load} = T0) ->
    T = tell_total(T0#trace{arming = kprof_arming:finish(T0#trace.arming)}),
    case kprof_arming:open(Control, kprof_load:counter(Load), T#trace.arming) of
        {ok, Arming} -> {ok, set(T#trace{arming = Arming})};
        {error, Why} -> {error, Why, let_go(T)}
    end.

set(
    #trace{
        slots = Slots,
        options = #{weights := Weights, force_header := Header, flame_header := Flame},
        control = Control,
        sampling = Sampling
    } = T
) ->
    ok = kprof_slots:open(Slots, kprof_slots:new_base()),
    ok = kprof_slots:set_takes(Slots, kprof_arming:takes(T#trace.arming)),
    Tiers = kprof_tiers:arm(Slots, Sampling, T#trace.tiers),
    ok = kprof_arming:set(Tiers, own(T), T#trace.arming),
    SetAt = erlang:monotonic_time(),
    ok = kprof_sampling:weigh(Weights),
    ok = kprof_web:force(Slots, Header),
    ok = kprof_flame_header:set(Slots, Flame),
    ok = kprof_sampling:put(Slots, Sampling),
    Tracer = kprof_arming:tracer(T#trace.arming),
    ok = kprof_guard:yield(Tracer, kprof_tiers:patterns(Tiers)),
    Kind = kprof_arming:kind(T#trace.arming),
    ok = kprof_control:told(kprof_protocol:started(kprof_slots:base_number(Slots), Kind), Control),
    ok = listen(T),
    Set = T#trace{
        tiers = Tiers,
        ledger = kprof_ledger:traced(now_ms(), T#trace.ledger),
        load = kprof_load:begin_at(now_ms(), T#trace.load)
    },
    Set#trace{watch = kprof_watch:begin_at(SetAt, around(Set), Set#trace.watch)}.

%% @doc Everything off but the control connection. What was sent arrives.
-spec pause(trace()) -> trace().
pause(T0) ->
    T = untraced(asked, wind_down(T0)),
    ok = kprof_control:told(kprof_protocol:stopped(paused, "paused by a tool"), T#trace.control),
    T.

%% @doc It is to be armed again.
-spec wanted(trace()) -> trace().
wanted(#trace{ledger = Ledger} = T) ->
    T#trace{ledger = kprof_ledger:wanted(now_ms(), Ledger)}.

%% @doc Stops for good. What was sent arrives.
-spec stop(trace()) -> ok.
stop(#trace{stacks = Stacks, samples = Samples} = T0) ->
    _ = kprof_stacks:close(around(T0), Stacks),
    T = wind_down(T0#trace{
        stacks = kprof_stacks:new(), samples = kprof_sample:none_more(Samples)
    }),
    _ = clock(T),
    ok = kprof_control:told(
        kprof_protocol:stopped(stopped, "stop_trace was called"), T#trace.control
    ),
    discard(T),
    ok = kprof_control:finish(T#trace.control),
    _ = let_go(T),
    ok.

%% Tokens, flags and patterns first, then what is on its way.
wind_down(#trace{slots = Slots} = T0) ->
    ok = kprof_slots:close(Slots),
    ok = kprof_full_traces:off(around(T0), T0#trace.full),
    T1 = full_gone(error, "the trace was stopped", T0),
    T = T1#trace{full = kprof_full_traces:drained(T1#trace.full)},
    Tiers = kprof_tiers:count_left_out(Slots, T#trace.tiers),
    ok = kprof_arming:disarm(Tiers, T#trace.arming),
    ok = kprof_tiers:clear_tokens(Tiers),
    tell_total(T#trace{
        tiers = kprof_tiers:disarmed(Tiers), arming = kprof_arming:drain(T#trace.arming)
    }).

%% @doc Ends a trace that nothing is armed of.
-spec discard(trace()) -> ok.
discard(#trace{outlets = Outlets, triggers = Triggers}) ->
    ok = kprof_triggers:stop(Triggers),
    kprof_outlets:stop(Outlets).

%% @doc Undoes and closes everything at once, keeping only what the next try needs.
-spec let_go(trace()) -> trace().
let_go(#trace{slots = Slots, tiers = Tiers, control = Control, asks = Asks} = T0) ->
    T = full_gone(error, "the collector is lost", T0),
    ok = kprof_slots:close(Slots),
    Arming = kprof_arming:drop(Tiers, T#trace.arming),
    %% an answer must not reach the next session: its questions have the same numbers
    T#trace{
        tiers = kprof_tiers:disarmed(Tiers),
        arming = Arming,
        control = kprof_control:close(Control),
        full = kprof_full_traces:lost(T#trace.full),
        stacks = kprof_stacks:lost(T#trace.stacks),
        samples = kprof_sample:lost(T#trace.samples),
        asks = kprof_asks:forget(Asks),
        ledger = kprof_ledger:gone(now_ms(), T#trace.ledger)
    }.

%% @doc The guard has tripped: everything is undone, and what is in the port is still delivered.
%% Sampled is half of what was from now on, or less. The caller tries again in `Pause' ms.
-spec tripped(pos_integer(), trace()) -> trace().
tripped(Pause, #trace{load = Load, sampling = Before, control = Control} = T0) ->
    %% the guard has undone it: what is done below takes its time on a busy node
    Now = now_ms(),
    Rate = kprof_load:rate(kprof_load:look(Now, Load)),
    Sampling = kprof_sampling:tripped(Rate, Now, Before),
    T = T0#trace{
        sampling = Sampling,
        tiers = kprof_tiers:disarmed(T0#trace.tiers),
        ledger = kprof_ledger:tripped(T0#trace.ledger)
    },
    Text = kprof_telling:tripped(Pause, Sampling, Control),
    ok = tell_state(tripped, Text, T),
    Gone = full_gone(tripped, Text, T#trace{arming = kprof_arming:tripped(T#trace.arming)}),
    untraced(tripped, Now, Gone).

%% @doc The guard has undone everything, as the collector was silent.
-spec silent(trace()) -> ok.
silent(#trace{control = Control}) ->
    kprof_control:told(kprof_protocol:stopped(dead_man, "no word from the collector"), Control).

%% @doc A try has failed, for this reason.
-spec waits(term(), trace()) -> trace().
waits({foreign_tracer, Tracer}, #trace{watch = Watch} = T) ->
    untraced(away, T#trace{watch = kprof_watch:foreign_tracer(Tracer, Watch)});
waits(_, T) ->
    untraced(away, T).

untraced(Why, T) ->
    untraced(Why, now_ms(), T).

untraced(Why, Now, #trace{ledger = Ledger, watch = Watch} = T) ->
    T#trace{
        ledger = kprof_ledger:untraced(Now, Why, Ledger),
        watch = kprof_watch:disarmed(Watch)
    }.

%% --- what comes ---

%% @doc What a message that the owner got means, if it is the collector's: see {@link
%% kprof_control:event/2}.
-spec event(term(), trace()) ->
    {message, #{binary() => kprof_msgpack:value()}} | {lost, Why :: unicode:chardata()} | none.
event(Info, #trace{control = Control, arming = Arming}) ->
    case kprof_arming:event(Info, Arming) of
        none -> kprof_control:event(Info, Control);
        Lost -> Lost
    end.

%% @doc A linked process or port has ended; `lost' means that there is nothing left that would carry
%% data.
-spec ended(pid() | port(), term(), trace()) ->
    {ok, trace()} | {lost, Why :: unicode:chardata(), trace()}.
ended(From, Why, #trace{arming = Arming0, outlets = Outlets} = T) ->
    case kprof_arming:ended(From, Why, Arming0) of
        {drained, Arming} -> {ok, tell_total(T#trace{arming = Arming})};
        {lost, Text, Arming} -> {lost, Text, T#trace{arming = Arming}};
        none ->
            Over = fun(Around, Full) -> kprof_full_traces:ended(From, Why, Around, Full) end,
            Ended = kprof_stacks:ended(From, Why, around(T), T#trace.stacks),
            {ok,
                full(Over, T#trace{
                    outlets = kprof_outlets:ended(From, Outlets),
                    stacks = Ended,
                    triggers = kprof_triggers:ended(From, Why, around(T), T#trace.triggers)
                })}
    end.

%% @doc A monitored process has ended: it may be one that was asked for an identity.
-spec answered(reference(), term(), trace()) -> trace().
answered(Ref, Why, #trace{asks = Asks} = T) ->
    identified(kprof_asks:answered(Ref, Why, Asks), T).

identified({none, Asks}, T) ->
    T#trace{asks = Asks};
identified({{Id, Identity}, Asks}, #trace{control = Control} = T) ->
    ok = kprof_control:told(kprof_protocol:identified(Id, Identity), Control),
    T#trace{asks = Asks}.

%% @doc Does what a message of the collector's wants.
-spec message(kprof_protocol:told(), trace()) -> trace().
message({identify, Id, {M, F}, Arguments}, #trace{asks = Asks} = T) ->
    identified(kprof_asks:ask({Id, M, F, Arguments}, Asks), T);
message({full, Wanted}, T) ->
    full(fun(Around, Full) -> kprof_full_traces:wanted(Wanted, Around, Full) end, T);
message({full_stop, Id}, T) ->
    full(fun(Around, Full) -> kprof_full_traces:stop(Id, Around, Full) end, T);
message({full_more, Id, Processes}, #trace{full = Full} = T) ->
    ok = kprof_full_traces:more(Id, Processes, around(T), Full),
    T;
message({full_names, Id, Processes}, T) ->
    Named = kprof_full:named(Processes),
    ok = kprof_control:told(kprof_protocol:full_named(Id, Named), T#trace.control),
    T;
message({flamed, Told}, #trace{full = Full} = T) ->
    T#trace{full = kprof_full_traces:flamed(Told, Full)};
message({stacks, Wanted}, #trace{stacks = Stacks, samples = Samples} = T) ->
    T#trace{
        samples = kprof_sample:begun(Wanted, Samples),
        stacks = kprof_stacks:wanted(Wanted, around(T), Stacks)
    };
message({stacks_stop, Id}, #trace{stacks = Stacks} = T) ->
    ok = kprof_stacks:stop(Id, Stacks),
    T;
message({stacks_anew, Id}, #trace{stacks = Stacks} = T) ->
    ok = kprof_stacks:anew(Id, Stacks),
    T;
message({stacks_kept, Told}, #trace{samples = Samples} = T) ->
    T#trace{samples = kprof_sample:kept(now_ms(), Told, Samples)};
message({p99, Tiers}, #trace{triggers = Triggers} = T) ->
    ok = kprof_triggers:give(Tiers, Triggers),
    T;
message({disarm, Function, Reason}, T) ->
    take_off(Function, Reason, T);
message({stale, Tier, Label}, #trace{watch = Watch} = T) ->
    T#trace{watch = kprof_watch:stale(now_ms(), Tier, Label, around(T), Watch)};
message(Message, #trace{outlets = Outlets} = T) ->
    ok = kprof_outlets:give(Message, Outlets),
    T.

take_off(Wanted, Reason, #trace{tiers = Before} = T0) ->
    case kprof_tiers:take_off(Wanted, Before) of
        {[], _} ->
            T0;
        {[#{name := Name, mfa := MFA}], After} ->
            T = changed(After, T0),
            Text = io_lib:format("the tier ~ts (~0tp) is taken off: ~ts", [Name, MFA, Reason]),
            logger:warning("kprof: ~ts", [Text]),
            _ = tell_tiers(T),
            ok = kprof_control:told(kprof_protocol:note(warning, Text), T#trace.control),
            T
    end.

changed(After, #trace{tiers = Before, full = Full} = T) ->
    %% flags of the tiers that are set on all processes must not meet the patterns of a full trace
    case
        kprof_full_traces:rests(Full) andalso
            kprof_tiers:flags(After) =/= kprof_tiers:flags(Before)
    of
        true ->
            Why = "the tiers have changed",
            Over = fun(Around, F) -> kprof_full_traces:over(error, Why, Around, F) end,
            change(After, full(Over, T));
        false ->
            change(After, T)
    end.

change(After, #trace{tiers = Before, arming = Arming} = T) ->
    ok = kprof_arming:change(Before, After, own(T), Arming),
    T#trace{tiers = After}.

%% --- full traces ---

%% @doc Asks the collector for one. Who waits for its profile gets a reply.
-spec flame(gen_statem:from(), kprof_flame:wanted(), trace()) -> {ok, trace()} | {error, term()}.
flame(From, Wanted, #trace{full = Before} = T) ->
    case kprof_full_traces:ask(From, Wanted, around(T), Before) of
        {ok, Full} -> {ok, T#trace{full = Full}};
        Error -> Error
    end.

%% @doc A web request wants to be traced fully, or has ended: {@link kprof_full_traces:header/4}.
-spec flame_header(term(), trace()) -> trace().
flame_header(What, #trace{options = #{flame_header := Header}} = T) ->
    full(fun(Around, Full) -> kprof_full_traces:header(What, Header, Around, Full) end, T).

%% @doc The guard has ended what is traced fully: messages came faster than they are taken. What
%% came before is delivered, and the tiers are traced as before.
-spec full_tripped(trace()) -> trace().
full_tripped(T) ->
    Text = "the node made messages faster than the process that it is traced to takes them",
    full(fun(Around, Full) -> kprof_full_traces:over(tripped, Text, Around, Full) end, T).

%% @doc The data connection of full traces has ended by itself, says their relay.
-spec full_cut_off(pid(), term(), trace()) -> trace().
full_cut_off(Pid, Why, T) ->
    full(fun(Around, Full) -> kprof_full_traces:cut_off(Pid, Why, Around, Full) end, T).

%% The one place where a full trace begins or ends while all is armed.
full(Change, #trace{full = Before, ledger = Ledger, load = Load} = T) ->
    After = Change(around(T), Before),
    Now = now_ms(),
    T#trace{
        full = After,
        ledger =
            case {kprof_full_traces:rests(Before), kprof_full_traces:rests(After)} of
                {Same, Same} -> Ledger;
                {false, true} -> kprof_ledger:untraced(Now, asked, Ledger);
                {true, false} -> kprof_ledger:traced(Now, Ledger)
            end,
        load =
            case kprof_full_traces:runs(Before) andalso not kprof_full_traces:runs(After) of
                true -> kprof_load:begin_at(Now, Load);
                false -> Load
            end
    }.

%% It has ended with all else.
full_gone(Reason, Text, #trace{full = Full} = T) ->
    T#trace{full = kprof_full_traces:gone(Reason, Text, around(T), Full)}.

around(#trace{slots = Slots, control = Control, tiers = Tiers, arming = Arming} = T) ->
    #{
        slots => Slots,
        control => Control,
        tiers => Tiers,
        arming => Arming,
        outlets => beside(T)
    }.

%% The processes that are not traced, besides those that an arming knows.
own(#trace{full = Full} = T) ->
    beside(T) ++ kprof_full_traces:processes(Full).

beside(#trace{outlets = Outlets, stacks = Stacks, triggers = Triggers}) ->
    kprof_outlets:pids(Outlets) ++ kprof_stacks:processes(Stacks) ++
        kprof_triggers:processes(Triggers).

%% --- sampling of stacks ---

%% @doc Asks the collector for a run. Who waits for its profile gets a reply. `State' is that of
%% {@link kprof_life}: it needs the connection alone.
-spec sample_stacks(gen_statem:from(), kprof_sample_options:wanted(), atom(), trace()) ->
    {ok, trace()} | {error, term()}.
sample_stacks(From, Wanted, State, #trace{control = Control, samples = Before} = T) ->
    case kprof_control:is_connected(Control) of
        true ->
            case kprof_sample:ask(From, Wanted, Control, Before) of
                {ok, Samples} -> {ok, T#trace{samples = Samples}};
                Error -> Error
            end;
        false ->
            {error, {no_connection, State}}
    end.

%% @doc What the sampler of stacks has sent.
-spec sampler(kprof_sampler:told(), trace()) -> trace().
sampler(Told, #trace{stacks = Stacks} = T) ->
    T#trace{stacks = kprof_stacks:event(Told, around(T), Stacks)}.

%% --- triggers ---

%% @doc A tool wants something of the triggers. It is answered by and by.
-spec trigger(term(), kprof_triggers:order(), trace()) -> trace().
trigger(Id, Order, #trace{triggers = Before} = T) ->
    triggers(kprof_triggers:order(Id, Order, around(T), Before), T).

%% @doc What their lookout has sent.
-spec lookout(kprof_lookout:told(), trace()) -> trace().
lookout(Told, #trace{triggers = Before} = T) ->
    triggers(kprof_triggers:event(Told, around(T), Before), T).

triggers(After, #trace{triggers = Before, arming = Arming} = T) ->
    New = kprof_triggers:processes(After) -- kprof_triggers:processes(Before),
    Tracer = kprof_arming:tracer(Arming),
    _ = New =:= [] orelse Tracer =:= undefined orelse kprof_tracer:leave_out(Tracer, New),
    Wanted = kprof_triggers:p99(After),
    _ = Wanted =:= kprof_triggers:p99(Before) orelse tell_p99(Wanted, T),
    T#trace{triggers = After}.

%% A collector tells none by itself.
tell_p99(Tiers, #trace{control = Control, triggers = Before}) ->
    case {Tiers, kprof_triggers:p99(Before)} of
        {[], []} -> ok;
        _ -> kprof_control:told(kprof_protocol:p99(Tiers), Control)
    end.

%% --- sampling ---

%% @doc Something else is asked for. `State' is that of {@link kprof_life}.
-spec sample(kprof_sampling:asked(), atom(), trace()) -> {ok, trace()} | {error, string()}.
sample(Asked, State, #trace{sampling = Sampling, tiers = Tiers} = T) ->
    case {kprof_sampling:is_asked(Asked), Asked, kprof_tiers:has_entries(Tiers)} of
        {false, _, _} ->
            {error, "that number is too large"};
        {true, {per_second, _}, true} ->
            {error, "entry functions are sampled by one in N only"};
        {true, _, _} ->
            {ok, sampled(kprof_sampling:ask(Asked, Sampling), State, T)}
    end.

%% The one place where the sampling changes while a trace is there.
sampled(Sampling, State, #trace{slots = Slots, tiers = Tiers, arming = Arming} = T0) ->
    T1 = T0#trace{sampling = Sampling},
    T =
        case kprof_arming:tracer(Arming) of
            undefined ->
                T1;
            _ ->
                Sampled = kprof_tiers:sample(Slots, Sampling, Tiers),
                ok = kprof_sampling:put(Slots, Sampling),
                T2 = changed(Sampled, T1),
                T2#trace{tiers = kprof_tiers:count_changing(Slots, Tiers, T2#trace.tiers)}
        end,
    ok = tell_state(State, ["samples ", kprof_sampling:describe(Sampling)], T),
    T.

%% @doc How long it takes in ms until {@link load/1} is to be called again. Without tiers and
%% entries there is hardly anything that it could lower.
-spec load_ms(trace()) -> pos_integer().
load_ms(#trace{tiers = Tiers, full = Full, sampling = Sampling}) ->
    case
        kprof_tiers:list(Tiers) =:= [] andalso not kprof_full_traces:runs(Full) andalso
            not kprof_sampling:lowered(Sampling)
    of
        true -> ?CALM_LOAD_MS;
        false -> kprof_load:interval()
    end.

%% @doc To be called every {@link load_ms/1} ms while it is armed: takes as much as this node has
%% room for.
-spec load(trace()) -> trace().
load(#trace{full = Full} = T) ->
    case kprof_full_traces:runs(Full) of
        true -> full(fun(Around, F) -> kprof_full_traces:look(now_ms(), Around, F) end, T);
        false -> sample_by_load(T)
    end.

sample_by_load(#trace{sampling = Before, load = Load0, ledger = Ledger} = T0) ->
    Load = kprof_load:look(now_ms(), Load0),
    T = T0#trace{
        load = Load,
        ledger =
            case kprof_sampling:lowered(Before) of
                true -> kprof_ledger:lowered(kprof_load:at(Load) - kprof_load:at(Load0), Ledger);
                false -> Ledger
            end
    },
    case kprof_sampling:follow(kprof_load:rate(Load), kprof_load:per_cpu(Load), now_ms(), Before) of
        Before ->
            T;
        Sampling ->
            ok = kprof_sampling:log(kprof_load:rate(Load), Before, Sampling),
            sampled(Sampling, tracing, T)
    end.

%% --- from time to time ---

%% @doc Every half second: sets again what others took off, and takes those out who work for
%% requests that are over, while it is armed.
-spec look(trace()) -> trace().
look(#trace{full = Full} = T) ->
    case kprof_full_traces:rests(Full) of
        true -> T;
        false -> looked(T)
    end.

looked(#trace{arming = Arming} = T) ->
    case kprof_guard:armed(kprof_arming:tracer(Arming)) of
        true -> stale(watched(messages(T)));
        % the guard has undone everything: its word is on its way
        false -> T
    end.

watched(#trace{watch = Watch} = T) ->
    T#trace{watch = kprof_watch:look((around(T))#{outlets := own(T)}, Watch)}.

%% Where nobody tells us of messages any more, tokens ask for no events, which somebody else would
%% get.
messages(#trace{slots = Slots, sampling = Sampling, tiers = Tiers, arming = Arming0} = T) ->
    case kprof_arming:messages_lost(Arming0) of
        no ->
            T;
        {lost, Line, Arming} ->
            ok = kprof_slots:set_takes(Slots, false),
            ok = kprof_watch:messages_lost(Line, around(T), T#trace.watch),
            changed(kprof_tiers:anew(Slots, Sampling, Tiers), T#trace{arming = Arming})
    end.

%% @doc The guard has set patterns again.
-spec reset({integer(), integer()}, [mfa()], trace()) -> ok.
reset(Time, MFAs, #trace{tiers = Tiers, control = Control}) ->
    kprof_upkeep:reset(Time, MFAs, Tiers, Control).

stale(#trace{slots = Slots, sampling = Sampling, tiers = Tiers, watch = Before} = T) ->
    Now = now_ms(),
    case kprof_watch:due(Now, Before) of
        {None, Watch} when map_size(None) =:= 0 ->
            T#trace{watch = Watch};
        {Labels, Watch} ->
            Changed = changed(kprof_tiers:stale(Slots, Sampling, Labels, Tiers), T),
            Changed#trace{watch = kprof_watch:changed(Now, now_ms(), Watch)}
    end.

%% @doc Every second: tells the collector the time, and what stands in its ledger, and asks for the
%% stack sampling that stands for ever, if it does not. Nothing while there is no connection.
-spec clock(trace()) -> {ok, trace()} | {error, term()}.
clock(#trace{slots = Slots, control = Control} = T0) ->
    case kprof_control:is_connected(Control) of
        true ->
            T = T0#trace{tiers = kprof_tiers:count_left_out(Slots, T0#trace.tiers)},
            Counted = kprof_ledger:count(now_ms(), T#trace.ledger),
            case kprof_telling:clock(Slots, Counted, T#trace.watch, Control) of
                {ok, Ledger, Watch} ->
                    Samples = kprof_sample:stand(now_ms(), Control, T#trace.samples),
                    {ok, T#trace{ledger = Ledger, watch = Watch, samples = Samples}};
                {error, _} = Error -> Error
            end;
        false ->
            {ok, T0}
    end.

%% --- telling ---

tell_total(#trace{slots = Slots, arming = Arming, control = Control} = T) ->
    T#trace{arming = kprof_telling:total(Slots, Arming, Control)}.

%% @doc Tells the collector the state of {@link kprof_life}, and why.
-spec tell_state(atom(), unicode:chardata(), trace()) -> ok.
tell_state(State, Text, #trace{sampling = Sampling, ledger = Ledger, control = Control}) ->
    kprof_telling:state(State, Text, Sampling, Ledger, Control).

%% @doc Answers a tool's command.
-spec steered(term(), boolean(), unicode:chardata(), trace()) -> ok.
steered(Id, Ok, Text, #trace{control = Control}) ->
    kprof_control:told(kprof_protocol:steered(Id, Ok, Text), Control).

%% @doc How much is sampled, in words.
-spec describe(trace()) -> string().
describe(#trace{sampling = Sampling}) ->
    kprof_sampling:describe(Sampling).

%% @doc A line of text for each tier whose function is not on this node, and one when there are
%% processes that cannot be traced.
-spec warnings(trace()) -> [string()].
warnings(#trace{tiers = Tiers, arming = Arming, watch = Watch}) ->
    kprof_arming:warnings(Arming) ++ kprof_watch:warnings(Tiers, Watch).

%% @doc What is armed, and what is not.
-spec armed(trace()) -> [kprof_armed:line()].
armed(#trace{tiers = Tiers, arming = Arming, watch = Watch}) ->
    kprof_watch:armed(Tiers, Arming, Watch).

%% @doc Where its collector listens.
-spec collector(trace()) -> {Host :: string(), inet:port_number()}.
collector(#trace{control = Control}) ->
    kprof_control:name(Control).

%% @doc How its collector is reached: see {@link kprof_control:reached/1}.
-spec reached(trace()) -> kprof_control:reached().
reached(#trace{control = Control}) ->
    kprof_control:reached(Control).

now_ms() ->
    erlang:monotonic_time(millisecond).
