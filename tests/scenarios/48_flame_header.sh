#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: a node asks for full traces itself, with kprof:flame/1 and by a header of a web request: the profile is that request's
# alone, and its name comes back with the answer. Nobody else gets one, nobody gets many, and nothing of it stays.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$(dirname "${BASH_SOURCE[0]}")/debian.sh"
source "$(dirname "${BASH_SOURCE[0]}")/web.sh"

debian rabbitmq-server
plugins=$(echo "$root"/usr/lib/rabbitmq/lib/rabbitmq_server-*/plugins)
name=header_$$
node=$name@localhost
start_collector
serve scenario_web_cowboy kprof_cowboy -- -pa "$plugins"/cowboy-*/ebin "$plugins"/cowlib-*/ebin "$plugins"/ranch-*/ebin

# patterns: of all functions of the server's modules, what the node has of them
patterns() {
  target_eval "$node" 'lists:sort([{M, F, A, scenario_trace:info({M, F, A}, match_spec)}
    || M <- [scenario_web, scenario_web_cowboy, cowboy_router, ranch], {F, A} <- M:module_info(functions)]).'
}
# calls PROFILE FUNCTION: how many the profile has
calls() {
  sql "SELECT sum(self) FROM profile_stacks WHERE profile = $1 AND metric = 'calls' AND kind = 'function' AND name = '$2'"
}

# -- kprof:flame/1 -----------------------------------------------------------------------------------------------------
web_config
start_tracing "$name" "$scratch/web.config"
# shellcheck disable=SC2046
ask $(users 1 5)
wait_for 15 "requests, from which the processes are known" ledger_reaches requests_complete 5
before=$(patterns)
is "$(target_eval "$node" 'kprof:flame(#{requests => 0}).')" '{error,{bad_value,requests,0,"a number from 1 to 100000"}}' "wrong options"
is "$(target_eval "$node" '{error, Why} = kprof:flame(#{modules => ["no_such_*"]}), kprof:format_error(Why).')" \
  '"there is no profile: no module that is loaded has such a name"' "no such modules"
# one connection, whose process makes those of its requests
# shellcheck disable=SC2046
ask $(printf '/slow\n/users/1\n%.0s' {1..200}) & asks=$!
target_eval "$node" 'kprof:flame(#{requests => 5, identity => {"GET", "/users/:id"}, name => "from inside"}).' >"$scratch/flame1" &
first=$!
sleep 1
is "$(target_eval "$node" '{error, Why} = kprof:flame(#{}), kprof:format_error(Why).')" \
  '"a full trace that this node asked for runs already: try again when it is over"' "one at a time"
wait "$first"
wait "$asks"
is "$(cat "$scratch/flame1")" '{ok,1}' "kprof:flame/1"
is "$(sql "SELECT name || '|' || requests FROM profiles WHERE id = 1")" "from inside|5" "its profile"
is "$(calls 1 scenario_web:store/1)" 5 "has the calls of its requests"
is "$(patterns)" "$before" "the node's patterns are as before"
stop_tracing

# -- the header --------------------------------------------------------------------------------------------------------
secret=$(head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n')
# asked PATH [CURL-OPTION...]: the name of the profile that the answer tells, empty without one
asked() { curl -sS -m 20 -o /dev/null -D - "${@:2}" "http://127.0.0.1:$port$1" | tr -d '\r' | sed -n 's/^x-kprof-profile: //Ip'; }
# kept NAME: the number of the profile
kept() { sql "SELECT id FROM profiles WHERE name = '$1'"; }
is_kept() { [ -n "$(kept "$1")" ]; }
log=$scratch/$name.log

rm -f "$kprof_log"
web_config '{sample, {one_in, 1000000}}' "{flame_header, \"X-Trace-Request\", \"$secret\"}"
start_tracing "$name" "$scratch/web.config"
for wrong in true "${secret%?}" "${secret}0" "0${secret#?}" ''; do
  is "$(asked /users/1 -H "X-Trace-Request: $wrong")" '' "another word than the secret does nothing"
done
is "$(asked /users/2)" '' "nor does none"
profile=$(asked /users/3 -H "X-Trace-Request: $secret")
has <(echo "$profile") '^flame-[0-9a-z]+$' "the answer tells the profile's name"
wait_for 15 "it is kept" is_kept "$profile"
is "$(sql "SELECT requests || '|' || incomplete FROM profiles WHERE name = '$profile'")" "1|0" "of one request, which is complete"
is "$(sql "SELECT DISTINCT identity FROM profile_stacks WHERE profile = $(kept "$profile")")" "GET /users/:id" "under its route"
is "$(calls "$(kept "$profile")" scenario_web:store/1)" 1 "its process was traced"
has "$log" "$profile is kept as profile $(kept "$profile")" "the log says so, too"
is "$(patterns)" "$before" "the node's patterns are as before"
