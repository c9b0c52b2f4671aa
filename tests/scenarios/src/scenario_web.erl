%% SPDX-License-Identifier: Apache-2.0
%% What every web server of the scenarios 30 to 34 serves: the paths below, each with so many calls
%% of the tiers `store' (in the request's process) and `disk' (in another one) as its truth says.
%% The servers' own glue is in scenario_web_servers.
-module(scenario_web).

-export([start/0, handle/3, wait_stuck/1, pieces/1, store/1, disk/1, kept/2]).

-type answer() :: {Status :: pos_integer(), iodata()} | {pieces, [iodata()]}.

%% The process behind the store. Before, everything that is in the node's path besides OTP is
%% loaded, as a release does: who waits for the code server together with others goes on under the
%% token of one of them (shim/README.md, Limits).
-spec start() -> ok.
start() ->
    Beams = lists:append([
        filelib:wildcard("*.beam", Dir)
     || Dir <- code:get_path(), not lists:prefix(code:lib_dir(), Dir)
    ]),
    ok = code:ensure_modules_loaded([list_to_atom(filename:rootname(Beam)) || Beam <- Beams]),
    scenario_embedded:server(?MODULE, fun({From, Ref, Key}) -> From ! {Ref, disk(Key)} end).

-spec handle(binary(), binary(), binary()) -> answer().
handle(<<"GET">>, <<"/users/", Id/binary>>, _) ->
    {200, store(Id)};
handle(<<"GET">>, <<"/slow">>, _) ->
    timer:sleep(30),
    {200, store(<<"slow">>)};
handle(<<"GET">>, <<"/long">>, _) ->
    timer:sleep(3000),
    {200, "long"};
handle(<<"GET">>, <<"/fail">>, _) ->
    _ = store(<<"fail">>),
    {500, "failed"};
handle(<<"GET">>, <<"/busy">>, _) ->
    {503, "busy"};
handle(<<"GET">>, <<"/crash">>, _) ->
    _ = store(<<"crash">>),
    error(boom);
handle(<<"GET">>, <<"/exit">>, _) ->
    exit(boom);
handle(<<"GET">>, <<"/throw">>, _) ->
    throw(boom);
handle(<<"GET">>, <<"/killed">>, _) ->
    _ = store(<<"killed">>),
    exit(self(), kill),
    timer:sleep(infinity);
handle(<<"GET">>, <<"/stuck">>, _) ->
    stuck();
handle(<<"GET">>, <<"/pieces">>, _) ->
    _ = store(<<"pieces">>),
    {pieces, ["one ", "two ", "three"]};
handle(<<"GET">>, <<"/endless">>, _) ->
    {pieces, lists:duplicate(200, lists:duplicate(1000, $e))};
handle(<<"POST">>, <<"/echo">>, Body) ->
    _ = store(<<"echo">>),
    {200, Body};
handle(<<"POST">>, <<"/upload">>, _) ->
    {200, "uploaded"};
handle(<<"GET">>, <<"/">>, _) ->
    {200, "root"};
handle(<<"HEAD">>, Path, Body) ->
    handle(<<"GET">>, Path, Body);
handle(_, _, _) ->
    {404, "nothing here"}.

stuck() ->
    receive
        never -> error(never)
    end.

%% Waits until N requests are stuck, and no more.
-spec wait_stuck(non_neg_integer()) -> ok.
wait_stuck(N) ->
    case
        [
            P
         || P <- processes(),
            process_info(P, current_function) =:= {current_function, {?MODULE, stuck, 0}}
        ]
    of
        Stuck when length(Stuck) =:= N -> ok;
        _ ->
            timer:sleep(20),
            wait_stuck(N)
    end.

%% The pieces with the pauses that a client sees them come by.
-spec pieces([iodata()]) -> [fun(() -> iodata())].
pieces(Pieces) ->
    [
        fun() ->
            timer:sleep(10),
            Piece
        end
     || Piece <- Pieces
    ].

-spec store(binary()) -> binary().
store(Key) ->
    Ref = make_ref(),
    ?MODULE ! {self(), Ref, Key},
    receive
        {Ref, Value} -> Value
    after 60000 -> error(timeout)
    end.

-spec disk(binary()) -> binary().
disk(Key) -> <<"value of ", Key/binary>>.

%% Asks for the paths over one connection, keeps it open, and gives what the node still holds of
%% requests then: the token of the process that serves the connection, and what kprof put into
%% anybody's dictionary.
-spec kept(inet:port_number(), [string()]) -> [{pid(), term()}].
kept(Port, Paths) ->
    {ok, S} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}]),
    [
        begin
            ok = gen_tcp:send(S, ["GET ", Path, " HTTP/1.1\r\nHost: h\r\n\r\n"]),
            {ok, <<"HTTP/1.1 ", _/binary>>} = gen_tcp:recv(S, 0, 60000),
            rest(S)
        end
     || Path <- Paths
    ],
    {ok, Name} = inet:sockname(S),
    [Serves] = [
        P
     || Other <- erlang:ports(),
        inet:peername(Other) =:= {ok, Name},
        % a connection to somewhere else may come from the same port
        {ok, {_, At}} <- [inet:sockname(Other)],
        At =:= Port,
        {connected, P} <- [erlang:port_info(Other, connected)]
    ],
    Held =
        [
            {Serves, Token}
         || {_, Token} <- [erlang:process_info(Serves, sequential_trace_token)], Token =/= []
        ] ++
            [
                {P, Key}
             || P <- processes(),
                {_, Dictionary} <- [erlang:process_info(P, dictionary)],
                {Key, _} <- Dictionary,
                is_ours(Key)
            ],
    ok = gen_tcp:close(S),
    Held.

rest(S) ->
    case gen_tcp:recv(S, 0, 200) of
        {ok, _} -> rest(S);
        {error, timeout} -> ok
    end.

is_ours(Key) -> is_atom(Key) andalso lists:prefix("$kprof", atom_to_list(Key)).
