#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: tiers with #{returns => none} send no return values, so that what they return costs nothing, and their times and
# counts are the truth all the same. Where the VM's messages leave open what returned, the request is incomplete and the ledger
# counts it: what is in the statistics is right. Errors are told where they can be: by an exception of the call around, which has not caught
# it, and by the process's death. How many outcomes are not known is told, too.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$(dirname "${BASH_SOURCE[0]}")/cases.sh"

# Whether a call ended in an exception is not told where nothing shows it: fewer errors are right, more are not. Requests' are exact.
# Nothing shows it in these cases: between any two tiers there is a function that is none, and might have caught it.
errors_differ="(s.errors > t.errors OR t.tier = '_total' AND s.errors <> t.errors)"
# Body recursion, exceptions through functions that are no tiers, and a process's death leave open what returned when.
unclear='[recursion, deep, crash, killed, worker_crash, worker_killed]'

# costs: messages and bytes of alpha up to now, in a list of Erlang
costs() { sql "SELECT coalesce(sum(messages), 0) || ' ' || coalesce(sum(bytes), 0) FROM tier_costs
               WHERE resolution_s = 10 AND tier = 'alpha'"; }
# large ROUND: 40 calls of alpha that return a list of a thousand elements. Sets messages and bytes, what alpha cost.
large() {
  local before after
  read -r -a before <<<"$(costs)"
  measure "$1" '[large]'
  sleep 1.2 # what it cost follows in the next flush
  read -r -a after <<<"$(costs)"
  messages=$((after[0] - before[0])) bytes=$((after[1] - before[1]))
}

start_collector
start_cases
is "$(run "scenario_cases:run([large | scenario_cases:names()], 1, 0).")" ok "the cases run without kprof"
is "$(run "scenario_truth:clear().")" ok "that was only to warm up"
is "$(run "scenario_cases:trace($collector_port, all, []).")" ok "the trace starts"
is "$(run "lists:usort([X || {_, MFA} <- scenario_tiers:tiers(), {match_spec, [{_, _, Body} | _]} <- [scenario_trace:info(MFA, match_spec)],
                             X <- Body, X =:= {exception_trace} orelse X =:= {return_trace}]).")" "[]" "no tier's return is traced"
tell_truth "$(run "scenario_cases:names() -- $unclear.")"

lost=$((complete + incomplete))
is "$(ledger requests_complete)|$(ledger requests_incomplete)|$(ledger ambiguous_returns)" "$complete|$incomplete|0" \
  "nothing of these was left open"
measure 11 "$unclear"
compare 11
is "$(grep -v '|\(fits\|times\|missing\)$' "$scratch/compared" | table | tail -n +2)" "" "what is left open is right or not there"
missing=$((complete + incomplete - lost - $(sql "SELECT coalesce(sum(calls), 0) FROM tier_stats
                                                 WHERE resolution_s = 10 AND tier = '_total' AND identity LIKE '%.11'")))
holds "$missing" -ge 2 "there is something that is left open"
is "$(ledger requests_incomplete)" $((incomplete + missing)) "these requests are incomplete"
holds "$(ledger ambiguous_returns)" -ge 1 "and the ledger counts the returns"
is "$(sql "SELECT DISTINCT verdict FROM ledger WHERE resolution_s = 10 AND ambiguous_returns > 0")" lossy "which are not to be trusted"
is "$(ledger requests_expired+orphan_returns+unwound_frames+dropped_messages+decode_errors+stale_calls+paused_ms)" 0 \
  "nothing was lost otherwise"
incomplete=$((incomplete + missing)) complete=$((complete - missing))

# -- what is sent ------------------------------------------------------------------------------------------------------
large 12
holds "$messages" -eq 80 "returns => none: a message of a call and one of its return"
holds "$bytes" -le $((40 * 500)) "of some bytes"
none=$bytes
is "$(run "kprof:stop_trace().")" ok "stop_trace"
is "$(run "scenario_trace:left().")" "{[],[]}" "no process is traced any more"
is "$(run "scenario_cases:trace($collector_port, [], []).")" ok "the trace starts, with whole returns"
large 13
holds "$messages" -eq 80 "whole: as many messages"
holds "$bytes" -ge $((40 * $(run 'erlang:external_size(lists:seq(1001, 2000)).'))) "of the values' size and more"
holds "$bytes" -gt $((10 * none)) "far more than with returns => none"
"$kprof" report --db "$db" --cost >"$scratch/cost.txt" || fail "kprof report --cost failed"
has "$scratch/cost.txt" alpha "kprof report --cost tells of the tier"
is "$(run "kprof:stop_trace().")" ok "stop_trace"
# -- of both kinds -----------------------------------------------------------------------------------------------------
# Exceptions through tiers of both kinds leave more open; what is in the statistics is right all the same.
is "$(run "scenario_cases:trace($collector_port, [alpha, gamma], []).")" ok "a trace of tiers with and without return values"
measure 14 "scenario_cases:names()"
compare 14
is "$(grep -v '|\(fits\|times\|missing\)$' "$scratch/compared" | table | tail -n +2)" "" \
  "calls, errors and asynchronous calls of every tier that is there"
holds "$(grep -c '|\(fits\|times\)$' "$scratch/compared")" -ge 90 "and most are there"
is "$(run "kprof:stop_trace().")" ok "stop_trace"
# -- outcomes ----------------------------------------------------------------------------------------------------------
# outcomes TIER: calls and errors of scenario_raises
outcomes() { sql "SELECT sum(calls) || ' ' || sum(errors) FROM tier_stats
                  WHERE resolution_s = 10 AND identity = 'raises' AND tier = '$1'"; }
unknown_before=$(ledger unknown_outcomes) complete_before=$(ledger requests_complete) closed=$(ledger requests_complete+requests_incomplete)
is "$(run "kprof:start_trace([{tier_config, scenario_raises:tiers()}, {collector, {\"127.0.0.1\", $collector_port}}]).")" ok \
  "a trace of tiers that call each other"
is "$(run "group_leader(whereis(user), self()), scenario_raises:run(10).")" ok "they return, raise, exit and are killed"
wait_for 15 "all requests are closed" ledger_reaches requests_complete+requests_incomplete $((closed + 10))
is "$(ledger requests_complete)" "$((complete_before + 10))" "and all are complete"
is "$(outcomes whole)" "20 20" "two of whole, which died"
is "$(outcomes outer)" "40 30" "with returns => none: of four calls three errors, by the exception of the call around and by deaths"
is "$(outcomes inner)" "40 30" "and so of the one below"
is "$(ledger unknown_outcomes)" $((unknown_before + 20)) "of those that returned nobody knows it, and that is told"
is "$(run "kprof:stop_trace().")" ok "stop_trace"
stop_collector
counted_once
intact
