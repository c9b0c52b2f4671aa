#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: a replay tells what the live collector told of the same stream, and the truth of a capture that dbg
# made; the same every time; and of a file that is damaged or cut it counts what could be read and says where it broke. A recording holds no
# returned values unless they are asked for, and files are their owner's.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

shop_tiers=(--tier http=shop_http:handle_request/2 --tier pool=shop_worker:work/2 --tier storage=shop_storage:run/2
  --tier render=shop_render:page/2 --tier accounting=shop_accounting:book/1)
# replay STATUS FILE DB OPTION...: what it says is in $scratch/replay.log.
replay() {
  local want=$1 status=0
  timeout 600 "$kprof" replay "$2" --db "$3" "${@:4}" >"$scratch/replay.out" 2>"$scratch/replay.log" || status=$?
  [ "$status" = "$want" ] || fail "the replay of $(basename "$2") ended with $status, not $want: $(cat "$scratch/replay.log")"
}
# Everything that the views tell, in full.
everything() { sql "SELECT * FROM tier_stats ORDER BY 1, 2, 3, 4, 5; SELECT * FROM ledger ORDER BY 1, 2, 3" "$1"; }
# Sums that do not depend on where buckets begin.
sums() {
  sql "SELECT node, tier, identity, sum(requests), sum(calls), sum(errors), sum(async_calls), printf('%.3f', sum(total_us)),
       printf('%.3f', sum(self_us)), printf('%.3f', sum(waiting_us)), printf('%.3f', sum(parallel_us)),
       printf('%.3f', sum(async_us)), min(min_us), max(max_us)
       FROM tier_stats WHERE resolution_s = 10 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3" "$1"
}

# -- a recorded stream -------------------------------------------------------------------------------------------------
name=replay_$$
mkdir "$scratch/streams"
start_collector --record "$scratch/streams" --stats-log "$scratch/stats.log"
start_shop "$name" --accounting-wait-ms 2
start_tracing "$name"
load --clients 6 --think 15 --requests 1000 || fail "the load failed"
save_truth
is "$(stat -c %a "$scratch/streams"/*.cap "$scratch/stats.log" "$db" "$db-wal" "$db-shm" | sort -u)" 600 \
  "what the collector writes is its user's alone"
