%% SPDX-License-Identifier: Apache-2.0
%% The shop in this very node, over real HTTP: every route's answer, failures, the load generator
%% against the truth, and what dbg writes against the truth.
-module(shop_tests).

-include_lib("eunit/include/eunit.hrl").

-define(LOST, 999999).
-define(SOLD_OUT, 50).
-define(THROWS, 89).
-define(EXITS, 97).

%% Goal of this test: each route answers as it should, and failures of each class become a 500.
routes_test_() ->
    with_shop("every route", [], fun(Port) ->
        {200, Item} = http(Port, "GET", "/items/7", ""),
        ?assertMatch({_, _}, binary:match(Item, <<"\"name\":\"table no. 7\"">>)),
        {200, Hits} = http(Port, "GET", "/items?q=lamp", ""),
        ?assertMatch({_, _}, binary:match(Hits, <<"lamp no. ">>)),
        {201, <<"{\"id\":", New/binary>>} = http(Port, "POST", "/items", "name=a%20%22sofa%22"),
        {Id, _} = string:to_integer(New),
        ?assertMatch({_, _}, binary:match(New, <<"\"name\":\"a \\\"sofa\\\"\"">>)),
        {200, Changed} = http(Port, "PUT", path(Id), "price=42"),
        ?assertMatch({_, _}, binary:match(Changed, <<"\"price\":42">>)),
        ?assertMatch({200, _}, http(Port, "DELETE", path(Id), "")),
        ?assertMatch({201, _}, http(Port, "POST", "/orders", "ids=1,2,3")),
        [
            ?assertMatch({404, _}, http(Port, Method, path(Gone), Body))
         || Gone <- [Id, ?LOST], {Method, Body} <- [{"GET", ""}, {"PUT", "price=1"}, {"DELETE", ""}]
        ],
        [
            ?assertMatch({404, _}, http(Port, Method, Target, Body))
         || {Method, Target, Body} <- [
                {"GET", "/", ""},
                {"GET", "/items/x", ""},
                {"PATCH", "/items/1", ""},
                {"POST", "/orders", "ids=1,two"},
                {"POST", "/orders", ""}
            ]
        ],
        fails(http(Port, "POST", "/orders", "ids=1,50,2"), <<"error: {sold_out,50}">>),
        fails(http(Port, "POST", "/orders", "ids=1,999999"), <<"error: {not_found,999999}">>),
        fails(http(Port, "GET", path(?THROWS), ""), <<"throw: busy">>),
        fails(http(Port, "PUT", path(?EXITS), "price=1"), <<"exit: disk_failure">>),
        drained = shop_accounting:drain(5000),
        #{routes := Routes, tiers := Tiers} = shop_truth:read(),
        ?assertEqual(
            #{
                read => {4, 1},
                search => {1, 0},
                create => {1, 0},
                update => {4, 1},
                delete => {3, 0},
                order => {3, 2},
                unknown => {5, 0}
            },
            maps:map(fun(_, #{requests := R, errors := E}) -> {R, E} end, Routes)
        ),
        %% An order of three: three taken, then three read. Sold out: one taken, one refused, one
        %% given back; the lost one likewise.
        ?assertMatch(
            #{
                storage := #{
                    order := #{calls := 12, errors := 0},
                    read := #{calls := 4, errors := 1},
                    search := #{calls := 10}
                },
                pool := #{order := #{calls := 3, errors := 2}, unknown := #{calls := 0}},
                render := #{order := #{calls := 1}},
                accounting := #{
                    order := #{calls := 1},
                    create := #{calls := 1},
                    update := #{calls := 1},
                    delete := #{calls := 1}
                }
            },
            Tiers
        )
    end).

%% Goal: what a sold-out order had taken is given back.
give_back_test_() ->
    with_shop("a refused order gives back", [], fun(Port) ->
        {200, Before} = http(Port, "GET", "/items/1", ""),
        {500, _} = http(Port, "POST", "/orders", "ids=1,50"),
        ?assertEqual({200, Before}, http(Port, "GET", "/items/1", "")),
        {201, _} = http(Port, "POST", "/orders", "ids=1"),
        ?assertNotEqual({200, Before}, http(Port, "GET", "/items/1", ""))
    end).

%% Goal: a booking outlives its request.
booking_outlives_test_() ->
    with_shop("a booking outlives its request", [{accounting_wait_ms, 300}], fun(Port) ->
        {201, _} = http(Port, "POST", "/orders", "ids=1"),
        ?assertEqual(1, shop_accounting:pending()),
        ?assertEqual(drained, shop_accounting:drain(5000))
    end).

