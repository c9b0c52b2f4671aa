#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: kprof and other tools that trace the same node. From OTP 27 on dbg and somebody with a trace session trace the same
# processes and functions and clear all there is, again and again: each gets its messages, and kprof's numbers are exact to the last call.
# Before, kprof says who is there: it does not start where new processes are traced, tells of processes that it cannot trace, leaves dbg
# alone when that comes later, and sets again what dbg has cleared, which the log and the ledger tell.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

name=beside_$$
run() { target_eval "$name@localhost" "$1"; }
start_collector
start_shop "$name"

if [ "$(run 'scenario_beside:sessions().')" = true ]; then
  run 'persistent_term:put(beside, scenario_beside:new_traced()).' >/dev/null
  start_tracing "$name"
  has_not "$kprof_log" 'somebody else' "somebody who traces new processes is no matter"
  is "$(run 'scenario_beside:stop(persistent_term:get(beside)).')" ok "nor that this ends"
  run 'scenario_beside:begin_churn().' >/dev/null
  load --clients 4 --think 20 --requests 1500 || fail "the load failed"
  counts=$(run 'scenario_beside:end_churn().')
  IFS=, read -r by_dbg by_other <<<"${counts//[][]/}"
  holds "$by_dbg" -gt 500 "dbg got its messages"
  holds "$by_other" -gt 500 "and so did the other session"
  save_truth
  wait_for 15 "all requests are in the database" ledger_reaches requests_complete 1500
  stop_tracing
  stop_collector
  has_not "$collector_log" 'set again|somebody' "nothing had to be set again"
  tells_truth
  nothing_lost "$name"
  counted_once
  exit 0
fi

# -- before OTP 27 -----------------------------------------------------------------------------------------------------
run 'persistent_term:put(beside, scenario_beside:new_traced()).' >/dev/null
status=0
timeout 400 "$top/scripts/start_kprof_node.sh" --node "$name@localhost" --cookie-file "$scratch/cookie" \
  --config "$top/tests/sample/kprof.config" \
  --collector "127.0.0.1:$collector_port" >"$scratch/refused.log" 2>&1 || status=$?
is "$status" 9 "it does not start where somebody traces new processes"
has "$scratch/refused.log" 'new processes are being traced by somebody else already \(<.*before OTP 27' \
  "and says so: $(cat "$scratch/refused.log")"
is "$(run '{tracer, T} = erlang:trace_info(new, tracer), T =:= persistent_term:get(beside).')" true "whose tracing goes on"
is "$(run 'scenario_beside:stop(persistent_term:get(beside)).')" ok "until it ends"

run 'persistent_term:put(beside, scenario_beside:one_traced()).' >/dev/null
start_tracing "$name"
warned() { grep -q '^warning: 1 process is traced by somebody else' "$kprof_log"; }
wait_for 5 "a process that it cannot trace is told" warned
has "$collector_log" "node $name@localhost: 1 process is traced by somebody else" "to the collector, too"
is "$(run '{tracer, T} = erlang:trace_info(whereis(kernel_sup), tracer), T =:= persistent_term:get(beside).')" true "and left alone"

load --clients 4 --think 5 --requests 400 || fail "the load failed"
wait_for 15 "requests are counted" ledger_reaches requests_complete 400
start_load --clients 4 --think 10 --seconds 10
wait_for 10 "the load has begun" ledger_reaches requests_complete 500 # its connections are none of the new processes
# one that is open in any case when dbg clears everything
run 'spawn(fun() -> kprof:do_apply(timer, sleep, [7000]) end).' >/dev/null
is "$(run 'scenario_beside:dbg_on().')" ok "dbg comes"
wait_for 5 "it is told" grep -Eq "node $name@localhost: somebody else \(<.*traces new processes now" "$collector_log"
sleep 1.2 # longer than the shim looks for it
is "$(run '{tracer, T} = erlang:trace_info(new, tracer), T =/= [] andalso is_pid(T).')" true "and left alone"
run 'scenario_beside:dbg_off().' >/dev/null
wait_for 5 "what dbg cleared is set again" grep -q "node $name@localhost: somebody took the trace flags off; they are set again" \
  "$collector_log"
status=0
wait "$load_pid" || status=$?
is "$status" 0 "the load ends well"
seen=$((400 + $(loaded requests)))
load --clients 4 --think 5 --requests 400 || fail "the second load failed"
wait_for 15 "requests are counted again" ledger_reaches requests_complete 800
sleep 2.5
stop_tracing
stop_collector
holds "$(ledger requests_incomplete)" -gt 0 "requests of the time between are incomplete"
holds $(($(ledger requests_complete) + $(ledger requests_incomplete))) -le $((seen + 401)) "and no more than there were"
is "$(grep -c 'somebody else (<' "$collector_log")" 1 "it was told once"
counted_once
intact
