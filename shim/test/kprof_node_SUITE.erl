%% SPDX-License-Identifier: Apache-2.0
%% The kprof node's scripts against a target that has nothing of kprof installed.
-module(kprof_node_SUITE).
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    loads_and_takes_out/1,
    term_to_the_script/1,
    target_restarts/1,
    script_killed/1,
    node_killed/1,
    wrong_cookie/1,
    target_not_up/1,
    bad_config/1,
    absent_module/1,
    no_collector/1,
    twice/1,
    usage/1,
    old_otp/1,
    attach_loads/1,
    attach_compiles/1,
    attach_while_another_leaves/0,
    attach_while_another_leaves/1
]).
-export([change/4]).

%% Limits are for what hangs, here and below: ten times what is usual.
suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [
        loads_and_takes_out,
        term_to_the_script,
        target_restarts,
        script_killed,
        node_killed,
        wrong_cookie,
        target_not_up,
        bad_config,
        absent_module,
        no_collector,
        twice,
        usage,
        old_otp,
        attach_loads,
        attach_compiles,
        attach_while_another_leaves
    ].

init_per_testcase(Case, Config) ->
    %% a folder for each case: cookie, configuration, process id file
    Dir = filename:join(proplists:get_value(priv_dir, Config), atom_to_list(Case)),
    ok = filelib:ensure_path(Dir),
    ok = file:write_file(filename:join(Dir, "cookie"), "kprof_test_cookie\n"),
    ok = file:write_file(
        filename:join(Dir, "trace.config"),
        "{tier_config, [{outer, {kprof_test_app, outer, 1}},\n {inner, {kprof_test_app, inner, "
        "1}}]}.\n"
        "{identity_f, fun({_, inner, [X]}) when is_atom(X) -> X; (_) -> undefined end}.\n"
    ),
    Mock = kprof_mock_collector:start(),
    Name = peer:random_name(),
    [{dir, Dir}, {mock, Mock}, {name, Name}, {peer, target(Name)} | Config].

end_per_testcase(_, Config) ->
    catch peer:stop(get(peer, Config)),
    catch kprof_mock_collector:stop(get(mock, Config)),
    ok.

get(Key, Config) -> proplists:get_value(Key, Config).

target(Name) ->
    {ok, Peer, _} = peer:start(#{
        name => Name,
        wait_boot => 300000,
        connection => standard_io,
        args => ["-setcookie", "kprof_test_cookie", "-kernel", "logger_level", "critical"]
    }),
    {kprof_test_app, Beam, File} = code:get_object_code(kprof_test_app),
    {module, _} = call(Peer, code, load_binary, [kprof_test_app, File, Beam]),
    Peer.

call(Peer, M, F, A) -> peer:call(Peer, M, F, A, 200000).

node_name(Config) -> get(name, Config) ++ "@" ++ hd(string:split(net_adm:localhost(), ".")).

script(Name) ->
    Source = proplists:get_value(source, ?MODULE:module_info(compile)),
    filename:join([filename:dirname(filename:dirname(filename:dirname(Source))), "scripts", Name]).

start(Config, More) ->
    Dir = get(dir, Config),
    run(
        "start_kprof_node.sh",
        [
            "--node",
            node_name(Config),
            "--cookie-file",
            filename:join(Dir, "cookie"),
            "--config",
            filename:join(Dir, "trace.config"),
            "--collector",
            "127.0.0.1:" ++ integer_to_list(kprof_mock_collector:port(get(mock, Config)))
            | More
        ],
        Config
    ).

run(Script, Args, Config) ->
    open_port(
        {spawn_executable, script(Script)},
        [
            {args, Args},
            {line, 1000},
            exit_status,
            stderr_to_stdout,
            {env, [
                {"XDG_RUNTIME_DIR", get(dir, Config)},
                {"KPROF_EBIN", filename:dirname(code:which(kprof))}
            ]}
        ]
    ).

