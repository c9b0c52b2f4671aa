%% SPDX-License-Identifier: Apache-2.0
%% @doc Keeps flags as they were set: another tool's clear takes them. They are set again at the
%% next look, every half second, and what was called since the look before may be missing. (What a
%% reload takes are patterns, for which the guard looks every 10 ms.) And what cannot be traced is
%% told: functions that are not on this node, processes that somebody else traces.
-module(kprof_upkeep).

-export([new/0, begin_at/5, look/5, reset/4, foreign_tracer/2, warnings/2, foreign/1]).
-export([messages_lost/3]).

-export_type([seen/0]).

-record(seen, {
    % native time of the last look; then everything was as we had set it
    at = 0 :: integer(),
    % told already
    absent = [] :: [kprof_armed:absence()],
    % processes that somebody else traces
    foreign = 0 :: non_neg_integer(),
    % who traces new processes
    owner = us :: us | {other, term()}
}).
-opaque seen() :: #seen{}.

%% @doc Nothing yet.
-spec new() -> seen().
new() ->
    #seen{}.

%% @doc Everything was set at `At', in native time.
-spec begin_at(
    integer(), kprof_tiers:tiers(), kprof_tracer:tracer(), kprof_control:control(), seen()
) -> seen().
begin_at(At, Tiers, Tracer, Control, Seen) ->
    tell_absent(
        Tiers,
        Tracer,
        Control,
        untraceable(Tracer, Control, Seen#seen{at = At, absent = [], owner = us})
    ).

%% @doc Takes a look, while the guard watches what is armed. `Also' are processes that are not
%% traced ({@link kprof_arming:set/3}).
-spec look(kprof_tiers:tiers(), [pid()], kprof_arming:arming(), kprof_control:control(), seen()) ->
    seen().
look(Tiers, Also, Arming, Control, Seen0) ->
    At = erlang:monotonic_time(),
    Tracer = kprof_arming:tracer(Arming),
    Seen =
        case {kprof_tracer:flags_owner(Tracer), Seen0} of
            {us, _} ->
                Seen0#seen{owner = us};
            {nobody, _} ->
                kprof_arming:set_flags(Tiers, Also, Arming),
                kprof_control:told(
                    kprof_protocol:gap(
                        flags, {Seen0#seen.at, erlang:monotonic_time()}, "all tiers"
                    ),
                    Control
                ),
                kprof_control:told(
                    kprof_protocol:note(
                        warning, "somebody took the trace flags off; they are set again"
                    ),
                    Control
                ),
                untraceable(Tracer, Control, Seen0#seen{owner = us});
            {{other, _} = Owner, #seen{owner = Before}} ->
                kprof_control:told(
                    kprof_protocol:gap(
                        flags, {Seen0#seen.at, erlang:monotonic_time()}, "all tiers"
                    ),
                    Control
                ),
                Owner =:= Before orelse
                    kprof_control:told(kprof_protocol:note(warning, taken(Owner)), Control),
                Seen0#seen{owner = Owner}
        end,
    ok = kprof_guard:yield(Tracer, kprof_tiers:patterns(Tiers)),
    (tell_absent(Tiers, Tracer, Control, Seen))#seen{at = At}.

%% @doc Messages that processes take are told to somebody else, since the last look at the latest.
-spec messages_lost(Line :: string(), kprof_control:control(), seen()) -> ok.
messages_lost(Line, Control, #seen{at = At}) ->
    logger:warning("kprof: ~ts", [Line]),
    kprof_control:told(
        kprof_protocol:gap(messages, {At, erlang:monotonic_time()}, "all tiers"), Control
    ),
    kprof_control:told(kprof_protocol:note(warning, Line), Control).

%% @doc The guard has set the patterns of these functions again, which may have been off for that
%% native time.
-spec reset(
    {From :: integer(), Until :: integer()}, [mfa()], kprof_tiers:tiers(), kprof_control:control()
) -> ok.
reset(Time, MFAs, Tiers, Control) ->
    Names = lists:join(", ", [kprof_armed:name(MFA, kprof_tiers:list(Tiers)) || MFA <- MFAs]),
    kprof_control:told(kprof_protocol:gap(reload, Time, Names), Control),
    kprof_control:told(
        kprof_protocol:note(info, ["patterns set again after a code reload: ", Names]), Control
    ).

taken({other, Tracer}) ->
    io_lib:format(
        "somebody else (~0tp) traces new processes now, and before OTP 27 a process has one "
        "tracer: requests are incomplete "
        "until that ends",
        [Tracer]
    ).

%% What is not on this node is told once, and again when it has come and gone.
tell_absent(Tiers, Tracer, Control, #seen{absent = Before} = Seen) ->
    Absent = [
        {MFA,
            case erlang:module_loaded(M) of
                true -> function;
                false -> module
            end}
     || {M, _, _} = MFA <- kprof_tracer:absent(Tracer, [
            {MFA, Spec}
         || #{mfa := MFA, spec := Spec} <- kprof_tiers:list(Tiers)
        ])
    ],
    lists:foreach(
        fun(Absence) ->
            kprof_control:told(
                kprof_protocol:note(warning, kprof_armed:absent(Absence, kprof_tiers:list(Tiers))),
                Control
            )
        end,
        Absent -- Before
    ),
    Seen#seen{absent = Absent}.

untraceable(Tracer, Control, Seen0) ->
    Seen = Seen0#seen{foreign = kprof_tracer:foreign_processes(Tracer)},
    lists:foreach(
        fun(Line) -> kprof_control:told(kprof_protocol:note(warning, Line), Control) end,
        foreign(Seen)
    ),
    Seen.

%% @doc We cannot begin, since that tracer traces new processes. Told once: it keeps them until it
%% ends.
-spec foreign_tracer(term(), seen()) -> seen().
foreign_tracer(Tracer, #seen{owner = Before} = Seen) ->
    Owner = {other, Tracer},
    Owner =:= Before orelse
        logger:warning("kprof: ~ts; waiting for its end", [
            kprof_error:format({foreign_tracer, Tracer})
        ]),
    Seen#seen{owner = Owner}.

%% @doc A line of text for each tier whose function is not on this node, and one when there are
%% processes that cannot be traced.
-spec warnings(kprof_tiers:tiers(), seen()) -> [string()].
warnings(Tiers, #seen{absent = Absent} = Seen) ->
    [kprof_armed:absent(Absence, kprof_tiers:list(Tiers)) || Absence <- Absent] ++ foreign(Seen).

%% @doc The latter.
-spec foreign(seen()) -> [string()].
foreign(#seen{foreign = Foreign}) ->
    kprof_armed:foreign(Foreign).
