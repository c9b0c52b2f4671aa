#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: with the native tracer waiting is measured. The processes that are asked measure themselves how long each message has
# waited, a little longer than it really did. What kprof tells of that is never more, nor much less, however long they then work in no tier,
# and by way of processes without tiers, too; and the times of each request still add up. Where scheduling is traced it is told apart: who
# was idle, and was not run, was in the run queue; who was busy had it in its mailbox. Through a trace port waiting is estimated, and said
# to be so. When somebody else becomes the node's system tracer that is noticed, and waiting is estimated from then on.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

name=waiting_$$
node=$name@localhost
run() { target_eval "$node" "$1"; }
closed() { [ "$(ledger requests_complete+requests_incomplete+requests_expired)" -ge "$1" ]; }
sum_of() {
  sql "SELECT CAST(coalesce(sum($1), -1) AS INTEGER) FROM tier_stats WHERE resolution_s = 10 AND identity = '$2' AND tier = 'db'"
}

# traces TRACER SCHEDULING [NAME]: into a database of its own.
traces() {
  db=$scratch/$1.$2.${3:-first}.db
  start_collector
  watch "${watched[@]}"
  is "$(run "scenario_waiting:trace($collector_port, $1, $2).")" ok "tracing starts: $1, scheduling $2"
  made=0
}
# runs WAY TIMES: adds to made; sets waited, in us.
runs() {
  local told
  told=$(run "scenario_waiting:run($1, $2).")
  [[ $told =~ ^\{([0-9]+),([0-9]+)\}$ ]] || fail "$1: $told"
  made=$((made + BASH_REMATCH[1] + 1)) waited=$((BASH_REMATCH[2] / 1000))
}
stops() {
  wait_for 60 "the $made requests are closed" closed "$made"
  is "$(run "kprof:stop_trace().")" ok "stop_trace"
  stop_collector
  is "$(ledger requests_complete)" "$made" "all are complete"
  is "$(sql "SELECT identity, sum(CASE tier WHEN '_total' THEN self_us - parallel_us - total_us ELSE self_us + waiting_us END) AS more
             FROM tier_stats WHERE resolution_s = 10 AND identity <> '_total' GROUP BY 1 HAVING abs(more) > 0.5")" \
    "" "self times, waiting and the rest add up"
}
# measured WAY: never more than the truth, and less by some us for each message.
measured() {
  local wait measured
  wait=$(sum_of wait_us "$1") measured=$(sum_of measured_us "$1")
  holds "$measured" -gt 0 "$1: there is some"
  is "$measured" "$wait" "$1: all waiting is measured"
  holds "$measured" -le $((waited + 2 + waited / 1000)) "$1: it is no longer than it was: $measured of $waited us"
  # what a machine needs between looking at the clock and sending, and between taking and looking: some us a message, where it is quiet
  timely $((waited - measured)) -le $((waited / 20 + 100 * 90)) "$1: nor much shorter"
}

start_erl "$name" -pa "$KPROF_EBIN" -run file set_cwd "$scratch" +S 2:2
watched=("$(run 'list_to_integer(os:getpid()).')")

# -- measured ----------------------------------------------------------------------------------------------------------
traces native false
has "$collector_log" "node $node: tracing, by the native tracer" "the collector knows the tracer"
"$kprof" nodes --collector "127.0.0.1:$collector_port" --json >"$scratch/nodes.json"
is "$(sqlite3 :memory: "SELECT readfile('$scratch/nodes.json') ->> '\$.nodes[0].tracer'")" native "so does kprof nodes"
"$kprof" nodes --collector "127.0.0.1:$collector_port" >"$scratch/nodes.txt"
has "$scratch/nodes.txt" 'tracing, native' "in its table, too"
for way in idle busy relayed; do
  runs "$way" 30
  declare "waited_$way=$waited"
done
stops
for way in idle busy relayed; do
  truth=waited_$way waited=${!truth}
  measured "$way"
done
is "$(sql "SELECT count(*), sum(measured) FROM slow_spans WHERE mailbox_us IS NOT NULL OR run_queue_us IS NOT NULL")" "0|" \
  "where in mailbox and run queue is not known"