%% Waits for a line that starts so.
line(Port, Prefix) ->
    receive
        {Port, {data, {eol, Line}}} ->
            ct:log("~ts", [Line]),
            case lists:prefix(Prefix, Line) of
                true -> Line;
                false -> line(Port, Prefix)
            end;
        {Port, {exit_status, Status}} ->
            error({ended, Status, waiting_for, Prefix})
    after 300000 -> error({no_line, Prefix})
    end.

ends(Port) -> ends(Port, []).

%% Exit status and lines.
ends(Port, Lines) ->
    receive
        {Port, {data, {eol, Line}}} -> ends(Port, [Line | Lines]);
        {Port, {exit_status, Status}} -> {Status, lists:reverse(Lines)}
    after 400000 -> error({did_not_end, Lines})
    end.

os_pid(Port) ->
    {os_pid, Pid} = erlang:port_info(Port, os_pid),
    integer_to_list(Pid).

wait(Fun) -> wait(Fun, 5000).
wait(_, 0) ->
    error(waited_too_long);
wait(Fun, N) ->
    case catch Fun() of
        true ->
            ok;
        _ ->
            timer:sleep(50),
            wait(Fun, N - 1)
    end.

clean(Peer) ->
    %% a busy machine purges for longer than who leaves waits
    wait(fun() ->
        not lists:any(
            fun(M) -> call(Peer, erlang, check_old_code, [M]) end, kprof_app:modules()
        )
    end),
    [
        ?assertEqual(
            {M, false, false},
            {M, call(Peer, code, is_loaded, [M]), call(Peer, erlang, check_old_code, [M])}
        )
     || M <- kprof_app:modules()
    ],
    ?assertEqual(none, call(Peer, persistent_term, get, [kprof_slots, none])),
    ?assertEqual(
        false, lists:keymember(kprof, 1, call(Peer, application, loaded_applications, []))
    ),
    ?assertEqual([], [
        R
     || R <- call(Peer, erlang, registered, []), lists:prefix("kprof", atom_to_list(R))
    ]),
    ?assertEqual({[], {flags, []}, {tracer, []}, [], []}, call(Peer, kprof_test_app, snapshot, [])).

%% --- cases ---

loads_and_takes_out(Config) ->
    Peer = get(peer, Config),
    clean(Peer),
    Port = start(Config, []),
    Wanted =
        "tracing " ++ node_name(Config) ++ ": 2 tiers, collector 127.0.0.1:" ++
            integer_to_list(kprof_mock_collector:port(get(mock, Config))),
    Wanted = line(Port, "tracing "),
    %% the cookie is on no command line
    {ok, Pid} = file:read_file(
        filename:join(get(dir, Config), "kprof-node-" ++ node_name(Config) ++ ".pid")
    ),
    {ok, CommandLine} = file:read_file("/proc/" ++ string:trim(binary_to_list(Pid)) ++ "/cmdline"),
    ?assertNotEqual(nomatch, string:find(CommandLine, "kprof_node")),
    ?assertEqual(nomatch, string:find(CommandLine, "kprof_test_cookie")),
    ok = call(Peer, kprof_test_app, requests, [3, undefined, create]),
    %% longer than the dead man's switch waits: the node's word keeps it tracing
    timer:sleep(12000),
    tracing = call(Peer, kprof, status, []),
    ok = call(Peer, kprof_test_app, requests, [3, undefined, create]),
    {0, [_]} = ends(run("stop_kprof_node.sh", ["--node", node_name(Config)], Config)),
    {0, []} = ends(Port),
    clean(Peer),
    Messages = kprof_mock_collector:messages(get(mock, Config)),
    ?assertEqual(36, length(Messages)),
    ?assertEqual(6, length([x || {_, _, call, {_, inner, 1}, {_, create}, _} <- Messages])),
    {1, ["stop_kprof_node: no kprof node runs for " ++ _]} = ends(
        run("stop_kprof_node.sh", ["--node", node_name(Config)], Config)
    ).

term_to_the_script(Config) ->
    [
        begin
            Port = start(Config, []),
            _ = line(Port, "tracing "),
            _ = os:cmd("kill -" ++ Signal ++ " " ++ os_pid(Port)),
            ?assertMatch({0, _}, ends(Port)),
            clean(get(peer, Config))
        end
     || Signal <- ["TERM", "INT"]
    ].

