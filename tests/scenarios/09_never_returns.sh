#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: a tier that never returns, a receive loop, would grow its process's stack for ever while it is
# traced. Its pattern is taken off while tracing goes on, the log says so, and the other tiers are counted to the last call.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

name=loop_$$
cat >"$scratch/config" <<'END'
{tier_config, [{request, {scenario_loop, request, 1}}, {loop, {scenario_loop, serve, 1}}, {work, {scenario_loop, work, 1}}]}.
END
start_collector
start_erl "$name" -s scenario_loop start
start_tracing "$name" "$scratch/config"
traced_tiers() {
  target_eval "$name@localhost" '[T || F <- [request, serve, work], {traced, T} <- [scenario_trace:info({scenario_loop, F, 1}, traced)]].'
}
stack() { target_eval "$name@localhost" 'element(2, process_info(whereis(scenario_loop), stack_size)).'; }
is "$(traced_tiers)" "[local,local,local]" "all three are traced"

is "$(target_eval "$name@localhost" 'scenario_loop:run(1000).')" ok "a thousand requests pass through the loop"
wait_for 10 "the loop is taken off" grep -Eq "warning node $name@localhost: .*loop .*taken off" "$collector_log"
has "$collector_log" 'the tier loop \(\{scenario_loop,serve,1\}\) is taken off: .*never return' "the log names it and says why"
is "$(traced_tiers)" "[local,false,local]" "only its pattern is off"
stack_before=$(stack)
wait_for 15 "all requests are in the ledger" ledger_reaches 'requests_complete + requests_incomplete' 1000

# From now on everything is exact.
complete=$(ledger requests_complete)
is "$(target_eval "$name@localhost" 'scenario_loop:run(200).')" ok "two hundred more"
wait_for 15 "they are counted" ledger_reaches requests_complete $((complete + 200))
holds "$(stack)" -le $((stack_before + 100)) "the loop's stack grows no further, words"
is "$(target_eval "$name@localhost" 'scenario_loop ! {how_many, self()}, receive {served, N} -> N end.')" 1200 "the loop served them all"
stop_tracing
stop_collector
is "$(ledger requests_complete)" $((complete + 200)) "each once"
is "$(ledger 'requests_complete + requests_incomplete')" 1200 "the ledger knows every request"
is "$(sql "SELECT tier FROM tier_stats WHERE resolution_s = 10 AND identity = '_total' GROUP BY tier
           HAVING tier <> 'loop' AND sum(calls) <> $((complete + 200))")" "" "the other tiers have one call a request"
is "$(ledger dropped_messages)" 0 "nothing was dropped"
counted_once
intact
