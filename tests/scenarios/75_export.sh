#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: what --export sends to a real ClickHouse is what the database has, row by row and each request once: after the engine
# was killed, was away, got everything twice and refused a row, and after the collector was killed. The password stands nowhere. And what
# the engine is asked (--from) it answers as the file does, to the last digit that is printed.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$(dirname "${BASH_SOURCE[0]}")/clickhouse.sh"

name=export_$$
make_engine
password_file=$scratch/password
(umask 077 && printf '%s\n' "$engine_password" >"$password_file")
target=clickhouse://kprof@127.0.0.1:$engine_port/kprof
export_options=(--export "$target" --export-password-file "$password_file" --export-as "it's one" --export-label cluster=eu)

# -- wrong usage ---------------------------------------------------------------------------------------------------------
# refused PATTERN OPTION...: the collector does not start with them, and says why.
refused() {
  local pattern=$1
  shift
  status=0
  timeout 20 "$collector" --listen 0 --db "$scratch/none.db" "$@" 2>"$scratch/wrong.log" || status=$?
  is "$status" 2 "refused: ${*:1:2}"
  has "$scratch/wrong.log" "$pattern" "and told"
}
refused 'without TLS the password could be read' --export clickhouse://kprof@192.0.2.1/kprof --export-password-file "$password_file"
refused 'a password in the address is open to everybody' --export clickhouse://kprof:oh-no@localhost/kprof
has_not "$scratch/wrong.log" oh-no "without repeating it"
refused '\[USER@\]HOST' --export http://localhost:8123/kprof
refused 'clickhouses://' --export "$target" --export-ca "$engine_ca"
refused '^kprof-collector: --export .* is missing' --export-as one
chmod 644 "$password_file"
refused 'opens the password to everybody' "${export_options[@]}"
chmod 600 "$password_file"

# -- what the engine has, and what the database has ------------------------------------------------------------------------
# Columns of each table that are the same words there and here, but for the names that are ids here. {table} {columns} {from here}
names="JOIN node_names AS n ON n.id = s.node_id"
identities="JOIN identity_names AS i ON i.id = s.identity_id" tiers="JOIN tier_names AS t ON t.id = s.tier_id"
sums="s.total_ns, s.self_ns, s.async_ns, s.wait_ns, s.waiting_ns, s.duration_ns, s.min_ns, s.max_ns,
  s.measured_ns, s.mailbox_ns, s.run_queue_ns"
