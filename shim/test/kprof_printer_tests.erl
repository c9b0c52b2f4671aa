%% SPDX-License-Identifier: Apache-2.0
-module(kprof_printer_tests).
-include("patient.hrl").

row() ->
    kprof_printer:row(#{
        <<"bucket_start">> => <<"2026-11-20T10:00:00Z">>,
        <<"tier">> => <<"db">>,
        <<"total_us">> => 1.5,
        <<"new">> => 1
    }).

row_test_() -> {timeout, 300, fun row_case/0}.
row_case() ->
    ?assertEqual(
        #{
            bucket_start => <<"2026-11-20T10:00:00Z">>,
            tier => <<"db">>,
            total_us => 1.5,
            <<"new">> => 1
        },
        row()
    ).

file_test_() -> {timeout, 300, fun file_case/0}.
file_case() ->
    Path = filename:join(filename:basedir(user_cache, "kprof_test"), "stats.log"),
    ok = filelib:ensure_dir(Path),
    _ = file:delete(Path),
    Pid = kprof_printer:start_link({file, Path}, group_leader()),
    kprof_printer:stats(Pid, [row(), row()]),
    kprof_printer:stats(Pid, [row()]),
    Line =
        <<
            "{\"bucket_start\":\"2026-11-20T10:00:00Z\",\"new\":1,"
            "\"tier\":\"db\",\"total_us\":1.5}\n"
        >>,
    %% its end waits for a second only
    _ = [timer:sleep(10) || _ <- lists:seq(1, 1000), filelib:file_size(Path) < 3 * byte_size(Line)],
    kprof_printer:stop(Pid),
    {ok, Text} = file:read_file(Path),
    ?assertEqual(<<Line/binary, Line/binary, Line/binary>>, Text),
    ok = file:delete(Path).

fun_and_pid_test_() -> {timeout, 300, fun fun_and_pid_case/0}.
fun_and_pid_case() ->
    Self = self(),
    [
        begin
            Pid = kprof_printer:start_link(Dumper, group_leader()),
            kprof_printer:stats(Pid, [row()]),
            receive
                {kprof_stats, [Row]} -> ?assertEqual(row(), Row)
            after 60000 -> error(nothing)
            end,
            kprof_printer:stop(Pid)
        end
     || Dumper <- [{pid, self()}, {'fun', fun(Rows) -> Self ! {kprof_stats, Rows} end}]
    ].

%% A fun that fails does not end the printer.
failing_fun_test_() -> {timeout, 300, fun failing_fun_case/0}.
failing_fun_case() ->
    Self = self(),
    Pid = kprof_printer:start_link(
        {'fun', fun
            ([#{tier := T}]) when T =:= <<"db">> -> Self ! ok;
            (_) -> error(oops)
        end},
        group_leader()
    ),
    Level = maps:get(level, logger:get_primary_config()),
    logger:set_primary_config(level, none),
    kprof_printer:stats(Pid, [#{}]),
    kprof_printer:stats(Pid, [row()]),
    receive
        ok -> ok
    after 60000 -> error(nothing)
    end,
    kprof_printer:stop(Pid),
    logger:set_primary_config(level, Level).

format_test_() -> {timeout, 300, fun format_case/0}.
format_case() ->
    Text = unicode:characters_to_list(
        kprof_printer:format(#{
            <<"identity">> => <<"read">>,
            <<"outcome">> => <<"ok">>,
            <<"started_at">> => <<"2026">>,
            <<"duration_us">> => 12500.0,
            <<"spans">> => [
                #{
                    <<"tier">> => <<"http">>,
                    <<"depth">> => 0,
                    <<"pid">> => <<"<0.1.0>">>,
                    <<"start_us">> => 0.0,
                    <<"duration_us">> => 12000.0,
                    <<"self_us">> => 1.25,
                    <<"async">> => false,
                    <<"outcome">> => <<"ok">>
                },
                #{
                    <<"tier">> => <<"db">>,
                    <<"depth">> => 1,
                    <<"async">> => true,
                    <<"outcome">> => <<"error">>
                },
                17
            ]
        })
    ),
    [Head, Http, Db, ""] = string:split(Text, "\n", all),
    ?assertEqual("read  12.50 ms  ok  2026", Head),
    ?assertEqual("  http", string:slice(Http, 0, 6)),
    ?assertNotEqual(nomatch, string:find(Http, "12.00 ms")),
    ?assertEqual("    db", string:slice(Db, 0, 6)),
    ?assertNotEqual(nomatch, string:find(Db, "async  error")),
    ?assertEqual(nomatch, string:find([Http, Db], "wait")).

%% Waiting is told where there was any.
format_wait_test_() ->
    [
        ?_assertEqual(
            Shown,
            string:find(
                lists:flatten(
                    kprof_printer:format(#{
                        <<"spans">> => [#{<<"tier">> => <<"db">>, <<"wait_us">> => Us}]
                    })
                ),
                "wait 12.50 ms"
            ) =/= nomatch
        )
     || {Us, Shown} <- [{12500.0, true}, {0.0, false}, {0, false}, {nil, false}]
    ].

nonsense_test_() ->
    [
        ?_assert(is_list(unicode:characters_to_list(kprof_printer:format(M))))
     || M <- [#{}, #{<<"spans">> => 17}, #{<<"spans">> => [#{<<"depth">> => -1}]}]
    ].
