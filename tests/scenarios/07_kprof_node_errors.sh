#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: what start_kprof_node.sh cannot do it says in one clear line with the exit status of its --help, and
# nothing of it stays in the target; stop_kprof_node.sh stops what runs.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

name=errors_$$
start_collector
start_shop "$name"
good=$top/tests/sample/kprof.config

# refuses STATUS PATTERN WHAT ARGUMENT...: given after the usual arguments, which they override.
refuses() {
  local want=$1 pattern=$2 what=$3 status=0
  shift 3
  timeout 400 "$top/scripts/start_kprof_node.sh" --node "$name@localhost" --cookie-file "$scratch/cookie" --config "$good" \
    --collector "127.0.0.1:$collector_port" "$@" >"$scratch/refusal.log" 2>&1 || status=$?
  [ "$status" = "$want" ] || fail "$what: exit status $status, not $want: $(cat "$scratch/refusal.log")"
  [ "$(wc -l <"$scratch/refusal.log")" = 1 ] || fail "$what: not one line but: $(cat "$scratch/refusal.log")"
  has "$scratch/refusal.log" "$pattern" "$what: $(cat "$scratch/refusal.log")"
}
config() { printf '%s\n' "$1" >"$scratch/config"; }
tier='{tier_config, [{http, {shop_http, handle_request, 2}}]}.'

refuses 2 'unknown option' "an unknown option" --frobnicate
refuses 2 'name@host' "a name without host" --node nobody
refuses 3 'nobody@localhost is not up' "a target that is down" --node nobody@localhost
refuses 3 'is not up' "a host that is not there" --node nobody@nowhere.invalid
echo wrong >"$scratch/wrong"
refuses 4 'cookie is wrong' "a wrong cookie" --cookie-file "$scratch/wrong"
refuses 2 'cannot read the cookie' "a cookie file that is not there" --cookie-file "$scratch/nowhere"
refuses 6 'cannot read.*nowhere' "a configuration that is not there" --config "$scratch/nowhere"
config "$tier {identity_f,"
refuses 6 'config:? ?.*(line|1)' "a configuration that is not Erlang" --config "$scratch/config"
config "$tier {frobnicate, true}."
refuses 6 'frobnicate' "an unknown option in it" --config "$scratch/config"
config "{sample, {one_in, 0}}. $tier"
refuses 6 'sample|one_in' "a bad value in it" --config "$scratch/config"
config '{identity_f, fun(_) -> undefined end}.'
refuses 6 'tier_config' "no tiers" --config "$scratch/config"
config '{tier_config, [{http, {shop_http, no_such_function, 2}}]}.'
refuses 6 'no_such_function' "an unknown function" --config "$scratch/config"
for wild in "'_', f, 1" "shop_http, '_', 2" "shop_http, handle_request, '_'"; do
  config "{tier_config, [{http, {$wild}}]}."
  refuses 6 'is a wildcard' "the wildcard {$wild}" --config "$scratch/config"
done
config '{tier_config, [{self, {kprof_guard, word, 1}}]}.'
refuses 6 'kprof_guard' "a function of the shim itself" --config "$scratch/config"
refuses 6 '--entry shop_htp:handle_request/2: there is no module shop_htp, but shop_http' "a module mistyped in --entry" \
  --entry shop_htp:handle_request/2
refuses 6 '--entry shop_http:handle_reqest/2: there is no such function, but shop_http:handle_request/2' "a function mistyped in it" \
  --entry shop_http:handle_reqest/2
refuses 8 '127.0.0.1:1' "a collector that is not there" --collector 127.0.0.1:1
mkdir "$scratch/empty"
KPROF_EBIN=$scratch/empty refuses 7 'not built' "a shim that is not built"
is "$(target_eval "$name@localhost" '{code:which(kprof), [M || {M, _} <- code:all_loaded(), lists:prefix("kprof", atom_to_list(M))],
      scenario_trace:left(),
      [T || {_, MFA} <- shop_truth:tiers(), {traced, T} <- [erlang:trace_info(MFA, traced)], T =/= false]}.')" \
   "{non_existing,[],{[],[]},[]}" "none of this left anything in the target"

# A module that is not there may come later: that is no error, but is told.
config '{tier_config, [{http, {no_such_module, f, 2}}]}.'
tracing_options=(--entry no_such_entry:f/1 --wait)
start_tracing "$name" "$scratch/config"
tracing_options=()
warned() {
  grep -q '^warning: tier http: no module no_such_module on this node' "$kprof_log" &&
    grep -q '^warning: entry no_such_entry:f/1: no module no_such_entry on this node' "$kprof_log"
}
wait_for 5 "a module that is not there is told" warned
stop_tracing
rm -f "$kprof_log"

# The one that works, a second one beside it, and the end of it.
start_tracing "$name"
refuses 9 'already' "a second kprof node for the same target"
"$top/scripts/start_kprof_node.sh" --node "$name@localhost" --cookie-file "$scratch/cookie" --config "$good" \
  --pid-file "$scratch/other.pid" \
  --collector "127.0.0.1:$collector_port" >"$scratch/second.log" 2>&1 && fail "a second kprof node with a pid file of its own runs"
has "$scratch/second.log" 'already' "and with a pid file of its own"
is "$(target_eval "$name@localhost" 'kprof:status().')" tracing "the first goes on"
stopped=$("$top/scripts/stop_kprof_node.sh" --node "$name@localhost") || fail "stop_kprof_node.sh: $stopped"
ends "$kprof_pid" 10
is "$status" 0 "stop_kprof_node.sh stops it"
is "$(target_eval "$name@localhost" 'code:which(kprof).')" non_existing "and everything is out of the target"
status=0
"$top/scripts/stop_kprof_node.sh" --node "$name@localhost" >"$scratch/stop.log" 2>&1 || status=$?
is "$status" 1 "when none runs it says so"
has "$scratch/stop.log" 'no kprof node runs' "in a line"
stop_collector
