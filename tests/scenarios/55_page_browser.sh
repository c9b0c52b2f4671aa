#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: the page works in a real browser, against a collector that a traced node feeds and against a database whose names are
# markup. Every view, light, dark and 320 px wide: nothing in the browser's log, no violation of the page's policy, nothing that axe
# finds; drag to zoom, links, back and forward, keys alone, several tabs, a collector that goes, orders of a node, a request that
# three nodes worked for. Pictures are in build/page_pictures/.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=../page/modules.sh
source "$top/tests/page/modules.sh"
page_drivers
holds "$(cat "$KPROF_BUILD/page/page.js" "$KPROF_BUILD/page/page.css" "$top/collector/web/page/index.html" | gzip -9 | wc -c)" -lt 150000 \
  "the page is small"

start_collector --http 0
# -- nothing yet -------------------------------------------------------------------------------------------------------
works empty "$(page_of "$collector_log")/" collector "kprof attach shop@127.0.0.1 --collector 127.0.0.1:$collector_port "
sqlite3 "$db" ".backup '$scratch/empty.db'"
start "$scratch/empty.log" "$kprof" serve --db "$scratch/empty.db" --http 0
wait_for 20 "an empty database is served" grep -qs 'http://' "$scratch/empty.log"
works empty "$(page_of "$scratch/empty.log")/" database "kprof attach shop@127.0.0.1 --db FILE "

# -- every view --------------------------------------------------------------------------------------------------------
start_shop "browser_$$"
start_tracing "browser_$$"
start_load --clients 2 --think 50 --seconds 1200
wait_for 60 "requests come" ledger_reaches requests_complete 500
page=$(page_of "$collector_log")/
works views "$page" live

# -- names that are markup ---------------------------------------------------------------------------------------------
hostile='<script>alert(1)</script>'
sqlite3 "$db" ".backup '$scratch/hostile.db'"
sqlite3 "$scratch/hostile.db" "UPDATE identity_names SET name = '$hostile' WHERE name = 'search';
  UPDATE identity_names SET name = '<img src=x onerror=alert(2)>' || name WHERE name IN ('order', 'create');
  UPDATE tier_names SET name = '<svg onload=alert(3)>' || name WHERE name <> '_total';
  UPDATE node_names SET name = '\"><script>alert(4)</script>' || name;"
start "$scratch/serve.log" "$kprof" serve --db "$scratch/hostile.db" --http 0
wait_for 20 "it is served" grep -qs 'http://' "$scratch/serve.log"
works views "$(page_of "$scratch/serve.log")/" hostile "$hostile"

# -- hands -------------------------------------------------------------------------------------------------------------
start "$scratch/hands.txt" env HOME="$scratch/home" timeout 600 node "$drivers/hands.js" "$page"
hands=$!
wait_for 300 "hands come to an end" grep -qsE '^(stop it|FAIL)' "$scratch/hands.txt"
[ ! -s "$scratch/hands.txt" ] || grep -q '^stop it' "$scratch/hands.txt" || fail "$(cat "$scratch/hands.txt")"
stop_collector
ends "$hands" 120
cat "$scratch/hands.txt"
is "$status" 0 "the page is worked by hand to the end"
checks=$((checks + $(grep -c '^ok: ' "$scratch/hands.txt")))

# -- orders: a collector that takes them, to which the node connects again -----------------------------------------------
openssl rand -hex 32 >"$scratch/token"
chmod 600 "$scratch/token"
start_collector --http 0 --http-token-file "$scratch/token" --http-allow-control
connected() { "$kprof" nodes --collector "127.0.0.1:$collector_port" 2>/dev/null | grep -q ' tracing '; }
wait_for 60 "the node traces again" connected
works control "$(page_of "$collector_log")/" "$(cat "$scratch/token")"
stop_collector

# -- a request of three nodes ------------------------------------------------------------------------------------------
db=$scratch/remote.db
start_collector --http 0
home=asker_$$@localhost second=server_$$@localhost third=third_$$@localhost
for node in "$home" "$second" "$third"; do
  start_erl "${node%@*}" -pa "$KPROF_EBIN"
  is "$(target_eval "$node" "scenario_remote:start($collector_port).")" ok "$node is traced"
done
# the very first message to a node waits until it is connected, and that takes its sender's token
is "$(target_eval "$home" "net_kernel:connect_node('$second').")$(target_eval "$second" "net_kernel:connect_node('$third').")" truetrue \
  "they are connected"
is "$(target_eval "$home" "scenario_remote:requests(1, '$second', {ask, '$third', slow}).")" ok "one asks another, which asks the third"
whole() { [ "$(sql "SELECT count(DISTINCT node) FROM slow_requests WHERE duration_us > 2400000")" = 3 ]; }
wait_for 30 "it is kept with its parts" whole
# as if it had come by the web, with a header traceparent
sqlite3 -cmd '.timeout 5000' "$db" "UPDATE kept_requests SET trace_id = '0af7651916cd43dd8448eb211c80319c',
  parent_span_id = 'b7ad6b7169203331' WHERE maker_id IS NULL"
works remote "$(page_of "$collector_log")/" "$home" "$second" "$third"
stop_collector
holds "$(find "$PAGE_OUT" -name '*.png' -newer "$scratch/cookie" | wc -l)" -ge 25 "there are pictures of every view"
