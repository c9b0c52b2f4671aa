#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: a session with two data connections, which share its messages by process, has the very same statistics as with one,
# also when one of the two is half a second behind, and when the collector's recording is replayed; where one is lost or silent, the
# requests of that time are incomplete, those before and after are complete, and each is counted once.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

requests=1000

# rows NODE: all that the statistics say of a node.
rows() {
  sql "SELECT bucket_start, resolution_s, identity, tier, requests, calls, errors, async_calls, total_us, self_us, async_us, wait_us,
              stddev_us, min_us, max_us, p50_us, p99_us
       FROM tier_stats WHERE node = '$1@h' ORDER BY 1, 2, 3, 4"
}
# sums NODE [FILE]: the same without buckets, as a capture of a node that is not there does not tell the date.
sums() {
  sql "SELECT identity, tier, sum(requests), sum(calls), printf('%.3f', sum(total_us)), printf('%.3f', sum(self_us)),
              printf('%.3f', sum(wait_us)), min(min_us), max(max_us)
       FROM tier_stats WHERE node = '$1@h' AND resolution_s = 10 GROUP BY 1, 2 ORDER BY 1, 2" "${2:-$db}"
}
# lines NODE: its ledger, but for the bytes, as each of several connections has empty frames, and for messages and calls, which
# count in the bucket in which they come. A bucket that has nothing but those is none.
lines() {
  sql "SELECT bucket_start, requests_complete, requests_incomplete, requests_expired, dropped_messages, orphan_returns, stale_calls,
              decode_errors, verdict
       FROM ledger WHERE node = '$1@h' AND resolution_s = 10 AND requests_complete + requests_incomplete + requests_expired +
         dropped_messages + orphan_returns + stale_calls + decode_errors > 0 ORDER BY 1"
}
# sum NODE COLUMN: of its ledger.
sum() { sql "SELECT coalesce(sum($2), 0) FROM ledger WHERE node = '$1@h' AND resolution_s = 10"; }
# complete NODE PHASE [TIER]
complete() {
  sql "SELECT coalesce(sum(calls), 0) FROM tier_stats
       WHERE node = '$1@h' AND resolution_s = 10 AND identity = '$2' AND tier = '${3:-_total}'"
}
all_counted() {
  local node
  for node in one two slow killed silent; do
    [ "$(sum $node 'requests_complete + requests_incomplete + requests_expired')" -ge $requests ] || return 1
  done
}
whole() { [ "$(sum "$1" requests_complete)" = $requests ]; }
# made NODE PHASE: how many requests the node had before or after.
made() { sed -n "s/^$1@h .*$2 \([0-9]*\).*/\1/p" "$scratch/made.txt"; }
apart() {
  [ "$(complete "$1" before)" = "$(made "$1" before)" ] && [ "$(complete "$1" during)" = 0 ] &&
    [ "$(complete "$1" after)" = "$(made "$1" after)" ]
}
# unlike: the nodes for which the round did not go as it should.
unlike() {
  local node
  for node in one two slow; do whole $node || printf ' %s' "$node: $(sum $node requests_complete) complete"; done
  for node in killed silent; do
    apart $node || printf ' %s' "$node: $(complete $node before) before, $(complete $node during) during, $(complete $node after) after"
  done
}

# To the collector a machine that stands still for a second is a silent connection: what depends on that is judged in a round in which it
# did not, and what must hold on any machine in each.
streams() { # streams ROUND
  local node nodes round=$1
  db=$scratch/round$round.db
  recorded=$scratch/streams$round
  mkdir "$recorded"
  start_collector --record "$recorded"
  start "$scratch/made.txt" erl -noinput -pa "$SCENARIO_EBIN" -pa "$KPROF_EBIN" -run scenario_streams main "$collector_port" "$round"
  nodes=$!
  watch
  ends "$nodes" 120
  [ "$status" = 0 ] || fail "the nodes: $(cat "$scratch/made.txt")"
  wait_for 20 "all requests are counted" all_counted
  stop_collector
  cat "$scratch/made.txt"
  for node in one two slow killed silent; do
    is "$(sum $node 'requests_complete + requests_incomplete + requests_expired')" $requests "$node: each request is counted once"
    is "$(sql "SELECT sum(c.calls - t.calls) FROM tier_stats t JOIN tier_stats c USING (bucket_start, resolution_s, node, identity)
               WHERE t.tier = '_total' AND c.tier IN ('one', 'two') AND node = '$node@h'")" 0 \
      "$node: each complete request has its call of one and that of two"
    is "$(sum $node "messages - decode_errors")" "$(sed -n "s/^$node@h made .*, brought //p" "$scratch/made.txt")" "$node: whole messages"
    is "$(sum $node "messages + dropped_messages")" $((6 * requests)) "$node: what did not come is counted"
  done
  differ=$(unlike)
}
in_quiet "requests of several connections" streams
if [ -n "$differ" ]; then
  intact
  exit
fi

# -- two are as one ----------------------------------------------------------------------------------------------------
holds "$(rows one | wc -l)" -ge 45 "there are rows of each tier, identity and resolution"
is "$(rows two)" "$(rows one)" "two connections: the statistics of one"
is "$(lines two)" "$(lines one)" "and its ledger"
is "$(rows slow)" "$(rows one)" "one of them half a second behind: the same"
is "$(lines slow)" "$(lines one)" "and the ledger"
for node in one two slow; do
  is "$(sum $node "dropped_messages + decode_errors + orphan_returns + stale_calls")" 0 "$node: nothing is lost, nothing strange"
  is "$(sum $node calls)" $((2 * requests)) "$node: all calls are in the ledger"
done

# -- a recording of two is one stream, too -----------------------------------------------------------------------------
for node in one two slow; do
  "$kprof" replay "$recorded/$node@h"*.cap --db "$scratch/$node.db" --tier one=sim:one/1 --tier two=sim:two/1 \
    >"$scratch/replay.log" 2>&1 || fail "the replay of $node@h: $(cat "$scratch/replay.log")"
  is "$(sums "$node" "$scratch/$node.db")" "$(sums one)" "the replay of $node@h gives what came live"
done

# -- one that is lost, and one that is silent --------------------------------------------------------------------------
for node in killed silent; do
  for phase in before after; do
    is "$(complete $node $phase)" "$(made $node $phase)" "$node: each request $phase it is complete"
  done
  is "$(complete $node during)" 0 "$node: none meanwhile is"
  holds "$(sum $node incomplete_loss)" -gt 0 "$node: they are incomplete by loss"
  is "$(sum $node requests_incomplete)" "$(sum $node incomplete_loss)" "$node: for no other reason"
done
is "$(sum killed decode_errors)" 1 "killed: the frame that was cut is told"
is "$(sum silent dropped_messages)" 0 "silent: no message is lost, and none is told to be"
intact
