#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: a node that has nothing of kprof is sampled by one command, and however that ends nothing is left in the node.
# kprof top shows what its processes are known to do: who is busy, whose queue grows, who sleeps, which functions run; on a terminal
# it obeys keys, and leaves the terminal as it was. kprof sample --pid says why a mailbox is long. What a collector sends that is
# nonsense ends it with an error.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

chmod 400 "$scratch/cookie"
export HOME=$scratch/home
node=top_$$@localhost
said=$scratch/said.log
own=$scratch/own.db

start_erl "top_$$"
is "$(target_eval "$node" 'scenario_sample:start().')" ok "the application runs"
is "$(target_eval "$node" 'scenario_left:prepare(), scenario_left:snapshot("before").')" ok "the node before"
untouched_now() { [ "$( (trap - EXIT; target_eval "$node" 'scenario_left:differences("before").') 2>/dev/null)" = "[]" ]; }
# untouched SECONDS WHEN: modules, processes, flags, the depth of stacks and more are as before. After 10 s it would have left by itself.
untouched() { wait_for "$1" "the node is as it was $2" untouched_now; ok "nothing is left in the node $2"; }
collectors() { pgrep -f "^kprof-collector .*--db $own( |\$)" || true; }
no_collector() { [ -z "$(collectors)" ]; }
has_no_collector() { wait_for 20 "no collector is left $1" no_collector; ok "no collector is left $1"; }
begin() { # ARGUMENT...: kprof in the background; what it says is in $said
  start "$said" "$kprof" "$@"
  pid=$!
}
looks() { grep -Eqs '^[1-9][0-9]* looks' "$said"; }
looks_or_ended() { looks || gone "$pid"; }
begin_sample() {
  begin sample "$node" --db "$own" --registered scenario_works --for 60s
  wait_for 30 "it looks" looks_or_ended
  looks || fail "kprof sample ended: $(cat "$said")"
  is "$(target_eval "$node" '{erlang:system_flag(backtrace_depth, 64), code:is_loaded(kprof_sampler) =/= false}.')" '{64,true}' \
    "meanwhile kprof is in the node"
}

# -- a node that has nothing of kprof ----------------------------------------------------------------------------------
begin sample "$node" --db "$own" --registered scenario_works --registered scenario_full --for 3s --budget 10% --out "$scratch/s.svg"
ends "$pid" 60
is "$status" 0 "kprof sample --db: $(tail -n 1 "$said")"
is "$(sed -n 1p "$said" | sed 's/:[0-9]*,/:PORT,/')" "running a collector at 127.0.0.1:PORT, which writes $own" "which collector"
has "$said" "^tracing $node: no tiers, collector 127.0.0.1:" "nothing is traced"
has "$said" '^Profile 1: [0-9]+ looks at 2 processes' "what it is of"
has "$scratch/s.svg" '<title>scenario_sample:works/0$' "a picture"
untouched 2 "after kprof sample"
has_no_collector "after kprof sample"

# -- Ctrl-C, and killed ------------------------------------------------------------------------------------------------
begin_sample
kill -INT "$pid"
ends "$pid" 30
is "$status" 0 "Ctrl-C keeps what there is"
is "$(sql 'SELECT count(*) FROM profiles' "$own")" 2 "as a profile"
untouched 2 "after Ctrl-C"
has_no_collector "after Ctrl-C"

begin_sample
kill -KILL "$pid"
untouched 20 "after kill -9 of kprof sample"
has_no_collector "after kill -9 of kprof sample"

begin_sample
kill -KILL "$(collectors)"
ends "$pid" 60
is "$status" 1 "kprof sample ends when its collector is killed"
has "$said" '^kprof sample: the collector is gone' "and says so"
untouched 20 "after kill -9 of its collector"

# -- kprof top ---------------------------------------------------------------------------------------------------------
mkdir "$scratch/tmp"
TMPDIR=$scratch/tmp begin top "$node" --count 4 --json
ends "$pid" 60
is "$status" 0 "kprof top --json: $(tail -n 1 "$said" | cut -c1-200)"
grep '^{' "$said" >"$scratch/top.json"
is "$(wc -l <"$scratch/top.json")" 4 "an object each time"
cat >"$scratch/top.py" <<'END'
import json, sys
views = [json.loads(line) for line in open(sys.argv[1])]
last = views[1:]  # all processes are there from the second one on
def process(view, name):
    found = [p for p in view["processes"] if p["name"] == name]
    assert len(found) == 1, (name, found)
    return found[0]
for v in last:
    works, full = process(v, "scenario_works"), process(v, "scenario_full")
    asleep = [p for p in v["processes"] if p["function"] == "scenario_sample:sleeps/0"]
    assert works is not None and v["processes"][0]["pid"] == works["pid"], "the busiest is first"
    assert full["queue_change"] > 0 and full["queue"] >= full["queue_change"], full
    assert full["function"] == "scenario_sample:is_full/0", full
    assert works["queue"] == 0 and works["function"].startswith("scenario_sample:"), works
    assert len(asleep) == 5 and all(p["status"] == "waiting" and p["reductions"] == 0 for p in asleep), asleep
    assert sum(f["self"] for f in v["functions"]) == v["busy"], "each look that counts has one function"
    assert sum(p["samples"] for p in v["processes"]) == v["samples"], "and each look one process"
