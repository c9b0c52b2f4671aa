#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: a shim whose clock nobody knows, with 200 tiers, each with calls of a nanosecond and of half a minute in 235 buckets,
# takes no more memory than limits.h says, and the collector gives it back: 20 s later it has less than 200 MB. Nothing is counted wrong:
# each request is in the ledger, and each call under its tier or told to be under _other or nowhere.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

buckets=235
tiers=200
sum=$(printf '#include "base/limits.h"\nLIMIT_MB\n' | cc -E -P -I "$top/include" - | tail -n 1)
peak_kb() { sed -n 's/^VmHWM:[[:space:]]*\([0-9]*\) kB/\1/p' "/proc/$1/status"; }

start_collector
HOME=$scratch/home timeout 300 erl -noinput -pa "$SCENARIO_EBIN" "$KPROF_EBIN" \
  -run scenario_limits main "port:$collector_port" attack "$buckets" "$tiers" >"$scratch/attack.log" 2>&1 ||
  fail "no attack: $(cat "$scratch/attack.log")"
wait_for 120 "all requests are in the ledger" ledger_reaches requests_complete "$buckets"
peak=$(peak_kb "$collector_pid")
[ -n "$sanitized" ] || holds "$peak" -lt "$((sum * 1000))" "the collector stays below the sum of limits.h, KB"
small() { [ "$(rss_kb "$collector_pid")" -lt 200000 ]; }
[ -n "$sanitized" ] || wait_for 20 "20 s later it has less than 200 MB" small
stop_collector
is "$(ledger requests_incomplete+requests_expired+dropped_messages+orphan_returns+decode_errors)" 0 "nothing was lost"
calls=$(sql "SELECT ifnull(sum(calls), 0) FROM tier_stats WHERE resolution_s = 3600 AND identity <> '_total' AND tier <> '_total'")
total=$(sql "SELECT ifnull(sum(calls), 0) FROM tier_stats WHERE resolution_s = 3600 AND identity = '_total' AND tier <> '_total'")
is "$total" "$calls" "_total has what the identities have"
if [ "$calls" -ne "$((2 * buckets * tiers))" ]; then
  has "$collector_log" 'the memory for statistics is full' "what had no room was told"
fi
holds "$calls" -le "$((2 * buckets * tiers))" "no call is counted twice"
is "$(sql "SELECT count(*) FROM tier_stats WHERE resolution_s = 3600 AND tier <> '_total' AND (min_us <> 0.001 OR max_us < 28999999)")" 0 \
  "the shortest and the longest call are exact"
intact
echo "peak $((peak / 1000)) MB"
