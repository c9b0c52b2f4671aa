#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: what --otlp sends, read with the definitions of the OpenTelemetry project, is what the database has, each span and each
# number: after the receiver was away, was killed, refused some and answered what it should not, and after the collector was killed. The
# token stands nowhere.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$top/tests/page/modules.sh"
if ! page_modules "$scratch/npm.log" "$top/tests/otlp"; then
  unjudged+=("what a receiver of OTLP reads: npm cannot get its definitions ($(tail -n 1 "$scratch/npm.log"))")
  exit 0
fi

name=otlp_$$
token='hush-hush.otlp'
headers=$scratch/headers
(umask 077 && printf 'Authorization: Bearer %s\n' "$token" >"$headers")
taken=$scratch/taken
mode=$scratch/mode
receiver_log=$scratch/receiver.log
: >"$taken"
answers() { echo "$*" >"$mode.new" && mv "$mode.new" "$mode"; } # how the receiver does, from now on
answers take

start_receiver() { # [KEY CERTIFICATE]: on the same port as before
  start "$receiver_log" node "$top/tests/otlp/receiver.mjs" "$modules/node_modules" "$taken" "$mode" "$scratch/port" "$@"
  receiver_pid=$!
  wait_for 30 "the receiver listens" grep -qs listening "$receiver_log"
}
kill_receiver() {
  kill -KILL "$receiver_pid"
  ends "$receiver_pid" 10
}
free_port >"$scratch/port"
target=http://127.0.0.1:$(cat "$scratch/port")/prefix
otlp=(--otlp "$target" --otlp-headers-file "$headers")

state() { sql "SELECT $1 FROM otlp_state"; }
told() { "$kprof" nodes --json --collector "127.0.0.1:$collector_port" 2>/dev/null >"$scratch/nodes.json" &&
  sqlite3 :memory: "SELECT json_extract(readfile('$scratch/nodes.json'), '\$.otlp.$1')"; }
says() { [[ $(told text) =~ $1 ]]; }
sent_to_the_end() { [ "$(sql "SELECT request_id = (SELECT max(id) FROM kept_requests) FROM otlp_state")" = 1 ]; }
same() { # same traces|metrics WHEN
  /usr/bin/python3 "$top/tests/otlp/compare.py" "$1" "$db" "$taken" >"$scratch/told" || fail "$2: $(head -c 3000 "$scratch/told")"
  ok "$2: $(tail -n 1 "$scratch/told")"
}
# All of it again: what was sent is not known any more. The database has to be nobody's then.
forget() { sqlite3 "$db" "UPDATE otlp_state SET request_id = 0, bucket_start = 0, node_id = 0, identity_id = 0"; }

# -- wrong usage ---------------------------------------------------------------------------------------------------------
refused() { # refused PATTERN OPTION...
  local pattern=$1
  shift
  status=0
  timeout 20 "$collector" --listen 0 --db "$scratch/none.db" "$@" 2>"$scratch/wrong.log" || status=$?
  is "$status" 2 "refused: ${*:1:2}"
  has "$scratch/wrong.log" "$pattern" "and told"
  has_not "$scratch/wrong.log" 'hush' "without repeating a secret"
}
refused 'without TLS the headers could be read' --otlp http://192.0.2.1 --otlp-headers-file "$headers"
refused 'a user or a password in the address' --otlp http://me:hush@localhost
chmod 644 "$headers"
refused 'opens the headers file to everybody' "${otlp[@]}"
chmod 600 "$headers"
printf 'hush\n' >"$scratch/odd" && chmod 600 "$scratch/odd"
refused 'line 1 is no "Name: value"' --otlp "$target" --otlp-headers-file "$scratch/odd"

# -- away, there, killed, busy ---------------------------------------------------------------------------------------------
start_collector "${otlp[@]}" --http 0 --slow-threshold 20ms
page=$(page_of "$collector_log")
start_shop "$name"
start_tracing "$name"
start_load --clients 6 --think 20 --seconds 12
wait_for 20 "it is told that the receiver is not there" says 'takes no traces: .*onnect.*takes no metrics: .*onnect'
start_receiver
wait_for 60 "it is found, and takes traces" grep -qs '"signal":"span"' "$taken"
wait_for 40 "which is told" says '^to 127\.0\.0\.1:[0-9]*/prefix/; traces go there; metrics go there'
kill_receiver
answers status 503
start_receiver
wait_for 60 "that it is busy is told" says 'takes no traces: it answers with HTTP status 503: not now'
"$kprof" nodes --collector "127.0.0.1:$collector_port" >"$scratch/nodes.txt"
has "$scratch/nodes.txt" '^ otlp to 127\.0\.0\.1:.*takes no traces: .*503' "kprof nodes tells of it"
curl -sS "$page/metrics" >"$scratch/metrics"
has "$scratch/metrics" '^kprof_otlp_up\{signal="traces"\} 0$' "and /metrics"
status=0
wait "$load_pid" || status=$?
is "$status" 0 "the load noticed nothing"
save_truth
wait_for 20 "all requests are in the database" ledger_reaches requests_complete "$(truth_total)"
answers take
wait_for 60 "all traces are sent when it takes them again" sent_to_the_end
has "$collector_log" ' info otlp: .* takes traces again' "the log tells of that"
stop_tracing
stop_collector
tells_truth
same traces "after the receiver's end"
is "$(grep -cv "\"authorization\":\"Bearer $token\"" "$taken")" 0 "each with its token"

