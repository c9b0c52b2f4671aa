#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: a fleet of collectors that export to one ClickHouse. Simulated collectors make the requests of some hours in minutes of
# this machine; they and the engine are killed again and again, the engine is away for half of the time, batches are sent twice, and now and
# then a real kprof-collector goes on with the database of one that was killed. None takes more memory for what waits. In the end the engine
# has every request exactly once, as the generator has counted them itself, and answers for the 99th percentile of a tier over all nodes and
# the whole time.
#
# FLEET_COLLECTORS, FLEET_NODES (of each), FLEET_IDENTITIES, FLEET_TIERS, FLEET_REQUESTS (a minute of each identity and node),
# FLEET_MINUTES, FLEET_KILLS: the size. The long test takes a fleet of 1,000 nodes.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$(dirname "${BASH_SOURCE[0]}")/clickhouse.sh"

collectors=${FLEET_COLLECTORS:-3} nodes=${FLEET_NODES:-4} minutes=${FLEET_MINUTES:-12} kills=${FLEET_KILLS:-8}
identities=${FLEET_IDENTITIES:-5} tiers=${FLEET_TIERS:-4}
size=(--collectors "$collectors" --nodes "$nodes" --identities "$identities" --tiers "$tiers" --requests "${FLEET_REQUESTS:-8}"
  --minutes "$minutes")
away_from=$((minutes / 4)) away_until=$((minutes * 3 / 4)) # an hour of two
begin=$((($(date +%s) / 3600 - minutes / 60 - 2) * 3600))
RANDOM=${FLEET_SEED:-7}
[ "$minutes" -gt 3 ] || fail "FLEET_MINUTES: want 4 or more"

make_engine
start_engine
password_file=$scratch/password
(umask 077 && printf '%s\n' "$engine_password" >"$password_file")
clock=$scratch/clock
echo 0 >"$clock"

