#!/usr/bin/env bash
# Goal of this test: the sample application, traced far past what its trace port can carry, stays well. Within 200 ms the breaker has acted:
# from then on no second of the next 30 has less than 70 % of the untraced rate, the node's memory stays under 150 MB over what it was,
# and the ledger tells each trip and paused millisecond, each message that was dropped, and how long the sampling was below what was
# asked for. On one scheduler and on two.
#
# The collector is busy on the same machine: where that takes what the application would have had, the rate says nothing about the
# node. Rates are therefore compared when at least one processor more than schedulers is there, or PRESSURE_RATE=1 demands it.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cat >"$scratch/config" <<'CONFIG'
[{tier_config, [{http, {shop_http, handle_request, 2}}, {pool, {shop_worker, work, 2}}, {storage, {shop_storage, run, 2}},
                {render, {shop_render, page, 2}}, {burn, {shop_cost, burn, 1}}]}].
CONFIG
start_collector

# pressure SCHEDULERS: a node of its own for 40 s.
pressure() {
  local schedulers=$1 name=pressure$1_$$ seconds=${PRESSURE_SECONDS:-30} node untraced worst trips paused
  node=$name@localhost
  export ERL_FLAGS="+S $schedulers:$schedulers"
  start_shop "$name" --truth false --http-cost 10 --storage-cost 10 --pool-cost 10 --render-cost 10
  unset ERL_FLAGS
  is "$(target_eval "$node" 'erlang:system_info(schedulers_online).')" "$schedulers" "schedulers of $name"
  target_eval "$node" 'scenario_overload:start(4).' >/dev/null
  sleep 6
  start_tracing "$name" "$scratch/config"
  sleep $((seconds + 2))
  untraced=$(target_eval "$node" 'scenario_overload:untraced().')
  worst=$(target_eval "$node" "scenario_overload:worst(200, $((seconds * 1000))).")
  echo "$name: untraced $untraced requests/s, worst second under overload $worst"
  target_eval "$node" 'scenario_overload:rates().'
  holds "$(target_eval "$node" 'scenario_overload:memory().')" -lt 150 "MB over the untraced peak"
  "$kprof" nodes --collector "127.0.0.1:$collector_port" --history
  trips=$(ledger_of "$node" trips)
  paused=$(ledger_of "$node" paused_ms)
  is "$(grep -c "$node: tracing stopped (tripped)" "$collector_log")" "$trips" "each trip is in the ledger"
  holds "$paused" -ge $((trips * 900)) "ms of pause in the ledger"
  holds "$(ledger_of "$node" lowered_ms)" -ge 1000 "ms of lowered sampling in the ledger"
  holds "$(ledger_of "$node" requests_unsampled)" -gt 0 "requests that were left out"
  holds "$(ledger_of "$node" requests_complete)" -gt 0 "requests that were traced all the same"
  if [ -n "${PRESSURE_RATE:-}" ] || [ "$(nproc)" -gt "$schedulers" ]; then
    holds "$((worst * 100 / untraced))" -ge 70 "percent of the untraced rate, in the worst second"
  fi
  target_eval "$node" 'scenario_overload:stop().' >/dev/null
  stop_tracing
  rm -f "$kprof_log"
}

# ledger_of NODE COLUMN
ledger_of() { sql "SELECT coalesce(sum($2), 0) FROM ledger WHERE resolution_s = 10 AND node = '$1'"; }

for schedulers in ${PRESSURE_SCHEDULERS:-1 2}; do pressure "$schedulers"; done
stop_collector
counted_once
intact
