#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: `kprof trace` steers a node under load through the collector. A pause takes everything off the node and is in the
# ledger to the tenth of a second; the sampling that is asked for is the one that the ledger shows; what cannot be done is said.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# steer STATUS ARGUMENT...: what it says is in steer.txt
steer() {
  local want=$1 got=0
  shift
  timeout 200 "$kprof" trace "$@" --collector "127.0.0.1:$collector_port" >"$scratch/steer.txt" 2>&1 || got=$?
  is "$got" "$want" "kprof trace $* ends with $want"
}
says() { has "$scratch/steer.txt" "$1" "it says: $1"; }

# listed NAME: a field of the node in kprof nodes
listed() {
  "$kprof" nodes --collector "127.0.0.1:$collector_port" --json >"$scratch/nodes.json"
  sqlite3 :memory: "SELECT json_extract(readfile('$scratch/nodes.json'), '\$.nodes[0].$1')"
}

# requests N: makes N and waits until they are counted or known to be left out.
requests() {
  local before
  before=$(($(ledger requests_complete) + $(ledger requests_unsampled)))
  load --clients 4 --think 20 --requests "$1" || fail "the load failed"
  wait_for 15 "$1 requests are in the ledger" accounted $((before + $1))
}
accounted() { [ $(($(ledger requests_complete) + $(ledger requests_unsampled))) -ge "$1" ]; }

start_collector
name=steer_$$
start_shop "$name"
steer 1 "$name" pause
says 'knows no node'
start_tracing "$name"
traced_functions="length([M || {M, F, A} <- [{shop_http, handle_request, 2}, {shop_storage, run, 2}],
                                     {traced, local} =:= scenario_trace:info({M, F, A}, traced)])."

# -- sampling ----------------------------------------------------------------------------------------------------------
requests 200
is "$(ledger requests_complete)" 200 "all requests are traced"
steer 0 "$name" sample 4
says 'one request in 4'
is "$(listed one_in)" 4 "kprof nodes shows it"
requests 400
is "$(ledger requests_complete)|$(ledger requests_unsampled)" "300|300" "one in four of the next 400 was"
steer 0 "$name" sample 5/s
is "$(listed per_second)" 5 "kprof nodes shows requests a second, too"
before=$(ledger requests_complete)
began=$(date +%s%N)
requests 400
lasted=$((($(date +%s%N) - began) / 1000000000 + 2))
holds $(($(ledger requests_complete) - before)) -le $((5 * lasted)) "requests of some $lasted seconds, five a second at most"
holds $(($(ledger requests_complete) - before)) -ge 1 "and one at least"
steer 0 "$name" sample 1

# -- a pause and its end -------------------------------------------------------------------------------------------------
is "$(target_eval "$name@localhost" "$traced_functions")" 2 "functions are traced"
asked=$(date +%s%3N)
steer 0 "$name@localhost" pause --json
is "$(sqlite3 :memory: "SELECT json_extract(readfile('$scratch/steer.txt'), '\$.node', '\$.command', '\$.ok')")" \
  "[\"$name@localhost\",\"pause\",true]" "JSON tells it"
began=$(date +%s%3N)
is "$(listed state)" paused "the node is paused"
is "$(target_eval "$name@localhost" "$traced_functions")" 0 "nothing is traced any more"
is "$(target_eval "$name@localhost" '[P || P <- processes(), {flags, [_ | _]} <- [scenario_trace:info(P, flags)]].')" "[]" \
  "and no process is"
before="$(ledger requests_complete)"
load --clients 4 --requests 100 || fail "the load failed"
steer 0 "$name" pause
says 'already'
sleep 2
least=$(($(date +%s%3N) - began - 100))
steer 0 "$name" resume
most=$(($(date +%s%3N) - asked + 100))
is "$(listed state)" tracing "it is traced again"
requests 100
is $(($(ledger requests_complete) - before)) 100 "the requests after the pause are traced, those within are not"
# To the tenth of a second: no shorter than between the commands, which take their time, and no longer than with them.
wait_for 10 "the pause is in the ledger" ledger_reaches paused_ms $least
holds "$(ledger paused_ms)" -ge $least "ms of pause in the ledger"
holds "$(ledger paused_ms)" -le $most "and not more"
is "$(ledger tripped_ms)" 0 "none of it for a trip of the breaker"
holds "$(ledger paused_ms-tripped_ms-away_ms)" -ge $least "somebody asked for it"
steer 0 "$name" resume
says 'already'

# -- what cannot be done -----------------------------------------------------------------------------------------------
steer 2 "$name" dance
steer 2 "$name" sample 0
steer 2 "$name" sample 5/m
steer 2
steer 1 "nobody_$$@nowhere" pause
says 'knows no node'
stop_tracing
steer 1 "$name" sample 2
timeout 200 "$kprof" trace "$name" pause --collector 127.0.0.1:1 2>"$scratch/steer.txt" && fail "no collector, and yet it was done"
says '127.0.0.1:1'
stop_collector
counted_once
intact