target_restarts(Config) ->
    Port = start(Config, []),
    _ = line(Port, "tracing "),
    peer:stop(get(peer, Config)),
    _ = line(Port, node_name(Config) ++ " is gone"),
    timer:sleep(1500),
    Peer = target(get(name, Config)),
    try
        _ = line(Port, "tracing "),
        ok = call(Peer, kprof_test_app, requests, [1, x, y]),
        _ = os:cmd("kill -TERM " ++ os_pid(Port)),
        ?assertMatch({0, _}, ends(Port)),
        clean(Peer)
    after
        peer:stop(Peer)
    end.

%% kill -9 of the script: the node sees it and takes everything out.
script_killed(Config) ->
    Port = start(Config, []),
    _ = line(Port, "tracing "),
    _ = os:cmd("kill -KILL " ++ os_pid(Port)),
    wait(fun() ->
        clean(get(peer, Config)),
        true
    end).

%% kill -9 of the node: the target does it by itself.
node_killed(Config) ->
    Port = start(Config, []),
    _ = line(Port, "tracing "),
    {ok, Pid} = file:read_file(
        filename:join(get(dir, Config), "kprof-node-" ++ node_name(Config) ++ ".pid")
    ),
    _ = os:cmd("kill -KILL " ++ binary_to_list(Pid)),
    {137, _} = ends(Port),
    wait(fun() ->
        clean(get(peer, Config)),
        true
    end).

wrong_cookie(Config) ->
    ok = file:write_file(filename:join(get(dir, Config), "cookie"), "another"),
    {4, [Line]} = ends(start(Config, [])),
    ?assertNotEqual(nomatch, string:find(Line, "cookie is wrong")).

target_not_up(Config) ->
    peer:stop(get(peer, Config)),
    {3, [Line]} = ends(start(Config, [])),
    ?assertNotEqual(nomatch, string:find(Line, node_name(Config) ++ " is not up")).

bad_config(Config) ->
    File = filename:join(get(dir, Config), "trace.config"),
    [
        begin
            ok = file:write_file(File, Text),
            {6, [Line]} = ends(start(Config, [])),
            ?assertNotEqual({Line, nomatch}, {Line, string:find(Line, Word)}),
            clean(get(peer, Config))
        end
     || {Text, Word} <- [
            {"{tier_config, [}.", "line 1"},
            {"{tier_config, [{x, {kprof_test_app, nope, 7}}]}.", "kprof_test_app:nope/7"},
            {"", "tier_config"}
        ]
    ],
    ok = file:delete(File),
    ?assertMatch({6, [_]}, ends(start(Config, []))).

%% A module that is not there yet is no error, but is told.
absent_module(Config) ->
    ok = file:write_file(
        filename:join(get(dir, Config), "trace.config"),
        "{tier_config, [{later, {kprof_later, f, 0}, #{returns => none}}, {outer, {kprof_test_app, "
        "outer, 1}}]}.\n"
    ),
    Port = start(Config, []),
    _ = line(Port, "tracing "),
    Line = line(Port, "warning: "),
    ?assertEqual(
        "warning: tier later: no module kprof_later on this node (yet); it is traced once it is "
        "loaded",
        Line
    ),
    _ = os:cmd("kill -TERM " ++ os_pid(Port)),
    ?assertMatch({0, _}, ends(Port)),
    clean(get(peer, Config)).

no_collector(Config) ->
    kprof_mock_collector:set(get(mock, Config), welcome, <<"not today">>),
    {8, [Line]} = ends(start(Config, [])),
    ?assertNotEqual(nomatch, string:find(Line, "not today")),
    clean(get(peer, Config)).

twice(Config) ->
    Port = start(Config, []),
    _ = line(Port, "tracing "),
    {9, [Same]} = ends(start(Config, [])),
    ?assertNotEqual(nomatch, string:find(Same, "runs already")),
    {9, [Other]} = ends(
        start(Config, ["--pid-file", filename:join(get(dir, Config), "other.pid")])
    ),
    ?assertNotEqual(nomatch, string:find(Other, "traced already by kprof_")),
    tracing = call(get(peer, Config), kprof, status, []),
    _ = os:cmd("kill -TERM " ++ os_pid(Port)),
    ?assertMatch({0, _}, ends(Port)).

