# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2119,SC2120,SC2154
# What the scenarios of web servers share: getting a server, asking it over HTTP, and comparing what the clients saw with what
# kprof counted. Sourced behind lib.sh.
#
# The node has the server's helper and kprof_helper in its path, and nothing else of kprof: the shim comes through start_kprof_node.sh.

serve_options='#{}'

# serve MODULE HELPER... [-- ARGUMENT...]: a node that has the helpers, and scenario_web's server MODULE with the options $serve_options.
# Sets port.
serve() {
  local module=$1 helper
  shift
  mkdir -p "$scratch/helpers"
  while [ $# -gt 0 ] && [ "$1" != -- ]; do
    for helper in "$1" kprof_helper; do cp "$KPROF_EBIN/$helper.beam" "$scratch/helpers/"; done
    shift
  done
  [ $# -eq 0 ] || shift
  start_erl "$name" -pa "$scratch/helpers" "$@"
  port=$(target_eval "$name@localhost" "ok = scenario_web:start(), $module:start($serve_options).")
  [[ $port =~ ^[0-9]+$ ]] || fail "$module: $port"
}

# web_config [OPTION...]: a configuration with the tiers, and these options of start_trace.
web_config() {
  { echo "{tier_config, [{store, {scenario_web, store, 1}}, {disk, {scenario_web, disk, 1}}]}."
  [ $# -eq 0 ] || printf '%s.\n' "$@"; } >"$scratch/web.config"
}

# ask [CURL-OPTION...] PATH...: asks with curl, over one connection as far as the server lets it; adds METHOD PATH STATUS to the file seen.
ask() {
  local options=() urls=() crash=
  [[ " $* " != *' '@(/crash|/exit|/throw|/killed|/odd/after|/odd/midway)' '* ]] || crash=1
  while [ $# -gt 0 ]; do
    case $1 in /*) urls+=("http://127.0.0.1:$port$1" -o /dev/null) ;; *) options+=("$1") ;; esac
    shift
  done
  curl -sS --globoff --no-progress-meter -m 20 -w '%{method} %{url_effective} %{http_code} %{time_total}\n' \
    ${options[@]+"${options[@]}"} "${urls[@]}" 2>>"$scratch/curl.log" | sed "s|http://[^/]*||" >>"$scratch/seen" ||
    [ -n "$crash" ] || fail "curl: $(tail -n 1 "$scratch/curl.log")" # a crash may cost the connection
}
# raw WHAT N [ERL-OPTION...]: as scenario_web_client tells.
raw() {
  timeout 600 erl -noinput -pa "$SCENARIO_EBIN" -run scenario_web_client main "$port" "$1" "$2" "${@:3}" >>"$scratch/seen" ||
    fail "the client $1"
}
users() { local i; for ((i = $1; i <= $2; i++)); do printf '/users/%s\n' "$i"; done; }

# What the clients saw: identity|requests|errors|calls of store. $1 maps a line METHOD PATH STATUS to an identity, in awk.
seen_rows() {
  awk '{ method = $1; path = $2; status = $3; id = method " " path }
       path ~ /^\/users\// { id = method " /users/*" }
       status == 404 { id = method " 404" }
       '"$1"'
       { n[id]++; errors[id] += status >= 500 || path ~ /^\/(crash|exit|throw|killed)$/
         store[id] += status != 404 && path ~ /^\/(users\/|slow|fail|crash|killed|pieces|echo)/ }
       END { for (i in n) print i "|" n[i] "|" errors[i] "|" store[i] }' "$scratch/seen" | sort
}
# What kprof counted.
told_rows() {
  sql "SELECT t.identity, sum(t.calls), sum(t.errors),
              coalesce((SELECT sum(s.calls) FROM tier_stats AS s WHERE s.tier = 'store' AND s.resolution_s = 10
                        AND s.identity = t.identity), 0)
       FROM tier_stats AS t WHERE t.tier = '_total' AND t.resolution_s = 10 AND t.identity <> '_total' GROUP BY t.identity" | sort
}
# tells_seen WHAT [AWK]: after all requests have come in, kprof tells what the clients saw, to the last one.
tells_seen() {
  wait_for 20 "$1: the requests are in the database" ledger_reaches requests_complete "$(wc -l <"$scratch/seen")"
  sleep 1.5 # were there more, they would be there by then
  is "$(told_rows)" "$(seen_rows "${2:-}")" "$1"
  is "$(sql "SELECT sum(s.calls) - sum(d.calls) FROM tier_stats AS s JOIN tier_stats AS d USING (resolution_s, bucket_start, node, identity)
             WHERE s.tier = 'store' AND d.tier = 'disk' AND resolution_s = 10")" 0 "as many calls behind the store as of it"
  nothing_lost "$name"
  counted_once
}
# A connection that waits for its next request has nothing left of those before.
holds_nothing() {
  is "$(target_eval "$name@localhost" "scenario_web:kept($port, [\"/users/1\", \"/fail\", \"/nothing/here\"]).")" "[]" \
    "no process holds a token behind its requests"
}
# The mean time of /slow: what it sleeps at least, what curl measured at most (and a little: clocks).
times_fit() {
  local client told
  client=$(awk '$2 == "/slow" { sum += $4; n++ } END { printf "%d", 1000000 * sum / n }' "$scratch/seen")
  told=$(sql "SELECT cast(sum(total_us) / sum(calls) AS integer) FROM tier_stats
              WHERE tier = '_total' AND resolution_s = 10 AND identity = 'GET /slow'")
  holds "$told" -ge 30000 "a slow request takes what it sleeps, in us"
  # a server may tell the end of a request behind its answer
  timely "$told" -le $((client + 200)) "and not more than its client waited"
}

# The same for every server: what is asked in the open. More is asked by the scenarios themselves.
ask_all() {
  # shellcheck disable=SC2046  # words
  ask "$@" $(users 1 30) / /slow /slow /slow /pieces /pieces /busy /nothing/here /also-nothing
  ask "$@" /fail /fail
  ask "$@" /crash
  ask "$@" /exit
  ask "$@" /throw
  ask "$@" -m 2 /killed # cowboy waits for its client to go
  ask "$@" -I /users/31
  head -c 100000 /dev/zero | tr '\0' x >"$scratch/body"
  # an upgrade to HTTP/2 is for requests without a body, and curl cannot use a connection of prior knowledge twice
  [ "${1:-}" != --http2 ] || set -- --http2-prior-knowledge
  ask "$@" --data-binary "@$scratch/body" /echo
  ask "$@" -H 'Transfer-Encoding: chunked' --data-binary "@$scratch/body" /echo
}
# What a server answered before it was traced.
answers_right() {
  is "$(seen_rows '' | awk -F'|' '{ n += $2; e += $3 } END { print n "|" e }')" "48|7" "the server answers everything"
  rm "$scratch/seen"
}

# comes_and_goes: while clients ask without a pause, the shim is loaded and unloaded three times, also while it is in the middle of a
# request, and the trace is paused and goes on. No request fails, and none that is counted lacks a call.
asks_on() { # PATH...
  local path urls=()
  for path in "$@"; do urls+=(-o /dev/null "http://127.0.0.1:$port$path"); done
  while [ ! -e "$scratch/enough" ]; do
    curl -sS -m 20 -w '%{http_code}\n' "${urls[@]}" 2>&1 || true
  done
}
comes_and_goes() {
  local i steer loads=()
  asks_on /users/1 /slow >"$scratch/on.log" &
  loads+=($!)
  asks_on /long >"$scratch/on_long.log" &
  loads+=($!)
  for i in 1 2 3; do
    rm -f "$kprof_log"
    start_tracing "$name" "$scratch/web.config"
    for steer in pause resume; do
      sleep 0.3
      timeout 200 "$kprof" trace "$name" $steer --collector "127.0.0.1:$collector_port" >"$scratch/steer.txt" || fail "$steer"
    done
    sleep 0.5
    stop_tracing
  done
  touch "$scratch/enough"
  wait "${loads[@]}"
  cat "$scratch/on_long.log" >>"$scratch/on.log"
  holds "$(grep -c '^200$' "$scratch/on.log")" -gt 20 "requests went on while kprof came and went"
  is "$(grep -vc '^200$' "$scratch/on.log" || true)" 0 "and none failed"
  is "$(told_rows | awk -F'|' '/^GET \/users/ { n += $2 } /^GET \/users/ && $2 != $4 { print } END { print (n > 50) }')" 1 \
    "what was cut is not among those that are counted"
  is "$(target_eval "$name@localhost" \
    '{code:is_loaded(kprof), scenario_trace:left(), [M || {M, _} <- code:all_loaded(), erlang:check_old_code(M)]}.')" \
    "{false,{[],[]},[]}" "nothing is left in the node"
}

# forced_by_header: one request in a million is sampled, but those whose header asks for it are traced, where the configuration names that
# header.
forced_by_header() {
  local before began
  rm -f "$kprof_log"
  web_config '{sample, {one_in, 1000000}}'
  start_tracing "$name" "$scratch/web.config"
  before=$(ledger requests_complete)
  ask -H 'X-Trace-Request: true' /users/7 /slow
  stop_tracing
  is "$(ledger requests_complete)" "$before" "no header forces anything that was not asked for"
  rm -f "$kprof_log" "$scratch/seen"
  web_config '{sample, {one_in, 1000000}}' '{force_header, {"X-Trace-Request", 3}}'
  start_tracing "$name" "$scratch/web.config"
  before=$(ledger requests_complete)
  began=$SECONDS
  ask /users/1 /users/2 /slow
  ask -H 'X-Trace-Request: no' /users/8 /slow
  # of several values the first one counts, whatever the server makes of them
  ask -H 'X-Trace-Request: false' -H 'x-trace-request: true' /users/9
  ask -H 'X-TRACE-REQUEST: True' -H 'x-trace-request: no' /users/7 /slow
  wait_for 15 "the forced requests are in the database" ledger_reaches requests_complete $((before + 2))
  is "$(ledger requests_complete)" $((before + 2)) "and none that did not ask for it"
  # shellcheck disable=SC2046
  ask -H 'X-Trace-Request: true' $(users 1 60)
  stop_tracing
  wait_for 15 "more are forced" ledger_reaches requests_complete $((before + 3))
  # three at once, three a second, and what falls into the seconds that are counted here in part
  holds "$(ledger requests_complete)" -le $((before + 3 + 3 * (SECONDS - began + 2))) "but not more than the limit lets through"
}

# asked_by_a_trace [CURL-OPTION...]: requests as somebody's trace asks them, one of them with these options, and one with a header that is
# none of W3C Trace Context.
trace=0af7651916cd43dd8448eb211c80319c span=b7ad6b7169203331
asked_by_a_trace() {
  ask -X PUT -H "traceparent: 00-$trace-$span-01" /users/6
  ask "$@" -X PUT -H "Traceparent: 01-$trace-$span-00-more" /users/6
  ask -X DELETE -H "traceparent: 00-$trace-$span-01-more" /users/6
}
# stands_below_it: these were kept, which is when their bucket is over, with the trace and the span that have asked for them.
stands_below_it() {
  wait_for 20 "requests that were asked for are kept" kept PUT 2
  wait_for 20 "and what was not" kept DELETE 1
  is "$(sql "SELECT substr(identity, 1, 4) || trace_id || '|' || parent_span_id || '|' || count(*) FROM slow_requests
    WHERE trace_id IS NOT NULL GROUP BY identity, trace_id, parent_span_id")" "PUT $trace|$span|2" \
    "which trace has asked for a request is kept with it"
  is "$(sql "SELECT group_concat(trace_flags) FROM (SELECT trace_flags FROM kept_requests WHERE trace_id IS NOT NULL
    ORDER BY begin_ns)")" 1,0 "with its flags"
}
kept() { [ "$(sql "SELECT count(*) FROM slow_requests WHERE identity LIKE '$1 %'")" = "$2" ]; }

# standard SERVER [AWK]: what every server has to stand, after serve. What is to be asked besides under the trace is asked by a function
# more.
standard() {
  ask_all
  answers_right
  web_config
  start_tracing "$name" "$scratch/web.config"
  watch
  ask_all
  unwatch
  raw pipeline 50
  raw odd 100
  raw leave 3
  raw refused 2
  # shellcheck disable=SC2046
  ask --parallel --parallel-max 8 $(users 100 199) $(printf '/fail\n%.0s' {1..20})
  asked_by_a_trace
  if declare -F more >/dev/null; then more; fi
  tells_seen "$1: what the clients saw" "${2:-}"
  times_fit
  holds_nothing
  stop_tracing
  comes_and_goes
  stands_below_it
  forced_by_header
  stop_collector
  intact
}
