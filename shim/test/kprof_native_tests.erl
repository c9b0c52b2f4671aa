%% SPDX-License-Identifier: Apache-2.0
%% The native tracer in a node, each test in one of its own: every event is read or told as dropped,
%% its library comes and goes, and where it does not come the trace is one to a port.
-module(kprof_native_tests).
-include("patient.hrl").

% a thread may lose its processor between two clocks, and take what comes of that for the same time
-define(CLOCKS_NS, 2000000).

-export([called/1, failing/0]).
-export([adds_up/1, times/1, dropped/1, owner_dies/1, full/1, readers/1]).
-export([taken/1, taken_while_it_goes/1]).
-export([folder/1, damaged/1, traces/1, others_messages/1, instead/1]).

native_test_() ->
    [
        {Name, {timeout, 300, fun() -> on_node(Test) end}}
     || {Name, Test} <- [
            {"each event is read", adds_up},
            {"its times are the VM's", times},
            {"what does not fit is told", dropped},
            {"its owner dies", owner_dies},
            {"there are eight traces", full},
            {"two that read", readers},
            {"messages with a token", taken},
            {"the library goes while it is the system tracer", taken_while_it_goes},
            {"the library goes through a private folder", folder},
            {"a damaged library", damaged},
            {"a trace of requests", traces},
            {"the system tracer is somebody else", others_messages},
            {"a port instead", instead}
        ]
    ].

%% On a new node, which has the tests and the shim as this one has, and a folder for the library.
on_node(Test) ->
    Folder = lists:flatten(
        io_lib:format("~ts/kprof-native-~ts-~b", [
            os:getenv("TMPDIR", "/tmp"), os:getpid(), erlang:unique_integer([positive])
        ])
    ),
    ok = file:make_dir(Folder),
    Pa = lists:append([["-pa", D] || D <- code:get_path(), filelib:is_file(D ++ "/kprof.app")]),
    {ok, Peer, _} = peer:start(#{
        wait_boot => 300000,
        connection => standard_io,
        args => Pa ++ ["-pa", filename:dirname(code:which(?MODULE))],
        env => [{"TMPDIR", Folder}]
    }),
    try
        ok = peer:call(Peer, ?MODULE, Test, [Folder], 200000)
    after
        peer:stop(Peer),
        ok = file:del_dir_r(Folder)
    end.

%% --- what is traced ---

called(N) -> N.
failing() -> error(on_purpose).

patterns() ->
    [{{?MODULE, F, A}, [{'_', [], [{exception_trace}]}]} || {F, A} <- [{called, 1}, {failing, 0}]].

open() ->
    ok = kprof_library:load(),
    {ok, Tracer, {native, State, _}} = kprof_tracer:open(native),
    {Tracer, State}.

trace(Tracer) ->
    kprof_tracer:set_patterns(Tracer, patterns()),
    kprof_tracer:set_flags(Tracer, [], []).

%% In so many processes at once, so many times each. Four events a time.
work(Processes, Times) ->
    Pids = [
        spawn_monitor(fun() ->
            [
                begin
                    ?MODULE:called(N),
                    catch ?MODULE:failing()
                end
             || N <- lists:seq(1, Times)
            ]
        end)
     || _ <- lists:seq(1, Processes)
    ],
    [
        receive
            {'DOWN', Ref, process, Pid, Why} -> ?assertEqual(normal, Why)
        end
     || {Pid, Ref} <- Pids
    ],
    4 * Processes * Times.

read_all(State) -> read_all(State, 10).

%% The last events of a thread are there when its process has gone on, or nearly.
read_all(_, 0) ->
    [];
read_all(State, Again) ->
    case kprof_native:read(State) of
        {[], false} ->
            timer:sleep(10),
            read_all(State, Again - 1);
        {Frames, _} ->
            Frames ++ read_all(State, Again)
    end.

are_frames(Frames) ->
    lists:foreach(fun(<<2, Size:32, _:Size/binary>>) -> ok end, Frames).

%% --- the tests ---

