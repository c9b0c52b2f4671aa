#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: an application that has kprof in its own code path starts and steers it by itself. The option list of
# the documentation works letter for letter, and so do the other forms of each option, identities of every kind, sampling,
# labels carried by hand, and exceptions, which reach the caller as if nobody looked.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

name=embedded_$$
# begins PHASE TRACE: a new database for each phase, so that its numbers are its own.
begins() {
  [ -z "$collector_pid" ] || stop_collector
  db=$scratch/$1.db
  start_collector
  is "$(run "scenario_embedded:trace($2, $collector_port)")" ok "$1: the trace starts"
}
run() { target_eval "$name@localhost" "scenario_embedded:do(fun() -> $1 end)."; }
# counts EXPECTED WHAT: tier|identity|calls|errors
counts() { is "$(tiers_of 10)" "$(sort <<<"$1")" "$2"; }
rows() { run 'scenario_embedded:rows()' | tr -d '"' | sed 's/\\n/\n/g'; }
same_rows() { [ "$(rows)" = "$(tiers_of 10)" ]; }
status_of() { target_eval "$name@localhost" 'kprof:status().'; }

start_erl "$name" -pa "$KPROF_EBIN" -run file set_cwd "$scratch" -s scenario_embedded start
is "$(status_of)" not_started "nothing runs before kprof:start/0"
is "$(run 'network_server:run("read 4")')" '"{read,8}"' "the application works without"
is "$(run 'scenario_embedded:requests(10, ["create", "fail"])')" 10 "and its marks do nothing"

# -- the documented option list ----------------------------------------------------------------------------------------
begins documented documented
is "$(status_of)" tracing "it traces"
is "$(run '{match_spec, [{_, _, Body} | _]} = scenario_trace:info({requests, handle_request, 2}, match_spec),
          string:find(io_lib:format("~p", [Body]), "ask") =:= nomatch')" \
   true "the identity function is compiled: arguments stay at home"
is "$(run 'scenario_embedded:requests(200, ["create", "update", "read", "fail", "throws"])')" 400 "what fails fails in the caller"
is "$(run 'scenario_embedded:raised("fail 7")')" "{error,{db_down,7},[{db,request},{requests,handle_request},{network_server,run}],[]}" \
   "an error keeps its reason and its stack"
wait_for 15 "all requests are there" ledger_reaches requests_complete 1001
is "$(run 'kprof:stop_trace()')" ok "stop_trace"
is "$(run 'kprof:stop_trace()')" '{error,not_tracing}' "twice"
counts "_total|_total|1001|401
_total|create|200|0
_total|undefined|601|401
_total|update|200|0
accounting|_total|801|0
accounting|create|200|0
accounting|undefined|401|0
accounting|update|200|0
db|_total|801|201
db|create|200|0
db|undefined|401|201
db|update|200|0
formatter|_total|600|0
formatter|create|200|0
formatter|undefined|200|0
formatter|update|200|0
handle|_total|1001|401
handle|create|200|0
handle|undefined|601|401
handle|update|200|0
parsing|_total|1001|0
parsing|create|200|0
parsing|undefined|601|0
parsing|update|200|0" "every call of every tier"
nothing_lost "$name"
counted_once
sed "s/\$/,/" "$scratch/stats.log" | { echo "["; cat; echo "null]"; } >"$scratch/stats.json"
is "$(sqlite3 :memory: "SELECT value ->> 'tier', value ->> 'identity', sum(value ->> 'calls'), sum(value ->> 'errors')
        FROM json_each(readfile('$scratch/stats.json')) WHERE type = 'object' GROUP BY 1, 2 ORDER BY 1, 2")" "$(tiers_of 10)" \
   "stats.log says the same, a JSON line a row"
has_not "$scratch/$name.log" 'db .*us|handle .*us' "nothing is printed"

# -- a flame graph, from elsewhere, beside the trace that the application has begun --------------------------------------
begins flame documented
is "$(run 'scenario_embedded:requests(20, ["create", "read"])')" 0 "requests, from which the processes are known"
start "$scratch/flame.log" "$kprof" flame "$name@localhost" --collector "127.0.0.1:$collector_port" --db "$db" --requests 5 --for 60s
flame=$!
wait_for 20 "it traces" grep -qs '[1-9][0-9]* functions in' "$scratch/flame.log"
until gone "$flame"; do is "$(run 'scenario_embedded:requests(5, ["create"])')" 0 "requests"; done
ends "$flame" 60
is "$status" 0 "kprof flame ends by itself: $(tail -n 1 "$scratch/flame.log")"
is "$(sql 'SELECT requests FROM profiles')" 5 "of five requests"
holds "$(sql "SELECT count(DISTINCT name) FROM profile_stacks WHERE kind = 'function' AND name NOT LIKE 'requests:%'")" -ge 3 \
  "more functions than the one that begins them"
