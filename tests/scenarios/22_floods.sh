#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: floods of connections from many addresses, that say nothing, half a message, nonsense, or a wrong secret, and slow
# drips from the shim's own address, are harmless: the session of a node under load is not disturbed and its numbers stay exact, another
# node gets in meanwhile, memory and log stay bounded, and the log says how many lines it left out, also of what shims make it write. TLS
# handshakes from one address are no more than the collector can spare, and a process that may have few files serves who is in earnest.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

seconds=12
(umask 077; openssl rand -hex 32 >"$scratch/secret")
name=floods_$$
start_collector --secret-file "$scratch/secret"
start_shop "$name"
tracing_options=(--secret-file "$scratch/secret")
start_tracing "$name"
rss_before=$(rss_kb "$collector_pid")
lines_before=$(wc -l <"$collector_log")
watch
began=$SECONDS
start_load --clients 3 --think 10 --seconds "$seconds"

start "$scratch/flood.log" env HOME="$scratch/home" erl -noinput -pa "$SCENARIO_EBIN" "$KPROF_EBIN" \
  -run scenario_wire main flood "$collector_port" "$seconds"
flood_pid=$!
sleep 2
rss=$(rss_kb "$collector_pid")
# Another node, in the middle of it.
start_erl "other_$$" -pa "$KPROF_EBIN"
is "$(target_eval "other_$$@localhost" \
  "ok = kprof:start(), kprof:start_trace([{tier_config, [{t, {lists, seq, 2}}]}, {secret_file, \"$scratch/secret\"},
        {collector, {\"127.0.0.1\", $collector_port}}]).")" ok "another node gets in during the flood"
over=0
! gone "$flood_pid" || over=1
while ! gone "$flood_pid"; do
  now=$(rss_kb "$collector_pid")
  [ "$now" -le "$rss" ] || rss=$now
  sleep 0.5
done
ends "$flood_pid" 30
is "$status" 0 "the flood was made: $(tr '\n' ' ' <"$scratch/flood.log")"
timely $over -eq 0 "the flood went on meanwhile"
for what in silent half nonsense secret; do
  holds "$(sed -n "s/^$what //p" "$scratch/flood.log")" -ge 20 "some connections of the kind $what"
  timely "$(sed -n "s/^$what //p" "$scratch/flood.log")" -ge 300 "connections of the kind $what"
done
status=0
wait "$load_pid" || status=$?
is "$status" 0 "the load ends well"
is "$(loaded connection_errors)" 0 "no request of it failed"

has "$collector_log" 'refused: wrong secret|refused: not the protocol|refused: too many newcomers' "refusals are told"
holds $(($(wc -l <"$collector_log") - lines_before)) -le $((300 + 5 * (SECONDS - began))) "the log grew by some lines a second"
limit=60000
[ -z "$sanitized" ] || limit=1000000
holds $((rss - rss_before)) -le "$limit" "the collector's memory is bounded, KB"

is "$(target_eval "other_$$@localhost" 'kprof:stop_trace().')" ok "the other node is traced still"
save_truth
wait_for 15 "all requests are in the database" ledger_reaches requests_complete "$(truth_total)"
is "$(grep -c "node $name@localhost.* connected" "$collector_log")" 1 "the session was never disturbed"
has_not "$kprof_log" 'gone|stopped' "the kprof node noticed nothing"
stop_tracing
stop_collector
# what was told and what was counted are all that were made, but the ones that went by themselves
holds "$(in_log 'connection from .* refused: ')" -ge \
  "$(awk '$1 == "nonsense" || $1 == "secret" { n += $2 } END { print int(n * 0.9) }' "$scratch/flood.log")" \
  "every refusal is told or counted"
tells_truth
nothing_lost "$name"
intact

# -- shims that say too much ------------------------------------------------------------------------------------------------
collector_port=0 db=$scratch/shims.db
start_collector
for what in hellos streams; do
  lines_before=$(wc -l <"$collector_log")
  HOME=$scratch/home timeout 300 erl -noinput -pa "$SCENARIO_EBIN" "$KPROF_EBIN" -run scenario_peer main "$collector_port" "$what" \
    >>"$scratch/peer.log" 2>&1 || fail "a flood of $what: $(tail -n 1 "$scratch/peer.log")"
  holds $(($(wc -l <"$collector_log") - lines_before)) -le 600 "a flood of $what: lines of the log"
done
stop_collector
# the streams' one, too: a line that is left out is counted with those of its kind
is "$(in_log 'node liar[0-9]*@localhost .OTP 25. connected from')" 3001 "every session is told or counted"
is "$(in_log 'node liar@localhost: no trace frame at byte 0')" 1000 "so is every bad stream"
has "$collector_log" 'SIGTERM' "the collector's own lines are there all the same"

# -- TLS handshakes, each of which costs the collector more than who wants it ----------------------------------------------
(umask 077
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 \
  -keyout "$scratch/tls.key" -out "$scratch/tls.pem" >"$scratch/openssl.log" 2>&1)
collector_port=0 db=$scratch/tls.db seconds=5
start_collector --secret-file "$scratch/secret" --tls-cert "$scratch/tls.pem" --tls-key "$scratch/tls.key"
start "$scratch/flood.log" env HOME="$scratch/home" erl -noinput -pa "$SCENARIO_EBIN" "$KPROF_EBIN" \
  -run scenario_wire main handshakes "$collector_port" "$seconds"
flood_pid=$!
watch
began=$SECONDS
sleep 2
at=(--collector "127.0.0.1:$collector_port" --secret-file "$scratch/secret")
asked=$(date +%s%3N)
timeout 100 "$kprof" nodes "${at[@]}" --tls-ca "$scratch/tls.pem" >"$scratch/nodes.txt" || fail "kprof nodes during a flood of handshakes"
took=$(($(date +%s%3N) - asked)) over=0
! gone "$flood_pid" || over=1
ok "somebody else gets in during a flood of TLS handshakes"
ends "$flood_pid" 30
lasted=$((SECONDS - began + 1))
timely $took -le 3000 "within three seconds, ms"
timely $over -eq 0 "while it lasts"
done_of() { sed -n 's/^handshakes //p' "$scratch/flood.log"; }
timely "$(done_of)" -ge 100 "handshakes were made"
holds "$(done_of)" -ge 10 "at least some"
holds "$(done_of)" -le $((50 * (lasted + 2))) "and no more than 50 a second from one address"
stop_collector

# -- few files --------------------------------------------------------------------------------------------------------------
collector_port=0 db=$scratch/files.db
real=$collector
collector=$scratch/few-files
printf '#!/bin/sh\nulimit -n 60 && exec "%s" "$@"\n' "$real" >"$collector"
chmod +x "$collector"
start_collector --secret-file "$scratch/secret"
has "$collector_log" 'may have 60 open files: no more than 15 connections' "a process that may have few files says so"
ticks() { awk '{ print $14 + $15 }' "/proc/$collector_pid/stat"; }
before=$(ticks)
# shellcheck disable=SC2016  # for the inner shell
start "$scratch/hold.log" bash -c 'for ((i = 0; i < 120; i++)); do exec {fd}<>"/dev/tcp/127.0.0.1/$0"; done; echo all; sleep 3' \
  "$collector_port"
wait_for 5 "more connections than it has files" grep -q all "$scratch/hold.log"
"$kprof" nodes --collector "127.0.0.1:$collector_port" --secret-file "$scratch/secret" >"$scratch/nodes.txt" ||
  fail "kprof nodes when files are few"
sleep 2
holds $(($(ticks) - before)) -le 50 "and does not turn in a loop: hundredths of a second of CPU in two seconds"
stop_collector