ledger_columns=$("$kprof" export --schema --old | sed -n '/\.ledger (/,/collector/s/^ *\([a-z_]*\) UInt64,$/s.\1/p' | paste -sd, )
here() { # here TABLE: its rows, tab separated
  case $1 in
    tier_stats) echo "SELECT s.bucket_start, s.resolution_s, n.name, i.name, t.name, s.requests, s.calls, s.errors, s.async_calls, $sums,
      s.gc_ns, s.off_cpu_ns, s.parallel_ns, CAST(s.square_ns AS INTEGER), s.tier_id FROM stat_rows AS s $names $identities $tiers" ;;
    path_stats) echo "SELECT s.bucket_start, s.resolution_s, n.name, i.name, p.name, s.calls, s.errors, s.async_calls, $sums
      FROM path_rows AS s $names $identities JOIN path_names AS p ON p.id = s.path_id" ;;
    ledger) echo "SELECT s.bucket_start, s.resolution_s, n.name, $ledger_columns FROM ledger_rows AS s $names" ;;
    tier_costs) echo "SELECT s.bucket_start, s.resolution_s, n.name, t.name, s.messages, s.bytes, s.calls, s.stale_calls
      FROM cost_rows AS s $names $tiers" ;;
    slow_requests) echo "SELECT s.bucket_start, n.name, i.name, s.id, s.begin_ns, s.duration_ns, s.spans, s.kept_spans, s.label,
      s.uncovered_ns, s.parallel_ns, coalesce(s.trace_id, ''), coalesce(s.parent_span_id, '') FROM kept_requests AS s $names $identities" ;;
    slow_spans) echo "SELECT r.bucket_start, s.request_id, s.span, s.parent, s.pid, t.name, s.start_ns, s.duration_ns, s.self_ns, s.wait_ns,
      s.waiting_ns, s.async, s.caller, s.measured, s.run_queue_ns FROM kept_spans AS s
      JOIN kept_requests AS r ON r.id = s.request_id $tiers" ;;
  esac
}
there() { # there TABLE: the same columns, as the engine has them
  local sums=${sums//s./}
  case $1 in
    tier_stats) echo "toUInt32(bucket_start), resolution_s, node, identity, tier, requests, calls, errors, async_calls, $sums,
      gc_ns, off_cpu_ns, parallel_ns, toInt64(square_ns), tier_place" ;;
    path_stats) echo "toUInt32(bucket_start), resolution_s, node, identity, path, calls, errors, async_calls, $sums" ;;
    ledger) echo "toUInt32(bucket_start), resolution_s, node, ${ledger_columns//s./}" ;;
    tier_costs) echo "toUInt32(bucket_start), resolution_s, node, tier, messages, bytes, calls, stale_calls" ;;
    slow_requests) echo "toUInt32(bucket_start), node, identity, id, begin_ns, duration_ns, spans, kept_spans, toInt64(label),
      uncovered_ns, parallel_ns, trace_id, parent_span_id" ;;
    slow_spans) echo "toUInt32(bucket_start), request_id, span, parent, pid, name, start_ns, duration_ns, self_ns, wait_ns, waiting_ns,
      async, caller, measured, run_queue_ns" ;;
  esac
}
tables=(tier_stats path_stats ledger tier_costs slow_requests slow_spans)
same_rows() { # same_rows WHEN
  local table
  for table in "${tables[@]}"; do
    sqlite3 -readonly -separator $'\t' -nullvalue '\N' "$db" "$(here "$table")" | LC_ALL=C sort >"$scratch/here"
    engine "SELECT $(there "$table") FROM kprof.$table FINAL" | LC_ALL=C sort >"$scratch/there"
    # a request that was sent may be pushed out here by a slower one that came late: there it stays
    [[ $table != slow* ]] || LC_ALL=C comm -12 "$scratch/here" "$scratch/there" >"$scratch/both"
    [[ $table != slow* ]] || mv "$scratch/both" "$scratch/there"
    is "$(diff "$scratch/here" "$scratch/there" | head -n 6)" "" "$1: every row of $table ($(wc -l <"$scratch/here"))"
    holds "$(wc -l <"$scratch/here")" -gt 0 "$1: there are some"
  done
}
# same_answer COMMAND ARGUMENT...: the file and the engine are asked the same; $from: the engine's options.
same_answer() {
  local here=0 there=0
  "$kprof" "$@" --db "$db" >"$scratch/here" 2>&1 || here=$?
  "$kprof" "$@" "${from[@]}" >"$scratch/there" 2>&1 || there=$?
  sed -i "s|--db $db|SOURCE|; s|--from $target|SOURCE|; s|$db|NAME|; s|127.0.0.1:$engine_port/kprof|NAME|" "$scratch/here" "$scratch/there"
  is "$there $(diff "$scratch/here" "$scratch/there" | head -n 6)" "$here " "the same answer to kprof $*"
}
# page_says FILE OPTION...: what kprof serve answers with them to each question.
page_says() {
  local answers=$1 path
  shift
  start "$scratch/serve.log" "$kprof" serve --http 0 "$@"
  local server=$!
  wait_for 20 "kprof serve listens" grep -qs 'the page of' "$scratch/serve.log"
  for path in nodes "table?from=$first&until=$last" "series?from=$first&until=$last&points=40" "paths?from=$first&until=$last" \
    "compare?before_from=$first&before_until=$((last - 10))&from=$((first + 10))&until=$last" "slow?from=$first&until=$last&most=5"; do
    curl -sS --fail-with-body "$(page_of "$scratch/serve.log")/api/v1/$path" || fail "no answer to $path"
  done | tr , '\n' | sed 's/"exported":true/"exported":false/; s/"clusters":\["eu"\]/"clusters":[]/' >"$answers"
  kill -TERM "$server"
  ends "$server" 20
}
same_answers() {
  local first last day=2000-01-01T00:00:00Z id
  read -r first last < <(sql "SELECT min(bucket_start), max(bucket_start) + 10 FROM ledger_rows WHERE resolution_s = 10" | tr '|' ' ')
  same_answer report
  same_answer report --json
  same_answer report --json --since "$(date -u -d "@$((first + 10))" +%FT%TZ)" --until "$(date -u -d "@$last" +%FT%TZ)" --node "$name"
  same_answer report --json --identity create --since $day
  same_answer report --tier storage --json
  same_answer report --cost --json
  same_answer report --wait
  same_answer diff --json --before "$(date -u -d "@$first" +%FT%TZ)..$(date -u -d "@$((last - 10))" +%FT%TZ)" \
    --after "$(date -u -d "@$((first + 10))" +%FT%TZ)..$(date -u -d "@$last" +%FT%TZ)"
  for id in $(sql "SELECT id FROM kept_requests ORDER BY duration_ns DESC LIMIT 3"); do same_answer slow "$id"; done
  same_answer slow 123456789
  same_answer slow --limit 4
  same_answer slow --json
  same_answer report --percentiles --json
  same_answer slow --failed --json --limit 1
  same_answer report --node nobody
  page_says "$scratch/here" --db "$db"
  page_says "$scratch/there" "${from[@]}"
  is "$(diff "$scratch/here" "$scratch/there" | head -n 6)" "" "and the page's questions have the same answers"
}
# Everything is due at once, as if it had changed.
all_again() { sqlite3 -cmd '.timeout 5000' "$db" "INSERT OR REPLACE INTO export_marks SELECT bucket_start, resolution_s, node_id,
  (SELECT revision FROM export_state), 0 FROM ledger_rows UNION SELECT DISTINCT bucket_start, 0, node_id,
  (SELECT revision FROM export_state), 0 FROM kept_requests"; }
marks() { sql "SELECT count(*) FROM export_marks"; }
all_sent() { [ "$(marks)" = 0 ]; }
engine_has() { [ "$(engine "SELECT sum(calls) FROM kprof.tier_stats FINAL WHERE resolution_s = 10 AND identity = '_total' AND
  tier = '_total'" 2>/dev/null)" -gt 0 ] 2>/dev/null; }
told() { "$kprof" nodes --json --collector "127.0.0.1:$collector_port" 2>/dev/null >"$scratch/nodes.json" &&
  sqlite3 :memory: "SELECT json_extract(readfile('$scratch/nodes.json'), '\$.export.$1')"; }
says() { [[ $(told text) =~ $1 ]]; }

# -- the engine comes late, is killed, and comes back ----------------------------------------------------------------------
start_collector "${export_options[@]}" --http 0 --slow-threshold 20ms
page=$(page_of "$collector_log")
start_shop "$name"
start_tracing "$name"
start_load --clients 6 --think 20 --seconds 9
wait_for 20 "it is told that the engine is not there" says 'takes nothing: .*onnect'
start_engine
wait_for 20 "it is found" says '^to 127\.0\.0\.1:'
wait_for 20 "requests are counted" ledger_reaches requests_complete 100
all_again # buckets that go on: what is sent of them now comes again, with more
wait_for 40 "and takes rows" engine_has
kill_engine
all_again
wait_for 40 "that it is away again is told" says 'takes nothing'
# somebody under our name, from now on
start_engine
engine "INSERT INTO kprof.collectors (collector, database_id, instance, began, version, seen) SELECT 'it\\'s one', 7, 7, now(),
  '0', now() + 1"
wait_for 60 "another collector of the same name is found out" says 'same name'
"$kprof" nodes --collector "127.0.0.1:$collector_port" >"$scratch/nodes.txt"
has "$scratch/nodes.txt" '^ export to 127\.0\.0\.1:.*; another collector exports under the same name' "kprof nodes tells of both"
curl -sS "$page/metrics" >"$scratch/metrics"
has "$scratch/metrics" '^kprof_export_up 1$' "/metrics tells that it is there"
has "$scratch/metrics" '^kprof_export_name_taken 1$' "and of the other one"
has "$scratch/metrics" '^kprof_export_rows(_total)? [1-9]' "and how much was sent"
status=0
wait "$load_pid" || status=$?
is "$status" 0 "the load noticed nothing"
save_truth
wait_for 20 "all requests are in the database" ledger_reaches requests_complete "$(truth_total)"
stop_tracing
ends_sent "at its end the collector has sent everything" "${export_options[@]}"
tells_truth
same_rows "after the engine's end"
is "$(engine "SELECT sum(requests) FROM kprof.tier_stats FINAL WHERE resolution_s = 3600 AND identity != '_total' AND tier = '_total'")" \
  "$(truth_total)" "the engine has every request once"
is "$(engine "SELECT count() FROM kprof.tier_stats FINAL WHERE calls > 0 AND (arraySum(histogram_counts) != calls
    OR pow(2, histogram_keys[-1] / 32) >= max_ns * 1.000001 OR pow(2, (histogram_keys[-1] + 1) / 32) < max_ns * 0.999999
    OR pow(2, histogram_keys[1] / 32) >= min_ns * 1.000001 OR pow(2, (histogram_keys[1] + 1) / 32) < min_ns * 0.999999)")" 0 \
  "every histogram has its calls, from the shortest to the longest"
# collector/README.md's question, of the buckets of 10 s, against the one of an hour here
p99=$(sed -n '/clickhouse-client --query "/,/"$/p' "$top/collector/README.md" | sed 's/.*--query "//; s/"$//; s/= 3600/= 10/')
p99=$(engine "SELECT toInt64(1e6 * p) FROM ($(sed '0,/1e6/s/1e6/1e6 AS p/' <<<"$p99"))")
[ "$(sql "SELECT count(*) FROM tier_stats WHERE resolution_s = 3600 AND tier = 'storage' AND identity = '_total'")" -ne 1 ] ||
  is "$(sql "SELECT abs(1000 * p99_us - $p99) < 12 * p99_us FROM tier_stats WHERE resolution_s = 3600 AND tier = 'storage' AND
    identity = '_total'")" 1 "the 99th percentile of merged histograms is that of the hour, within 1.2 %"
is "$(engine "SELECT uniq(database_id), any(collector) FROM kprof.tier_stats")" $'1\tit\\\'s one' "all of one database and collector"

# -- everything twice, a row that is refused, the collector killed ---------------------------------------------------------
all_again
# requests that were pushed out here are in the way of the same answers
engine "TRUNCATE TABLE kprof.slow_requests"
engine "TRUNCATE TABLE kprof.slow_spans"
engine "CREATE MATERIALIZED VIEW kprof.guard ENGINE = Null AS SELECT throwIf(identity = 'delete' AND tier = 'http' AND
  resolution_s = 60) AS x FROM kprof.tier_stats"
