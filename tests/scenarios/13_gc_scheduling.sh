#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: {trace_gc, true} and {trace_scheduling, true} tell of each tier how long it collected garbage and how long it was
# off the processor, and change no other number: every construct is run under them and compared with the truth. Only processes that
# work for a request are armed, and in the end none is. Where one of them could kill the node it is refused, with the reason: both before
# OTP 25.3, trace_gc from OTP 27 on.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$(dirname "${BASH_SOURCE[0]}")/cases.sh"
slack_us=100 # a request tells two messages more for each time that it waits: the untraced process does not send these

# off_cpu ROUND: tier|its time asleep, which is the truth's duration|off_cpu_us, where these differ; asleep is alpha, delta.
off_cpu() {
  sqlite3 :memory: -separator '|' "ATTACH 'file:$db?mode=ro' AS k" "
    CREATE TABLE truth (identity TEXT, tier TEXT, calls INTEGER, errors INTEGER, async_calls INTEGER, total_us REAL, self_us REAL,
                        mean_us REAL, wait_us REAL, waiting_us REAL)" ".import $truth.tiers truth" "
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

# refused OPTION ISSUE
refused() {
  is "$(run "{error, Why} = scenario_cases:trace($collector_port, [], [{$1, true}]), Text = kprof:format_error(Why),
             [string:find(Text, Part) =/= nomatch || Part <- [\"$1 could kill this node\", \"issues/$2\"]].")" \
    "[true,true]" "$1 is refused, with the reason"
  is "$(run "scenario_trace:left().")" "{[],[]}" "nothing is traced"
}
gc=1 scheduling=1
if [ "$(run 'string:to_float(erlang:system_info(version)) < {13.2, ""}.')" = true ]; then
  gc='' scheduling=''
  refused trace_gc 6448
  refused trace_scheduling 6448
elif [ "$(run 'list_to_integer(erlang:system_info(otp_release)) >= 27.')" = true ]; then
  gc=''
  refused trace_gc 11624
fi
if [ -z "$gc$scheduling" ]; then # what is there to trace, scenario 11 traces
  stop_collector
  exit
fi
wanted="[{tracer, $tracer}, {trace_gc, $([ -n "$gc" ] && echo true || echo false)},
         {trace_scheduling, $([ -n "$scheduling" ] && echo true || echo false)}]"
flags="[${gc:+garbage_collection}${gc:+${scheduling:+,}}${scheduling:+running}]"
holds ${#flags} -gt 2 "what is safe here: $flags"
is "$(run "scenario_cases:trace($collector_port, [], $wanted).")" ok "the trace starts"
tell_truth "[asleep, garbage, $(run 'scenario_cases:names().' | cut -c2-)"

# A measurement of its own: tell_truth does not run again what fits. Its rounds are 11 to 16.
off_round() {
  measure "1$1" '[asleep, garbage]'
  differ=$(off_cpu "1$1")
}
if [ -n "$scheduling" ]; then
  watched=("$(run 'list_to_integer(os:getpid()).')")
  in_quiet "off_cpu_us is the time asleep, and 0 for who does not sleep" off_round
else
  is "$(sql "SELECT sum(off_cpu_us) FROM tier_stats")" 0.0 "off_cpu_us is 0 where it is not told"
fi
if [ -n "$gc" ]; then
  holds "$(sum_of gc_us 'garbage.%' alpha)" -gt 0 "who makes garbage collects it"
  holds "$(sum_of gc_us 'garbage.%' alpha)" -le "$(sum_of total_us+async_us 'garbage.%' alpha)" "and does not do so for longer than it runs"
  is "$(sum_of gc_us 'garbage.%' beta)|$(sum_of gc_us 'garbage.%' gamma)|$(sum_of gc_us 'asleep.%' alpha)" "0|0|0" \
    "gc_us is 0 for who makes none"
else
  is "$(sql "SELECT sum(gc_us) FROM tier_stats")" 0.0 "gc_us is 0 where it is not told"
fi

is "$(run '{E, M} = {fun(K, Map) -> map_get(K, Map) end, scenario_cases:armed()},
          [E(K, M) || K <- [inside, '"'after'"', server_used, server_after, others]].')" \
  "[$flags,[],$flags,[],0]" "armed are processes that work for a request, and no others"
is "$(run "kprof:stop_trace().")" ok "stop_trace"
is "$(run "scenario_trace:left().")" "{[],[]}" "no process is traced any more"

# Each alone tells its own and nothing of the other.
if [ -n "$gc" ]; then
  is "$(run "scenario_cases:trace($collector_port, [], [{trace_gc, true}]).")" ok "a trace of garbage alone"
  measure 21 '[asleep, garbage]'
  is "$(run "kprof:stop_trace().")" ok "stop_trace"
fi
if [ -n "$scheduling" ]; then
  is "$(run "scenario_cases:trace($collector_port, [], [{trace_scheduling, true}]).")" ok "a trace of scheduling alone"
  measure 22 '[asleep, garbage]'
  is "$(run "kprof:stop_trace().")" ok "stop_trace"
fi
stop_collector
if [ -n "$gc" ]; then
  holds "$(sum_of gc_us garbage.21 alpha)" -gt 0 "garbage alone: gc_us"
  is "$(sum_of off_cpu_us asleep.21 alpha)" 0 "and no off_cpu_us"
fi
if [ -n "$scheduling" ]; then
  holds "$(sum_of off_cpu_us asleep.22 alpha)" -gt 30000 "scheduling alone: off_cpu_us"
  is "$(sum_of gc_us garbage.22 alpha)" 0 "and no gc_us"
fi
is "$(ledger requests_expired+unwound_frames+orphan_returns+ambiguous_returns+dropped_messages+decode_errors+paused_ms+stale_calls)" 0 \
  "nothing was lost"
counted_once
intact
