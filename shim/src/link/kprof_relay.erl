%% SPDX-License-Identifier: Apache-2.0
%% @doc Carries the bytes of the trace port to the collector, unchanged, and counts its messages, so
%% that none that gets lost on the way does so untold: in the end the collector is told how many the
%% port gave. When the collector is slow the relay waits, the trace port's queue fills and the port
%% counts what it drops: nothing in the node waits. So it does with the native tracer's frames,
%% which it asks for every 10 ms, at priority high: a busy thread fills the memory that they wait in
%% in some tens of milliseconds. When none came it says so by an empty frame, as the guard does to a
%% port.
%%
%% A few bytes are no reason to wake up: after little it lets some milliseconds' messages gather in
%% its socket's buffer, and takes them in one go. That is most of what a message costs the node
%% while there are few: else each wakes a poll thread, this process and the collector.
%%
%% What may block, the connection to the collector, is a process of its own, the sender. So the
%% relay can be told at any time to give the collector up: then it only counts what is still to
%% come. The collector's end does the same.
-module(kprof_relay).

-export([
    start_link/3,
    start_beside/3,
    pid/1,
    processes/1,
    drain/1, drain/2,
    give_up/1,
    finish/1,
    total/1,
    counter/1,
    count/2
]).

-export_type([relay/0, place/0]).

-define(IDLE_MS, 200).
% what is in a trace port is bounded, and nothing is in the way
-define(COUNT_MS, 2000).
-define(GATHER_MS, 10).
-define(GATHER_MAX_MS, 40).
% without a message of the native tracer, until the collector is told so again
-define(EMPTY_MS, 500).
% bytes: an eighth of the socket's buffer, so that there is room for a burst of what follows
-define(LITTLE, 32768).
-define(MESSAGES, 1).
-define(UNSENT, 2).
% of the counter of kprof_tracer:native()
-define(DROPPED, 1).

-record(way, {
    owner :: pid(),
    % what the owner is told with
    tag = ?MODULE :: module(),
    in :: kprof_tracer:source(),
    sender = self() :: pid(),
    % bytes, and messages
    counted :: counters:counters_ref(),
    total :: counters:counters_ref(),
    place = 0 :: place(),
    % false: it only counts
    carries = true :: boolean(),
    % nothing is added any more: silence is the end
    drains = false :: boolean(),
    % of the native tracer: the messages that it had given, with those dropped
    given = 0 :: non_neg_integer(),
    % ms since then; of a trace port, while it drains
    silent = 0 :: non_neg_integer()
}).

-opaque relay() :: {pid(), Sender :: pid(), Total :: counters:counters_ref()}.
-type place() :: non_neg_integer() | binary().
%% Between two pieces of the stream: how many bytes the frame begun still lacks, or the begin of a
%% header.

%% @doc Starts a relay from the trace port's socket, which stays whose it is, or the native tracer
%% ({@link kprof_tracer:open/1}), to a connection of the caller's, which its sender becomes the
%% owner of. `Counted' counts the bytes that came, and the messages as its second. The caller gets
%% `{kprof_relay, Pid, Why}' when the collector has ended the connection, after which the relay
%% counts only; and its exit, `{trace_port, Why}', when there is no more to come.
-spec start_link(kprof_tracer:source(), kprof_link:connection(), counters:counters_ref()) ->
    relay().
start_link(In, Connection, Counted) ->
    Total = counters:new(2, []),
    start(#way{owner = self(), in = In, counted = Counted, total = Total}, Connection).

%% @doc The same from the native tracer, for some of a trace that has a relay already: messages are
%% counted in that one's total, too ({@link counter/1}), the caller gets `{kprof_full_relay, Pid,
%% Why}', and in the end the collector is told that there is no more.
-spec start_beside(
    kprof_tracer:native(),
    kprof_link:connection(),
    {Counted :: counters:counters_ref(), Total :: counters:counters_ref()}
) -> relay().
start_beside(In, Connection, {Counted, Total}) ->
    start(
        #way{owner = self(), tag = kprof_full_relay, in = In, counted = Counted, total = Total},
        Connection
    ).

