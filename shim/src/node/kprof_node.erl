%% SPDX-License-Identifier: Apache-2.0
%% @doc The kprof node: a hidden node of its own that scripts/start_kprof_node.sh starts. It loads
%% the shim into the target over the distribution, starts tracing from a configuration file,
%% watches, starts again when the target restarts, and takes everything back out when it is told to
%% end.
%%
%% It listens on no port and needs no epmd for itself. Its words to the shim ({@link
%% kprof_guard:word/1}) are the dead man's switch: without them the shim unloads itself after 10
%% seconds.
-module(kprof_node).
-behaviour(gen_event).

-export([main/0, check_otp/1]).
-export([init/1, handle_event/2, handle_call/2]).

-define(WORD_MS, 2000).
-define(RETRY_MS, 1000).
-define(CALL_MS, 10000).
% it may have to compile
-define(VISIT_MS, 60000).
-define(MIN_OTP, 25).

-record(t, {
    target :: node(),
    ebin :: file:filename(),
    % the shim, as it goes into the target
    modules :: [kprof_visit:carried()],
    application :: {application, kprof, [{atom(), term()}]},
    config :: binary(),
    config_name :: string(),
    % how to reach the collector, instead of what the configuration says
    given = [] :: [kprof:option()],
    % besides those of the configuration,
    entries = [] :: [kprof:entry()],
    % which may come later
    wait = false :: boolean(),
    parent :: string()
}).

%% @doc Runs a kprof node; ends the emulator. Its parameters are environment variables, set by the
%% script: KPROF_TARGET, KPROF_OWN_NAME, KPROF_CONFIG (a file or empty), KPROF_ENTRIES (a function a
%% line), KPROF_WAIT (anything), KPROF_EBIN, KPROF_COLLECTOR (HOST:PORT or empty),
%% KPROF_SECRET_FILE, KPROF_TLS (anything), KPROF_TLS_CA, KPROF_TLS_CERT, KPROF_TLS_KEY,
%% KPROF_TLS_NAME (each may be empty), KPROF_PARENT (a process id).
-spec main() -> no_return().
main() ->
    % failures are told in one line, by us
    ok = logger:set_primary_config(level, none),
    ok = gen_event:swap_handler(erl_signal_server, {erl_signal_handler, []}, {?MODULE, self()}),
    try
        Target = env("KPROF_TARGET"),
        ConfigName = env("KPROF_CONFIG"),
        Config =
            case ConfigName =/= "" andalso file:read_file(ConfigName) of
                false ->
                    <<>>;
                {ok, Text} ->
                    Text;
                {error, Why} ->
                    fail(config, "cannot read ~ts: ~ts", [ConfigName, file:format_error(Why)])
            end,
        T = #t{
            target = list_to_atom(Target),
            ebin = env("KPROF_EBIN"),
            modules = kprof_visit:modules(env("KPROF_EBIN")),
            application = kprof_visit:application(env("KPROF_EBIN")),
            config = Config,
            config_name = ConfigName,
            entries = [entry(Line) || Line <- string:lexemes(env("KPROF_ENTRIES"), "\n")],
            wait = env("KPROF_WAIT") =/= "",
            given =
                collector(env("KPROF_COLLECTOR")) ++ secret(env("KPROF_SECRET_FILE")) ++
                    tls(env("KPROF_TLS")),
            parent = env("KPROF_PARENT")
        },
        start_distribution(env("KPROF_OWN_NAME"), Target),
        _ = begin_tracing(T),
        watch(T)
    catch
        throw:{failed, Kind, Line} ->
            io:put_chars(standard_error, ["start_kprof_node: ", Line, $\n]),
            halt(status(Kind));
        Class:Reason:Stack ->
            io:put_chars(
                standard_error,
                io_lib:format("start_kprof_node: ~0tp:~0tP ~0tP~n", [
                    Class, Reason, 20, Stack, 20
                ])
            ),
            halt(status(other))
    end.

