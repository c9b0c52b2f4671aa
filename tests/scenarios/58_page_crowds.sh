#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: a thousand browsers that leave the page open take less than 100 MB of the daemon, and each is told of what is written.
# Who sends a question byte by byte, for ever, loses the connection, and nobody else does.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

crowd() { # crowd LOG WHAT...: until it says so
  start "$1" /usr/bin/python3 "$top/tests/scenarios/page_crowds.py" "${page##*:}" "${@:2}"
  crowd_pid=${groups[-1]}
}
said() { grep -qs "^$2\$" "$1"; }

start_collector --http 0
page=$(page_of "$collector_log")
before=$(rss_kb "$collector_pid")
crowd "$scratch/streams" streams 1000
streams=$crowd_pid
wait_for 120 "1000 event streams are open" said "$scratch/streams" "open 1000"
is "$(curl -s --max-time 60 -o /dev/null -w '%{http_code}' "$page/healthz")" 200 "the page answers beside them"
holds $(($(rss_kb "$collector_pid") - before)) -lt 100000 "they take less than 100 MB, KB"

start_shop "crowds_$$"
start_tracing "crowds_$$"
load --clients 2 --requests 20 || fail "the load failed"
wait_for 60 "each was told of what is written" said "$scratch/streams" "told 1000"
holds $(($(rss_kb "$collector_pid") - before)) -lt 100000 "and they still take less than 100 MB, KB"

# 100 each: a head without an end, a body, and a second question on a connection that has had its answer
crowd "$scratch/slow" slow 100
slow=$crowd_pid
wait_for 60 "300 questions come slowly" said "$scratch/slow" "begun 300"
# The answer is 503 where too many questions wait at that moment.
asks() { [ "$(curl -s --max-time 60 -o /dev/null -w '%{http_code}' "$page/api/v1/nodes")" = 200 ]; }
answered=0
for ((i = 0; i < 40; i++)); do
  ! soon 5 asks || answered=$((answered + 1))
done
is "$answered" 40 "meanwhile whole questions are answered"
wait_for 120 "those that come slowly are closed" said "$scratch/slow" "closed 300 answered 100"
ends "$slow" 20
is "$status" 0 "all of them, and none with an answer"
is "$(grep -c '^ended' "$scratch/streams" || true)" 0 "no event stream is"
kill "$streams"
stop_tracing
intact
