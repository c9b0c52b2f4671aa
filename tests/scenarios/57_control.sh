#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: notes are kept, and found by kprof report, the API and SQL; and what the page orders of a traced node is done: pause,
# resume, sampling, a full trace. Only by POST, from the page itself, with the token, which is demanded on loopback too.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

name=control_$$
node=$name@localhost
openssl rand -hex 32 >"$scratch/token"
chmod 600 "$scratch/token"
bearer="Authorization: Bearer $(cat "$scratch/token")"

# --- not without a token ---

refuses() { # refuses PATTERN OPTION...
  local got=0
  "$collector" --listen 0 --db "$scratch/none.db" "${@:2}" >"$scratch/refused" 2>&1 || got=$?
  is "$got" 2 "refused: ${*:2}"
  has "$scratch/refused" "$1" "and why"
}
refuses 'http-token-file FILE is missing.*openssl rand -hex 32' --http 0 --http-allow-control
refuses '^kprof-collector: --http .*is missing' --http-allow-control --http-token-file "$scratch/token"
"$kprof" serve --db "$scratch/none.db" --http-allow-control >"$scratch/refused" 2>&1 && fail "kprof serve takes orders"
has "$scratch/refused" 'unknown option --http-allow-control' "kprof serve takes no orders"

# --- a traced node ---

start_collector --http 0 --http-token-file "$scratch/token" --http-allow-control
page=$(page_of "$collector_log")
get() { curl -sS --max-time 20 -H "$bearer" "${@:2}" "$page$1"; }
# order PATH BODY [OPTION...]: the answer in $scratch/answer, its status in $code
order() {
  code=$(curl -sS --max-time 60 -o "$scratch/answer" -w '%{http_code}' -X POST -H "$bearer" -H 'Content-Type: application/json' \
    --data "$2" "${@:3}" "$page/api/v1/$1")
}
json() { sqlite3 :memory: "SELECT json_extract(readfile('$scratch/answer'), '$1')"; }
state() { get /api/v1/state >"$scratch/state" && sqlite3 :memory: "SELECT json_extract(readfile('$scratch/state'), '$1')"; }
reaches() { [ "$(state "$1")" = "$2" ]; }

start_shop "$name"
start_tracing "$name"
start_load --clients 2 --think 20 --seconds 600
wait_for 60 "requests come" ledger_reaches requests_complete 200
wait_for 30 "the node traces" reaches '$.nodes[0].state' tracing
is "$(state '$.nodes[0].node')|$(state '$.control')" "$node|1" "the node's state, and that it may be ordered"
more_than() { [ "$(state "$1" | cut -d. -f1)" -gt "$2" ] 2>/dev/null; } # it may be nothing yet
wait_for 30 "messages a second" more_than '$.nodes[0].messages_per_s' 10
wait_for 30 "and what tracing costs" more_than '$.nodes[0].cost_us_per_s' 10

order "nodes/$node/pause" ''
is "$code|$(json "\$.ok")" "200|1" "the node is paused: $(cat "$scratch/answer")"
wait_for 20 "as it says" reaches '$.nodes[0].state' paused
order "nodes/$node/resume" '{}'
is "$code" 200 "and goes on"
wait_for 20 "as it says" reaches '$.nodes[0].state' tracing
order "nodes/$node/sample" '{"per_second":50}'
is "$code" 200 "50 requests a second at most"
wait_for 20 "as it says" reaches '$.nodes[0].per_second' 50
has <("$kprof" nodes --collector "127.0.0.1:$collector_port") 'tracing.* 50/s' "and kprof nodes"
order "nodes/$node/sample" '{"one_in":1}'
wait_for 20 "all of them again" reaches '$.nodes[0].one_in' 1

# --- a full trace ---