# -- the fleet -------------------------------------------------------------------------------------------------------------
pids=()     # of each collector
stand_ins=() # "real" where a kprof-collector has the database
log_of() { echo "$scratch/fleet$1.log"; }
file_of() { echo "$scratch/fleet$1.db"; }
exporting() { # exporting COLLECTOR: options
  printf '%s\0' --export "clickhouse://kprof@127.0.0.1:$engine_port/kprof" --export-password-file "$password_file" --export-as "site-$1"
}
launch() { # launch COLLECTOR real|simulated
  local options
  mapfile -d '' options < <(exporting "$1")
  if [ "$2" = real ]; then
    start "$(log_of "$1").real" "$collector" --listen 0 --bucket 60 --db "$(file_of "$1")" "${options[@]}"
  else
    start "$(log_of "$1")" "$KPROF_BUILD/tests/fleet_collector" run "$(file_of "$1")" "$begin" "${size[@]}" --number "$1" --clock "$clock" \
      "${options[@]}"
  fi
  pids[$1]=$!
  stand_ins[$1]=$2
}
peak_kb=0 # the most memory that a kprof-collector has taken
weigh() { # weigh COLLECTOR
  local kb
  [ "${stand_ins[$1]}" = real ] || return 0
  kb=$(awk '/^VmHWM:/ { print $2 }' "/proc/${pids[$1]}/status")
  [ "$kb" -le "$peak_kb" ] || peak_kb=$kb
}
# Kills it, as a power button would, and waits until it is gone.
kill_collector() {
  ! gone "${pids[$1]}" || fail "collector $1 has ended by itself: $(tail -n 3 "$(log_of "$1")")"
  weigh "$1"
  kill -KILL "${pids[$1]}"
  ends "${pids[$1]}" 20
}
reached() { # reached MINUTE: all simulated collectors have written it
  local i
  for ((i = 0; i < collectors; i++)); do
    [ "${stand_ins[$i]}" = real ] || grep -qx "at $1" "$(log_of "$i")" || return 1
  done
}
# What a collector wrote in the last minutes is to be sent once more, unchanged.
duplicated=0
duplicate() {
  local rows
  rows=$(sqlite3 -cmd '.timeout 5000' "$(file_of "$1")" "INSERT OR REPLACE INTO export_marks SELECT bucket_start, resolution_s, node_id,
    (SELECT revision FROM export_state), unixepoch() FROM ledger_rows WHERE resolution_s = 3600 OR
    bucket_start > (SELECT max(bucket_start) FROM ledger_rows WHERE resolution_s = 60) - 600; SELECT changes()")
  duplicated=$((duplicated + rows))
}

engine_up=1 killed=0 engine_kills=0 collector_kills=0 turns=0
# One kill: of a collector, or, one time in five, of the engine.
kill_one() {
  local one=$((RANDOM % collectors))
  killed=$((killed + 1))
  turns=$((turns + 1))
  if [ $((turns % 5)) = 2 ] && [ -n "$engine_up" ]; then
    kill_engine
    engine_kills=$((engine_kills + 1))
    start_engine
    return
  fi
  kill_collector "$one"
  collector_kills=$((collector_kills + 1))
  [ $((collector_kills % 2)) != 0 ] || duplicate "$one"
  if [ "${stand_ins[$one]}" = simulated ] && [ $((collector_kills % 3)) = 0 ]; then
    launch "$one" real
  else
    launch "$one" simulated
  fi
}
# Those with a real one in their place get the simulated one back: that goes on where the file ends.
back_to_simulated() {
  local i
  for ((i = 0; i < collectors; i++)); do
    if [ "${stand_ins[$i]}" = real ]; then
      kill_collector "$i"
      killed=$((killed + 1))
      launch "$i" simulated
    fi
  done
}

for ((i = 0; i < collectors; i++)); do launch "$i" simulated; done
for ((minute = 1; minute <= minutes; minute++)); do
  if [ "$minute" = "$away_from" ]; then
    kill_engine
    engine_up=
    engine_kills=$((engine_kills + 1))
  elif [ "$minute" = "$away_until" ]; then
    start_engine
    engine_up=1
  fi
  echo "$minute" >"$clock.new"
  mv "$clock.new" "$clock"
  while [ $((killed * minutes)) -lt $((minute * kills)) ]; do
    sleep "0.$((RANDOM % 5))"
    kill_one
  done
  sleep 1 # what changes is due some seconds later
  wait_for 300 "all have written minute $minute" reached "$minute"
  back_to_simulated
done
wait_for 300 "all have written all minutes" reached "$minutes"
holds "$killed" -ge "$kills" "kills of collectors and engine"
holds "$engine_kills" -gt 1 "some of them of the engine"
holds "$duplicated" -gt 0 "buckets of nodes that were sent twice"
# A collector that has just been started takes TERM as any process does, until it says that it is there.
up() { if [ "${stand_ins[$1]}" = real ]; then grep -q 'listening on' "$(log_of "$1").real"; else grep -q '^at ' "$(log_of "$1")"; fi; }
ended() { # ended WHAT: all end with 0 on TERM
  local i
  for ((i = 0; i < collectors; i++)); do wait_for 60 "$1 $i is up" up "$i"; done
  for ((i = 0; i < collectors; i++)); do kill -TERM "${pids[$i]}"; done
  for ((i = 0; i < collectors; i++)); do
    ends "${pids[$i]}" 60
    [ "$status" = 0 ] || fail "$1 $i ended with $status: $(tail -n 3 "$(log_of "$i")")"
  done
  ok "$1: all ended with 0"
}
ended "simulated collectors"

# -- the rest is sent by real collectors -----------------------------------------------------------------------------------
waiting() {
  local i n=0
  for ((i = 0; i < collectors; i++)); do
    n=$((n + $(sqlite3 -readonly -cmd '.timeout 5000' "$(file_of "$i")" "SELECT count(*) FROM export_marks")))
  done
  echo "$n"
}
all_sent() { [ "$(waiting)" = 0 ]; }
echo "of buckets and nodes $(waiting) were not sent yet"
for ((i = 0; i < collectors; i++)); do launch "$i" real; done
sleep 1
kill_collector 0
launch 0 real
wait_for 600 "all is sent" all_sent
for ((i = 0; i < collectors; i++)); do weigh "$i"; done
# what one takes by itself, and the 60 MB that README allows for a backlog
[ -n "$sanitized" ] || holds $((peak_kb / 1024)) -le 100 "whatever waits, no collector takes more memory, MB"
ended "collectors"
for ((i = 0; i < collectors; i++)); do
  is "$(sqlite3 -readonly "$(file_of "$i")" "SELECT lost, refused FROM export_state")" "0|0" "collector $i: nothing is lost or refused"
done

# -- each request once -----------------------------------------------------------------------------------------------------
"$KPROF_BUILD/tests/fleet_collector" truth "$scratch" "${size[@]}"
sums="sum(requests), sum(calls), sum(errors), sum(total_ns), min(min_ns), max(max_ns)"
engine_seconds=900
compare() { # compare FILE RESOLUTION KEY WHERE WHAT
  engine "SELECT $3, $sums FROM kprof.tier_stats FINAL WHERE resolution_s = $2 AND $4 GROUP BY $3 FORMAT TabSeparated" \
    >"$scratch/answer" || fail "$5: $(head -c 600 "$scratch/answer")"
  LC_ALL=C sort "$scratch/answer" >"$scratch/there"
  LC_ALL=C sort "$scratch/$1" >"$scratch/here"
  is "$(diff "$scratch/here" "$scratch/there" | head -n 6)" "" "$5 ($(wc -l <"$scratch/here"))"
}
compare keys 60 "node, identity, tier" 1 "each node, identity and tier has every request once"
compare keys 3600 "node, identity, tier" 1 "and so it has in the buckets of an hour"
compare minutes 60 "intDiv(toUInt32(bucket_start) - $begin, 60) AS minute, tier" "identity != '_total'" "each minute and tier, too"
requests=$(awk -F'\t' '$2 == "_total" && $3 == "_total" { n += $4 } END { printf "%.0f", n }' "$scratch/keys")
is "$(engine "SELECT sum(requests_complete) FROM kprof.ledger FINAL WHERE resolution_s = 60")" "$requests" "the ledger's requests, too"
is "$(engine "SELECT sum(calls), sum(messages) FROM kprof.tier_costs FINAL WHERE resolution_s = 60")" \
  "$((requests * tiers))"$'\t'"$((2 * requests * tiers))" "and what tracing costs"
is "$(engine "SELECT countIf(arraySum(histogram_counts) != calls) FROM kprof.tier_stats WHERE resolution_s = 60")" 0 \
  "every histogram has its calls"
is "$(engine "SELECT sum(calls), sum(total_ns) FROM kprof.path_stats FINAL WHERE resolution_s = 60")" \
  "$(awk -F'\t' '$3 != "_total" && $2 ~ /^identity/ && substr($2, 9) % 10 == 0 { n += $5; ns += $7 }
    END { printf "%.0f\t%.0f", n, ns }' "$scratch/keys")" "calls by their place in the tree"

# -- the 99th percentile of a tier over all nodes and the whole time ---------------------------------------------------------
question=$(sed -n '/clickhouse-client --query "/,/"$/p' "$top/collector/README.md" |
  sed "s/.*--query \"//; s/\"\$//; s/'storage'/'tier03'/")
engine "$question FORMAT JSON" >"$scratch/p99.json"
of_p99() { sqlite3 :memory: "SELECT json_extract(readfile('$scratch/p99.json'), '\$.$1')"; }
told=$(sqlite3 :memory: "SELECT CAST(1e6 * value AS INTEGER) FROM json_each(json_extract(readfile('$scratch/p99.json'), '\$.data[0]'))")
is "$(awk -v told="$told" -v truth="$(cat "$scratch/p99")" 'BEGIN { print (told > truth * 0.985 && told < truth * 1.015) }')" 1 \
  "the 99th percentile of a tier, over all: $((told / 1000)) us, in truth $(($(cat "$scratch/p99") / 1000))"
echo "asked for within $(of_p99 statistics.elapsed) s, of $(of_p99 statistics.rows_read) rows"
engine "SELECT table, sum(rows) AS n, round(sum(bytes_on_disk) / n, 1), round(sum(data_uncompressed_bytes) / n, 1), count()
  FROM system.parts WHERE active AND database = 'kprof' GROUP BY table ORDER BY table" | while read -r table rows packed bytes parts; do
  echo "$table: $rows rows in $parts parts, $packed bytes a row on disk, $bytes unpacked"
done
