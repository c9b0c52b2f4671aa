#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: where tiers are called but nothing begins a request, everybody who asks is told so, with the number of the calls:
# kprof attach, nodes, doctor and report. With the first request that ends. Nothing of the counting stays in the node.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

name=unmarked_$$
node=$name@localhost
attach_log=$scratch/attach.log
run() { target_eval "$node" "$1"; }
started() { grep -qs '^tracing ' "$attach_log" || gone "$attach_pid"; }
# attach OPTION...: in the background, until the first look has begun.
attach() {
  rm -f "$attach_log"
  start "$attach_log" env -i HOME="$scratch/home" "$kprof" attach "$node" --collector "127.0.0.1:$collector_port" --json "$@"
  attach_pid=$!
  wait_for 60 "attaching" started
  grep -q '^tracing ' "$attach_log" || fail "kprof attach ended"
  wait_for 60 "calls are counted" counting
}
# attach_and EXPRESSION OPTION...: the same, and the node runs the expression, whose value is $ran, once calls are counted: that is for ten
# seconds, which a busy machine may need to ask it to. What is to be counted is known before it is: the look that sees to it must be over.
attach_and() {
  local eval
  run "Counted = fun Counted() ->
         case catch ets:lookup(kprof_guard, counted) of
           [{_, [_ | _]}] -> _ = sys:get_state(kprof_life, infinity), ok;
           _ -> timer:sleep(10), Counted()
         end
       end, ok = Counted(), $1." >"$scratch/ran" & eval=$!
  attach "${@:2}"
  wait "$eval" || fail "what is to be counted"
  ran=$(cat "$scratch/ran")
}
counting() { [ "$(run 'case ets:lookup(kprof_guard, counted) of [{_, [_ | _]}] -> true; _ -> false end.')" = true ]; }
detach() {
  kill -INT "$attach_pid"
  ends "$attach_pid" 60
  is "$status" 0 "Ctrl-C ends it with 0"
  is "$(run 'scenario_left:differences("before").')" "[]" "nothing is left in the node"
}
unmarked() {
  "$kprof" nodes --collector "127.0.0.1:$collector_port" --json >"$scratch/nodes.json" || fail "kprof nodes"
  sqlite3 :memory: "SELECT j ->> '\$.nodes[0].unmarked_calls' FROM (SELECT readfile('$scratch/nodes.json') AS j)"
}
unmarked_is() { [ "$(unmarked)" = "$1" ]; }

start_collector
start_erl "$name" -s scenario_entry start
is "$(run 'scenario_left:prepare(), scenario_entry:client([local, stored], 30), timer:sleep(100), scenario_entry:reset(),
           scenario_left:snapshot("before").')" ok "the node before"

# -- tiers, and no entry ---------------------------------------------------------------------------------------------------------
tiers=(--tier compute=scenario_entry:compute/1 --tier store=scenario_entry:store/1)
began=$SECONDS
attach_and 'lists:foreach(fun(N) -> scenario_entry:store(scenario_entry:compute(N)) end, lists:seq(1, 750))' "${tiers[@]}"
is "$ran" ok "what is work for 750 requests, which nobody has marked"
calls=$(run 'lists:sum([proplists:get_value(F, scenario_entry:truth(), 0) || F <- [compute, store]]).')
holds "$calls" -ge 1500 "calls of the tiers"
early=$(unmarked)
if [ $((SECONDS - began)) -lt 10 ]; then is "$early" 0 "nothing is said while it may be too early"; fi
wait_for 60 "the calls are told" unmarked_is "$calls"
ok "kprof nodes tells them, to the last one: $calls"
shown=$(printf "%d,%03d calls, but nothing has begun a request" $((calls / 1000)) $((calls % 1000)))
advice='give --entry, or mark requests \(README, Your own node\)'
"$kprof" nodes --collector "127.0.0.1:$collector_port" >"$scratch/nodes.txt"
has "$scratch/nodes.txt" "^   armed; $shown: $advice\$" "as text, too"
wait_for 30 "kprof attach tells them" grep -q "\"unmarked_calls\":$calls," "$attach_log"
HOME=$scratch/home "$kprof" doctor "$node" --collector "127.0.0.1:$collector_port" >"$scratch/doctor.txt" || fail "kprof doctor"
is "$(grep -cE "^ warning  node $node: armed; $shown" "$scratch/doctor.txt")" 2 "kprof doctor: the collector says so, and the node"
has "$scratch/doctor.txt" "^          -> $advice\$" "with what to do"
has "$scratch/doctor.txt" "armed; $shown: $advice\$" "also the node"
told() { "$kprof" report --db "$db" >"$scratch/report.txt" 2>"$scratch/report.err"; grep -q "Armed; " "$scratch/report.txt"; }
wait_for 60 "the report tells them" told
has "$scratch/report.txt" "^ Armed; $shown: $advice\\.\$" "kprof report tells them"

# The first request ends it.
is "$(run 'kprof:do_apply(scenario_entry, compute, [10]).')" 55 "a request"
wait_for 60 "nothing is said any longer" unmarked_is 0
ok "and no word any longer"
wait_for 60 "it is in the database" ledger_reaches requests_complete 1
is "$(run "ets:lookup(kprof_guard, counted).")" "[{counted,[]}]" "and nothing is counted any longer"
is "$(ledger unmarked_calls)" "$calls" "the ledger keeps the number"
"$kprof" report --db "$db" >"$scratch/report.txt"
has_not "$scratch/report.txt" "nothing has begun" "the report of a time with requests does not tell it"
detach

# -- an entry that is never called; and a trace that ends while calls are counted --------------------------------------------------
attach_and 'scenario_entry:client([local], 100)' "${tiers[@]}" --entry scenario_entry:serve/1
is "$ran" ok "100 requests"
wait_for 60 "the calls are told" unmarked_is 100
HOME=$scratch/home "$kprof" doctor "$node" --collector "127.0.0.1:$collector_port" >"$scratch/doctor.txt" || fail "kprof doctor"
has "$scratch/doctor.txt" "100 calls, but nothing has begun a request: no call of an entry was seen" "the entry is what is wrong"
detach
attach "${tiers[@]}"
is "$(run 'scenario_entry:client([local], 100).')" ok "100 requests while they are counted"
detach
attach "${tiers[@]}"
kill -KILL "$attach_pid"
out() { [ "$( (trap - EXIT; run 'code:which(kprof).') 2>/dev/null)" = non_existing ]; }
wait_for 60 "the node takes kprof out by itself" out
is "$(run 'scenario_left:differences("before").')" "[]" "nothing is left in the node after kill -9"

# -- an entry that is called ------------------------------------------------------------------------------------------------------
attach "${tiers[@]}" --entry scenario_entry:handle/2
is "$(run 'scenario_entry:client([local], 20).')" ok "20 requests"
wait_for 60 "they are in the database" ledger_reaches requests_complete 21
sleep 11
is "$(unmarked)" 0 "where there are requests nothing is said"
detach
stop_collector
