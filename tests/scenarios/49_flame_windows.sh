#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: where requests are rare, the patterns of `kprof flame` stand for 5 s at a time with pauses of the same length, until
# there are as many as are wanted, or its time is over. Requests that do not lie whole in such a window are not in the profile. Processes
# that could not be followed into are told, and followed from then on. Two nodes are traced fully at once.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

chmod 400 "$scratch/cookie"
name=windows_$$
node=$name@localhost

off() { is "$(target_eval "$node" 'scenario_undone:stands().')" 0 "$1"; }
# within BOOLEAN EXPRESSION WHAT: once patterns stand, or not, before they are off or on again
within() { is "$(target_eval "$node" "scenario_undone:await($1), $2.")" ok "$3"; }
request() { is "$(target_eval "$node" "scenario_flame:requests($1).")" ok "$1 requests $2"; }
attached() { grep -qs '^tracing ' "$scratch/attach.log"; }
# flame REQUESTS SECONDS: in the background
flame() {
  start "$scratch/flame.log" "$kprof" flame "$node" --collector "127.0.0.1:$collector_port" --db "$db" --requests "$1" \
    --module scenario_flame --module timer --for "$2"
  flame=$!
}

start_collector
start_shop "$name"
is "$(target_eval "$node" 'scenario_flame:start().')" ok "the application runs"
start "$scratch/attach.log" "$kprof" attach "$node" --cookie-file "$scratch/cookie" --collector "127.0.0.1:$collector_port" \
  --tracer "$tracer" --entry scenario_flame:handle/1 --tier serve=scenario_flame:serve/0 --json
wait_for 30 "kprof attach traces" attached
request 2 "from which the processes are known"
wait_for 15 "they are over" ledger_reaches requests_complete 2

# A window is short for a busy machine: a request that does not lie whole in it is made again in the next one.
made=0
made() { within "$1" "$3" "$4" && made=$((made + $2)); } # made BOOLEAN REQUESTS EXPRESSION WHAT
has_one() { grep -q '^1 of 4 requests' "$scratch/flame.log"; }
flame 4 200s
for ((window = 0; window < 5; window++)); do
  made true 1 'gen_server:stop(scenario_flame_server),
    {ok, _} = gen_server:start({local, scenario_flame_server}, scenario_flame, [], []),
    scenario_flame:requests(1)' "a request in a window, through a process that is another now"
  ! soon 3 has_one || break
done
has_one || fail "a request that lies whole in a window is in none"
made true 3 'scenario_undone:await(false), scenario_flame:requests(3)' "three between two windows"
made true 3 'scenario_flame:requests(3)' "three in the next one"
until soon 8 gone "$flame"; do made true 1 'scenario_flame:requests(1)' "one more, as one was not whole in it"; done
ends "$flame" 30
is "$status" 0 "it ends with the last request wanted: $(tail -n 1 "$scratch/flame.log")"
is "$(sql 'SELECT requests FROM profiles WHERE id = 1')" 4 "the profile has those of both windows"
is "$(sql "SELECT sum(self) FROM profile_stacks WHERE profile = 1 AND metric = 'calls' AND name = 'scenario_flame:inner/0'")" 4 "each whole"
off "no patterns are left"

has "$scratch/flame.log" '^Not followed into <0\.[0-9.]+> scenario_flame_server: it had no flag yet; 1 of 4 requests$' \
  "who was not followed at first is told"
is "$(sql 'SELECT name || "|" || requests FROM profile_missed WHERE profile = 1')" "scenario_flame_server|1" "and kept"
"$kprof" profiles --db "$db" --json >"$scratch/profiles.json"
is "$(sqlite3 :memory: "SELECT json_extract(readfile('$scratch/profiles.json'), '\$.profiles[0].missed[0].name')")" \
  scenario_flame_server "kprof profiles --json has it"
# those that were not whole are among neither
others=$(sql 'SELECT others FROM profile_requests WHERE profile = 1 AND requests = 4')
holds "$others" -ge 3 "requests between two windows are what the traced ones are compared with"
holds "$others" -le $((made - 4)) "and no others"
has "$scratch/flame.log" "4 requests, mean [0-9.]+ [mµ]?s; $others that only the tiers traced, mean [0-9.]+ [mµ]?s\$" "which is told"
is "$(sql "SELECT sum(self) FROM profile_stacks WHERE profile = 1 AND metric = 'calls' AND name = 'scenario_flame:handle_call/3'")" 3 \
  "and followed from then on"

is "$(ledger reloads)" 0 "and the tiers are as they were, which nobody takes for a reload"

flame 4 22s # three windows
for ((window = 0; window < 2; window++)); do
  within true 'scenario_flame:requests(1)' "one of four"
  ! soon 3 has_one || break
done
ends "$flame" 60
is "$status" 0 "it ends when its time is over, with what it has: $(tail -n 1 "$scratch/flame.log")"
is "$(sql 'SELECT requests FROM profiles WHERE id = 2')" 1 "that is one"
off "no patterns are left"

# two nodes at once
other=other_$$
first=$node
start_shop "$other"
node=$other@localhost
is "$(target_eval "$node" 'scenario_flame:start().')" ok "the application runs on another node"
start "$scratch/attach2.log" "$kprof" attach "$node" --cookie-file "$scratch/cookie" --collector "127.0.0.1:$collector_port" \
  --tracer "$tracer" --entry scenario_flame:handle/1 --json
wait_for 30 "kprof attach traces it, too" grep -qs '^tracing ' "$scratch/attach2.log"
request 2 "from which its processes are known"
flame 3 60s
both=("$flame")
within true ok "patterns stand there"
node=$first
mv "$scratch/flame.log" "$scratch/flame1.log"
flame 2 60s
both+=("$flame")
for node in "$first" "$other@localhost"; do
  is "$(target_eval "$node" 'spawn(fun() -> [{scenario_flame:requests(1), timer:sleep(200)} || _ <- lists:seq(1, 100)] end), ok.')" ok \
    "requests of $node"
done
for flame in "${both[@]}"; do
  ends "$flame" 30
  is "$status" 0 "each ends"
done
is "$(sql 'SELECT group_concat(node || " " || requests, ", ") FROM (SELECT * FROM profiles WHERE id > 2 ORDER BY requests)')" \
  "$first 2, $node 3" "each with its own requests"

# Requests run one after the other in one process, and one is always open when functions begin to be traced and when that ends. Before
# OTP 27 the tiers rest at these moments, so its end is never seen: that must not hide those that follow it.
node=$first
before=$(ledger requests_complete)
target_eval "$node" "Until = erlang:monotonic_time(second) + 12, F = fun(Go, N) -> case erlang:monotonic_time(second) < Until of
  true -> ok = scenario_flame:requests(1), Go(Go, N + 1); false -> N end end, F(F, 0)." >"$scratch/made" &
making=$!
flame 1000 3s
ends "$flame" 40
wait "$making"
made=$(cat "$scratch/made")
wait_for 30 "most of $made requests are complete" ledger_reaches requests_complete "$((before + made / 2))"
is "$(sql "SELECT coalesce(sum(requests_expired), 0) FROM ledger WHERE node = '$first' AND resolution_s = 10")" 0 \
  "and none is waited for in vain"
