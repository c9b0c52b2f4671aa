#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: whatever a request is made of, its numbers are right. A node runs every construct there is, under an identity each,
# and writes down itself what each tier did and when. Calls, errors and asynchronous calls are the same to the last one; total,
# self, mean and waiting times within 5 % or 50 us a call; lost and stale are what was lost and stale by construction.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$(dirname "${BASH_SOURCE[0]}")/cases.sh"

start_collector
start_cases
is "$(run "scenario_cases:run(scenario_cases:names(), 1, 0).")" ok "the cases run without kprof"
is "$(run "scenario_truth:clear().")" ok "that was only to warm up"
is "$(run "scenario_cases:trace($collector_port, [], []).")" ok "the trace starts"
is "$(run "scenario_cases:stale_timer('stale.0').")" ok "a server sets a timer"
tell_truth "$(run 'scenario_cases:names().')"

# -- what is nobody's --------------------------------------------------------------------------------------------------
foreign=$(run "scenario_cases:foreign().")
holds "$foreign" -ge 8 "an application uses labels of its own, and keeps them"
timer_fired() { [ "$(run 'scenario_truth:nobody().')" -gt $((3 * foreign)) ]; }
wait_for 10 "the timer of a request long closed fires" timer_fired
nobody=$(run "scenario_truth:nobody().")
is "$nobody" $((3 * foreign + 1)) "these calls are nobody's"
told() { ledger_reaches stale_calls "$nobody" && ledger_reaches requests_unsampled "$foreign"; }
wait_for 15 "the ledger has them" told
is "$(run "kprof:stop_trace().")" ok "stop_trace"
is "$(run "scenario_trace:left().")" "{[],[]}" "no process is traced any more"
stop_collector

is "$(sql "SELECT sum(requests_complete), sum(requests_incomplete), sum(requests_expired), sum(requests_unsampled) FROM ledger
           WHERE resolution_s = 10")" "$complete|$incomplete|0|$foreign" "the ledger's requests"
is "$(sql "SELECT sum(stale_calls), sum(lost_tokens), sum(unwound_frames), sum(orphan_returns), sum(ambiguous_returns),
                  sum(dropped_messages),
                  sum(decode_errors), sum(reloads), sum(paused_ms) FROM ledger WHERE resolution_s = 10")" \
   "$nobody|$incomplete|0|0|0|0|0|0|0" \
   "stale calls and lost tokens are those that there were, and nothing else was lost"
is "$(sql "SELECT coalesce(sum(gc_us + off_cpu_us), 0) FROM tier_stats")" 0.0 "garbage and scheduling are not told unasked"
counted_once
intact