env(Name) -> os:getenv(Name, "").

fail(Kind, Format, Args) ->
    throw({failed, Kind, unicode:characters_to_binary(io_lib:format(Format, Args))}).

%% The exit statuses, which start_kprof_node.sh --help lists: those of kprof attach
%% (include/base/exit_status.h).
status(other) -> 1;
status(usage) -> 2;
status(down) -> 3;
status(cookie) -> 4;
status(otp) -> 5;
status(config) -> 6;
status(load) -> 7;
status(trace) -> 8;
status(busy) -> 9.

entry(Text0) ->
    {Text, Entry} =
        case lists:suffix(",returns=none", Text0) of
            true ->
                {lists:sublist(Text0, length(Text0) - length(",returns=none")), fun(MFA) ->
                    {MFA, #{returns => none}}
                end};
            false ->
                {Text0, fun(MFA) -> MFA end}
        end,
    case kprof_mfa:parse(Text) of
        {ok, MFA} -> Entry(MFA);
        error -> fail(usage, "--entry wants Module:Function/Arity, not ~ts", [Text])
    end.

collector("") ->
    [];
collector(Text) ->
    try
        [Host, Digits] = string:split(Text, ":", trailing),
        true = Host =/= "",
        [{collector, {string:trim(Host, both, "[]"), list_to_integer(Digits)}}]
    catch
        error:_ -> fail(other, "--collector wants HOST:PORT, not ~ts", [Text])
    end.

%% The files lie here, not on the target: it gets what is in them.
secret("") ->
    [];
secret(File) ->
    case kprof_auth:read_file(File) of
        {ok, Secret} -> [{secret, Secret()}];
        {error, Why} -> fail(config, "~ts: ~ts", [File, kprof_error:secret(Why)])
    end.

tls("") ->
    [];
tls(_) ->
    Files = [
        {Key, content(Path)}
     || {Key, Name} <- [
            {cacerts, "KPROF_TLS_CA"}, {cert, "KPROF_TLS_CERT"}, {key, "KPROF_TLS_KEY"}
        ],
        Path <- [env(Name)],
        Path =/= ""
    ],
    [
        {tls,
            maps:from_list(
                Files ++ [{server_name, Name} || Name <- [env("KPROF_TLS_NAME")], Name =/= ""]
            )}
    ].

content(Path) ->
    case file:read_file(Path) of
        {ok, Bytes} -> Bytes;
        {error, Why} -> fail(config, "cannot read ~ts: ~ts", [Path, file:format_error(Why)])
    end.

start_distribution(Own, Target) ->
    [_, TargetHost] = string:split(Target, "@"),
    {Domain, Name} =
        case lists:member($., TargetHost) of
            false -> {shortnames, Own};
            true -> {longnames, Own ++ "@" ++ long_host()}
        end,
    case
        net_kernel:start(list_to_atom(Name), #{
            name_domain => Domain, hidden => true, dist_listen => false
        })
    of
        {ok, _} -> ok;
        {error, Why} -> fail(other, "cannot make a node of this process: ~0tP", [Why, 10])
    end.

%% Nobody connects to us: any host that looks like a long one will do.
long_host() ->
    Host = net_adm:localhost(),
    case lists:member($., Host) of
        true -> Host;
        false -> "127.0.0.1"
    end.

%% --- getting in ---

