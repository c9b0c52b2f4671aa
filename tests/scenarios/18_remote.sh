#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: a request that goes to another traced node is one request, of the node where it began. What the other node does for
# it is told apart and marked remote; it is no request of that node, no error and no loss of it, and both can be found from each other.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

a=asker_$$@localhost
b=server_$$@localhost
start_collector
start_erl "${a%@*}" -pa "$KPROF_EBIN"
start_erl "${b%@*}" -pa "$KPROF_EBIN"
b_pid=$erl_pid
is "$(target_eval "$a" "scenario_remote:start($collector_port).")" ok "one node is traced"
is "$(target_eval "$b" "scenario_remote:start($collector_port).")" ok "and another"
# The very first message to a node waits until it is connected, and that takes its sender's token.
is "$(target_eval "$a" "net_kernel:connect_node('$b').")" true "they are connected"

for round in 'requests(100, B, quick)' 'requests(20, B, nested)' 'requests(3, B, slow)' 'requests(5, B, fail)' 'requests(7, B, mark)'; do
  is "$(target_eval "$a" "B = '$b', scenario_remote:$round.")" ok "$round"
done
is "$(target_eval "$b" 'scenario_remote:own(11).')" ok "requests of the other node's own"
wait_for 15 "the asker's requests are in the database" ledger_reaches requests_complete 146
parts() { [ "$(sql "SELECT sum(calls) FROM tier_stats WHERE resolution_s = 10 AND identity = '_remote' AND tier = '_total'")" = 135 ]; }
wait_for 15 "and so are their parts" parts