# a message each 10 ms: what a queue grows by is told from one view to the next, nothing twice and nothing left out
queues = [process(v, "scenario_full") for v in last]
assert all(q["queue"] - p["queue"] == q["queue_change"] for p, q in zip(queues, queues[1:])), queues
grown, seconds = queues[-1]["queue"] - queues[0]["queue"], sum(v["seconds"] for v in last[1:])
assert 0.5 < grown / seconds / 100 < 1.5, (grown, seconds)
two = sum(f["self"] for v in last for f in v["functions"] if f["name"] == "scenario_sample:two/1")
one = sum(f["self"] for v in last for f in v["functions"] if f["name"] == "scenario_sample:one/1")
both = sum(f["total"] for v in last for f in v["functions"] if f["name"] == "scenario_sample:works/0")
assert 3 * two > 2 * one > 0 and both >= one + two, (one, two, both)  # it runs twice as often, and looks are few
print("true")
END
is "$(python3 "$scratch/top.py" "$scratch/top.json" 2>&1 | tail -n 1)" true \
  "who is busy, whose queue grows, who sleeps, and which functions run"
is "$(find "$scratch/tmp" | wc -l)" 1 "no database is left"
untouched 2 "after kprof top"
has_no_tops() { [ -z "$(pgrep -f "^kprof-collector .*--db $scratch/tmp/" || true)" ]; }
wait_for 20 "no collector is left" has_no_tops

begin top "$node" --db "$own" --by queue --count 2 --limit 3
ends "$pid" 60
is "$status" 0 "kprof top as text"
is "$(grep -c 'by queue, ' "$said")" 2 "one table follows the other"
is "$(awk '/ reds\/s /{ getline; print }' "$said" | grep -c 'scenario_full')" 2 "the longest queue is first"
has_not "$said" $'\e' "without a terminal there is nothing that steers one"
begin top "$node" --db "$own" --pid '<0.99999.0>'
ends "$pid" 60
is "$status" 10 "a process that is not there: $(tail -n 1 "$said")"

begin top "$node" --db "$own"
shown() { grep -qs ' looks in ' "$said"; }
wait_for 30 "it shows" shown
kill -INT "$pid"
ends "$pid" 30
is "$status" 0 "Ctrl-C ends it"
untouched 2 "after Ctrl-C"
begin top "$node" --db "$own"
wait_for 30 "it shows" shown
kill -KILL "$pid"
untouched 20 "after kill -9 of kprof top"
has_no_collector "after that"

# -- why is this mailbox long? -----------------------------------------------------------------------------------------
pid_of() { target_eval "$node" "pid_to_list(whereis($1))." | tr -d '"'; }
full=$(pid_of scenario_full)
begin sample "$node" --db "$own" --pid "$full" --for 4s
ends "$pid" 60
is "$status" 0 "kprof sample --pid: $(tail -n 1 "$said")"
has "$said" "^scenario_full $full, began with erlang:apply/2$" "who it is"
has "$said" '^  queue +[0-9,]+ -> [0-9,]+ messages in [0-9.]+ s, [0-9]+ more a second$' "how its queue grows"
has "$said" '^  status +.*waiting (9[0-9](\.[0-9])?|100) %' "what it does"
has "$said" '^  reductions +[0-9,]+ a second$' "how much"
has "$said" '^  looks +[0-9]{2,3} answered, [0-9]{1,2} not$' "what was answered"
has "$said" '^ +scenario_sample:is_full/0$' "and where it is"
holds "$(grep -vc '^running\|^tracing\|looks at' "$said")" -le 24 "in one screen"
begin sample "$node" --db "$own" --pid "$full" --registered scenario_works --registered scenario_sleeps --for 4s --json
ends "$pid" 60
is "$status" 0 "kprof sample --pid --json"
cat >"$scratch/seen.py" <<'END'
import json, sys
seen = {p["name"]: p for p in json.loads([l for l in open(sys.argv[1]) if l.startswith("{")][0])["processes_seen"]}
full, works, asleep = seen["scenario_full"], seen["scenario_works"], seen["scenario_sleeps"]
q = full["queue"]
# a message each 10 ms
assert q["last"] > q["first"] and 50 < q["per_s"] < 150, q
assert abs((q["last"] - q["first"]) / (q["last_s"] - q["first_s"]) - q["per_s"]) < 0.01, q
assert full["stack"][0] == "scenario_sample:is_full/0", full
assert works["queue"]["last"] == 0 and works["queue"]["per_s"] == 0, works
busy = works["statuses"].get("running", 0) + works["statuses"].get("runnable", 0)
assert busy == works["looks"] > 20 and "scenario_sample:works/0" in works["stack"], works
assert works["reductions_per_s"] > 1000 * full["reductions_per_s"], (works, full)
assert asleep["statuses"] == {"waiting": asleep["looks"]} and asleep["reductions_per_s"] < 1, asleep
assert asleep["stack"][0] == "scenario_sample:sleeps/0" and asleep["stack_looks"] == asleep["looks"], asleep
print("true")
END
is "$(python3 "$scratch/seen.py" "$said" 2>&1 | tail -n 1)" true \
  "a queue that grows, one who works and one who sleeps are told as what they are"
