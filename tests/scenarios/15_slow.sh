#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: slow requests, failed ones and the slowest of each identity are kept whole. Their trees of calls are those that the
# node wrote down itself: parents, begins, durations, outcomes. kprof slow lists and draws them, the log tells of them, and the callback in
# the node is given them, apart from every request, whatever it does.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

name=slow_$$
run() { target_eval "$name@localhost" "$1"; }
closed() { ledger_reaches requests_complete "$1"; }

# Kept requests of the identities that are not kept whole in number, against as many of the slowest in truth: identity, rank and both
# durations where these differ.
slowest_differ() {
  sqlite3 :memory: -separator '|' "ATTACH 'file:$db?mode=ro' AS k" "
    CREATE TABLE truth (identity TEXT, request INTEGER, request_us REAL, request_outcome TEXT, tier TEXT, parent TEXT, start_us REAL,
                        duration_us REAL, outcome TEXT, wait_us REAL)" ".import $scratch/truth truth" "
    WITH t AS (SELECT identity, request_us, row_number() OVER (PARTITION BY identity ORDER BY request_us DESC) AS rank
               FROM (SELECT DISTINCT identity, request, request_us FROM truth)),
         s AS (SELECT identity, duration_us, row_number() OVER (PARTITION BY identity ORDER BY duration_us DESC) AS rank
               FROM k.slow_requests)
    SELECT s.identity, s.rank, round(request_us), round(duration_us) FROM s LEFT JOIN t USING (identity, rank)
    WHERE s.identity IN ('over', 'failed', 'fast') AND coalesce(abs(request_us - duration_us) > max(0.05 * request_us, 50), 1)"
}

# Spans of kept requests that are not as the truth has them: identity, request, tier, then what is true before what kprof says. With all its
# rows when the numbers of requests or spans differ.
trees_differ() {
  sqlite3 :memory: -separator '|' "ATTACH 'file:$db?mode=ro' AS k" "
    CREATE TABLE truth (identity TEXT, request INTEGER, request_us REAL, request_outcome TEXT, tier TEXT, parent TEXT, start_us REAL,
                        duration_us REAL, outcome TEXT, wait_us REAL)" ".import $scratch/truth truth" "
    WITH t AS (SELECT *, row_number() OVER (PARTITION BY identity, request ORDER BY start_us) AS place FROM truth
               WHERE identity IN ('tree', 'failing')),
         r AS (SELECT *, row_number() OVER (PARTITION BY identity ORDER BY started_at) AS request FROM k.slow_requests),
         s AS (SELECT r.identity, r.request, r.duration_us AS request_us, r.outcome AS request_outcome, s.name AS tier,
                      coalesce(p.name, '') AS parent, s.start_us, s.duration_us, s.outcome, s.wait_us, s.async,
                      row_number() OVER (PARTITION BY r.id ORDER BY s.start_us) AS place
               FROM r JOIN k.slow_spans AS s ON s.request_id = r.id
               LEFT JOIN k.slow_spans AS p ON p.request_id = s.request_id AND p.span = s.parent
               WHERE r.identity IN ('tree', 'failing'))
    SELECT coalesce(t.identity, s.identity), coalesce(t.request, s.request), coalesce(t.place, s.place),
           format('%s/%s below %s/%s, %s/%s, from %.0f/%.0f for %.0f/%.0f, waited %.0f/%.0f, request %s/%s %.0f/%.0f',
                  t.tier, s.tier, t.parent, s.parent, t.outcome, s.outcome, t.start_us, s.start_us, t.duration_us, s.duration_us,
                  t.wait_us, s.wait_us, t.request_outcome, s.request_outcome, t.request_us, s.request_us)
    FROM t FULL OUTER JOIN s USING (identity, request, place)
    WHERE (t.tier, t.parent, t.outcome, t.request_outcome, t.start_us + t.duration_us > t.request_us)
          IS NOT (s.tier, s.parent, s.outcome, s.request_outcome, s.async)
       OR abs(t.start_us - s.start_us) > max(0.05 * t.start_us, 100) OR abs(t.duration_us - s.duration_us) > max(0.05 * t.duration_us, 50)
       OR abs(t.request_us - s.request_us) > max(0.05 * t.request_us, 50) OR abs(t.wait_us - s.wait_us) > max(0.05 * t.wait_us, 50)
    ORDER BY 1, 2, 3"
}

