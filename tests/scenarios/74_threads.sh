#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: with --threads 2 two threads take in what nodes send, and all else is as with one: sums to the nanosecond, requests
# that go from one thread's node to the other's, whatever tools want of nodes, nodes that go and come back, and an end with all written.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

status=0
"$collector" --listen 0 --db "$db" --threads nine 2>"$scratch/wrong.log" || status=$?
is "$status" 2 "a number that is none is wrong usage"
has "$scratch/wrong.log" '^kprof-collector: --threads nine: want a number from 1 to 8' "and is told"

start_collector --threads 2
sim=sim_$$ a=asker_$$@localhost b=server_$$@localhost
for node in "$sim" "${a%@*}" "${b%@*}"; do start_erl "$node" -pa "$KPROF_EBIN"; done
is "$(target_eval "$a" "scenario_remote:start($collector_port).")" ok "one node is traced"
is "$(target_eval "$b" "scenario_remote:start($collector_port).")" ok "and another"
is "$(target_eval "$a" "net_kernel:connect_node('$b').")" true "they are connected"

# How many of the threads that take in have worked, each for 20 ms at least.
worked() {
  local task
  for task in "/proc/$collector_pid/task"/*; do
    grep -qx intake "$task/comm" && awk '{ sub(/.*\) /, ""); if ($12 + $13 > 1) print }' "$task/stat"
  done | wc -l
}

# -- many nodes, in two rounds, and meanwhile what is asked of two -------------------------------------------------------
nodes=12 batches=40 per_batch=100 rounds=2
requests=$((batches * per_batch))
for round in $(seq $rounds); do
  target_eval "$sim@localhost" "scenario_many:run($collector_port, $nodes, {$batches, $per_batch}, $round)." >"$scratch/round.log" &
  simulated=$!
  is "$(target_eval "$a" "B = '$b', scenario_remote:requests(100, B, quick).")" ok "round $round: requests that go to the other node"
  is "$(target_eval "$b" "scenario_remote:own(10).")" ok "round $round: and that node's own"
  "$kprof" nodes --collector "127.0.0.1:$collector_port" >"$scratch/nodes.txt" || fail "kprof nodes"
  has "$scratch/nodes.txt" '^ asker_.* tracing ' "round $round: kprof nodes tells of one"
  has "$scratch/nodes.txt" '^ server_.* tracing ' "round $round: and of the other"
  for node in "$a" "$b"; do
    "$kprof" sample "$node" --collector "127.0.0.1:$collector_port" --for 2s >"$scratch/sample.log" 2>&1 ||
      fail "kprof sample $node: $(tail -n 3 "$scratch/sample.log")"
    ok "round $round: stacks of $node are sampled"
  done
  wait "$simulated" || fail "round $round of the simulated nodes: $(cat "$scratch/round.log")"
  wait_for 60 "round $round: all requests are in the database" \
    ledger_reaches requests_complete $((round * (nodes * requests + 100 + 10)))
done
is "$(sql "SELECT sum(requests_complete), sum(requests_incomplete), sum(requests_expired), sum(stale_calls), sum(dropped_messages),
                  sum(orphan_returns), sum(decode_errors) FROM ledger WHERE resolution_s = 10")" \
  "$((rounds * (nodes * requests + 110)))|0|0|0|0|0|0" "every request of every node is complete, and nothing else is told"
many_truth "$sim@localhost" "$nodes" "$requests" $rounds >"$scratch/truth"
for resolution in 10 3600; do
  many_told $resolution >"$scratch/told"
  is "$(diff "$scratch/truth" "$scratch/told" || true)" "" "their requests, calls, errors and times are exact at $resolution s"
done
is "$(sql "SELECT sum(calls) FROM tier_stats WHERE resolution_s = 10 AND node = '$b' AND identity = '_remote' AND tier = '_total'")" \
  $((rounds * 100)) "the parts of the other thread's requests are known as such"
is "$(worked)" 2 "two threads have worked"

# -- a full trace of a node of either thread -----------------------------------------------------------------------------
for node in "$a" "$b"; do
  "$kprof" flame "$node" --collector "127.0.0.1:$collector_port" --requests 5 --for 20s >"$scratch/flame.log" 2>&1 &
  flame=$!
  while ! gone "$flame"; do
    target_eval "$b" "scenario_remote:own(5)." >/dev/null
    target_eval "$a" "B = '$b', scenario_remote:requests(5, B, quick)." >/dev/null
  done
  wait "$flame" || fail "kprof flame $node: $(tail -n 5 "$scratch/flame.log")"
  ok "a full trace of $node"
done
stop_collector
has_not "$collector_log" ' error ' "the log has no error"
intact
