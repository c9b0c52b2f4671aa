#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: a tier's module is loaded again, twice, while requests run through it. It is traced again within a tenth of a
# second, what was open meanwhile is incomplete and in no statistics, all that comes later is counted to the last call, and the ledger and
# the report tell of it. A tier of a module that comes late is traced from then on. Where the module that is loaded, eight times in ten
# seconds, has the entry, each request is complete, or open when it was loaded, or began while the ledger says that it was not traced.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

name=reload_$$
run() { target_eval "$name@localhost" "$1"; }
# calls IDENTITY: tier|calls|errors
calls() { sql "SELECT tier, sum(calls), sum(errors) FROM tier_stats WHERE resolution_s = 10 AND identity = '$1' GROUP BY 1 ORDER BY 1"; }
closed() { [ "$(ledger requests_complete+requests_incomplete)" -ge "$1" ]; }

start_collector
start_erl "$name" -pa "$KPROF_EBIN" -run file set_cwd "$scratch" -s scenario_reload start
loaded() { [ "$(run "code:is_loaded(scenario_reloaded) =/= false.")" = true ]; }
wait_for 20 "the module is there" loaded
is "$(run "scenario_reload:trace($collector_port).")" ok "the trace starts although a tier's module is not there"
is "$(run "scenario_reload:requests(before, 10).")" ok "requests"

# reload VERSION: sets all and open.
reload() {
  watch
  [[ $(run "{Ms, Open, All} = scenario_reload:under_load($1), [Ms + 1000000, Open + 1000000, All + 1000000].") =~ \
    ^\[1(......),1(......),1(......)\]$ ]] ||
    fail "no numbers of version $1"
  open=$((10#${BASH_REMATCH[2]})) all=$((all + 10#${BASH_REMATCH[3]}))
  timely "$((10#${BASH_REMATCH[1]}))" -le 100 "version $1: traced again within a tenth of a second, ms"
  [ -n "$quiet" ] || restless=yes
  holds "$open" -ge 2 "requests were open when it was loaded"
  must=$((must + open))
  is "$(run "scenario_reload:requests(after$1, 10).")" ok "requests after version $1"
}
all=0 must=0 restless=
is "$(run "scenario_reload:long().")" ok "one request is in the module for long"
reload 2
reload 3
watch
timely "$(run "element(1, scenario_reload:load(scenario_late, 1)).")" -le 100 "the late module is traced within a tenth of a second, ms"
is "$(run "scenario_reload:requests(late, 10).")" ok "requests to it"
# 10 before, 10 after each version, 10 late, the long one
wait_for 15 "all requests are closed" closed $((all + 41))
is "$(run "kprof:stop_trace().")" ok "stop_trace"
"$kprof" report --db "$db" >"$scratch/report.txt" || fail "kprof report failed"
stop_collector

for identity in before after2 after3; do
  is "$(calls $identity)" "_total|10|0
alpha|10|0
work|10|0" "$identity: every call"
done
is "$(calls late)" "_total|10|0
alpha|10|0
late|10|0" "late: every call"
is "$(calls long)" "" "what was in the module is in no statistics"
is "$(sql "SELECT DISTINCT calls FROM (SELECT sum(calls) AS calls FROM tier_stats WHERE resolution_s = 10 AND identity = 'during'
           GROUP BY tier)" | wc -l)" 1 \
  "during: every complete request has its call of each tier"
during=$(sql "SELECT sum(calls) FROM tier_stats WHERE resolution_s = 10 AND identity = 'during' AND tier = '_total'")
holds "$during" -ge 10 "and there are such"
incomplete=$(ledger requests_incomplete)
holds "$incomplete" -ge $((must + 1)) "what was open while the module was loaded is incomplete"
# four at a time, and each may have been followed by one that began before the patterns were set again
if [ -n "$restless" ]; then quiet=; fi
timely "$incomplete" -le $((must + 1 + 2 * 4)) "and hardly anything else"
holds "$(ledger untraced_ms)" -ge 1 "the ledger tells for how long functions were not traced"
is "$(ledger requests_complete)|$(ledger requests_expired)" "$((all + 41 - incomplete))|0" "and no request is missing"
is "$(ledger reloads)" 3 "the ledger has the reloads, and the load"
is "$(ledger dropped_messages+orphan_returns+decode_errors+paused_ms+lost_tokens)" 0 "and nothing else"
has "$scratch/report.txt" '[Rr]eload' "the report notes the reload"
counted_once

# The module that is loaded again has the entry. What began while it was not traced stands nowhere.
start_collector
complete=$(ledger requests_complete) untraced=$(ledger untraced_ms) reloads=$(ledger reloads) loads=8
is "$(run "scenario_reload:trace_entry($collector_port).")" ok "a trace whose entry is in the module"
[[ $(run "{Open, Began, Ms, All} = scenario_reload:often(4, $loads), [N + 1000000 || N <- [Open, Began, Ms, All]].") =~ \
  ^\[1(......),1(......),1(......),1(......)\]$ ]] || fail "no numbers of $loads versions"
open=$((10#${BASH_REMATCH[1]})) began=$((10#${BASH_REMATCH[2]})) off=$((10#${BASH_REMATCH[3]})) all=$((10#${BASH_REMATCH[4]}))
entered() { [ "$(ledger requests_complete+requests_incomplete)" -ge $((complete + incomplete + all - began)) ]; }
wait_for 15 "all requests are closed" entered
is "$(run "kprof:stop_trace().")" ok "stop_trace"
stop_collector
complete=$(($(ledger requests_complete) - complete)) incomplete=$(($(ledger requests_incomplete) - incomplete))
untraced=$(($(ledger untraced_ms) - untraced))
nowhere=$((all - complete - incomplete))
echo "of $all requests $complete are complete, $incomplete incomplete ($open had to be), $nowhere nowhere; not traced for $untraced ms"
holds "$open" -ge "$loads" "requests were open when the entry's module was loaded"
holds "$nowhere" -ge 0 "none is made up"
holds "$nowhere" -le "$began" "what stands nowhere began while the entry was not traced"
holds "$untraced" -ge "$off" "for no longer than the ledger says, ms"
holds "$incomplete" -ge $((open - loads)) "what was open is incomplete, but for one that ends as it is loaded"
overlapping=$(run "scenario_reload:overlapping($untraced).")
holds "$incomplete" -le "$overlapping" "and nothing that was not open in that time"
is "$(ledger requests_expired+dropped_messages+orphan_returns+decode_errors+lost_tokens)" 0 "and nothing else happened"
is "$(($(ledger reloads) - reloads))" "$loads" "the ledger has the reloads"
counted_once
intact
