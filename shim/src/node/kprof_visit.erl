%% SPDX-License-Identifier: Apache-2.0
%% @doc The one way into a node and out of it, of `kprof attach', `kprof detach' and the kprof node:
%% sees what is there, loads or compiles the shim, and takes it out again.
%%
%% The node need not know anything of kprof: whoever visits carries the abstract code of these
%% functions and has erl_eval run it there. So they call no function of this module; what {@link
%% enter/8} and {@link leave/3} share they are given.
-module(kprof_visit).

-export([expression/2, modules/1, application/1]).
-export([enter/8, leave/3, in_turn/2, unload/0, load/1, bring/4, visit/3]).

-export_type([carried/0]).

% the newest release that was seen to load what OTP 25 compiled: tests/scenarios/26_releases.sh
-define(LOADS_25, 29).

-type in_turn() :: fun((pos_integer(), fun(() -> Answer)) -> Answer).
-type unload() :: fun(() -> ok).
-type loaded() :: {ok, How :: binary()} | {error, term()}.
-type load() :: fun(([carried()]) -> loaded()).
-type bring() :: fun((unload(), node(), loaded(), term()) -> kprof_attach:answer()).
-type busy() :: fun((node() | undefined) -> kprof_attach:answer()).
-type visit() :: fun((busy(), boolean(), node()) -> kprof_attach:answer()).
%% in_turn/2, unload/0, load/1, bring/4 and visit/3.
-type carried() :: {module(), file:filename(), Beam :: binary(), Forms :: binary()}.
%% A module of the shim as a visitor brings it. Its forms stand beside the beam: an older release
%% cannot read a newer one's beam at all.

%% @doc The shim's modules out of this folder. The folder in their names marks those that came from
%% outside; {@link enter/8} looks for it.
-spec modules(file:filename()) -> [carried()].
modules(Ebin) ->
    [carried(M, filename:join(Ebin, atom_to_list(M) ++ ".beam")) || M <- kprof_app:modules()].

%% @doc The application's specification out of this folder, with the libraries of the native tracer
%% that are in the folder `priv' beside it.
-spec application(file:filename()) -> {application, kprof, [{atom(), term()}]}.
application(Ebin) ->
    {ok, [{application, kprof, Keys}]} = file:consult(filename:join(Ebin, "kprof.app")),
    Libraries = kprof_library:carried(filename:join(filename:dirname(Ebin), "priv")),
    Env = [{libraries, Libraries} | proplists:get_value(env, Keys, [])],
    {application, kprof, lists:keystore(env, 1, Keys, {env, Env})}.

carried(M, File) ->
    {ok, M, Chunks} = beam_lib:all_chunks(File),
    {ok, {M, [{abstract_code, {_, Forms}}]}} = beam_lib:chunks(File, [abstract_code]),
    {ok, Beam} = beam_lib:build_module(lists:keydelete("Dbgi", 1, Chunks)),
    {M, "kprof_node/" ++ filename:basename(File), Beam, term_to_binary(Forms, [compressed])}.

%% @doc What erl_eval has to evaluate to enter, with the values of the variables `Me', `Modules' and
%% `App', or to leave, with that of `Who'. `Beam' is this module, with its abstract code.
-spec expression(enter | leave, binary() | file:filename()) -> erl_parse:abstract_expr().
expression(Name, Beam) ->
    {ok, {_, [{abstract_code, {_, Forms}}]}} = beam_lib:chunks(Beam, [abstract_code]),
    [Enter, Leave, InTurn, Unload, Load, Bring, Visit] = [
        {'fun', 1, {clauses, Clauses}}
     || Function <- [enter, leave, in_turn, unload, load, bring, visit],
        {function, _, F, _, Clauses} <- Forms,
        F =:= Function
    ],
    {Called, More, Parameters} =
        case Name of
            enter -> {Enter, [Load, Bring, Visit], ['Me', 'Modules', 'App']};
            leave -> {Leave, [], ['Who']}
        end,
    {call, 1, Called, [InTurn, Unload] ++ More ++ [{var, 1, P} || P <- Parameters]}.

