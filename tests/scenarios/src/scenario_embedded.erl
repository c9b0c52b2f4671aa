%% SPDX-License-Identifier: Apache-2.0
%% The application node of scenario 06: kprof is part of it, started and stopped by the application
%% itself.
-module(scenario_embedded).

-export([start/0, do/1, server/2]).
-export([trace/2, requests/2, raised/1, rows/0, tokens/2, carried/0, misultin/0, get/2]).

%% Commands are run in a process of this node, so that what kprof prints comes out here.
-spec start() -> ok.
start() ->
    ok = db:start(),
    ok = accounting:start(),
    ok = server(?MODULE, fun({From, Ref, F}) -> From ! {Ref, catch F()} end).

-spec do(fun(() -> Result)) -> Result.
do(F) ->
    Ref = make_ref(),
    ?MODULE ! {self(), Ref, F},
    receive
        {Ref, Result} -> Result
    after 14000 -> timeout
    end.

%% A registered process that handles messages for ever. Its loop is no tier.
-spec server(atom(), fun((term()) -> term())) -> ok.
server(Name, Handle) ->
    Self = self(),
    Pid = spawn(fun() ->
        true = register(Name, self()),
        Self ! {self(), up},
        loop(Handle)
    end),
    receive
        {Pid, up} -> ok
    end.

loop(Handle) ->
    receive
        Message -> _ = Handle(Message)
    end,
    loop(Handle).

%% The traces of the scenario. The first has the option list of the documentation, letter for
%% letter.
-spec trace(atom(), inet:port_number()) -> ok | {error, term()}.
trace(documented, Port) ->
    ok = kprof:start(),
    documented(Port);
%% Its identity function computes: it cannot be a match specification, and is asked. For some
%% requests it crashes.
trace(asking, Port) ->
    ok = kprof:start(),
    Keeper = keeper(),
    kprof:start_trace([
        tiers(),
        {identity_f, fun
            ({network_server, parse_request, [Text]}) ->
                [Kind, Id] = string:lexemes(Text, " "),
                case list_to_integer(Id) rem 10 of
                    0 -> {string:uppercase(Kind), "round"};
                    1 -> error(crash);
                    _ -> string:uppercase(Kind)
                end;
            (_) ->
                undefined
        end},
        {print_calls, true},
        {stats_dumper, {'fun', fun(Rows) -> Keeper ! {kprof_stats, Rows} end}},
        {collector, {{127, 0, 0, 1}, Port}}
    ]);
trace(sampling, Port) ->
    ok = kprof:start(),
    kprof:start_trace([
        tiers(),
        {sample, {one_in, 10}},
        {stats_dumper, {pid, keeper()}},
        {collector, {"localhost", Port}}
    ]);
trace(tokens, Port) ->
    ok = kprof:start(),
    kprof:start_trace([tiers(), {collector, {"127.0.0.1", Port}}]).

%% On its own: a compiled fun is found in its module when it is the only one of its function.
documented(Port) ->
    kprof:start_trace(
        [
            {tier_config, [
                {parsing, {network_server, parse_request, 1}},
                {handle, {requests, handle_request, 2}},
                {formatter, {formatter, format_response, 1}},
                {db, {db, network_request, 1}},
                {accounting, {accounting, incr_reqs, 1}}
            ]},
            {identity_f, fun
                ({requests, handle_request, [create, _]}) -> create;
                ({requests, handle_request, [update, _]}) -> update;
                (_) -> undefined
            end},
            {print_calls, false},
            {stats_dumper, {file, "stats.log"}}
        ] ++ [{collector, {"127.0.0.1", Port}}]
    ).

tiers() ->
    {tier_config, [
        {parsing, {network_server, parse_request, 1}},
        {"handle", {requests, handle_request, 2}},
        {<<"db">>, {db, network_request, 1}}
    ]}.

%% Adds up the calls of the rows that a dumper gets: rows/0 gives what has come, as the collector's
%% own rows have it.
keeper() ->
    catch unregister(keeper),
    Pid = spawn(fun() -> keep(#{}) end),
    true = register(keeper, Pid),
    Pid.

keep(Sums) ->
    receive
        {kprof_stats, Rows} ->
            keep(lists:foldl(fun add/2, Sums, Rows));
        {read, From} ->
            From ! {rows, lists:sort(maps:to_list(Sums))},
            keep(Sums)
    end.

add(Row, Sums) ->
    #{identity := I, tier := T, calls := C, errors := E} = maps:from_list([
        {atom(K), V}
     || {K, V} <- maps:to_list(Row)
    ]),
    maps:update_with({text(T), text(I)}, fun({C0, E0}) -> {C0 + C, E0 + E} end, {C, E}, Sums).

