# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# What the scenarios of scenario_cases share: the node that runs them, and comparing what kprof says with what is true. Sourced after
# lib.sh, never run.
#
# On a machine that others use, the kernel may take the processor from the node between its own look at the clock and the VM's. Cases
# whose times differ while their counts are right are run again under another identity, in rounds of in_quiet: what kprof does wrong, it
# does wrong again.

name=cases_$$
requests=2 # of each case
truth=$scratch/truth
complete=0 incomplete=0

run() { target_eval "$name@localhost" "$1"; }

# start_cases: the node that runs the cases, with kprof in its code path and not started, and another node that it can call.
start_cases() {
  start_erl "other_$$"
  start_erl "$name" -pa "$KPROF_EBIN" -run file set_cwd "$scratch" -s scenario_cases start
  is "$(run "persistent_term:put(scenario_other_node, 'other_$$@localhost').")" ok "there is another node to call"
}

# measure ROUND CASES: runs the cases, a list of Erlang, and takes the truth down.
measure() {
  local counts
  is "$(run "scenario_cases:run($2, $requests, $1).")" ok "round $1: the cases run"
  counts=$(run "{C, I} = scenario_cases:truth(\"$scratch/round\"), [C, I].")
  [[ $counts =~ ^\[([0-9]+),([0-9]+)\]$ ]] || fail "no counts: $counts"
  complete=$((complete + BASH_REMATCH[1])) incomplete=$((incomplete + BASH_REMATCH[2]))
  cat "$scratch/round.tiers" >>"$truth.tiers"
  cat "$scratch/round.paths" >>"$truth.paths"
  wait_for 15 "all requests are closed" all_closed
}
all_closed() { [ "$(ledger requests_complete+requests_incomplete+requests_expired)" -ge $((complete + incomplete)) ]; }

# What a call may be longer than the truth: tracing it takes time.
slack_us=50

# How errors of kprof differ from the truth's, in SQL.
errors_differ='t.errors <> s.errors'
# The truth has a call wait until it begins. The native tracer knows when its message was taken: what its process did from then on is its
# asker's own time, so of waiting there is not more than that, and of own time not less. 76_waiting.sh judges it to the end.
waits_differ() {
  local apart='abs(t.self_us - s.self_us)' more_wait='abs(t.wait_us - s.wait_us)' more_waiting='abs(t.waiting_us - s.waiting_us)'
  if [ "$tracer" = native ]; then
    apart='t.self_us - s.self_us' more_wait='s.wait_us - t.wait_us' more_waiting='s.waiting_us - t.waiting_us'
  fi
  echo "$apart > max(0.05 * t.self_us, $slack_us * t.calls) OR $more_wait > max(0.05 * t.wait_us, $slack_us * t.calls)
    OR $more_waiting > max(0.05 * t.waiting_us, $slack_us * t.calls)"
}