# -- metrics: of minutes that are over, which these are made to be -----------------------------------------------------------
sqlite3 "$db" "UPDATE stat_rows SET bucket_start = bucket_start - 600 WHERE resolution_s = 60;
  UPDATE ledger_rows SET bucket_start = bucket_start - 600 WHERE resolution_s = 60"
forget
: >"$taken"
start_collector "${otlp[@]}"
metrics_sent() { [ "$(state "bucket_start = (SELECT max(bucket_start) FROM ledger_rows WHERE resolution_s = 60)")" = 1 ]; }
wait_for 40 "all metrics are sent" metrics_sent
wait_for 40 "and all traces again" sent_to_the_end
stop_collector
same metrics "the minutes"
same traces "sent twice"
is "$(/usr/bin/python3 -c '
import json, sys
print(sum(int(p["count"] or 0) for p in map(json.loads, open(sys.argv[1])) if p["signal"] == "point"))' "$taken")" \
  "$(truth_total)" "the receiver has every request of the truth once"

# -- refused, in part, elsewhere, without end ------------------------------------------------------------------------------
forget
: >"$taken"
answers refuse delete
spans=$(sql "SELECT sum(kept_spans) + count(*) FROM slow_requests WHERE identity = 'delete'")
holds "$spans" -gt 0 "there are spans that the receiver will refuse"
start_collector "${otlp[@]}"
wait_for 40 "all is sent but these" sent_to_the_end
wait_for 40 "and the metrics" metrics_sent
is "$(state refused_spans)" "$spans" "these were refused, and no others"
is "$(state refused_points)" "$(sql "SELECT 2 * count(*) FROM tier_stats WHERE identity = 'delete' AND tier = '_total' AND
  resolution_s = 60")" "and of metrics likewise"
is "$(sql "SELECT DISTINCT i.identity || ': ' || r.reason FROM otlp_refusals AS r JOIN slow_requests AS i ON i.id BETWEEN r.first AND r.last
  WHERE r.signal = 'traces'")" 'delete: it answers with HTTP status 400: no delete here' "the database has which they are, and why"
has "$collector_log" ' error otlp: refused and set aside: [0-9]+ spans, such as those of request [0-9]+ \(.*no delete here' \
  "so has the log"
is "$(grep -c '"kprof.request_id"' "$taken")" "$(sql "SELECT count(*) FROM slow_requests WHERE identity <> 'delete'")" \
  "all others were taken"
for odd in 'loop|307' 'endless|HTTP status 500' 'status 401|401'; do
  stop_collector
  forget
  answers "${odd%|*}"
  start_collector "${otlp[@]}"
  wait_for 60 "told: ${odd%|*}" says "takes no traces: [^;]*${odd#*|}"
done
is "$(state request_id)" 0 "and nothing counts as sent"
answers no-metrics
wait_for 60 "where it takes no metrics traces go on" says 'traces go there;.* it takes no metrics: .*404'
stop_collector
forget
answers partial 3
before=$(state refused_spans)
start_collector "${otlp[@]}" --otlp-only traces
wait_for 40 "what it takes in part is no reason to send it again" sent_to_the_end
holds "$(state refused_spans)" -ge $((before + 3)) "but it is counted"
is "$(sql "SELECT count(*) > 0 FROM otlp_refusals WHERE reason = 'some are not for me'")" 1 "with its reason"
is "$(state "bucket_start IS NULL")" 1 "without metrics there is nothing of them to send"
answers take

