#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: the time of every request is self times, waiting and what no tier covers, less what ran in parallel, to the
# nanosecond, whatever the request is made of. Where a queue in front of a tier grows, kprof diff and kprof report --compare-to name
# waiting before that tier first, by as much as the application says, and the parts add up to the change. So do those of the slow ones.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$(dirname "${BASH_SOURCE[0]}")/cases.sh"

start_collector
start_cases
is "$(run "scenario_cases:run(scenario_cases:names(), 1, 0).")" ok "the cases run without kprof"
is "$(run "scenario_truth:clear().")" ok "that was only to warm up"
is "$(run "scenario_cases:trace($collector_port, [], []).")" ok "the trace starts"
measure 1 "$(run 'scenario_cases:names().')"

# -- each moment once --------------------------------------------------------------------------------------------------
# What is left of an identity's time when its parts are taken off, in ns.
left='sum(CASE tier WHEN '"'_total'"' THEN total_ns - self_ns + parallel_ns ELSE -self_ns - waiting_ns END)'
rows="stat_rows JOIN identity_names AS i ON i.id = identity_id JOIN (SELECT id, name AS tier FROM tier_names) AS t ON t.id = tier_id"
holds "$(sql "SELECT count(DISTINCT identity_id) FROM stat_rows")" -gt 30 "many kinds of requests"
is "$(sql "SELECT resolution_s, i.name, $left FROM $rows GROUP BY resolution_s, bucket_start, i.id HAVING $left <> 0")" "" \
  "of each bucket and identity the parts are the whole, to the nanosecond"
is "$(sql "SELECT i.name, sum(CASE tier WHEN '_total' THEN waiting_ns ELSE -waiting_ns END) AS waiting FROM $rows
           GROUP BY i.id HAVING waiting <> 0")" "" "so is the waiting of all tiers"
is "$(sql "SELECT i.name FROM $rows WHERE resolution_s = 10 AND tier = '_total' AND (waiting_ns > total_ns OR parallel_ns < 0)")" "" \
  "no request waits longer than it lasts"
is "$(sql "SELECT sum(waiting_us) FROM path_stats WHERE identity = '_total'")" \
  "$(sql "SELECT sum(waiting_us) FROM tier_stats WHERE identity = '_total' AND tier <> '_total'")" "the paths have it, too"
is "$(sql "SELECT id FROM kept_requests AS r WHERE kept_spans = spans AND duration_ns <> uncovered_ns - parallel_ns +
             coalesce((SELECT sum(self_ns + waiting_ns) FROM kept_spans WHERE request_id = r.id), 0)")" "" \
  "of each kept request, too"
holds "$(sql "SELECT count(*) FROM kept_requests WHERE parallel_ns > 0")" -gt 0 "some of which ran in parallel"

# -- a queue grows -----------------------------------------------------------------------------------------------------
requests=35
# stretch NAME BUSY_MS: so many requests, each of which finds its server busy for so long, in buckets of their own. From and until in
# $from and $until, the truth in $scratch/NAME.tiers.
stretch() {
  wait_for 15 "a new bucket begins" new_bucket
  from=$(($(date +%s) / 10 * 10))
  is "$(run "persistent_term:put(scenario_busy_ms, $2).")" ok "the server is busy for $2 ms each time"
  measure 7 "[queued]"
  cp "$scratch/round.tiers" "$scratch/$1.tiers"
  until=$(($(date +%s) / 10 * 10 + 10))
}
new_bucket() {
  local now
  now=$(date +%s)
  [ $((now % 10)) -lt 1 ] && [ "$now" -ge "${until:-0}" ]
}
at() { date -u -d "@$1" +%Y-%m-%dT%H:%M:%SZ; }
stretch before 4
before="$(at "$from")..$(at "$until")"
stretch after 24
after="$(at "$from")..$(at "$until")"
# of another identity a few that wait for long, among many that do not
watch
is "$(run "persistent_term:put(scenario_busy_ms, 4).")" ok "the server is busy for 4 ms"
measure 8 "[queued]"
requests=3
is "$(run "persistent_term:put(scenario_busy_ms, 60).")" ok "and for 60 ms"
measure 8 "[queued]"
unwatch
seventy() {
  [ "$(sql "SELECT sum(requests) FROM tier_stats WHERE resolution_s = 10 AND identity = 'queued.7' AND tier = '_total'")" = 70 ]
}
wait_for 15 "all are counted" seventy
is "$(run "kprof:stop_trace().")" ok "stop_trace"
stop_collector

