#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: what many nodes, or hostile ones, bring does not stay. 600 nodes that come one after the other with names of their own
# are all told apart, though no more than 250 are known at a time. 249 that announce a megabyte of names each, and three that fill the
# pools of requests, spans, processes, histograms and kept requests together, take no more memory than limits.h says, and 20 s after they
# have gone the collector has less than 200 MB.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

sum=$(printf '#include "base/limits.h"\nLIMIT_MB\n' | cc -E -P -I "$top/include" - | tail -n 1)
mb() { sed -n "s/^$1:[[:space:]]*\\([0-9]*\\) kB/\\1/p" "/proc/$collector_pid/status" | awk '{ print int($1 / 1000) }'; }
small() { [ "$(mb VmRSS)" -lt 200 ]; }
# gives_back WHAT: the collector stayed below the sum, and comes down once WHAT is over. Sanitized builds keep what they free.
gives_back() {
  [ -n "$sanitized" ] || holds "$(mb VmHWM)" -lt "$((sum * 1024 / 1000))" "$1: the peak, MB"
  [ -n "$sanitized" ] || wait_for 20 "20 s after $1 it has less than 200 MB" small
  ok "$1: it has $(mb VmRSS) MB afterwards"
}
erl_of() { HOME=$scratch/home timeout 900 erl -noinput -pa "$SCENARIO_EBIN" "$KPROF_EBIN" -run "$@"; }

# -- pods ----------------------------------------------------------------------------------------------------------------
pods=600
start_collector
erl_of scenario_crowd main "$collector_port" pods "$pods" >"$scratch/pods.log" 2>&1 || fail "no pods: $(cat "$scratch/pods.log")"
wait_for 60 "all requests are in the ledger" ledger_reaches requests_complete "$pods"
stop_collector
of_hour="resolution_s = 3600"
is "$(sql "SELECT count(DISTINCT node), sum(requests_complete), max(requests_complete) FROM ledger WHERE $of_hour")" "$pods|$pods|1" \
  "each of $pods nodes has its request"
is "$(sql "SELECT count(*) FROM tier_stats WHERE $of_hour AND tier = '_total' AND identity = node || ' work'")" "$pods" \
  "under an identity of its own"
is "$(sql "SELECT count(*) FROM tier_stats WHERE $of_hour AND identity = node || ' work' AND calls = 1
           AND tier IN (node || ' a', node || ' b')")" $((2 * pods)) "with tiers of its own, more than there is room for at a time"
is "$(sql "SELECT count(*) FROM path_stats WHERE $of_hour AND identity = node || ' work'
           AND path = node || ' a > ' || node || ' b'")" "$pods" "and where they belong"
has_not "$collector_log" 'is one too many' "no tier was refused"
intact

# -- names ---------------------------------------------------------------------------------------------------------------
collector_port=0 db=$scratch/names.db
start_collector
start "$scratch/names.log" env HOME="$scratch/home" erl -noinput -pa "$SCENARIO_EBIN" "$KPROF_EBIN" \
  -run scenario_crowd main "$collector_port" names 249 "$scratch/enough"
crowd_pid=$!
held() { grep -q '^held 249$' "$scratch/names.log" || { ! gone "$crowd_pid" || fail "no crowd: $(cat "$scratch/names.log")"; false; }; }
wait_for 120 "249 nodes announce a megabyte of names each" held
taken() { [ "$(in_log 'node names[0-9]*@host: [0-9]+ tiers?')" -ge 249 ]; }
wait_for 60 "all are taken" taken
ok "they take $(mb VmRSS) MB"
touch "$scratch/enough"
ends "$crowd_pid" 60
gives_back "a crowd with long names"
stop_collector

# -- pools ---------------------------------------------------------------------------------------------------------------
requests=110000 buckets=235 large=120
collector_port=0 db=$scratch/pools.db
start_collector
read -r -a sizes < <(seq -s ' ' 1801 $((1800 + large)))
attackers=()
attack() {
  start "$scratch/attack_$1.log" env HOME="$scratch/home" erl -noinput -pa "$SCENARIO_EBIN" "$KPROF_EBIN" \
    -run scenario_limits main "port:$collector_port:$1@localhost" "${@:2}"
  attackers+=($!)
}
attack full full "$requests"
attack rows attack "$buckets" 200
attack kept large "${sizes[@]}"
for pid in "${attackers[@]}"; do
  ends "$pid" 300
  is "$status" 0 "an attacker has said it all"
done
all=$((requests + buckets + 2 * large)) # with every large one goes a small one
wait_for 120 "each request is in the ledger" ledger_reaches requests_complete+requests_incomplete+requests_expired "$all"
gives_back "requests, rows and kept requests without end"
holds "$(mb VmHWM)" -ge 150 "it was an attack: the peak, MB"
stop_collector
is "$(ledger requests_complete+requests_incomplete+requests_expired)" "$all" "each once"
is "$(ledger orphan_returns+dropped_messages+decode_errors)" 0 "nothing else was lost"
is "$(sql "SELECT sum(requests_complete) FROM ledger WHERE resolution_s = 3600 AND node = 'kept@localhost'")" $((2 * large)) \
  "another node's requests have room all the same"
intact