usage(Config) ->
    ?assertMatch(
        {0, ["usage: start_kprof_node.sh" ++ _ | _]},
        ends(run("start_kprof_node.sh", ["--help"], Config))
    ),
    ?assertMatch(
        {0, ["usage: stop_kprof_node.sh" ++ _ | _]},
        ends(run("stop_kprof_node.sh", ["--help"], Config))
    ),
    [
        ?assertMatch({2, [_]}, ends(run("start_kprof_node.sh", Args, Config)))
     || Args <- [
            [],
            ["--what"],
            ["--node"],
            ["--node", "a", "--cookie-file", "x", "--config", "y"],
            ["--node", "a@b", "--cookie-file", "/nowhere/cookie", "--config", "y"]
        ]
    ].

old_otp(_) ->
    ok = kprof_node:check_otp("25"),
    ok = kprof_node:check_otp("29"),
    [{error, _} = kprof_node:check_otp(R) || R <- ["24", "R16B03", "17"]].

%% --- what kprof attach runs in a node ---

attach_loads(Config) ->
    Peer = get(peer, Config),
    {ok, <<"loaded">>, []} = enter(modules(fun(Beam) -> Beam end), Peer),
    ?assertEqual([], [
        M
     || M <- kprof_app:modules(), call(Peer, M, module_info, [md5]) =/= M:module_info(md5)
    ]),
    {ok, <<"out">>, []} = leave(Peer),
    clean(Peer).

%% A release that does not know an instruction compiles the modules itself. Without a compiler it
%% says so.
attach_compiles(Config) ->
    Peer = get(peer, Config),
    Modules = modules(fun of_another_release/1),
    {error, [_ | _]} = call(Peer, code, atomic_load, [
        [{M, File, Beam} || {M, File, Beam, _} <- Modules]
    ]),
    {ok, <<"compiled">>, []} = enter(Modules, Peer),
    idle = call(Peer, kprof, status, []),
    {ok, <<"out">>, []} = leave(Peer),
    clean(Peer),
    true = call(Peer, code, del_path, [compiler]),
    [
        true = call(Peer, code, delete, [M])
     || {M, _} <- call(Peer, code, all_loaded, []), lists:member(M, compiler_modules())
    ],
    {error, load, Text} = enter(Modules, Peer),
    ?assertMatch(
        {match, _},
        re:run(
            Text,
            "^it runs OTP [0-9]+, which cannot load .*has no compiler: take a kprof built with OTP "
            "[0-9]+$"
        )
    ),
    clean(Peer).

%% One leaves and another one comes meanwhile: the latter's modules are all there in the end.
%% Whoever leaves has little of the processors, so that each step of his takes longer.
attach_while_another_leaves() -> [{timetrap, {minutes, 12}}].

attach_while_another_leaves(Config) ->
    Peer = get(peer, Config),
    {?MODULE, Beam, File} = code:get_object_code(?MODULE),
    {module, _} = call(Peer, code, load_binary, [?MODULE, File, Beam]),
    ok = call(Peer, persistent_term, put, [kprof_test_modules, modules(fun(B) -> B end)]),
    [Enter, Leave] = [expression(Name) || Name <- [enter, leave]],
    Moments = [begun, stopping, stopped, deleting, deleted],
    Found = [
        {Moment, peer:call(Peer, ?MODULE, change, [Enter, Leave, app(), Moment], 120000)}
     || Moment <- Moments
    ],
    %% who comes first has taken over: then there is nothing to take out
    ?assertEqual([], [
        F
     || {Moment, Result} = F <- Found,
        Result =/= {{ok, <<"out">>}, {ok, <<"loaded">>}, [], idle},
        {Moment, Result} =/= {begun, {{ok, <<"nothing">>}, {ok, <<"loaded">>}, [], idle}}
    ]),
    true = call(Peer, persistent_term, erase, [kprof_test_modules]),
    _ = call(Peer, code, delete, [?MODULE]),
    clean(Peer).

