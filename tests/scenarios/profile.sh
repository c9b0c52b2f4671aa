# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154  # the variables of lib.sh
# What scenarios that draw profiles begin with: an application whose tree of functions is known, traced by kprof attach, and profiles of
# its requests or of the sample application's. Sourced behind lib.sh.

# profiled_app NAME IDENTITY: starts it as a node. IDENTITY is the identity function of its requests. Sets node, and collector_options for
# commands that go to the collector.
profiled_app() {
  chmod 400 "$scratch/cookie"
  node=$1@localhost
  start_collector
  collector_options=(--collector "127.0.0.1:$collector_port")
  start_shop "$1"
  is "$(target_eval "$node" 'scenario_flame:start().')" ok "the application runs"
  start "$scratch/attach.log" "$kprof" attach "$node" --cookie-file "$scratch/cookie" "${collector_options[@]}" \
    --entry scenario_flame:handle/1 --tier serve=scenario_flame:serve/0 --tier work=scenario_flame:work/0 --identity "$2" --json
  wait_for 30 "kprof attach traces" grep -qs '^tracing ' "$scratch/attach.log"
  is "$(target_eval "$node" 'scenario_flame:requests(5).')" ok "requests, from which the processes are known"
  wait_for 15 "they are there" ledger_reaches requests_complete 5
}

# till_gone PID COMMAND...: the command, and again where the process does not end: patterns rest for five seconds of ten, and on a busy
# machine all that the command brings may come then.
till_gone() {
  "${@:2}"
  for _ in 1 2; do
    ! soon 5 gone "$1" || return 0
    "${@:2}"
  done
}

# profile_of N: makes a profile of N requests.
profile_of() {
  local live
  start "$scratch/live.log" "$kprof" flame "$node" "${collector_options[@]}" --db "$db" --requests "$1" --module scenario_flame --for 60s
  live=$!
  wait_for 20 "it traces" grep -qs '[1-9][0-9]* functions in' "$scratch/live.log"
  is "$(target_eval "$node" "scenario_undone:await(true), scenario_flame:requests($1).")" ok "$1 requests"
  ends "$live" 60
  is "$status" 0 "kprof flame ends by itself: $(tail -n 3 "$scratch/live.log")"
  rm "$scratch/live.log"
}

# profile_of_shop NODE LOAD-OPTION...: makes a profile of five requests of the sample application, which that load brings.
profile_of_shop() {
  local live
  start "$scratch/flame.log" "$kprof" flame "$1" --collector "127.0.0.1:$collector_port" --db "$db" --requests 5 \
    --module shop_http --for 60s
  live=$!
  wait_for 30 "a profile is taken" grep -qs '[1-9][0-9]* functions in' "$scratch/flame.log"
  till_gone "$live" load "${@:2}"
  ends "$live" 90
  is "$status" 0 "of five requests"
}
