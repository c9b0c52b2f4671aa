#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: what `cmake --install` lays down below DESTDIR is enough: with nothing of the source folder, the installed
# collector and scripts trace a node, and the installed kprof reports what it did. Nothing is written outside DESTDIR.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

for program in "${programs[@]}"; do
  "$program" --help >/dev/null || fail "$program --help"
done
ok "the programs run"
is "$(find "$scratch/root" -type f -not -path "$installed/*")" "" "everything lies below the prefix"
is "$(grep -rl -e "$top" -e "$KPROF_BUILD" "$installed"/{bin/*.sh,share,lib} | grep -v '\.beam$' || true)" "" \
  "no file names the source folder"
is "$(find "$installed/share/kprof/ebin" -name '*.beam' | wc -l)" "$(find "$top/shim/src" -name '*.erl' | wc -l)" \
  "all modules of the shim are there"

# Through a symbolic link, as package managers make them, and from another folder.
mkdir "$scratch/links"
ln -s "$installed"/bin/* "$scratch/links"
node_scripts=$scratch/links
cd /
name=installed_$$
start_collector
start_shop "$name"
start_tracing "$name"
load --clients 4 --think 5 --requests 400 || fail "the load failed"
save_truth
wait_for 15 "all requests are in the database" ledger_reaches requests_complete 400
"$scratch/links/stop_kprof_node.sh" --node "$name@localhost" >"$scratch/stop.log" || fail "stop_kprof_node.sh"
ends "$kprof_pid" 30
is "$status" 0 "start_kprof_node.sh ended with 0"
"$kprof" report --db "$db" --json >"$scratch/report.json"
is "$(sqlite3 :memory: "SELECT json_extract(readfile('$scratch/report.json'), '\$.ledger.requests_complete')")" 400 \
  "kprof report tells of every request"
nothing_lost "$name"
stop_collector

# A shim that is not there is told.
mv "$installed/share/kprof" "$scratch/elsewhere"
status=0
"$node_scripts/start_kprof_node.sh" --node "$name@localhost" --cookie-file "$scratch/cookie" \
  --config "$top/tests/sample/kprof.config" 2>"$scratch/noshim.log" || status=$?
is "$status" 7 "without the shim start_kprof_node.sh ends with 7"
