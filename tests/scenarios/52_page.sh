#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: what the page asks the daemon is what kprof report says of the same database, while it is written and afterwards. The
# application's own count stands in it. Elsewhere than on loopback nothing is served without a token and TLS.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$(dirname "${BASH_SOURCE[0]}")/profile.sh"

name=page_$$
get() { curl -sS --max-time 20 "${@:2}" "$page$1"; }
status_of() { curl -s --max-time 20 -o /dev/null -w '%{http_code}' "${@:2}" "$page$1"; }
json() { sqlite3 :memory: "SELECT json_extract(readfile('$scratch/answer'), '$1')"; }

start_collector --http 0
page=$(page_of "$collector_log")
holds "${#page}" -gt 0 "the collector says where the page is"
is "$(get /api/v1/nodes | grep -o '"nodes":\[\]')" '"nodes":[]' "no node yet"

# --- a traced node ---

start_shop "$name"
start_tracing "$name"
curl -sSN --max-time 60 "$page/api/v1/events" >"$scratch/events" 2>/dev/null &
stream=$!
load --requests 1500 --clients 4 --think 10
made=$(loaded requests)
closed() { ledger_reaches "requests_complete + requests_incomplete + requests_unsampled" "$made"; }
wait_for 30 "all requests are closed" closed
profile_of_shop "$name@localhost" --requests 200 --clients 2 --think 10
"$kprof" sample "$name@localhost" --collector "127.0.0.1:$collector_port" --db "$db" --for 2s >"$scratch/sample.log" 2>&1 ||
  fail "kprof sample: $(cat "$scratch/sample.log")"
stop_tracing
kill "$stream" 2>/dev/null || true
wait "$stream" 2>/dev/null || true
has "$scratch/events" '^event: written' "an event stream told of what was written"

# What the node sent last is written a second later, on a busy machine after more.
at_rest() {
  local before
  before=$(ledger messages)
  sleep 3
  [ "$(ledger messages)" = "$before" ]
}
wait_for 30 "everything is written" at_rest

# A report without the times at which it was asked for, a member a line.
timeless() {
  sqlite3 :memory: "SELECT fullkey, type, coalesce(atom, '') FROM json_tree(json_remove(readfile('$1'), '\$.from', '\$.until'))"
}
differ() { ! diff <(timeless "$1") <(timeless "$2") >"$scratch/diff"; }
same() { # same FILE FILE WHAT
  differ "$1" "$2" && fail "$3: $(head -c 600 "$scratch/diff")"
  ok "$3"
}
# what a busy machine writes between the two is in both of the next ones
for _ in 1 2 3 4 5; do
  get "/api/v1/table?last=3600" >"$scratch/answer"
  "$kprof" report --db "$db" --since 1h --json >"$scratch/report"
  differ "$scratch/answer" "$scratch/report" || break
  echo "they differ: $(head -c 600 "$scratch/diff")"
  sleep 3
done
same "$scratch/answer" "$scratch/report" "the table is what kprof report says"
is "$(json '$.ledger.requests_complete')" "$(ledger requests_complete)" "as many requests as the ledger has"

sum() { sqlite3 :memory: "SELECT sum(value) FROM json_each(readfile('$scratch/answer'), '$1')"; }
# a bucket is there when it is over
all_over_time() {
  get "/api/v1/series?last=600&points=600" >"$scratch/answer"
  [ "$(sum '$.requests')" = "$(ledger requests_complete)" ]
}
wait_for 15 "as many over time" all_over_time
totals="resolution_s = 10 AND identity = '_total' AND tier = '_total'"
is "$(sum '$.errors')" "$(sql "SELECT sum(errors) FROM tier_stats WHERE $totals")" "errors"
is "$(sqlite3 :memory: "SELECT sum(j.value)
    FROM json_each(readfile('$scratch/answer'), '\$.heat.counts') AS c, json_each(c.value) AS j WHERE j.key > 0")" \
  "$(ledger requests_complete)" "each request stands in the heat map"
is "$(sqlite3 :memory: "SELECT group_concat(name, ' ')
    FROM (SELECT value ->> 'name' AS name FROM json_each(readfile('$scratch/answer'), '\$.tiers') ORDER BY 1)")" \
  "accounting http pool render storage" "tiers have their names"

# the last bucket, and all of them
last=$(sql "SELECT strftime('%s', max(bucket_start)) FROM tier_stats WHERE resolution_s = 10")
at() { date -u -d "@$1" +%Y-%m-%dT%H:%M:%SZ; }
get "/api/v1/compare?from=$((last - 600))&until=$((last + 10))&before_from=$last&before_until=$((last + 10))" >"$scratch/answer"
"$kprof" diff --db "$db" --before "$(at "$last")..$(at $((last + 10)))" --after "$(at $((last - 600)))..$(at $((last + 10)))" --json \
  >"$scratch/report"
same "$scratch/answer" "$scratch/report" "two stretches compared are what kprof diff says"
holds "$(json '$.rows[#-1].calls_after')" -ge 1 "which have requests"

