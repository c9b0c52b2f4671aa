#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: kprof_cowboy tells of every request of a real cowboy (as Debian's rabbitmq-server brings it) what its client saw,
# over HTTP/1.1 and HTTP/2, also when many requests share a connection; and no request notices that kprof comes and goes.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$(dirname "${BASH_SOURCE[0]}")/debian.sh"
source "$(dirname "${BASH_SOURCE[0]}")/web.sh"

debian rabbitmq-server
plugins=$(echo "$root"/usr/lib/rabbitmq/lib/rabbitmq_server-*/plugins)
name=cowboy_$$
start_collector
serve scenario_web_cowboy kprof_cowboy -- -pa "$plugins"/cowboy-*/ebin "$plugins"/cowlib-*/ebin "$plugins"/ranch-*/ebin

ask_all
answers_right
web_config
start_tracing "$name" "$scratch/web.config"
ask_all
ask_all --http2
ask --http2-prior-knowledge /users/5
ask --http2-prior-knowledge /fail
asked_by_a_trace --http2-prior-knowledge
raw pipeline 50
raw leave 3
raw abandon 3
raw refused 2
target_eval "$name@localhost" "scenario_web_cowboy:wait_for_request(1000)."
raw early 2
target_eval "$name@localhost" "scenario_web_cowboy:wait_for_request(60000)."
raw upgrade 3
raw upgrade2 3 -pa "$plugins"/cowlib-*/ebin
raw odd 100
ask /items/17 /items/18 /items/seventeen
ask /rest/forbidden /rest/nothing /rest/halt /rest/value
ask /rest/broken
raw after_crash 2
for odd in inform nothing file work loop sleep midway; do
  ask --http1.1 "/odd/$odd"
  ask --http2-prior-knowledge "/odd/$odd"
done
# 60 streams at a time, whose bodies and answers are mixed on one connection
# shellcheck disable=SC2046
ask --http2 --parallel --parallel-max 60 $(users 100 199) $(printf '/slow\n%.0s' {1..30}) $(printf '/fail\n%.0s' {1..20}) /crash /crash
raw streams 20 -pa "$plugins"/gun-*/ebin "$plugins"/cowlib-*/ebin
# shellcheck disable=SC2046
ask --parallel --parallel-max 8 $(users 1 100)
# streams whose connection is killed, and streams whose client leaves
for streams in 5 1; do
  raw stuck "$streams" -pa "$plugins"/gun-*/ebin "$plugins"/cowlib-*/ebin & client=$!
  target_eval "$name@localhost" "scenario_web_cowboy:kill_connections($streams)."
  wait "$client"
done
raw left 3 -pa "$plugins"/gun-*/ebin "$plugins"/cowlib-*/ebin
# the rules of the dispatch table name the places
names='path ~ /^\/users\// { id = method " /users/:id" }
       path ~ /^\/items\/[0-9]/ { id = method " /items/:number" }
       path ~ /^\/items\/s/ { id = method " /items/:name" }
       path ~ /^\/odd\// { id = method " /odd/:what"; errors[id] += path ~ /(after|midway)$/
                            store[id] += (path ~ /(inform|work)$/) + 3 * (path ~ /(loop|sleep)$/) }
       path == "/ws" && method == "CONNECT" { store[id]++ }
       path ~ /^\/rest\// { id = method " /rest/:what"; store[id] += path == "/rest/value" } path == "/ws" { id = method " /ws" }
       path !~ /^\/(users|items|odd|rest|ws)/ { id = method " /[...]" }
       path == "/stuck" { errors[id]++ }'
tells_seen "cowboy: what the clients saw" "$names"
holds_nothing
stop_tracing
comes_and_goes
stands_below_it

# a route function goes before the rules
is "$(target_eval "$name@localhost" \
  'cowboy:set_env(scenario_web_cowboy, nothing, nothing), ok = ranch:set_protocol_options(scenario_web_cowboy,
      (ranch:get_protocol_options(scenario_web_cowboy))#{kprof_route => fun(M, P) -> [P, " by ", M] end}).')" ok "a route function"
rm -f "$scratch/seen"
forced_by_header
is "$(sql "SELECT DISTINCT identity FROM tier_stats WHERE identity LIKE '% by %' AND tier = '_total' AND identity LIKE '%/slow%'")" \
  "GET /slow by GET" "what it makes of method and path is the name"
stop_collector
intact

# -- without a helper: what becomes a websocket ends an entry's request, and takes no token along --------------------------------
name=cowboy_entry_$$ db=$scratch/entry.db serve_options='#{stream_handlers => [cowboy_stream_h]}'
rm -f "$scratch/seen" "$kprof_log"
start_collector
serve scenario_web_cowboy kprof_cowboy -- -pa "$plugins"/cowboy-*/ebin "$plugins"/cowlib-*/ebin "$plugins"/ranch-*/ebin
web_config '{entry, {cowboy_stream_h, request_process, 3}}' \
  '{identity_f, fun({cowboy_stream_h, request_process, [R, _, _]}) -> {map_get(method, R), map_get(path, R)}; (_) -> undefined end}'
start_tracing "$name" "$scratch/web.config"
watch
raw upgrade 3
raw upgrade2 3 -pa "$plugins"/cowlib-*/ebin
ask /users/1 /users/2
wait_for 20 "the requests are in the database" ledger_reaches requests_complete 8
is "$(told_rows)" "CONNECT /ws|3|0|0
GET /users/1|1|0|1
GET /users/2|1|0|1
GET /ws|3|0|0" "none of a websocket's calls is its request's"
timely "$(sql "SELECT cast(max(max_us) AS integer) FROM tier_stats WHERE tier = '_total' AND identity = 'CONNECT /ws'")" -le 1000000 \
  "which does not last as long as the websocket, us"
nothing_lost "$name"
is "$(ledger stale_calls)" 0 "nor is any call made under its token later"
stop_tracing
stop_collector
intact
