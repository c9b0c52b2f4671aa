#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: what /metrics tells is what the database holds, to the last request; promtool finds nothing wrong with it, and a
# Prometheus that scrapes a collector has it, as classic histograms and as native ones, with exemplars that lead to requests which are kept.
# /readyz says whether the database is there.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$(dirname "${BASH_SOURCE[0]}")/prometheus.sh"
command -v promtool >/dev/null || fail "promtool is missing: scripts/install.sh long"

metrics() { curl -sf -o "$scratch/metrics.txt" "$@" "$page/metrics"; }
# counted NAME: the sum of a family's lines of whole requests
counted() { awk -v name="$1{" 'index($0, name) == 1 && /tier="_total"/ { sum += $NF } END { print sum + 0 }' "$scratch/metrics.txt"; }

start_collector --http 127.0.0.1:0
page=$(page_of "$collector_log")
start_shop "metrics_$$"
start_tracing "metrics_$$"
load --clients 4 --requests 300 --think 10 || fail "the load failed"
wait_for 20 "300 requests are in the ledger" ledger_reaches requests_complete 300

metrics || fail "no metrics"
is "$(counted kprof_requests_total)" "$(ledger requests_complete)" "as many requests as in the ledger"
is "$(counted kprof_errors_total)" "$(sql "SELECT sum(errors) FROM tier_stats WHERE resolution_s = 10 AND identity = '_total'
  AND tier = '_total'")" "as many errors as in the database"
waiting=$(counted kprof_waiting_seconds_total)
is "$(sql "SELECT sum(waiting_us) > 0 AND abs(sum(waiting_us) / 1e6 - $waiting) < 1e-5 * $waiting FROM tier_stats
  WHERE resolution_s = 10 AND identity = '_total' AND tier = '_total'")" 1 "and as much waiting: $waiting s"
is "$(counted kprof_call_duration_seconds_count)" "$(ledger requests_complete)" "the histograms count them all"
promtool check metrics <"$scratch/metrics.txt" >"$scratch/promtool.txt" 2>&1 ||
  fail "promtool: $(cat "$scratch/promtool.txt")"
ok "promtool finds nothing wrong"
metrics -H 'Accept: application/openmetrics-text; version=1.0.0' || fail "no metrics in OpenMetrics"
is "$(tail -n 1 "$scratch/metrics.txt")" '# EOF' "OpenMetrics where it is asked for"
slow=$(sed -n 's/.* # {slow="\([0-9]*\)",url=.*/\1/p' "$scratch/metrics.txt" | head -n 1)
[ -n "$slow" ] || fail "no exemplar"
curl -sf "$page/api/v1/slow/$slow" >"$scratch/slow.json" || fail "an exemplar names request $slow, which is not kept"
ok "exemplars name requests that are kept"
is "$(curl -s -o "$scratch/ready.txt" -w '%{http_code}' "$page/readyz")" 200 "it is ready"

# -- a Prometheus ------------------------------------------------------------------------------------------------------
start_prometheus "$page" --enable-feature=exemplar-storage
wait_for 60 "Prometheus has scraped every request" has_requests "$(ledger requests_complete)"
prometheus_says query_exemplars kprof_call_duration_seconds_bucket --data-urlencode "start=$(($(date +%s) - 3600))" \
  --data-urlencode "end=$(date +%s)" || fail "no exemplars"
has "$scratch/prometheus.json" "\"slow\":\"[0-9]+\",\"url\":\"$page/.slow=[0-9]+\"" "and the exemplars, with their links"
stop_prometheus

# -- another one, that takes native histograms -------------------------------------------------------------------------
whole='kprof_call_duration_seconds{tier="_total"}'
start_prometheus "$page" --enable-feature=exemplar-storage,native-histograms
has_histograms() { prometheus_says query "sum(histogram_count($whole))" && [ "$(prometheus_value)" = "$1" ]; }
wait_for 60 "Prometheus has every request in native histograms" has_histograms "$(ledger requests_complete)"
"$kprof" report --db "$db" --since 1h --json >"$scratch/report.json"
for quantile in 50 90 99; do
  prometheus_says query "histogram_quantile(0.$quantile, sum($whole)) * 1e6" || fail "no quantile"
  told=$(prometheus_value)
  held=$(sqlite3 :memory: "SELECT value ->> 'p${quantile}_us' FROM json_each(readfile('$scratch/report.json'), '\$.rows')
    WHERE value ->> 'identity' = '_total' AND value ->> 'tier' = '_total'")
  holds "$(awk "BEGIN { print int(1000 * ($told > $held ? $told / $held : $held / $told)) }")" -le 1035 \
    "its p$quantile, $told us, is kprof's, $held us, within a bucket and the rounding of both, thousandths"
done
prometheus_says query_exemplars kprof_call_duration_seconds --data-urlencode "start=$(($(date +%s) - 3600))" \
  --data-urlencode "end=$(date +%s)" || fail "no exemplars"
has "$scratch/prometheus.json" '"slow":"[0-9]+"' "and the exemplars"
stop_prometheus

# -- who is not ready says so ------------------------------------------------------------------------------------------
mv "$db" "$db.away"
rm -f "$db"-*
is "$(curl -s -o "$scratch/ready.txt" -w '%{http_code}' "$page/healthz")" 200 "it is alive without its database"
metrics || fail "no metrics without the database"
ok "and tells what it has counted"