%% @doc Brings the shim into this node and starts it, unless it is there already. From now on the
%% node that says it is here must give its word ({@link kprof_guard:word/1}). A release that does
%% not load what another one compiled compiles the modules anew, which takes it a second. Nothing is
%% traced yet. The line tells how it was: `loaded', `compiled' (and loaded), `guest' (the node has a
%% kprof of its own) or `again' (we had been there).
-spec enter(in_turn(), unload(), load(), bring(), visit(), node(), [carried()], term()) ->
    kprof_attach:answer().
enter(InTurn, Unload, Load, Bring, Visit, Me, Modules, App) ->
    Text = fun(Format, Args) -> unicode:characters_to_binary(io_lib:format(Format, Args)) end,
    Come = fun() -> Bring(Unload, Me, Load(Modules), App) end,
    Busy = fun
        (undefined) ->
            {error, busy, <<
                "traced already by its own kprof: "
                "the application must call kprof:stop_trace()"
            >>};
        (Who) ->
            Advice =
                case lists:prefix("kprof_attach_", atom_to_list(Who)) of
                    true ->
                        ["Ctrl-C ends that, or kprof detach ", atom_to_list(node())];
                    false ->
                        "stop that kprof node where it runs, with scripts/stop_kprof_node.sh"
                end,
            {error, busy, Text("traced already by ~ts: ~ts", [Who, Advice])}
    end,
    Enter =
        fun() ->
            Running = whereis(kprof_sup) =/= undefined,
            case code:which(kprof) of
                non_existing ->
                    Come();
                "kprof_node/" ++ _ when Running ->
                    Attendant =
                        try
                            kprof_guard:attended_by()
                        catch
                            exit:_ -> undefined
                        end,
                    Alive = lists:member(Attendant, nodes(connected)),
                    case kprof:status() of
                        Status when Attendant =:= Me, Status =/= idle -> {ok, <<"again">>, []};
                        _ when Alive, Attendant =/= Me -> Busy(Attendant);
                        _ ->
                            ok = Unload(),
                            Come()
                    end;
                "kprof_node/" ++ _ ->
                    ok = Unload(),
                    Come();
                _ ->
                    Visit(Busy, Running, Me)
            end
        end,
    InTurn(1500, Enter).

%% @private
%% Loads the modules that were brought, or compiles them where it cannot load what another release
%% compiled.
-spec load([carried()]) -> loaded().
load(Modules) ->
    Release = list_to_integer(erlang:system_info(otp_release)),
    Into = fun(How, Ms) ->
        case code:atomic_load(Ms) of
            ok -> {ok, How};
            Error -> Error
        end
    end,
    Compiled = fun(Forms) ->
        {ok, _, Binary} = compile:noenv_forms(binary_to_term(Forms), [return_errors]),
        Binary
    end,
    Compile = fun() ->
        try
            Into(<<"compiled">>, [{M, File, Compiled(Forms)} || {M, File, _, Forms} <- Modules])
        catch
            _:Why -> {error, {cannot_compile, Why}}
        end
    end,
    Beams = [{M, File, Beam} || {M, File, Beam, _} <- Modules],
    %% A release loads what older ones compiled, until it forgets an instruction: trying in vain
    %% would leave errors in the node's log
    Loads = Release >= ?OTP_RELEASE andalso Release =< max(?LOADS_25, ?OTP_RELEASE + 2),
    First =
        if
            Loads -> Into(<<"loaded">>, Beams);
            true -> {error, [{kprof, badfile}]}
        end,
    case First of
        {ok, _} ->
            First;
        {error, Refused} ->
            Bad = lists:all(fun({_, Why}) -> Why =:= badfile end, Refused),
            case {Bad, code:which(compile)} of
                {true, non_existing} when Loads -> {error, no_compiler};
                % it may
                {true, non_existing} -> Into(<<"loaded">>, Beams);
                {true, _} -> Compile();
                % not_purged: a function of an earlier kprof still runs
                {false, _} -> First
            end
    end.

%% @private
%% Starts the shim, or says why it was not loaded.
-spec bring(unload(), node(), loaded(), term()) -> kprof_attach:answer().
bring(Unload, Me, Loaded, App) ->
    Text = fun(Format, Args) -> unicode:characters_to_binary(io_lib:format(Format, Args)) end,
    Release = list_to_integer(erlang:system_info(otp_release)),
    case Loaded of
        {ok, How} ->
            _ = application:load(App),
            case kprof:start() of
                ok ->
                    ok = kprof_guard:attend(Me, unload),
                    {ok, How, []};
                {error, Reason} ->
                    ok = Unload(),
                    {error, load, Text("the shim does not start: ~0tP", [Reason, 20])}
            end;
        {error, Reason} when Reason =:= no_compiler; element(2, hd(Reason)) =:= badfile ->
            {error, load,
                Text(
                    "it runs OTP ~b, which cannot load what OTP ~b compiled, and has no "
                    "compiler: take a kprof built with OTP ~b",
                    [Release, ?OTP_RELEASE, Release]
                )};
        {error, [{_, not_purged} | _]} ->
            {error, busy, <<
                "an earlier kprof is still on its way out there, which takes a minute or two "
                "where there are 100,000 processes: try again"
            >>};
        {error, Reason} ->
            {error, load,
                Text("OTP ~b does not load the shim's modules: ~0tP", [Release, Reason, 20])}
    end.

%% @private
%% The node has a kprof of its own: that one is used, if nobody else uses it. `Busy' tells who does.
-spec visit(busy(), boolean(), node()) -> kprof_attach:answer().
visit(Busy, Running, Me) ->
    Text = fun(Format, Args) -> unicode:characters_to_binary(io_lib:format(Format, Args)) end,
    Leaving =
        case Running of
            true -> stop_trace;
            false -> stop
        end,
    try
        case kprof:start() of
            ok ->
                case {kprof:status(), kprof_guard:attended_by()} of
                    {idle, _} ->
                        ok = kprof_guard:attend(Me, Leaving),
                        {ok, <<"guest">>, []};
                    {_, Me} ->
                        {ok, <<"again">>, []};
                    {_, Other} ->
                        Busy(Other)
                end;
            {error, Reason} ->
                {error, load,
                    Text("the node's own kprof does not start: ~0tP", [Reason, 20])}
        end
    catch
        error:undef ->
            _ = Running orelse application:stop(kprof),
            {error, load,
                Text(
                    "its own module kprof, ~ts, is of another release than this "
                    "tool: use the tool of that release",
                    [code:which(kprof)]
                )}
    end.

