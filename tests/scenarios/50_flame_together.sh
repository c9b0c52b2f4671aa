#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: two full traces of one node. From OTP 27 on they run at once, and each keeps what it would have kept alone: its own
# modules, calls to the call, its own number of requests, also after the other one has ended. Before, the second waits for the first, says
# so, and then has its turn. A third that the collector has no room for waits likewise. Nothing is left of any of them.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

chmod 400 "$scratch/cookie"
name=together_$$
node=$name@localhost

first='' second='' third='' # their processes
# flame NAME REQUESTS ARGUMENT...: in the background, as the process $NAME; what it says is in NAME.log
flame() {
  start "$scratch/$1.log" "$kprof" flame "$node" --collector "127.0.0.1:$collector_port" --db "$db" --requests "$2" --for 60s "${@:3}"
  printf -v "$1" %s $!
}
says() { wait_for 20 "$1: $2" grep -Eqs "$2" "$scratch/$1.log"; }
traces() { says "$1" '[1-9][0-9]* functions in'; }
request() { is "$(target_eval "$node" "scenario_flame:requests($1).")" ok "$1 requests"; }
attached() { grep -qs '^tracing ' "$scratch/attach.log"; }
# over NAME: it ends by itself, while requests go on: those of one moment may all be in its pause.
over() {
  local until=$((SECONDS + 90))
  while kill -0 "${!1}" 2>/dev/null && ((SECONDS < until)); do
    target_eval "$node" 'scenario_flame:requests(2).' >/dev/null
  done
  ends "${!1}" 20
  is "$status" 0 "$1 ends: $(tail -n 1 "$scratch/$1.log")"
}
# kept REQUESTS: the number of the profile that has so many. A window's end may cut one more, which is in none of the stacks.
kept() { sql "SELECT id FROM profiles WHERE requests = $1"; }
# calls PROFILE: of each function
calls() {
  sql "SELECT group_concat(name || ' ' || n, ', ') FROM
         (SELECT replace(replace(name, 'scenario_flame:', ''), '''', '') AS name, sum(self) AS n FROM profile_stacks
          WHERE profile = $1 AND metric = 'calls' AND kind = 'function' AND self > 0 GROUP BY name ORDER BY name)"
}
# tree N: what N requests call
tree() {
  local n=$1
  echo "behind/0 $n, catching/0 $n, deep/1 $((4 * n)), each/1 $((2 * n)), funs/0 $n, handle/1 $n, handle_call/3 $n, inner/0 $n, last/0 $n,\
 leaf/0 $n, loop/0 $n, nested/0 $n, raising/0 $n, serve/0 $n, work/0 $n"
}
# modules PROFILE: whose functions it has, and its tiers
modules() {
  sql "SELECT group_concat(name) FROM (SELECT DISTINCT CASE WHEN name LIKE 'scenario_flame:%' THEN name ELSE module END AS name
                                       FROM profile_stacks WHERE profile = $1 AND kind = 'function' ORDER BY 1)"
}
off() { is "$(target_eval "$node" 'scenario_undone:stands().')" 0 "$1"; }

start_collector
start_shop "$name"
is "$(target_eval "$node" 'scenario_flame:start().')" ok "the application runs"
start "$scratch/attach.log" "$kprof" attach "$node" --cookie-file "$scratch/cookie" --collector "127.0.0.1:$collector_port" \
  --tracer "$tracer" --entry scenario_flame:handle/1 --tier serve=scenario_flame:serve/0 --tier work=scenario_flame:work/0 \
  --json
wait_for 30 "kprof attach traces" attached
request 3

if [ "$(otp_release)" -ge 27 ]; then
  flame first 4 --module scenario_flame
  flame second 9 --module timer --module lists
  traces first
  traces second
  flame third 2 --module scenario_flame
  says third '^waiting: the collector takes no more full traces at a time'
  over first
  traces third
  over third
  over second
else
  flame first 4 --module scenario_flame
  traces first
  flame second 9 --module timer --module lists
  says second '^waiting: another full trace of this node runs: before OTP 27 it takes one at a time$'
  over first
  traces second
  over second
fi
is "$(calls "$(kept 4)")" "$(tree 4)" "the first has its own module's functions, each call of its requests"
is "$(modules "$(kept 9)")" \
  "lists,scenario_flame:handle/1,scenario_flame:serve/0,scenario_flame:work/0,timer" "the second has the other modules', and the tiers"
is "$(sql "SELECT sum(self) FROM profile_stacks WHERE profile = $(kept 9) AND metric = 'calls' AND name = 'timer:sleep/1'")" 9 \
  "each call of these"
is "$(ledger decode_errors)" 0 "all messages were understood"
off "no patterns are left"

# who waits may go
flame first 100000 --module scenario_flame
traces first
flame second 4 --module scenario_flame
[ "$(otp_release)" -lt 27 ] || traces second
flame third 4 --module scenario_flame
says third '^waiting: '
kill -INT "$third"
ends "$third" 20
is "$status" 10 "Ctrl-C while it waits: no request came: $(tail -n 1 "$scratch/third.log")"
kill -INT "$second"
ends "$second" 20
kill -INT "$first"
ends "$first" 20
off "no patterns are left"
