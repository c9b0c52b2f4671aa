# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# The part `export` of the benchmark: --export into a ClickHouse of this machine, beside clickhouse-client inserting the same rows; and what
# it takes for what 50 nodes make. Sourced by run.sh, whose variables it uses.

# What scenarios/clickhouse.sh uses of scenarios/lib.sh.
fail() { die "$1"; }
start() {
    "${@:2}" >"$1" 2>&1 </dev/null &
    collectors="$collectors $!"
}
wait_for() { wait_until $((10 * $1)) "${@:3}" || die "not within $1 s: $2"; }
# shellcheck source-path=SCRIPTDIR
source "$here/../scenarios/clickhouse.sh"

export_db=$scratch/export.db
# Buckets and nodes that were not sent yet.
export_waiting() { query "$export_db" "SELECT count(*) FROM export_marks"; }
export_done() { [ "$(export_waiting)" = 0 ]; }
engine_rows() { engine "SELECT sum(rows) FROM system.parts WHERE active AND database = 'kprof' AND table NOT IN ('collectors', 'copy')"; }
engine_empty() {
    local table
    for table in $(engine "SELECT name FROM system.tables WHERE database = 'kprof' AND name != 'collectors'"); do
        engine "TRUNCATE TABLE kprof.$table"
    done
}

# export_note NAME ROWS MS TICKS: rows a second, and processor time for a row, ns.
export_note() {
    calc '%f\n' "$2 / $3 * 1000" >>"$scratch/export.$1.rate"
    calc '%f\n' "$4 / $(getconf CLK_TCK) * 1e9 / $2" >>"$scratch/export.$1.cpu"
}

# export_all NAME HOST: all that the database has, in an export that begins anew.
export_all() {
    local began ended before server_before
    engine_empty
    sqlite3 "$export_db" "INSERT OR REPLACE INTO export_marks SELECT bucket_start, resolution_s, node_id,
        (SELECT revision FROM export_state), 0 FROM ledger_rows"
    server_before=$(cpu_ticks "$engine_pid")
    rm -f "$scratch/export.$1.log" # that of the round before says that it listens, too
    began=$(date +%s%3N)
    start_collector "export.$1" "$export_db" --export "$2" --export-password-file "$scratch/password" --export-as bench "${@:3}"
    wait_until 3000 export_done || die "the export does not end: $(tail -n 3 "$scratch/export.$1.log")"
    ended=$(date +%s%3N)
    before=$(cpu_ticks "$collector")
    [ "$(engine_rows)" = "$export_rows" ] || check_failed "export, $1: the database has $export_rows rows, the engine $(engine_rows)"
    export_note "$1" "$export_rows" $((ended - began)) "$before"
    calc '%f\n' "($(cpu_ticks "$engine_pid") - $server_before) / $(getconf CLK_TCK) * 1e9 / $export_rows" >>"$scratch/export.$1.server"
    stop "$collector"
    collector=''
}

# The same rows of tier_stats in the same order, by clickhouse-client, in one insert.
insert_all() {
    local TIMEFORMAT='%R %U %S' wall user system server_before n
    engine "TRUNCATE TABLE kprof.copy"
    server_before=$(cpu_ticks "$engine_pid")
    { time clickhouse-client --port "$engine_tcp_port" --user kprof --password "$engine_password" \
        --query 'INSERT INTO kprof.copy FORMAT RowBinary' <"$scratch/rows" >"$scratch/client.log" 2>&1; } 2>"$scratch/client.time" ||
        die "clickhouse-client failed: $(cat "$scratch/client.log")"
    read -r wall user system <"$scratch/client.time"
    n=$(engine "SELECT count() FROM kprof.copy")
    export_note client "$n" "$(calc %.0f "$wall * 1000")" "$(calc %.0f "($user + $system) * $(getconf CLK_TCK)")"
    calc '%f\n' "($(cpu_ticks "$engine_pid") - $server_before) / $(getconf CLK_TCK) * 1e9 / $n" >>"$scratch/export.client.server"
}

export_row() {
    printf '  %-44s %12s %9.0f %11.0f\n' "$1" "$(grouped "$(median <"$scratch/export.$2.rate")")" "$(median <"$scratch/export.$2.cpu")" \
        "$(median <"$scratch/export.$2.server")"
}

