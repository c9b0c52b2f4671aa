%% SPDX-License-Identifier: Apache-2.0
%% @doc The full traces of a node, as its trace ({@link kprof_trace}) has them: what the collector
%% wants begun and ended, what this node asks for itself, and what the collector is told of it.
%% {@link kprof_full} sets and takes off patterns and flags, {@link kprof_flame} knows who waits.
%% What is traced goes to one {@link kprof_full_relay}, which is there as long as one runs, and a
%% moment longer for what is on its way.
%%
%% Where the tiers rest meanwhile ({@link rests/1}), the caller notices that by the state it gets
%% back.
-module(kprof_full_traces).

-export([new/0, runs/1, rests/1, ask/4, header/4, wanted/3, stop/3, more/4, flamed/2, lost/1]).
-export([look/3, over/4, off/2, gone/4, processes/1, ended/4, cut_off/4, drained/1]).

-export_type([full_traces/0, around/0]).

%% ms: returns of calls that were open when a request told its end
-define(LINGER_MS, 200).
-define(TOO_LATE, "the request waits for 50 ms, and its patterns did not stand by then").

%% Numbers of data connections beside the trace port's, one after the other: the one before may not
%% have ended yet.
-define(STREAMS, 8).

-record(full_traces, {
    runs = [] :: [kprof_full:full()],
    relay = none :: none | kprof_full_relay:relay(),
    % that get no more messages
    draining = [] :: [kprof_full_relay:relay()],
    stream = 0 :: non_neg_integer(),
    % bytes and messages that have come; and as of the last look, the other way round
    counted = counters:new(2, []) :: counters:counters_ref(),
    seen = {0, 0} :: kprof_full:amount(),
    % of whom a web request's is
    request = none :: none | (Id :: integer()),
    flame = kprof_flame:new() :: kprof_flame:waiting()
}).
-opaque full_traces() :: #full_traces{}.
-type around() :: #{
    slots := kprof_slots:slots(),
    control := kprof_control:control(),
    tiers := kprof_tiers:tiers(),
    arming := kprof_arming:arming(),
    % that hand things on to the user, and are not traced
    outlets := [pid()]
}.
%% What they have to know of their trace.

%% @doc None runs, and nobody waits for one.
-spec new() -> full_traces().
new() ->
    #full_traces{}.