order flame "{\"node\":\"$node\",\"requests\":5,\"seconds\":60}"
is "$code" 202 "a full trace is begun: $(cat "$scratch/answer")"
id=$(json '$.id')
is "$(state '$.flames[0].id')|$(state '$.flames[0].requests')" "$id|5" "it stands among those that were ordered"
wait_for 90 "it is over" reaches '$.flames[0].over' 1
profile=$(state '$.flames[0].told.profile')
holds "$profile" -gt 0 "with a profile"
is "$(get "/api/v1/profiles" | grep -oE "\"id\":$profile," | head -n 1)" "\"id\":$profile," "which is among the profiles"
is "$(state '$.flames[0].told.requests')" 5 "of five requests"
order flame "{\"node\":\"$node\",\"requests\":100000,\"seconds\":3600}"
id=$(json '$.id')
running() { # it is not there at once
  local functions
  functions=$(state '$.flames[0].told.functions')
  [ "${functions:-0}" -gt 0 ]
}
wait_for 60 "another one runs" running
order flame/stop "{\"id\":$id}"
is "$code" 200 "and is stopped"
wait_for 60 "it is over" reaches '$.flames[0].over' 1
order flame/stop "{\"id\":$id}"
is "$code" 404 "once"

# --- stack sampling ---

depth() { target_eval "$node" 'N = erlang:system_flag(backtrace_depth, 8), erlang:system_flag(backtrace_depth, N), N.'; }
depth_is() { [ "$(depth)" = "$1" ]; }
sees() {
  order top "{\"node\":\"$node\"}" && [ "$code" = 200 ] && [ -n "$(json '$.view.processes[0].pid')" ] &&
    [ -n "$(json '$.told.samples')" ]
}
depth=$(depth)
order top '{"node":"nobody@nowhere"}'
is "$code" 404 "no look at a node that is not there"
wait_for 60 "a look at what the node does" sees
is "$(json '$.by')|$(json '$.run')" "reductions|0" "by reductions, and nothing is kept"
wait_for 30 "it samples" depth_is 64
order top "{\"node\":\"$node\",\"by\":\"memory\"}"
is "$code|$(json '$.by')" "200|memory" "by memory"
wait_for 60 "it goes on so" sees
is "$(json '$.by')" memory "for all who look"
order sample "{\"node\":\"$node\",\"seconds\":3600,\"top\":20,\"hz\":50}"
is "$code" 202 "a run is begun, to which the look gives way: $(cat "$scratch/answer")"
id=$(json '$.id')
is "$(state '$.runs[0].id')|$(state '$.runs[0].seconds')|$(state '$.runs[0].over')" "$id|3600|0" "it stands among those that were ordered"
wait_for 60 "it tells how far it is" more_than '$.runs[0].told.samples' 100
holds "$(state '$.runs[0].told.cost_us')" -gt 0 "and what it costs"
wait_for 60 "a look" sees
is "$(json '$.run')" "$id" "is of its samples"
order sample "{\"node\":\"$node\",\"seconds\":60}"
is "$code" 409 "another one is refused: $(json '$.error')"
is "$(state '$.runs[1].id')" "" "and stands nowhere"
get /api/v1/sampling >"$scratch/answer"
is "$(json '$.runs[0].node')|$(json '$.runs[0].stands')|$(json '$.runs[1].node')" "$node|0|" "it is told among those that go on"
order sample "{\"node\":\"$node\",\"seconds\":0}"
is "$code|$(json '$.error')" "400|seconds: want a whole number from 1 to 86400" "no time at all"
order sample/stop "{\"id\":$id}"
is "$code" 200 "it is stopped"
wait_for 60 "it is over" reaches '$.runs[0].over' 1
profile=$(state '$.runs[0].told.profile')
is "$(get "/api/v1/profiles" | grep -oE "\"id\":$profile," | head -n 1)" "\"id\":$profile," "its profile is among the profiles"
order sample/stop "{\"id\":$id}"
is "$code" 404 "once"
wait_for 60 "one may look again" sees
is "$(json '$.run')" 0 "at nothing that is kept"
wait_for 60 "nobody asks any more: it samples no more" depth_is "$depth"