%% @doc Ends the trace and takes out whatever {@link enter/8} brought. `Who' is the node that
%% entered, or `any' for `kprof detach', which does not end what others than the tool began. Returns
%% once the last module is gone.
-spec leave(in_turn(), unload(), node() | any) -> kprof_attach:answer().
leave(InTurn, Unload, Who) ->
    Out = {ok, <<"out">>, []},
    Nothing = {ok, <<"nothing">>, []},
    ByNode = fun(Node) ->
        {error, busy,
            iolist_to_binary([
                "traced by the kprof node ",
                atom_to_binary(Node),
                ": stop it where it runs, with scripts/stop_kprof_node.sh"
            ])}
    end,
    Go =
        fun() ->
            Running = whereis(kprof_sup) =/= undefined,
            Attendant =
                try Running andalso kprof_guard:attended_by() of
                    false -> undefined;
                    By -> By
                catch
                    % its own kprof is an older one
                    error:undef -> undefined;
                    % the application is ending it
                    exit:_ -> undefined
                end,
            Ours =
                Attendant =:= Who orelse
                    (Who =:= any andalso lists:prefix("kprof_attach_", atom_to_list(Attendant))),
            Alive = lists:member(Attendant, nodes(connected)),
            case code:which(kprof) of
                non_existing ->
                    Nothing;
                "kprof_node/" ++ _ when Ours; not Running; not Alive, Who =:= any ->
                    ok = Unload(),
                    Out;
                "kprof_node/" ++ _ when Who =/= any -> Nothing;
                "kprof_node/" ++ _ ->
                    ByNode(Attendant);
                _ when Ours ->
                    ok = kprof_guard:leave(),
                    Out;
                _ when not Running; Attendant =:= undefined, Who =/= any -> Nothing;
                _ ->
                    case kprof:status() of
                        idle ->
                            Nothing;
                        _ when Attendant =/= undefined -> ByNode(Attendant);
                        _ ->
                            {error, busy, <<
                                "traced by its own kprof: "
                                "the application must call kprof:stop_trace()"
                            >>}
                    end
            end
        end,
    InTurn(1250, Go).

%% @private
%% Who comes and who goes take turns, as kprof_app:unload/0 does: what one takes out must not be
%% what the other has just brought. Tries so many times, 20 ms apart.
-spec in_turn(pos_integer(), fun(() -> kprof_attach:answer())) -> kprof_attach:answer().
in_turn(Tries, Do) ->
    Turn = fun
        Try(0) ->
            false;
        Try(N) ->
            global:set_lock({kprof_app, self()}, [node()], 0) orelse
                begin
                    timer:sleep(20),
                    Try(N - 1)
                end
    end,
    case Turn(Tries) of
        true ->
            try
                Do()
            after
                global:del_lock({kprof_app, self()}, [node()])
            end;
        false ->
            {error, busy,
                <<"another kprof has been coming or going there for half a minute: try again">>}
    end.

%% @private
%% Takes the shim out. The modules go one by one; those that a long request still runs stay for
%% longer. (No variable here may have the name of one that {@link expression/2} is given.)
-spec unload() -> ok.
unload() ->
    Ms = kprof_app:modules(),
    Gone = fun
        Wait(0) ->
            ok;
        Wait(N) ->
            case lists:any(fun erlang:check_old_code/1, Ms) of
                true ->
                    timer:sleep(20),
                    Wait(N - 1);
                false ->
                    ok
            end
    end,
    _ = kprof_app:unload(),
    Gone(50).