is "$(status_of)" tracing "the application's trace goes on"
is "$(run 'kprof:stop_trace()')" ok "and is ended by it"

# -- asked identities, printed calls, a fun for the rows ---------------------------------------------------------------
begins asking asking
is "$(run 'scenario_embedded:requests(100, ["create", "read"])')" 0 "requests whose names are asked for"
wait_for 15 "all requests are there" ledger_reaches requests_complete 200
is "$(sql "SELECT identity, sum(calls) FROM tier_stats WHERE tier = '_total' AND resolution_s = 10 GROUP BY 1 ORDER BY 1")" \
   "CREATE|80
CREATE_round|10
READ|80
READ_round|10
_total|200
undefined|20" "the function is asked; where it crashes nothing is named"
wait_for 10 "the rows follow" same_rows
is "$(run 'scenario_embedded:rows()' | tr -d '"' | sed 's/\\n/\n/g')" "$(tiers_of 10)" \
   "the fun got the same rows"
is "$(run 'kprof:stop_trace()')" ok "stop_trace"
has "$scratch/$name.log" '(CREATE|READ)' "finished requests are printed"
has "$scratch/$name.log" '^ +.*db' "as trees"
holds "$(grep -cE '(CREATE|READ|undefined).*(ms|us|µs)' "$scratch/$name.log")" -le 60 "ten a second at most"

# -- sampling, a process for the rows ----------------------------------------------------------------------------------
begins sampling sampling
is "$(run 'scenario_embedded:requests(250, ["create", "update", "read", "fail"])')" 250 "a thousand requests, one in ten traced"
unsampled() { ledger_reaches requests_complete 100 && ledger_reaches requests_unsampled 900; }
wait_for 15 "sampled and unsampled are in the ledger" unsampled
is "$(ledger requests_complete)|$(ledger requests_unsampled)" "100|900" "sampled and unsampled are all there were"
is "$(sql "SELECT sum(calls) FROM tier_stats WHERE resolution_s = 10 AND tier = 'parsing' AND identity = '_total'")" 100 \
  "only sampled ones are in the statistics"
wait_for 10 "the rows follow" same_rows
is "$(run 'scenario_embedded:rows()' | tr -d '"' | sed 's/\\n/\n/g')" "$(tiers_of 10)" "the process got the same rows"
is "$(run 'kprof:stop_trace()')" ok "stop_trace"

# -- identities of set_token, labels carried by hand, misultin ----------------------------------------------------------
begins tokens tokens
is "$(run 'ok = scenario_embedded:tokens(30, {checkout, "card"}), ok = scenario_embedded:tokens(20, <<"by mail">>),
          ok = scenario_embedded:tokens(10, login), scenario_embedded:carried(), scenario_embedded:misultin()')" \
   '"{read,2}"' "requests named where they begin"
wait_for 15 "all requests are there" ledger_reaches requests_complete 62
is "$(run 'kprof:stop_trace()')" ok "stop_trace"
counts "_total|GET /page|1|0
_total|_total|62|0
_total|by mail|20|0
_total|carried|1|0
_total|checkout_card|30|0
_total|login|10|0
db|GET /page|1|0
db|_total|122|0
db|by mail|40|0
db|carried|1|0
db|checkout_card|60|0
db|login|20|0
handle|GET /page|1|0
handle|_total|1|0
parsing|GET /page|1|0
parsing|_total|1|0" "identities of every form, nested tokens, a label carried by hand"

is "$(run 'kprof:stop()')" ok "kprof:stop/0"
is "$(target_eval "$name@localhost" \
  '{kprof:status(), [K || {K, _} <- persistent_term:get(), lists:prefix("kprof", lists:flatten(io_lib:format("~0p", [K])))],
      [T || T <- [erlang:trace_info({db, network_request, 1}, traced)], T =/= {traced, false}],
      erlang:trace_info(new, flags), scenario_trace:sessions()}.')" \
   "{not_started,[],[],{flags,[]},[]}" "and nothing is left"
is "$(run 'scenario_embedded:requests(10, ["create", "fail"])')" 10 "the application works on"
stop_collector
intact