start(#way{in = In, total = Total} = Way0, {Module, Out} = Connection) ->
    Sender = spawn_link(fun() -> send(Connection) end),
    _ = Module:controlling_process(Out, Sender),
    Way = Way0#way{sender = Sender},
    {
        spawn_opt(
            fun() ->
                link(Sender),
                next(Way)
            end,
            [link, {fullsweep_after, 20}, {priority, priority(In)}]
        ),
        Sender,
        Total
    }.

priority({native, _, _}) -> high;
priority(_) -> normal.

%% @doc The process whose exit tells the relay's end.
-spec pid(relay()) -> pid().
pid({Pid, _, _}) ->
    Pid.

%% @doc Those that it consists of.
-spec processes(relay()) -> [pid()].
processes({Pid, Sender, _}) ->
    [Pid, Sender].

%% @doc Nothing is added any more: has the relay carry on until nothing has come for 200
%% ms, then close the connection and exit.
-spec drain(relay()) -> ok.
drain({Pid, _, _}) ->
    Pid ! drain,
    ok.

%% @doc The same, and waits for it, `Timeout' ms at most, then as {@link finish/1}.
-spec drain(relay(), timeout()) -> ok.
drain({Pid, _, _} = Relay, Timeout) ->
    ok = drain(Relay),
    receive
        {'EXIT', Pid, _} -> ok
    after Timeout -> finish(Relay)
    end.

%% @doc Has the relay close the connection at once. From then on it only counts.
-spec give_up(relay()) -> ok.
give_up({Pid, _, _}) ->
    Pid ! give_up,
    ok.

%% @doc Has it do so, drain, and waits for its end, 2 seconds at most: then it is killed. The caller
%% must be the one that started it, and trap exits.
-spec finish(relay()) -> ok.
finish({Pid, _, _} = Relay) ->
    ok = give_up(Relay),
    ok = drain(Relay),
    receive
        {'EXIT', Pid, _} -> ok
    after ?COUNT_MS ->
        exit(Pid, kill),
        receive
            {'EXIT', Pid, _} -> ok
        end
    end.

%% @doc The messages that have come so far, those included that were dropped before, and how many of
%% them were not given to the sender.
-spec total(relay()) -> {Messages :: non_neg_integer(), Unsent :: non_neg_integer()}.
total({_, _, Total}) ->
    {counters:get(Total, ?MESSAGES), counters:get(Total, ?UNSENT)}.

%% @doc Where it counts the messages, for who carries some of the same trace beside it ({@link
%% kprof_full_relay}).
-spec counter(relay()) -> counters:counters_ref().
counter({_, _, Total}) ->
    Total.

%% --- the relay ---

next(#way{in = {native, State, _}} = Way) ->
    %% nobody else reads
    try {kprof_native:read(State), kprof_native:totals(State)} of
        {{[], false}, _} -> next(without(Way));
        {{Frames, true}, Totals} -> next(listen(0, given(Frames, Totals, Way)));
        {{Frames, false}, Totals} -> next(listen(?GATHER_MS, given(Frames, Totals, Way)))
    catch
        error:badarg -> over(closed, Way)
    end;
next(#way{in = In, drains = true, silent = Silent} = Way) when Silent < ?IDLE_MS ->
    %% by its own looks, not by the clock: where this VM was not run, nothing could come
    case gen_tcp:recv(In, 0, ?GATHER_MS) of
        {ok, Bytes} -> next(rest(byte_size(Bytes), (carry(Bytes, Way))#way{silent = 0}));
        {error, timeout} -> next(listen(0, Way#way{silent = Silent + ?GATHER_MS}));
        {error, Why} -> over(Why, Way)
    end;
next(#way{drains = true} = Way) ->
    over(timeout, Way);
next(#way{in = In} = Way) ->
    case gen_tcp:recv(In, 0, ?IDLE_MS) of
        {ok, Bytes} -> next(rest(byte_size(Bytes), carry(Bytes, Way)));
        {error, timeout} -> next(listen(0, Way));
        {error, Why} -> over(Why, Way)
    end.

carry(Bytes, #way{place = Before} = Way) ->
    {Messages, Place} = count(Bytes, Before),
    bytes(Bytes, Messages, Way#way{place = Place}).

bytes(Bytes, Messages, #way{counted = Counted, total = Total} = Way0) ->
    counters:add(Counted, 1, iolist_size(Bytes)),
    counters:add(Counted, 2, Messages),
    counters:add(Total, ?MESSAGES, Messages),
    Way = pass(Bytes, Way0),
    _ = Way#way.carries orelse counters:add(Total, ?UNSENT, Messages),
    Way.

given(Frames, {Read, _, Lost}, #way{in = {native, _, Dropped}, given = Before} = Way0) ->
    ok = counters:put(Dropped, ?DROPPED, Lost),
    Way = bytes(Frames, Read + Lost - Before, Way0),
    Way#way{given = Read + Lost, silent = 0}.

without(#way{drains = true, silent = Silent} = Way) when Silent >= ?IDLE_MS ->
    over(timeout, Way);
without(#way{silent = Silent} = Way0) ->
    Way =
        case Silent rem ?EMPTY_MS of
            0 -> pass(<<0, 0:32>>, Way0);
            _ -> Way0
        end,
    listen(?GATHER_MS, Way#way{silent = Silent + ?GATHER_MS}).

pass(_, #way{carries = false} = Way) ->
    Way;
pass(Bytes, #way{sender = Sender} = Way) ->
    Sender ! {send, self(), Bytes},
    sent(Way).

%% The end, or silence when that is the end: the connection is closed with all that is on its way.
over(Why, #way{carries = true, tag = kprof_full_relay} = Way) ->
    % the word that there is no more
    closed(Why, pass(<<1, 0:32>>, Way));
over(Why, Way) ->
    closed(Why, Way).

closed(Why, #way{carries = Carries, sender = Sender} = Way) ->
    _ =
        Carries andalso
            begin
                Sender ! {close, self()},
                sent(Way)
            end,
    exit({trace_port, Why}).

%% Waits for the sender, or for the word to give it up.
sent(#way{owner = Owner, tag = Tag} = Way) ->
    receive
        {sent, ok} ->
            Way;
        {sent, {error, Why}} ->
            Owner ! {Tag, self(), Why},
            Way#way{carries = false};
        give_up ->
            abandon(Way)
    end.

abandon(#way{sender = Sender} = Way) ->
    true = unlink(Sender),
    true = exit(Sender, kill),
    Way#way{carries = false}.

%% Lets messages gather after so many bytes. What is drained is on its way without delay.
rest(_, #way{drains = true} = Way) -> listen(0, Way);
rest(Size, Way) when Size < ?LITTLE div 8 -> listen(?GATHER_MAX_MS, Way);
rest(Size, Way) when Size < ?LITTLE -> listen(?GATHER_MS, Way);
rest(_, Way) -> listen(0, Way).

listen(Ms, Way) ->
    receive
        drain -> Way#way{drains = true, silent = 0};
        give_up -> abandon(Way)
    after Ms -> Way
    end.

%% --- the sender ---

send({Module, Out} = Connection) ->
    receive
        {send, Relay, Bytes} ->
            Relay ! {sent, Module:send(Out, Bytes)},
            send(Connection);
        {close, Relay} ->
            Relay ! {sent, kprof_link:close(Connection)}
    end.

%% --- counting ---

%% @doc How many messages begin in a piece of a trace port's stream (trace_ip_drv.c), and where it
%% stops: `<<0, Size:32, Message>>', one without a message when the guard has asked, and `<<1,
%% Count:32>>' for messages that were dropped.
-spec count(binary(), place()) -> {non_neg_integer(), place()}.
count(Bytes, Missing) when is_integer(Missing) -> count(Bytes, Missing, 0);
count(Bytes, Begun) -> count(<<Begun/binary, Bytes/binary>>, 0, 0).

count(Bytes, At, N) when At >= byte_size(Bytes) ->
    {N, At - byte_size(Bytes)};
count(Bytes, At, N) ->
    case Bytes of
        <<_:At/binary, 0, 0:32, _/bits>> -> count(Bytes, At + 5, N);
        <<_:At/binary, 0, Size:32, _/bits>> -> count(Bytes, At + 5 + Size, N + 1);
        <<_:At/binary, 1, Dropped:32, _/bits>> -> count(Bytes, At + 5, N + Dropped);
        <<_:At/binary, Begun/binary>> -> {N, binary:copy(Begun)}
    end.
