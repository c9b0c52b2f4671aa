%% SPDX-License-Identifier: Apache-2.0
%% Nodes that are not there, which all have the same requests at the same time and bring them in one
%% data connection, or in two: what the requests' own processes do, and what their workers do.
%%
%%   one@h     one connection
%%   two@h     two
%%   slow@h    the second is half a second behind
%%   killed@h  the second is lost in the middle of a frame, and is back 1.6 s later
%%   silent@h  the second brings nothing for two seconds, then all
%%
%% Request K begins 5 ms after the one before. It calls one, for which a worker calls two. Its
%% identity tells when it was: `before', `during' or `after' what happens to its node, or at an
%% `edge' of that.
-module(scenario_streams).

-export([main/1]).

-define(MS, 1000000).
-define(FLAGS, 18).
-define(REQUESTS, 1000).
-define(APART_MS, 5).
-define(LASTS_MS, 12).
-define(STEP_MS, 20).
% from a step's begin to the empty frame at its end; less than what the collector allows for
-define(PROMPT_MS, 20).
% around what happens to a connection, for which nothing is said: a busy machine is so late at times
-define(EDGE_MS, 600).
% behind the last request: until all are closed
-define(QUIET_MS, 2500).

-record(stream, {
    number :: 0 | 1,
    socket :: gen_tcp:socket() | undefined,
    % what it has still to bring
    left :: [{integer(), iodata()}],
    lag_ms = 0 :: non_neg_integer(),
    % messages that were brought whole
    brought = 0 :: non_neg_integer()
}).

%% main [PORT, CREATION]: prints for each node `NODE made MESSAGES, before REQUESTS after REQUESTS,
%% brought MESSAGES'.
-spec main([string()]) -> no_return().
main([Port, Creation]) ->
    Begin = erlang:monotonic_time(nanosecond) + 500 * ?MS,
    Nodes = [
        spawn_monitor(fun() ->
            node(list_to_integer(Port), What, Begin, list_to_integer(Creation))
        end)
     || What <- [one, two, slow, killed, silent]
    ],
    [
        receive
            {'DOWN', Ref, process, Pid, normal} -> ok;
            {'DOWN', Ref, process, Pid, Why} ->
                io:format("~0tP~n", [Why, 40]),
                halt(1)
        after 60000 -> halt(2)
        end
     || {Pid, Ref} <- Nodes
    ],
    halt(0).

%% When something happens to the second connection, ms from the first request on. Nothing does in
%% the first three; their requests are named as those of the fourth.
happens(silent) -> {1500, 3500};
happens(_) -> {1500, 3100}.

