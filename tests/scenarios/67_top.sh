#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: a node that has nothing of kprof is sampled by one command, and however that ends nothing is left in the node.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

chmod 400 "$scratch/cookie"
export HOME=$scratch/home
node=top_$$@localhost
said=$scratch/said.log
own=$scratch/own.db

start_erl "top_$$"
is "$(target_eval "$node" 'scenario_sample:start().')" ok "the application runs"
is "$(target_eval "$node" 'scenario_left:prepare(), scenario_left:snapshot("before").')" ok "the node before"
untouched_now() { [ "$( (trap - EXIT; target_eval "$node" 'scenario_left:differences("before").') 2>/dev/null)" = "[]" ]; }
# untouched SECONDS WHEN: modules, processes, flags, the depth of stacks and more are as before. After 10 s it would have left by itself.
untouched() { wait_for "$1" "the node is as it was $2" untouched_now; ok "nothing is left in the node $2"; }
collectors() { pgrep -f "^kprof-collector .*--db $own( |\$)" || true; }
no_collector() { [ -z "$(collectors)" ]; }
has_no_collector() { wait_for 20 "no collector is left $1" no_collector; ok "no collector is left $1"; }
begin() { # ARGUMENT...: kprof in the background; what it says is in $said
  start "$said" "$kprof" "$@"
  pid=$!
}
looks() { grep -Eqs '^[1-9][0-9]* looks' "$said"; }
looks_or_ended() { looks || gone "$pid"; }
begin_sample() {
  begin sample "$node" --db "$own" --registered scenario_works --for 60s
  wait_for 30 "it looks" looks_or_ended
  looks || fail "kprof sample ended: $(cat "$said")"
  is "$(target_eval "$node" '{erlang:system_flag(backtrace_depth, 64), code:is_loaded(kprof_sampler) =/= false}.')" '{64,true}' \
    "meanwhile kprof is in the node"
}

# -- a node that has nothing of kprof ----------------------------------------------------------------------------------
begin sample "$node" --db "$own" --registered scenario_works --registered scenario_full --for 3s --budget 10% --out "$scratch/s.svg"
ends "$pid" 60
is "$status" 0 "kprof sample --db: $(tail -n 1 "$said")"
is "$(sed -n 1p "$said" | sed 's/:[0-9]*,/:PORT,/')" "running a collector at 127.0.0.1:PORT, which writes $own" "which collector"
has "$said" "^tracing $node: no tiers, collector 127.0.0.1:" "nothing is traced"
has "$said" '^Profile 1: [0-9]+ looks at 2 processes' "what it is of"
has "$scratch/s.svg" '<title>scenario_sample:works/0$' "a picture"
untouched 2 "after kprof sample"
has_no_collector "after kprof sample"

# -- Ctrl-C, and killed ------------------------------------------------------------------------------------------------
begin_sample
kill -INT "$pid"
ends "$pid" 30
is "$status" 0 "Ctrl-C keeps what there is"
is "$(sql 'SELECT count(*) FROM profiles' "$own")" 2 "as a profile"
untouched 2 "after Ctrl-C"
has_no_collector "after Ctrl-C"

begin_sample
kill -KILL "$pid"
untouched 20 "after kill -9 of kprof sample"
has_no_collector "after kill -9 of kprof sample"

begin_sample
kill -KILL "$(collectors)"
ends "$pid" 60
is "$status" 1 "kprof sample ends when its collector is killed"
has "$said" '^kprof sample: the collector is gone' "and says so"
untouched 20 "after kill -9 of its collector"

# -- through a collector that runs -------------------------------------------------------------------------------------
start_collector
begin sample "$node" --collector "127.0.0.1:$collector_port" --registered scenario_works --for 2s
ends "$pid" 60
is "$status" 0 "in and out through a collector that runs: $(tail -n 1 "$said")"
has "$said" '^Profile 1: [0-9]+ looks at 1 process' "whose database is found"
untouched 2 "after that"
refuses() { # STATUS PATTERN WHAT ARGUMENT...
  local want=$1 pattern=$2 what=$3 got=0
  shift 3
  timeout 60 "$kprof" "$@" >"$scratch/refusal.log" 2>&1 || got=$?
  is "$got" "$want" "$what: $(tail -n 1 "$scratch/refusal.log")"
  has "$scratch/refusal.log" "$pattern" "$what, and why"
}
refuses 3 'nobody' "a node that is not up" sample nobody@localhost --collector "127.0.0.1:$collector_port"
refuses 2 'listen is for' "--listen with --collector" sample "$node" --collector "127.0.0.1:$collector_port" --listen 0
refuses 2 'traces nothing' "kprof attach --no-tiers with a tier" attach "$node" --no-tiers --tier map=lists:map/2
