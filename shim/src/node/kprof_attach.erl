%% SPDX-License-Identifier: Apache-2.0
%% @doc What `kprof attach' and `kprof detach' ask a node. They are no Erlang nodes, so the thinking
%% is done here, in the target, and answers have one form: `{ok, Line, Warnings}' or `{error,
%% Status, Line}', texts for people.
%%
%% {@link enter/3} and {@link leave/1} are special: the tool carries their abstract code and has
%% erl_eval run it in nodes that know nothing of kprof. They call no function of this module.
-module(kprof_attach).

-export([enter/3, leave/1, start/2, status/1, describe/1, overridden/2, by_argument/2]).

-export_type([answer/0, status/0]).

% the newest release that was seen to load what OTP 25 compiled: tests/scenarios/26_releases.sh
-define(LOADS_25, 29).
-define(PARSE_MS, 5000).
-define(PARSE_WORDS, 16 * 1024 * 1024).

-type answer() :: {ok, binary(), [binary()]} | {error, status(), binary()}.
-type status() :: other | config | load | trace | busy.
%% Why something cannot be done; collector/dist/shim.c knows them, too.

%% @doc Brings the shim into this node and starts it, unless it is there already. From now on the
%% node that says it is here must give its word ({@link kprof_guard:word/1}). `Modules' is what
%% code:atomic_load/1 takes; a release that does not load what another one compiled gets them
%% compiled anew from the abstract code in them, which takes it a second. Nothing is traced yet. The
%% line tells how it was: `loaded', `guest' (the node has a kprof of its own) or `again' (we had
%% been there).
-spec enter(node(), [{module(), file:filename(), binary()}], term()) -> answer().
enter(Me, Modules, App) ->
    Text = fun(Format, Args) -> unicode:characters_to_binary(io_lib:format(Format, Args)) end,
    Compiled =
        fun(Beam) ->
            {ok, {_, [{abstract_code, {_, Forms}}]}} = beam_lib:chunks(Beam, [abstract_code]),
            {ok, _, Binary} = compile:forms(Forms, [return_errors]),
            Binary
        end,
    %% the modules go one by one; those that a long request still runs stay for longer
    Gone = fun
        Wait(_, 0) ->
            ok;
        Wait(Ms, N) ->
            lists:any(fun erlang:check_old_code/1, Ms) andalso
                begin
                    timer:sleep(20),
                    Wait(Ms, N - 1)
                end
    end,
    Unload = fun() ->
        Ms = kprof_app:modules(),
        _ = kprof_app:unload(),
        Gone(Ms, 50)
    end,
    Release = list_to_integer(erlang:system_info(otp_release)),
    Load =
        fun() ->
            %% A release loads what older ones compiled, until it forgets an instruction: trying in
            %% vain would leave errors in the node's log
            Loads = Release >= ?OTP_RELEASE andalso Release =< max(?LOADS_25, ?OTP_RELEASE + 2),
            First =
                if
                    Loads -> code:atomic_load(Modules);
                    true -> {error, [{kprof, badfile}]}
                end,
            Loaded =
                case First of
                    ok ->
                        ok;
                    {error, Refused} ->
                        case
                            {
                                lists:all(fun({_, Why}) -> Why =:= badfile end, Refused),
                                code:which(compile)
                            }
                        of
                            {true, non_existing} when Loads -> {error, no_compiler};
                            % it may
                            {true, non_existing} ->
                                code:atomic_load(Modules);
                            {true, _} ->
                                try
                                    code:atomic_load([
                                        {M, File, Compiled(Beam)}
                                     || {M, File, Beam} <- Modules
                                    ])
                                catch
                                    _:Why -> {error, {cannot_compile, Why}}
                                end;
                            % not_purged: a function of an earlier kprof still runs
                            {false, _} ->
                                {error, Refused}
                        end
                end,
            case Loaded of
                ok ->
                    _ = application:load(App),
                    case kprof:start() of
                        ok ->
                            ok = kprof_guard:attend(Me, unload),
                            {ok, <<"loaded">>, []};
                        {error, Reason} ->
                            _ = Unload(),
                            {error, load, Text("the shim does not start: ~0tP", [Reason, 20])}
                    end;
                {error, Reason} when
                    Reason =:= no_compiler; element(2, hd(Reason)) =:= badfile
                ->
                    {error, load,
                        Text(
                            "it runs OTP ~b, which cannot load what OTP ~b compiled, and has no "
                            "compiler: "
                            "take a kprof built with OTP ~b",
                            [Release, ?OTP_RELEASE, Release]
                        )};
                {error, Reason} ->
                    {error, load,
                        Text("OTP ~b does not load the shim's modules: ~0tP", [
                            Release, Reason, 20
                        ])}
            end
        end,
    Busy = fun
        (undefined) ->
            {error, busy,
                <<
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
    Come =
        fun() ->
            Running = whereis(kprof_sup) =/= undefined,
            case code:which(kprof) of
                non_existing ->
                    Load();
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
                            _ = Unload(),
                            Load()
                    end;
                "kprof_node/" ++ _ ->
                    _ = Unload(),
                    Load();
                _ ->
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
                                    Text("the node's own kprof does not start: ~0tP", [
                                        Reason, 20
                                    ])}
                        end
                    catch
                        error:undef ->
                            _ = Running orelse application:stop(kprof),
                            {error, load,
                                Text(
                                    "its own module kprof, ~ts, is of another release than this "
                                    "tool: take the tool of that "
                                    "one",
                                    [code:which(kprof)]
                                )}
                    end
            end
        end,
    %% who comes and who goes take turns, as kprof_app:unload/0 does: what one takes out must not be
    %% what the other has just brought
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
    case Turn(1500) of
        true ->
            try
                Come()
            after
                global:del_lock({kprof_app, self()}, [node()])
            end;
        false ->
            {error, busy,
                <<"another kprof has been coming or going there for half a minute: try again">>}
    end.

%% @doc Ends the trace and takes out whatever {@link enter/3} brought. `Who' is the node that
%% entered, or `any' for `kprof detach', which does not end what others than the tool began. Returns
%% once the last module is gone.
-spec leave(node() | any) -> answer().
leave(Who) ->
    Gone = fun
        Wait(_, 0) ->
            ok;
        Wait(Ms, N) ->
            lists:any(fun erlang:check_old_code/1, Ms) andalso
                begin
                    timer:sleep(20),
                    Wait(Ms, N - 1)
                end
    end,
    Unload = fun() ->
        Ms = kprof_app:modules(),
        _ = kprof_app:unload(),
        _ = Gone(Ms, 50),
        {ok, <<"out">>, []}
    end,
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
                "kprof_node/" ++ _ when Ours; not Running; not Alive, Who =:= any -> Unload();
                "kprof_node/" ++ _ when Who =/= any -> Nothing;
                "kprof_node/" ++ _ ->
                    ByNode(Attendant);
                _ when Ours ->
                    ok = kprof_guard:leave(),
                    {ok, <<"out">>, []};
                _ when not Running; Attendant =:= undefined, Who =/= any -> Nothing;
                _ ->
                    case kprof:status() of
                        idle ->
                            Nothing;
                        _ when Attendant =/= undefined -> ByNode(Attendant);
                        _ ->
                            {error, busy,
                                <<
                                    "traced by its own kprof: "
                                    "the application must call kprof:stop_trace()"
                                >>}
                    end
            end
        end,
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
    case Turn(1250) of
        true ->
            try
                Go()
            after
                global:del_lock({kprof_app, self()}, [node()])
            end;
        false ->
            {error, busy,
                <<"another kprof has been coming or going there for half a minute: try again">>}
    end.

