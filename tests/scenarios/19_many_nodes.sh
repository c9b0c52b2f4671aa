#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: one collector takes fifty simulated nodes and five real ones at the same time, has the sums of each exactly, and needs
# no more memory the longer it runs and the more often nodes come back; a node's place is not kept by one that is silent for ever.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

start_collector
sim=sim_$$
start_erl "$sim" -pa "$KPROF_EBIN"
real=()
for i in 1 2 3 4 5; do
  real+=("real${i}_$$")
  start_erl "real${i}_$$" -pa "$KPROF_EBIN"
  is "$(target_eval "${real[-1]}@localhost" "scenario_remote:start($collector_port).")" ok "real node $i is traced"
done

# -- all at once, and back again ---------------------------------------------------------------------------------------
batches=40 per_batch=25 rounds=4
requests=$((batches * per_batch))
of_round=$((50 * requests + 10 + 20 + 30 + 40 + 50))
mb() { echo $(($(rss_kb "$collector_pid") / 1024)); }
most() { printf '%s\n' "$@" | sort -n | tail -n 1; }
memory=()
# The last round has not taken more than the first two: once a flush that is under way is over.
no_more() {
  memory[-1]=$(mb)
  [ "${memory[-1]}" -le $(($(most "${memory[@]:0:2}") + 8)) ]
}
for round in $(seq $rounds); do
  target_eval "$sim@localhost" "scenario_many:run($collector_port, 50, {$batches, $per_batch}, $round)." >"$scratch/round.log" &
  simulated=$!
  sleep 1
  for i in 1 2 3 4 5; do
    is "$(target_eval "${real[i - 1]}@localhost" "scenario_remote:own($((i * 10))).")" ok \
      "round $round: real node $i has requests of its own"
  done
  wait "$simulated" || fail "round $round of the simulated nodes: $(cat "$scratch/round.log")"
  # with what waits for it read, and what it has gathered written
  wait_for 60 "round $round: all requests are in the database" ledger_reaches requests_complete $((round * of_round))
  memory+=("$(mb)")
  [ "$round" -le 2 ] || [ -n "$sanitized" ] || soon 10 no_more || true
  echo "round $round: the collector takes ${memory[-1]} MB"
done
all=$((rounds * of_round))
is "$(sql "SELECT sum(requests_complete), sum(requests_incomplete), sum(requests_expired), sum(stale_calls),
                  sum(dropped_messages), sum(orphan_returns),
                  sum(decode_errors) FROM ledger WHERE resolution_s = 10")" "$all|0|0|0|0|0|0" \
  "every request of every node is complete, and nothing else is told"
is "$(sql "SELECT count(*) FROM node_names")" 55 "55 nodes, however often they came back"

many_truth "$sim@localhost" 50 "$requests" $rounds >"$scratch/truth"
for resolution in 10 3600; do
  many_told $resolution >"$scratch/told"
  is "$(wc -l <"$scratch/told")" 50 "all simulated nodes at $resolution s"
  is "$(diff "$scratch/truth" "$scratch/told" || true)" "" "their requests, calls, errors and times are exact, to the nanosecond"
done
for i in 1 2 3 4 5; do
  is "$(sql "SELECT sum(calls) FROM tier_stats
             WHERE resolution_s = 10 AND node = '${real[i - 1]}@localhost' AND identity = 'mine' AND tier = 'back'")" \
    $((rounds * i * 10)) "real node $i: its calls"
done
counted_once

# -- asked for one of them ---------------------------------------------------------------------------------------------
"$kprof" report --db "$db" --node sim7 --json >"$scratch/one.json"
is "$(sqlite3 :memory: "SELECT json_extract(readfile('$scratch/one.json'), '\$.ledger.requests_complete')")" $((rounds * requests)) \
  "--node sim7 is enough of a name"
"$kprof" report --db "$db" --node sim7@host7 --cost >"$scratch/cost.txt" || fail "--cost --node"
has "$scratch/cost.txt" '^ one ' "--cost of one node"
"$kprof" slow --db "$db" --node sim7 --limit 1000 --json >"$scratch/slow.json"
is "$(sqlite3 :memory: "SELECT DISTINCT value ->> 'node' FROM json_each(readfile('$scratch/slow.json'), '\$.requests')")" \
  sim7@host7.example.org "kprof slow of one node"
"$kprof" slow --db "$db" --limit 1000 >"$scratch/slow.txt"
has "$scratch/slow.txt" ' sim50@host50 ' "nodes are shown with their short hosts"
"$kprof" nodes --collector "127.0.0.1:$collector_port" >"$scratch/nodes.txt" || fail "kprof nodes"
is "$(grep -c '^ sim[0-9]*@host[0-9]*  *gone ' "$scratch/nodes.txt")" 50 "by kprof nodes, too"

# -- memory ------------------------------------------------------------------------------------------------------------
# Each round has brought the bytes of the first again, 50 nodes and 50,000 requests.
[ -n "$sanitized" ] ||
  holds "$(most "${memory[@]:2}")" -le $(($(most "${memory[@]:0:2}") + 8)) "MB in the later rounds are those of the first two"

# -- a connection that is dead -----------------------------------------------------------------------------------------
for _ in {1..20}; do
  twice=$(target_eval "$sim@localhost" "scenario_many:comes_twice($collector_port, 7).")
  [ "$twice" = slow ] || break
done
is "$twice" kept "a node that was heard of just now keeps its place"
back() { (trap - EXIT; target_eval "$sim@localhost" \
  "S = scenario_many:hello_only($collector_port, 7), gen_tcp:close(S).") >"$scratch/back.log" 2>&1; }
wait_for 6 "the node comes back" back
has "$collector_log" 'warning node sim7@host7.example.org: silent, and back on another connection' "one that is silent makes way for itself"
stop_collector
intact
