%% SPDX-License-Identifier: Apache-2.0
%% Runs a plan: capture, replay, and what the database says against the truth.
-module(model_check).

-export([plan/3, count/1, same/4]).

-include("model.hrl").

% bytes of what a failing program said, more than anybody reads
-define(SAID, 2000).

%% @doc How many requests a plan begins.
-spec count(map()) -> non_neg_integer().
count(#{clients := Clients}) ->
    length([x || {_, Program} <- Clients, Op <- Program, is_request(Op)]).

is_request({'catch', [Op], _}) -> is_request(Op);
is_request(Op) -> element(1, Op) =:= request.

%% @doc Leaves the capture as Base.cap and the database as Base.db. Gives what differs, as lines of
%% text, and what was compared.
-spec plan(map(), file:filename(), [atom()]) -> {[iodata()], map()}.
plan(#{truth := causes} = Plan, Base, Features) ->
    {Spans, Requests, Events} = model_sim:run(Plan),
    {Bytes, Items} = model_stream:make(Plan, Events),
    ok = file:write_file(Base ++ ".cap", Bytes),
    Sums = #{requests => map_size(Requests), messages => length(Items)},
    case replay(Base) of
        {0, _} ->
            try
                Rows = maps:remove(<<"_total">>, stored(Base, Features)),
                {Lines, {Complete, Unclear, InTime}} = model_property:lines(
                    Plan, Spans, Requests, Rows, verdicts(Base), Features
                ),
                {More, Measured} = model_property:measured(Plan, Requests, measured(Base)),
                Evident =
                    case Plan of
                        #{kind := evident} -> {map_size(Requests), Complete, InTime};
                        _ -> {0, 0, 0}
                    end,
                {Lines ++ More ++ counted(map_size(Requests), Base), Sums#{
                    complete => Complete,
                    unclear => Unclear,
                    evident => Evident,
                    measured => Measured
                }}
            catch
                throw:Said -> {Said, Sums}
            end;
        {Status, Said} ->
            {[io_lib:format("kprof replay ended with ~b: ~ts", [Status, Said])], Sums}
    end;
plan(Plan, Base, Features) ->
    {Spans, Requests, Events} = model_sim:run(Plan),
    {Bytes, Items} = model_stream:make(Plan, Events),
    ok = file:write_file(Base ++ ".cap", Bytes),
    #{wrong := Wrong, ledger := #{messages := Messages}, rows := Rows, blind := {Whole, Doubted}} =
        Truth =
        model_truth:of_capture(Spans, Requests, Items),
    Sums = #{
        requests => map_size(Requests),
        messages => Messages,
        rows => map_size(Rows),
        whole => Whole,
        doubted => Doubted
    },
    case replay(Base) of
        {0, _} ->
            {Wrong ++ (catch compare(Truth, Base, Features)), Sums};
        {Status, Said} ->
            {
                [
                    io_lib:format("kprof replay ended with ~b: ~ts", [
                        Status, binary:part(Said, 0, min(?SAID, byte_size(Said)))
                    ])
                ],
                Sums
            }
    end.

replay(Base) ->
    [file:delete(Base ++ Ending) || Ending <- [".db", ".db-wal", ".db-shm"]],
    Tiers = lists:append([
        ["--tier", lists:flatten(io_lib:format("~s=~s:~s/~b", [T, M, F, A]))]
     || T <- [model_plan:entry() | model_plan:tiers()], {M, F, A} <- [model_sim:mfa(T)]
    ]),
    run(os:getenv("KPROF_BUILD") ++ "/kprof", [
        "replay", Base ++ ".cap", "--db", Base ++ ".db", "--request-timeout", "5s" | Tiers
    ]).

run(Program, Args) ->
    Port = open_port({spawn_executable, Program}, [
        {args, Args}, exit_status, stderr_to_stdout, binary, hide
    ]),
    collect(Port, []).

collect(Port, Said) ->
    receive
        {Port, {data, Data}} -> collect(Port, [Said, Data]);
        {Port, {exit_status, Status}} -> {Status, iolist_to_binary(Said)}
    end.

