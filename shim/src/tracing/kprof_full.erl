%% SPDX-License-Identifier: Apache-2.0
%% @doc A full trace: every function of some modules, in the processes that requests go through.
%%
%% The patterns of so many functions must never meet the flag `call' on all processes: who is
%% traced without a token pays 0.3 µs for each call. From OTP 27 on they are in a trace session of
%% their own, in which only the processes that were named have flags, with what they spawn; the
%% trace of the tiers goes on beside it. Functions of tiers are left to that: the two tell of no
%% call twice, and the collector puts them in order, by their times. Which of the two a message is
%% of it sees by the time, too: here it is a strict one. Several full traces share that
%% session: a function has a pattern while one of them wants it, and who has a flag keeps it until
%% the last of them is over. Its messages are all of theirs, and the collector takes from them the
%% modules of each. (In sessions of their own a process would tell of each call twice, in one
%% stream, and of most messages nothing says which session they are of.) All of them trace to a
%% process ({@link kprof_full_relay}), the tiers to the trace port; or both to the native tracer.
%%
%% Before OTP 27 there is one at a time, and the trace of the tiers rests meanwhile: its flags are
%% off. First the flags go, then the
%% patterns come, then the chosen processes are flagged; back it goes the other way round.
%%
%% Nothing but names leaves the node: a call tells its function, its caller and the token. The guard
%% watches as over every trace, and takes these patterns off with the others ({@link
%% kprof_tracer:undo/2}). Before OTP 27 a module in which somebody else traces a function is left
%% alone.
-module(kprof_full).

-export([check/1, start/6, more/3, named/1, stop/4, off/2, count/2, look/2, too_much/1]).
-export([id/1, rests/1, fields/1]).

-export_type([full/0, wanted/0, amount/0]).

%% some seconds of one busy process
-define(MOST_MESSAGES, 5000000).
-define(MOST_BYTES, 500000000).
% processes at a time
-define(MOST_MORE, 100).
% for the names of processes
-define(NAMES_MS, 100).
-define(NAMES_WORDS, 1000000).
% how a process begins that tells nothing of it
-define(NO_NAMES, [<<"erlang:apply/2">>, <<"proc_lib:init_p/5">>, <<"proc_lib:init_p/3">>]).
-define(FLAGS, [call, return_to, arity, set_on_spawn, exiting]).
%% without patterns unless all are wanted: their time is their callers'
-define(OTP, [erts, kernel, stdlib, compiler, runtime_tools]).

-record(full, {
    id :: integer(),
    tracer :: kprof_tracer:tracer(),
    % the tiers rest: it is theirs
    rests :: boolean(),
    modules :: [{module(), Application :: atom()}],
    functions :: non_neg_integer(),
    processes :: non_neg_integer(),
    % flagged, too
    new :: boolean(),
    flags :: [atom()],
    % ms
    until :: integer(),
    % its part of what has come
    made = {0, 0} :: amount(),
    % native time
    at :: integer()
}).
-opaque full() :: #full{}.
-type amount() :: {Messages :: non_neg_integer(), Bytes :: non_neg_integer()}.

-type wanted() :: #{
    id := integer(),
    seconds := pos_integer(),
    all := boolean(),
    applications := [binary()],
    modules := [binary()],
    processes := [binary()],
    label => term(),
    own => [pid()]
}.
%% modules: names, which may hold `*'. With neither applications nor modules: all that are loaded
%% but OTP's own; `all': these, too. processes: as they print themselves here; own: more of them, of
%% a request that waits to begin.

