#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: what the collector keeps in memory has its bounds, and what is past them is told. 100,000 open requests fit in
# 200 MB and are all counted in the end; a request of 100,000 calls is cut, counts as incomplete, is kept so far as it was taken in and
# says so, while the requests beside it are whole. One of exactly as many calls as are taken in is complete, and many processes in one do
# not slow its closing down.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cap=$(sed -n 's/^#define LIMIT_SPANS_PER_REQUEST \([0-9]*\)u$/\1/p' "$top/include/base/limits.h")
kept=$(sed -n 's/^#define LIMIT_KEPT_SPANS \([0-9]*\)u$/\1/p' "$top/include/base/limits.h")
tiers=(--tier handle=limits:handle/2 --tier storage=limits:storage/1 --tier pool=limits:pool/1 --tier render=limits:render/1 \
  --tier small=limits:small/0)
most=195312 # KB: 200 MB
[ -z "$sanitized" ] || most=1000000
# capture FILE WHAT NUMBER...: FILE may be port:PORT, of a collector.
capture() {
  HOME=$scratch/home timeout 600 erl -noinput -pa "$SCENARIO_EBIN" "$KPROF_EBIN" \
    -run scenario_limits main "$@" >"$scratch/capture.log" 2>&1 ||
    fail "no capture $2: $(cat "$scratch/capture.log")"
}
peak_kb() { sed -n 's/^VmHWM:[[:space:]]*\([0-9]*\) kB/\1/p' "/proc/$1/status"; }
seconds() { sed -n 's/^\([0-9.]*\) s, .*/\1/p' "$scratch/replay.log"; }
# Requests of a capture of kind open, as they were counted: tier, requests, calls, and what one call took, itself, and waited for in µs.
open_rows() { sql "SELECT tier, sum(requests), sum(calls), round(sum(total_us) / sum(calls)), round(sum(self_us) / sum(calls)),
                          round(sum(wait_us) / sum(calls))
                   FROM tier_stats WHERE resolution_s = 3600 AND identity = 'open' GROUP BY tier
                   ORDER BY sum(calls), sum(total_us) DESC" "$1" | sed 's/\.0//g'; }
# Two calls in either of two processes, one within the other; each begins and ends a second after the one before. That second of
# storage's in which it waits for pool to begin is waiting, and not its own.
open_truth="\
_total|100000|100000|9000000|2000000|0
handle|100000|100000|7000000|2000000|0
storage|100000|100000|5000000|1000000|0
pool|100000|100000|3000000|2000000|1000000
render|100000|100000|1000000|1000000|0"

# -- 100,000 open requests ---------------------------------------------------------------------------------------------
# Through a pipe, as a file's pages would count too; it stays open until the memory was looked at.
capture "$scratch/open.cap" open 100000
mkfifo "$scratch/pipe"
start "$scratch/replay.log" "$kprof" replay "$scratch/pipe" --db "$scratch/open.db" "${tiers[@]}"
replay_pid=$!
exec {fd}>"$scratch/pipe"
timeout 1200 cat "$scratch/open.cap" >&"$fd" || fail "the replay does not take the capture in"
sleep 0.5
peak=$(peak_kb "$replay_pid")
exec {fd}>&-
ends "$replay_pid" 120
is "$status" 0 "the replay ends with 0"
holds "$peak" -le "$most" "a replay of 100,000 open requests stays within 200 MB, KB"
holds "$peak" -ge 50000 "and they were there, KB"
has "$scratch/replay.log" '100000 requests complete, 0 incomplete, 0 expired' "all are complete in the end"
is "$(open_rows "$scratch/open.db")" "$open_truth" "with all their calls, in both processes"

start_collector
capture "port:$collector_port" open 100000
wait_for 60 "the collector has counted them all" ledger_reaches requests_complete 100000
holds "$(peak_kb "$collector_pid")" -le "$most" "the collector takes them in and stays within 200 MB, KB"
stop_collector
is "$(open_rows "$db")" "$open_truth" "with all their calls, in both processes"
is "$(ledger requests_incomplete+requests_expired+dropped_messages+orphan_returns+stale_calls+decode_errors)" 0 "nothing was lost"
counted_once
intact

# -- requests of very many calls -----------------------------------------------------------------------------------------
# One after the other, with a small request beside every thousandth call.
db=$scratch/large.db
capture "$scratch/large.cap" large 100000 "$cap" $((cap + 1))
small=$((99 + (cap - 1) / 1000 + cap / 1000))
"$kprof" replay "$scratch/large.cap" --db "$db" "${tiers[@]}" 2>"$scratch/replay.log" || fail "the replay failed"
has "$scratch/replay.log" " $((small + 1)) requests complete, 2 incomplete, 0 expired" "the requests over the cap are incomplete"
is "$(sql "SELECT requests_complete, requests_incomplete, requests_expired, stale_calls, verdict FROM ledger WHERE resolution_s = 3600")" \
  "$((small + 1))|2|0|$((100000 - cap + 1))|lossy" "the ledger counts them, and each call that was cut"
is "$(sql "SELECT identity, tier, calls FROM tier_stats WHERE resolution_s = 3600 AND identity <> '_total' ORDER BY 1, 2")" "\
small|_total|$small
small|small|$((3 * small))
spans $cap|_total|1
spans $cap|handle|1
spans $cap|pool|$((cap / 2))
spans $cap|storage|$((cap / 2 - 1))" "one of as many calls as the cap is counted with each, and so are the requests beside them"
is "$(sql "SELECT identity, reason, complete, spans, kept_spans FROM slow_requests WHERE identity LIKE 'spans%' ORDER BY spans DESC")" "\
spans 100000|over|0|100000|$kept
spans $((cap + 1))|over|0|$((cap + 1))|$kept
spans $cap|over|1|$cap|$kept" "they are kept, marked, with the number of their calls"
is "$(sql "SELECT count(*), count(DISTINCT span), sum(name = 'handle' AND parent IS NULL), count(parent) FROM slow_spans
           WHERE request_id = (SELECT id FROM slow_requests WHERE identity = 'spans 100000')")" "$kept|$kept|1|$((kept - 1))" "as a tree"

"$kprof" slow --db "$db" >"$scratch/list.txt" || fail "kprof slow failed"
has "$scratch/list.txt" 'spans 100000 .* 100000, cut$' "kprof slow marks what was cut"
has "$scratch/list.txt" "spans $((cap + 1)) .* $((cap + 1)), cut\$" "by however little"
has "$scratch/list.txt" "spans $cap .* $cap\$" "and nothing else"
has "$scratch/list.txt" 'Cut: it had more spans than the collector takes' "and says what that means"
id=$(sql "SELECT id FROM slow_requests WHERE identity = 'spans 100000'")
"$kprof" slow "$id" --db "$db" >"$scratch/tree.txt" || fail "kprof slow $id failed"
is "$(grep -cE '  (handle|  (storage|pool)) +ok$' "$scratch/tree.txt")" "$kept" "kprof slow ID draws what was kept"
has "$scratch/tree.txt" "$kept of 100000 spans were kept, the first by start" "says how much that is"
has "$scratch/tree.txt" 'more spans than the collector takes: it counts as incomplete' "and that it was cut"
"$kprof" slow "$id" --db "$db" --json >"$scratch/tree.json" || fail "kprof slow $id --json failed"
is "$(sqlite3 :memory: \
  "SELECT j ->> '$.request.complete', j ->> '$.request.spans', j ->> '$.request.kept_spans', json_array_length(j, '\$.spans')
   FROM (SELECT readfile('$scratch/tree.json') AS j)")" \
  "0|100000|$kept|$kept" "and so does its JSON"
intact

# -- a request of very many processes --------------------------------------------------------------------------------------
db=$scratch/wide.db
capture "$scratch/wide.cap" wide $((cap / 2 - 1))
watch
"$kprof" replay "$scratch/wide.cap" --db "$db" "${tiers[@]}" 2>"$scratch/replay.log" || fail "the replay failed"
has "$scratch/replay.log" ' 1 requests complete, 0 incomplete, 0 expired' "a request of many processes is complete"
is "$(sql "SELECT path, calls FROM path_stats WHERE resolution_s = 3600 AND identity = 'wide' ORDER BY 1")" "\
handle|1
handle > pool|$((cap / 2 - 1))
handle > storage|$((cap / 2 - 1))" "with all its calls, below the one that spawned them"
took=$(seconds)
[ -n "$sanitized" ] || timely "$(awk "BEGIN {print int($took * 1000)}")" -lt 1000 "and is closed in no time, ms"
