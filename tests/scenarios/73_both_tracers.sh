#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: the native tracer and a trace port tell the same. Both trace the same requests of one node at once, each in a trace
# session of its own, with the same patterns: each call, error and request is in both, under the same identity, and the times differ by
# what lies between two messages of one event. A recording of the native tracer's stream gives what it gave live. From OTP 27 on.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

chmod 400 "$scratch/cookie"
name=both_$$
node=$name@localhost
tiers=(--tier http=shop_http:handle_request/2 --tier pool=shop_worker:work/2 --tier storage=shop_storage:run/2
  --tier render=shop_render:page/2 --tier accounting=shop_accounting:book/1)
replay() {
  timeout 600 "$kprof" replay "$1" --db "$2" "${tiers[@]}" >"$scratch/replay.out" 2>"$scratch/replay.log" ||
    fail "the replay of $(basename "$1"): $(cat "$scratch/replay.log")"
}
of_all="FROM tier_stats WHERE resolution_s = 10 GROUP BY 1, 2 ORDER BY 1, 2"
counts() { sql "SELECT tier, identity, sum(requests), sum(calls), sum(errors), sum(async_calls) $of_all" "$1"; }
sums() { sql "SELECT tier, identity, printf('%.3f', sum(total_us)), printf('%.3f', sum(self_us)), min(min_us), max(max_us) $of_all" "$1"; }

mkdir "$scratch/streams"
start_collector --record "$scratch/streams"
start_shop "$name" --accounting-wait-ms 30
start "$scratch/attach.log" "$kprof" attach "$node" --tracer native --cookie-file "$scratch/cookie" \
  --collector "127.0.0.1:$collector_port" --json "${tiers[@]}" --identity shop_http:handle_request/2:1
attach=$!
wait_for 30 "kprof attach traces" grep -qs '^tracing ' "$scratch/attach.log"
has "$collector_log" "node $node: tracing, by the native tracer" "by the native tracer"
holds "$(target_eval "$node" "{module, _} = code:ensure_loaded(kprof_mark),
  scenario_both:begins(\"$scratch/port.cap\",
    [erlang, kprof_mark, shop_http, shop_worker, shop_storage, shop_render, shop_accounting]).")" \
  -ge 7 "functions have the same patterns in a session with a trace port"
watch
load --clients 4 --think 4 --requests 1000 || fail "the load failed"
unwatch
save_truth
wait_for 15 "all requests are counted" ledger_reaches requests_complete "$(truth_total)"
is "$(target_eval "$node" 'scenario_both:ends().')" ok "the port's session is over"
kill -INT "$attach"
ends "$attach" 20
stop_collector
tells_truth
is "$(sql "SELECT sum(dropped_messages) + sum(decode_errors) FROM ledger")" 0 "nothing is lost"

replay "$scratch/port.cap" "$scratch/port.db"
has "$scratch/replay.log" "$(truth_total) requests complete, 0 incomplete" "the port's capture is whole"
is "$(counts "$scratch/port.db")" "$(counts "$db")" "requests, calls, errors and asynchronous calls of each tier and identity are the same"
stream=$(echo "$scratch/streams"/*.cap)
replay "$stream" "$scratch/again.db"
is "$(counts "$scratch/again.db")" "$(counts "$db")" "a recording of the native tracer's stream gives the same"
is "$(sums "$scratch/again.db")" "$(sums "$db")" "to the nanosecond"

# What takes a processor away between the two messages of an event is in one of the two times alone: so sums of many calls are judged.
sqlite3 -readonly -cmd "ATTACH 'file:$db?mode=ro' AS n" "$scratch/port.db" "
  WITH p AS (SELECT tier, identity, sum(calls) AS calls, sum(total_us) AS us $of_all),
       m AS (SELECT tier, identity, sum(total_us) AS us ${of_all/tier_stats/n.tier_stats})
  SELECT p.tier, p.calls, round(p.us), round(m.us) FROM p JOIN m USING (tier, identity) WHERE p.identity = '_total'" >"$scratch/times"
echo "tier, calls, µs by the port, µs by the native tracer:"
cat "$scratch/times"
differ=$(awk -F '|' '{ d = $3 - $4; d = d < 0 ? -d : d } d > 0.02 * $3 + 20 * $2' "$scratch/times")
printf '%s' "$differ"
timely "$(grep -c . <<<"$differ" || true)" -eq 0 "times that differ by more than a fiftieth and 20 µs a call"
