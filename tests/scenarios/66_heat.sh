#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: the heat map of a real node that is idle, busy and too busy at times that it tells shows just that, and the sampler's
# own pauses as what they are; its cells and the flame graph of their range count the same; a range is named under the pointer, by a
# drag and by keys.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

here=$(dirname "${BASH_SOURCE[0]}")
chmod 400 "$scratch/cookie"
name=heat_$$
node=$name@localhost
start_collector
start_shop "$name"
is "$(target_eval "$node" 'scenario_heat:start().')" ok "the application runs"
start_tracing "$name"

sample() { "$kprof" sample "$node" --collector "127.0.0.1:$collector_port" --db "$db" "$@"; }
heat() { "$kprof" heat --db "$db" "$@"; }

start "$scratch/sample.log" "$kprof" sample "$node" --collector "127.0.0.1:$collector_port" --db "$db" --for 60s --budget 50% \
  --registered scenario_heat_works --registered scenario_heat_sleeps
sampler=$!
begun() { grep -q '^[1-9][0-9]* looks' "$scratch/sample.log"; }
wait_for 30 "it looks" begun
is "$(target_eval "$node" "scenario_heat:phases(\"$scratch/phases\").")" ok "the phases are over"
kill -INT $sampler
ends $sampler 30
is "$status" 0 "Ctrl-C keeps what there is"

heat --profile 1 --json >"$scratch/heat.json"
heat --profile 1 --json --metric samples >"$scratch/samples.json"
heat --profile 1 --json --metric reductions >"$scratch/reductions.json"

# share PHASE STATE...: percent of the cells of all phases of a name, 150 ms from their ends, that are in one of these states
share() {
  python3 - "$scratch" "$@" <<'EOF'
import datetime, json, sys
folder, phase, states = sys.argv[1], sys.argv[2], sys.argv[3:]
heat = json.load(open(folder + "/heat.json"))
begin = datetime.datetime.fromisoformat(heat["started_at"].replace("Z", "+00:00")).timestamp() * 1000
cells = "".join(heat["states"])
seen = ""
for line in open(folder + "/phases"):
    name, first, last = line.split()
    if name == phase:
        at = [round((int(t) - begin - heat["from_ms"]) / heat["cell_ms"]) for t in (first, last)]
        margin = round(150 / heat["cell_ms"])
        seen += cells[at[0] + margin:at[1] - margin]
print(round(100 * sum(seen.count(s) for s in states) / len(seen)) if seen else "no cells")
EOF
}
echo "seen of busy $(share busy s) %, of idle $(share idle s) %; idle of idle $(share idle i) %, of too busy $(share too_busy i) %"
holds "$(share busy s)" -ge 50 "a busy process is seen where it was busy"
holds "$(share idle s)" -le 20 "and not where it was idle"
holds "$(share idle i)" -ge 40 "what was idle is idle"
holds "$(share too_busy l)" -ge 60 "a node that has no time for the sampler is told as that"
holds "$(share too_busy i)" -le 20 "and not as idle"