refusals=$(sql "SELECT count(*) FROM tier_stats WHERE identity = 'delete' AND tier = 'http' AND resolution_s = 60")
holds "$refusals" -gt 0 "there are rows that the engine will refuse"
start_collector "${export_options[@]}"
wait_for 20 "all is sent again" all_sent
is "$(sql "SELECT refused FROM export_state")" "$refusals" "those rows were refused, and no others"
has "$collector_log" " error export: refused and set aside: $refusals rows?, such as one of tier_stats" "the log tells of them"
is "$(sql "SELECT DISTINCT table_name, i.name, t.name, r.resolution_s FROM export_refusals AS r JOIN identity_names AS i ON i.id = key_1
  JOIN tier_names AS t ON t.id = key_2")" 'tier_stats|delete|http|60' "the database has which they are"
engine "DROP TABLE kprof.guard"
same_rows "twice"
from=(--from "$target" --from-password-file "$password_file")
same_answers
before=$(ledger requests_complete)
start_tracing "$name"
start_load --clients 6 --think 20 --seconds 3
wait_for 20 "more requests are counted" ledger_reaches requests_complete $((before + 50))
kill -KILL "$collector_pid"
ends "$collector_pid" 5
start_collector "${export_options[@]}"
wait "$load_pid" || true
stop_tracing
ends_sent "the killed collector's rest is sent as well" "${export_options[@]}"
counted_once
same_rows "after the collector's end"
holds "$(ledger requests_complete)" -gt "$before" "there was more to send"

