#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: who waits for a worker, a connection, a lock or a worked-out answer that somebody else gives back goes on under that
# one's token, and its calls are its own all the same. Five ways to hand on what is short, with one, two and six waiters for each worker,
# requests by an entry and by markers. The processes that do the work measure themselves what each request had of them. With tiers in the
# processes that are asked, or where who works for another process's request says so (with_token, wrap, set_current_label), every request
# that is called complete has exactly its own calls, 95 of 100 of them with times within 5 % or 50 us, and at least 95 of 100 are complete.
# Where nothing in the stream tells whose a call is, no bucket with wrong numbers has the verdict ok. With the native tracer the messages
# that processes send and take tell it: nearly all are complete, and right.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Arguments: only these modes of scenario_pools.
modes=("$@")
wanted() { [ ${#modes[@]} -eq 0 ] || [[ " ${modes[*]} " == *" $1 "* ]]; }

name=pools_$$
tracer=port
run() { target_eval "$name@localhost" "$1"; }
all_closed() { [ "$(ledger requests_complete+requests_incomplete+requests_expired)" -ge "$made" ]; }

# requests MODE ROUND [RUN]: runs them, into a database of their own; with run_in_bucket each run is within a bucket of the ledger.
# Sets made.
requests() {
  local waiters counts run=${3:-run}
  db=$scratch/$1.$2.db
  start_collector
  is "$(run "scenario_pools:trace($collector_port, $1, $tracer).")" ok "$1, round $2: the trace starts"
  # all ways at once: most of their time they wait
  for waiters in 1 2 6; do
    counts=$(run "rpc:parallel_eval([{scenario_pools, $run, [$1, Way, $waiters]} || Way <- [hand, boy, holder, lock, cache]]).")
    [[ $counts =~ ^\[[0-9]+(,[0-9]+){4}\]$ ]] || fail "$1, waiters $waiters: $counts"
  done
  made=$(run "scenario_pools:truth(\"$scratch/$1.$2.truth\").")
  wait_for 60 "the $made requests of $1 are closed" all_closed
  is "$(run "kprof:stop_trace().")" ok "stop_trace"
  stop_collector
  joined >"$scratch/joined.sql"
}

# What the database says of each request that it calls complete, beside what is true of it: a table `both`. They are the same request when
# kprof's began before the truth's first look at the clock, and after the end of the one that the same client made before.
joined() {
  cat <<END
ATTACH 'file:$db?mode=ro' AS k;
CREATE TABLE truth (identity TEXT, way TEXT, waiters INTEGER, start INTEGER, stop INTEGER, db INTEGER, db_ns INTEGER, wire INTEGER,
                    wire_ns INTEGER);
.import ${db%.db}.truth truth
CREATE TABLE kept AS
  SELECT r.id, r.identity, r.duration_us, r.outcome, CAST(strftime('%s', substr(r.started_at, 1, 19)) AS INTEGER) * 1000000000
         + CAST(substr(r.started_at, 21, 6) AS INTEGER) * 1000 AS began,
         (SELECT count(*) FROM k.slow_spans AS s WHERE s.request_id = r.id AND s.name = 'db') AS db,
         (SELECT coalesce(sum(s.duration_us), 0) FROM k.slow_spans AS s WHERE s.request_id = r.id AND s.name = 'db') AS db_us,
         (SELECT count(*) FROM k.slow_spans AS s WHERE s.request_id = r.id AND s.name = 'wire') AS wire,
         (SELECT coalesce(sum(s.duration_us), 0) FROM k.slow_spans AS s WHERE s.request_id = r.id AND s.name = 'wire') AS wire_us,
         (SELECT count(*) FROM k.slow_spans AS s WHERE s.request_id = r.id AND (s.async OR s.outcome <> 'ok')) AS odd
  FROM k.slow_requests AS r WHERE r.complete;
CREATE TABLE both AS
  SELECT k.*, t.rowid AS request, t.way, t.waiters, t.db AS true_db, t.wire AS true_wire, t.db_ns / 1000.0 AS true_db_us,
         t.wire_ns / 1000.0 AS true_wire_us, (t.stop - t.start) / 1000.0 AS true_us,
         (SELECT verdict FROM k.ledger AS l WHERE l.resolution_s = 10 AND l.bucket_start = strftime('%Y-%m-%dT%H:%M:%SZ',
             CAST((k.began + k.duration_us * 1000) / 10000000000 AS INTEGER) * 10, 'unixepoch')) AS verdict
  FROM kept AS k LEFT JOIN truth AS t ON t.identity = k.identity AND t.start >= k.began
       AND k.began >= coalesce((SELECT max(p.stop) FROM truth AS p WHERE p.identity = k.identity AND p.start < t.start), 0)
       AND t.start = (SELECT min(n.start) FROM truth AS n WHERE n.identity = k.identity AND n.start >= k.began);
END
}

# ask SQL: of these.
ask() { { cat "$scratch/joined.sql"; printf '%s;\n' "$1"; } | sqlite3 -separator '|' :memory:; }

# Complete requests that have not their own calls: way|waiters|identity|db, true/kprof|wire|calls that ended late or badly.
wrong="SELECT way, waiters, identity, true_db || '/' || db, true_wire || '/' || wire, odd FROM both
       WHERE (request IS NULL OR db <> true_db OR wire <> true_wire OR odd > 0 OR outcome <> 'ok')"

# -- tiers in the processes that are asked, or words ---------------------------------------------------------------------------------

# The same for an identity: identity|tier|calls that are true|calls.
sums_differ="
  WITH t AS (SELECT identity, 'db' AS tier, sum(true_db) AS calls FROM both GROUP BY 1
             UNION ALL SELECT identity, 'wire', sum(true_wire) FROM both GROUP BY 1
             UNION ALL SELECT identity, '_total', count(*) FROM both GROUP BY 1),
       s AS (SELECT identity, tier, sum(calls) AS calls FROM k.tier_stats
             WHERE resolution_s = 10 AND tier IN ('db', 'wire', '_total') AND identity <> '_total' GROUP BY 1, 2)
  SELECT coalesce(t.identity, s.identity), coalesce(t.tier, s.tier), t.calls, s.calls FROM t FULL OUTER JOIN s USING (identity, tier)
  WHERE coalesce(t.calls, 0) <> coalesce(s.calls, 0)"

# Where more than one request in 20 has times that are not true: way|waiters|what|requests|of these wrong. A processor that is taken away
# between the two clocks that are compared makes one of them wrong; what kprof has wrong it has wrong for most.
times_differ="
  WITH r AS (SELECT way, waiters, 'db' AS what, true_db_us / db AS true_us, db_us / db AS us FROM both
             UNION ALL SELECT way, waiters, 'wire', true_wire_us / wire, wire_us / wire FROM both
             UNION ALL SELECT way, waiters, 'request', true_us, duration_us FROM both)
  SELECT way, waiters, what, count(*), sum(abs(true_us - us) > max(0.05 * true_us, 50)) AS wrong FROM r
  GROUP BY 1, 2, 3 HAVING 20 * wrong > count(*)"

told() { ask "SELECT '  ' || t.way || ', waiters: ' || t.waiters || ', requests: ' || count(*) || ', complete: ' ||
                     (SELECT count(*) FROM both AS b WHERE b.way = t.way AND b.waiters = t.waiters) || ', of these wrong: ' ||
                     (SELECT count(*) FROM ($wrong) AS w WHERE w.way = t.way AND w.waiters = t.waiters)
              FROM truth AS t GROUP BY t.way, t.waiters"; }

# follows_causes MODE ROUND
follows_causes() {
  requests "$1" "$2"
  told
  is "$(ledger requests_complete+requests_incomplete+requests_expired)" "$made" "$1: each request is counted once"
  is "$(ask "SELECT count(*), count(DISTINCT request) FROM both")" "$(ledger requests_complete)|$(ledger requests_complete)" \
    "$1: each complete one is one that was made"
  is "$(ask "$wrong LIMIT 10")" "" "$1: each of them has exactly the calls that it made"
  is "$(ask "$sums_differ LIMIT 10")" "" "$1: so have the identities"
  is "$(ask "SELECT t.way, t.waiters, count(*), count(b.request) FROM truth AS t LEFT JOIN both AS b ON b.request = t.rowid
             GROUP BY 1, 2 HAVING count(b.request) < 0.95 * count(*)")" "" \
    "$1: nearly all are complete, whoever waits for what"
  is "$(sql "SELECT coalesce(sum(dropped_messages), 0), coalesce(sum(decode_errors), 0), coalesce(sum(orphan_returns), 0) FROM ledger
             WHERE resolution_s = 10")" "0|0|0" "$1: nothing was lost on the way"
  counted_once
  intact
  differ=$(ask "$times_differ")
}

start_erl "$name" -pa "$KPROF_EBIN" -run file set_cwd "$scratch" -s scenario_pools start
watched=("$(run 'list_to_integer(os:getpid()).')")
is "$(run "[scenario_pools:run(entry, Way, 2) || Way <- [hand, boy, holder, lock, cache]].")" "[60,60,60,30,60]" "all runs without kprof"
for mode in entry marked handed said; do
  ! wanted "$mode" || in_quiet "$mode: times of db, of wire and of the requests" follows_causes "$mode"
done

# -- nothing tells the truth -----------------------------------------------------------------------------------------------

# honest MODE ROUND: no bucket that is called ok has a request with calls of another one's, or lacks one.
honest() {
  requests "$1" "$2" run_in_bucket
  told
  is "$(ledger requests_complete+requests_incomplete+requests_expired)" "$made" "$1: each request is counted once"
  is "$(ask "SELECT * FROM ($wrong AND verdict = 'ok') LIMIT 10")" "" "$1: where the verdict is ok, complete requests have their own calls"
  is "$(ask "SELECT count(*) FROM both WHERE verdict IS NULL")" 0 "$1: each is in a bucket of the ledger"
  counted_once
}
for mode in deep carried; do
  ! wanted "$mode" || honest "$mode" 1
done

# -- the messages that processes take tell it ------------------------------------------------------------------------------

tracer=native
if wanted deep; then
  honest deep 2
  is "$(ask "$wrong LIMIT 10")" "" "native: complete requests have their own calls"
  is "$(ask "SELECT t.way, t.waiters, count(*), count(b.request) FROM truth AS t LEFT JOIN both AS b ON b.request = t.rowid
             GROUP BY 1, 2 HAVING count(b.request) < 0.95 * count(*)")" "" "native: nearly all are complete"
fi
