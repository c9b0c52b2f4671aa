#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: triggers of a live node. A queue that grows above the limit begins one run of stack sampling, and not two within
# --every; its profile tells why and shows the process. A trigger that was removed begins none. One whose collector is lost goes on, and so
# does the node; the run comes with the next collector. So do the triggers of start_trace, and the percentile of a tier.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

name=trigger_$$
node=$name@localhost

# trigger STATUS ARGUMENT...: what it says is in trigger.txt
trigger() {
  local want=$1 got=0
  shift
  timeout 200 "$kprof" trigger "$name" "$@" --collector "127.0.0.1:$collector_port" >"$scratch/trigger.txt" 2>&1 || got=$?
  is "$got" "$want" "kprof trigger $* ends with $want"
}
says() { has "$scratch/trigger.txt" "$1" "it says: $1"; }
# field TRIGGER FIELD: of the list
field() {
  timeout 200 "$kprof" trigger "$name" list --json --collector "127.0.0.1:$collector_port" >"$scratch/list.json" 2>/dev/null || return 1
  sqlite3 :memory: "SELECT t.value ->> '$2' FROM json_each(readfile('$scratch/list.json'), '\$.triggers') AS t
    WHERE t.value ->> 'name' = '$1'"
}
sees() { # TRIGGER LEAST: its value
  local value
  value=$(field "$1" value) || return 1
  [ -n "$value" ] && [ "${value%.*}" -ge "$2" ]
}
profiles() { sql "SELECT count(*) FROM profiles WHERE kind = 'samples'"; }
begun_by() { sql "SELECT settings ->> 'trigger', name FROM profiles WHERE id = $1"; } # PROFILE
label() { sql "SELECT label FROM profile_rows WHERE id = $1"; } # PROFILE
kept() { [ "$(profiles)" -ge "$1" ]; }
events() { # of the node, to history.txt
  "$kprof" nodes --history --json --collector "127.0.0.1:$collector_port" >"$scratch/nodes.json"
  sqlite3 :memory: "SELECT h.value ->> 'text' FROM json_each(readfile('$scratch/nodes.json'), '\$.nodes[0].history') AS h" \
    >"$scratch/history.txt"
}
# fill PROCESS COUNT: a registered process that only sleeps, with so many messages more
fill() {
  is "$(target_eval "$node" "
    Sleep = fun() -> receive never -> ok end end,
    undefined =/= whereis($1) orelse register($1, spawn(Sleep)),
    [$1 ! {message, N} || N <- lists:seq(1, $2)], ok.")" ok "$1 has $2 messages more"
}

