#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: a collector that is killed and started again costs the time between, and nothing else. The load
# notices nothing, the shim comes back by itself, the database is intact, no request is counted twice, and the ledger
# tells of the gap.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

name=killed_$$
start_collector
start_shop "$name"
start_tracing "$name"

start_load --clients 6 --think 20 --seconds 45
wait_for 15 "requests are counted" ledger_reaches requests_complete 200
killed=$(date +%s%3N)
kill -KILL "$collector_pid"
ends "$collector_pid" 5
is "$status" 137 "the collector was killed"
intact
before=$(ledger requests_complete)
holds "$before" -ge 200 "what was written before is still there"
waits() { [ "$(target_eval "$name@localhost" 'kprof:status().')" = waiting ]; }
wait_for 5 "the shim notices" waits
noticed=$(date +%s%3N)
sleep 1.5
is "$(ledger requests_complete)" "$before" "nobody writes"
is "$(target_eval "$name@localhost" '{kprof:status(), scenario_trace:info({shop_http, handle_request, 2}, traced)}.')" \
   "{waiting,{traced,false}}" "the node waits untraced meanwhile"

least=$(($(date +%s%3N) - noticed - 100))
start_collector
wait_for 20 "the shim is back" grep -q ': tracing$' "$collector_log"
most=$(($(date +%s%3N) - killed + 100))
wait_for 20 "requests are counted again" ledger_reaches requests_complete $((before + 200))
gone "$load_pid" && fail "the load ended too soon to tell anything"
status=0
wait "$load_pid" || status=$?
is "$status" 0 "the load ends well"
is "$(loaded connection_errors)" 0 "no request of the load failed for it"
save_truth
is "$(truth_total)" "$(loaded requests)" "the shop served what the load asked for"
stop_tracing
stop_collector

intact
counted_once
complete=$(ledger requests_complete)
other=$(($(ledger requests_incomplete) + $(ledger requests_expired) + $(ledger requests_unsampled)))
holds "$complete" -lt "$(truth_total)" "the gap is missing"
holds $((complete + other)) -le "$(truth_total)" "no more requests than there were, incomplete ones included"
holds "$(ledger away_ms)" -ge $least "the ledger tells how long nobody looked"
holds "$(ledger away_ms)" -le $most "and not more"
is "$(ledger paused_ms+tripped_ms)" 0 "and that it was not for overload, nor asked for"
# No tier and no identity has more than the shop did.
sql "SELECT tier, identity, sum(calls) FROM tier_stats WHERE resolution_s = 10 GROUP BY 1, 2" |
  while IFS='|' read -r tier identity calls; do
    real=$(truth_rows | sed -n "s/^$tier|$identity|\([0-9]*\)|.*/\1/p")
    [ "$calls" -le "${real:-0}" ] || fail "$tier of $identity: $calls calls, the shop did ${real:-0}"
  done || exit 1
ok "no tier has more calls than the shop did"
is "$(sql "SELECT count(*) FROM (SELECT DISTINCT node FROM ledger)")" 1 "it is one node to the collector"