begin_tracing(T0) ->
    connect(T0#t.target),
    case check_otp(remote(T0, erlang, system_info, [otp_release])) of
        ok -> ok;
        {error, Line} -> fail(otp, "~ts ~ts", [T0#t.target, Line])
    end,
    case
        visit(
            enter,
            #{'Me' => node(), 'Modules' => T0#t.modules, 'App' => T0#t.application},
            T0
        )
    of
        <<"again">> ->
            say("tracing ~ts again", [T0#t.target]);
        How ->
            How =:= <<"compiled">> andalso say("compiled the shim on ~ts", [T0#t.target]),
            trace(T0)
    end.

connect(Target) ->
    case net_kernel:connect_node(Target) of
        true ->
            ok;
        _ ->
            [Name, Host] = string:split(atom_to_list(Target), "@"),
            case reachable(Name, Host) of
                true ->
                    fail(cookie, "~ts refused the connection: the cookie is wrong", [Target]);
                Why ->
                    fail(down, "~ts is not up (~ts)", [Target, Why])
            end
    end.

reachable(Name, Host) ->
    case inet:getaddr(Host, inet) of
        {error, Why} ->
            ["host ", Host, ": ", inet:format_error(Why)];
        {ok, Address} ->
            case erl_epmd:port_please(Name, Address, 3000) of
                {port, Port, _} ->
                    case gen_tcp:connect(Address, Port, [], 3000) of
                        {ok, Socket} ->
                            _ = gen_tcp:close(Socket),
                            true;
                        {error, Why} ->
                            ["its port: ", inet:format_error(Why)]
                    end;
                _ ->
                    ["no node of that name on ", Host]
            end
    end.

%% @doc Whether a target's release is new enough.
-spec check_otp(string()) -> ok | {error, iolist()}.
check_otp(Release) ->
    try list_to_integer(Release) of
        N when N >= ?MIN_OTP -> ok;
        _ ->
            {error, [
                "runs OTP ", Release, ", kprof needs ", integer_to_list(?MIN_OTP), " or newer"
            ]}
    catch
        error:badarg ->
            {error, [
                "runs OTP ", Release, ", kprof needs ", integer_to_list(?MIN_OTP), " or newer"
            ]}
    end.

%% Has the target do what {@link kprof_visit} says. Returns its word.
visit(Name, Bindings, #t{target = Target, ebin = Ebin} = T) ->
    Expression = kprof_visit:expression(Name, filename:join(Ebin, "kprof_visit")),
    % a list, in the order of the names, is what all releases take
    Sorted = lists:sort(maps:to_list(Bindings)),
    case remote(T, erl_eval, expr, [Expression, Sorted, none, none, value], ?VISIT_MS) of
        {ok, Word, _} -> Word;
        {error, Why, Line} -> fail(Why, "~ts: ~ts", [Target, Line])
    end.

trace(#t{target = Target, config = Text, config_name = Name} = T) ->
    _ = T#t.wait orelse lists:foreach(fun(Entry) -> is_there(Entry, T) end, T#t.entries),
    case remote(T, kprof_options, parse, [Text]) of
        {ok, Options0} ->
            Options = with_entries(
                T#t.entries,
                T#t.given ++ [O || O <- Options0, not kprof_attach:overridden(O, T#t.given)]
            ),
            case remote(T, kprof, start_trace, [Options], 30000) of
                ok ->
                    say("tracing ~ts: ~ts", [Target, kprof_attach:describe(Options)]),
                    warn(T);
                {error, Reason} ->
                    take_out(T),
                    fail(kprof_attach:status(Reason), "~ts: ~ts", [
                        Target, kprof_error:format(Reason)
                    ])
            end;
        {error, Reason} ->
            take_out(T),
            fail(config, "~ts: ~ts", [Name, kprof_error:format(Reason)])
    end.

%% What a command line names is typed. The target's own kprof may be older than the search for what
%% was meant.
is_there(Entry, #t{target = Target} = T) ->
    MFA =
        case Entry of
            {{_, _, _} = F, _} -> F;
            F -> F
        end,
    try remote(T, kprof_nearest, missing, [MFA]) of
        none ->
            ok;
        Missing ->
            take_out(T),
            fail(config, "~ts: ~ts", [
                Target, kprof_error:format({nowhere, "--entry ", MFA, Missing})
            ])
    catch
        throw:{failed, other, _} -> ok
    end.

%% Those of the command line besides those of the file.
with_entries([], Options) ->
    Options;
with_entries(Entries, Options) ->
    case lists:keytake(entry, 1, Options) of
        {value, {entry, More}, Rest} when is_list(More) ->
            [{entry, lists:usort(Entries ++ More)} | Rest];
        {value, {entry, One}, Rest} ->
            [{entry, lists:usort([One | Entries])} | Rest];
        false ->
            [{entry, lists:usort(Entries)} | Options]
    end.

warn(T) ->
    try
        lists:foreach(
            fun(Line) -> say("warning: ~ts", [Line]) end, remote(T, kprof_life, warnings, [])
        )
    catch
        throw:{failed, _, _} -> ok
    end.

%% --- watching ---

watch(#t{target = Target} = T) ->
    receive
        stop -> finish(T)
    after ?WORD_MS ->
        _ = parent_lives(T) orelse finish(T),
        try word(T) of
            idle ->
                say("tracing was stopped on ~ts, starting it again", [Target]),
                wait(T, "");
            _ ->
                watch(T)
        catch
            throw:{failed, Kind, _} ->
                %% who only is slow to answer is not gone: where it hangs, the connection ends by
                %% itself
                case Kind =:= down andalso lists:member(Target, nodes(connected)) of
                    true ->
                        watch(T);
                    false ->
                        say("~ts is gone, waiting for it", [Target]),
                        wait(T, "")
                end
        end
    end.

word(T) -> remote(T, kprof_guard, word, [node()]).

%% Tries until tracing runs again; each new reason is told once.
wait(T, Told) ->
    receive
        stop -> finish(T)
    after ?RETRY_MS ->
        _ = parent_lives(T) orelse finish(T),
        try begin_tracing(T) of
            _ -> watch(T)
        catch
            throw:{failed, down, Line} ->
                wait(T, Line);
            throw:{failed, _, Line} when Line =:= Told -> wait(T, Told);
            throw:{failed, _, Line} ->
                say("~ts", [Line]),
                wait(T, Line)
        end
    end.

%% The script that started us may have been killed without a chance to tell.
parent_lives(#t{parent = Pid}) ->
    Pid =:= "" orelse not filelib:is_dir("/proc/self") orelse filelib:is_dir("/proc/" ++ Pid).

-spec finish(#t{}) -> no_return().
finish(T) ->
    try
        take_out(T)
    catch
        throw:{failed, _, _} -> ok
    end,
    halt(0).

%% --- getting out ---

take_out(T) ->
    _ = visit(leave, #{'Who' => node()}, T),
    ok.

%% --- small things ---

remote(T, M, F, A) ->
    remote(T, M, F, A, ?CALL_MS).

remote(#t{target = Target}, M, F, A, Timeout) ->
    try
        erpc:call(Target, M, F, A, Timeout)
    catch
        error:{erpc, notsup} ->
            fail(otp, "~ts runs an OTP older than ~b", [Target, ?MIN_OTP]);
        error:{erpc, Why} ->
            fail(down, "~ts is not up (~0tp)", [Target, Why]);
        %% without the stack, which shows arguments, the secret among them
        _:{exception, Why, _} ->
            fail(other, "~ts: ~ts:~ts failed: ~0tP", [Target, M, F, Why, 20]);
        _:Why ->
            fail(other, "~ts: ~ts:~ts failed: ~0tP", [Target, M, F, Why, 20])
    end.

say(Format, Args) ->
    io:format(Format ++ "~n", Args).

%% --- SIGTERM: a handler in place of the one that calls init:stop/0 ---

%% @private
-spec init({pid(), term()}) -> {ok, pid()}.
init({Owner, _}) -> {ok, Owner}.

%% @private
-spec handle_event(term(), pid()) -> {ok, pid()}.
handle_event(sigterm, Owner) ->
    Owner ! stop,
    {ok, Owner};
handle_event(_, Owner) ->
    {ok, Owner}.

%% @private
-spec handle_call(term(), pid()) -> {ok, ok, pid()}.
handle_call(_, Owner) -> {ok, ok, Owner}.
