%% What every web server of the scenarios 30 to 34 serves: the paths below, each with so many calls of the tiers `store' (in the
%% request's process) and `disk' (in another one) as its truth says. The servers' own glue is in scenario_web_servers.
-module(scenario_web).

-export([start/0, handle/3, pieces/1, store/1, disk/1]).

-type answer() :: {Status :: pos_integer(), iodata()} | {pieces, [iodata()]}.

%% The process behind the store.
-spec start() -> ok.
start() ->
    scenario_embedded:server(?MODULE, fun({From, Ref, Key}) -> From ! {Ref, disk(Key)} end).

-spec handle(binary(), binary(), binary()) -> answer().
handle(<<"GET">>, <<"/users/", Id/binary>>, _) -> {200, store(Id)};
handle(<<"GET">>, <<"/slow">>, _) -> timer:sleep(30), {200, store(<<"slow">>)};
handle(<<"GET">>, <<"/long">>, _) -> timer:sleep(1000), {200, "long"};
handle(<<"GET">>, <<"/fail">>, _) -> _ = store(<<"fail">>), {500, "failed"};
handle(<<"GET">>, <<"/busy">>, _) -> {503, "busy"};
handle(<<"GET">>, <<"/crash">>, _) -> _ = store(<<"crash">>), error(boom);
handle(<<"GET">>, <<"/pieces">>, _) -> _ = store(<<"pieces">>), {pieces, ["one ", "two ", "three"]};
handle(<<"GET">>, <<"/endless">>, _) -> {pieces, lists:duplicate(200, lists:duplicate(1000, $e))};
handle(<<"POST">>, <<"/echo">>, Body) -> _ = store(<<"echo">>), {200, Body};
handle(<<"GET">>, <<"/">>, _) -> {200, "root"};
handle(_, _, _) -> {404, "nothing here"}.

%% The pieces with the pauses that a client sees them come by.
-spec pieces([iodata()]) -> [fun(() -> iodata())].
pieces(Pieces) ->
    [fun() -> timer:sleep(10), Piece end || Piece <- Pieces].

-spec store(binary()) -> binary().
store(Key) ->
    Ref = make_ref(),
    ?MODULE ! {self(), Ref, Key},
    receive {Ref, Value} -> Value after 5000 -> error(timeout) end.

-spec disk(binary()) -> binary().
disk(Key) -> <<"value of ", Key/binary>>.