wait_for 15 "all requests are counted" ledger_reaches requests_complete 1000
stop_tracing
stop_collector
tells_truth
is "$(find "$scratch/streams" -name '*.cap' | wc -l)" 1 "one stream was recorded"
stream=$(echo "$scratch/streams"/*.cap)
replay 0 "$stream" "$scratch/again.db" "${shop_tiers[@]}"
is "$(sums "$scratch/again.db")" "$(sums "$db")" "a recorded stream gives what it gave live, to the nanosecond"
is "$(sql "SELECT sum(messages) FROM ledger WHERE resolution_s = 10" "$scratch/again.db")" \
   "$(sql "SELECT sum(messages) FROM ledger WHERE resolution_s = 10")" "message by message"
holds "$(sql "SELECT sum(requests) FROM tier_stats WHERE resolution_s = 10 AND identity = 'unknown' AND tier = '_total'")" -gt 0 \
  "some requests returned 'no such page'"
is "$(grep -ac 'no such page' "$stream" || true)" 0 "which is not in the recording"
has "$scratch/replay.log" '1000 requests complete, 0 incomplete, 0 expired' "the summary counts them"
replay 0 "$stream" "$scratch/third.db" "${shop_tiers[@]}"
is "$(everything "$scratch/third.db")" "$(everything "$scratch/again.db")" "twice the same"
replay 1 "$stream" "$scratch/third.db" "${shop_tiers[@]}"
has "$scratch/replay.log" 'is there already' "a database that is there is not touched"
is "$(everything "$scratch/third.db")" "$(everything "$scratch/again.db")" "indeed"

# -- with values, and reopened ------------------------------------------------------------------------------------------
live=$db
mkdir "$scratch/whole"
db=$scratch/whole.db
start_collector --record "$scratch/whole" --record-values
start_tracing "$name"
load --clients 6 --think 20 --requests 500 || fail "the load failed"
wait_for 15 "all requests are counted" ledger_reaches requests_complete 500
stop_tracing
stop_collector
whole=$(echo "$scratch/whole"/*.cap)
has "$whole" 'no such page' "with --record-values they are"
replay 0 "$whole" "$scratch/values.db" "${shop_tiers[@]}"
is "$(sums "$scratch/values.db")" "$(sums "$db")" "and it gives what it gave live"
is "$(sql "SELECT sum(messages), sum(bytes) FROM ledger WHERE resolution_s = 10" "$scratch/values.db")" \
   "$(sql "SELECT sum(messages), sum(bytes) FROM ledger WHERE resolution_s = 10")" "byte by byte"
db=$live

# -- cut and damaged ---------------------------------------------------------------------------------------------------
size=$(stat -c %s "$stream")
last=-1
for at in 3 $((size / 7)) $((size / 3)) $((size / 2 + 1)) $((size - 1)); do
  head -c "$at" "$stream" >"$scratch/cut.cap"
  rm -f "$scratch/cut.db"*
  replay 2 "$scratch/cut.cap" "$scratch/cut.db" "${shop_tiers[@]}"
  told=$(sed -n 's/.*is damaged or cut off at byte \([0-9]*\)$/\1/p' "$scratch/replay.log")
  complete=$(sed -n 's/.*messages, \([0-9]*\) requests complete.*/\1/p' "$scratch/replay.log")
  # The frame at that place is whole in the original, and reaches over the cut.
  read -r op a b c d < <(od -An -v -tu1 -j "${told:-0}" -N 5 "$stream")
  end=$((told + 5 + (op == 0 ? ((a * 256 + b) * 256 + c) * 256 + d : 0)))
  if [ -z "$told" ] || [ "$op" -gt 1 ] || [ "$told" -gt "$at" ] || [ "$end" -le "$at" ]; then fail "cut at $at, told ${told:-nothing}"; fi
  if [ "$complete" -lt "$last" ] || [ "$complete" -gt 1000 ]; then fail "cut at $at: $complete complete requests"; fi
  is "$(sql "SELECT coalesce(sum(requests_complete), 0) FROM ledger WHERE resolution_s = 10" "$scratch/cut.db")" "$complete" \
     "cut at $at of $size: told as $told, $complete requests counted"
  last=$complete
  [ "$at" -ne $((size / 2 + 1)) ] || begins=$told
done
# What ended within a second of the cut is incomplete: more of it may have followed.
holds "$last" -ge 200 "cut near the end, most are complete"
holds "$(sql "SELECT sum(requests_complete + requests_incomplete) FROM ledger WHERE resolution_s = 10" "$scratch/cut.db")" \
  -ge 990 "and nearly all are known"

# More than a frame is long: behind damage that lies in one frame all others are whole. In the middle, wherever that is in a frame, and
# where a size is: of 4 GB, which nothing comes behind any more, and of 64 KB, behind which the next frame is none.
read -r op a b c d < <(od -An -v -tu1 -j "$begins" -N 5 "$stream")
[ "$op" -eq 0 ] || fail "the frame at $begins is of the kind $op"
damage=20000
for at in $((size / 2)) $((begins + 1)) $((begins + 3)); do
  cp "$stream" "$scratch/damaged.cap"
  rm -f "$scratch/damaged.db"*
  head -c $damage /dev/zero | tr '\0' '\377' | dd of="$scratch/damaged.cap" bs=1 seek="$at" conv=notrunc status=none
  replay 2 "$scratch/damaged.cap" "$scratch/damaged.db" "${shop_tiers[@]}"
  told=$(sed -n 's/.*is damaged or cut off at byte \([0-9]*\)$/\1/p' "$scratch/replay.log")
  if [ "$at" -eq $((size / 2)) ]; then
    holds "${told:-0}" -ge $((at - damage)) "damage in the middle is told where it is"
    holds "$told" -le $((at + damage)) "and not after it"
  else
    is "$told" "$begins" "a size that is damaged, at $at, is told where its frame begins"
  fi
  half=$(sql "SELECT sum(requests_complete + requests_incomplete) FROM ledger WHERE resolution_s = 10" "$scratch/damaged.db")
  holds "$half" -ge 300 "what came before is counted"
  holds "$half" -le 700 "and nothing is made up"
done
: >"$scratch/empty.cap"
replay 0 "$scratch/empty.cap" "$scratch/empty.db" "${shop_tiers[@]}"
replay 1 "$scratch/nowhere.cap" "$scratch/nowhere.db" "${shop_tiers[@]}"
has "$scratch/replay.log" 'nowhere.cap.*No such file' "a file that is not there"

# -- what dbg wrote ----------------------------------------------------------------------------------------------------
"$shop" run --trace dbg --capture "$scratch/dbg.cap" --truth-file "$scratch/truth.json" --clients 4 --think 2 --requests 300 --json \
  >"$scratch/load.json" 2>"$scratch/dbg.log" || fail "the shop did not trace itself"
replay 0 "$scratch/dbg.cap" "$scratch/dbg.db" "${shop_tiers[@]}" --entry http --start 2026-11-20T10:00:02Z
is "$(tiers_of 10 "$scratch/dbg.db" | grep '|_total|')" "$(truth_rows | grep '|_total|')" "a capture of dbg gives the truth"
is "$(sql 'SELECT min(bucket_start) FROM tier_stats WHERE resolution_s = 10' "$scratch/dbg.db")" 2026-11-20T10:00:00Z "and begins when told"
# With an entry that is called inside another tier first, no request begins as it should.
replay 0 "$scratch/dbg.cap" "$scratch/entry.db" "${shop_tiers[@]}" --entry pool
is "$(sql "SELECT sum(requests_complete) FROM ledger WHERE resolution_s = 10" "$scratch/entry.db")" 0 \
  "the wrong entry: no request is complete"
has "$scratch/replay.log" '[1-9][0-9]* incomplete' "but incomplete"
has "$scratch/replay.log" '^incomplete: [0-9]*: they did not begin as they should' "it says why"
has "$scratch/replay.log" 'one begins where the first call under its token is pool' "and what to do"

# -- a fixed capture, by hand: 40 requests with arguments and wall-clock times; the sums were made with an Erlang script ---------------
fixed() {
  replay 0 "$top/tests/scenarios/data/requests.cap" "$1" --entry run --identity requests:handle_request/2:1 \
    --tier run=network_server:run/1 --tier parsing=network_server:parse_request/1 --tier handle=requests:handle_request/2 \
    --tier db=:db.network_request/1 --tier formatter=formatter:format_response/1 --tier accounting=accounting:incr_reqs/1 "${@:2}"
}
fixed "$scratch/fixed.db"
is "$(sql "SELECT bucket_start, identity, tier, requests, calls, errors, async_calls, round(total_us), round(self_us), round(waiting_us)
           FROM tier_stats WHERE resolution_s = 10 ORDER BY 2, 3" "$scratch/fixed.db" | sed 's/\.0//g')" "\
2026-11-21T00:26:30Z|_total|_total|40|40|10|0|33741|0|413
2026-11-21T00:26:30Z|_total|accounting|40|40|0|32|16|16|137
2026-11-21T00:26:30Z|_total|db|40|40|10|0|68|68|276
2026-11-21T00:26:30Z|_total|formatter|30|30|0|0|13075|13075|0
2026-11-21T00:26:30Z|_total|handle|40|40|10|0|600|103|0
2026-11-21T00:26:30Z|_total|parsing|40|40|0|0|19821|19821|0
2026-11-21T00:26:30Z|_total|run|40|40|10|0|33741|245|0
2026-11-21T00:26:30Z|create|_total|10|10|0|0|328|0|154
2026-11-21T00:26:30Z|create|accounting|10|10|0|8|4|4|15
2026-11-21T00:26:30Z|create|db|10|10|0|0|18|18|139
2026-11-21T00:26:30Z|create|formatter|10|10|0|0|49|49|0
2026-11-21T00:26:30Z|create|handle|10|10|0|0|198|22|0
2026-11-21T00:26:30Z|create|parsing|10|10|0|0|21|21|0
2026-11-21T00:26:30Z|create|run|10|10|0|0|328|60|0
2026-11-21T00:26:30Z|fail|_total|10|10|10|0|174|0|55
2026-11-21T00:26:30Z|fail|accounting|10|10|0|8|4|4|16
2026-11-21T00:26:30Z|fail|db|10|10|10|0|18|18|39
2026-11-21T00:26:30Z|fail|handle|10|10|10|0|104|27|0
2026-11-21T00:26:30Z|fail|parsing|10|10|0|0|24|24|0
2026-11-21T00:26:30Z|fail|run|10|10|10|0|174|46|0
2026-11-21T00:26:30Z|read|_total|10|10|0|0|286|0|109
2026-11-21T00:26:30Z|read|accounting|10|10|0|8|5|5|62
2026-11-21T00:26:30Z|read|db|10|10|0|0|19|19|47
2026-11-21T00:26:30Z|read|formatter|10|10|0|0|40|40|0
2026-11-21T00:26:30Z|read|handle|10|10|0|0|157|24|0
2026-11-21T00:26:30Z|read|parsing|10|10|0|0|27|27|0
2026-11-21T00:26:30Z|read|run|10|10|0|0|286|62|0
2026-11-21T00:26:30Z|update|_total|10|10|0|0|32953|0|95
2026-11-21T00:26:30Z|update|accounting|10|10|0|8|3|3|44
2026-11-21T00:26:30Z|update|db|10|10|0|0|13|13|51
2026-11-21T00:26:30Z|update|formatter|10|10|0|0|12986|12986|0
2026-11-21T00:26:30Z|update|handle|10|10|0|0|141|30|0
2026-11-21T00:26:30Z|update|parsing|10|10|0|0|19749|19749|0
2026-11-21T00:26:30Z|update|run|10|10|0|0|32953|77|0" "a fixed capture gives the known numbers"
is "$(sql "SELECT CAST(round(sum(mean_us * calls)) AS INTEGER) FROM tier_stats
           WHERE resolution_s = 10 AND identity = '_total' AND tier IN ('run', 'parsing')" \
      "$scratch/fixed.db")" 53562 "durations"
is "$(sql "SELECT * FROM ledger WHERE resolution_s = 3600" "$scratch/fixed.db")" \
  "2026-11-21T00:00:00Z|3600|nonode@nohost|40|0|0|0|460|69256|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|230|0|0|0|0|0|0|0|0|ok" \
   "and the known ledger"

# -- requests that are kept whole --------------------------------------------------------------------------------------
kept() { sql "SELECT identity, reason, count(*), min(duration_us) FROM slow_requests GROUP BY 1, 2 ORDER BY 1, 2" "$1" | sed 's/\.0$//'; }
is "$(kept "$scratch/fixed.db")" "\
create|slowest|3|22
fail|failed|3|18
read|slowest|3|29
update|slowest|3|25" "no request took a second: of each identity the slowest or those that failed are kept"
fixed "$scratch/slow.db" --slow-threshold 1ms
is "$(kept "$scratch/slow.db" | grep update)" "\
update|over|1|32759
update|slowest|3|25" "but one took more than a millisecond"
for threshold in soon 2h; do
  status=0
  "$kprof" replay "$stream" --db "$scratch/none.db" "${shop_tiers[@]}" --slow-threshold "$threshold" 2>"$scratch/replay.log" || status=$?
  is "$status" 2 "a threshold of $threshold is none"
  has "$scratch/replay.log" '^kprof replay: --slow-threshold' "and told so"
done