id=$(sql "SELECT id FROM slow_requests ORDER BY duration_us DESC, id LIMIT 1")
get "/api/v1/slow/$id" >"$scratch/answer"
"$kprof" slow "$id" --db "$db" --json >"$scratch/report"
same "$scratch/answer" "$scratch/report" "a slow request is what kprof slow says"
is "$(status_of /)|$(status_of /page.js)|$(status_of /nothing)" "200|200|404" "the page's files"
is "$(status_of /api/v1/nodes -H 'Host: evil.example')" 421 "a page of somebody else's cannot ask through a browser"

"$kprof" note "deployed 1.4" --collector "127.0.0.1:$collector_port" >"$scratch/noted" || fail "kprof note"
as_described() { # as_described [STATUS]
  /usr/bin/python3 "$top/tests/scenarios/openapi.py" "$page" "$top/collector/web" ${1:+"$1" "$id" "$profile"} >"$scratch/openapi" ||
    fail "the description of the API: $(head -c 3000 "$scratch/openapi")"
  ok "as /api/v1/openapi.json describes it: $(tail -n 1 "$scratch/openapi")"
}
profile=$(sql "SELECT max(id) FROM profiles WHERE kind = 'full'")
as_described

stop_collector
sleep 1 # the last hour ends with a whole second: in the one of the note it is not there yet

# --- the database alone ---

start "$scratch/serve.log" "$kprof" serve --db "$db" --http 0
serve_pid=$!
wait_for 20 "kprof serve listens" grep -qs 'the page of' "$scratch/serve.log"
page=$(page_of "$scratch/serve.log")
get "/api/v1/table?last=3600" >"$scratch/answer"
"$kprof" report --db "$db" --since 1h --json >"$scratch/report"
same "$scratch/answer" "$scratch/report" "kprof serve says the same"
kill -INT "$serve_pid"
ends "$serve_pid" 20
is "$status" 0 "kprof serve ends with 0 on Ctrl-C"

# --- errors, as they are described ---

serve() { # serve DB OPTION...
  rm -f "$scratch/serve.log"
  start "$scratch/serve.log" "$kprof" serve --db "$1" --http 0 "${@:2}"
  serve_pid=${groups[-1]}
  wait_for 20 "kprof serve listens" grep -qs 'the page of' "$scratch/serve.log"
  page=$(page_of "$scratch/serve.log")
}
end_serve() {
  kill -TERM "$serve_pid"
  ends "$serve_pid" 20
}
openssl rand -hex 32 >"$scratch/token"
chmod 600 "$scratch/token"
serve "$db" --http-token-file "$scratch/token"
as_described 401
end_serve
# names of 17 MB, one of a kind: no answer has room for one
large=$scratch/large.db
sqlite3 "$db" ".backup '$large'"
for names in node identity tier; do
  sqlite3 "$large" "UPDATE ${names}_names SET name = name || hex(zeroblob(8500000))
    WHERE id = (SELECT min(id) FROM ${names}_names WHERE name NOT GLOB '_*')"
done
serve "$large"
as_described 500
mv "$large" "$large.away"
as_described 503
end_serve

# --- elsewhere than on loopback ---

refuses() { # refuses STATUS PATTERN WHAT OPTION...
  local wanted=$1 pattern=$2 what=$3 got=0
  "$kprof" serve --db "$db" "${@:4}" >"$scratch/refused" 2>&1 || got=$?
  is "$got" "$wanted" "refused: $what"
  has "$scratch/refused" "$pattern" "why: $what"
}
refuses 2 'http-token-file FILE is required' "no token" --http 0.0.0.0:0
refuses 2 'without --tls-cert and --tls-key the token can be read on the way' "no TLS" --http 0.0.0.0:0 --http-token-file "$scratch/token"
refuses 1 'cannot read' "no database" --db "$scratch/none.db"
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
  -keyout "$scratch/key.pem" -out "$scratch/cert.pem" 2>"$scratch/openssl.log" || fail "openssl"
chmod 600 "$scratch/key.pem"
start "$scratch/tls.log" "$kprof" serve --db "$db" --http 0.0.0.0:0 --http-token-file "$scratch/token" \
  --tls-cert "$scratch/cert.pem" --tls-key "$scratch/key.pem"
serve_pid=$!
wait_for 20 "kprof serve listens with TLS" grep -qs 'the page of' "$scratch/tls.log"
page=https://localhost:$(page_of "$scratch/tls.log" | sed 's/.*://')
is "$(status_of /api/v1/nodes --cacert "$scratch/cert.pem")" 401 "without the token nothing"
is "$(status_of /api/v1/nodes --cacert "$scratch/cert.pem" -H "Authorization: Bearer $(cat "$scratch/token")")" 200 "with it, over TLS"
get /login --cacert "$scratch/cert.pem" -c "$scratch/cookies" --data-urlencode "token=$(cat "$scratch/token")" >/dev/null
has "$scratch/cookies" 'HttpOnly.*TRUE.*kprof' "logging in leaves a cookie that scripts cannot read and only TLS carries"
is "$(status_of /api/v1/nodes --cacert "$scratch/cert.pem" -b "$scratch/cookies")" 200 "which is as good"
kill -TERM "$serve_pid"
ends "$serve_pid" 20
intact