# The processor time of the threads that export.
export_ticks() { awk '/ \(export(_send)?\) / { sub(/.*\) /, ""); sum += $12 + $13 } END { print sum }' "/proc/$1"/task/*/stat; }

# What a collector of 50 nodes takes for its export, as time goes by.
export_share() {
    local simulated before minute begin=$(($(date +%s) / 3600 * 3600 - 7200)) rows
    engine_empty
    rm -f "$scratch/live.db"
    echo 1 >"$scratch/clock"
    start "$scratch/live.log" "$build/tests/fleet_collector" run "$scratch/live.db" "$begin" --clock "$scratch/clock" \
        --export "clickhouse://kprof@127.0.0.1:$engine_port/kprof" --export-password-file "$scratch/password" --export-as live
    simulated=$!
    sleep 10 # the tables are there, the first minute is sent
    before=$(export_ticks "$simulated")
    rows=$(engine "SELECT value FROM system.events WHERE event = 'InsertedRows'")
    for ((minute = 2; minute < 2 + export_minutes; minute++)); do
        echo "$minute" >"$scratch/clock"
        sleep 60
    done
    rows=$(($(engine "SELECT value FROM system.events WHERE event = 'InsertedRows'") - rows))
    share=$(calc %.2f "($(export_ticks "$simulated") - $before) / $(getconf CLK_TCK) / (60 * $export_minutes) * 100")
    stop "$simulated"
    echo "  what 50 nodes make, $(grouped $((rows / export_minutes))) rows a minute, takes $share % of a core; wanted: less than 10 %," \
        "$(calc %s "($share < 10 ? \"reached\" : \"NOT reached\")")"
}

bench_export() {
    local round share ratio export_rows
    command -v clickhouse-server >/dev/null || die "clickhouse-server is not there: scripts/install.sh test"
    command -v clickhouse-client >/dev/null || die "clickhouse-client is not there: apt-get install clickhouse-client"
    make_engine
    (umask 077; printf '%s\n' "$engine_password" >"$scratch/password")
    start_engine
    say "export: a history of 50 nodes"
    "$build/tests/fleet_collector" run "$export_db" $(($(date +%s) / 3600 * 3600 - 7200)) --minutes "$export_history" \
        >"$scratch/fleet.log" ||
        die "fleet_collector failed"
    export_rows=$(query "$export_db" "SELECT (SELECT count(*) FROM stat_rows) + (SELECT count(*) FROM path_rows) +
        (SELECT count(*) FROM cost_rows) + (SELECT count(*) FROM ledger_rows)")
    for ((round = 1; round <= export_rounds; round++)); do
        say "export, round $round of $export_rounds"
        export_all near "clickhouse://kprof@127.0.0.1:$engine_port/kprof"
        export_all far "clickhouses://kprof@far.localhost:$engine_tls_port/kprof" --export-ca "$engine_ca"
        if [ "$round" = 1 ]; then
            # in the order in which the export sends them: the engine sorts rows that are not in that of its table
            engine "SELECT * FROM kprof.tier_stats ORDER BY bucket_start, resolution_s, node, identity, tier FORMAT RowBinary" \
                >"$scratch/rows"
            engine "CREATE TABLE kprof.copy AS kprof.tier_stats"
        fi
        insert_all
    done
    engine "DROP TABLE kprof.copy"
    ratio=$(calc %.2f "$(median <"$scratch/export.near.rate") / $(median <"$scratch/export.client.rate")")
    echo
    echo "A history of $(grouped "$export_rows") rows into ClickHouse $(engine 'SELECT version()') of this machine;" \
        "median of $export_rounds"
    printf '  %-44s %12s %9s %11s\n' '' 'rows/s' 'CPU ns' 'engine CPU'
    export_row '--export' near
    export_row '--export as to another machine: gzip, TLS' far
    export_row 'clickhouse-client, of tier_stats' client
    echo "  --export makes $ratio times the rows a second of clickhouse-client; wanted: 300,000 or as many as the engine takes," \
        "$(calc %s "($ratio >= 1 || $(median <"$scratch/export.near.rate") >= 300000 ? \"reached\" : \"NOT reached\")")"
    say "export: $export_minutes minutes of 50 nodes"
    export_share
}