# --- triggers ---

triggers() { get "/api/v1/nodes/$node/triggers" >"$scratch/answer"; }
named() { triggers && sqlite3 :memory: "SELECT t.value ->> '$2' FROM json_each(readfile('$scratch/answer'), '\$.triggers') AS t
  WHERE t.value ->> 'name' = '$1'"; }
triggers
is "$(json '$.ok')|$(json '$.triggers')" "1|[]" "the node has no triggers"
trigger='{"trigger":"tier_p99","tier":"http","above_us":1,"for_ms":0,"every_ms":3600000,"seconds":2,"name":"<b>slow"}'
order "nodes/$node/triggers/add" "$trigger"
is "$code|$(json '$.text')" "200|the trigger <b>slow is added" "one is added: $(cat "$scratch/answer")"
is "$(named '<b>slow' above)|$(named '<b>slow' every_ms)" "0.001|3600000" "as the list has it"
order "nodes/$node/triggers/add" '{"trigger":"memory","above":1000000000000,"high_water":true}'
is "$code|$(named memory high_water)" "200|1" "another one, at each new high"
order "nodes/$node/triggers/add" '{"trigger":"run_queue","above":8,"name":"memory"}'
is "$code" 409 "no two of one name"
has "$scratch/answer" '"error":"two triggers are named memory' "as it says"
order "nodes/$node/triggers/add" '{"trigger":"tier_p99","tier":"nothing","above_us":8}'
is "$code" 409 "none of a tier that is not there: $(json '$.error')"
order "nodes/$node/triggers/add" '{"trigger":"run_queue"}'
is "$code|$(json '$.error')" "400|above is missing" "and none without a limit"
fired() { [ "$(named '<b>slow' began)" = 1 ]; }
wait_for 60 "a trigger begins a run" fired
marked() { get "/api/v1/series?last=600" >"$scratch/answer" && sqlite3 :memory: "SELECT $1 FROM
  json_each(readfile('$scratch/answer'), '\$.marks') WHERE value ->> 'text' LIKE 'the trigger <b>slow: http took %'"; }
kept() { [ "$(marked "value ->> 'of'")" = samples ]; }
wait_for 60 "its profile is marked in charts" kept
is "$(marked "printf('%s|%s|%s|%d', value ->> 'label', value ->> 'trigger', value ->> 'node',
  value ->> 'at_s' - (value ->> 'from_s') BETWEEN 1 AND 60)")" \
  "<b>slow|<b>slow|$node|1" "with its label, its trigger, its node, and when it ran"
order "nodes/$node/triggers/remove" '{"name":"<b>slow"}'
is "$code|$(json '$.text')|$(named '<b>slow' name)" "200|the trigger <b>slow is removed|" "it is removed"
order "nodes/$node/triggers/remove" '{"name":"<b>slow"}'
is "$code" 409 "once: $(json '$.error')"

# --- notes ---

note() { "$kprof" note "$@" --collector "127.0.0.1:$collector_port" >"$scratch/noted" 2>&1; }
note "deployed 1.4" || fail "kprof note: $(cat "$scratch/noted")"
has "$scratch/noted" '^noted: 2[-0-9T:]*Z deployed 1.4$' "a note is kept"
note "of a node" --node "$name" --at 2m --json || fail "kprof note --node: $(cat "$scratch/noted")"
is "$(sqlite3 :memory: "SELECT json_extract(readfile('$scratch/noted'), '\$.node')")" "$node" "one of a node, by a part of its name"
note "nobody's" --node nobody && fail "a note of a node that is not there"
has "$scratch/noted" "no node of this name" "a node that is not there"
note "too old" --at 2001-01-01 && fail "a note of long ago"
has "$scratch/noted" 'so long ago' "a note of long ago"
order notes '{"text":"<b>by hand</b>\u001b"}'
is "$code|$(json '$.text')|$(json '$.node')" "201|<b>by hand</b>?|" "one of the page"
order notes '{"text":"x","node":"nobody@nowhere"}'
is "$code" 404 "none of a node that is not there"
is "$(sql "SELECT group_concat(text || '/' || coalesce(node, '-')) FROM (SELECT * FROM notes ORDER BY at)")" \
  "of a node/$node,deployed 1.4/-,<b>by hand</b>?/-" "all of them stand in the view"
get "/api/v1/notes?last=60" >"$scratch/answer"
is "$(json '$.notes[0].text')|$(json '$.notes[1].text')|$(json '$.notes[2].text')" "<b>by hand</b>?|deployed 1.4|" \
  "the API has those of a time: $(cat "$scratch/answer")"
get "/api/v1/series?last=600&node=other@host" >"$scratch/answer"
is "$(sqlite3 :memory: "SELECT group_concat(value ->> 'text') FROM json_each(readfile('$scratch/answer'), '\$.marks')
    WHERE value ->> 'kind' = 'note'")" "<b>by hand</b>?,deployed 1.4" "charts have them as marks, of a node its own and those of all"
"$kprof" report --db "$db" --since 10m >"$scratch/report"
has "$scratch/report" '^ Notes$' "the report has them"
"$kprof" report --db "$db" --since 10m --json >"$scratch/answer"
is "$(json '$.notes[0].text')|$(json '$.notes[1].text')|$(json '$.notes[2].node')|$(json '$.notes[3].text')" \
  "<b>by hand</b>?|deployed 1.4|$node|" "so does its JSON"
has "$scratch/report" "of a node \($node\)\$" "with the node"

# --- who may ---

is "$(curl -s -o /dev/null -w '%{http_code}' -X POST "$page/api/v1/nodes/$node/pause")" 401 "nothing without the token"
order "nodes/$node/pause" '' -H 'Origin: https://evil.example'
is "$code" 403 "nothing from another page"
order "nodes/$node/pause" '' -H 'Sec-Fetch-Site: cross-site'
is "$code" 403 "nor from another site"
allowed() { sed -n '1s/^[^ ]* \([0-9]*\).*/\1/p; s/^Allow: \(.*\)\r$/\1/p' "$scratch/head" | tr '\n' ' '; }
for method in GET PUT DELETE PATCH OPTIONS; do
  curl -s -o /dev/null -D "$scratch/head" -X "$method" -H "$bearer" "$page/api/v1/nodes/$node/pause"
  is "$(allowed)" "405 POST " "$method orders nothing"
done
curl -s -o /dev/null -D "$scratch/head" -X POST -H "$bearer" "$page/api/v1/table"
is "$(allowed)" "405 GET, HEAD " "what is read is not written"
head -c 5000 /dev/zero | tr '\0' ' ' >"$scratch/large"
order notes "@$scratch/large"
is "$code" 413 "a large body is refused"
wait_for 20 "the node traces as before" reaches '$.nodes[0].state' tracing

"$kprof" sample "$node" --collector "127.0.0.1:$collector_port" --db "$db" --for 1s >"$scratch/sample.log" 2>&1 ||
  fail "kprof sample: $(cat "$scratch/sample.log")"
/usr/bin/python3 "$top/tests/scenarios/openapi.py" "$page" "$top/collector/web" "$(cat "$scratch/token")" >"$scratch/openapi" ||
  fail "the description of the API: $(head -c 3000 "$scratch/openapi")"
ok "each answer, and each order, is as /api/v1/openapi.json describes it: $(tail -n 1 "$scratch/openapi")"

# --- the node goes, and then the collector while something is asked ---

stop_tracing
wait_for 60 "a node that is gone is told of" reaches '$.nodes[0].connected' 0
order "nodes/$node/pause" ''
is "$code" 409 "and cannot be ordered: $(json '$.error')"
stop_collector
intact
