%% SPDX-License-Identifier: Apache-2.0
%% @doc The tracer of full traces: a process that gets their messages and carries them to the
%% collector on a data connection of its own, beside the trace port's. A message to a process costs
%% who is traced some 60 % of what one to a trace port does, and full traces make a hundred times as
%% many of them as tiers do.
%%
%% A trace port has a driver that drops what does not fit; a process has a mailbox without bounds.
%% What bounds it here:
%%
%% <ul>
%% <li>Priority high, and messages in lists of up to 500: it takes 1.4 to 2.7 million a second,
%% where two busy processes make 1.2 million. (At normal priority 8.8 million once waited, in 2
%% GB.)</li>
%% <li>It tells how many wait, with each list. The guard looks every 10 ms ({@link look/2}), and
%% takes the flags off when they are too many: 100 MB. On a busy machine it may tell nothing for a
%% while, as the operating system runs others. That is no harm by itself, so the guard looks then at
%% the memory of all processes, which it asks for in 40 µs, and takes the flags off when that has
%% grown by 128 MB meanwhile.</li>
%% <li>What may block, the connection, is a process of its own, the sender. 16 lists at a time, 1
%% MB, may be on their way to it. Where it is slower than the messages come, a fifth of what the
%% guard allows may wait here; behind that, lists are dropped and counted, and the collector is told
%% at their place, as a trace port does it.</li>
%% </ul>
%%
%% It does not look at single messages: after a short list it lets some milliseconds' messages
%% gather. With its priority it would take the processor from who is traced: a request took 11 times
%% as long as untraced when it looked at each, and 6.3 times with lists.
%%
%% It must not end before what traces to it: where scheduling is traced, that could kill the VM
%% (otp#5984). So it outlives its connection, and counts only; and its owner, by some time.
%%
%% Where the tiers are traced by the native tracer, so are full traces: a further trace of it, in
%% memory that is bounded by itself, with a {@link kprof_relay} of its own that reads it.
-module(kprof_full_relay).

-export([start_link/3, pid/1, traced_to/1, processes/1, gauge/1, look/2]).
-export([drain/1, finish/1, ended/1, give_up/1]).

-export_type([relay/0, gauge/0]).

% messages in a list
-define(LIST, 500).
% bytes: a larger one is sent in parts; the collector takes frames of 4 MB
-define(LARGE, 1048576).
-define(CREDITS, 16).
-define(GATHER_MS, 5).
% without a message, until the collector is told that there is none
-define(EMPTY_MS, 10).
% nothing is added any more: silence is the end
-define(SILENCE_MS, 200).
-define(FINISH_MS, 2000).
% ms that it outlives its owner: the keeper of the trace port ends what traces to it meanwhile
-define(LINGER_MS, 500).
%% Messages that may wait, of some 400 bytes in memory: 100 MB. A busy process makes as many in a
%% quarter of a second; for a tenth the operating system may keep this one from working.
-define(MOST, 250000).
% for the collector: what comes behind them is dropped
-define(MOST_FOR_CREDIT, 50000).
% ms that a list waits for credit, and what is told to this process waits with it
-define(WAIT_MS, 1000).
%% The same in bytes of their external form, where they are large: before OTP 27 a tier's call
%% brings what it returns.
-define(MOST_BYTES, 67108864).
%% ms without a word, since it tells something every 10 ms: from then on what waits is not known,
%% and memory counts.
-define(LATE_MS, 50).
-define(MOST_MEMORY, 134217728).
% ms without a word, whatever there is
-define(MOST_SILENT, 2000).
% of the gauge
-define(WAITING, 1).
-define(TOLD, 2).
-define(MESSAGE_BYTES, 3).
-define(TAKEN, 4).
% of the trace port's totals (kprof_relay)
-define(MESSAGES, 1).

-record(way, {
    owner :: pid(),
    sender :: pid(),
    gauge :: atomics:atomics_ref(),
    taken :: counters:counters_ref(),
    total :: counters:counters_ref(),
    % lists given to the sender
    given = 0 :: non_neg_integer(),
    % messages, since the last list that was sent
    dropped = 0 :: non_neg_integer(),
    % false: it only counts
    carries = true :: boolean(),
    drains = false :: boolean(),
    % ms without a message
    silent = 0 :: non_neg_integer()
}).

-opaque relay() ::
    {process, pid(), Sender :: pid(), atomics:atomics_ref()}
    | {native, kprof_relay:relay(), kprof_tracer:beside()}.
-opaque gauge() :: {atomics:atomics_ref(), Memory :: non_neg_integer()}.
%% With the memory of all processes as of the last look at which it had told something lately.

%% @doc Starts one, to a data connection of the caller's, which its sender becomes the owner of.
%% `Taken' counts what it takes, bytes and messages; messages, with those that are dropped, are
%% counted in the totals of the trace port's relay ({@link kprof_relay:counter/1}). The caller
%% gets `{kprof_full_relay, Pid, Why}' when the connection has ended by itself, and its exit.
-spec start_link(
    kprof_tracer:beside(),
    kprof_link:connection(),
    {counters:counters_ref(), counters:counters_ref()}
) -> relay().
start_link({native, Source, _} = Beside, Connection, Counters) ->
    {native, kprof_relay:start_beside(Source, Connection, Counters), Beside};
start_link(process, {Module, Out} = Connection, {Taken, Total}) ->
    Owner = self(),
    Gauge = atomics:new(?TAKEN, []),
    ok = atomics:put(Gauge, ?TOLD, now_ms()),
    Sender = spawn_opt(fun() -> send(Connection, Gauge) end, [link, {priority, high}]),
    _ = Module:controlling_process(Out, Sender),
    Way = #way{owner = Owner, sender = Sender, gauge = Gauge, taken = Taken, total = Total},
    Pid = spawn_opt(
        fun() ->
            _ = process_flag(trap_exit, true),
            _ = seq_trace:set_token([]),
            link(Sender),
            next(Way)
        end,
        [link, {priority, high}, {message_queue_data, off_heap}, {fullsweep_after, 20}]
    ),
    {process, Pid, Sender, Gauge}.

%% @doc The process whose exit tells its end.
-spec pid(relay()) -> pid().
pid({process, Pid, _, _}) -> Pid;
pid({native, Relay, _}) -> kprof_relay:pid(Relay).

%% @doc What is to be traced to.
-spec traced_to(relay()) -> pid() | kprof_tracer:native().
traced_to({process, Pid, _, _}) -> Pid;
traced_to({native, _, {native, Source, _}}) -> Source.

%% @doc Those that it consists of.
-spec processes(relay()) -> [pid()].
processes({process, Pid, Sender, _}) -> [Pid, Sender];
processes({native, Relay, _}) -> kprof_relay:processes(Relay).

%% @doc What the guard looks at, if there is need for that.
-spec gauge(relay()) -> gauge() | none.
gauge({process, _, _, Gauge}) -> {Gauge, erlang:memory(processes)};
gauge({native, _, _}) -> none.

%% @doc Looks, `Now' in ms, whether too much waits. It never waits for the process.
-spec look(integer(), gauge()) -> gauge() | over.
look(Now, {Gauge, Before}) ->
    Waiting = atomics:get(Gauge, ?WAITING),
    Silent = Now - atomics:get(Gauge, ?TOLD),
    Memory = erlang:memory(processes),
    if
        Waiting > ?MOST; Silent > ?MOST_SILENT ->
            over;
        Silent > ?LATE_MS, Memory - Before > ?MOST_MEMORY ->
            over;
        Silent > ?LATE_MS ->
            {Gauge, Before};
        true ->
            case Waiting * atomics:get(Gauge, ?MESSAGE_BYTES) > ?MOST_BYTES of
                true -> over;
                false -> {Gauge, Memory}
            end
    end.

%% @doc Nothing is traced to it any more: has it carry on until nothing has come for 200 ms, then
%% tell the collector so, close the connection and exit.
-spec drain(relay()) -> ok.
drain({process, Pid, _, _}) ->
    Pid ! {?MODULE, drain},
    ok;
drain({native, Relay, _}) ->
    kprof_relay:drain(Relay).

%% @doc Waits for the end of one that drains, 2 seconds at most: then it is killed. The caller must
%% be the one that started it, and trap exits.
-spec finish(relay()) -> ok.
finish(Relay) ->
    Pid = pid(Relay),
    receive
        {'EXIT', Pid, _} -> ok
    after ?FINISH_MS ->
        exit(Pid, kill),
        receive
            {'EXIT', Pid, _} -> ok
        end
    end,
    ended(Relay).

%% @doc It has ended, without {@link finish/1}.
-spec ended(relay()) -> ok.
ended({process, _, _, _}) -> ok;
ended({native, _, Beside}) -> kprof_tracer:close_beside(Beside).

%% @doc Has it close the connection at once and drain. It only counts what is still to come.
-spec give_up(relay()) -> ok.
give_up({process, _, Sender, _} = Relay) ->
    true = exit(Sender, kill),
    drain(Relay);
give_up({native, Relay, _}) ->
    ok = kprof_relay:give_up(Relay),
    kprof_relay:drain(Relay).

%% --- the tracer ---

next(#way{owner = Owner, sender = Sender} = Way) ->
    ok = tell(Way),
    receive
        {?MODULE, drain} -> next(Way#way{drains = true, silent = 0});
        {'EXIT', Owner, _} -> linger();
        {'EXIT', Sender, Why} -> next(lost(Why, Way));
        Message -> next(gather(?LIST - 1, [Message], Way#way{silent = 0}))
    after ?EMPTY_MS -> silent(Way#way{silent = Way#way.silent + ?EMPTY_MS})
    end.

%% What stands in no list yet goes before a word of the owner's.
gather(0, Messages, Way) ->
    pass(Messages, Way);
gather(N, Messages, #way{owner = Owner, sender = Sender} = Way) ->
    receive
        {?MODULE, drain} -> (pass(Messages, Way))#way{drains = true};
        {'EXIT', Owner, _} -> linger();
        {'EXIT', Sender, Why} -> lost(Why, pass(Messages, Way));
        Message -> gather(N - 1, [Message | Messages], Way)
    after 0 ->
        Passed = pass(Messages, Way),
        receive
        after ?GATHER_MS -> Passed
        end
    end.

silent(#way{drains = true, silent = Ms} = Way) when Ms >= ?SILENCE_MS ->
    over(Way);
silent(#way{carries = true, dropped = 0} = Way) ->
    case credit(Way) of
        true -> next(give(<<0, 0:32>>, Way));
        false -> next(Way)
    end;
silent(Way) ->
    next(Way).

%% The connection has ended. Its owner ends what is traced, and has this drain then.
lost(_, #way{carries = false} = Way) ->
    Way;
lost(Why, #way{owner = Owner, total = Total, dropped = Dropped} = Way) ->
    Owner ! {?MODULE, self(), Why},
    ok = counters:add(Total, ?MESSAGES, Dropped),
    Way#way{carries = false, dropped = 0}.

%% With the word that there is no more.
over(#way{carries = true, dropped = Dropped, sender = Sender} = Way) ->
    case credit(Way) of
        true ->
            _ = give(<<(lost_here(Dropped))/binary, 1, 0:32>>, Way),
            ok = counters:add(Way#way.total, ?MESSAGES, Dropped),
            Sender ! close,
            receive
                {'EXIT', Sender, _} -> ok
            end;
        false ->
            receive
                {'EXIT', Sender, _} -> ok
            after 1 -> over(Way)
            end
    end;
over(_) ->
    ok.

-spec linger() -> no_return().
linger() ->
    receive
    after ?LINGER_MS -> exit(normal)
    end.

%% How many wait, for the guard: looking at its own mailbox costs a process as good as nothing.
tell(#way{gauge = Gauge}) ->
    ok = fetch(),
    {message_queue_len, Waiting} = process_info(self(), message_queue_len),
    ok = atomics:put(Gauge, ?WAITING, Waiting),
    atomics:put(Gauge, ?TOLD, now_ms()).

%% What many processes send at once to a mailbox that is off the heap waits in buffers, from OTP 25
%% on, and is not counted (erl_proc_sig_queue.c: 7,808 were told for a second, then 260,988). A
%% receive that gets to the end fetches it; one that waits for a new reference begins behind what is
%% known.
fetch() ->
    Ref = make_ref(),
    receive
        {Ref, fetched} -> ok
    after 0 -> ok
    end.

%% What is dropped is not encoded first: that is quicker than anybody makes messages.
pass(Reversed, #way{carries = false, total = Total} = Way) ->
    ok = counters:add(Total, ?MESSAGES, length(Reversed)),
    Way;
pass(Reversed, #way{dropped = Dropped} = Way) ->
    case has_room(Way) of
        true -> encode(lists:reverse(Reversed), length(Reversed), Way);
        false -> Way#way{dropped = Dropped + length(Reversed)}
    end.

has_room(#way{gauge = Gauge} = Way) ->
    credit(Way) orelse atomics:get(Gauge, ?WAITING) =< ?MOST_FOR_CREDIT.

encode(Messages, N, #way{gauge = Gauge} = Way) ->
    Bytes = term_to_binary(Messages),
    case byte_size(Bytes) > ?LARGE andalso N > 1 of
        true ->
            {Before, Behind} = lists:split(N div 2, Messages),
            encode(Behind, N - N div 2, encode(Before, N div 2, Way));
        false ->
            ok = atomics:put(Gauge, ?MESSAGE_BYTES, mean(byte_size(Bytes), N, Gauge)),
            ok = counters:add(Way#way.taken, 1, byte_size(Bytes)),
            ok = counters:add(Way#way.taken, 2, N),
            hand(N, Bytes, ?WAIT_MS, Way)
    end.

%% Of the messages of late: one large message in a short list says nothing of those that wait.
mean(Bytes, N, Gauge) ->
    (atomics:get(Gauge, ?MESSAGE_BYTES) * ?LIST + Bytes) div (?LIST + N).

%% While it waits for credit it does not look into its mailbox, which may be long, nor at the
%% sender: one whose socket is full is suspended, and whether it is alive would be answered when it
%% goes on.
hand(N, Bytes, Left, #way{carries = Carries, total = Total, dropped = Dropped} = Way) ->
    case Carries andalso credit(Way) of
        true ->
            ok = counters:add(Total, ?MESSAGES, N + Dropped),
            Frame = [lost_here(Dropped), <<0, (byte_size(Bytes)):32>>, Bytes],
            give(Frame, Way#way{dropped = 0});
        false when not Carries ->
            ok = counters:add(Total, ?MESSAGES, N),
            Way;
        false ->
            ok = tell(Way),
            case Left > 0 andalso has_room(Way) of
                true ->
                    receive
                    after 1 -> hand(N, Bytes, Left - 1, Way)
                    end;
                false ->
                    Way#way{dropped = Dropped + N}
            end
    end.

lost_here(0) -> <<>>;
lost_here(Dropped) -> <<1, Dropped:32>>.

credit(#way{given = Given, gauge = Gauge}) ->
    Given - atomics:get(Gauge, ?TAKEN) < ?CREDITS.

give(Bytes, #way{sender = Sender, given = Given} = Way) ->
    Sender ! {send, Bytes},
    Way#way{given = Given + 1}.

%% --- the sender ---

send({Module, Out} = Connection, Gauge) ->
    receive
        {send, Bytes} ->
            case Module:send(Out, Bytes) of
                ok ->
                    ok = atomics:add(Gauge, ?TAKEN, 1),
                    send(Connection, Gauge);
                {error, Why} ->
                    exit({data_connection, Why})
            end;
        close ->
            kprof_link:close(Connection)
    end.

now_ms() ->
    erlang:monotonic_time(millisecond).
