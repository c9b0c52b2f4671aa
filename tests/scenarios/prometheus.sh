# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154  # the variables of lib.sh
# A Prometheus of Debian's package that scrapes a collector. Sourced behind lib.sh.

# start_prometheus URL OPTION...: it scrapes the page at URL each second. Sets prometheus, its own URL.
start_prometheus() {
  cat >"$scratch/prometheus.yml" <<YML
global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs: [{job_name: kprof, static_configs: [{targets: ["${1#http://}"]}]}]
YML
  prometheus_port=$(free_port)
  prometheus=http://127.0.0.1:$prometheus_port
  start "$scratch/prometheus.$prometheus_port.log" prometheus --config.file="$scratch/prometheus.yml" \
    --storage.tsdb.path="$scratch/tsdb.$prometheus_port" --web.listen-address="127.0.0.1:$prometheus_port" "${@:2}"
  prometheus_pid=${groups[-1]}
}

stop_prometheus() {
  kill -TERM "$prometheus_pid"
  ends "$prometheus_pid" 30
}

# prometheus_says PATH QUERY OPTION...: its answer, in prometheus.json.
prometheus_says() { curl -sf "$prometheus/api/v1/$1" --data-urlencode "query=$2" "${@:3}" >"$scratch/prometheus.json"; }

# prometheus_value: the first value of it.
prometheus_value() { sqlite3 :memory: "SELECT json_extract(readfile('$scratch/prometheus.json'), '\$.data.result[0].value[1]')"; }

# has_requests N: it has scraped so many.
has_requests() {
  prometheus_says query 'sum(kprof_requests_total{tier="_total"})' &&
    [ "$(prometheus_value)" = "$1" ]
}
