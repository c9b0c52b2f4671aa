%% SPDX-License-Identifier: Apache-2.0
%% The commands behind shop.sh that run in a node: `node`, `load`, `truth`.
%% Exit codes: 0 fine, 1 failed, 2 wrong usage.
-module(shop_cli).

-export([main/0]).

% of 100 ms each
-define(DRAIN_POLLS, 100).

-spec main() -> ok | no_return().
main() ->
    try
        [Command | Args] = init:get_plain_arguments(),
        command(Command, options(Args, allowed(Command), #{}))
    catch
        throw:{usage, Text} -> fail(2, Text);
        throw:{failed, Text} -> fail(1, Text);
        Class:Reason:Stack -> fail(1, io_lib:format("~p: ~p~n~p", [Class, Reason, Stack]))
    end.

command("node", Options) ->
    ok = set_env(Options),
    case application:ensure_all_started(shop) of
        {ok, _} ->
            announce(shop_listener:port(), Options);
        {error, {shop, Reason}} ->
            throw({failed, io_lib:format("the shop does not start: ~0p", [Reason])})
    end;
command("load", Options) ->
    need(port, Options),
    Summary = shop_load:run(maps:without([json], Options)),
    Text =
        case Options of
            #{json := true} -> [shop_json:encode(Summary), $\n];
            #{} -> shop_load:table(Summary)
        end,
    io:put_chars(Text),
    case Summary of
        #{clients_gave_up := 0, requests := N} when N > 0 -> erlang:halt(0);
        #{} -> throw({failed, "no requests, or clients that could not connect"})
    end;
command("truth", Options) ->
    need(port, Options),
    io:put_chars(truth(maps:get(port, Options), ?DRAIN_POLLS)),
    erlang:halt(0).

set_env(Options) ->
    _ = application:load(shop),
    [
        application:set_env(shop, Key, Value)
     || {Key, Value} <- maps:to_list(Options), Key =/= port_file
    ],
    case Options of
        #{trace := dbg} when not is_map_key(capture, Options) ->
            throw({usage, "--trace dbg needs --capture FILE"});
        #{} ->
            ok
    end.

%% The port file appears whole or not at all.
announce(Port, #{port_file := File}) ->
    ok = file:write_file(File ++ ".new", [integer_to_list(Port), $\n]),
    ok = file:rename(File ++ ".new", File),
    announce(Port, #{});
announce(Port, #{}) ->
    io:format("shop: listening on 127.0.0.1:~b~n", [Port]).

%% Asks until no booking is to come: only then the numbers are final.
truth(Port, Polls) ->
    {ok, Socket} = connected(gen_tcp:connect("127.0.0.1", Port, shop_wire:options(), 5000)),
    _ = shop_wire:send_request(Socket, "GET", "/_truth", ""),
    {ok, {http_response, _, 200, _}, _, Body} = shop_wire:recv(Socket, 5000),
    gen_tcp:close(Socket),
    case binary:match(Body, <<"\"pending\":0,">>) of
        {_, _} ->
            Body;
        nomatch when Polls > 0 ->
            timer:sleep(100),
            truth(Port, Polls - 1);
        nomatch ->
            throw({failed, "bookings are still pending"})
    end.

connected({ok, Socket}) -> {ok, Socket};
connected({error, Reason}) -> throw({failed, ["cannot connect: ", inet:format_error(Reason)]}).

allowed("node") ->
    #{
        "--port" => port,
        "--port-file" => text,
        "--trace" => mode,
        "--capture" => text,
        "--truth" => boolean,
        "--accounting-wait-ms" => count,
        "--http-cost" => count,
        "--pool-cost" => count,
        "--storage-cost" => count,
        "--render-cost" => count,
        "--accounting-cost" => count
    };
allowed("load") ->
    #{
        "--host" => text,
        "--port" => port,
        "--clients" => positive,
        "--requests" => positive,
        "--seconds" => positive,
        "--think" => count,
        "--seed" => count,
        "--mix" => mix,
        "--json" => flag
    };
allowed("truth") ->
    #{"--port" => port}.

options([], _Allowed, Options) ->
    Options;
options([Name | Rest], Allowed, Options) ->
    case {Allowed, Rest} of
        {#{Name := flag}, _} ->
            options(Rest, Allowed, Options#{key(Name) => true});
        {#{Name := Type}, [Text | More]} ->
            options(More, Allowed, Options#{key(Name) => value(Type, Name, Text)});
        {#{Name := _}, []} ->
            throw({usage, [Name, " needs a value"]});
        _ ->
            throw({usage, ["unknown option ", Name]})
    end.

%% Only names from the tables above come here.
key("--" ++ Name) ->
    list_to_atom(
        lists:map(
            fun
                ($-) -> $_;
                (C) -> C
            end,
            Name
        )
    ).

value(text, _Name, Text) ->
    Text;
value(Type, Name, Text) ->
    try
        parse(Type, Text)
    catch
        error:_ -> throw({usage, [Name, " cannot be ", Text]})
    end.

parse(count, Text) ->
    N = list_to_integer(Text),
    true = N >= 0,
    N;
parse(positive, Text) ->
    N = list_to_integer(Text),
    true = N > 0,
    N;
parse(port, Text) ->
    N = list_to_integer(Text),
    true = N >= 0 andalso N < 65536,
    N;
parse(boolean, "true") ->
    true;
parse(boolean, "false") ->
    false;
parse(mode, "none") ->
    none;
parse(mode, "kprof") ->
    kprof;
parse(mode, "dbg") ->
    dbg;
parse(mix, Text) ->
    Mix = [weight(string:split(Part, "=")) || Part <- string:lexemes(Text, ",")],
    true = lists:sum([W || {_, W} <- Mix]) > 0,
    Mix.

weight([Name, Weight]) ->
    Type = list_to_existing_atom(Name),
    true = lists:keymember(Type, 1, shop_client:types()),
    {Type, parse(count, Weight)}.

need(Key, Options) ->
    is_map_key(Key, Options) orelse throw({usage, ["--", atom_to_list(Key), " is needed"]}).

fail(Code, Text) ->
    io:format(standard_error, "shop: ~ts~n", [Text]),
    erlang:halt(Code).
