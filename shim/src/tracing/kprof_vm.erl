%% SPDX-License-Identifier: Apache-2.0
%% @doc The VM's trace functions, the same on every release. Nothing else in the shim knows one from
%% another.
%%
%% From OTP 27 on, flags and patterns live in a trace session of our own: other tools trace beside
%% it, and neither see nor clear what is in it. Before, the node has one set of patterns and each
%% process one tracer: who comes second must stay away, which {@link function/1}, {@link
%% foreign_tracer/0} and {@link foreign_processes/1} are for.
%%
%% A session lives as long as its handle is kept. What is set in one that has ended is set nowhere,
%% and is no error: the guard may end it under the hands of who is setting.
-module(kprof_vm).

-export([
    session/1,
    beside/1,
    is_shared/1,
    end_session/1,
    trace/4,
    pattern/3,
    count/3,
    info/3,
    flags/2,
    function/1,
    foreign_tracer/0,
    foreign_processes/1,
    others/1,
    kills_in_silence/0,
    unsafe/1, unsafe/2,
    was_tried/0,
    version/0
]).

-export_type([session/0, tracer/0, danger/0]).

% before OTP 27 what stands for all that is traced to one tracer: the option that names it
-opaque session() :: [tuple()] | {reference(), term()}.
-type tracer() :: port() | pid() | {kprof_native, kprof_native:state()}.
% an issue of github.com/erlang/otp, and what it does
-type danger() :: {Issue :: pos_integer(), What :: string()}.

%% The first version of erts in each line of releases in which otp#11624 is mended, such as [[15, 2,
%% 7, 9], [17, 1, 2]]: none is known.
-define(GC_MENDED, []).
% the newest release that the native tracer was tried on
-define(NATIVE_TRIED, 29).

%% @doc Begins a session that traces to a port or a tracer module. Nothing is traced yet.
-spec session(tracer()) -> session().
session(Tracer) ->
    begin_session(kprof, Tracer).

begin_session(Name, Tracer) ->
    case has_sessions() of
        true -> trace:session_create(Name, Tracer, []);
        false -> [option(Tracer)]
    end.

option({Module, State}) -> {tracer, Module, State};
option(Tracer) -> {tracer, Tracer}.

%% @doc A session beside others, for what must not meet their flags: a full trace. Where this
%% release knows no sessions, its patterns are everybody's.
-spec beside(tracer()) -> session().
beside(Tracer) ->
    begin_session(kprof_full, Tracer).

%% @doc Whether its patterns are everybody's, and a process has one tracer.
-spec is_shared(session()) -> boolean().
is_shared(Session) ->
    not is_tuple(Session).

%% @doc Ends a session together with all that was set in it; ended already is fine. `false': this
%% release knows no sessions, and what was set is still there, for the caller to take off.
-spec end_session(session()) -> boolean().
end_session(Session) when is_tuple(Session) ->
    _ = trace:session_destroy(Session),
    true;
end_session(_) ->
    false.

%% @doc Sets or clears flags: of `all' processes, those to come included, or of one. A process that
%% is gone or that somebody else traces is left alone, and so is everything once the tracer is gone.
-spec trace(session(), all | new_processes | pid(), boolean(), [atom()]) -> ok.
trace(Session, What, On, Flags) ->
    try trace_flags(Session, What, On, Flags) of
        _ -> ok
    catch
        error:badarg -> ok
    end.

trace_flags(Session, What, On, Flags) when is_tuple(Session) ->
    trace:process(Session, What, On, Flags);
trace_flags(Session, What, On, Flags) ->
    erlang:trace(What, On, Session ++ Flags).

%% @doc Sets the pattern of a function, for local calls, too; `false' takes it off. Returns how many
%% functions match, 0 or 1.
-spec pattern(session(), mfa(), [tuple()] | false) -> non_neg_integer().
pattern(Session, MFA, Spec) when is_tuple(Session) ->
    unless_ended(Session, 0, fun() -> trace:function(Session, MFA, Spec, [local]) end);
pattern(_, MFA, Spec) ->
    erlang:trace_pattern(MFA, Spec, [local]).

%% @doc Has the calls of a function counted, in all processes, or no longer. What is gone or ended
%% is left alone.
-spec count(session(), mfa(), boolean()) -> ok.
count(Session, MFA, On) when is_list(Session) ->
    _ = erlang:trace_pattern(MFA, On, [call_count]),
    ok;
count(Session, MFA, On) ->
    _ = unless_ended(Session, 0, fun() -> trace:function(Session, MFA, On, [call_count]) end),
    ok.

%% @doc What `erlang:trace_info/2' tells of processes to come or of a function, the value alone;
%% `ended' of a session that is over.
-spec info(session(), new | mfa(), atom()) -> term().
info(Session, What, Item) when is_tuple(Session) ->
    unless_ended(Session, ended, fun() -> element(2, trace:info(Session, What, Item)) end);
info(_, What, Item) ->
    element(2, erlang:trace_info(What, Item)).

%% @doc The flags of a process; `ended' of a session that is over.
-spec flags(session(), pid()) -> [atom()] | gone | ended.
flags(Session, Pid) ->
    try trace_info(Session, Pid) of
        {flags, Flags} when is_list(Flags) -> Flags;
        _ -> gone
    catch
        error:badarg -> ended
    end.

