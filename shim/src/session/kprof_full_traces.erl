%% SPDX-License-Identifier: Apache-2.0
%% @doc The full traces of a node, as its trace ({@link kprof_trace}) has them: what the collector
%% wants begun and ended, what this node asks for itself, and what the collector is told of it.
%% {@link kprof_full} sets and takes off patterns and flags, {@link kprof_flame} knows who waits.
%%
%% Where the tiers rest meanwhile ({@link rests/1}), the caller notices that by the state it gets
%% back.
-module(kprof_full_traces).

-export([new/0, runs/1, rests/1, ask/4, header/4, wanted/3, stop/3, more/4, flamed/2, lost/1]).
-export([look/3, over/4, off/2, gone/4]).

-export_type([full_traces/0, around/0]).

%% ms: returns of calls that were open when a request told its end
-define(LINGER_MS, 200).
-define(TOO_LATE, "the request waits for 50 ms, and its patterns did not stand by then").

-record(full_traces, {
    run = none :: none | kprof_full:full(),
    flame = kprof_flame:new() :: kprof_flame:waiting()
}).
-opaque full_traces() :: #full_traces{}.
-type around() :: #{
    slots := kprof_slots:slots(),
    control := kprof_control:control(),
    tiers := kprof_tiers:tiers(),
    arming := kprof_arming:arming(),
    % that hand things on to the user, and are not traced
    outlets := [pid()],
    % that have come from the trace port
    bytes := non_neg_integer()
}.
%% What they have to know of their trace.

%% @doc None runs, and nobody waits for one.
-spec new() -> full_traces().
new() ->
    #full_traces{}.

