#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: traced calls far beyond what a trace port carries cannot hurt the node. The guard trips, the node's
# memory stays bounded (without the guard it grows by some 100 MB a second), the ledger tells for how long nobody looked,
# the log says so, and afterwards it is traced again. And when a collector stands still until the trace is stopped, the ledger tells each
# message that did not arrive.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

name=flood_$$
echo '{tier_config, [{tick, {scenario_flood, tick, 1}}]}.' >"$scratch/config"
may_trip=1
start_collector
# the collector stands still below, for longer than the guard waits for its word
start_erl "$name" -kprof silence_ms 100000
node_pid=$(target_eval "$name@localhost" 'list_to_integer(os:getpid()).')
start_tracing "$name" "$scratch/config"
watch
rss_before=$(rss_kb "$node_pid")
before=$(target_eval "$name@localhost" 'erlang:memory(total).')

is "$(target_eval "$name@localhost" 'scenario_flood:run(4, 8000) > 10000.')" true "four processes call as fast as they can for 8 s"
most=$(target_eval "$name@localhost" 'scenario_flood:most().')
peak=$(sed -n 's/^VmHWM:[[:space:]]*\([0-9]*\) kB/\1/p' "/proc/$node_pid/status")
holds $(((most - before) / 1048576)) -le 300 "the node's memory grows by a bounded amount, MB"
holds $(((peak - rss_before) / 1024)) -le 300 "and so does what the system gives it, MB"
has "$collector_log" "warning node $name@localhost: tracing stopped \(tripped\)" "the collector's log tells of the trip"
has "$scratch/$name.log" 'kprof: .*tripped for' "and so does the node's"

status_is() { [ "$(target_eval "$name@localhost" 'kprof:status().')" = "$1" ]; }
wait_for 70 "it is traced again" status_is tracing
unwatch
wait_for 10 "the ledger tells of the pause" ledger_reaches tripped_ms 1000
complete=$(ledger requests_complete)
# The sampling rises by steps of five seconds.
again='lists:foreach(fun(_) -> kprof:do_apply(scenario_flood, requests, [5]), timer:sleep(2) end, lists:seq(1, 200)).'
sampled() {
  target_eval "$name@localhost" "$again" >/dev/null
  ledger_reaches requests_complete $((complete + 1))
}
wait_for 60 "quiet requests are counted" sampled
# The history so far; true once a step of it is up.
raised() {
  "$kprof" nodes --collector "127.0.0.1:$collector_port" --node "$name" --history >"$scratch/history" || fail "kprof nodes --history"
  sed -nE 's/.* (samples|then) one request in ([0-9]+)$/\2/p; s/.* samples every request$/1/p' "$scratch/history" |
    awk 'NR > 1 && $1 < last { up = 1 } { last = $1 } END { exit !up }'
}
wait_for 30 "kprof nodes tells that the sampling was raised again" raised
has "$scratch/history" '^ +20.* (tripped|the node made trace messages faster)' "and of the trip"
stop_tracing
trips=$(grep -c 'tracing stopped (tripped)' "$collector_log")

# Two messages a call, two a request: more than fits into all that is between the node and the collector. A full port counts what the guard
# asks it with, a hundred times a second, among what it drops. A request each 25 ms: with more a quick machine trips the breaker.
rm -f "$kprof_log"
messages=$(ledger messages+dropped_messages)
start_tracing "$name" "$scratch/config"
kill -STOP "$collector_pid"
many='lists:sum([begin timer:sleep(25), kprof:do_apply(scenario_flood, requests, [499]) end || _ <- lists:seq(1, 200)]).'
is "$(target_eval "$name@localhost" "$many")" 99800 "200 requests while the collector stands still"
stop_tracing
kill -CONT "$collector_pid"
# On a machine that takes the processor away for long the breaker trips here, too: then there are fewer messages.
tripped_again() { [ "$(grep -c 'tracing stopped (tripped)' "$collector_log")" -gt "$trips" ]; }
all_told() { ledger_reaches messages+dropped_messages $((messages + 200000)) || tripped_again; }
wait_for 20 "the ledger tells of all messages" all_told
if tripped_again; then
  not_judged "each message while the collector stands still: the breaker tripped"
  stop_collector
  counted_once
  intact
  exit
fi
holds $(($(ledger messages+dropped_messages) - messages)) -le 201000 "and of no others"
has "$collector_log" "node $name@localhost: [0-9]+ trace messages were lost on their way" "the collector's log tells of them"
stop_collector
holds "$(ledger requests_unsampled)" -gt 0 "after a trip fewer requests are sampled"
is "$(ledger trips)" "$trips" "the ledger tells of each trip"
# By the log's times, which come late here: from each trip to the next begin of tracing. (To the ms: kprof_SUITE, gauge_trips.)
paused=0 since=
while read -r at line; do
  ms=$(date -d "$at" +%s%3N)
  case $line in
    *'(tripped)'*) since=$ms ;;
    *) [ -z "$since" ] || paused=$((paused + ms - since)); since= ;;
  esac
done < <(grep -E "node $name@localhost: tracing( stopped \(tripped\).*)?\$" "$collector_log")
holds "$paused" -ge $((trips * 500)) "each trip pauses, ms"
holds "$(ledger tripped_ms)" -ge $((paused - 1000 * trips - 1000)) "the ledger tells about as much"
holds "$(ledger tripped_ms)" -le $((paused + 1000 * trips + 1000)) "and not much more"
is "$(ledger paused_ms+away_ms)" 0 "which nobody asked for"
holds "$(ledger lowered_ms)" -ge 500 "and that the sampling was lowered, ms"
counted_once
intact