is "$(sql "SELECT count(*) FROM tier_stats WHERE mailbox_us IS NOT NULL OR run_queue_us IS NOT NULL")" 0 "nor in sums"
"$kprof" report --db "$db" >"$scratch/shown.txt"
has "$scratch/shown.txt" 'waiting, measured' "the report says that it is measured"
"$kprof" slow --db "$db" "$(sql "SELECT max(id) FROM slow_requests WHERE identity = 'busy'")" >"$scratch/shown.txt"
has "$scratch/shown.txt" '\(measured\)' "so does a slow request"

# -- estimated ---------------------------------------------------------------------------------------------------------
traces port false
has_not "$collector_log" "native tracer" "the collector knows that it is a port"
runs idle 30
stops
is "$(sum_of measured_us idle)" 0 "through a trace port none is measured"
holds "$(sum_of wait_us idle)" -ge $((waited + 2000 * 29)) "the estimate has what the server worked before"
"$kprof" report --db "$db" >"$scratch/shown.txt"
has "$scratch/shown.txt" 'waiting, estimated' "and the report says so"

# -- mailbox and run queue ---------------------------------------------------------------------------------------------
# known WAY: both together are all that is measured.
known() {
  is "$(sql "SELECT count(*) FROM slow_spans AS s JOIN slow_requests AS r ON r.id = s.request_id
             WHERE identity = '$1' AND abs(mailbox_us + run_queue_us - wait_us) > 0.002")" 0 "$1: both together are what was waited"
  holds "$(sql "SELECT CAST(100 * sum(mailbox_us + run_queue_us) / sum(measured_us) AS INTEGER) FROM tier_stats
                WHERE resolution_s = 10 AND identity = '$1' AND tier = 'db'")" -ge 90 "$1: nearly all of it is known apart"
}
if [ "$(run 'string:to_float(erlang:system_info(version)) < {13.2, ""}.')" = true ]; then
  ok "scheduling is not traced on this release (scenario 13)"
else
  traces native true
  for way in busy crowded; do
    runs "$way" 30
    declare "waited_$way=$waited"
  done
  stops
  for way in busy crowded; do
    truth=waited_$way waited=${!truth}
    measured "$way"
    known "$way"
  done
  timely $((10 * $(sum_of mailbox_us busy))) -ge $((9 * $(sum_of "mailbox_us + run_queue_us" busy))) "who is busy has it in the mailbox"
  # most of them: of the sum a single one is the half that was just run when another program got the processor
  sql "SELECT count(*), count(CASE WHEN run_queue_us >= 9 * mailbox_us THEN 1 END)
       FROM slow_spans AS s JOIN slow_requests AS r ON r.id = s.request_id WHERE identity = 'crowded' AND measured" >"$scratch/crowded"
  IFS='|' read -r kept queued <"$scratch/crowded"
  holds "$kept" -ge 5 "messages of slow requests are kept"
  holds "$queued" -gt $((kept / 2)) "who is idle among busy processes is in the run queue"
fi

# -- another system tracer ---------------------------------------------------------------------------------------------
traces native false other
runs idle 5
wait_for 30 "they are closed" closed "$made"
is "$(run "_ = seq_trace:set_system_tracer(spawn(fun() -> register(scenario_other, self()), receive stop -> ok end end)), ok.")" ok \
  "somebody else becomes system tracer"
wait_for 10 "that is noticed" grep -q "does not see which messages processes take, as <.*> is the node's system tracer" "$collector_log"
before=$(sum_of measured_us idle)
runs idle 20
wait_for 60 "the requests are closed" closed "$made"
is "$(run "element(2, process_info(whereis(scenario_other), message_queue_len)).")" 0 "that one gets nothing of ours"
is "$(run "P = whereis(scenario_other), P =:= seq_trace:get_system_tracer().")" true "and stays it"
stops
is "$(sum_of measured_us idle)" "$before" "nothing is measured any more"
holds "$(sum_of wait_us idle)" -ge $((before + 2000 * 19)) "what is waited is estimated"
"$kprof" report --db "$db" >"$scratch/shown.txt"
has "$scratch/shown.txt" 'waiting, part measured' "and the report says so"
is "$(run "scenario_other ! stop, scenario_trace:left().")" "{[],[]}" "nothing is traced"
intact