atom(K) when is_atom(K) -> K;
atom(K) when is_binary(K) -> binary_to_atom(K, utf8).

text(X) when is_atom(X) -> atom_to_list(X);
text(X) when is_binary(X) -> binary_to_list(X).

%% The dumper's sums, one "tier|identity|calls|errors" a line.
-spec rows() -> string().
rows() ->
    keeper ! {read, self()},
    receive
        {rows, Sums} ->
            lists:flatten(
                lists:join("\n", [
                    io_lib:format("~s|~s|~b|~b", [T, I, C, E])
                 || {{T, I}, {C, E}} <- Sums
                ])
            )
    after 60000 -> timeout
    end.

%% N requests of each kind, the kinds in processes of their own, twenty at full speed and a pause:
%% the guard would stop more on a busy machine. Gives how many failed, those of `fail' and `throws'.
-spec requests(pos_integer(), [string()]) -> non_neg_integer().
requests(N, Kinds) ->
    Self = self(),
    Pids = [spawn_link(fun() -> Self ! {self(), failures(N, Kind)} end) || Kind <- Kinds],
    lists:sum([
        receive
            {Pid, Failed} -> Failed
        end
     || Pid <- Pids
    ]).

failures(N, Kind) ->
    length([
        x
     || Id <- lists:seq(1, N),
        Id rem 5 =/= 0 orelse timer:sleep(20) =:= ok,
        failed(Kind ++ " " ++ integer_to_list(Id))
    ]).

failed(Text) ->
    try kprof:do_apply(network_server, run, [Text]) of
        [_ | _] -> false
    catch
        error:{db_down, _} -> true;
        throw:{thrown, _} -> true
    end.

%% What a request raises, and the functions of the application on its stack.
-spec raised(string()) -> term().
raised(Text) ->
    try
        kprof:do_apply(network_server, run, [Text])
    catch
        Class:Why:Stack ->
            {Class, Why,
                [{M, F} || {M, F, _, _} <- Stack, lists:member(M, [network_server, requests, db])],
                seq_trace:get_token()}
    end.

%% N requests by set_token and clear_token, with a nested pair inside.
-spec tokens(pos_integer(), kprof:identity()) -> ok.
tokens(0, _) ->
    ok;
tokens(N, Identity) ->
    ok = kprof:set_token(Identity),
    ok = kprof:set_token(nested),
    _ = db:request({read, N}),
    ok = kprof:clear_token(),
    _ = db:request({read, N}),
    ok = kprof:clear_token(),
    [] = seq_trace:get_token(),
    tokens(N - 1, Identity).

%% A request whose work is done by a process that no message of it reaches: its label is carried by
%% hand.
-spec carried() -> ok.
carried() ->
    Table = ets:new(labels, [public]),
    {Pid, Monitor} = spawn_monitor(fun() -> poll(Table, 500) end),
    ok = kprof:set_token("carried"),
    Label = kprof:get_current_label(),
    true = is_integer(Label),
    true = ets:insert(Table, {label, Label}),
    receive
        {'DOWN', Monitor, process, Pid, Why} -> normal = Why
    after 60000 -> exit(timeout)
    end,
    ok = kprof:set_current_label(Label),
    ok = kprof:clear_token().

poll(Table, N) when N > 0 ->
    case ets:lookup(Table, label) of
        [{label, Label}] ->
            undefined = kprof:get_current_label(),
            ok = kprof:set_current_label(Label),
            _ = db:network_request({read, 1}),
            ok = kprof:set_current_label(undefined),
            undefined = kprof:get_current_label(),
            ok;
        [] ->
            timer:sleep(10),
            poll(Table, N - 1)
    end.

%% As the misultin web server calls its loop.
-spec misultin() -> string().
misultin() ->
    kprof:misultin_req_loop({?MODULE, 'GET', "/page?id=1"}, fun(_) ->
        network_server:run("read 1")
    end).

-spec get(method | uri, tuple()) -> term().
get(method, {_, Method, _}) -> Method;
get(uri, {_, _, Uri}) -> {abs_path, Uri}.
