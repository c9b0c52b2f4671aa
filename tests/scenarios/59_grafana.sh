#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: each query of the dashboards in scripts/grafana/ runs and gives something: SQL on the database of a traced node with a
# profile, PromQL at a Prometheus that scrapes its collector.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$(dirname "${BASH_SOURCE[0]}")/profile.sh"
source "$(dirname "${BASH_SOURCE[0]}")/prometheus.sh"
command -v prometheus >/dev/null || fail "prometheus is missing: scripts/install.sh long"

start_collector --http 127.0.0.1:0
page=$(page_of "$collector_log")
start_shop "grafana_$$"
start_tracing "grafana_$$"
load --clients 2 --requests 200 || fail "the load failed"
wait_for 20 "200 requests are in the ledger" ledger_reaches requests_complete 200
start_prometheus "$page"
wait_for 60 "Prometheus has scraped them" has_requests "$(ledger requests_complete)"
profile_of_shop "grafana_$$@localhost" --requests 300 --clients 2 --think 10

# What counts by the second has to have been scraped twice since it moved.
queries_run() { /usr/bin/python3 "$top/tests/scenarios/grafana.py" "$top/scripts/grafana" "$db" "$prometheus" >"$scratch/queries"; }
for _ in 1 2 3 4 5 6; do
  ! queries_run || break
  sleep 5
done
has "$scratch/queries" '^[1-9][0-9]* queries, 0 wrong' "each query runs and gives something: $(head -c 3000 "$scratch/queries")"
