%% SPDX-License-Identifier: Apache-2.0
%% Many nodes that are not there: each is a process of this node that speaks the shim's protocol and
%% sends the trace messages of requests whose numbers are known. Node I (1, 2, ...) is named
%% simI@hostI.example.org. Its request K has the identity id_(K rem 4), calls one, and in that I rem
%% 3 times two; one(I, K) and two(I, K) say how long a call lasts.
-module(scenario_many).

-export([run/4, expected/2, hello_only/2, comes_twice/2, strange/2]).
%% what a node that is not there needs, for others that make such nodes
-export([control/3, data/3, say/2, clock/1, stopped/1, frame/1, pid/3]).

-define(BATCH_MS, 50).
-define(FLAGS, 18).
% ns between two requests
-define(GAP, 50000).

%% Nodes 1 .. Count each send Batches batches of PerBatch requests, one batch every 50 ms, and stop
%% in order. Creation is that of their pids.
-spec run(
    inet:port_number(),
    pos_integer(),
    {Batches :: pos_integer(), PerBatch :: pos_integer()},
    pos_integer()
) -> ok.
run(Port, Count, Size, Creation) ->
    Nodes = [spawn_monitor(fun() -> node(Port, I, Size, Creation) end) || I <- lists:seq(1, Count)],
    [
        receive
            {'DOWN', Ref, process, Pid, Why} -> normal = Why
        after 120000 -> exit(hangs)
        end
     || {Pid, Ref} <- Nodes
    ],
    ok.

%% What the statistics must hold of node I after N requests: requests, calls of two, ns of one and
%% of two, errors.
-spec expected(pos_integer(), pos_integer()) -> [integer()].
expected(I, N) ->
    Ks = lists:seq(1, N),
    [
        N,
        N * (I rem 3),
        lists:sum([one(I, K) || K <- Ks]),
        (I rem 3) * lists:sum([two(I, K) || K <- Ks]),
        length([K || K <- Ks, failed(K)])
    ].

one(I, K) -> 10000 + 100 * I + K rem 1000.
two(I, K) -> 1000 + I + K rem 10.
failed(K) -> K rem 10 =:= 0.

%% --- a node ---

name(I) -> lists:flatten(io_lib:format("sim~b@host~b.example.org", [I, I])).

node(Port, I, Size, Creation) ->
    {Control, Data} = connect(Port, I, Creation),
    Label = (I * 1000 + Creation) bsl 32,
    ok = say(Control, #{
        type => <<"trace_started">>, at => erlang:monotonic_time(), labels => Label bsr 32
    }),
    ok = batches(Control, Data, I, Size, {Label, Creation}, 1),
    % until all is closed: grace and half a second behind
    quiet(Control, Data, 40),
    ok = stopped(Control),
    ok = gen_tcp:close(Data),
    timer:sleep(200),
    gen_tcp:close(Control).

connect(Port, I, Creation) ->
    {Control, Session} = control(Port, name(I), Creation),
    {Control, data(Port, Session, 0)}.

%% The control connection of a node with the tiers one and two; and its session.
-spec control(inet:port_number(), string(), pos_integer()) ->
    {gen_tcp:socket(), {integer(), binary()}}.
control(Port, Name, Creation) ->
    {Control, Welcome} = hello(Port, Name, Creation, <<"0.1.0">>),
    #{<<"session">> := Session, <<"key">> := {bin, Key}} = Welcome,
    % pings come, and are of no interest
    ok = inet:setopts(Control, [{active, true}]),
    ok = say(Control, #{
        type => <<"tiers">>,
        identity => <<"none">>,
        stats => false,
        calls => false,
        slow => false,
        tiers => [
            #{name => <<"one">>, m => <<"sim">>, f => <<"one">>, a => 1},
            #{name => <<"two">>, m => <<"sim">>, f => <<"two">>, a => 1}
        ]
    }),
    {Control, {Session, Key}}.

%% A data connection of that session, for raw bytes.
-spec data(inet:port_number(), {integer(), binary()}, non_neg_integer()) -> gen_tcp:socket().
data(Port, {Session, Key}, Stream) ->
    {ok, Data} = gen_tcp:connect({127, 0, 0, 1}, Port, [
        binary, {active, false}, {packet, 4}, {nodelay, true}
    ]),
    ok = say(Data, #{
        type => <<"hello">>,
        role => <<"data">>,
        protocol => 1,
        session => Session,
        key => {bin, Key},
        stream => Stream
    }),
    ok = inet:setopts(Data, [{packet, raw}]),
    Data.

%% The control connection of a node that then says nothing more, as one whose machine has lost its
%% power. Stays open while the caller lives.
-spec hello_only(inet:port_number(), pos_integer()) -> gen_tcp:socket().
hello_only(Port, I) ->
    {Control, _} = hello(Port, name(I), 1, <<"0.1.0">>),
    Control.