node(Port, What, Begin, Creation) ->
    Name = atom_to_list(What) ++ "@h",
    {Control, Session} = scenario_many:control(Port, Name, Creation),
    Labels = 100 * Creation + length(Name),
    ok = scenario_many:say(Control, #{
        type => <<"trace_started">>, at => erlang:monotonic_time(), labels => Labels
    }),
    Sent = lists:sort(
        lists:append([
            request(Name, K, Begin, {Labels bsl 32, Creation}, happens(What))
         || K <- lists:seq(0, ?REQUESTS - 1)
        ])
    ),
    Streams = [
        #stream{
            number = N,
            socket = scenario_many:data(Port, Session, N),
            left = [{Time, Frame} || {Time, Of, Frame} <- Sent, What =:= one orelse Of =:= N],
            lag_ms =
                case {What, N} of
                    {slow, 1} -> 500;
                    _ -> 0
                end
        }
     || N <- lists:seq(0, min(1, length([x || What =/= one])))
    ],
    Last = Begin + (?REQUESTS * ?APART_MS + ?QUIET_MS) * ?MS,
    Ended = steps({Port, Session, Control, What, Begin}, Streams, Last, 1),
    ok = scenario_many:stopped(Control),
    [ok = gen_tcp:close(S) || #stream{socket = S} <- Ended],
    ok = scenario_many:say(Control, #{
        type => <<"trace_total">>, labels => Labels, messages => length(Sent), unsent => 0
    }),
    timer:sleep(300),
    ok = gen_tcp:close(Control),
    Brought = lists:sum([N || #stream{brought = N} <- Ended]),
    Phases = [phase(K, happens(What)) || K <- lists:seq(0, ?REQUESTS - 1)],
    io:format("~ts made ~b, before ~b after ~b, brought ~b~n", [
        Name,
        length(Sent),
        length([x || before <- Phases]),
        length([x || 'after' <- Phases]),
        Brought
    ]).

%% --- what is brought when ---

steps({_, _, Control, What, Begin} = Node, Streams, Last, Step) ->
    Now = erlang:monotonic_time(nanosecond),
    _ = Step rem 50 =:= 0 andalso scenario_many:clock(Control),
    {From, Until} = happens(What),
    At = (Now - Begin) div ?MS,
    Then = [step(Node, Now, At >= From andalso At < Until, S) || S <- Streams],
    case Now > Last of
        true ->
            Then;
        false ->
            timer:sleep(?STEP_MS),
            steps(Node, Then, Last, Step + 1)
    end.

%% Happens: whether it is the time when something happens to the second connection.
step({_, _, _, killed, _}, _, true, #stream{number = 1, socket = undefined} = S) ->
    S;
step({_, _, _, killed, _}, _, true, #stream{number = 1, socket = Socket, left = Left} = S) ->
    [{_, Frame} | Lost] = Left,
    Bytes = iolist_to_binary(Frame),
    ok = gen_tcp:send(Socket, binary:part(Bytes, 0, byte_size(Bytes) div 2)),
    ok = gen_tcp:close(Socket),
    S#stream{socket = undefined, left = Lost};
step({Port, Session, _, killed, _} = Node, Now, false, #stream{socket = undefined} = S) ->
    Kept = [E || {Time, _} = E <- S#stream.left, Time >= Now],
    step(Node, Now, false, S#stream{socket = scenario_many:data(Port, Session, 1), left = Kept});
step({_, _, _, silent, _}, _, true, #stream{number = 1} = S) ->
    S;
step(_, Now, _, S) ->
    bring(Now, S).

%% What is due until then. An empty frame says that nothing made before it is on its way. So a
%% process that was held up since then does not send it before it has brought what was made
%% meanwhile.
bring(Now, #stream{socket = Socket, left = Left, lag_ms = Lag, brought = Brought} = S) ->
    {Due, Rest} = lists:splitwith(fun({Time, _}) -> Time =< Now - Lag * ?MS end, Left),
    ok = gen_tcp:send(Socket, [Frame || {_, Frame} <- Due]),
    More = S#stream{left = Rest, brought = Brought + length(Due)},
    Later = erlang:monotonic_time(nanosecond),
    case {Later - Now > ?PROMPT_MS * ?MS, Rest} of
        {true, _} ->
            bring(Later, More);
        {false, [{Next, _} | _]} when Next =< Now ->
            More;
        {false, _} ->
            ok = gen_tcp:send(Socket, <<0, 0:32>>),
            More
    end.

%% --- a request ---

%% Each message with its time, and which of two connections brings it.
request(Name, K, Begin, {Label, Creation}, Happens) ->
    At = Begin + K * ?APART_MS * ?MS,
    Done = At + ?LASTS_MS * ?MS + 1000 * (K rem 100),
    Pid = scenario_many:pid(Name, 100 + K rem 50, Creation),
    Worker = scenario_many:pid(Name, 200 + K rem 20, Creation),
    Own = {?FLAGS, Label + K, 0, Pid, 0},
    Asked = {?FLAGS, Label + K, 1, Pid, 0},
    Two = At + 2 * ?MS + K rem 7,
    [
        message(0, At, Pid, call, {kprof_mark, request_begin, 1}, {Own, phase(K, Happens)}),
        message(0, At + ?MS, Pid, call, {sim, one, 1}, {Own, undefined}),
        message(1, Two, Worker, call, {sim, two, 1}, {Asked, undefined}),
        message(1, Two + 3 * ?MS + K, Worker, return_from, {sim, two, 1}, ok),
        message(0, Done - ?MS, Pid, return_from, {sim, one, 1}, ok),
        message(0, Done, Pid, call, {kprof_mark, request_end, 1}, {Own, ok})
    ].

message(Stream, At, Pid, What, MFA, More) ->
    {At, Stream, scenario_many:frame({trace_ts, Pid, What, MFA, More, At})}.

phase(K, {From, Until}) ->
    case {K * ?APART_MS, K * ?APART_MS + ?LASTS_MS} of
        {_, End} when End < From - ?EDGE_MS -> before;
        {At, End} when At > From + ?EDGE_MS, End < Until - ?EDGE_MS -> during;
        {At, _} when At > Until + ?EDGE_MS -> 'after';
        _ -> edge
    end.
