#!/usr/bin/env bash
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
driven plug scenario_web_plug Elixir.Kprof.Plug '#{}' "$routes"
driven plug_each scenario_web_plug Elixir.Kprof.Plug '#{each => true}' "$routes"