%% -- the database ---------------------------------------------------------------------------------

query(Base, Sql) ->
    {Status, Out} = run(os:find_executable("sqlite3"), [
        "-readonly", "-batch", "-noheader", "-separator", "|", Base ++ ".db", Sql
    ]),
    % such as sums that are too large
    Status =:= 0 orelse throw([["sqlite3: ", Out]]),
    [
        binary:split(Line, <<"|">>, [global])
     || Line <- binary:split(Out, <<"\n">>, [global, trim_all])
    ].

%% Times as whole ns.
ns(Column) -> ["CAST(round(1000 * ", Column, ") AS INTEGER)"].

columns(Features, Requests, Pauses) ->
    lists:join(
        ", ",
        [Requests, "sum(calls)", "sum(errors)", "sum(async_calls)"] ++
            [ns("sum(total_us)"), ns("sum(self_us)"), ns("sum(async_us)")] ++
            [
                case lists:member(wait, Features) of
                    true -> ns("sum(wait_us)");
                    false -> "0"
                end
            ] ++
            case Pauses andalso lists:member(gc, Features) of
                true -> [ns("sum(gc_us)"), ns("sum(off_cpu_us)")];
                false -> ["0", "0"]
            end ++
            [
                case lists:member(wait, Features) of
                    true -> ns("sum(waiting_us)");
                    false -> "0"
                end,
                ns("min(min_us)"),
                ns("max(max_us)")
            ]
    ).

stored(Base, Features) ->
    Tiers = query(Base, [
        "SELECT identity, tier, ",
        columns(Features, "sum(requests)", true),
        " FROM tier_stats WHERE resolution_s = 10 GROUP BY 1, 2"
    ]),
    Paths =
        case lists:member(paths, Features) of
            true ->
                query(Base, [
                    "SELECT identity, path, ",
                    columns(Features, "0", false),
                    " FROM path_stats WHERE resolution_s = 10 GROUP BY 1, 2"
                ]);
            false ->
                []
        end,
    Rows =
        [{Identity, {tier, Name}, numbers(Numbers)} || [Identity, Name | Numbers] <- Tiers] ++
            [{Identity, {path, Name}, numbers(Numbers)} || [Identity, Name | Numbers] <- Paths],
    maps:map(
        fun(_, Same) -> maps:from_list([{Key, Numbers} || {_, Key, Numbers} <- Same]) end,
        maps:groups_from_list(fun({Identity, _, _}) -> Identity end, Rows)
    ).

numbers(Columns) -> list_to_tuple([binary_to_integer(C) || C <- Columns]).

ledger(Base, Columns) ->
    [Values] = query(Base, [
        "SELECT ",
        lists:join(", ", ["coalesce(sum(" ++ atom_to_list(C) ++ "), 0)" || C <- Columns]),
        " FROM ledger WHERE resolution_s = 10"
    ]),
    maps:from_list(lists:zip(Columns, [binary_to_integer(V) || V <- Values])).

%% identity => verdict of the bucket that it is in
verdicts(Base) ->
    maps:from_list([
        {Identity, Verdict}
     || [Identity, Verdict] <- query(Base, [
            "SELECT t.identity, l.verdict FROM tier_stats AS t JOIN ledger AS l ",
            "USING (bucket_start, resolution_s) ",
            "WHERE resolution_s = 10 AND tier = '_total'"
        ])
    ]).

%% identity => {what its calls have waited as measured, ns, whether its bucket is ok}
measured(Base) ->
    maps:from_list([
        {Identity, {binary_to_integer(Ns), Verdict =:= <<"ok">>}}
     || [Identity, Ns, Verdict] <- query(Base, [
            "SELECT t.identity, ",
            ns("sum(t.measured_us)"),
            ", min(l.verdict) FROM tier_stats AS t JOIN ledger AS l USING (bucket_start, ",
            "resolution_s) WHERE resolution_s = 10 AND identity <> '_total' GROUP BY 1"
        ])
    ]).