%% @doc Whether one runs.
-spec runs(full_traces()) -> boolean().
runs(#full_traces{run = Run}) ->
    Run =/= none.

%% @doc Whether the tiers are not traced meanwhile.
-spec rests(full_traces()) -> boolean().
rests(#full_traces{run = none}) -> false;
rests(#full_traces{run = Full}) -> kprof_full:rests(Full).

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
            over(done, "", Around, F#full_traces{flame = Flame});
        {true, Flame} ->
            over(error, ?TOO_LATE, Around, F#full_traces{flame = Flame});
        {false, _} ->
            F
    end.

%% @doc The collector has told how one ended that this node had asked for.
-spec flamed(kprof_flame:flamed(), full_traces()) -> full_traces().
flamed(Told, #full_traces{flame = Flame} = F) ->
    F#full_traces{flame = kprof_flame:flamed(Told, Flame)}.

%% @doc The collector is gone: nobody will hear how it ends.
-spec lost(full_traces()) -> full_traces().
lost(#full_traces{flame = Flame} = F) ->
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
    case is_run(Id, F) andalso kprof_flame:stands(Slots, Before) of
        false -> F;
        {ok, Flame} -> F#full_traces{flame = Flame};
        {late, Flame} -> over(error, ?TOO_LATE, Around, F#full_traces{flame = Flame})
    end.

is_run(_, #full_traces{run = none}) -> false;
is_run(Id, #full_traces{run = Full}) -> kprof_full:id(Full) =:= Id.

begin_trace(#{id := Id, processes := []} = Wanted, Around, F) when not is_map_key(own, Wanted) ->
    %% no requests have come yet
    _ = [none(Id, no_function, Why, Around) || {error, Why} <- [kprof_full:check(Wanted)]],
    F;
begin_trace(#{id := Id} = Wanted, #{control := Control} = Around, F) ->
    #{tiers := Tiers, bytes := Bytes} = Around,
    Tracer = tracer(Around),
    Patterns = kprof_tiers:patterns(Tiers),
    Begun =
        case F#full_traces.run of
            none when Tracer =:= undefined ->
                {error, "it is not traced at the moment"};
            none ->
                kprof_full:start(Wanted, Tracer, Patterns, {exempt(Around), Bytes});
            _ ->
                {error, "another full trace runs already"}
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
            F#full_traces{run = Full};
        {error, Why} ->
            ok = none(Id, error, Why, Around),
            F
    end.

%% Tells the collector that there is none, or no longer.
none(Id, Reason, Why, Around) ->
    told_stopped(Id, erlang:monotonic_time(), Reason, Why, Around).

told_stopped(Id, At, Reason, Text, #{control := Control}) ->
    kprof_control:told(kprof_protocol:full_stopped(Id, At, Reason, Text), Control).

tracer(#{arming := Arming}) ->
    kprof_arming:tracer(Arming).

exempt(#{arming := Arming, outlets := Outlets}) ->
    kprof_arming:processes(Outlets, Arming).

%% @doc The collector wants no more of the one of this number.
-spec stop(term(), around(), full_traces()) -> full_traces().
stop(Id, Around, F) ->
    case is_run(Id, F) of
        true -> over(done, "", Around, F);
        false -> F
    end.

%% @doc Requests go through these processes, too: the collector is told which of them had no flag.
-spec more(term(), [binary()], around(), full_traces()) -> ok.
more(Id, Processes, #{tiers := Tiers, control := Control} = Around, F) ->
    case is_run(Id, F) of
        true ->
            Missed = kprof_full:more(Processes, exempt(Around), F#full_traces.run),
            ok = kprof_guard:yield(tracer(Around), kprof_tiers:patterns(Tiers)),
            kprof_control:told(kprof_protocol:full_missed(Id, Missed), Control);
        false ->
            ok
    end.

%% --- the end ---

%% @doc To be called from time to time while it is armed: ends what has run for too long, or has
%% made too much, or whose request is gone.
-spec look(integer(), around(), full_traces()) -> full_traces().
look(_, _, #full_traces{run = none} = F) ->
    F;
look(Now, #{bytes := Bytes} = Around, #full_traces{run = Full, flame = Flame} = F) ->
    case kprof_flame:is_gone(Flame) orelse kprof_full:look(Now, Bytes, Full) of
        go_on -> F;
        true -> over(done, "", Around, F);
        {over, Reason, Text} -> over(Reason, Text, Around, F)
    end.

%% @doc It ends while all is armed: the tiers are traced again.
-spec over(atom(), unicode:chardata(), around(), full_traces()) -> full_traces().
over(_, _, _, #full_traces{run = none} = F) ->
    F;
over(Reason, Text, Around, #full_traces{run = Full} = F) ->
    #{arming := Arming, tiers := Tiers, outlets := Outlets} = Around,
    Tracer = tracer(Around),
    Patterns = kprof_tiers:patterns(Tiers),
    %% what ends later is not traced to its end
    At = erlang:monotonic_time(),
    ok = kprof_full:stop(Tracer, Patterns, Full),
    _ = kprof_full:rests(Full) andalso kprof_arming:set_flags(Tiers, Outlets, Arming),
    ok = kprof_guard:yield(Tracer, Patterns),
    gone(Reason, Text, At, Around, F).

%% @doc Takes patterns and flags off, before all else is undone. {@link gone/4} is to follow.
-spec off(around(), full_traces()) -> ok.
off(_, #full_traces{run = none}) ->
    ok;
off(#{tiers := Tiers}, #full_traces{run = Full}) ->
    kprof_full:off(kprof_tiers:patterns(Tiers), Full).

%% @doc It has ended with all else.
-spec gone(atom(), unicode:chardata(), around(), full_traces()) -> full_traces().
gone(Reason, Text, Around, F) ->
    gone(Reason, Text, erlang:monotonic_time(), Around, F).

gone(_, _, _, _, #full_traces{run = none} = F) ->
    F;
gone(Reason, Text, At, #{slots := Slots} = Around, #full_traces{run = Full, flame = Flame} = F) ->
    logger:notice("kprof: the full trace is over (~ts)", [Reason]),
    ok = told_stopped(kprof_full:id(Full), At, Reason, Text, Around),
    F#full_traces{run = none, flame = kprof_flame:over(Slots, Flame)}.

now_ms() ->
    erlang:monotonic_time(millisecond).
