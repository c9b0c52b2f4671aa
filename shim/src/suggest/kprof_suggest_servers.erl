%% SPDX-License-Identifier: Apache-2.0
%% @doc What to trace where nothing is known that serves requests: it is taken from what the busiest
%% processes do. Pure.
%%
%% A process that serves requests in a loop of its own has a stack that grows with each request.
%% What its idle looks have in common is the loop; the function that is called there while it is
%% busy is the entry. It may know no more of a request than its method, say, so the function that it
%% calls names the request, if one was seen. Where no process does that, the entry is the callback
%% of the server that is seen most at work: one that waits for others counts while it waits, so it
%% is the outermost. Servers' callbacks are the tiers. What all these return may hold a server's
%% whole state: it stays in the node.
-module(kprof_suggest_servers).

-export([suggest/1, is_known/2]).

-define(MOST_TIERS, 8).
% looks that tell little
-define(FEW, 20).
%% Who is in these waits for work, or for time to pass,
-define(IDLE, [
    {gen_server, loop},
    {gen_statem, loop_receive},
    {timer, sleep}
]).
%% and so does who has called these: a port is told to read, ssl asks a process of its own.
-define(READS, [
    {prim_inet, recv0},
    {prim_inet, accept0},
    {gen_tcp, recv},
    {gen_tcp, accept},
    {gen_tcp_socket, recv},
    {gen_tcp_socket, accept},
    {ssl, recv},
    {ssl, transport_accept}
]).
-define(OTP, [
    asn1, common_test, compiler, crypto, dialyzer, diameter, eldap, elixir, erl_interface, erts,
    et, eunit, ftp, inets, kernel, logger, megaco, mnesia, observer, os_mon, parsetools,
    public_key, reltool, runtime_tools, sasl, snmp, ssh, ssl, stdlib, syntax_tools, tftp, tools,
    wx, xmerl
]).
-define(PRELOADED, [
    atomics, counters, erl_init, erl_prim_loader, erl_tracer, erlang, erts_code_purger,
    erts_dirty_process_signal_handler, erts_internal, erts_literal_area_collector, init,
    persistent_term, prim_buffer, prim_eval, prim_file, prim_inet, prim_net, prim_socket,
    prim_zip, socket_registry, zlib
]).

-record(look, {
    % what the process is: a server's module, or the outermost module of a loop
    kind :: {server | loop, module()},
    % a server's function that runs
    callback = none :: none | mfa(),
    idle :: boolean(),
    % the application's own, from the outermost on, and how often that was seen
    frames :: [mfa()],
    count :: pos_integer()
}).

%% @doc An entry, tiers and identity from the looks; nothing where none of them shows anything of
%% the application's at work.
-spec suggest(kprof_suggest_facts:facts()) -> kprof_suggest_rules:suggestion().
suggest(#{looked := Looked, applications := Applications}) ->
    Looks = lists:append([look(Stack, N, Applications) || {Stack, N} <- Looked]),
    Servers = servers(Looks),
    Calls = [{MFA, N, server} || {MFA, N, call} <- Servers],
    Others = [{MFA, N, server} || {MFA, N, other} <- Servers],
    case loops(Looks) ++ Calls ++ Others of
        [] ->
            empty();
        [{Entry, _, How} | _] ->
            Inner = inner(Entry, Looks),
            Tiers = [S || {MFA, _, _} = S <- Servers, MFA =/= Entry],
            Naming = hd([MFA || {_, MFA, _, _} <- Inner] ++ [Entry]),
            #{
                entries => [{Entry, none, why_entry(How)}],
                tiers => Inner ++ tiers(lists:sublist(Tiers, ?MOST_TIERS), Looks),
                identity => [kprof_suggest_identity:tag(Naming, arguments(How, Naming))],
                why => [why_identity(How, Naming)],
                notes => few(at_work(Looks))
            }
    end.

