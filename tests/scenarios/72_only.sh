#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: each look tells for a request of which identity its process works, as the application knows it: in functions that
# only one of them calls, also in a server that the token reaches with a message; work for none is of none, and what goes on or waits
# with the token of a request that is over is told apart. --only draws one identity. A run that stands for ever tells the same, in each of
# its profiles.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

chmod 400 "$scratch/cookie"
name=only_$$
node=$name@localhost
cat >"$scratch/only.config" <<'END'
{tier_config, [{request, {scenario_only, request, 2}}]}.
{entry, {scenario_only, request, 2}}.
{identity_f, fun({scenario_only, request, [Kind, _]}) -> Kind; (_) -> undefined end}.
{sampling, #{slice => 5, hz => 20, budget => 10, registered => [scenario_worker_1, scenario_worker_2, scenario_server, scenario_plain]}}.
END
start_collector
start_erl "$name"
is "$(target_eval "$node" 'scenario_only:start().')" ok "the application runs"
start_tracing "$name" "$scratch/only.config"
# those that had begun before have no token, and are over
wait_for 60 "each worker has made requests" ledger_reaches requests_complete 20
token() { target_eval "$node" 'element(2, process_info(whereis(scenario_idle), sequential_trace_token)).'; }
is_behind() { [ "$(token)" != "[]" ]; }
wait_for 60 "the idle process has the token of a request" is_behind

names=(--registered scenario_server --registered scenario_idle --registered scenario_plain)
for i in 1 2 3; do names+=(--registered "scenario_worker_$i"); done
sample() { "$kprof" sample "$node" --collector "127.0.0.1:$collector_port" --db "$db" "$@"; }
of() { "$kprof" flame --db "$db" --profile "$profile" --json "$@"; }

start "$scratch/sample.log" "$kprof" sample "$node" --collector "127.0.0.1:$collector_port" --db "$db" --for 120s --hz 200 --budget 20% \
  "${names[@]}"
enough() {
  local looks
  looks=$(grep -oE '^[0-9]+ looks' "$scratch/sample.log" | tail -n 1 | cut -d' ' -f1)
  [ "${looks:-0}" -ge 1500 ] || gone $!
}
wait_for 120 "1,500 looks" enough
kill -INT $!
ends $! 30
is "$status" 0 "kprof sample: $(tail -n 1 "$scratch/sample.log")"
profile=$(sql "SELECT id FROM profile_rows WHERE label = ''")

# Looks by identity and function: the outermost group, and the innermost function that is the application's.
cat >"$scratch/by.py" <<'END'
import json, sys
stacks = json.load(sys.stdin)["stacks"]
counts = {}
for s in stacks:
    if s["self"] == 0:
        continue
    function, group, at = "", "", s
    while at["stack"] != 0:
        name = at["name"].split(":")[-1].split("/")[0]
        if not function and name in ("red", "blue", "own", "part_red", "part_blue", "idle", "plain"):
            function = name
        group, at = at["name"], stacks[at["parent"]]
    counts[group, function] = counts.get((group, function), 0) + s["self"]
def looks(*functions, of=None, but=None):
    return sum(n for (g, f), n in counts.items() if f in functions and (of is None or g in of) and (but is None or g not in but))
print(eval(sys.argv[1]))
END
by() { of --group identity | python3 "$scratch/by.py" "$1"; }
of --group identity >"$scratch/groups.json"
for kind in red blue; do
  holds "$(by "round(looks('$kind', of=['$kind']))")" -ge 50 "$kind work is of $kind requests"
  holds "$(by "round(looks('part_$kind', of=['$kind']))")" -ge 20 "and in the server, too"
  is "$(by "round(looks('$kind', 'part_$kind', but=['$kind', '_not_known', '_ended']))")" 0 "of no other ones"
done
all=$(by "round(looks('red', 'blue', 'part_red', 'part_blue'))")
holds "$(by "round(looks('red', 'blue', 'part_red', 'part_blue', of=['_not_known']))")" -le $((all / 10)) "of nearly all it is known"
holds "$(by "round(looks('plain', of=['_none']))")" -ge 50 "work for no request is of none"
is "$(by "round(looks('plain', but=['_none']))")" 0 "and of no request"
# Its process has the token still. Looks that are answered late have no exact times: about a request's end they may be on either side.
holds "$(by "round(looks('red', 'blue', 'part_red', 'part_blue', of=['_ended']))")" -le $((all / 5)) "few looks are behind the end"
own=$(by "round(looks('own'))")
holds "$(by "round(looks('own', of=['_ended']))")" -ge $((own / 3)) "work behind a request's end is told apart"
holds "$(by "round(looks('idle', of=['_ended']))")" -ge 10 "who waits with the token of a request that is over is told apart"
red=$(of --only red | python3 -c 'import json, sys; print(round(sum(s["self"] for s in json.load(sys.stdin)["stacks"])))')
is "$(by "round(sum(n for (g, f), n in counts.items() if g == 'red'))")" "$red" "--only draws the looks of one identity"
is "$(sql "SELECT coalesce(sum(self), 0) FROM profile_stacks
           WHERE profile = $profile AND identity = 'red' AND metric = 'samples'")" "$red" "and so does the database"
sample --only blue --for 2s --hz 200 --budget 20% "${names[@]}" --json >"$scratch/blue.json" 2>"$scratch/blue.log" ||
  fail "kprof sample --only: $(cat "$scratch/blue.log")"
is "$(python3 -c 'import json, sys
names = {s["name"] for s in json.load(open(sys.argv[1]))["stacks"]}
print("scenario_only:blue/1" in names, "scenario_only:red/1" in names)' "$scratch/blue.json")" "True False" "kprof sample --only"

# For ever. The first profile has looks at requests that had begun before tracing.
profiles() { sql "SELECT id FROM profile_rows WHERE label = 'always' ORDER BY id LIMIT 2 OFFSET 1"; }
two() { [ "$(profiles | wc -l)" = 2 ]; }
wait_for 60 "two profiles of the run that stands" two
for profile in $(profiles); do
  for kind in red blue; do
    holds "$(by "round(looks('$kind', 'part_$kind', of=['$kind']))")" -ge 1 "profile $profile has $kind work of $kind requests"
    is "$(by "round(looks('$kind', 'part_$kind', but=['$kind', '_not_known', '_ended']))")" 0 "and of no other ones"
  done
  is "$(by "round(looks('plain', but=['_none']))")" 0 "and what is for none of none"
done