# -- TLS -------------------------------------------------------------------------------------------------------------------
tls_to() { start_collector --export "clickhouses://kprof@$1:$engine_tls_port/kprof" --export-password-file "$password_file" \
  --export-as two --export-ca "$engine_ca"; }
all_again
tls_to 127.0.0.1
wait_for 20 "a certificate of another name is none" says 'takes nothing: SSL'
stop_collector
tls_to localhost
wait_for 20 "all is sent by TLS" all_sent
stop_collector
is "$(engine "SELECT sum(requests) FROM kprof.tier_stats FINAL WHERE resolution_s = 10 AND identity != '_total' AND tier = '_total' AND
  collector = 'two'")" "$(ledger requests_complete)" "each request once"
from=(--from "$target" --from-password-file "$password_file")
"$kprof" report --json "${from[@]}" >"$scratch/both"
is "$(sqlite3 :memory: "SELECT json_extract(readfile('$scratch/both'), '\$.ledger.requests_complete')")" \
  "$((2 * $(ledger requests_complete)))" "all collectors together: this one's, twice"
from=(--from "clickhouses://kprof@localhost:$engine_tls_port/kprof" --from-ca "$engine_ca" --from-password-file "$password_file")
from+=(--from-collector two)
same_answer report --json
from=(--from "$target" --from-password-file "$password_file" --from-cluster eu)
same_answer report --json
from+=(--from-cluster us --from-collector two)
"$kprof" report "${from[@]}" >"$scratch/none" 2>&1 && fail "there is something of none"
has "$scratch/none" 'holds no data yet' "a collector of no such cluster has nothing"
from=(--from "clickhouse://kprof@127.0.0.1:$engine_port/nothing" --from-password-file "$password_file")
"$kprof" slow "${from[@]}" >"$scratch/none" 2>&1 && fail "there is something in a database that is not there"
has "$scratch/none" '/nothing has no history of kprof' "that a database is not there is told"
"$kprof" report --from "$target" >"$scratch/none" 2>&1 && fail "the engine answers without the password"
has "$scratch/none" 'kprof report: 127\.0\.0\.1:.*[Pp]assword' "and so is a password that is missing"
# a request and its part on another node, which this scenario does not make
now=$(date +%s)
for part in 1 2; do
  engine "INSERT INTO kprof.slow_requests (bucket_start, node, identity, id, reason, begin_ns, duration_ns, outcome, complete, spans,
    kept_spans, origin, label, uncovered_ns, parallel_ns, trace_id, parent_span_id, collector, database_id, revision)
    SELECT toDateTime($now), 'n$part@host', 'far', 90000$part, 'over', ${now}000000000 + $part, 5000000, 'ok', 1, 0,
    0, if($part = 2, 'n1@host', ''), 18446744073709551615, 0, 0, if($part = 1, '0af7651916cd43dd8448eb211c80319c', ''),
    if($part = 1, 'b7ad6b7169203331', ''), 'it\\'s one',
    $(sql "SELECT database_id FROM export_state"), 1"
