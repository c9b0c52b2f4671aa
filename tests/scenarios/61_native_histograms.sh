#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: what /metrics tells a scraper that asks for protobuf is what the database holds, bucket by bucket, read by protoc with
# Prometheus's own description of its messages. Everybody else gets text. Exemplars lead to requests that are kept.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
messages=/usr/share/gocode/src/github.com/prometheus/client_model
if ! command -v protoc >/dev/null || [ ! -e "$messages" ]; then
  fail "protoc or Prometheus's messages are missing: scripts/install.sh test"
fi
prometheus_asks='application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited'
prometheus_asks+=',application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1'

# scrape ACCEPT OPTION...: leaves the answer in metrics, and prints its type.
scrape() { curl -sf -o "$scratch/metrics" -w '%{content_type}' -H "Accept: $1" "${@:2}" "$page/metrics"; }

start_collector --http 127.0.0.1:0
page=$(page_of "$collector_log")
start_shop "native_$$"
start_tracing "native_$$"
load --clients 4 --requests 400 --think 10 || fail "the load failed"
closed() { ledger_reaches "requests_complete + requests_incomplete + requests_unsampled" 400; }
wait_for 30 "all requests are closed" closed
stop_tracing

is "$(scrape "$prometheus_asks")" \
  'application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited' "protobuf where it is asked for"
/usr/bin/python3 "$top/tests/scenarios/native_histograms.py" "$scratch/metrics" "$db" "$messages" "$page" >"$scratch/told" ||
  fail "$(head -c 3000 "$scratch/told")"
ok "$(tail -n 1 "$scratch/told")"
# The last bytes of the trace may be told between the two.
same_behind_gzip() {
  scrape "$prometheus_asks" >/dev/null
  cp "$scratch/metrics" "$scratch/plain"
  scrape "$prometheus_asks" --compressed >/dev/null
  cmp -s "$scratch/metrics" "$scratch/plain"
}
wait_for 10 "the same behind gzip" same_behind_gzip
ok "the same behind gzip"
is "$(scrape "${prometheus_asks/delimited,/delimited;q=0.2,}")" \
  'application/openmetrics-text; version=1.0.0; charset=utf-8' "OpenMetrics where that is preferred"
is "$(scrape '*/*')" 'text/plain; version=0.0.4; charset=utf-8' "text for everybody else"
has "$scratch/metrics" '^kprof_call_duration_seconds_bucket.*le="' "with classic buckets"
intact
