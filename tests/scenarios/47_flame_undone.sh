#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: whoever dies in the middle of a full trace, the tool, the collector, who has brought kprof there or any process of the
# shim's, its patterns and flags go within seconds; and once kprof is gone, the node is as it was before it came.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

chmod 400 "$scratch/cookie"
name=undone_$$
node=$name@localhost

stands() { target_eval "$node" 'scenario_undone:stands().'; }
# It waits in the node: patterns stand for five seconds of ten, and a busy machine takes as long to ask.
is_there() { [ "$(target_eval "$node" 'catch scenario_undone:await(true).')" = ok ]; }
kills() { [ "$(target_eval "$node" "scenario_undone:kill($1).")" -gt 0 ]; }
is_off() { [ "$(stands)" = 0 ]; }
untouched() { [ "$(target_eval "$node" 'scenario_left:differences("before").')" = "[]" ]; }
attached() { grep -qs '^tracing ' "$scratch/attach.log" || gone "$attach"; }

# brings kprof, and has a full trace stand
begin() {
  rm -f "$scratch/attach.log" "$scratch/flame.log"
  start "$scratch/attach.log" "$kprof" attach "$node" --cookie-file "$scratch/cookie" --collector "127.0.0.1:$collector_port" \
    --tracer "$tracer" --entry scenario_flame:handle/1 --tier serve=scenario_flame:serve/0 --json
  attach=$!
  wait_for 30 "kprof attach traces" attached
  is "$(target_eval "$node" 'scenario_flame:requests(3).')" ok "requests"
  start "$scratch/flame.log" "$kprof" flame "$node" --collector "127.0.0.1:$collector_port" --db "$db" --requests 1000 \
    --module 'scenario_flame*' --for 120s
  flame=$!
  wait_for 20 "a full trace stands" is_there
}

# over WHAT: it goes by itself; and with kprof all that is left
over() {
  wait_for 20 "it is off after the end of $1" is_off
  kill -TERM "$flame" 2>/dev/null || true
  ends "$flame" 30
  kill -TERM "$attach" 2>/dev/null || true
  ends "$attach" 30
  wait_for 30 "the node is as before, after the end of $1" untouched
}

start_collector
start_shop "$name"
is "$(target_eval "$node" 'scenario_flame:start().')" ok "the application runs"
# the first report of a crash has OTP remember who reports
is "$(target_eval "$node" 'lists:foreach(fun(M) -> logger:allow(error, M) end, [gen_server, gen_statem, proc_lib, supervisor]),
  scenario_left:prepare(), scenario_undone:victims(), scenario_left:snapshot("before").')" ok "the node before"

begin
victims=$(target_eval "$node" 'lists:join(" ", scenario_undone:victims()).' | tr -d '[]",')
echo "$victims"
kill -KILL "$flame"
over "the tool"

begin
kill -KILL "$attach"
over "kprof attach"

begin
kill -KILL "$collector_pid"
over "the collector"
start_collector

for victim in $victims; do
  begin
  # between two windows of a full trace it may not be there
  wait_for 20 "$victim is killed" kills "$victim"
  over "$victim"
done