untouched 2 "after that"

# -- on a terminal -----------------------------------------------------------------------------------------------------
if command -v tmux >/dev/null; then
  t() { tmux -S "$scratch/tmux.sock" -f /dev/null "$@"; }
  shows() { t capture-pane -p | grep -Eq -- "$1"; }
  echo "PS1='ready> '" >"$scratch/bashrc"
  t new-session -d -x 110 -y 30 -e "HOME=$scratch/home" "exec bash --noprofile --rcfile $scratch/bashrc"
  groups+=("$(t display-message -p '#{pid}')")
  wait_for 10 "a shell" shows '^ready> *$'
  line() { t send-keys -l "$1"; t send-keys Enter; }
  line "stty -a >$scratch/before; clear; $kprof top $node --db $own; stty -a >$scratch/after; echo status \$?"
  wait_for 30 "a table" shows '^ top_.* by reductions, .* looks in '
  t send-keys l
  wait_for 30 "the key l" shows '^ top_.* by queue, .* looks in '
  ok "a key has it look at others"
  # what is shown at once is the last view, under the new head
  in_order() { [ "$(t capture-pane -p | awk '/ reds\/s /{ getline; print }' | grep -c scenario_full)" = 1 ]; }
  wait_for 20 "in their order" in_order
  ok "in their order"
  is "$(t capture-pane -p | grep -c ' looks in ')" 1 "one table is drawn anew"
  holds "$(t capture-pane -p | wc -L)" -le 110 "which fits"
  t send-keys q
  wait_for 30 "the key q" shows '^status 0$'
  is "$(cat "$scratch/after")" "$(cat "$scratch/before")" "the terminal is as it was"
  line "stty -a >$scratch/before; clear; $kprof top $node --db $own --by memory; stty -a >$scratch/after; echo status \$?"
  wait_for 30 "a table" shows '^ top_.* by memory, .* looks in '
  t send-keys C-c
  wait_for 30 "Ctrl-C" shows '^status'
  is "$(t capture-pane -p | grep '^status')" "status 0" "Ctrl-C ends it there, too"
  is "$(cat "$scratch/after")" "$(cat "$scratch/before")" "and leaves the terminal as it was"
  untouched 2 "after that"
else
  echo "there is no tmux: a terminal cannot be tried"
fi

# -- through a collector that runs -------------------------------------------------------------------------------------
start_collector
begin sample "$node" --collector "127.0.0.1:$collector_port" --registered scenario_works --for 2s
ends "$pid" 60
is "$status" 0 "in and out through a collector that runs: $(tail -n 1 "$said")"
has "$said" '^Profile 1: [0-9]+ looks at 1 process' "whose database is found"
untouched 2 "after that"
refuses() { # STATUS PATTERN WHAT ARGUMENT...
  local want=$1 pattern=$2 what=$3 got=0
  shift 3
  timeout 60 "$kprof" "$@" >"$scratch/refusal.log" 2>&1 || got=$?
  is "$got" "$want" "$what: $(tail -n 1 "$scratch/refusal.log")"
  has "$scratch/refusal.log" "$pattern" "$what, and why"
}
refuses 3 'nobody' "a node that is not up" sample nobody@localhost --collector "127.0.0.1:$collector_port"
refuses 2 'listen is for' "--listen with --collector" sample "$node" --collector "127.0.0.1:$collector_port" --listen 0
refuses 2 'traces nothing' "kprof attach --no-tiers with a tier" attach "$node" --no-tiers --tier map=lists:map/2

# -- a collector that sends nonsense -----------------------------------------------------------------------------------
for lie in empty no_time numbers negative many bytes long; do
  rm -f "$scratch/liar.port"
  start "$scratch/liar.log" python3 "$(dirname "${BASH_SOURCE[0]}")/top_liar.py" "$node" "$lie" "$scratch/liar.port"
  wait_for 20 "the liar listens" test -s "$scratch/liar.port"
  refuses 1 '^kprof top: (what the collector sends is no view of a node|the collector is gone: )' "nonsense from a collector ($lie)" \
    top "$node" --collector "127.0.0.1:$(cat "$scratch/liar.port")"
done
rm -f "$scratch/liar.port"
start "$scratch/liar.log" python3 "$(dirname "${BASH_SOURCE[0]}")/top_liar.py" "$node" steers "$scratch/liar.port"
wait_for 20 "the liar listens" test -s "$scratch/liar.port"
begin top "$node" --collector "127.0.0.1:$(cat "$scratch/liar.port")" --count 1
ends "$pid" 30
is "$status" 0 "names that could steer a terminal"
has "$said" '100\.0 % m:\?\[2J/0$' "are shown without that"