done
from=(--from "$target" --from-password-file "$password_file")
"$kprof" slow 900001 "${from[@]}" >"$scratch/parts"
has "$scratch/parts" 'Its part on n2@host: 5.0 ms, begun 1 ns later, kprof slow 900002' "a request's part on another node is found"
has "$scratch/parts" "^ Asked for in trace 0af7651916cd43dd8448eb211c80319c by span b7ad6b7169203331\\.$" \
  "and the trace that has asked for it"
"$kprof" slow 900002 "${from[@]}" >"$scratch/parts"
has "$scratch/parts" 'The request itself on n1@host: 5.0 ms' "and the other way round"

# -- another password, with SIGHUP ---------------------------------------------------------------------------------------------
old_password=$engine_password
start_collector "${export_options[@]}"
wait_for 20 "it is found again" says '^to 127\.0\.0\.1:'
engine_password='another one, of'
sed -i "s#<password>.*</password>#<password>$engine_password</password>#" "$scratch/clickhouse/users.xml"
wait_for 30 "the engine takes another password" engine_answers
all_again
wait_for 20 "that the old one is refused is told" says 'takes nothing: .*[Pp]assword'
: >"$password_file"
kill -HUP "$collector_pid"
stays() { grep -q 'error SIGHUP: secret and certificates stay as they were' "$collector_log"; }
wait_for 10 "an empty file is told, and changes nothing" stays
printf '%s\n' "$engine_password" >"$password_file"
kill -HUP "$collector_pid"
wait_for 20 "with the new one all is sent" all_sent
stop_collector
start_collector --export none
stop_collector
is "$(sql "SELECT (SELECT count(*) FROM export_state) + (SELECT count(*) FROM export_marks)")" 0 "none: it is forgotten"

grep -aqF -e "$engine_password" -e "$old_password" "$scratch"/*.log "$db"* && fail "the password stands in a log or in the database"
ok "the password stands in no log and not in the database"