trace_info(Session, Pid) when is_tuple(Session) -> trace:info(Session, Pid, flags);
trace_info(_, Pid) -> erlang:trace_info(Pid, flags).

%% @doc Whether a function is there, and free for us to trace: `taken' when somebody else does and
%% we cannot be beside them.
-spec function(mfa()) -> absent | free | taken.
function(MFA) ->
    case erlang:trace_info(MFA, traced) of
        {traced, undefined} ->
            absent;
        {traced, false} ->
            free;
        {traced, _} ->
            case has_sessions() of
                true -> free;
                false -> taken
            end
    end.

%% @doc Who traces processes to come, when we would take that from them. Ask while we trace nothing.
-spec foreign_tracer() -> none | {tracer, term()}.
foreign_tracer() ->
    case has_sessions() orelse erlang:trace_info(new, tracer) of
        true -> none;
        {tracer, []} -> none;
        {tracer, Tracer} -> {tracer, Tracer}
    end.

%% @doc How many processes somebody else traces, so that we cannot. Takes some microseconds a
%% process before OTP 27.
-spec foreign_processes(session()) -> non_neg_integer().
foreign_processes([Option]) ->
    length([
        P
     || P <- processes(),
        {tracer, Tracer} <- [erlang:trace_info(P, tracer)],
        Tracer =/= [],
        option(Tracer) =/= Option
    ]);
foreign_processes(_) ->
    0.

%% @doc Who else traces here: names of other trace sessions, and the tracer of processes to come
%% outside of sessions.
-spec others(session()) -> [term()].
others(Session) ->
    Sessions =
        case is_list(Session) of
            true ->
                [];
            false ->
                [
                    Name
                 || {Name, _} = S <- trace:session_info(all),
                    S =/= element(2, Session),
                    Name =/= kprof_full,
                    Name =/= legacy
                ]
        end,
    case erlang:trace_info(new, tracer) of
        {tracer, []} -> Sessions;
        {tracer, Tracer} -> Sessions ++ [Tracer]
    end.

%% @doc Whether a process that is killed is gone without a trace message but for the one of its
%% death. Before OTP 27 the calls that it was in end by an exception each.
-spec kills_in_silence() -> boolean().
kills_in_silence() ->
    has_sessions().

%% @doc Why tracing processes for this could kill this node. Measured with processes that are on
%% dirty schedulers all the time: erts 13.1.5 died within 300 rounds of setting and clearing either
%% flag; 15.2.7 and 17.1 did not in 20,000 with `running' in a session that ended before its port
%% did, but within 200 where the port was first ({@link kprof_tracer:open/0} sees to that).
-spec unsafe(garbage_collection | running) -> no | danger().
unsafe(Flag) ->
    unsafe(Flag, version()).

%% @doc The same of any version of erts.
-spec unsafe(garbage_collection | running, Erts :: [non_neg_integer()]) -> no | danger().
unsafe(_, Erts) when Erts < [13, 2] ->
    {6448,
        "a process that is on a dirty scheduler (for a file, say, or to collect a large heap) when "
        "the trace ends takes the VM down "
        "with it"};
unsafe(garbage_collection, Erts) when Erts >= [15] ->
    case [V || V <- ?GC_MENDED, hd(V) =:= hd(Erts), Erts >= V] of
        [] ->
            {11624,
                "a process whose garbage collections are traced in two trace sessions takes the VM "
                "down with it, and any tool may "
                "open a second one"};
        _ ->
            no
    end;
unsafe(_, _) ->
    no.

%% @doc Whether the native tracer was tried on this release.
-spec was_tried() -> boolean().
was_tried() ->
    Release = list_to_integer(erlang:system_info(otp_release)),
    Release >= 25 andalso Release =< ?NATIVE_TRIED.

%% @doc The version of erts, as a list that compares.
-spec version() -> [non_neg_integer()].
version() ->
    [
        list_to_integer(N)
     || N <- string:lexemes(hd(string:lexemes(erlang:system_info(version), "-")), ".")
    ].

unless_ended(Session, Ended, Fun) ->
    try
        Fun()
    catch
        error:badarg:Stack ->
            has_ended(Session) orelse erlang:raise(error, badarg, Stack),
            Ended
    end.

has_ended(Session) ->
    try trace:info(Session, new, flags) of
        _ -> false
    catch
        error:badarg -> true
    end.

has_sessions() ->
    list_to_integer(erlang:system_info(otp_release)) >= 27.
