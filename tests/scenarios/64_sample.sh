#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: stacks of chosen processes of a real node are sampled, kept and drawn: what processes are known to do is what is seen,
# each look counts once whatever it is drawn by, Ctrl-C keeps what there is, and nothing is left in the node.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

chmod 400 "$scratch/cookie"
name=sample_$$
node=$name@localhost
start_collector
start_shop "$name"
is "$(target_eval "$node" 'scenario_sample:start().')" ok "the application runs"
depth=$(target_eval "$node" 'N = erlang:system_flag(backtrace_depth, 8), erlang:system_flag(backtrace_depth, N), N.')
start_tracing "$name"

sample() { "$kprof" sample "$node" --collector "127.0.0.1:$collector_port" --db "$db" "$@"; }
of() { "$kprof" flame --db "$db" --profile "$1" --json "${@:2}"; } # PROFILE OPTION...
# weight PROFILE FUNCTION OPTION...: what a function weighs by itself
weight() {
  of "$1" "${@:3}" | python3 -c 'import json, sys
print(round(sum(s["self"] for s in json.load(sys.stdin)["stacks"] if s["name"] == sys.argv[1])))' "$2"
}

sample --for 4s --registered scenario_works --registered scenario_full --budget 10% --out "$scratch/s.svg" >"$scratch/sample.log" 2>&1 ||
  fail "kprof sample: $(cat "$scratch/sample.log")"
has "$scratch/sample.log" '^Profile 1: [0-9]+ looks at 2 processes' "what it is of"
has "$scratch/s.svg" '<title>scenario_sample:works/0$' "a picture"
looks=$(sql "SELECT looks + unchanged + unanswered FROM profile_sampled WHERE profile = 1")
holds "$looks" -ge 50 "looks were made"
is "$(sql "SELECT sum(self) FROM profile_stacks WHERE profile = 1 AND metric = 'samples'")" "$looks" "each counts once in the database"
for group in none status process application memory queue; do
  is "$(of 1 --group "$group" | python3 -c 'import json, sys; print(sum(s["self"] for s in json.load(sys.stdin)["stacks"]))')" "$looks" \
    "and in a picture by $group"
done
holds "$(weight 1 scenario_sample:is_full/0 --metric queue_growth)" -ge 100 "a queue grew"
is "$(weight 1 scenario_sample:works/0 --metric queue_growth)" 0 "that one's alone"
refuses=$("$kprof" flame --db "$db" --profile 1 --metric waiting 2>&1) && fail "a metric of full traces was drawn of samples"
is "$refuses" "kprof flame: --metric waiting is of full traces, and profile 1 is of the other kind" "a metric of the other kind"

# -- shares: one/1 has a third of the reductions of all that work, and of their time ------------------------------------
crowd=12
is "$(target_eval "$node" "scenario_sample:crowd($crowd).")" ok "more that work"
names=()
for i in $(seq $crowd); do names+=(--registered "scenario_works_$i"); done
start "$scratch/shares.log" "$kprof" sample "$node" --collector "127.0.0.1:$collector_port" --db "$db" "${names[@]}" --hz 400 --budget 50% \
  --for 120s
enough() {
  local looks
  looks=$(grep -oE '^[0-9]+ looks' "$scratch/shares.log" | tail -n 1 | cut -d' ' -f1)
  [ "${looks:-0}" -ge 10000 ] || gone $!
}
wait_for 120 "10,000 looks" enough
kill -INT $!
ends $! 30
for metric in samples reductions; do
  one=$(weight 2 scenario_sample:one/1 --metric $metric) two=$(weight 2 scenario_sample:two/1 --metric $metric)
  share=$((one * 1000 / (one + two)))
  # reductions have the weight of what passed since the look before, which is much for few where the machine held looks up
  within=30
  [ $metric = samples ] || within=80
  holds $share -ge $((333 - within)) "one/1 has a third of $metric, within $((within / 10)) points: $share of 1,000"
  holds $share -le $((333 + within)) "and no more"
done

# Ctrl-C
start "$scratch/stopped.log" "$kprof" sample "$node" --collector "127.0.0.1:$collector_port" --db "$db" --registered scenario_works
begun() { grep -q '^[1-9][0-9]* looks' "$scratch/stopped.log"; }
wait_for 30 "it looks" begun
kill -INT $!
ends $! 30
is "$status" 0 "Ctrl-C keeps what there is"
is "$(sql "SELECT count(*) FROM profiles WHERE kind = 'samples'")" 3 "as a profile"
"$kprof" profiles --db "$db" >"$scratch/profiles" || fail "kprof profiles: $(cat "$scratch/profiles")"
is "$(grep -cE ' samples +[1-9][0-9,]* looks? ' "$scratch/profiles")" 3 "lists tell of looks: $(cat "$scratch/profiles")"
has_not "$scratch/profiles" 'request' "and not of requests"

# -- the node asks itself: kprof:sample/1 ------------------------------------------------------------------------------------
is "$(target_eval "$node" 'kprof:sample(#{hz => 0}).')" '{error,{bad_value,hz,0,"a number from 1 to 1000"}}' "wrong options"
is "$(target_eval "$node" '{error, Why} = kprof:sample(#{application => no_such}), kprof:format_error(Why).')" \
  '"there is no profile: no application runs here that is called no_such"' "an application that is not there"
is "$(target_eval "$node" 'Self = self(),
  spawn(fun() -> Self ! {first, kprof:sample(#{seconds => 3, registered => [scenario_works], name => "from inside"})} end),
  timer:sleep(500),
  {error, Why} = kprof:sample(#{}),
  {receive {first, {ok, #{profile := First, processes := N}}} -> {First, N} end, kprof:format_error(Why)}.')" \
  '{{4,1},"stack sampling that this node asked for runs already: try again when it is over"}' "kprof:sample/1, one at a time"
is "$(sql "SELECT kind || '|' || name FROM profiles WHERE id = 4")" "samples|from inside" "its profile"
holds "$(weight 4 scenario_sample:one/1)" -ge 1 "of the process that was named"

is "$(target_eval "$node" 'N = erlang:system_flag(backtrace_depth, 8), erlang:system_flag(backtrace_depth, N), N.')" "$depth" \
  "stacks are as deep as before"
