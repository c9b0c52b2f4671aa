%% SPDX-License-Identifier: Apache-2.0
%% @doc Hands on what the collector sends back: the rows of a flush to the stats_dumper, finished
%% requests as indented trees to where start_trace was called. A process of its own, so that a slow
%% file, fun or terminal holds up nothing else.
-module(kprof_printer).

-export([start_link/2, stats/2, calls/2, stop/1, format/1, row/1]).

-define(MAX_WAITING, 100).

%% @doc Starts a printer for one trace; `Leader' is the group leader that trees are printed to.
-spec start_link(kprof:stats_dumper(), pid()) -> pid().
start_link(Dumper, Leader) ->
    spawn_link(fun() -> loop(Dumper, Leader, false) end).

%% @doc Gives it the rows of a flush. They are thrown away when it is 100 messages behind.
-spec stats(pid(), [kprof:stats_row()]) -> ok.
stats(Pid, Rows) ->
    give(Pid, {stats, Rows}).

%% @doc Gives it a finished request.
-spec calls(pid(), map()) -> ok.
calls(Pid, Calls) ->
    give(Pid, {calls, Calls}).

%% @doc Ends it after what it has been given; waits a second at most.
-spec stop(pid()) -> ok.
stop(Pid) ->
    kprof_outlet:stop(Pid, 1000).

give(Pid, Message) ->
    case erlang:process_info(Pid, message_queue_len) of
        {_, N} when N < ?MAX_WAITING ->
            Pid ! Message,
            ok;
        _ ->
            ok
    end.

%% Failed: the last try failed, and has been told; the next success ends that.
loop(Dumper, Leader, Failed) ->
    receive
        {stats, Rows} ->
            loop(Dumper, Leader, attempt(fun() -> dump(Dumper, Rows) end, Failed));
        {calls, Calls} ->
            loop(Dumper, Leader, attempt(fun() -> print(Leader, format(Calls)) end, Failed));
        stop ->
            ok
    end.

attempt(Fun, Failed) ->
    try Fun() of
        _ -> false
    catch
        _:Why ->
            _ =
                Failed orelse
                    logger:warning("kprof: stats_dumper or print_calls failed: ~0tP", [Why, 20]),
            true
    end.

dump(false, _) ->
    ok;
dump({file, Path}, Rows) ->
    ok = file:write_file(Path, [[kprof_json:encode(R), $\n] || R <- Rows], [append]);
dump({'fun', F}, Rows) ->
    F(Rows);
dump({pid, Pid}, Rows) ->
    Pid ! {kprof_stats, Rows}.

%% The terminal that start_trace was called from may be gone.
print(Leader, Text) ->
    try
        io:put_chars(Leader, Text)
    catch
        error:_ -> io:put_chars(user, Text)
    end.

%% @doc A row as it came, with atoms for the names that rows are known to have.
-spec row(#{binary() => term()}) -> kprof:stats_row().
row(Row) ->
    kprof_outlet:named(Row, [
        bucket_start,
        resolution_s,
        node,
        identity,
        tier,
        requests,
        calls,
        errors,
        async_calls,
        total_us,
        self_us,
        async_us,
        min_us,
        max_us
    ]).

%% @doc A finished request as text: a line for the request, and one for each span, indented by its
%% depth.
-spec format(#{binary() => term()}) -> unicode:chardata().
format(Calls) ->
    Spans = [S || S <- list(Calls, <<"spans">>), is_map(S)],
    [
        io_lib:format("~ts  ~ts  ~ts  ~ts~n", [
            text(Calls, <<"identity">>),
            time(Calls, <<"duration_us">>),
            text(Calls, <<"outcome">>),
            text(Calls, <<"started_at">>)
        ])
        | [span(S) || S <- Spans]
    ].

span(S) ->
    Indent = lists:duplicate(2 * min(40, integer(S, <<"depth">>) + 1), $\s),
    Name = [Indent, text(S, <<"tier">>)],
    Marks = [
        ["  ", M]
     || M <- [
            case S of
                #{<<"wait_us">> := Us} when is_number(Us), Us > 0 ->
                    ["wait ", time(S, <<"wait_us">>)];
                _ ->
                    ""
            end,
            case S of
                #{<<"async">> := true} -> "async";
                _ -> ""
            end,
            case S of
                #{<<"outcome">> := <<"error">>} -> "error";
                _ -> ""
            end
        ],
        M =/= ""
    ],
    io_lib:format(
        "~-32ts ~12ts  self ~12ts  at +~ts  ~ts~ts~n",
        [
            Name,
            time(S, <<"duration_us">>),
            time(S, <<"self_us">>),
            time(S, <<"start_us">>),
            text(S, <<"pid">>),
            Marks
        ]
    ).

time(Map, Key) ->
    case Map of
        #{Key := Us} when is_number(Us), Us >= 1000 -> io_lib:format("~.2f ms", [Us / 1000]);
        #{Key := Us} when is_number(Us) -> io_lib:format("~.1f us", [float(Us)]);
        _ -> "?"
    end.

text(Map, Key) ->
    case Map of
        #{Key := Text} when is_binary(Text) -> Text;
        _ -> <<"?">>
    end.

integer(Map, Key) ->
    case Map of
        #{Key := N} when is_integer(N), N >= 0 -> N;
        _ -> 0
    end.

list(Map, Key) ->
    case Map of
        #{Key := L} when is_list(L) -> L;
        _ -> []
    end.
