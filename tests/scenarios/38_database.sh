#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: whatever people do to the database of a running collector, it notices, says so, and goes on where the file should
# stand: every request of a node under load stands in one file and one only, no file is damaged, and no second collector writes beside it.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

name=database_$$
start_collector
start_shop "$name"
start_tracing "$name"
# A load that lasts as long as it is needed, however slow the machine is.
on_and_on() { until [ -e "$scratch/enough" ]; do load --clients 3 --think 10 --requests 200 || return 1; done; }
(trap - EXIT; on_and_on) &
load_pid=$!
complete() { sqlite3 -readonly -cmd '.timeout 5000' "$1" "SELECT coalesce(sum(requests_complete), 0) FROM ledger WHERE resolution_s = 10"; }
some() { [ -e "$1" ] && [ "$(complete "$1" 2>/dev/null || echo 0)" -ge 20 ]; }
told() { [ "$(grep -cE "$1" "$collector_log")" -ge "$2" ]; }
wait_for 20 "requests are in the database" some "$db"

# -- moved away, and another collector that would write there ---------------------------------------------------------------
mv "$db" "$scratch/moved.db"
status=0
timeout 200 "$collector" --listen 0 --db "$db" 2>"$scratch/second.txt" || status=$?
is "$status" 4 "a second collector is refused at once"
has "$scratch/second.txt" "another kprof-collector, process $collector_pid, writes .*kprof.db: stop it" "and told which is the first"
wait_for 10 "it is noticed" told 'database: the file was moved away' 1
wait_for 10 "a new file is written" some "$db"

# -- the way back -----------------------------------------------------------------------------------------------------------
# In one step: where there is no file the collector makes one.
ln "$db" "$scratch/between.db"
mv -f "$scratch/moved.db" "$db"
before=$(complete "$db")
holds "$before" -ge 20 "what was written before is in the file that was moved"
more() { [ "$(complete "$db" 2>/dev/null || echo 0)" -gt "$((before + 20))" ]; }
wait_for 20 "the first file is written again" more

# -- somebody else's file in its place --------------------------------------------------------------------------------------
echo 'This is my diary, and longer than the hundred bytes that a database begins with, so that it can be told from one that is cut.' \
  >"$scratch/diary"
cp "$scratch/diary" "$scratch/diary.moved"
ln "$db" "$scratch/first.db"
mv -f "$scratch/diary.moved" "$db"
wait_for 10 "it is told" told 'database: cannot write .*kprof.db is not a kprof database' 1
sleep 1
cmp "$db" "$scratch/diary" || fail "somebody else's file was touched"
rm "$db"
wait_for 20 "what was gathered meanwhile is written" some "$db"

touch "$scratch/enough"
status=0
wait "$load_pid" || status=$?
is "$status" 0 "the load ends well"
save_truth
all() {
  local file sum=0
  for file in "$db" "$scratch/between.db" "$scratch/first.db"; do sum=$((sum + $(complete "$file" 2>/dev/null || echo 0))); done
  [ "$sum" -eq "$(truth_total)" ] || { [ -n "${1:-}" ] && echo "$sum"; false; }
}
wait_for 15 "every request stands in one of the files, once" all
stop_tracing
stop_collector
all say || fail "the files' requests are not $(truth_total)"
ok "every request stands in one of the files, once"
for file in "$db" "$scratch/between.db" "$scratch/first.db"; do
  is "$(sqlite3 -readonly "$file" 'PRAGMA integrity_check')" ok "$(basename "$file") is intact"
done
[ ! -e "$db-lock" ] || fail "the lock is left behind"

# -- removed, and cut -------------------------------------------------------------------------------------------------------
collector_port=0 db=$scratch/cut.db
start_collector
start_tracing "$name"
load --clients 3 --think 1 --requests 100 || fail "the load failed"
wait_for 15 "requests are in the database" some "$db"
: >"$db-wal"
wait_for 10 "a log that was cut is noticed" told 'database: somebody cut its log .-wal.' 1
load --clients 3 --think 1 --requests 100 || fail "the load failed"
wait_for 15 "requests are in the database" some "$db"
is "$(sqlite3 -readonly "$db" 'PRAGMA integrity_check')" ok "and the file is intact"
rm -f "$db" "$db-wal" "$db-shm"
wait_for 10 "a file that was removed is noticed" told 'database: the file was removed' 1
load --clients 3 --think 1 --requests 100 || fail "the load failed"
wait_for 15 "requests are in a new database" some "$db"

# One row that is malformed: the others are written. It must be the hour's for as long as this takes.
[ $(($(date +%s) % 3600)) -lt 3580 ] || sleep 25
sqlite3 -cmd '.timeout 10000' "$db" "UPDATE stat_rows SET histogram = x'ff'
  WHERE resolution_s = 3600 AND tier_id = (SELECT id FROM tier_names WHERE name = '_total')"
before=$(complete "$db")
load --clients 3 --think 1 --requests 100 || fail "the load failed"
wait_for 15 "its neighbours are written" more
has "$collector_log" 'database: the row of bucket .* is not written .*its histogram is malformed' "and it is told"
unwritten() { [ "$(sql "SELECT sum(unwritten_rows) FROM ledger WHERE resolution_s = 3600")" -ge 1 ]; }
wait_for 15 "the ledger tells it" unwritten
stop_tracing
stop_collector
intact

# -- no more room ------------------------------------------------------------------------------------------------------------
# Files that may not get longer, as on a full disk.
collector_port=0 db=$scratch/full.db
start_collector
start_tracing "$name"
load --clients 3 --think 1 --requests 100 || fail "the load failed"
wait_for 15 "requests are in the database" ledger_reaches requests_complete 100
longest=$(stat -c %s "$db" "$db-wal" | sort -n | tail -n 1)
prlimit --pid "$collector_pid" --fsize="$longest:unlimited"
stuck() {
  load --clients 3 --think 1 --requests 100 || fail "the load failed"
  made=$((made + 100))
  told 'database: cannot write .*(disk I/O error|disk is full)' 1
}
made=100
wait_for 30 "it is told" stuck
doctor_tells() {
  "$kprof" doctor --db "$db" --collector "127.0.0.1:$collector_port" >"$scratch/doctor.txt" || true
  grep -q 'problem .*has not been able to write its database' "$scratch/doctor.txt"
}
wait_for 20 "the doctor tells" doctor_tells
"$kprof" nodes --collector "127.0.0.1:$collector_port" >"$scratch/nodes.txt" 2>&1
has "$scratch/nodes.txt" 'has not been able to write its database for [0-9]+ s' "so does kprof nodes"
load --clients 3 --think 1 --requests 100 || fail "the load failed"
made=$((made + 100))
holds "$(ledger requests_complete)" -lt "$made" "some are not written"
prlimit --pid "$collector_pid" --fsize=unlimited:unlimited
wait_for 30 "what was gathered meanwhile is written" ledger_reaches requests_complete "$made"
wait_for 10 "which is told" told 'database: written again, after [0-9]+ failed attempts' 1
stop_tracing
stop_collector
is "$(ledger requests_complete)|$(ledger unwritten_rows)" "$made|0" "each request once, without and with room"
intact