%% @doc Whether there are such modules at all.
-spec check(wanted()) -> ok | {error, string()}.
check(#{applications := Apps, modules := Names} = Wanted) ->
    case chosen(Wanted) of
        [] when Names =:= [], Apps =:= [] -> {error, "no module is loaded but OTP's own"};
        [] -> {error, "no module that is loaded has such a name"};
        _ -> ok
    end.

%% @doc Begins, while the tiers are traced, beside those that run already; traced to `To' ({@link
%% kprof_full_relay:traced_to/1}). `Exempt' are the shim's own processes. On an error nothing has
%% changed.
-spec start(
    wanted(),
    kprof_tracer:tracer(),
    pid() | kprof_tracer:native(),
    [kprof_tracer:pattern()],
    [pid()],
    [full()]
) ->
    {ok, full()} | {error, string()}.
start(_, _, _, _, _, [#full{rests = true} | _]) ->
    {error, "another full trace runs already"};
start(Wanted, Tracer, To, Patterns, Exempt, Others) ->
    case free(chosen(Wanted), Tracer, Patterns) of
        [] ->
            {error, "somebody else traces functions of all modules that have such a name"};
        Modules ->
            Own =
                case Others of
                    [] -> kprof_tracer:full(Tracer, To);
                    [#full{tracer = Shared} | _] -> Shared
                end,
            {ok, begun(Wanted, Modules, {Tracer, Own}, Patterns, Exempt)}
    end.

begun(#{id := Id, seconds := Seconds} = Wanted, Modules, {Tracer, Own}, Patterns, Exempt) ->
    Names = names(Modules),
    Rests = kprof_tracer:is_shared(Own),
    Flags = flags(Own),
    _ = Rests andalso kprof_tracer:rest(Tracer),
    Functions = kprof_tracer:set_modules(Own, Names, of_modules(Names, Patterns)),
    {Pids, New} = processes(Wanted),
    Flagged = (Pids -- Exempt) ++ [new_processes || New],
    ok = lists:foreach(fun(Which) -> kprof_tracer:flag(Own, Which, Flags) end, Flagged),
    #full{
        id = Id,
        tracer = Own,
        rests = Rests,
        modules = Modules,
        functions = Functions,
        processes = length(Pids -- Exempt),
        new = New,
        flags = Flags,
        until = now_ms() + 1000 * Seconds,
        at = erlang:monotonic_time()
    }.

%% @doc Requests go through these processes, too: those that have no flag get it, and are returned,
%% with what they are called. Nothing is known of who is gone.
-spec more([binary()], Exempt :: [pid()], full()) -> [{binary(), unicode:chardata()}].
more(Texts, Exempt, #full{tracer = Tracer, flags = Flags}) ->
    Missed = [
        {Text, Pid}
     || Text <- lists:sublist(Texts, ?MOST_MORE),
        Pid <- kprof_protocol:own_pid(Text),
        is_process_alive(Pid),
        not lists:member(Pid, Exempt),
        not kprof_tracer:is_flagged(Tracer, Pid)
    ],
    lists:foreach(fun({_, Pid}) -> kprof_tracer:flag(Tracer, Pid, Flags) end, Missed),
    Names = called([Pid || {_, Pid} <- Missed]),
    [{Text, proplists:get_value(Pid, Names, "")} || {Text, Pid} <- Missed].

%% @doc What these processes are called: those that are there, and have a name or a beginning of
%% their own.
-spec named([binary()]) -> [{binary(), unicode:chardata()}].
named(Texts) ->
    Known = [
        {Text, Pid}
     || Text <- lists:sublist(Texts, ?MOST_MORE),
        Pid <- kprof_protocol:own_pid(Text),
        is_process_alive(Pid)
    ],
    Names = called([Pid || {_, Pid} <- Known]),
    [
        {Text, Name}
     || {Text, Pid} <- Known,
        {_, Name} <- [lists:keyfind(Pid, 1, Names)],
        not lists:member(Name, ?NO_NAMES)
    ].

%% A process that is busy with native code does not answer: nobody waits long for that. What is
%% asked holds the process's dictionary, before OTP 26: one that is too large is not waited for.
called(Pids) ->
    {Helper, Ref} = spawn_opt(
        fun() -> exit({names, [{Pid, name(Pid)} || Pid <- Pids]}) end,
        [monitor, {max_heap_size, #{size => ?NAMES_WORDS, kill => true, error_logger => false}}]
    ),
    receive
        {'DOWN', Ref, process, _, {names, Names}} -> Names;
        {'DOWN', Ref, process, _, _} -> []
    after ?NAMES_MS ->
        exit(Helper, kill),
        _ = erlang:demonitor(Ref, [flush]),
        []
    end.

name(Pid) ->
    case process_info(Pid, registered_name) of
        {registered_name, Name} when is_atom(Name) -> atom_to_list(Name);
        _ -> kprof_mfa:text(began(process_info(Pid, initial_call), Pid))
    end.

%% Behind OTP's own beginning stands what it was told to begin.
began({initial_call, {proc_lib, _, _}}, Pid) -> proc_lib:translate_initial_call(Pid);
began({initial_call, MFA}, _) -> MFA;
began(undefined, _) -> {proc_lib, init_p, 5}.

%% @doc Ends: the chosen processes are traced no longer, and of these functions only those that the
%% tiers have. Where these rest, the caller sets their flags again. While others run it is only
%% patterns that go: a process that they follow may have its flag from this one.
-spec stop(kprof_tracer:tracer(), [kprof_tracer:pattern()], full(), Others :: [full()]) -> ok.
stop(_, _, #full{tracer = Own, modules = Modules, new = New}, [_ | _] = Others) ->
    Kept = sets:from_list(lists:append([names(Of) || #full{modules = Of} <- Others])),
    Gone = [M || M <- names(Modules), not sets:is_element(M, Kept)],
    _ =
        New andalso not lists:any(fun(#full{new = Wanted}) -> Wanted end, Others) andalso
            kprof_tracer:no_new_processes(Own),
    kprof_tracer:undo_modules(Own, Gone, []);
stop(Tracer, Patterns, #full{modules = Modules, rests = Rests} = F, []) ->
    % it does not take those for reloaded that are set again here
    ok = kprof_guard:update(Patterns),
    ok = off(Patterns, F),
    _ =
        Rests andalso
            kprof_tracer:set_patterns(Tracer, of_modules(names(Modules), Patterns)),
    kprof_guard:is_set(Tracer).

%% @doc The same before all else is undone, of all that run. What the guard knows may be gone with
%% the supervisor.
-spec off([kprof_tracer:pattern()], full()) -> ok.
off(Patterns, #full{rests = Rests, tracer = Own, modules = Modules}) ->
    ok = kprof_tracer:full_over(Own),
    _ = Rests andalso kprof_tracer:undo_modules(Own, names(Modules), Patterns),
    ok.

%% @doc So much more of what has come is its part.
-spec count(amount(), full()) -> full().
count({Messages, Bytes}, #full{made = {Messages0, Bytes0}} = F) ->
    F#full{made = {Messages0 + Messages, Bytes0 + Bytes}}.

%% @doc Whether it has to end by itself: why.
-spec look(integer(), full()) -> go_on | {over, atom(), string()}.
look(Now, #full{until = Until}) when Now >= Until ->
    {over, time_limit, "the time is over"};
look(_, #full{made = Made}) ->
    case too_much(Made) of
        no -> go_on;
        Text -> {over, time_limit, Text}
    end.

%% @doc Whether that is more than one may make: what is said of it then.
-spec too_much(amount()) -> no | string().
too_much({Messages, _}) when Messages > ?MOST_MESSAGES -> "it had made 5 million messages";
too_much({_, Bytes}) when Bytes > ?MOST_BYTES -> "it had made 500 MB of messages";
too_much(_) -> no.

-spec id(full()) -> integer().
id(#full{id = Id}) ->
    Id.

%% @doc Whether the tiers are not traced meanwhile.
-spec rests(full()) -> boolean().
rests(#full{rests = Rests}) ->
    Rests.

%% @doc What the collector is told of it.
-spec fields(full()) -> map().
fields(#full{modules = Modules, functions = Functions, processes = Processes} = F) ->
    #{
        id => F#full.id,
        at => F#full.at,
        functions => Functions,
        processes => Processes,
        new_processes => F#full.new,
        scheduling => lists:member(running, F#full.flags),
        gc => lists:member(garbage_collection, F#full.flags),
        modules => [
            #{name => atom_to_binary(M, utf8), application => application(A)}
         || {M, A} <- Modules
        ]
    }.

application(undefined) -> <<>>;
application(A) -> atom_to_binary(A, utf8).

names(Modules) ->
    [M || {M, _} <- Modules].

%% What can be traced without danger on this release.
flags(Own) ->
    kprof_tracer:time(Own) ++ ?FLAGS ++
        [F || F <- [running, garbage_collection], kprof_vm:unsafe(F) =:= no].

of_modules(Names, Patterns) ->
    Set = sets:from_list(Names),
    [P || {{M, _, _}, _} = P <- Patterns, sets:is_element(M, Set)].

%% --- modules ---

%% The loaded modules that are wanted, each with its application.
chosen(#{all := All, applications := Apps, modules := Masks}) ->
    Of = applications(),
    Own = sets:from_list(kprof_app:modules()),
    Loaded = [
        {M, maps:get(M, Of, undefined), File}
     || {M, File} <- code:all_loaded(), not sets:is_element(M, Own)
    ],
    Named = [re(Mask) || Mask <- Masks],
    [{M, App} || {M, App, _} = One <- Loaded, is_wanted(One, All, Apps, Named)].

is_wanted({_, undefined, File}, All, [], []) ->
    All orelse not is_of_otp(File);
is_wanted({_, App, _}, All, [], []) ->
    All orelse not lists:member(App, ?OTP);
is_wanted({M, App, _}, _, Apps, Named) ->
    lists:member(atom_to_binary(App, utf8), Apps) orelse
        lists:any(
            fun(Mask) -> re:run(atom_to_list(M), Mask, [{capture, none}]) =:= match end, Named
        ).

%% A module of no application that is loaded: where its file is tells whether it is OTP's.
is_of_otp(File) when is_list(File) -> lists:prefix(code:lib_dir() ++ "/", File);
is_of_otp(_) -> false.

%% A name with `*' for anything.
re(Mask) ->
    Parts = [
        re:replace(Part, "[][.^$|()\\\\+?{}]", "\\\\&", [global, {return, list}, unicode])
     || Part <- string:split(Mask, "*", all)
    ],
    {ok, Re} = re:compile(["^", lists:join(".*", Parts), "$"], [unicode]),
    Re.

applications() ->
    Preloaded = [{M, erts} || M <- erlang:pre_loaded()],
    maps:from_list(
        [
            {M, App}
         || {App, _, _} <- application:loaded_applications(),
            {ok, Ms} <- [application:get_key(App, modules)],
            M <- Ms
        ] ++ Preloaded
    ).

%% Without those in which somebody else traces, where we would take that away.
free(Modules, Tracer, Patterns) ->
    [One || {M, _} = One <- Modules, kprof_tracer:is_free(Tracer, M, Patterns)].

%% --- processes ---

%% Those that are there still, and who has made them: what these make next works for requests, too.
%% Where most are gone already, requests run in processes of their own, and so will the next ones:
%% all new processes are wanted then.
processes(#{own := Own} = Wanted) ->
    % the process of a request that waits to begin makes its own
    {Pids, _} = processes(maps:remove(own, Wanted)),
    {lists:usort(Own ++ Pids), false};
processes(#{processes := Texts}) ->
    Named = [Pid || Text <- Texts, Pid <- kprof_protocol:own_pid(Text)],
    Pids = [Pid || Pid <- Named, is_process_alive(Pid)],
    Parents = lists:append([parents(Pid) || Pid <- Pids]),
    {lists:usort(Pids ++ Parents), 2 * length(Pids) < length(Named)}.

%% The VM's own, and supervisors of applications, make many that have nothing to do with requests.
parents(Pid) ->
    try process_info(Pid, parent) of
        {parent, Parent} when is_pid(Parent), node(Parent) =:= node() -> [Parent];
        _ -> []
    catch
        error:badarg -> []
    end.

now_ms() ->
    erlang:monotonic_time(millisecond).
