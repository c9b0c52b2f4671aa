%% SPDX-License-Identifier: Apache-2.0
-module(kprof_tracer_tests).
-include("patient.hrl").

%% The port of the driver that open/0 has loaded, without its client.
bare() ->
    Port = open_port({spawn, "trace_ip_drv 0 8192 2"}, [eof]),
    <<0, Number:16>> = iolist_to_binary(erlang:port_control(Port, $p, "")),
    {Port, Number}.

connect(Number) ->
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Number, [binary, {active, false}]),
    Socket.

%% Nothing of the proof stays in the stream.
clean_stream_test_() -> {timeout, 300, fun clean_stream_case/0}.
clean_stream_case() ->
    {ok, Tracer, Socket} = kprof_tracer:open(port),
    true = erlang:port_command(kprof_tracer:port(Tracer), <<"first">>),
    ?assertEqual({ok, <<0, 5:32, "first">>}, gen_tcp:recv(Socket, 10, 50000)),
    ?assertEqual(nobody, kprof_tracer:flags_owner(Tracer)),
    kprof_tracer:close(Tracer, now),
    gen_tcp:close(Socket).

%% The port ends with who opened it, but after what is traced; its end is told.
owner_test_() ->
    [{atom_to_list(How), {timeout, 300, fun() -> owner(How) end}} || How <- [kill, normal, close]].

owner(How) ->
    Self = self(),
    {Pid, Ref} = spawn_monitor(fun() ->
        process_flag(trap_exit, true),
        {ok, Tracer, _} = kprof_tracer:open(port),
        Self ! {tracer, Tracer},
        receive
            {'EXIT', Port, Why} -> exit({told, Port =:= kprof_tracer:port(Tracer), Why});
            normal -> ok
        end
    end),
    Tracer =
        receive
            {tracer, T} -> T
        end,
    Keeper = erlang:monitor(process, kprof_tracer:keeper(Tracer)),
    PortRef = erlang:monitor(port, kprof_tracer:port(Tracer)),
    case How of
        kill -> exit(Pid, kill);
        normal -> Pid ! normal;
        close -> kprof_tracer:close(Tracer, now)
    end,
    Reason =
        receive
            {'DOWN', Ref, process, _, R} -> R;
            {'DOWN', PortRef, port, _, _} when How =/= close -> port_first
        after 60000 -> hangs
        end,
    ?assertEqual(
        case How of
            kill -> killed;
            normal -> normal;
            close -> {told, true, normal}
        end,
        Reason
    ),
    receive
        {'DOWN', Keeper, process, _, _} -> ok
    after 60000 -> error(kept)
    end,
    ?assertEqual(undefined, erlang:port_info(kprof_tracer:port(Tracer))),
    % `us' of a session that has ended
    ?assert(lists:member(kprof_tracer:flags_owner(Tracer), [us, nobody])).

%% Somebody was faster: the proof arrives there, and not here.
stranger_test_() -> {timeout, 300, fun stranger_case/0}.
stranger_case() ->
    {Port, Number} = bare(),
    Stranger = connect(Number),
    timer:sleep(50),
    Ours = connect(Number),
    ?assertEqual({error, taken}, kprof_tracer:prove(Port, Ours)),
    ?assertMatch({ok, <<0, 16:32, _:16/binary>>}, gen_tcp:recv(Stranger, 21, 50000)),
    ?assertEqual({error, timeout}, gen_tcp:recv(Stranger, 0, 100)),
    [gen_tcp:close(S) || S <- [Stranger, Ours]],
    port_close(Port).

%% Somebody sits behind our socket who knows how frames look, but not the one that went into the
%% port.
impostor_test_() ->
    [
        {Name, {timeout, 300, fun() -> impostor(Bytes) end}}
     || {Name, Bytes} <- [
            {"empty frames", binary:copy(<<0, 0:32>>, 10)},
            {"a frame of that size", <<0, 16:32, 0:128>>},
            {"something", crypto:strong_rand_bytes(100)},
            {"nothing", <<>>}
        ]
    ].

impostor(Bytes) ->
    {Port, Number} = bare(),
    Stranger = connect(Number),
    {ok, Listen} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}]),
    {ok, Fake} = inet:port(Listen),
    Ours = connect(Fake),
    {ok, Behind} = gen_tcp:accept(Listen, 50000),
    ok = gen_tcp:send(Behind, Bytes),
    ?assertEqual({error, taken}, kprof_tracer:prove(Port, Ours)),
    [gen_tcp:close(S) || S <- [Stranger, Behind, Listen, Ours]],
    port_close(Port).