%% Goal: clients and server agree, request by request, and the mix follows from the seed.
load_test_() ->
    with_shop("clients and server agree", [], fun(Port) ->
        Run = fun(Seed) ->
            shop_load:run(#{port => Port, clients => 3, requests => 301, seed => Seed})
        end,
        #{requests := 301, connection_errors := 0, clients_gave_up := 0, types := Types} = Run(1),
        #{routes := Routes} = shop_truth:read(),
        ?assertEqual(counts(Types), truth_counts(Routes)),
        ?assert(maps:get(errors, maps:get(order, Types)) > 0),
        Count = fun(#{types := T}) -> maps:map(fun(_, #{count := N}) -> N end, T) end,
        ?assertEqual(Count(#{types => Types}), Count(Run(1))),
        ?assertNotEqual(Count(#{types => Types}), Count(Run(2)))
    end).

%% Goal: a client whose server is gone ends after a bounded number of tries.
load_without_server_test_() ->
    {"no server",
        {timeout, 300, fun() ->
            {ok, Socket} = gen_tcp:listen(0, []),
            {ok, Port} = inet:port(Socket),
            gen_tcp:close(Socket),
            ?assertMatch(
                #{requests := 0, connection_errors := 20, clients_gave_up := 1},
                shop_load:run(#{port => Port, clients => 1, seconds => 20})
            )
        end}}.

%% Goal: with truth off the shop works and says that it does not count.
truth_off_test_() ->
    with_shop("truth off", [{truth, false}], fun(Port) ->
        {200, _} = http(Port, "GET", "/items/7", ""),
        ?assertMatch(
            {200, <<"{\"enabled\":false,\"pending\":0}\n">>}, http(Port, "GET", "/_truth", "")
        )
    end).

%% Goal: once kprof is loaded, requests go through it; and no longer once it is gone.
through_kprof_test_() ->
    with_shop("requests go through kprof", [], fun(Port) ->
        {200, _} = http(Port, "GET", "/items/7", ""),
        Counter = counters:new(1, []),
        persistent_term:put(fake_kprof, Counter),
        load_fake_kprof(),
        {200, _} = http(Port, "GET", "/items/7", ""),
        {500, _} = http(Port, "GET", path(?THROWS), ""),
        code:delete(kprof),
        code:soft_purge(kprof),
        {200, _} = http(Port, "GET", "/items/7", ""),
        ?assertEqual(2, counters:get(Counter, 1))
    end).

%% Goal: the capture that dbg writes ends with a whole frame and agrees with the truth: calls and
%% exceptions of each tier, one label a request, a token in every call, an end for every call.
dbg_capture_test_() ->
    {_, _, Scratch} = shop_sh_tests:paths(),
    File = filename:join(Scratch, "dbg.cap"),
    [
        with_shop("dbg writes", [{trace, dbg}, {capture, File}], fun(Port) ->
            shop_load:run(#{port => Port, clients => 4, requests => 400}),
            drained = shop_accounting:drain(5000),
            persistent_term:put(?MODULE, shop_truth:read())
        end),
        {"the capture agrees with the truth", fun() ->
            compare(File, persistent_term:get(?MODULE))
        end}
    ].

compare(File, #{tiers := Tiers, routes := Routes}) ->
    {ok, Bytes} = file:read_file(File),
    Messages = frames(Bytes),
    [
        begin
            Truth = fun(Key) ->
                lists:sum([maps:get(Key, Row) || Row <- maps:values(maps:get(Tier, Tiers))])
            end,
            ?assertEqual(
                {Tier, Truth(calls)},
                {Tier, length([x || {trace_ts, _, call, F, _, _} <- Messages, F =:= MFA])}
            ),
            ?assertEqual(
                {Tier, Truth(errors)},
                {Tier, length([x || {trace_ts, _, exception_from, F, _, _} <- Messages, F =:= MFA])}
            ),
            ?assertEqual(
                {Tier, Truth(calls) - Truth(errors)},
                {Tier, length([x || {trace_ts, _, return_from, F, _, _} <- Messages, F =:= MFA])}
            )
        end
     || {Tier, MFA} <- shop_truth:tiers()
    ],
    Tokens = [Token || {trace_ts, _, call, _, Token, _} <- Messages],
    Labels = lists:usort([
        Label
     || {_Flags, Label, _Serial, _From, _Last} <- Tokens, is_integer(Label)
    ]),
    ?assertEqual(lists:sum([N || #{requests := N} <- maps:values(Routes)]), length(Labels)),
    ?assertEqual([], [T || T <- Tokens, tuple_size(T) =/= 5]),
    ?assert(lists:all(fun(M) -> is_integer(element(tuple_size(M), M)) end, Messages)).

%% Crashes on a cut frame and on a dropped-messages one.
frames(<<>>) -> [];
frames(<<0, Size:32, Term:Size/binary, Rest/binary>>) -> [binary_to_term(Term) | frames(Rest)].

%% Goal: kprof.config names the tiers that the truth counts, and its identity function the routes.
config_test() ->
    {_, File, _} = shop_sh_tests:paths(),
    {ok, Text} = file:read_file(File),
    {ok, Tokens, _} = erl_scan:string(binary_to_list(Text)),
    {ok, Exprs} = erl_parse:parse_exprs(Tokens),
    {value, Config, _} = erl_eval:exprs(Exprs, erl_eval:new_bindings()),
    ?assertEqual(shop_truth:tiers(), proplists:get_value(tier_config, Config)),
    Identity = proplists:get_value(identity_f, Config),
    ?assertEqual(order, Identity({shop_http, handle_request, [order, #{}]})),
    ?assertEqual(undefined, Identity({shop_worker, work, [order, #{}]})).

%% Goal: the application file lists every module of src.
modules_test() ->
    {_, Config, _} = shop_sh_tests:paths(),
    Files = filelib:wildcard(filename:join([filename:dirname(Config), "src", "*.erl"])),
    _ = application:load(shop),
    {ok, Modules} = application:get_key(shop, modules),
    ?assertEqual(
        [list_to_atom(filename:basename(File, ".erl")) || File <- Files], lists:sort(Modules)
    ).

%% Goal: quantiles are within the two percent that the buckets promise.
stats_test() ->
    Stats = lists:foldl(
        fun(N, S) -> shop_stats:add(S, 200, N * 1000) end, shop_stats:new(), lists:seq(1, 1000)
    ),
    #{count := 2000, mean_us := Mean, p50_us := P50, p99_us := P99, max_us := Max} =
        shop_stats:summary(shop_stats:merge(Stats, Stats)),
    ?assertEqual({500.5, 1000.0}, {Mean, Max}),
    ?assert(abs(P50 - 500) < 10),
    ?assert(abs(P99 - 990) < 20).

%% Helpers

with_shop(Title, Env, Test) ->
    {Title,
        {timeout, 600, fun() ->
            _ = application:load(shop),
            [ok = application:set_env(shop, Key, Value) || {Key, Value} <- Env],
            ok = application:start(shop),
            try
                Test(shop_listener:port())
            after
                ok = application:stop(shop),
                % so that the next test finds the defaults
                ok = application:unload(shop)
            end
        end}}.

path(Id) -> "/items/" ++ integer_to_list(Id).

http(Port, Method, Target, Body) ->
    {ok, Socket} = gen_tcp:connect("127.0.0.1", Port, shop_wire:options()),
    ok = shop_wire:send_request(Socket, Method, Target, Body),
    {ok, {http_response, _, Status, _}, true, Page} = shop_wire:recv(Socket, 5000),
    gen_tcp:close(Socket),
    {Status, Page}.

fails({Status, Page}, Reason) ->
    ?assertEqual({500, <<Reason/binary, "\n">>}, {Status, Page}).

counts(Types) ->
    maps:map(fun(_, #{count := Count, errors := Errors}) -> {Count, Errors} end, Types).

truth_counts(Routes) ->
    maps:from_list([
        {Route, {Requests, Errors}}
     || {Route, #{requests := Requests, errors := Errors}} <- maps:to_list(Routes), Requests > 0
    ]).

load_fake_kprof() ->
    Source = [
        "-module(kprof).",
        "-export([do_apply/3]).",
        "do_apply(M, F, A) -> counters:add(persistent_term:get(fake_kprof), 1, 1), apply(M, F, A)."
    ],
    Forms = [
        begin
            {ok, T, _} = erl_scan:string(Line),
            {ok, Form} = erl_parse:parse_form(T),
            Form
        end
     || Line <- Source
    ],
    {ok, kprof, Beam} = compile:forms(Forms),
    {module, kprof} = code:load_binary(kprof, "fake", Beam).
