#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: each option of kprof attach does what it says, on a node whose application knows nothing of kprof: entry, tiers,
# identity of both kinds, sampling, configuration, cookie, collector, end. The live numbers are those of the database, one line a second,
# nobody sees the tool among the node's neighbours, and the node is afterwards as it was.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

name=options_$$
node=$name@localhost
attach_log=$scratch/attach.log
run() { target_eval "$node" "$1"; }
install -m 400 "$scratch/cookie" "$scratch/own-cookie"
mkdir "$scratch/nothing" # the tool's PATH and home: it finds no Erlang and no other cookie
tool() { env -i PATH="$scratch/nothing" HOME="$scratch/nothing" "$kprof" "$@" --cookie-file "$scratch/own-cookie"; }
started() { grep -qs '^tracing ' "$attach_log" || gone "$attach_pid"; }
# attach OPTION...: in the background, until it traces. Sets attach_pid and began.
attach() {
  began=$SECONDS
  rm -f "$attach_log"
  start "$attach_log" env -i PATH="$scratch/nothing" HOME="$scratch/nothing" \
    "$kprof" attach "$node" --cookie-file "$scratch/own-cookie" "$@"
  attach_pid=$!
  wait_for 30 "attaching" started
  grep -q '^tracing ' "$attach_log" || fail "kprof attach ended"
}
untouched() {
  is "$(run 'scenario_left:differences("before").')" "[]" "nothing is left in the node $1"
  is "$(run 'scenario_entry:state().')" "$before" "nor a token, nor a count"
}
# stats EXPRESSION WHERE: of the whole database
stats() { sql "SELECT $1 FROM tier_stats WHERE resolution_s = 10 AND $2"; }

start_collector
start_erl "$name" -s scenario_entry start
is "$(run 'scenario_left:prepare(), scenario_entry:client([local, stored, fails], 30), timer:sleep(100), scenario_entry:reset().')" ok \
  "the application runs"
before=$(run 'scenario_entry:state().')
is "$(run 'scenario_left:snapshot("before").')" ok "the node before"

# -- all on the command line -----------------------------------------------------------------------------------------------------
began=$SECONDS
run 'ok.' >/dev/null
seconds=$((12 + 8 * (SECONDS - began))) # longer on a slow machine, where what is asked of the node below takes as long
watch
attach --collector "127.0.0.1:$collector_port" --entry scenario_entry:handle/2 \
  --tier compute=scenario_entry:compute/1 --tier 'store=:scenario_entry.store/1' --identity scenario_entry:handle/2:1 --sample 2 \
  --for "${seconds}s" --json
has "$attach_log" "^tracing $node: 1 entry, 2 tiers, collector 127.0.0.1:$collector_port" "it says what it does"
is "$(run '{nodes(), lists:any(fun(N) -> lists:prefix("kprof_attach_", atom_to_list(N)) end, nodes(hidden))}.')" "{[],true}" \
  "the tool is a hidden node"
is "$(run 'scenario_entry:client([local, stored, fails], 300).')" ok "300 requests of three kinds"
"$kprof" nodes --collector "127.0.0.1:$collector_port" --json >"$scratch/nodes.json" || fail "kprof nodes"
is "$(sqlite3 :memory: "SELECT j ->> '\$.nodes[0].node', j ->> '\$.nodes[0].one_in', j ->> '\$.nodes[0].state'
  FROM (SELECT readfile('$scratch/nodes.json') AS j)")" "$node|2|tracing" "kprof nodes shows the sampling"
ends "$attach_pid" $((seconds + 10))
is "$status" 0 "--for ends it with 0"
holds $((SECONDS - began)) -ge $seconds "not too early,"
timely $((SECONDS - began)) -le $((seconds + 6)) "and not too late, s"
untouched "after --for"
is "$(ledger requests_complete)|$(ledger requests_unsampled)|$(ledger requests_incomplete+requests_expired)" "150|150|0" \
  "--sample 2: half of them, and the others are told"
is "$(stats "identity || ' ' || sum(calls) || ' ' || sum(errors)" "tier = '_total' AND identity <> '_total' GROUP BY identity
    ORDER BY 1")" $'fails 50 50\nlocal 50 0\nstored 50 0' "--entry: requests; --identity: their names"
is "$(stats "tier || ' ' || sum(calls)" "tier <> '_total' AND identity = '_total' GROUP BY tier ORDER BY 1")" \
  $'compute 150\nscenario_entry:handle/2 150\nstore 50' "--tier: calls, and the entry's own"