# -- requests ----------------------------------------------------------------------------------------------------------
start_collector
start_erl "$name" -pa "$KPROF_EBIN" -run file set_cwd "$scratch" -s scenario_slow start
is "$(run "scenario_slow:requests().")" ok "the requests run without kprof"
is "$(run "scenario_truth:clear().")" ok "that was only to warm up"
is "$(run "scenario_slow:trace($collector_port, 30000).")" ok "the trace starts"

young() { [ $(($(date +%s) % 10)) -lt 6 ]; }
# What the application itself says of how long its requests took: those over the threshold by identity, when these are not the ones that
# are meant to be (a slow machine makes fast ones slow).
not_as_meant() {
  sqlite3 :memory: -separator '|' "
    CREATE TABLE truth (identity TEXT, request INTEGER, request_us REAL, request_outcome TEXT, tier TEXT, parent TEXT, start_us REAL,
                        duration_us REAL, outcome TEXT, wait_us REAL)" ".import $scratch/truth truth" "
    SELECT 'the application itself took long: ' || identity, request, request_us
    FROM (SELECT DISTINCT identity, request, request_us FROM truth)
    WHERE identity IN ('failed', 'fast') AND request_us > 29000"
}
# All within one bucket of 10 s, of which the slowest are kept. Again, with an empty database, where times differ.
measure() {
  local bucket
  if [ "$1" -gt 1 ]; then
    is "$(run "kprof:stop_trace().")" ok "stop_trace"
    stop_collector
    db=$scratch/again$1.db
    start_collector
    is "$(run "scenario_slow:again($collector_port, 30000).")" ok "the trace starts anew"
  fi
  wait_for 12 "a bucket is young" young
  bucket=$(($(date +%s) / 10))
  is "$(run "scenario_slow:requests().")" ok "the requests run"
  [ $bucket = $(($(date +%s) / 10)) ] || differ="not all within one bucket"
  is "$(run "scenario_slow:truth(\"$scratch/truth\").")" ok "requests, slow and fast"
  wait_for 15 "all requests are closed" closed 29
  sleep 1.2 # what is kept follows in the same flush or the next
  differ+=$(not_as_meant)
  as_meant=
  [ -z "$differ" ] || return 0
  as_meant=1
  is "$(sql "SELECT identity, reason, count(*), sum(outcome = 'error'), min(complete) FROM slow_requests GROUP BY 1, 2 ORDER BY 1")" \
    "failed|failed|3|3|1
failing|over|2|2|1
fast|slowest|3|0|1
over|over|10|0|1
tree|over|2|0|1" "those over the threshold are kept, those that failed, and the slowest of the others"
  differ=$(trees_differ; slowest_differ)
}
watched=("$(run 'list_to_integer(os:getpid()).')")
in_quiet "their trees of calls, and which of them are the slowest, are the truth" measure
has "$collector_log" 'slow_call tree, [0-9.]+ ms, ok' "the log tells of a slow request"
has "$collector_log" 'slow_call failing, [0-9.]+ ms, error' "and of one that failed"
[ -z "$as_meant" ] || has_not "$collector_log" 'slow_call (fast|failed)' "and of no other"
holds "$(grep -c slow_call "$collector_log")" -ge 5 "of five a second"

# -- kprof slow --------------------------------------------------------------------------------------------------------
"$kprof" slow --db "$db" >"$scratch/list.txt" || fail "kprof slow failed"
"$kprof" slow --db "$db" --json >"$scratch/list.json" || fail "kprof slow --json failed"
is "$(sqlite3 :memory: "SELECT group_concat(value ->> 'id', ' ') FROM json_each(readfile('$scratch/list.json'), '\$.requests')")" \
  "$(sql "SELECT group_concat(id, ' ') FROM (SELECT id FROM slow_requests ORDER BY duration_us DESC)")" \
  "kprof slow --json lists them, the slowest first"
