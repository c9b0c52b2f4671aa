#!/usr/bin/env bash
# Goal of this test: {trace_gc, true} and {trace_scheduling, true} tell of each tier how long it collected garbage and how long it was
# off the processor, and change no other number: every construct is run under them and compared with the truth. Only processes that
# work for a request are armed, and in the end none is.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$(dirname "${BASH_SOURCE[0]}")/cases.sh"
slack_us=100 # a request tells two messages more for each time that it waits: the untraced process does not send these

# off_cpu ROUND: tier|its time asleep, which is the truth's duration|off_cpu_us, where these differ; asleep is alpha, delta.
off_cpu() {
  sqlite3 :memory: -separator '|' "ATTACH 'file:$db?mode=ro' AS k" "
    CREATE TABLE truth (identity TEXT, tier TEXT, calls INTEGER, errors INTEGER, async_calls INTEGER, total_us REAL, self_us REAL,
                        mean_us REAL, wait_us REAL)" ".import $truth.tiers truth" "
    WITH t AS (SELECT tier, calls, CASE WHEN tier IN ('alpha', 'delta') THEN total_us ELSE 0 END AS asleep_us FROM truth
               WHERE identity = 'asleep.$1' AND tier <> '_total'),
         s AS (SELECT tier, sum(off_cpu_us) AS off_cpu_us FROM k.tier_stats WHERE resolution_s = 10 AND identity = 'asleep.$1' GROUP BY 1)
    SELECT tier, round(asleep_us), round(off_cpu_us) FROM t LEFT JOIN s USING (tier)
    WHERE coalesce(abs(asleep_us - off_cpu_us) > max(0.05 * asleep_us, 50 * calls), 1) ORDER BY 1"
}
sum_of() { sql "SELECT CAST(coalesce(sum($1), -1) AS INTEGER) FROM tier_stats
                WHERE resolution_s = 10 AND identity LIKE '$2' AND tier = '$3'"; }

start_collector
start_cases
is "$(run "scenario_cases:run([asleep, garbage | scenario_cases:names()], 1, 0).")" ok "the cases run without kprof"
is "$(run "scenario_truth:clear().")" ok "that was only to warm up"
is "$(run "scenario_cases:trace($collector_port, [], [{trace_gc, true}, {trace_scheduling, true}]).")" ok "the trace starts"
tell_truth "[asleep, garbage, $(run 'scenario_cases:names().' | cut -c2-)"

# A measurement of its own: tell_truth does not run again what fits.
for round in 4 5 6; do
  measure $round '[asleep, garbage]'
  differ=$(off_cpu $round)
  [ -n "$differ" ] || break
  echo "$differ"
  [ $round -lt 6 ] || fail "these times off the processor are not true, three times over"
  holds "$switches" -gt 0 "the kernel took the processor from the node meanwhile: once more"
done
ok "off_cpu_us is the time asleep, and 0 for who does not sleep"
holds "$(sum_of gc_us 'garbage.%' alpha)" -gt 0 "who makes garbage collects it"
holds "$(sum_of gc_us 'garbage.%' alpha)" -le "$(sum_of total_us+async_us 'garbage.%' alpha)" "and does not do so for longer than it runs"
is "$(sum_of gc_us 'garbage.%' beta)|$(sum_of gc_us 'garbage.%' gamma)|$(sum_of gc_us 'asleep.%' alpha)" "0|0|0" \
  "gc_us is 0 for who makes none"

is "$(run '{E, M} = {fun(K, Map) -> map_get(K, Map) end, scenario_cases:armed()},
          [E(K, M) || K <- [inside, '"'after'"', server_used, server_after, others]].')" \
  "[[garbage_collection,running],[],[garbage_collection,running],[],0]" "armed are processes that work for a request, and no others"
is "$(run "kprof:stop_trace().")" ok "stop_trace"
is "$(run "scenario_trace:left().")" "{[],[]}" "no process is traced any more"

# Each alone tells its own and nothing of the other.
is "$(run "scenario_cases:trace($collector_port, [], [{trace_gc, true}]).")" ok "a trace of garbage alone"
measure 7 '[asleep, garbage]'
is "$(run "kprof:stop_trace().")" ok "stop_trace"
is "$(run "scenario_cases:trace($collector_port, [], [{trace_scheduling, true}]).")" ok "a trace of scheduling alone"
measure 8 '[asleep, garbage]'
is "$(run "kprof:stop_trace().")" ok "stop_trace"
stop_collector
holds "$(sum_of gc_us garbage.7 alpha)" -gt 0 "garbage alone: gc_us"
is "$(sum_of off_cpu_us asleep.7 alpha)" 0 "and no off_cpu_us"
holds "$(sum_of off_cpu_us asleep.8 alpha)" -gt 30000 "scheduling alone: off_cpu_us"
is "$(sum_of gc_us garbage.8 alpha)" 0 "and no gc_us"
is "$(ledger requests_expired+unwound_frames+orphan_returns+ambiguous_returns+dropped_messages+decode_errors+paused_ms+stale_calls)" 0 \
  "nothing was lost"
counted_once
intact