%% In the target: what who leaves is told, what who comes at that moment is told, what of its
%% modules is not there, and the shim's state.
change(Enter, Leave, App, Moment) ->
    Modules = persistent_term:get(kprof_test_modules),
    [First, Second] = ['kprof_attach_1@nowhere', 'kprof_attach_2@nowhere'],
    %% busy: the one before is on his way out for longer than it waits
    Come = fun Come(Me) ->
        case evaluated(Enter, [{'App', App}, {'Me', Me}, {'Modules', Modules}]) of
            {error, busy, _} ->
                timer:sleep(500),
                Come(Me);
            Answer ->
                Answer
        end
    end,
    Go = fun(Who) -> evaluated(Leave, [{'Who', Who}]) end,
    {ok, <<"loaded">>, []} = Come(First),
    Busy = [spawn(fun busy/0) || _ <- lists:seq(1, erlang:system_info(schedulers_online))],
    Left = spawn_monitor(fun() ->
        _ = process_flag(priority, low),
        exit({answer, Go(First)})
    end),
    Came = spawn_monitor(fun() ->
        _ = process_flag(priority, high),
        ok = wait_for(Moment),
        exit({answer, Come(Second)})
    end),
    [A, B] = [
        receive
            {'DOWN', Ref, process, Pid, {answer, Answer}} ->
                {element(1, Answer), element(2, Answer)};
            {'DOWN', Ref, process, Pid, Why} ->
                Why
        end
     || {Pid, Ref} <- [Left, Came]
    ],
    _ = [exit(Pid, kill) || Pid <- Busy],
    Found =
        {A, B, [M || {M, _, _, _} <- Modules, code:is_loaded(M) =:= false], catch kprof:status()},
    _ = (catch Go(Second)),
    _ = [
        begin
            code:purge(M),
            code:delete(M),
            code:purge(M)
        end
     || {M, _, _, _} <- Modules
    ],
    Found.

busy() ->
    _ = lists:seq(1, 1000),
    busy().

wait_for(Moment) ->
    case has_come(Moment) of
        true ->
            ok;
        false ->
            timer:sleep(1),
            wait_for(Moment)
    end.

has_come(begun) -> true;
has_come(stopping) -> whereis(kprof_life) =:= undefined;
has_come(stopped) -> whereis(kprof_sup) =:= undefined;
has_come(deleting) -> code:is_loaded(kprof) =:= false;
has_come(deleted) -> code:is_loaded(kprof_link) =:= false.

%% As the tool has it done: from the functions' abstract code, in a node that does not have them.
enter(Modules, Peer) ->
    Bindings = [{'App', app()}, {'Me', node()}, {'Modules', Modules}],
    call(Peer, erl_eval, expr, [expression(enter), Bindings, none, none, value]).

leave(Peer) ->
    call(Peer, erl_eval, expr, [expression(leave), [{'Who', node()}], none, none, value]).

evaluated(Expression, Bindings) -> erl_eval:expr(Expression, Bindings, none, none, value).

expression(Name) -> kprof_visit:expression(Name, code:which(kprof_visit)).

modules(Change) ->
    [
        {M, File, Change(Beam), Forms}
     || {M, File, Beam, Forms} <- kprof_visit:modules(filename:dirname(code:which(kprof)))
    ].

app() ->
    {ok, [App]} = file:consult(code:where_is_file("kprof.app")),
    App.

%% With an instruction that no release has.
of_another_release(Beam) ->
    {ok, _, Chunks} = beam_lib:all_chunks(Beam),
    {"Code", <<Head:8/binary, _:32, Code/binary>>} = lists:keyfind("Code", 1, Chunks),
    {ok, Changed} = beam_lib:build_module(
        lists:keyreplace("Code", 1, Chunks, {"Code", <<Head/binary, 100000:32, Code/binary>>})
    ),
    Changed.

compiler_modules() ->
    _ = application:load(compiler),
    {ok, Modules} = application:get_key(compiler, modules),
    Modules.
