#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: the helpers of servers that Debian does not have (elli, Plug and Phoenix, misultin), driven over real HTTP as these
# servers document that they drive them: what kprof tells is what the clients saw, and no request notices that kprof comes and goes.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$(dirname "${BASH_SOURCE[0]}")/web.sh"

# driven NAME MODULE HELPER OPTIONS [AWK]: in a node and a database of its own.
driven() {
  name=$1_$$ db=$scratch/$1.db serve_options=$4
  rm -f "$scratch/seen" "$scratch/enough" "$kprof_log"
  start_collector
  serve "$2" "$3"
  standard "$1" "${5:-}"
}

driven elli scenario_web_elli kprof_elli '#{}'
# who leaves takes the process along that works for him
driven misultin scenario_web_misultin kprof_helper '#{}' 'path == "/endless" { errors[id]++ }'
routes='path ~ /^\/users\// { id = method " /users/:id" } path == "/pieces" { id = method " /pieces/" }'
# A response in chunks has taken as long as its chunks have: three pauses of 10 ms.
chunks_count() {
  local told
  told=$(sql "SELECT cast(sum(total_us) / sum(calls) AS integer) FROM tier_stats
              WHERE tier = '_total' AND resolution_s = 10 AND identity = 'GET /pieces/'")
  holds "$told" -ge 30000 "a response in chunks ends with the last one, us"
}

# An entry around the plug: each request is counted once, under the plug's name, with the plug's outcome, and lasts as long as the entry.
with_entry() {
  name=$1_entry_$$ db=$scratch/$1_entry.db serve_options=$2
  rm -f "$scratch/seen" "$kprof_log"
  start_collector
  serve scenario_web_plug Elixir.Kprof.Plug
  web_config '{entry, {scenario_web_plug, endpoint, 2}}' \
    '{identity_f, fun({scenario_web_plug, endpoint, _}) -> entry; (_) -> undefined end}'
  start_tracing "$name" "$scratch/web.config"
  watch
  ask_all
  unwatch
  # shellcheck disable=SC2046
  ask --parallel --parallel-max 8 $(users 100 199) $(printf '/fail\n%.0s' {1..20})
  tells_seen "$1: entry and plug together are one request" "$routes"
  times_fit
  chunks_count
  is "$(grep -c "node $name@localhost: .*begin requests inside of an entry's calls" "$collector_log")" 1 "the log says so once"
  is "$(sql "SELECT count(*) FROM path_stats WHERE path NOT LIKE 'scenario_web_plug:endpoint/2%' AND path <> '_total'")" 0 \
    "all calls hang below the entry's"
  stop_tracing
  stop_collector
  intact
}

driven plug scenario_web_plug Elixir.Kprof.Plug '#{}' "$routes"
chunks_count
driven plug_each scenario_web_plug Elixir.Kprof.Plug '#{each => true}' "$routes"
chunks_count
with_entry plug '#{}'
with_entry plug_each '#{each => true}'