# -- what was shown ----------------------------------------------------------------------------------------------------------------
grep '^{' "$attach_log" >"$scratch/lines"
timely "$(wc -l <"$scratch/lines")" -ge $((seconds - 2)) "a line each second"
holds "$(wc -l <"$scratch/lines")" -le $((seconds + 1)) "and no more"
sed '1s/^/[/; $!s/$/,/; $s/$/]/' "$scratch/lines" >"$scratch/live.json"
# Sums of the rows of all seconds: identity, requests, errors, incomplete, µs; and whether mean and p99 can be.
live=$(sqlite3 :memory: "SELECT i.value ->> 'identity', sum(i.value ->> 'requests'), sum(i.value ->> 'errors'),
    sum(i.value ->> 'incomplete') + sum(i.value ->> 'expired'),
    sum((i.value ->> 'requests') * (i.value ->> 'mean_us')),
    min(i.value ->> 'requests' NOT BETWEEN 1 AND 100 OR i.value ->> 'p99_us' > 0.98 * (i.value ->> 'mean_us'))
  FROM json_each(readfile('$scratch/live.json')) AS l, json_each(l.value, '\$.identities') AS i GROUP BY 1 ORDER BY 1")
stored=$(stats "identity, sum(calls), sum(errors), 0, sum(total_us), 1" "tier = '_total' GROUP BY identity ORDER BY 1")
# µs have three decimals in the lines
# shellcheck disable=SC2016  # for awk
same='$5 - $11 < 1 && $11 - $5 < 1 { $5 = $11 = "" } { print $1, $2, $3, $4, $5, $6; print $7, $8, $9, $10, $11, $12 }'
is "$(paste -d '|' <(echo "$live") <(echo "$stored") | awk -F'|' "$same" | uniq -u)" "" \
  "the live numbers are the database's: requests, errors, losses, mean"
p99=$(sqlite3 :memory: "SELECT CAST(max(i.value ->> 'p99_us') AS INTEGER)
  FROM json_each(readfile('$scratch/live.json')) AS l, json_each(l.value, '\$.identities') AS i")
holds "$p99" -le "$(stats "CAST(1.02 * max(max_us) AS INTEGER) + 1" "tier = '_total'")" "no p99 is over the longest request, us"
holds "$p99" -ge "$(stats "CAST(0.5 * max(p90_us) AS INTEGER)" "tier = '_total' AND identity = '_total'")" "nor anywhere below"

# -- a configuration file, and what is given besides ---------------------------------------------------------------------------------
cat >"$scratch/config" <<END
[{collector, {"127.0.0.1", $collector_port}}, {sample, {one_in, 1000}}, {identity_f, fun(_) -> wrong end},
 {tier_config, [{compute, {scenario_entry, compute, 1}}]}].
END
attach --config "$scratch/config" --entry scenario_entry:handle/2 --sample 1 \
  --identity 'fun({scenario_entry, handle, [Op, _]}) -> {kind, Op}; (_) -> undefined end'
has "$attach_log" "^tracing $node: 1 entry, 1 tier, collector 127.0.0.1:$collector_port" \
  "a configuration file, its collector, and an entry besides"
is "$(run 'scenario_entry:client([local, stored], 30).')" ok "30 requests"
wait_for 15 "they are in the database" ledger_reaches requests_complete 180
is "$(stats "identity || ' ' || sum(calls)" "tier = '_total' AND identity NOT IN ('_total', 'local', 'stored', 'fails')
    GROUP BY identity ORDER BY 1")" \
  $'kind_local 15\nkind_stored 15' "the command line goes before the file; --identity as a fun"
is "$(tool detach "$node")" "kprof is out of $node" "kprof detach"
ends "$attach_pid" 20
is "$status" 0 "ends it with 0"
untouched "after kprof detach"

# -- what an entry returns stays at home -------------------------------------------------------------------------------------------
complete=$(ledger requests_complete)
attach --collector "127.0.0.1:$collector_port" --entry scenario_entry:handle/2,returns=none --tier compute=scenario_entry:compute/1 \
  --tier store=scenario_entry:store/1 --identity 'fun({scenario_entry, handle, [Op, _]}) -> {blind, Op}; (_) -> undefined end'
is "$(run 'scenario_entry:client([local, stored, spawning], 300).')" ok "300 requests"
wait_for 60 "they are in the database" ledger_reaches requests_complete $((complete + 300))
is "$(stats "identity || ' ' || sum(calls) || ' ' || sum(errors)" "tier = '_total' AND identity LIKE 'blind%' GROUP BY identity
    ORDER BY 1")" $'blind_local 100 0\nblind_spawning 100 0\nblind_stored 100 0' "--entry M:F/A,returns=none: each is a complete request"
is "$(stats "sum(calls)" "tier = 'compute' AND identity = 'blind_local'")" 100 "with its tiers"
is "$(ledger requests_incomplete+requests_expired+lost_tokens+ambiguous_returns)" 0 "and nothing is lost"
kill -INT "$attach_pid"
ends "$attach_pid" 20
untouched "after returns=none"
stop_collector
counted_once
intact