# total FILE [FROM TO]: the values of all cells, or of those columns
total() { python3 -c 'import json, sys
h = json.load(open(sys.argv[1])); first, last = (int(a) for a in sys.argv[2:4]) if len(sys.argv) > 2 else (0, h["columns"])
print(sum(h["values"][first * h["rows"]:last * h["rows"]]))' "$@"; }
weight() { # OPTION...: what a flame graph weighs in all; where nothing weighs anything there is none
  "$kprof" flame --db "$db" --profile 1 --json "$@" >"$scratch/weight.json" 2>"$scratch/weight.log" ||
    { grep -q '^kprof flame: nothing in profile 1 weighs' "$scratch/weight.log" && echo 0 && return; }
  python3 -c 'import json, sys
print(sum(s["self"] for s in json.load(open(sys.argv[1]))["stacks"]))' "$scratch/weight.json"
}
is "$(total "$scratch/samples.json")" "$(sql "SELECT looks + unchanged + unanswered FROM profile_sampled WHERE profile = 1")" \
  "each look is in one cell"
is "$(total "$scratch/heat.json")" "$(weight --metric active)" "cells and flame graph count the same"
# two seconds that begin with the first in which something was active
from=$(python3 -c 'import json, sys
h = json.load(open(sys.argv[1]))
print(next(i for i, v in enumerate(h["values"]) if v) // h["rows"])' "$scratch/heat.json")
until=$((from + 2))
stretch=(--from "${from}s" --to "${until}s")
is "$(total "$scratch/heat.json" "$from" "$until")" "$(weight --metric active "${stretch[@]}")" "of a stretch, too"
is "$(total "$scratch/reductions.json" "$from" "$until")" "$(weight --metric reductions "${stretch[@]}")" "and by another metric"

# A sampler with next to no budget for 200 processes that all run holds itself back.
is "$(target_eval "$node" '[spawn(fun F() -> receive after 1 -> F() end end) || _ <- lists:seq(1, 200)], ok.')" ok "many processes run"
sample --for 6s --budget 0.7% >"$scratch/held.log" 2>&1 || fail "kprof sample: $(cat "$scratch/held.log")"
heat --profile 2 --json >"$scratch/heat.json"
held=$(python3 -c 'import json, sys; print("".join(json.load(sys.stdin)["states"]).count("h"))' <"$scratch/heat.json")
holds "$held" -ge 20 "a sampler that holds itself back is told as that"

heat --profile 1 --out "$scratch/x.svg" >"$scratch/heat.txt"
has "$scratch/heat.txt" '^!.* too busy: the node had no time for the sampler \([0-9.]+ (ms|s)\)$' "the terminal's map has a legend"
has "$scratch/heat.txt" '^ *0 .[^ ]' "and rows"
has_not "$scratch/heat.txt" $'\e' "and no colours where there is no terminal"
python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$scratch/x.svg" || fail "the picture is no XML"
ok "the picture is well-formed"

# The same looks for those who read the text of perf script.
for metric in active reductions; do
  "$kprof" flame --db "$db" --profile 1 --metric $metric "${stretch[@]}" --out "$scratch/x.perf.txt" >/dev/null
  perl "$here/perf_reader.pl" <"$scratch/x.perf.txt" >"$scratch/read" || fail "perf's text: $(cat "$scratch/read")"
  is "$(awk -F'|' '$1 == "collapse" { n += $3 } END { print n }' "$scratch/read")" "$(weight --metric $metric "${stretch[@]}")" \
    "perf's text weighs the same by $metric"
done
has "$scratch/x.perf.txt" 'metric_erlang_memory: [0-9]+, -?[0-9]+ ' "with metrics"

command -v chromium >/dev/null || { echo "no chromium: the picture is not worked"; exit 0; }
{
  sed -e '/<\/svg>/d' "$scratch/x.svg"
  echo '<script><![CDATA['
  cat "$here/heat_svg_driver.js"
  echo ']]></script></svg>'
} >"$scratch/driven.svg"
HOME=$scratch/home timeout 300 chromium --headless --no-sandbox --enable-unsafe-swiftshader --no-first-run \
  --disable-background-networking --proxy-server=127.0.0.1:9 --allow-file-access-from-files --user-data-dir="$scratch/browser" \
  --window-size=1400,1000 --enable-logging=stderr --virtual-time-budget=20000 --dump-dom "file://$scratch/driven.svg" \
  >"$scratch/dom" 2>"$scratch/browser.txt" || fail "chromium"
sed -n '/>driver$/,/^driven$/p' "$scratch/dom" >"$scratch/driver"
told() { sed -n "s/^$1|//p" "$scratch/driver"; }
is "$(grep -c CONSOLE "$scratch/browser.txt")" 0 "its script says nothing"
is "$(told error)" "" "the picture is worked without an error"
has "$scratch/driver" '^driven$' "to the end"
is "$(told hover | cut -d' ' -f1-4)" "--from 2.2s --to 2.22s" "the range under the pointer"
is "$(told drag | cut -d' ' -f1-4)" "--from 2.2s --to 3.62s" "a drag chooses a range"
is "$(told back | cut -d' ' -f1-4)" "--from 1.9s --to 2.22s" "backwards, too"
is "$(told keys | cut -d' ' -f1-4)" "--from 1.9s --to 2.92s" "and keys"
is "$(told escape)" "Drag to choose a range, c copies it: to be pasted behind kprof flame --profile ID" "Escape takes it back"
range=$(told drag | cut -d' ' -f1-4)
# shellcheck disable=SC2086 # its words
is "$(told drag | sed -E 's/.*[0-9]s   ([0-9,]+) samples?,.*/\1/; s/,//g')" "$(weight --metric active $range)" \
  "pasted behind kprof flame, it draws what the picture says"