%% A node comes, and comes again at once, while the first connection stays, for ever silent. `slow'
%% when it was not at once.
-spec comes_twice(inet:port_number(), pos_integer()) -> kept | pushed_out | slow.
comes_twice(Port, I) ->
    Self = self(),
    First = spawn(fun() ->
        Socket = hello_only(Port, I),
        Self ! {self(), there},
        receive
            leave -> gen_tcp:close(Socket)
        end
    end),
    Began = erlang:monotonic_time(millisecond),
    receive
        {First, there} -> ok
    end,
    Again =
        try gen_tcp:close(hello_only(Port, I)) of
            ok -> pushed_out
        catch
            error:_ -> kept
        end,
    case erlang:monotonic_time(millisecond) - Began < 1000 of
        true ->
            Again;
        false ->
            First ! leave,
            slow
    end.

%% The same of another release, with a clock that is 100 s ahead, and says so.
-spec strange(inet:port_number(), pos_integer()) -> ok.
strange(Port, I) ->
    {Control, _} = hello(Port, name(I), 1, <<"9.9.9">>),
    say(Control, #{
        type => <<"clock">>,
        at => erlang:monotonic_time(nanosecond) + 100000000000,
        time_offset => erlang:time_offset(nanosecond),
        unsampled => 0,
        off_ms => 0
    }).

hello(Port, Name, Creation, Version) ->
    {ok, Control} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}, {packet, 4}]),
    ok = say(Control, #{
        type => <<"hello">>,
        role => <<"control">>,
        protocol => 1,
        node => list_to_binary(Name),
        otp => <<"25">>,
        os_pid => 1,
        ticks_per_second => 1000000000,
        time_offset => erlang:time_offset(nanosecond),
        creation => Creation,
        version => Version
    }),
    {ok, Bytes} = gen_tcp:recv(Control, 0, 10000),
    {ok, #{<<"type">> := <<"welcome">>} = Welcome} = kprof_msgpack:decode(Bytes),
    {Control, Welcome}.

%% A message of the control protocol.
-spec say(gen_tcp:socket(), map()) -> ok | {error, term()}.
say(Socket, Map) -> gen_tcp:send(Socket, kprof_msgpack:encode(Map)).

%% The trace has been stopped in order.
-spec stopped(gen_tcp:socket()) -> ok.
stopped(Control) ->
    ok = say(Control, #{
        type => <<"trace_stopped">>,
        at => erlang:monotonic_time(),
        reason => <<"stopped">>,
        text => <<>>
    }).

%% What a shim says every second.
-spec clock(gen_tcp:socket()) -> ok.
clock(Control) ->
    ok = say(Control, #{
        type => <<"clock">>,
        at => erlang:monotonic_time(nanosecond),
        time_offset => erlang:time_offset(nanosecond),
        unsampled => 0,
        off_ms => 0
    }).

batches(_, _, _, {0, _}, _, _) ->
    ok;
batches(Control, Data, I, {Left, PerBatch}, Trace, K) ->
    _ = Left rem 20 =:= 0 andalso clock(Control),
    Now = erlang:monotonic_time(nanosecond),
    Frames = [
        request(I, N, Now - (K + PerBatch - N) * ?GAP, Trace)
     || N <- lists:seq(K, K + PerBatch - 1)
    ],
    ok = gen_tcp:send(Data, [Frames, <<0, 0:32>>]),
    timer:sleep(?BATCH_MS),
    batches(Control, Data, I, {Left - 1, PerBatch}, Trace, K + PerBatch).

%% What the gauge sends of a port where nothing happens.
quiet(_, _, 0) ->
    ok;
quiet(Control, Data, Left) ->
    _ = Left rem 20 =:= 0 andalso clock(Control),
    ok = gen_tcp:send(Data, <<0, 0:32>>),
    timer:sleep(?BATCH_MS),
    quiet(Control, Data, Left - 1).

%% --- a request ---

request(I, K, At, {Label, Creation}) ->
    Pid = pid(name(I), 100 + K rem 50, Creation),
    Token = {?FLAGS, Label + K, 0, Pid, 0},
    Identity = lists:nth(1 + K rem 4, [id_0, id_1, id_2, id_3]),
    {Calls, End} = twos(I rem 3, Pid, Token, two(I, K), At + 1000, []),
    Done = At + one(I, K),
    true = End < Done,
    Outcome =
        case failed(K) of
            true -> error;
            false -> ok
        end,
    [
        frame({trace_ts, Pid, call, {kprof_mark, request_begin, 1}, {Token, Identity}, At}),
        frame({trace_ts, Pid, call, {sim, one, 1}, {Token, undefined}, At}),
        Calls,
        case failed(K) of
            true ->
                frame({trace_ts, Pid, exception_from, {sim, one, 1}, {error, on_purpose}, Done});
            false ->
                frame({trace_ts, Pid, return_from, {sim, one, 1}, ok, Done})
        end,
        frame({trace_ts, Pid, call, {kprof_mark, request_end, 1}, {Token, Outcome}, Done})
    ].

twos(0, _, _, _, At, Acc) ->
    {lists:reverse(Acc), At};
twos(N, Pid, Token, Lasts, At, Acc) ->
    Call = [
        frame({trace_ts, Pid, call, {sim, two, 1}, {Token, undefined}, At}),
        frame({trace_ts, Pid, return_from, {sim, two, 1}, ok, At + Lasts})
    ],
    twos(N - 1, Pid, Token, Lasts, At + Lasts + 10, [Call | Acc]).

%% A trace message as a frame.
-spec frame(term()) -> iodata().
frame(Term) ->
    Bytes = term_to_binary(Term),
    [<<0, (byte_size(Bytes)):32>>, Bytes].

%% A process of a node that is not there.
-spec pid(string(), non_neg_integer(), pos_integer()) -> pid().
pid(Name, Number, Creation) ->
    <<131, Atom/binary>> = term_to_binary(list_to_atom(Name)),
    binary_to_term(<<131, 88, Atom/binary, Number:32, 0:32, Creation:32>>).