%% @doc Starts the trace. `Config' is the text of a configuration file, or empty; what is `Given' on
%% the command line besides comes before its options. There `{identity, {MFA, N}}' stands for the
%% identity function that gives argument N of a function, and `{identity, Text}' for the one that
%% the text evaluates to. What is named there must be on this node, unless `{wait, true}' says that
%% it may come: the names in a configuration have been used before, those of a command line are
%% typed.
-spec start(binary(), [{atom(), term()}]) -> answer().
start(Config, Given) ->
    try
        Options = lists:foldl(
            fun(Option, All) -> [Option | [O || O <- All, not overridden(O, [Option])]] end,
            parsed("the configuration file, ", Config),
            [given(Option) || Option <- Given]
        ),
        _ =
            proplists:get_value(wait, Given, false) orelse
                lists:foreach(fun is_there/1, named(Given)),
        lists:foreach(
            fun
                ({identity, By}) -> names(By, Options);
                (_) -> ok
            end,
            Given
        ),
        case kprof:start_trace(Options) of
            ok ->
                {ok, unicode:characters_to_binary(describe(Options)), warnings()};
            {error, Reason} ->
                {error, status(Reason), <<(text(Reason))/binary, (advice(Reason))/binary>>}
        end
    catch
        throw:{error, What, Why} ->
            {error, config, <<(unicode:characters_to_binary(What))/binary, (text(Why))/binary>>}
    end.

named(Given) ->
    [{["--tier ", Name, "="], MFA} || {tier_config, Tiers} <- Given, {Name, MFA} <- Tiers] ++
        [
            {"--entry ",
                case Entry of
                    {{_, _, _} = MFA, _} -> MFA;
                    MFA -> MFA
                end}
         || {entry, Entries} <- Given, Entry <- Entries
        ].

is_there({Option, MFA}) ->
    case kprof_nearest:missing(MFA) of
        none -> ok;
        Missing -> throw({error, "", {nowhere, Option, MFA, Missing}})
    end.

%% Only calls of what is traced can name a request.
names({{_, _, _} = MFA, N}, Options) ->
    Traced =
        [
            Of
         || {tier_config, Tiers} <- Options,
            is_list(Tiers),
            Tier <- Tiers,
            is_tuple(Tier),
            tuple_size(Tier) >= 2,
            {_, _, _} = Of <- [element(2, Tier)]
        ] ++
            [
                Of
             || {entry, Entries} <- Options,
                Entry <- lists:flatten([Entries]),
                {_, _, _} = Of <- [
                    case Entry of
                        {Entered, _} -> Entered;
                        _ -> Entry
                    end
                ]
            ],
    lists:member(MFA, Traced) orelse
        throw({error, "", {names_nothing, MFA, N, lists:usort(Traced)}});
names(_, _) ->
    ok.

warnings() ->
    case kprof_session:warnings() of
        Lines when is_list(Lines) -> [unicode:characters_to_binary(Line) || Line <- Lines];
        {error, _} -> []
    end.

text(Reason) ->
    unicode:characters_to_binary(kprof_error:format(Reason)).

%% What the user of the tool can do about it.
advice({collector, _, _, Why}) when
    Why =:= econnrefused; Why =:= timeout; Why =:= nxdomain; Why =:= ehostunreach
->
    <<", from this node; start kprof-collector there, or say with --collector where it listens">>;
advice({unknown_function, _, MFA}) ->
    case kprof_nearest:missing(MFA) of
        {_, [_ | _] = Near} -> unicode:characters_to_binary([", but ", lists:join(", ", Near)]);
        _ -> <<>>
    end;
advice(_) ->
    <<>>.

given({identity, {{_, _, _} = MFA, N}}) ->
    {identity_f, by_argument(MFA, N)};
given({identity, Text}) when is_binary(Text) ->
    case parsed("--identity, ", <<Text/binary, "\n.">>) of
        [F] when is_function(F, 1) -> {identity_f, F};
        _ -> throw({error, "--identity, ", {config, 1, "want one fun of one argument"}})
    end;
given(Option) ->
    Option.

%% @doc The identity function that `--identity M:F/A:N' stands for: argument N names the request.
%% What is no name is not sent as it is: a conn holds its application's secrets, and each conn would
%% be an identity of its own. A `Plug.Conn' is called as kprof's own helper calls it as long as no
%% route is known, `GET /users/*'; another struct or a record by its name; what has none, nothing.
%% The match specification that is made of this picks them out on the node.
-spec by_argument(mfa(), pos_integer()) -> kprof:identity_fun().
by_argument({M, F, A}, N) ->
    Arguments = lists:join(", ", [
        case I of
            N -> "X";
            _ -> "_"
        end
     || I <- lists:seq(1, A)
    ]),
    Clause = fun({Guard, Body}) ->
        [
            "({",
            io_lib:format("~tw, ~tw", [M, F]),
            ", [",
            Arguments,
            "]}) when ",
            Guard,
            " -> ",
            Body,
            "; "
        ]
    end,
    Conn = "map_get('__struct__', X) =:= 'Elixir.Plug.Conn'",
    Word = fun(I) ->
        lists:flatten(
            io_lib:format("(is_atom(element(~b, X)) orelse is_binary(element(~b, X)))", [I, I])
        )
    end,
    Text = [
        "fun",
        [
            Clause(C)
         || C <- [
                {
                    "is_atom(X); is_number(X); is_binary(X), bit_size(X) =< 32768; "
                    "is_integer(hd(X)), length(X) =< 4096",
                    "X"
                },
                {[Conn, ", map_get(path_info, X) =:= []"], "{map_get(method, X), {}}"},
                {
                    [Conn, ", tl(map_get(path_info, X)) =:= []"],
                    "{map_get(method, X), {hd(map_get(path_info, X))}}"
                },
                {Conn, "{map_get(method, X), {hd(map_get(path_info, X)), '*'}}"},
                {"is_atom(map_get('__struct__', X))", "map_get('__struct__', X)"},
                {["size(X) =:= 2, is_tuple(X), ", Word(1), ", ", Word(2)], "X"},
                {"is_atom(element(1, X))", "element(1, X)"}
            ]
        ],
        "(_) -> undefined end"
    ],
    [Fun] = parsed("--identity, ", unicode:characters_to_binary([Text, "."])),
    Fun.

%% The text is the operator's, but may be wrong: it gets some memory and some time.
parsed(What, Text) ->
    Parse = fun() -> exit({parsed, kprof_options:parse(Text)}) end,
    {Pid, Ref} = spawn_opt(Parse, [
        monitor, {max_heap_size, #{size => ?PARSE_WORDS, kill => true, error_logger => false}}
    ]),
    receive
        {'DOWN', Ref, process, Pid, {parsed, {ok, Options}}} ->
            Options;
        {'DOWN', Ref, process, Pid, {parsed, {error, Why}}} ->
            throw({error, What, Why});
        {'DOWN', Ref, process, Pid, Why} ->
            throw(
                {error, What,
                    {config, 1, io_lib:format("cannot be evaluated: ~0tP", [Why, 20])}}
            )
    after ?PARSE_MS ->
        exit(Pid, kill),
        _ = erlang:demonitor(Ref, [flush]),
        throw(
            {error, What,
                {config, 1,
                    io_lib:format("is not evaluated within ~b s", [?PARSE_MS div 1000])}}
        )
    end.

%% @doc Whether an option of a configuration gives way to others.
-spec overridden(term(), [{atom(), term()}]) -> boolean().
overridden({secret_file, _}, Given) ->
    lists:keymember(secret, 1, Given);
overridden(Option, Given) ->
    is_tuple(Option) andalso lists:keymember(element(1, Option), 1, Given).

%% @doc What is traced, in a few words.
-spec describe([term()]) -> iolist().
describe(Options) ->
    Tiers = proplists:get_value(tier_config, Options, []),
    {Host, Port} = proplists:get_value(collector, Options, {"127.0.0.1", 4711}),
    Entries =
        case proplists:get_value(entry, Options, []) of
            L when is_list(L) -> L;
            One -> [One]
        end,
    io_lib:format(
        "~ts~b tier~ts, collector ~ts:~b",
        [
            case Entries of
                [] -> "";
                [_] -> "1 entry, ";
                _ -> io_lib:format("~b entries, ", [length(Entries)])
            end,
            length(Tiers),
            case Tiers of
                [_] -> "";
                _ -> "s"
            end,
            case is_tuple(Host) of
                true -> inet:ntoa(Host);
                false -> Host
            end,
            Port
        ]
    ).

%% @doc What kind of mistake a reason is: whether the configuration can help, or not.
-spec status(term()) -> status().
status({collector, _, _, _}) -> trace;
status({already_traced, _, _}) -> busy;
status({foreign_tracer, _}) -> busy;
status(already_tracing) -> busy;
status(no_runtime_tools) -> trace;
status({no_application, _, _}) -> trace;
status({trace_driver, _}) -> trace;
status({trace_port, _}) -> trace;
status({trace_port_taken, _}) -> trace;
status(_) -> config.