start_collector
start_shop "$name"
cat >"$scratch/config" <<END2
[{tier_config, [{http, {shop_http, handle_request, 2}}]},
 {triggers, [{tier_p99, http, {above_ms, 0.001}, #{for => 0, name => slow, sample => #{seconds => 2, name => "rush hour"}}},
             {memory, {above, 1 bsl 50}}]}].
END2
start_tracing "$name" "$scratch/config"

# -- those of start_trace ------------------------------------------------------------------------------------------------
trigger 0 list
says '^ *slow +1\.0 µs +0 s +- +10 min +0 +any time'
says '^ *memory +'
load --clients 2 --requests 20 || fail "the load failed"
wait_for 60 "calls of a tier begin a run" kept 1
is "$(begun_by 1)" "slow|rush hour" "its settings tell the trigger, and it has the name that was wanted"
is "$(label 1)" slow "it is labelled with the trigger's name"
ended() { events; grep -q 'the trigger slow: profile 1' "$scratch/history.txt"; }
wait_for 30 "its end is told" ended
trigger 0 remove slow
says 'the trigger slow is removed'

# -- a queue -------------------------------------------------------------------------------------------------------------
trigger 0 add message_queue_len --above 5000 --for 2s --every 1h --sample-for 3s --hz 50 --label long_queues --name q
says 'the trigger q is added'
trigger 1 add message_queue_len --above 5 --name q
says 'two triggers are named q'
fill scenario_full 4000
wait_for 60 "it sees the queue" sees q 4000
is "$(field q began)" 0 "below the limit it begins nothing"
fill scenario_full 2000
wait_for 60 "a run is kept" kept 2
is "$(label 2)" long_queues "it has the label"
has <(sql "SELECT name FROM profiles WHERE id = 2") '^the trigger q: 6000 messages in the queue of scenario_full' "its name tells why"
"$kprof" profiles --db "$db" >"$scratch/profiles.txt"
has "$scratch/profiles.txt" 'the trigger q: ' "kprof profiles tells it"
"$kprof" flame --db "$db" --profile 2 --group process --json >"$scratch/flame.json"
has "$scratch/flame.json" 'scenario_full' "the profile shows the process"
wait_for 10 "the profile's end is told" grep -q 'the trigger q: profile 2' "$collector_log"
events
has "$scratch/history.txt" 'the trigger q: 6000 messages in the queue of scenario_full .*, above 5000 for 2 s: stacks are sampled for 3 s' \
  "kprof nodes tells it"
has "$scratch/history.txt" 'the trigger q: profile 2' "and its end"
has "$collector_log" 'the trigger q: 6000 messages' "the log tells it"
fill scenario_full 100
wait_for 60 "it goes on looking" sees q 6100
is "$(field q began)" 1 "no second run within --every"
holds "$(field q again_ms)" -gt 3000000 "and it says when there may be one"
has <(field q process) '^scenario_full \(<' "and whose queue it is"

# -- removed -------------------------------------------------------------------------------------------------------------
trigger 0 add message_queue_len --above 20000 --for 0s --name removed
trigger 0 remove removed
trigger 1 remove removed
says 'there is no trigger removed'
fill scenario_other 30000
wait_for 60 "the long queue is seen" sees q 30000
sleep 3
is "$(profiles)" 2 "a trigger that was removed begins none"

# -- without a collector -------------------------------------------------------------------------------------------------
trigger 0 add message_queue_len --above 40000 --for 0s --sample-for 2s --name lost
kill -KILL "$collector_pid"
ends "$collector_pid" 5
is_waiting() { [ "$(target_eval "$node" 'kprof:status().')" = waiting ]; }
wait_for 30 "the node has lost its collector" is_waiting
fill scenario_other 30000
wait_for 60 "the trigger cannot begin a run" grep -q 'the trigger lost: .* but that cannot be now' "$scratch/$name.log"
is "$(target_eval "$node" 'kprof:status().')" waiting "the node goes on"
start_collector
wait_for 60 "it begins one when there is a collector again" kept 3
has <(sql "SELECT name FROM profiles WHERE id = 3") '^the trigger lost: ' "which is its own"
is "$(label 3)" lost "as its label tells"
is "$(field lost began)" 1 "and the only one"

# -- what cannot be done -------------------------------------------------------------------------------------------------
trigger 2 dance
trigger 2 add
trigger 2 add run_queue
trigger 2 add run_queue --above many
trigger 2 add run_queue --above 8GB
trigger 2 add run_queue --above 8 --for 5s --high-water
trigger 2 remove
trigger 1 add load --above 8
says 'a trigger is'
trigger 1 add tier_p99 nothing --above 1ms
says 'no tier is named nothing'
trigger 1 add run_queue --above 8 --every 1s
says 'every wants seconds'
trigger 0 add run_queue --above 8 --high-water
trigger 0 list
says '^ *run_queue +8 +new high +'
trigger 0 remove --all
trigger 0 list
says 'has no triggers'
stop_tracing
out() { [ "$(target_eval "$node" '{code:is_loaded(kprof_lookout), erlang:check_old_code(kprof_lookout)}.')" = "{false,false}" ]; }
wait_for 30 "nothing of it is left in the node" out
stop_collector
intact
