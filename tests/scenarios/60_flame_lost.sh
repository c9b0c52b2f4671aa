#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: messages of a full trace that get lost are told. While the collector stands still, a request makes more of them than
# the node keeps; the node's memory stays bounded. That request is left out and counted; those after it are drawn, with exact calls. Who
# has no database to read hears what a full trace has cost all the same.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

chmod 400 "$scratch/cookie"
name=lost_$$
node=$name@localhost

attached() { grep -qs '^tracing ' "$scratch/attach.log"; }
counted() { [ "$(sql 'SELECT coalesce(sum(dropped_messages), 0) FROM ledger')" -gt 0 ]; }
requests_until_it_ends() {
  while kill -0 "$flame" 2>/dev/null; do
    target_eval "$node" 'scenario_flood:requests(100).' >/dev/null
    sleep 0.2
  done
}

start_collector
start_shop "$name"
start "$scratch/attach.log" "$kprof" attach "$node" --cookie-file "$scratch/cookie" --collector "127.0.0.1:$collector_port" --json \
  --tracer "$tracer" --entry scenario_flood:requests/1
attach=$!
wait_for 30 "kprof attach traces" attached
is "$(target_eval "$node" '[scenario_flood:requests(5) || _ <- [1, 2, 3]].')" '[5,5,5]' "short requests"
start "$scratch/flame.log" "$kprof" flame "$node" --collector "127.0.0.1:$collector_port" --db "$db" --requests 3 --for 120s \
  --module scenario_flood --out "$scratch/lost.collapsed"
flame=$!
wait_for 20 "it traces" grep -qs '[1-9][0-9]* functions in' "$scratch/flame.log"

# At the begin of a window the node stops it, and wakes it: ten seconds of standing still end its session. The request runs in a process
# that was made while flags stand.
most=$(target_eval "$node" "scenario_undone:await(false), scenario_undone:await(true), _ = os:cmd(\"kill -STOP $collector_pid\"),
  {_, Ref} = spawn_monitor(fun() -> exit(scenario_flood:requests(100000)) end), receive {'DOWN', Ref, _, _, 100000} -> ok end,
  Most = erlang:memory(processes) div 1000000, _ = os:cmd(\"kill -CONT $collector_pid\"), Most.")
ok "a request of 100000 calls while the collector stands still"
holds "$most" -lt 200 "the node keeps some of its messages: $most MB in all its processes"
wait_for 30 "the collector knows of messages that were dropped" counted
# in windows: some come between two of them
requests_until_it_ends
ends "$flame" 60
is "$status" 0 "kprof flame ends with 0: $(tail -n 1 "$scratch/flame.log")"
is "$(sql 'SELECT requests FROM profiles')" 3 "three requests are drawn"
is "$(sql 'SELECT incomplete > 0 FROM profiles')" 1 "the profile tells that one was left out"
has "$scratch/flame.log" '[Ll]eft out: [1-9][0-9]* request' "and so does kprof flame"
is "$(sql "SELECT cast(sum(self) AS INTEGER) FROM profile_stacks WHERE metric = 'calls' AND name = 'scenario_flood:tick/1'")" 300 \
  "each call of the three is in the picture"

# -- the collector's database is on another host -----------------------------------------------------------------------
# For who asks, something else lies in its place.
if [ "$(id -u)" -ne 0 ] || ! unshare -m true 2>/dev/null; then
  echo "no mount namespaces can be made here: a database on another host cannot be tried"
else
  # shellcheck disable=SC2016 # the inner shell expands them
  start "$scratch/far.log" unshare -m sh -c 'mount --bind /dev/null "$1" && shift && exec "$@"' sh "$db" \
    "$kprof" flame "$node" --collector "127.0.0.1:$collector_port" --requests 2 --for 60s --module scenario_flood
  flame=$!
  requests_until_it_ends
  ends "$flame" 60
  is "$status" 0 "kprof flame ends with 0: $(tail -n 1 "$scratch/far.log")"
  has "$scratch/far.log" '^kept as profile 2; ' "it does not draw"
  has "$scratch/far.log" '^It cost [1-9][0-9,]* messages, .*; [1-9][0-9]* functions had patterns for ' "but tells what it has cost"
fi

kill -TERM "$attach"
ends "$attach" 30
is "$(target_eval "$node" 'scenario_undone:stands().')" 0 "no patterns are left"