counted(Requests, Base) ->
    #{
        requests_complete := A,
        requests_incomplete := B,
        requests_expired := C,
        decode_errors := Bad,
        orphan_returns := Orphans
    } =
        ledger(Base, [
            requests_complete, requests_incomplete, requests_expired, decode_errors, orphan_returns
        ]),
    [
        io_lib:format("ledger: requests are ~b, stored ~b", [Requests, A + B + C])
     || A + B + C =/= Requests
    ] ++
        [
            io_lib:format("ledger: ~b decode errors, ~b orphan returns", [Bad, Orphans])
         || Bad + Orphans > 0
        ].

%% -- comparison -----------------------------------------------------------------------------------

compare(#{rows := Truth, total := Total, ledger := Ledger}, Base, Features) ->
    {All, Stored} =
        case maps:take(<<"_total">>, stored(Base, Features)) of
            error -> {#{}, #{}};
            Both -> Both
        end,
    Identities = lists:usort(maps:keys(Truth) ++ maps:keys(Stored)),
    lists:append([
        identity(I, maps:get(I, Truth, none), maps:get(I, Stored, none), Features)
     || I <- Identities
    ]) ++
        same("_total", Total, All, Features) ++
        books(Ledger, ledger(Base, maps:keys(Ledger))).

identity(I, none, _, _) -> [[I, ": is in the statistics, and has no complete request"]];
identity(I, _, none, _) -> [[I, ": is not in the statistics, and is complete"]];
identity(I, Rows, Stored, Features) -> same(I, Rows, Stored, Features).

same(I, Truth0, Stored, Features) ->
    Truth = maps:filtermap(fun(Key, Numbers) -> shown(Key, Numbers, Features) end, Truth0),
    Keys = lists:usort(maps:keys(Truth) ++ maps:keys(Stored)),
    [
        io_lib:format("~s: ~s ~ts: ~s", [
            I, Kind, Name, differing(maps:get(Key, Truth, none), maps:get(Key, Stored, none))
        ])
     || {Kind, Name} = Key <- Keys, maps:get(Key, Truth, none) =/= maps:get(Key, Stored, none)
    ].

shown({path, _}, Numbers, Features) ->
    case lists:member(paths, Features) of
        true ->
            {true,
                without(
                    [gc | [wait || not lists:member(wait, Features)]], setelement(1, Numbers, 0)
                )};
        false ->
            false
    end;
shown(_, Numbers, Features) ->
    {true, without([wait, gc] -- Features, Numbers)}.

without(Absent, Numbers) ->
    lists:foldl(
        fun
            (wait, N) -> setelement(8, setelement(11, N, 0), 0);
            (gc, N) -> setelement(9, setelement(10, N, 0), 0)
        end,
        Numbers,
        Absent
    ).

differing(none, Stored) ->
    io_lib:format("only stored: ~w", [Stored]);
differing(Truth, none) ->
    io_lib:format("not stored: ~w", [Truth]);
differing(Truth, Stored) ->
    Names =
        [requests, calls, errors, async_calls, total, self, async, wait, gc, off_cpu, waiting] ++
            [min, max],
    lists:join(", ", [
        io_lib:format("~s is ~b, stored ~b", [Name, T, S])
     || {Name, T, S} <- lists:zip3(Names, tuple_to_list(Truth), tuple_to_list(Stored)), T =/= S
    ]).

%% Calls that strangers ask for behind the end of their request count as stale, too, besides being
%% its asynchronous calls. The reader does not know strangers: of these the collector may tell more.
%% And where messages were lost, what a process was at is not what it seems to be: calls under the
%% label of a request that is over may be taken for what an open call of it asked for, in a request
%% that is incomplete.
books(Truth, Stored) ->
    #{dropped_messages := Dropped} = Truth,
    [
        io_lib:format("ledger: ~s is ~b, stored ~b", [Column, Number, maps:get(Column, Stored)])
     || {Column, Number} <- maps:to_list(Truth),
        Number =/= maps:get(Column, Stored),
        Column =/= stale_calls orelse (Dropped =:= 0 andalso Number > maps:get(Column, Stored))
    ].