adds_up(_) ->
    {Tracer, State} = open(),
    ok = trace(Tracer),
    Events = work(4, 1000),
    ok = kprof_tracer:undo(Tracer, patterns()),
    work(1, 100),
    Frames = read_all(State),
    are_frames(Frames),
    {Messages, Bytes, Dropped} = kprof_native:totals(State),
    ?assertEqual({Events, 0}, {Messages, Dropped}),
    ?assertEqual(iolist_size(Frames), Bytes),
    ok = kprof_tracer:close(Tracer, now),
    ?assertError(badarg, kprof_native:read(State)),
    ok.

%% Of the first record of each block: between what the VM's clock says before and after what was
%% traced, but for what lies between two clocks that are read one after the other.
times(_) ->
    {Tracer, State} = open(),
    ok = trace(Tracer),
    [
        begin
            timer:sleep(Ms),
            Before = ns(),
            _ = work(1, 10),
            After = ns(),
            [Time] = [begun(Frame) || Frame <- read_all(State)],
            ?assert(Time > Before - ?CLOCKS_NS),
            ?assert(Time < After + ?CLOCKS_NS)
        end
     || Ms <- [0, 5, 50, 500, 50, 5, 0]
    ],
    ok = kprof_tracer:undo(Tracer, patterns()),
    kprof_tracer:close(Tracer, now).

ns() -> erlang:monotonic_time(nanosecond).

begun(<<2, _:32, 1, _, 119, Size, _Node:Size/binary, Time:64/little-signed, _/binary>>) -> Time;
begun(<<2, _:32, 1, _, 100, Size:16, _Node:Size/binary, Time:64/little-signed, _/binary>>) -> Time.

