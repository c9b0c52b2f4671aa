%% SPDX-License-Identifier: Apache-2.0
%% shop.sh as a user runs it: real processes, a real distributed node, real signals.
-module(shop_sh_tests).

-include_lib("eunit/include/eunit.hrl").

-export([paths/0]).

%% shop.sh itself, kprof.config and a directory for whatever, as given by `shop.sh selftest`.
-spec paths() -> {string(), string(), string()}.
paths() ->
    [Script, Config, Scratch] = init:get_plain_arguments(),
    {Script, Config, Scratch}.

%% Goal of this test: `run` ends with 0, prints one JSON object and leaves the truth in a file.
run_test_() ->
    {"run",
        {timeout, 600, fun() ->
            {_, _, Scratch} = paths(),
            Truth = filename:join(Scratch, "truth.json"),
            {0, Out} = shop([
                "run",
                "--clients",
                "2",
                "--requests",
                "50",
                "--mix",
                "read=1",
                "--json",
                "--truth-file",
                Truth
            ]),
            ?assertMatch(
                {match, _}, re:run(Out, "^{\"clients\":2,.*\"requests\":50,.*}$", [multiline])
            ),
            {ok, Counted} = file:read_file(Truth),
            ?assertMatch(
                {match, _}, re:run(Counted, "\"read\":{\"errors\":[0-9]+,\"requests\":50}")
            )
        end}}.

%% Goal: `run --trace dbg` leaves a capture that ends with a whole frame although the node is ended
%% by TERM.
run_dbg_test_() ->
    {"run with dbg",
        {timeout, 600, fun() ->
            {_, _, Scratch} = paths(),
            Capture = filename:join(Scratch, "run dbg.cap"),
            {0, _} = shop([
                "run", "--trace", "dbg", "--capture", Capture, "--clients", "4", "--requests", "100"
            ]),
            {ok, Bytes} = file:read_file(Capture),
            ?assert(whole_frames(Bytes, 0) > 100)
        end}}.

%% Goal: a distributed node can be reached with its cookie, no command line shows the cookie, the
%% port file is right, and TERM ends the node with 0.
node_test_() ->
    {"a node by name",
        {timeout, 600, fun() ->
            {Script, _, Scratch} = paths(),
            Cookie = "shopcookie" ++ os:getpid(),
            CookieFile = filename:join(Scratch, "cookie"),
            PortFile = filename:join(Scratch, "port"),
            Name = "shop_selftest_" ++ os:getpid() ++ "@localhost",
            ok = file:write_file(CookieFile, [Cookie, $\n]),
            Node = open_port(
                {spawn_executable, Script},
                [
                    exit_status,
                    stderr_to_stdout,
                    binary,
                    {args, [
                        "node", "--name", Name, "--cookie-file", CookieFile, "--port-file", PortFile
                    ]}
                ]
            ),
            {os_pid, Pid} = erlang:port_info(Node, os_pid),
            try
                reached(list_to_atom(Name), Cookie, PortFile)
            after
                os:cmd("kill -TERM " ++ integer_to_list(Pid))
            end,
            ?assertMatch({0, _}, output(Node, []))
        end}}.

reached(Node, Cookie, PortFile) ->
    HttpPort = wait_for(
        fun() ->
            {ok, Text} = file:read_file(PortFile),
            string:trim(binary_to_list(Text))
        end,
        2000
    ),
    {0, _} = shop(["load", "--port", HttpPort, "--clients", "1", "--requests", "5"]),
    ?assertEqual(nomatch, string:find(os:cmd("ps axww -o args"), Cookie)),
    {ok, _} = net_kernel:start([
        list_to_atom("shop_tester_" ++ os:getpid() ++ "@localhost"), shortnames
    ]),
    erlang:set_cookie(Node, list_to_atom(Cookie)),
    ?assertEqual(list_to_integer(HttpPort), rpc:call(Node, shop_listener, port, [], 5000)),
    net_kernel:stop().

%% Goal: mistakes are told apart from failures, and told.
usage_test_() ->
    {"usage",
        {timeout, 600, fun() ->
            [
                ?assertMatch({Args, 2, {_, _}}, tried(Args, Text))
             || {Args, Text} <- [
                    {["load"], "--port is needed"},
                    {["load", "--port"], "--port needs a value"},
                    {["load", "--port", "x"], "--port cannot be x"},
                    {["load", "--port", "1", "--mix", "steal=1"], "--mix cannot be"},
                    {["node", "--nose", "1"], "unknown option --nose"},
                    {["node", "--name", "shop@localhost"], "--name needs --cookie-file"},
                    {["node", "--trace", "dbg"], "--trace dbg needs --capture"},
                    {["run", "--trace", "kprof"], "--trace kprof needs"},
                    {["dance"], "unknown command dance"}
                ]
            ],
            ?assertMatch({_, 1, {_, _}}, tried(["truth", "--port", "1"], "cannot connect")),
            ?assertMatch({_, 0, {_, _}}, tried(["--help"], "usage: shop.sh"))
        end}}.

%% Helpers

shop(Args) ->
    {Script, _, _} = paths(),
    Port = open_port({spawn_executable, Script}, [
        exit_status, stderr_to_stdout, binary, {args, Args}
    ]),
    output(Port, []).

tried(Args, Text) ->
    {Status, Out} = shop(Args),
    {Args, Status, binary:match(Out, list_to_binary(Text))}.

output(Port, Acc) ->
    receive
        {Port, {data, Data}} -> output(Port, [Acc, Data]);
        {Port, {exit_status, Status}} -> {Status, iolist_to_binary(Acc)}
    after 500000 -> error({no_end, iolist_to_binary(Acc)})
    end.

wait_for(Fun, Tries) ->
    try
        Fun()
    catch
        error:_ when Tries > 0 ->
            timer:sleep(100),
            wait_for(Fun, Tries - 1)
    end.

whole_frames(<<>>, N) -> N;
whole_frames(<<0, Size:32, 131, _:(Size - 1)/binary, Rest/binary>>, N) -> whole_frames(Rest, N + 1).