stats() { sql "SELECT identity, tier, sum(requests), sum(calls), sum(errors) FROM tier_stats WHERE resolution_s = $2 AND node = '$1'
               GROUP BY 1, 2 ORDER BY 1, 2"; }
for resolution in 10 3600; do
  is "$(stats "$a" $resolution)" "_total|_total|135|135|0
_total|front|135|135|0
undefined|_total|135|135|0
undefined|front|135|135|0" "the asker has requests, and none of the server's calls, at $resolution s"
  is "$(stats "$b" $resolution)" "_remote|_total|135|135|5
_remote|back|135|135|5
_remote|deep|30|50|0
_total|_total|11|11|0
_total|back|11|11|0
mine|_total|11|11|0
mine|back|11|11|0" "the server has its own requests, and the parts of others apart from them, at $resolution s"
done
is "$(sql "SELECT node, sum(requests_complete), sum(requests_incomplete), sum(requests_expired), sum(requests_unsampled), sum(stale_calls),
                  sum(orphan_returns), sum(lost_tokens), sum(decode_errors) FROM ledger WHERE resolution_s = 10 GROUP BY 1 ORDER BY 1")" \
  "$a|135|0|0|0|0|0|0|0
$b|11|0|0|0|0|0|0|0" "the ledgers have requests where they began, and no loss"
is "$(sql "SELECT sum(calls) FROM path_stats WHERE resolution_s = 10 AND identity = '_total' AND node = '$b'")" 11 \
  "times by position: _total is without the parts"
is "$(sql "SELECT path, sum(calls) FROM path_stats WHERE resolution_s = 10 AND identity = '_remote' GROUP BY 1 ORDER BY 1")" "back|135
back > deep|50" "and they stand under _remote"
is "$(sql "SELECT count(*) > 0, min(total_us) > 2500000 FROM tier_stats
           WHERE resolution_s = 10 AND node = '$b' AND identity = '_remote' AND tier = 'back'
           AND max_us > 2500000")" "1|1" "a call that lasted longer than the grace time is there with its whole time"

# -- kept whole --------------------------------------------------------------------------------------------------------
is "$(sql "SELECT DISTINCT node, identity, remote, origin FROM slow_requests WHERE remote OR identity = 'undefined' ORDER BY 1")" \
  "$a|undefined|0|
$b|_remote|1|$a" "kept requests tell where they are from"
is "$(sql "SELECT DISTINCT name, s.remote FROM slow_spans AS s JOIN slow_requests AS r ON r.id = s.request_id WHERE r.identity <> 'mine'
           ORDER BY 1")" "back|1
deep|1
front|0" "and so do their spans"
pair=$(sql "SELECT a.id, b.id FROM slow_requests AS a JOIN slow_requests AS b USING (label)
            WHERE a.node = '$a' AND b.node = '$b' AND a.duration_us > 2500000
            AND b.started_at >= a.started_at AND b.duration_us <= a.duration_us LIMIT 1")
[[ $pair =~ ^([0-9]+)\|([0-9]+)$ ]] || fail "no slow request has a part: $pair"
request=${BASH_REMATCH[1]} part=${BASH_REMATCH[2]}
"$kprof" slow "$request" --db "$db" >"$scratch/request.txt"
has "$scratch/request.txt" "^ Its part on $b: 2\.[0-9]+ s, begun .* later, kprof slow $part\$" \
  "kprof slow leads from the request to its part"
has "$scratch/request.txt" "^ ~[0-9.]+ [mµn]?s .* <[0-9.]+> $b +back +ok\$" "and draws the part's call with its node"
is "$(grep -c '^ ~ on another node' "$scratch/request.txt")" 1 "and says how it is placed"
"$kprof" slow "$part" --db "$db" >"$scratch/part.txt"
has "$scratch/part.txt" "^ Remote: a part of a request of $a\.\$" "kprof slow says that a part is remote"
has "$scratch/part.txt" "^ The request itself on $a: .*, kprof slow $request\$" "and leads to the request"
"$kprof" slow "$part" --db "$db" --json >"$scratch/part.json"
"$kprof" slow "$request" --db "$db" --json >"$scratch/request.json"
# below FILE: each call of a drawn request with its node, and the node of the call that it hangs below
below() {
  sqlite3 :memory: "
    WITH s AS (SELECT value AS v, substr(value ->> 'node', 1, instr(value ->> 'node', '_') - 1) AS node
               FROM json_each(readfile('$1'), '\$.spans'))
    SELECT a.v ->> 'name', a.node, b.v ->> 'name', b.node FROM s AS a LEFT JOIN s AS b ON b.v ->> 'span' = a.v ->> 'parent' ORDER BY 1, 2"
}
is "$(below "$scratch/request.json")" "back|server|front|asker
deep|server|back|server
front|asker||" "and in JSON the part's calls stand among those of the request"
is "$(sqlite3 :memory: \
  "SELECT j ->> '\$.request.remote', j ->> '\$.request.origin', j ->> '\$.parts[0].id'
   FROM (SELECT readfile('$scratch/part.json') AS j)")" \
  "1|$a|$request" "and so in JSON"
"$kprof" report --db "$db" --node "$b" >"$scratch/report.txt"
has "$scratch/report.txt" '^ _remote ' "kprof report has a row of them"
has "$scratch/report.txt" "^ _remote: parts of other nodes' requests" "and says what they are"
has "$scratch/report.txt" '^ Totals.* 11 +0$' "which is not in its totals"
"$kprof" report --db "$db" --node "$b" --identity _remote >"$scratch/parts.txt"
has "$scratch/parts.txt" "^ 135 parts of other nodes' requests; " "parts alone are not called complete requests"

# -- three nodes -------------------------------------------------------------------------------------------------------
c=third_$$@localhost
start_erl "${c%@*}" -pa "$KPROF_EBIN"
is "$(target_eval "$c" "scenario_remote:start($collector_port).")" ok "a third node is traced"
is "$(target_eval "$a" "net_kernel:connect_node('$c').")$(target_eval "$b" "net_kernel:connect_node('$c').")" truetrue "and connected"
# chain REQUESTS: makes a request, and shows it as soon as it is kept with its parts
whole() {
  chain=$(sql "SELECT a.id FROM slow_requests AS a JOIN slow_requests AS b USING (label) JOIN slow_requests AS c USING (label)
               WHERE a.node = '$a' AND b.node = '$b' AND c.node = '$c' AND a.id > $latest LIMIT 1")
  [ -n "$chain" ]
}
chain() {
  latest=$(sql "SELECT max(id) FROM slow_requests")
  is "$(target_eval "$a" "scenario_remote:$1.")" ok "$1"
  wait_for 15 "it is kept with its parts" whole
  "$kprof" slow "$chain" --db "$db" --json >"$scratch/chain.json"
}
chain "requests(1, '$b', {ask, '$c', slow})"
is "$(below "$scratch/chain.json")" "back|server|front|asker
back|third|back|server
deep|third|back|third
front|asker||" "what the third node did hangs below the second one's call"
"$kprof" slow "$chain" --db "$db" --width 200 >"$scratch/chain.txt"
has "$scratch/chain.txt" "^ +~.* $c {8,}deep +ok\$" "and so it is drawn"
chain "requests(1, ['$b', '$c'], slow)"
is "$(below "$scratch/chain.json")" "back|server|front|asker
back|third|front|asker
deep|server|back|server
deep|third|back|third
front|asker||" "of two that were asked at once none hangs below the other, though they are open together"

# -- the same node again -----------------------------------------------------------------------------------------------
target_eval "$b" "_ = [spawn(fun() -> kprof:set_token(hanging), receive never -> ok end end) || _ <- [1, 2, 3]],
  timer:sleep(300), ok." >/dev/null
target_eval "$a" "_ = spawn(fun() -> scenario_remote:requests(1, '$b', slow) end), timer:sleep(500), ok." >/dev/null
kill -KILL "$b_pid"
ends "$b_pid" 10
start_erl "${b%@*}" -pa "$KPROF_EBIN"
is "$(target_eval "$b" "scenario_remote:start($collector_port).")" ok "the server is killed, started and traced again"
is "$(target_eval "$b" 'scenario_remote:own(9).')" ok "and has requests of its own"
is "$(target_eval "$a" "true = net_kernel:connect_node('$b'), scenario_remote:requests(4, '$b', nested).")" ok "and is asked again"
wait_for 15 "they are in the database" ledger_reaches requests_complete 161
wait_for 15 "the parts are, too" eval \
  "[ \"\$(sql \"SELECT sum(calls) FROM tier_stats WHERE resolution_s = 3600 AND identity = '_remote' AND tier = '_total'\")\" = 143 ]"
is "$(sql "SELECT count(*) FROM node_names")" 3 "it is the node that it was"
is "$(sql "SELECT node, text FROM notes")" "$b|restarted" "a note tells that it was restarted"
is "$(sql "SELECT sum(requests_complete), sum(requests_incomplete), sum(requests_expired) FROM ledger
           WHERE resolution_s = 10 AND node = '$b'")" "20|3|0" \
  "its statistics go on; what was open when it died is incomplete"
is "$(sql "SELECT sum(calls) FROM tier_stats WHERE resolution_s = 3600 AND node = '$b' AND identity = 'mine' AND tier = 'back'")" 20 \
  "none is counted twice"
stop_collector
intact