for identity in tree failing over failed fast; do has "$scratch/list.txt" "\b$identity\b" "kprof slow lists $identity"; done
id=$(sql "SELECT id FROM slow_requests WHERE identity = 'tree' ORDER BY started_at LIMIT 1")
"$kprof" slow "$id" --db "$db" >"$scratch/tree.txt" || fail "kprof slow $id failed"
"$kprof" slow "$id" --db "$db" --json >"$scratch/tree.json" || fail "kprof slow $id --json failed"
is "$(sqlite3 :memory: \
  "SELECT value ->> 'name', value ->> 'parent', value ->> 'outcome' FROM json_each(readfile('$scratch/tree.json'), '\$.spans')
      ORDER BY value ->> 'span'")" \
  "$(sql "SELECT name, parent, outcome FROM slow_spans WHERE request_id = $id ORDER BY span")" "kprof slow ID --json has its calls"
is "$(grep -oE '\b(handle|alpha|beta|gamma)\b' "$scratch/tree.txt" | sort | uniq -c | awk '{print $2 "|" $1}')" \
  "$(sql "SELECT name, count(*) FROM slow_spans WHERE request_id = $id GROUP BY 1 ORDER BY 1")" "kprof slow ID draws every call"
has "$scratch/tree.txt" 'async' "and marks what outlived the request"
status=0
"$kprof" slow 999999 --db "$db" >/dev/null 2>&1 || status=$?
is "$status" 1 "kprof slow of no request says so"

# -- the callback ------------------------------------------------------------------------------------------------------
called() { [ "$(run "length([I || {I, _, _} <- scenario_slow:calls(), I =:= <<\"$1\">>]).")" -ge "$2" ]; }
wait_for 10 "the callback is called with the trees" called tree 2
is "$(run 'lists:usort([Apart || {_, _, Apart} <- scenario_slow:calls()]).')" "[true]" \
  "it never runs in a request's process, nor under a token"
drawn=$(run 'lists:flatten([io_lib:format("~s,~b ", [T, D]) || {T, D} <- hd([Spans || {<<"tree">>, Spans, _} <- scenario_slow:calls()])]).')
is "$drawn" "\"$(sql "WITH RECURSIVE deep (span, name, depth) AS (
    SELECT span, name, 0 FROM slow_spans WHERE request_id = $id AND parent IS NULL UNION ALL
    SELECT s.span, s.name, depth + 1 FROM slow_spans AS s JOIN deep ON s.parent = deep.span WHERE s.request_id = $id)
  SELECT group_concat(name || ',' || depth, ' ') FROM (SELECT * FROM deep ORDER BY span)") \"" \
  "which are those of the tree, in their depths"
[ -z "$as_meant" ] || is "$(run 'lists:member(<<"fast">>, [I || {I, _, _} <- scenario_slow:calls()]).')" false "it is not called for others"

complete=$(ledger requests_complete)
is "$(run "[scenario_slow:one(I) || I <- [hangs, crashes, later]].")" "[ok,ok,ok]" "requests whose callback hangs and crashes"
wait_for 10 "the callback is called with what hangs" called hangs 1
watch
meanwhile=$(run 'element(1, timer:tc(scenario_slow, one, [meanwhile])) div 1000.')
timely "$meanwhile" -lt 1000 "a request meanwhile, of 40 ms, waits for nothing, ms"
wait_for 15 "the callback is called again after it was killed" called later 1
wait_for 10 "and for what came meanwhile" called meanwhile 1
is "$(run "kprof:status().")" tracing "the trace goes on"
wait_for 15 "these requests are closed" closed $((complete + 4))
has "$scratch/$name.log" 'slow_call_callback failed' "the node's log tells of the failure"
is "$(run "kprof:stop_trace().")" ok "stop_trace"
is "$(run "[P || P <- processes(), {current_function, {timer, sleep, 1}} <- [process_info(P, current_function)]].")" "[]" \
  "no callback is left"
stop_collector
is "$(ledger requests_incomplete+requests_expired+dropped_messages+orphan_returns+stale_calls+decode_errors+paused_ms)" 0 "nothing was lost"
counted_once
intact