%% @doc Whether one runs.
-spec runs(full_traces()) -> boolean().
runs(#full_traces{runs = Runs}) ->
    Runs =/= [].

%% @doc Whether the tiers are not traced meanwhile.
-spec rests(full_traces()) -> boolean().
rests(#full_traces{runs = Runs}) ->
    lists:any(fun kprof_full:rests/1, Runs).

%% --- this node asks ---

%% @doc Asks the collector for one. Who waits for its profile gets a reply.
-spec ask(gen_statem:from(), kprof_flame:wanted(), around(), full_traces()) ->
    {ok, full_traces()} | {error, term()}.
ask(From, Wanted, #{control := Control}, #full_traces{flame = Before} = F) ->
    case kprof_flame:ask(From, now_ms() + kprof_flame:patience(Wanted), Before) of
        {ok, Flame} ->
            ok = kprof_control:told(kprof_protocol:flame(Wanted), Control),
            {ok, F#full_traces{flame = Flame}};
        Error ->
            Error
    end.

%% @doc A web request wants to be traced fully, or has ended: {@link kprof_flame_header}. `Header'
%% is the option.
-spec header(
    {begins, kprof_flame_header:ask()}
    | {ended | over | gave_up, kprof_slots:label()}
    | {refused, unicode:chardata()},
    undefined | kprof_flame_header:header(),
    around(),
    full_traces()
) -> full_traces().
header({begins, _}, undefined, _, F) ->
    F;
header({begins, Ask}, {_, _, Wanted}, #{control := Control}, F) ->
    case kprof_flame:begins(Ask, Wanted, F#full_traces.flame) of
        {ok, Asked, Flame} ->
            ok = kprof_control:told(kprof_protocol:flame(Asked), Control),
            F#full_traces{flame = Flame};
        no ->
            F
    end;
header({refused, Why}, _, _, F) ->
    logger:notice("kprof: a request whose header asked for a full trace gets none: ~ts", [Why]),
    F;
header({ended, Label}, _, _, F) ->
    %% some tell it while calls are open, whose returns are still to come
    _ = erlang:send_after(?LINGER_MS, self(), {kprof_flame_header, {over, Label}}),
    F;
header({What, Label}, _, Around, #full_traces{flame = Before} = F) ->
    case kprof_flame:gave_up(Label, Before) of
        {true, Flame} when What =:= over ->
            request_over(done, "", Around, F#full_traces{flame = Flame});
        {true, Flame} ->
            request_over(error, ?TOO_LATE, Around, F#full_traces{flame = Flame});
        {false, _} ->
            F
    end.

%% @doc The collector has told how one ended that this node had asked for.
-spec flamed(kprof_flame:flamed(), full_traces()) -> full_traces().
flamed(Told, #full_traces{flame = Flame} = F) ->
    F#full_traces{flame = kprof_flame:flamed(Told, Flame)}.

%% @doc The collector is gone: nobody will hear how it ends.
-spec lost(full_traces()) -> full_traces().
lost(#full_traces{flame = Flame, draining = Draining} = F) ->
    lists:foreach(fun kprof_full_relay:give_up/1, Draining),
    F#full_traces{flame = kprof_flame:lost(Flame)}.

%% --- the collector asks ---

%% @doc The collector wants one begun, or with no processes only to know whether it could be.
-spec wanted(kprof_full:wanted(), around(), full_traces()) -> full_traces().
wanted(#{label := 0} = Wanted, Around, F) ->
    begin_trace(Wanted, Around, F);
wanted(#{id := Id, label := Label} = Wanted, Around, #full_traces{flame = Flame} = F) ->
    case kprof_flame:claim(Label, Flame) of
        {ok, Pid} ->
            request_begins(Id, Around, begin_trace(Wanted#{own => [Pid]}, Around, F));
        late ->
            ok = none(Id, error, ?TOO_LATE, Around),
            F
    end.

%% Where it cannot be, the collector has been told why, and tells it back.
request_begins(Id, #{slots := Slots} = Around, #full_traces{flame = Before} = F) ->
    case run(Id, F) =/= none andalso kprof_flame:stands(Slots, Before) of
        false ->
            F;
        {ok, Flame} ->
            F#full_traces{request = Id, flame = Flame};
        {late, Flame} ->
            request_over(error, ?TOO_LATE, Around, F#full_traces{request = Id, flame = Flame})
    end.

run(Id, #full_traces{runs = Runs}) ->
    case [Full || Full <- Runs, kprof_full:id(Full) =:= Id] of
        [Full] -> Full;
        [] -> none
    end.

begin_trace(#{id := Id, processes := []} = Wanted, Around, F) when not is_map_key(own, Wanted) ->
    %% no requests have come yet
    _ = [none(Id, no_function, Why, Around) || {error, Why} <- [kprof_full:check(Wanted)]],
    F;
begin_trace(#{id := Id} = Wanted, #{control := Control} = Around, F) ->
    #{tiers := Tiers} = Around,
    % what came until now is of those that run
    #full_traces{runs = Runs} = Counted = count(F),
    Tracer = tracer(Around),
    Patterns = kprof_tiers:patterns(Tiers),
    {Carried, Ready} = carried(Tracer, Around, Counted),
    Begun =
        case Carried of
            {ok, To} ->
                kprof_full:start(Wanted, Tracer, To, Patterns, exempt(Around, Ready), Runs);
            Error ->
                Error
        end,
    case Begun of
        {ok, Full} ->
            logger:notice("kprof: a full trace begins~ts", [
                case kprof_full:rests(Full) of
                    true -> "; the tiers rest meanwhile";
                    false -> ""
                end
            ]),
            ok = kprof_control:told(
                kprof_protocol:full_started(kprof_full:fields(Full)), Control
            ),
            ok = kprof_guard:yield(Tracer, Patterns),
            Ready#full_traces{runs = [Full | Runs]};
        {error, Why} ->
            ok = none(Id, error, Why, Around),
            put_by(Ready)
    end.

%% What is traced to, and carries the messages.
carried(undefined, _, F) ->
    {{error, "it is not traced at the moment"}, F};
carried(_, _, #full_traces{relay = Relay} = F) when Relay =/= none ->
    {{ok, kprof_full_relay:traced_to(Relay)}, F};
carried(Tracer, Around, F) ->
    case kprof_tracer:open_beside(Tracer) of
        {ok, Beside} -> carried(Tracer, Beside, Around, F);
        {error, _} = Error -> {Error, F}
    end.

carried(Tracer, Beside, #{control := Control, arming := Arming}, F) ->
    #full_traces{counted = Counted, stream = Before} = F,
    Stream = Before rem ?STREAMS + 1,
    case kprof_control:open_data(Control, Stream) of
        {ok, Out} ->
            Counters = {Counted, kprof_arming:counter(Arming)},
            Relay = kprof_full_relay:start_link(Beside, Out, Counters),
            ok = kprof_tracer:leave_out(Tracer, kprof_full_relay:processes(Relay)),
            ok = kprof_guard:watch(kprof_full_relay:gauge(Relay)),
            {{ok, kprof_full_relay:traced_to(Relay)}, F#full_traces{
                relay = Relay, stream = Stream
            }};
        {error, {collector, _, _, Why}} ->
            ok = kprof_tracer:close_beside(Beside),
            Text = io_lib:format("its data connection cannot be opened: ~0tp", [Why]),
            {{error, lists:flatten(Text)}, F}
    end.

%% Nothing runs any more: what is on its way is delivered.
put_by(#full_traces{runs = [], relay = Relay, draining = Draining} = F) when Relay =/= none ->
    ok = kprof_guard:watch(none),
    ok = kprof_full_relay:drain(Relay),
    F#full_traces{relay = none, draining = [Relay | Draining]};
put_by(F) ->
    F.

%% Tells the collector that there is none, or no longer.
none(Id, Reason, Why, Around) ->
    told_stopped(Id, erlang:monotonic_time(), Reason, Why, Around).

told_stopped(Id, At, Reason, Text, #{control := Control}) ->
    kprof_control:told(kprof_protocol:full_stopped(Id, At, Reason, Text), Control).

tracer(#{arming := Arming}) ->
    kprof_arming:tracer(Arming).

exempt(#{arming := Arming, outlets := Outlets}, F) ->
    kprof_arming:processes(Outlets ++ processes(F), Arming).

%% @doc Its own processes, which are not traced.
-spec processes(full_traces()) -> [pid()].
processes(#full_traces{relay = Relay, draining = Draining}) ->
    lists:append([kprof_full_relay:processes(R) || R <- [Relay | Draining], R =/= none]).

%% @doc The collector wants no more of the one of this number.
-spec stop(term(), around(), full_traces()) -> full_traces().
stop(Id, Around, F) ->
    over(run(Id, F), done, "", Around, F).

%% @doc Requests go through these processes, too: the collector is told which of them had no flag.
-spec more(term(), [binary()], around(), full_traces()) -> ok.
more(Id, Processes, #{tiers := Tiers, control := Control} = Around, F) ->
    case run(Id, F) of
        none ->
            ok;
        Full ->
            Missed = kprof_full:more(Processes, exempt(Around, F), Full),
            ok = kprof_guard:yield(tracer(Around), kprof_tiers:patterns(Tiers)),
            kprof_control:told(kprof_protocol:full_missed(Id, Missed), Control)
    end.

%% --- the end ---

%% @doc To be called from time to time while it is armed: ends those that have run for too long, or
%% have made too much, or whose request is gone.
-spec look(integer(), around(), full_traces()) -> full_traces().
look(Now, Around, F0) ->
    #full_traces{runs = Runs} = Counted = count(F0),
    F = lists:foldl(
        fun(Full, F1) ->
            case kprof_full:look(Now, Full) of
                go_on -> F1;
                {over, Reason, Text} -> over(Full, Reason, Text, Around, F1)
            end
        end,
        Counted,
        Runs
    ),
    case kprof_flame:is_gone(F#full_traces.flame) of
        true -> request_over(done, "", Around, F);
        false -> F
    end.

%% What has come is of all that run alike.
count(#full_traces{runs = Runs, counted = Counted, seen = {Messages0, Bytes0}} = F) ->
    {Messages, Bytes} = Now = {counters:get(Counted, 2), counters:get(Counted, 1)},
    Of = max(1, length(Runs)),
    Part = {(Messages - Messages0) div Of, (Bytes - Bytes0) div Of},
    F#full_traces{runs = [kprof_full:count(Part, Full) || Full <- Runs], seen = Now}.

%% @doc All of them end while all is armed.
-spec over(atom(), unicode:chardata(), around(), full_traces()) -> full_traces().
over(Reason, Text, Around, #full_traces{runs = Runs} = F) ->
    lists:foldl(fun(Full, F1) -> over(Full, Reason, Text, Around, F1) end, F, Runs).

request_over(Reason, Text, Around, #full_traces{request = Id} = F) ->
    over(run(Id, F), Reason, Text, Around, F).

%% One ends while all is armed: behind the last of them the tiers are traced again.
over(none, _, _, _, F) ->
    F;
over(Full, Reason, Text, Around, #full_traces{runs = Runs} = F) ->
    #{arming := Arming, tiers := Tiers, outlets := Outlets} = Around,
    Tracer = tracer(Around),
    Patterns = kprof_tiers:patterns(Tiers),
    Others = lists:delete(Full, Runs),
    ok = shut(Full, Around),
    ok = kprof_full:stop(Tracer, Patterns, Full, Others),
    Own = Outlets ++ processes(F),
    _ = kprof_full:rests(Full) andalso kprof_arming:set_flags(Tiers, Own, Arming),
    ok = kprof_guard:yield(Tracer, Patterns),
    At = erlang:monotonic_time(),
    put_by(gone_one(Full, Reason, Text, At, Around, F#full_traces{runs = Others})).

%% @doc Takes patterns and flags off, before all else is undone. {@link gone/4} is to follow.
-spec off(around(), full_traces()) -> ok.
off(_, #full_traces{runs = []}) ->
    ok;
off(#{tiers := Tiers} = Around, #full_traces{runs = [Full | _] = Runs}) ->
    _ = [shut(Run, Around) || Run <- Runs],
    kprof_full:off(kprof_tiers:patterns(Tiers), Full).

%% What ends from now on is not traced to its end. The collector hears of that before patterns and
%% flags go, which takes its time: meanwhile it may learn what became of such a request.
shut(Full, #{control := Control}) ->
    At = erlang:monotonic_time(),
    kprof_control:told(kprof_protocol:full_shut(kprof_full:id(Full), At), Control).

%% @doc They have ended with all else.
-spec gone(atom(), unicode:chardata(), around(), full_traces()) -> full_traces().
gone(Reason, Text, Around, #full_traces{runs = Runs} = F) ->
    At = erlang:monotonic_time(),
    put_by(
        lists:foldl(
            fun(Full, F1) -> gone_one(Full, Reason, Text, At, Around, F1) end,
            F#full_traces{runs = []},
            Runs
        )
    ).

%% @doc A linked process has ended: it may be what is traced to. What is traced is over then.
-spec ended(pid() | port(), term(), around(), full_traces()) -> full_traces().
ended(From, Why, Around, #full_traces{relay = Relay, draining = Draining} = F) ->
    case Relay =/= none andalso kprof_full_relay:pid(Relay) =:= From of
        true ->
            Text = io_lib:format("the process that carries it ended: ~0tp", [Why]),
            ok = kprof_guard:watch(none),
            Over = over(error, Text, Around, F#full_traces{relay = none}),
            ok = kprof_full_relay:ended(Relay),
            Over;
        false ->
            {Gone, Left} = lists:partition(
                fun(R) -> kprof_full_relay:pid(R) =:= From end, Draining
            ),
            lists:foreach(fun kprof_full_relay:ended/1, Gone),
            F#full_traces{draining = Left}
    end.

%% @doc The data connection of what is traced to has ended by itself.
-spec cut_off(pid(), term(), around(), full_traces()) -> full_traces().
cut_off(Pid, Why, Around, #full_traces{relay = Relay} = F) ->
    case Relay =/= none andalso kprof_full_relay:pid(Relay) =:= Pid of
        true -> over(error, io_lib:format("its data connection ended: ~0tp", [Why]), Around, F);
        false -> F
    end.

%% @doc None runs any more: waits until what was on its way is delivered, some seconds at most.
-spec drained(full_traces()) -> full_traces().
drained(#full_traces{draining = Draining} = F) ->
    lists:foreach(fun kprof_full_relay:finish/1, Draining),
    F#full_traces{draining = []}.

gone_one(Full, Reason, Text, At, Around, #full_traces{request = Request, flame = Flame} = F) ->
    Id = kprof_full:id(Full),
    logger:notice("kprof: the full trace is over (~ts)", [Reason]),
    ok = told_stopped(Id, At, Reason, Text, Around),
    case Request of
        Id ->
            #{slots := Slots} = Around,
            F#full_traces{request = none, flame = kprof_flame:over(Slots, Flame)};
        _ ->
            F
    end.

now_ms() ->
    erlang:monotonic_time(millisecond).
