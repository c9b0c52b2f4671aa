%% SPDX-License-Identifier: Apache-2.0
%% One client of the load generator: a connection of its own, one request at a time, then some
%% thinking. What it asks for follows from its seed alone.
-module(shop_client).

-export([run/1, types/0]).
-export_type([plan/0, result/0]).

-type plan() :: #{
    host := inet:hostname(),
    port := inet:port_number(),
    seed := term(),
    mix := [{shop_truth:route(), non_neg_integer()}],
    % native monotonic time
    requests := non_neg_integer(),
    deadline := integer(),
    think_ms := non_neg_integer()
}.
-type result() :: #{
    types := #{shop_truth:route() => shop_stats:stats()},
    connection_errors := non_neg_integer(),
    gave_up := boolean()
}.

-define(TIMEOUT, 60000).
-define(PAUSE_MS, 100).
% of the connection, in a row
-define(MOST_ERRORS, 20).

-record(client, {
    plan, socket = none, rand, last_created = 0, stats = #{}, errors = 0, in_a_row = 0
}).

%% The request types and their usual weights.
-spec types() -> [{shop_truth:route(), pos_integer()}].
types() ->
    [{read, 45}, {search, 10}, {create, 10}, {update, 10}, {delete, 5}, {order, 19}, {unknown, 1}].

-spec run(plan()) -> result().
run(#{seed := Seed, requests := Requests} = Plan) ->
    Client = loop(Requests, #client{plan = Plan, rand = rand:seed_s(exsss, Seed)}),
    Client#client.socket =:= none orelse gen_tcp:close(Client#client.socket),
    #{
        types => Client#client.stats,
        connection_errors => Client#client.errors,
        gave_up => Client#client.in_a_row >= ?MOST_ERRORS
    }.

loop(0, Client) ->
    Client;
loop(_Left, #client{in_a_row = ?MOST_ERRORS} = Client) ->
    Client;
loop(Left, #client{plan = #{deadline := Deadline, think_ms := Think}} = Client) ->
    case erlang:monotonic_time() >= Deadline of
        true ->
            Client;
        false ->
            Next = one(connected(Client)),
            Think =:= 0 orelse timer:sleep(Think),
            loop(Left - 1, Next)
    end.

connected(#client{socket = none, plan = #{host := Host, port := Port}} = Client) ->
    case gen_tcp:connect(Host, Port, shop_wire:options(), ?TIMEOUT) of
        {ok, Socket} -> Client#client{socket = Socket};
        {error, _} -> Client
    end;
connected(Client) ->
    Client.

one(#client{socket = none} = Client) ->
    failed(Client);
one(#client{socket = Socket} = Client0) ->
    {Type, {Method, Target, Body}, Client} = choose(Client0),
    Start = erlang:monotonic_time(),
    case exchange(Socket, Method, Target, Body) of
        {ok, Status, Keep, Page} ->
            Ns = erlang:convert_time_unit(erlang:monotonic_time() - Start, native, nanosecond),
            Stats = maps:get(Type, Client#client.stats, shop_stats:new()),
            Known = created(Type, Status, Page, Client),
            left(Keep, Known#client{
                in_a_row = 0,
                stats = (Client#client.stats)#{
                    Type => shop_stats:add(Stats, Status, Ns)
                }
            });
        error ->
            gen_tcp:close(Socket),
            failed(Client#client{socket = none})
    end.

exchange(Socket, Method, Target, Body) ->
    % a failure shows in recv
    _ = shop_wire:send_request(Socket, Method, Target, Body),
    case shop_wire:recv(Socket, ?TIMEOUT) of
        {ok, {http_response, _, Status, _}, Keep, Page} -> {ok, Status, Keep, Page};
        _ -> error
    end.

left(true, Client) ->
    Client;
left(false, #client{socket = Socket} = Client) ->
    gen_tcp:close(Socket),
    Client#client{socket = none}.

failed(#client{errors = N, in_a_row = Row} = Client) ->
    timer:sleep(?PAUSE_MS),
    Client#client{errors = N + 1, in_a_row = Row + 1}.

%% What was created last is what this client deletes next: the seeded items stay.
created(create, 201, <<"{\"id\":", Rest/binary>>, Client) ->
    {Id, _} = string:to_integer(Rest),
    Client#client{last_created = Id};
created(_Type, _Status, _Page, Client) ->
    Client.

choose(#client{plan = #{mix := Mix}, rand = Rand0} = Client) ->
    {Draw, Rand1} = rand:uniform_s(lists:sum([W || {_, W} <- Mix]), Rand0),
    Type = pick(Draw, Mix),
    {Request, Rand} = request(Type, Client#client.last_created, Rand1),
    {Type, Request, Client#client{rand = Rand}}.

pick(Draw, [{Type, Weight} | _]) when Draw =< Weight -> Type;
pick(Draw, [{_, Weight} | Rest]) -> pick(Draw - Weight, Rest).

request(read, _, Rand0) ->
    % a few do not exist
    {Id, Rand} = rand:uniform_s(1020, Rand0),
    {{"GET", ["/items/", integer_to_list(Id)], ""}, Rand};
request(search, _, Rand0) ->
    {N, Rand} = rand:uniform_s(3, Rand0),
    {{"GET", ["/items?q=", element(N, {"lamp", "clock", "no.%207"})], ""}, Rand};
request(create, _, Rand) ->
    {{"POST", "/items", "name=novelty"}, Rand};
request(update, _, Rand0) ->
    {Id, Rand1} = rand:uniform_s(1000, Rand0),
    {Price, Rand} = rand:uniform_s(999, Rand1),
    {{"PUT", ["/items/", integer_to_list(Id)], ["price=", integer_to_list(Price)]}, Rand};
request(delete, 0, Rand) ->
    % nothing of ours is there yet
    {{"DELETE", "/items/999999", ""}, Rand};
request(delete, Id, Rand) ->
    {{"DELETE", ["/items/", integer_to_list(Id)], ""}, Rand};
request(order, _, Rand0) ->
    {A, Rand1} = rand:uniform_s(998, Rand0),
    {
        {"POST", "/orders", ["ids=" | lists:join($,, [integer_to_list(A + N) || N <- [0, 1, 2]])]},
        Rand1
    };
request(unknown, _, Rand) ->
    {{"GET", "/nowhere", ""}, Rand}.