at_work(Looks) ->
    lists:sum([N || #look{idle = I, callback = C, count = N} <- Looks, not I orelse C =/= none]).

few(N) ->
    [
        io_lib:format(
            "only ~b looks saw the application at work, so this may be by chance: "
            "try again under more load",
            [N]
        )
     || N < ?FEW
    ].

empty() ->
    #{entries => [], tiers => [], identity => [], why => [], notes => []}.

why_entry(loop) ->
    "busy processes were seen in it, called from a loop of their own; idle ones were not";
why_entry(server) ->
    "the server that was seen most at work; each call of it is a request".

why_identity(loop, MFA) ->
    [
        "of the arguments of ",
        kprof_mfa:text(MFA),
        " the first that is an atom, or else a tuple that begins with one"
    ];
why_identity(server, _) ->
    "the message's name: an atom, or what a tuple begins with".

arguments(server, _) -> [1];
arguments(loop, {_, _, A}) -> lists:seq(1, A).

%% --- looks ---

%% Nothing where none of the application's functions is on the stack.
look(Stack, N, Applications) ->
    Outer = lists:dropwhile(fun({M, _, _}) -> M =:= proc_lib end, lists:reverse(Stack)),
    Own = [MFA || {M, _, _} = MFA <- Outer, not is_known(M, Applications)],
    case {Outer, Own} of
        {_, []} ->
            [];
        {[{Generic, _, _} | Inner], [{M, _, _} = First | _]} ->
            Server = lists:member(Generic, [gen_server, gen_statem, 'Elixir.GenServer']),
            [
                #look{
                    kind =
                        case Server of
                            true -> {server, M};
                            false -> {loop, M}
                        end,
                    callback =
                        case Server of
                            true -> callback(Inner, First);
                            false -> none
                        end,
                    idle = is_idle(Stack),
                    frames = Own,
                    count = N
                }
            ]
    end.

is_idle([{M, F, _} | _] = Stack) ->
    lists:member({M, F}, ?IDLE) orelse
        lists:any(fun({N, G, _}) -> lists:member({N, G}, ?READS) end, Stack).

%% A callback that ends in the call of another function is not on the stack itself; who called it
%% is.
callback([{gen_server, try_handle_call, _} | _], {M, _, _}) ->
    {M, handle_call, 3};
callback([{gen_server, Try, _} | _], {M, F, _}) when
    Try =:= try_dispatch; Try =:= try_handle_cast
->
    case F of
        handle_info -> {M, handle_info, 2};
        handle_continue -> {M, handle_continue, 2};
        _ -> {M, handle_cast, 2}
    end;
callback([{gen_server, try_handle_info, _} | _], {M, _, _}) ->
    {M, handle_info, 2};
callback([{M, _, _} = First | _], {M, _, _}) ->
    First;
callback([_ | Inner], First) ->
    callback(Inner, First);
callback([], _) ->
    none.

%% @doc Whether a module is OTP's or Elixir's.
-spec is_known(module(), #{module() => atom()}) -> boolean().
is_known(M, Applications) ->
    lists:member(M, ?PRELOADED) orelse
        lists:member(maps:get(M, Applications, none), ?OTP) orelse
        lists:prefix("kprof", atom_to_list(M)).

%% --- what they show ---

%% Servers' callbacks, those seen most first.
servers(Looks) ->
    Counts = lists:foldl(
        fun
            (#look{callback = none}, Sums) -> Sums;
            (#look{callback = MFA, count = N}, Sums) ->
                maps:update_with(MFA, fun(Sum) -> Sum + N end, N, Sums)
        end,
        #{},
        Looks
    ),
    [
        {MFA, N,
            case MFA of
                {_, handle_call, 3} -> call;
                _ -> other
            end}
     || {MFA, N} <- by_count(Counts)
    ].

%% The entries of loops, those seen most first.
loops(Looks) ->
    Kinds = lists:usort([Kind || #look{kind = {loop, _} = Kind} <- Looks]),
    by_seen(
        lists:append([
            loop([L || #look{kind = K} = L <- Looks, K =:= Kind], Looks)
         || Kind <- Kinds
        ])
    ).

loop(OfKind, Looks) ->
    case [F || #look{idle = true, frames = F} <- OfKind] of
        [] -> [];
        Idle -> loop(common(Idle), OfKind, Looks)
    end.

%% The loop's functions are those that idle looks have in common.
loop(Idle, OfKind, Looks) ->
    Busy = [{F, N} || #look{idle = false, frames = F, count = N} <- OfKind],
    Entries = lists:foldl(
        fun({Frames, N}, Sums) ->
            case lists:nthtail(shared(Idle, Frames), Frames) of
                [MFA | _] -> maps:update_with(MFA, fun(Sum) -> Sum + N end, N, Sums);
                [] -> Sums
            end
        end,
        #{},
        Busy
    ),
    Kind = (hd(OfKind))#look.kind,
    Found = [
        {MFA, N, loop}
     || {MFA, N} <- by_count(Entries), is_only_of(MFA, Kind, Looks), is_plain(MFA)
    ],
    lists:sublist(Found, 1).

common([First | Others]) ->
    lists:foldl(
        fun(Frames, Common) -> lists:sublist(Common, shared(Common, Frames)) end, First, Others
    ).

shared([F | As], [F | Bs]) -> 1 + shared(As, Bs);
shared(_, _) -> 0.

%% Helpers that all kinds of processes run are no entries.
is_only_of(MFA, Kind, Looks) ->
    lists:all(
        fun(#look{kind = K, frames = Frames}) ->
            K =:= Kind orelse not lists:member(MFA, Frames)
        end,
        Looks
    ).

%% A fun, or a comprehension, is no name that anybody chose.
is_plain({_, F, _}) ->
    hd(atom_to_list(F)) =/= $-.

%% What the entry was seen to call in its own process, and nobody else's.
inner(Entry, Looks) ->
    Below = [
        MFA
     || #look{kind = {loop, _}, frames = Frames} <- Looks,
        [_ | Inside] <- [lists:dropwhile(fun(F) -> F =/= Entry end, Frames)],
        MFA <- lists:sublist(Inside, 3),
        is_plain(MFA),
        MFA =/= Entry
    ],
    Kinds = [K || #look{kind = {loop, _} = K, frames = F} <- Looks, lists:member(Entry, F)],
    Counts = lists:foldl(
        fun(MFA, Sums) -> maps:update_with(MFA, fun(N) -> N + 1 end, 1, Sums) end, #{}, Below
    ),
    [
        {name(MFA), MFA, none, "the entry was seen waiting in it, or busy"}
     || Kinds =/= [],
        {MFA, _} <- lists:sublist(by_count(Counts), 2),
        is_only_of(MFA, hd(Kinds), Looks)
    ].

tiers(Servers, Looks) ->
    All = at_work(Looks),
    Modules = [M || {{M, _, _}, _, _} <- Servers],
    [
        {
            case [X || X <- Modules, X =:= M] of
                [_] -> kprof_mfa:atom(M);
                _ -> name(MFA)
            end,
            MFA,
            none,
            io_lib:format("a server at work: ~b of ~b looks at busy processes saw it", [
                N, All
            ])
        }
     || {{M, _, _} = MFA, N, _} <- Servers
    ].

name({M, F, _}) ->
    unicode:characters_to_binary([kprof_mfa:atom(M), $., atom_to_binary(F)]).

by_count(Counts) ->
    Sorted = lists:sort([{N, MFA} || {MFA, N} <- maps:to_list(Counts)]),
    [{MFA, N} || {N, MFA} <- lists:reverse(Sorted)].

by_seen(Entries) ->
    [E || {_, E} <- lists:reverse(lists:sort([{N, E} || {_, N, _} = E <- Entries]))].
