#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: whatever strangers send to the listening port is refused and logged, a flood of them neither fills the
# log nor the memory, and the tracing of a live node goes on meanwhile, exact to the last call.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
trap "" PIPE # writing to a connection that was closed is an error to go on from

name=strangers_$$
start_collector
start_shop "$name"
start_tracing "$name"
rss_before=$(rss_kb "$collector_pid")
start_load --clients 3 --think 15 --seconds 8

# send BYTES...: what printf makes of each, over a connection of its own; then waits for the other side to close, 10 s at most.
send() {
  local fd bytes
  exec {fd}<>"/dev/tcp/127.0.0.1/$collector_port"
  for bytes in "$@"; do { printf '%b' "$bytes" >&"$fd" || true; } 2>/dev/null; done
  timeout 100 cat <&"$fd" >/dev/null 2>&1 || [ $? -ne 124 ] || fail "the collector keeps the connection open"
  exec {fd}>&-
}
refused() { has "$collector_log" "connection from 127.0.0.1:[0-9]+ refused: $1" "$2"; }

send 'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n'
refused 'an HTTP request' "an HTTP request is told as one"
send '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'
refused 'a TLS handshake' "a TLS handshake is told as one"
send '\xff\xff\xff\xff'
refused 'not the protocol' "a message that claims 4 GB"
sleep 1.1 # five lines a second are logged
for i in 1 2 3; do head -c 4000 /dev/urandom >"$scratch/random.$i"; done
for i in 1 2 3; do
  exec {fd}<>"/dev/tcp/127.0.0.1/$collector_port"
  { cat "$scratch/random.$i" >&"$fd"; timeout 100 cat <&"$fd"; } >/dev/null 2>&1 || [ $? -ne 124 ] ||
    fail "random bytes keep a connection open"
  exec {fd}>&-
done
ok "random bytes are refused"
exec {fd}<>"/dev/tcp/127.0.0.1/$collector_port"
printf '\x00\x00\x00\x40\x84\xa4type' >&"$fd"
exec {fd}>&-
wait_for 5 "half a message" grep -q 'refused: closed in the middle of its first message' "$collector_log"
ok "half a message and then nothing is told"

# A trickle of a message that could be one: given up after five seconds, however steadily it drips.
slow() {
  local fd i
  exec {fd}<>"/dev/tcp/127.0.0.1/$collector_port"
  printf '\x00\x00\x02\x00' >&"$fd"
  for ((i = 0; i < 60; i++)); do
    { printf 'a' >&"$fd" || return 0; } 2>/dev/null
    sleep 0.2
  done
  return 1
}
(trap - EXIT; slow) 2>/dev/null &
slow_pid=$!

# Shims that lie. Each connection that misbehaves is closed.
for what in deep wide stranger version no_session control_huge chatter data_huge data_random data_terms; do
  HOME=$scratch/home timeout 400 erl -noinput -pa "$SCENARIO_EBIN" "$KPROF_EBIN" -run scenario_peer main "$collector_port" "$what" \
    >>"$scratch/peer.log" 2>&1 || fail "a lying shim ($what) is not turned away: $(tail -n 1 "$scratch/peer.log")"
done
ok "lying shims are turned away"
holds "$(grep -v ' log: ' "$collector_log" | grep -c 'node liar@localhost: chatter')" -ge 50 "notes of a shim are logged"
# some more are earned meanwhile
holds "$(grep -v ' log: ' "$collector_log" | grep -c 'node liar@localhost: chatter')" -le 200 "but not 20000 of them"
has "$collector_log" 'the trace stream is damaged' "a damaged stream is told"
wait_for 5 "the damaged frames are counted" ledger_reaches decode_errors 100
status=0
wait "$slow_pid" || status=$?
is "$status" 0 "a trickle is given up"
has "$collector_log" 'no complete message in time' "and told"

status=0
wait "$load_pid" || status=$?
is "$status" 0 "the load ends well"
is "$(loaded connection_errors)" 0 "no request of it failed"

# 600 connections that say nothing, held open from this shell; the latest LIMIT_NEWCOMERS_PER_ADDRESS of them, 64, stay.
lines=$(wc -l <"$collector_log")
began=$SECONDS
fds=()
for ((i = 0; i < 600; i++)); do
  { exec {fd}<>"/dev/tcp/127.0.0.1/$collector_port"; } 2>/dev/null || fail "connection $i of the flood"
  fds+=("$fd")
done
# And 100 of them send what it can of a message that is never whole.
head -c 15000 /dev/zero | tr '\0' 'a' >"$scratch/filling"
for fd in "${fds[@]: -100}"; do
  { { printf '\x00\x00\x3f\x00'; cat "$scratch/filling"; } >&"$fd" || true; } 2>/dev/null
done
load --clients 3 --think 1 --requests 200 || fail "the load failed during the flood"
is "$(loaded connection_errors)" 0 "no request failed during the flood"
rss=$(rss_kb "$collector_pid")
for fd in "${fds[@]}"; do exec {fd}>&-; done
holds $(($(wc -l <"$collector_log") - lines)) -le $((250 + 5 * (SECONDS - began))) "the flood does not fill the log"
limit=100000
[ -z "$sanitized" ] || limit=1000000
holds $((rss - rss_before)) -le "$limit" "the collector's memory is bounded, KB"
gone "$collector_pid" && fail "the collector ended"

save_truth
wait_for 15 "all requests are in the database" ledger_reaches requests_complete "$(truth_total)"
has_not "$kprof_log" 'gone|stopped' "the kprof node noticed nothing"
is "$(grep -c "node $name@localhost.* connected" "$collector_log")" 1 "the shop's shim was never disturbed"
stop_tracing
stop_collector
is "$(in_log 'node liar@localhost: chatter')" 20000 "what was left out is told to the line"
holds "$(left_out 'connection from .* refused')" -ge 100 "of refused connections, too"
tells_truth
nothing_lost "$name"
intact
