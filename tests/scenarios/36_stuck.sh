#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: a node that does not answer holds up nobody, in whatever phase of attaching it stops: kprof attach ends in time with
# one line that says why, Ctrl-C and detach and doctor do too; and a node that goes on afterwards takes out by itself what had come in.
# Neither does a DNS server that does not answer when the tool looks for the collector: the trace goes on.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

tiers=(--tier map=lists:map/2)
stop() { kill -STOP "$(cat "$scratch/$1.pid")"; }
go_on() { kill -CONT "$(cat "$scratch/$1.pid")"; }
up() { answers "$1_$$@localhost"; }
eval_in() { target_eval "$1_$$@localhost" "$2"; }
# suspend NODE PROCESS: one of its own processes does nothing until it is let go
suspend() {
  local holds="P = spawn(fun() -> true = erlang:suspend_process($2), receive go -> ok end end), register(holder, P)"
  is "$(eval_in "$1" "$holds, timer:sleep(50), is_process_alive(P).")" true "$2 of $1 does nothing"
}
# tool LOG COMMAND NODE OPTION...: in the background; its process is in LOG.tool, when it began in LOG.began.
tool() {
  local log=$1 command=$2 node=$3_$$@localhost
  shift 3
  start "$scratch/$log.log" env HOME="$scratch/home" "$kprof" "$command" "$node" "$@"
  echo $! >"$scratch/$log.tool"
  echo "$SECONDS" >"$scratch/$log.began"
}
attach() { tool "$1" attach "$1" "${tiers[@]}" --collector "127.0.0.1:$collector_port"; }
tool_of() { cat "$scratch/$1.tool"; }
traces() { grep -q '^tracing ' "$scratch/$1.log"; }
# gives_up LOG STATUS PATTERN SECONDS WHAT: its last line says why
gives_up() {
  ends "$(tool_of "$1")" $((30 + $4))
  is "$status" "$2" "$5: $(tail -n 1 "$scratch/$1.log")"
  has <(tail -n 1 "$scratch/$1.log") "$3" "  which says why"
  holds $((SECONDS - $(cat "$scratch/$1.began"))) -le $(($4 + 60)) "  in time, s"
}
as_before() {
  local left=$scratch/left-in-$1.log
  (trap - EXIT; eval_in "$1" "scenario_left:differences(\"$1\").") >"$left" 2>&1 && [ "$(cat "$left")" = "[]" ]
}
recovers() { wait_for 30 "$1 takes kprof out" as_before "$1"; ok "  and nothing is left in the node"; }

start_collector
all=(stopped asked entered started watched left)
for node in "${all[@]}"; do
  start "$scratch/node-$node.log" env HOME="$scratch/home" erl -noinput -sname "${node}_$$@localhost" -pa "$SCENARIO_EBIN"
  echo $! >"$scratch/$node.pid"
done
for node in "${all[@]}"; do
  wait_for 60 "node $node is up" up "$node"
  eval_in "$node" "scenario_left:prepare(), scenario_left:snapshot(\"$node\")." >/dev/null
  eval_in "$node" 'list_to_integer(os:getpid()).' >"$scratch/$node.pid"
done

# -- each stops somewhere else -------------------------------------------------------------------------------------------------------
suspend entered 'whereis(code_server)'
attach entered # 60 s: a slow node may compile the shim in this phase
echo 'begin os:cmd("kill -STOP " ++ os:getpid()), {tier_config, [{map, {lists, map, 2}}]} end.' >"$scratch/config"
tool started attach started --config "$scratch/config" --collector "127.0.0.1:$collector_port"
attach watched
attach left
for node in watched left; do
  wait_for 30 "$node is traced" traces $node
  stop $node
done
kill -INT "$(tool_of left)"
suspend asked 'whereis(rex)'
attach asked
stop stopped
attach stopped
tool detached detach stopped
tool doctor doctor stopped --collector "127.0.0.1:$collector_port"

# -- who says so first ---------------------------------------------------------------------------------------------------------------
gives_up stopped 3 "stopped_$$@localhost does not answer" 7 "attaching to a node that is stopped"
gives_up detached 3 "stopped_$$@localhost does not answer" 7 "detaching it"
ends "$(tool_of doctor)" 30
is "$status" 1 "kprof doctor finds a problem"
has "$scratch/doctor.log" "problem +node stopped_$$@localhost: stopped_$$@localhost does not answer" "kprof doctor says so, too"
gives_up asked 3 'is gone \(no answer in time\)' 10 "a node that does not tell what it is"
wait_for 20 "the loss is told" grep -q "^watched_$$@localhost is gone, waiting for it" "$scratch/watched.log"
ok "a node that stops while it is traced is told"
kill -INT "$(tool_of watched)"
ends "$(tool_of watched)" 15
is "$status" 0 "and Ctrl-C ends it"
go_on watched
recovers watched
gives_up left 3 'gone \(no answer in time\).*leaves by itself within 10 s' 30 "Ctrl-C while the node is stopped"
go_on left
recovers left
gives_up started 3 'is gone \(no answer in time\)' 40 "a node that stops when the trace is to start"
go_on started
recovers started
gives_up entered 3 'is gone \(no answer in time\)' 60 "a node that does not load the shim"
eval_in entered 'holder ! go, ok.' >/dev/null
recovers entered

# -- a DNS server that says nothing, for the collector's name ------------------------------------------------------------------------
# In mount namespaces: the node has the name in its hosts file, the tool has that server only, on which it waits for fifteen seconds.
printf 'nameserver 127.0.0.77\noptions timeout:5 attempts:3\n' >"$scratch/resolv.conf"
printf '127.0.0.1 localhost silent.example\n' >"$scratch/hosts"
# with FILE AT COMMAND...: FILE is found at AT
# shellcheck disable=SC2016  # for the shell within
with() { unshare -rm bash -c 'mount --bind "$1" "$2" && shift 2 && exec "$@"' bash "$@"; }
start_erl "dns_$$"
server='Me = self(), spawn(fun() -> Me ! gen_udp:open(53, [{ip, {127, 0, 0, 77}}]), receive never -> ok end end),
        receive {Result, _} -> Result end.'
if ! with "$scratch/hosts" /etc/hosts true 2>"$scratch/unshare.out" || [ "$(eval_in dns "$server")" != ok ]; then
  echo "skipped: no namespaces, or port 53 is not for us"
else
  export -f with
  start "$scratch/node-named.log" env HOME="$scratch/home" bash -c 'with "$@"' bash "$scratch/hosts" /etc/hosts \
    erl -noinput -sname "named_$$@localhost" -pa "$SCENARIO_EBIN"
  wait_for 20 "node named is up" up named
  start "$scratch/named.log" env HOME="$scratch/home" bash -c 'with "$@"' bash "$scratch/resolv.conf" /etc/resolv.conf \
    "$kprof" attach "named_$$@localhost" "${tiers[@]}" --collector "silent.example:$collector_port" --json --for 20s
  ends $! 60
  is "$status" 0 "kprof attach ends as told"
  has "$scratch/named.log" "no live numbers: cannot reach the collector at silent.example:$collector_port from here" \
    "it has no numbers, and why"
  is "$(grep -Ec '^tracing |gone|again' "$scratch/named.log")" 1 "but has traced all the time"
fi
stop_collector