dropped(_) ->
    ok = kprof_library:load(),
    State = kprof_native:open(#{ring_bytes => 65536}),
    Session = kprof_vm:session({kprof_native, State}),
    [1 = kprof_vm:pattern(Session, MFA, Spec) || {MFA, Spec} <- patterns()],
    ok = kprof_vm:trace(Session, all, true, [call, arity]),
    Events = work(4, 5000),
    ok = kprof_vm:trace(Session, all, false, [call, arity]),
    are_frames(read_all(State)),
    {Messages, _, Dropped} = kprof_native:totals(State),
    ?assert(Dropped > 0),
    ?assertEqual(Events, Messages + Dropped),
    kprof_native:close(State).

%% Nothing is traced any more, and the trace is closed.
owner_dies(_) ->
    Self = self(),
    Owner = spawn(fun() ->
        {Tracer, State} = open(),
        true = kprof_tracer:take_messages(Tracer),
        ok = trace(Tracer),
        Self ! {State, kprof_tracer:keeper(Tracer)},
        receive
            never -> ok
        end
    end),
    {State, Keeper} =
        receive
            Told -> Told
        end,
    work(1, 10),
    ?assertEqual({kprof_native, State}, seq_trace:get_system_tracer()),
    Ref = erlang:monitor(process, Keeper),
    exit(Owner, kill),
    receive
        {'DOWN', Ref, process, _, Why} -> ?assertEqual(normal, Why)
    end,
    ?assertEqual(false, seq_trace:get_system_tracer()),
    ?assertError(badarg, kprof_native:read(State)),
    work(1, 10),
    {flags, Flags} = erlang:trace_info(new, flags),
    ?assertEqual([], Flags),
    ok.

full(_) ->
    ok = kprof_library:load(),
    States = [kprof_native:open(#{}) || _ <- lists:seq(1, 8)],
    ?assert(lists:all(fun is_integer/1, States)),
    ?assertEqual(8, length(lists:usort(States))),
    ?assertEqual(full, kprof_native:open(#{})),
    ?assertMatch({error, _}, kprof_tracer:open(native)),
    ok = kprof_native:close(hd(States)),
    ?assertError(badarg, kprof_native:close(hd(States))),
    Next = kprof_native:open(#{}),
    ?assertNot(lists:member(Next, States)),
    ok.

%% Each frame comes to one of them.
readers(_) ->
    {Tracer, State} = open(),
    ok = trace(Tracer),
    Self = self(),
    Readers = [
        spawn_link(fun() -> Self ! {self(), reads(State, [])} end)
     || _ <- lists:seq(1, 2)
    ],
    Events = work(4, 1000),
    ok = kprof_tracer:undo(Tracer, patterns()),
    timer:sleep(100),
    [Reader ! over || Reader <- Readers],
    Frames = [
        Frame
     || Reader <- Readers,
        Frame <-
            receive
                {Reader, Read} -> Read
            end
    ],
    are_frames(Frames),
    Last = read_all(State),
    {Messages, Bytes, Dropped} = kprof_native:totals(State),
    ?assertEqual(Events, Messages + Dropped),
    ?assertEqual(Bytes, iolist_size(Frames) + iolist_size(Last)),
    kprof_tracer:close(Tracer, now).

reads(State, Read) ->
    Frames =
        case kprof_native:read(State) of
            busy -> [];
            {New, _} -> New
        end,
    receive
        over -> Frames ++ Read
    after 0 -> reads(State, Frames ++ Read)
    end.

%% --- messages with a token ---

%% What processes send, and what they take out of their mailboxes, is told, when the token says so,
%% and only then: labels of every kind, and messages that are exit signals, too.
taken(_) ->
    ok = kprof_library:load(),
    State = kprof_native:open(#{}),
    ?assertEqual(false, seq_trace:set_system_tracer({kprof_native, State})),
    Labels = [17, -1, 1 bsl 70, {a, "label"}, binary:copy(<<"long">>, 500)],
    %% of a label that is too long nothing is told
    Told = [read_after(State, fun() -> asks(Label, ['receive']) end) || Label <- Labels],
    ?assertEqual([2, 2, 2, 2, 0], Told),
    ?assertEqual([0, 2, 4, 2, 2], [
        read_after(State, fun() -> asks(17, Flags) end)
     || Flags <- [
            [],
            [send],
            [send, 'receive'],
            ['receive', print, timestamp],
            ['receive', strict_monotonic_timestamp]
        ]
    ]),
    ?assertEqual(2, read_after(State, fun() -> dies(17) end)),
    {Messages, _, 0} = kprof_native:totals(State),
    ?assertEqual(20, Messages),
    ok = kprof_native:close(State),
    %% it goes by itself
    asks(17, ['receive']),
    ?assertEqual(false, seq_trace:get_system_tracer()),
    ok.

%% Under a token: a process that answers, and the answer.
asks(Label, Flags) ->
    Echo = spawn(fun() ->
        receive
            {From, What} -> From ! What
        end
    end),
    under(Label, Flags, fun() ->
        Echo ! {self(), {taken, [make_ref()]}},
        receive
            {taken, _} -> ok
        end
    end).

%% And one whose exit signal is a message.
dies(Label) ->
    Dead = spawn(fun() ->
        receive
            die -> exit(on_purpose)
        end
    end),
    _ = process_flag(trap_exit, true),
    link(Dead),
    under(Label, ['receive'], fun() ->
        Dead ! die,
        receive
            {'EXIT', Dead, on_purpose} -> ok
        end
    end),
    _ = process_flag(trap_exit, false),
    ok.

under(Label, Flags, Fun) ->
    _ = seq_trace:set_token(label, Label),
    _ = [seq_trace:set_token(Flag, true) || Flag <- Flags],
    Fun(),
    _ = seq_trace:set_token([]),
    ok.

%% How many messages of the trace this brings.
read_after(State, Fun) ->
    {Before, _, 0} = kprof_native:totals(State),
    Fun(),
    are_frames(read_all(State)),
    {After, _, 0} = kprof_native:totals(State),
    After - Before.

%% Over and over, with tokens in many processes all the while: nothing is in the way of the library,
%% and messages of its next load are told.
taken_while_it_goes(_) ->
    Working = [spawn_link(fun() -> asks_on(N) end) || N <- lists:seq(1, 8)],
    [
        begin
            ok = kprof_library:load(),
            State = kprof_native:open(#{}),
            _ = seq_trace:set_system_tracer({kprof_native, State}),
            timer:sleep(20),
            ?assert(read_all(State, 1) =/= []),
            _ = N rem 3 =:= 0 andalso kprof_native:close(State),
            _ = N rem 3 =:= 1 andalso seq_trace:set_system_tracer(false),
            true = code:delete(kprof_native),
            _ = code:purge(kprof_native),
            timer:sleep(10),
            ?assertEqual(false, seq_trace:get_system_tracer())
        end
     || N <- lists:seq(1, 30)
    ],
    [unlink(Pid) || Pid <- Working],
    [exit(Pid, kill) || Pid <- Working],
    ok.

asks_on(N) ->
    asks(N, ['receive']),
    asks_on(N).

%% --- its library ---

library() ->
    Name = "kprof_native-" ++ binary_to_list(kprof_library:architecture()) ++ ".so",
    {ok, Bytes} = file:read_file(filename:join(code:priv_dir(kprof), Name)),
    Bytes.

carry(Bytes) ->
    application:set_env(kprof, libraries, #{kprof_library:architecture() => Bytes}).

%% Whether this process of the operating system has the library.
is_mapped() ->
    {ok, Maps} = file:read_file("/proc/self/maps"),
    binary:match(Maps, <<"kprof_native">>) =/= nomatch.

folder(Folder) ->
    ok = carry(library()),
    ?assertNot(kprof_native:is_loaded()),
    ?assertNot(is_mapped()),
    ok = kprof_library:load(),
    ?assert(kprof_native:is_loaded()),
    ?assert(is_mapped()),
    ?assertEqual({ok, []}, file:list_dir(Folder)),
    {Tracer, _} = open(),
    ok = trace(Tracer),
    work(4, 100),
    ok = kprof_tracer:undo(Tracer, patterns()),
    ok = kprof_tracer:close(Tracer, now),
    true = code:delete(kprof_native),
    _ = code:purge(kprof_native),
    %% not at once: the VM keeps the library until each of its threads has come by
    ok = wait_unmapped(500),
    work(1, 10),
    %% and again
    ok = kprof_library:load(),
    ?assert(is_mapped()),
    ok.

damaged(Folder) ->
    <<Half:2000/binary, _/binary>> = library(),
    [
        begin
            ok = carry(Bytes),
            {error, Why} = kprof_library:load(),
            ?assert(length(lists:flatten(io_lib:format("~ts", [Why]))) > 10),
            ?assertNot(kprof_native:is_loaded())
        end
     || Bytes <- [<<>>, <<"no library">>, Half]
    ],
    ?assertEqual({ok, []}, file:list_dir(Folder)),
    ok.

%% --- in a whole trace ---

start(Mock) ->
    ok = kprof:start(),
    kprof:start_trace([
        {tier_config, [{called, {?MODULE, called, 1}}]},
        {collector, {"127.0.0.1", kprof_mock_collector:port(Mock)}},
        {tracer, native}
    ]).

traces(_) ->
    Mock = kprof_mock_collector:start(),
    ok = start(Mock),
    ?assertEqual([], kprof_life:warnings()),
    #{<<"tracer">> := <<"native">>} = kprof_mock_collector:wait_control(
        Mock, <<"trace_started">>
    ),
    ?assertMatch({kprof_native, _}, seq_trace:get_system_tracer()),
    %% a part of a binary that does not begin at a byte, an empty one, and what is neither
    <<_:3, Odd/binary>> = <<1:3, "begins at a bit">>,
    Names = [undefined, read, Odd, <<>>, {<<"pair">>, <<"of two">>}, 'möglich'],
    [
        begin
            kprof:set_token(lists:nth(N rem length(Names) + 1, Names)),
            ?assertEqual({'receive', true}, seq_trace:get_token('receive')),
            ?assertEqual({send, true}, seq_trace:get_token(send)),
            ?MODULE:called(N),
            _ = N =:= 50 andalso echoed(100),
            kprof:clear_token()
        end
     || N <- lists:seq(1, 100)
    ],
    ok = kprof:stop_trace(),
    ?assertEqual(false, seq_trace:get_system_tracer()),
    #{<<"messages">> := Messages, <<"unsent">> := 0} = kprof_mock_collector:wait_control(
        Mock, <<"trace_total">>
    ),
    %% each has a call and a return of the tier, and the markers'; and there and back again, each
    %% sent and taken
    ?assert(Messages >= 400 + 400),
    [Stream] = kprof_mock_collector:data(Mock),
    Blocks = blocks(Stream),
    ?assert(byte_size(Blocks) > 1000),
    [
        ?assertNotEqual({Name, nomatch}, {Name, binary:match(Blocks, Encoded)})
     || Name <- tl(Names), Encoded <- [encoded(Name)]
    ],
    {flags, Flags} = erlang:trace_info(new, flags),
    ?assertEqual([], Flags),
    ?assertEqual({match_spec, false}, erlang:trace_info({?MODULE, called, 1}, match_spec)),
    ok = kprof:unload(),
    wait_unmapped(500).

encoded(read) -> <<119, 4, "read">>;
encoded(Term) when is_binary(Term) -> <<109, (byte_size(Term)):32, Term/binary>>;
encoded(Term) ->
    <<131, Encoded/binary>> = term_to_binary(Term),
    Encoded.

%% So many messages to a process, and back.
echoed(N) ->
    Echo = spawn_link(fun echo/0),
    [
        begin
            Echo ! self(),
            receive
                Echo -> ok
            end
        end
     || _ <- lists:seq(1, N)
    ],
    unlink(Echo),
    exit(Echo, kill).

echo() ->
    receive
        From -> From ! self()
    end,
    echo().

%% Who is that stays it, is sent nothing of ours, and a line says so.
others_messages(_) ->
    Other = spawn(fun Others() ->
        receive
            {count, From} -> From ! element(2, process_info(self(), message_queue_len))
        end,
        Others()
    end),
    _ = seq_trace:set_system_tracer(Other),
    Mock = kprof_mock_collector:start(),
    ok = start(Mock),
    [Warning] = kprof_life:warnings(),
    ?assertMatch("does not see which messages processes take, as " ++ _, Warning),
    kprof:set_token(),
    ?assertEqual({'receive', false}, seq_trace:get_token('receive')),
    ?MODULE:called(1),
    echoed(10),
    kprof:clear_token(),
    Other ! {count, self()},
    receive
        Count -> ?assertEqual(0, Count)
    end,
    ok = kprof:stop_trace(),
    ?assertEqual(Other, seq_trace:get_system_tracer()),
    _ = seq_trace:set_system_tracer(false),
    %% the next trace has it
    ok = start(Mock),
    ?assertEqual([], kprof_life:warnings()),
    ?assertMatch({kprof_native, _}, seq_trace:get_system_tracer()),
    %% somebody takes it over: that is noticed within half a second, and told
    _ = seq_trace:set_system_tracer(Other),
    #{<<"reason">> := <<"messages">>, <<"from">> := From, <<"until">> := Until} =
        kprof_mock_collector:wait_control(Mock, <<"gap">>),
    ?assert(From < Until),
    [Lost] = kprof_life:warnings(),
    ?assertMatch("does not see which messages processes take, as " ++ _, Lost),
    kprof:set_token(),
    ?assertEqual({'receive', false}, seq_trace:get_token('receive')),
    ?assertEqual({send, false}, seq_trace:get_token(send)),
    ?MODULE:called(1),
    echoed(10),
    kprof:clear_token(),
    Other ! {count, self()},
    receive
        Still -> ?assertEqual(0, Still)
    end,
    ok = kprof:stop_trace(),
    ?assertEqual(Other, seq_trace:get_system_tracer()),
    ok.

wait_unmapped(0) ->
    error(mapped);
wait_unmapped(N) ->
    case is_mapped() of
        true ->
            timer:sleep(100),
            wait_unmapped(N - 1);
        false ->
            ok
    end.

blocks(<<0, 0:32, Rest/binary>>) -> blocks(Rest);
blocks(<<1, 0:32, Rest/binary>>) -> blocks(Rest);
blocks(<<2, Size:32, Block:Size/binary, Rest/binary>>) -> <<Block/binary, (blocks(Rest))/binary>>;
blocks(<<>>) -> <<>>.

instead(_) ->
    ok = carry(<<"no library">>),
    Mock = kprof_mock_collector:start(),
    ok = start(Mock),
    [Warning] = kprof_life:warnings(),
    ?assertMatch("traces to a port, not by the native tracer: " ++ _, Warning),
    #{<<"tracer">> := <<"port">>} = kprof_mock_collector:wait_control(
        Mock, <<"trace_started">>
    ),
    kprof:stop_trace().