# compare ROUND: a line a tier and identity, what is true before what kprof says, and whether that
# fits: fits, times, counts, missing, invented.
compare() {
  sqlite3 :memory: -separator '|' "ATTACH 'file:$db?mode=ro' AS k" "
    CREATE TABLE truth (identity TEXT, tier TEXT, calls INTEGER, errors INTEGER, async_calls INTEGER, total_us REAL, self_us REAL,
                        mean_us REAL, wait_us REAL, waiting_us REAL)" ".import $truth.tiers truth" "
    WITH t AS (SELECT * FROM truth WHERE identity LIKE '%.$1'),
         s AS (SELECT identity, tier, sum(calls) AS calls, sum(errors) AS errors, sum(async_calls) AS async_calls,
                      sum(total_us) AS total_us, sum(self_us) AS self_us, sum(mean_us * calls) / sum(calls) AS mean_us,
                      sum(wait_us) AS wait_us, sum(waiting_us) AS waiting_us
               FROM k.tier_stats WHERE resolution_s = 10 AND identity LIKE '%.$1' GROUP BY 1, 2),
         b AS (SELECT coalesce(t.identity, s.identity) AS identity, coalesce(t.tier, s.tier) AS tier,
                      printf('%d/%d %d/%d %d/%d', t.calls, s.calls, t.errors, s.errors, t.async_calls, s.async_calls) AS counts,
                      printf('%.0f/%.0f %.0f/%.0f %.0f/%.0f %.0f/%.0f %.0f/%.0f', t.total_us, s.total_us, t.self_us, s.self_us, t.mean_us,
                             s.mean_us, t.wait_us, s.wait_us, t.waiting_us, s.waiting_us) AS times,
                      CASE WHEN s.calls IS NULL THEN 'missing' WHEN t.calls IS NULL THEN 'invented'
                           WHEN (t.calls, t.async_calls) <> (s.calls, s.async_calls) OR $errors_differ THEN 'counts'
                           WHEN abs(t.total_us - s.total_us) > max(0.05 * t.total_us, $slack_us * t.calls)
                             OR abs(t.mean_us - s.mean_us) > max(0.05 * t.mean_us, $slack_us)
                             OR $(waits_differ) THEN 'times'
                           ELSE 'fits' END AS verdict
               FROM t FULL OUTER JOIN s USING (identity, tier))
    SELECT identity, tier, counts, times, verdict FROM b ORDER BY 1, 2" >"$scratch/compared"
}

# Where in the tree the calls are: identity|path|calls, what is true before what kprof says, where they differ.
paths_differ() {
  sqlite3 :memory: -separator '|' "ATTACH 'file:$db?mode=ro' AS k" "CREATE TABLE truth (identity TEXT, path TEXT, calls INTEGER)" \
    ".import $truth.paths truth" "
    WITH t AS (SELECT * FROM truth WHERE identity LIKE '%.$1'),
         s AS (SELECT identity, path, sum(calls) AS calls FROM k.path_stats WHERE resolution_s = 10 AND identity LIKE '%.$1' GROUP BY 1, 2)
    SELECT coalesce(t.identity, s.identity), coalesce(t.path, s.path), printf('%d/%d', t.calls, s.calls)
    FROM t FULL OUTER JOIN s USING (identity, path) WHERE t.calls IS NOT s.calls ORDER BY 1, 2"
}

table() {
  awk -F '|' 'BEGIN { split("identity|tier|calls errors async|total self mean wait waiting, us|", head, "|")
            for (i in head) cell[0, i] = head[i] }
    { for (i = 1; i <= NF; i++) cell[NR, i] = $i; n = NF > n ? NF : n }
    END { for (r = 0; r <= NR; r++) for (i = 1; i <= n; i++) if (length(cell[r, i]) > w[i]) w[i] = length(cell[r, i])
          for (r = 0; r <= NR; r++) { for (i = 1; i <= n; i++) printf "%-" w[i] + 2 "s", cell[r, i]; print "" } }'
}

# tell_truth CASES: runs the cases and compares, again where the machine may have been in the way. The rounds are 1 to 6.
tell_truth() {
  cases=$1
  watched=("$(run 'list_to_integer(os:getpid()).')")
  in_quiet "times of every tier" truth_round
  watched=()
}

# truth_round ROUND: counts are judged here; the cases whose times are off are those of the next round.
truth_round() {
  measure "$1" "$cases"
  compare "$1"
  is "$(grep -v '|\(fits\|times\)$' "$scratch/compared" | table | tail -n +2)" "" \
    "round $1, $(wc -l <"$scratch/compared") rows: calls, errors and asynchronous calls of every tier"
  is "$(paths_differ "$1")" "" "round $1, $(wc -l <"$truth.paths") paths: calls of every position in the tree"
  if grep '|times$' "$scratch/compared" >"$scratch/off"; then
    differ=$(table <"$scratch/off")
    cases="[$(sed 's/\..*//' "$scratch/off" | sort -u | paste -sd,)]"
  fi
}