# -- the collector killed --------------------------------------------------------------------------------------------------
: >"$taken"
before=$(sql "SELECT max(id) FROM kept_requests")
start_tracing "$name"
# requests that somebody's trace has asked for, and one whose header is none of W3C
trace=0af7651916cd43dd8448eb211c80319c span=b7ad6b7169203331
is "$(target_eval "$name@localhost" "[begin
    Request = kprof:begin_request(fun(<<\"traceparent\">>) -> Value; (_) -> undefined end,
      fun() -> #{method => <<\"GET\">>, path => <<\"/asked\">>, route => <<\"/asked\">>} end),
    _ = shop_accounting:book(#{route => read}),
    kprof:end_request(Request, fun() -> #{status => 200, named => true} end)
  end || Value <- [<<\"00-$trace-$span-01\">>, <<\"00-$trace-$span-00\">>, <<\"00-$trace-$span\">>]].")" '[ok,ok,ok]' \
  "somebody's trace asks"
start_load --clients 6 --think 20 --seconds 3
more_kept() { [ "$(sql "SELECT max(id) FROM kept_requests")" -gt "$before" ]; }
wait_for 20 "more requests are kept" more_kept
kill -KILL "$collector_pid"
ends "$collector_pid" 5
start_collector "${otlp[@]}" --otlp-only traces
wait "$load_pid" || true
stop_tracing
all_sent() { [ "$(sql "SELECT request_id = (SELECT max(id) FROM kept_requests) FROM otlp_state")" = 1 ]; }
ends_sent "the killed collector's rest is sent as well" "${otlp[@]}" --otlp-only traces
counted_once
sqlite3 "$db" "DELETE FROM kept_requests WHERE id <= $before" # which were sent before
same traces "after the collector's end"
is "$(sql "SELECT group_concat(coalesce(trace_id, '-') || ' ' || coalesce(parent_span_id, '-') || ' ' || spans, ', ')
  FROM (SELECT * FROM slow_requests WHERE identity = 'GET /asked' ORDER BY started_at)")" \
  "$trace $span 1, $trace $span 1, - - 1" "each stands below the span that asked for it"

# -- another token, with SIGHUP --------------------------------------------------------------------------------------------
forget
: >"$taken"
other_token=$token.renewed
answers only "Bearer $other_token"
start_collector "${otlp[@]}" --otlp-only traces
wait_for 60 "that the old token is refused is told" says 'takes no traces: [^;]*401'
printf 'hush\n' >"$headers"
kill -HUP "$collector_pid"
stays() { grep -q 'error SIGHUP: secret and certificates stay as they were' "$collector_log"; }
wait_for 10 "headers that are none are told, and change nothing" stays
has "$collector_log" 'error --otlp-headers-file .*: line 1 is no "Name: value"' "with what is wrong"
printf 'Authorization: Bearer %s\n' "$other_token" >"$headers"
kill -HUP "$collector_pid"
wait_for 40 "with the new one all is sent" sent_to_the_end
has "$collector_log" 'info SIGHUP: .*, and the headers for OTLP' "which was told"
stop_collector
same traces "with another token"
is "$(grep -cv "\"authorization\":\"Bearer $other_token\"" "$taken")" 0 "each with the new token"
answers take

# -- TLS -------------------------------------------------------------------------------------------------------------------
# shellcheck disable=SC2015
{ openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=kprof-test-ca -keyout "$scratch/ca.key" -out "$scratch/ca.pem" &&
  openssl req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout "$scratch/own.key" -out "$scratch/own.csr" &&
  openssl x509 -req -in "$scratch/own.csr" -CA "$scratch/ca.pem" -CAkey "$scratch/ca.key" -CAcreateserial -days 30 \
    -extfile <(echo subjectAltName=DNS:localhost) -out "$scratch/own.pem"; } >"$scratch/openssl.log" 2>&1 || fail "openssl"
kill_receiver
start_receiver "$scratch/own.key" "$scratch/own.pem"
port=$(cat "$scratch/port")
forget
: >"$taken"
start_collector --otlp "https://127.0.0.1:$port" --otlp-headers-file "$headers" --otlp-ca "$scratch/ca.pem"
wait_for 20 "a certificate of another name is none" says 'takes no traces: SSL'
stop_collector
start_collector --otlp "https://localhost:$port" --otlp-headers-file "$headers" --otlp-ca "$scratch/ca.pem"
wait_for 40 "all is sent by TLS" sent_to_the_end
! tr '\0' ' ' <"/proc/$collector_pid/cmdline" | grep -qF "$token" || fail "the token stands in the list of processes"
stop_collector
same traces "by TLS"
start_collector --otlp none
stop_collector
is "$(sql "SELECT (SELECT count(*) FROM otlp_state) + (SELECT count(*) FROM otlp_refusals)")" 0 "none: it is forgotten"

# the other token begins with it
grep -aqF "$token" "$scratch"/*.log "$db"* && fail "the token stands in a log or in the database"
ok "the token stands in no log and not in the database"
