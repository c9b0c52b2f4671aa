#!/usr/bin/env bash
# Goal of this test: traced calls far beyond what a trace port carries cannot hurt the node. The guard trips, the node's
# memory stays bounded (without the guard it grows by some 100 MB a second), the ledger tells for how long nobody looked,
# the log says so, and afterwards it is traced again.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

name=flood_$$
echo '{tier_config, [{tick, {scenario_flood, tick, 1}}]}.' >"$scratch/config"
start_collector
start_erl "$name"
node_pid=$(target_eval "$name@localhost" 'list_to_integer(os:getpid()).')
start_tracing "$name" "$scratch/config"
rss_before=$(rss_kb "$node_pid")
before=$(target_eval "$name@localhost" 'erlang:memory(total).')

is "$(target_eval "$name@localhost" 'scenario_flood:run(4, 8000) > 10000.')" true "four processes call as fast as they can for 8 s"
most=$(target_eval "$name@localhost" 'scenario_flood:most().')
peak=$(sed -n 's/^VmHWM:[[:space:]]*\([0-9]*\) kB/\1/p' "/proc/$node_pid/status")
holds $(((most - before) / 1048576)) -le 300 "the node's memory grows by a bounded amount, MB"
holds $(((peak - rss_before) / 1024)) -le 300 "and so does what the system gives it, MB"
has "$collector_log" "warning node $name@localhost: tracing stopped \(tripped\)" "the collector's log tells of the trip"
has "$scratch/$name.log" 'kprof: .*paused' "and so does the node's"

status_is() { [ "$(target_eval "$name@localhost" 'kprof:status().')" = "$1" ]; }
wait_for 70 "it is traced again" status_is tracing
wait_for 10 "the ledger tells of the pause" ledger_reaches paused_ms 1000
complete=$(ledger requests_complete)
# The sampling rises by steps of five seconds.
again='lists:foreach(fun(_) -> kprof:do_apply(scenario_flood, requests, [5]), timer:sleep(2) end, lists:seq(1, 200)).'
sampled() {
  target_eval "$name@localhost" "$again" >/dev/null
  ledger_reaches requests_complete $((complete + 1))
}
wait_for 60 "quiet requests are counted" sampled
stop_tracing
stop_collector
holds "$(ledger requests_unsampled)" -gt 0 "after a trip fewer requests are sampled"
trips=$(grep -c 'tracing stopped (tripped)' "$collector_log")
holds "$(ledger paused_ms)" -ge $((trips * 900)) "the ledger's pause is that of $trips trips"
holds "$(ledger paused_ms)" -le 120000 "and not more"
counted_once
intact