# Of the mean request, in µs: how much longer it takes, and how much longer it waits for beta, as the application says.
truth_of() { awk -F '|' -v tier="$2" -v column="$3" '$2 == tier { print $column / 35 }' "$scratch/$1.tiers"; }
longer=$(awk "BEGIN { print $(truth_of after _total 6) - $(truth_of before _total 6) }")
queue=$(awk "BEGIN { print $(truth_of after beta 10) - $(truth_of before beta 10) }")
"$kprof" diff --db "$db" --identity queued.7 --before "$before" --after "$after" --json >"$scratch/diff.json" || fail "kprof diff"
whole() {
  sqlite3 :memory: "WITH r AS (SELECT value AS v FROM json_each(readfile('$scratch/diff.json'), '\$.rows')
                               WHERE value ->> 'tier' = '_total'),
  p AS (SELECT j.value ->> 'kind' AS kind, j.value ->> 'tier' AS tier, (j.value ->> 'after_us') - (j.value ->> 'before_us') AS us, j.key
        FROM r, json_each(v, '\$.parts') AS j) SELECT $1"
}
is "$(whole "kind || ' ' || tier FROM p WHERE key = 0")" "waiting beta" "the queue is the first part of the change"
near() { awk "BEGIN { exit !(($1 - $2)^2 < ($2 / 20 + 500)^2) }"; }
first=$(whole "us FROM p WHERE key = 0")
near "$first" "$queue" || fail "waiting before beta: $first, the application says $queue"
ok "by as much as the application says: $queue µs"
near "$(whole "(v ->> '\$.mean_us.after') - (v ->> '\$.mean_us.before') FROM r")" "$longer" || fail "not $longer longer"
is "$(whole "round((SELECT sum(us) FROM p) - ((v ->> '\$.mean_us.after') - (v ->> '\$.mean_us.before')), 1) FROM r")" 0.0 \
  "the parts add up to the change"
"$kprof" diff --db "$db" --identity queued.7 --before "$before" --after "$after" >"$scratch/diff.txt" || fail "kprof diff"
has "$scratch/diff.txt" '^  that is  \+[0-9]+ ms: \+[0-9]+ waiting before beta' "kprof diff says so"
is "$(sed -n 's/^  that is  +\([0-9.]*\) .s: \(.*\)/\1 \2/p' "$scratch/diff.txt" |
  awk '{ for (i = 2; i <= NF; i++) if ($i ~ /^[+-][0-9.]+$/) sum += $i; print sum - $1 }')" 0 "what it says adds up as it stands there"

"$kprof" report --db "$db" --identity queued.7 --since "$(at "$from")" --until "$(at "$until")" --compare-to '1h before' \
  >"$scratch/none.txt" 2>&1 && fail "there is nothing an hour before"
has "$scratch/none.txt" 'no complete requests in the time to compare with' "a time without requests is told"
back=$((from - $(date -u -d "${before%..*}" +%s)))
"$kprof" report --db "$db" --identity queued.7 --since "$(at "$from")" --until "$(at "$until")" --compare-to "${back}s before" \
  --percentiles >"$scratch/compared.txt" || fail "kprof report --compare-to"
has "$scratch/compared.txt" '^  that is  \+[0-9]+ ms: \+[0-9]+ waiting before beta' "kprof report --compare-to says the same"
has "$scratch/compared.txt" '^  p99.9 ' "with all percentiles"

# -- the slow ones -----------------------------------------------------------------------------------------------------
"$kprof" report --db "$db" --identity queued.8 --percentiles >"$scratch/percentiles.txt" || fail "kprof report --percentiles"
has "$scratch/percentiles.txt" '^ queued.8 ' "the percentiles of an identity"
slow_for="$(grep -cE '^  queued.8: [0-9]+ kept, against the mean \+[0-9.]+ ms: \+[0-9.]+ waiting before beta' \
  "$scratch/percentiles.txt" || true)"
timely "$slow_for" -eq 1 "what makes the slow ones slow is the queue"
"$kprof" report --db "$db" --identity queued.7 --tier beta --json >"$scratch/tier.json" || fail "kprof report --tier"
tier_rows() { sqlite3 :memory: "SELECT $1 FROM json_each(readfile('$scratch/tier.json'), '\$.rows')"; }
is "$(tier_rows "group_concat(DISTINCT value ->> 'tier'), max(value ->> 'calls')")" "beta|70" "one tier alone"
# of both hours together, where one ended meanwhile
p50=$(tier_rows "CAST(round(sum(value ->> 'p50_us') FILTER (WHERE value ->> 'identity' = 'queued.7')) AS INTEGER)")
is "$(sql "SELECT $p50 BETWEEN min(CAST(round(p50_us) AS INTEGER)) AND max(CAST(round(p50_us) AS INTEGER)) FROM tier_stats
           WHERE resolution_s = 3600 AND identity = 'queued.7' AND tier = 'beta'")" 1 "its percentiles"
intact
