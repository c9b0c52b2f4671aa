#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: in a real browser the page tells what changed, and shows what was chosen. Two nodes are traced; in a copy of their
# database the same requests stand a day earlier too, each of half the time, with the same percentiles and one error less. So the means
# changed for sure, and the errors may have by chance. Nodes, identities and tiers are chosen by mouse and by keys, links and back show
# the same; two profiles are compared. One of samples is drawn in parts, which its heat map chooses, in its file, too; two of a sampler that
# always runs are one map.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$(dirname "${BASH_SOURCE[0]}")/profile.sh"
# shellcheck source=../page/modules.sh
source "$top/tests/page/modules.sh"
page_drivers

start_collector
for node in one two; do
  start_shop "$node$$"
  start_tracing "$node$$"
  load --requests 400 --clients 2 --think 5
  [ "$node" = two ] || timeout 60 "$kprof" note "deployed <b>1.4</b>" --collector "127.0.0.1:$collector_port" \
    >"$scratch/note.txt" || fail "kprof note"
done
for seconds in 3 5; do
  "$kprof" sample "two$$@localhost" --collector "127.0.0.1:$collector_port" --db "$db" --for ${seconds}s >"$scratch/sample.log" 2>&1 ||
    fail "kprof sample: $(cat "$scratch/sample.log")"
  sleep 2 # of that time there is no profile
done
profile_of_shop "two$$@localhost" --requests 60 --clients 2 --think 10
profile_of_shop "two$$@localhost" --requests 60 --clients 2 --think 10
# what is sent last is written a second later
wait_for 60 "the requests are in the database" ledger_reaches "requests_complete + requests_incomplete + requests_unsampled" 800
stop_collector

copy=$scratch/copy.db
sqlite3 "$db" ".backup '$copy'"
earlier() { # earlier TABLE TIMES: its rows a day earlier, with these assignments
  sqlite3 "$copy" "CREATE TEMP TABLE t AS SELECT * FROM $1; UPDATE t SET bucket_start = bucket_start - 86400${2:+, $2};
    INSERT INTO $1 SELECT * FROM t;"
}
# how much requests differ from each other is the machine's, and not judged here
sqlite3 "$copy" "UPDATE stat_rows SET square_ns = 1.2 * duration_ns * duration_ns / calls WHERE calls > 0"
earlier stat_rows "total_ns = total_ns / 2, self_ns = self_ns / 2, duration_ns = duration_ns / 2, square_ns = square_ns / 4,
  wait_ns = wait_ns / 2, waiting_ns = waiting_ns / 2, parallel_ns = parallel_ns / 2,
  errors = max(0, errors - 1)"
earlier ledger_rows ""
from=$(sqlite3 "$copy" "SELECT max(bucket_start) - 3600 FROM stat_rows WHERE resolution_s = 10")
start "$scratch/serve.log" "$kprof" serve --db "$copy" --http 0
wait_for 20 "it is served" grep -qs 'http://' "$scratch/serve.log"
for driver in choose samples; do works "$driver" "$(page_of "$scratch/serve.log")/" "$from" "$((from + 3610))"; done
sampled=$(sqlite3 "$copy" "SELECT max(id) FROM profiles WHERE kind = 'samples'")
"$kprof" flame --db "$copy" --profile "$sampled" --out "$scratch/samples.html" >"$scratch/drawn" ||
  fail "kprof flame: $(cat "$scratch/drawn")"
works heat_file "$scratch/samples.html" "$sampled"
alone=$scratch/alone.db
sqlite3 "$db" ".backup '$alone'"
sqlite3 "$alone" "UPDATE profile_rows SET label = 'always' WHERE kind <> 0; DELETE FROM stat_rows; DELETE FROM ledger_rows;
  DELETE FROM path_rows; DELETE FROM profile_rows WHERE kind = 0"
start "$scratch/alone.log" "$kprof" serve --db "$alone" --http 0
wait_for 20 "it is served" grep -qs 'http://' "$scratch/alone.log"
works samples "$(page_of "$scratch/alone.log")/" alone
first=$(sqlite3 "$alone" "SELECT min(id) FROM profiles")
last=$(sqlite3 "$alone" "SELECT max(id) FROM profiles")
drawn() { "$kprof" flame --db "$alone" --json --profile "$@" >"$scratch/drawn" 2>&1; }
told() { sqlite3 :memory: "SELECT json_extract(readfile('$scratch/drawn'), '\$.$1')"; } # of what was drawn
looks_of() { drawn "$@" && told 'stacks[0].value'; }
is "$(looks_of "$first" --through "$last")" "$(($(looks_of "$first") + $(looks_of "$last")))" "two profiles as one have the looks of both"
drawn "$first" --through "$last"
is "$(told through)" "$last" "and say how far they go"
drawn "$last" --through "$first" && fail "an earlier profile is no end of a later one"
has "$scratch/drawn" '--through and --before-through want a later profile of samples' "which is told"
works day "$(page_of "$scratch/alone.log")/"
sqlite3 "$alone" "UPDATE profile_rows SET begin_ns = begin_ns - 9000000000000, end_ns = end_ns - 9000000000000
  WHERE id = (SELECT min(id) FROM profile_rows)"
works day "$(page_of "$scratch/alone.log")/" far
