#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: the sample application, traced far past what its trace port can carry, stays well. The guard acts within some 100 ms:
# from then on, for 30 s, the rate is never less than 70 % of the untraced one, which a twin of the node tells that is under the same load
# on the same processors and not traced: never in a second on one scheduler, never in 2 s on two, where single seconds of two nodes that
# share two processors differ by a tenth and more though neither is traced. The node's memory stays under 150 MB over what it was, and the
# ledger tells each trip and paused millisecond, each message that was dropped, and how long the sampling was below what was asked for.
# On one scheduler and on two. And a node that gets a fraction of its processor, as others have it too, makes fewer messages than those that
# are too much for a whole one, and keeps as much of its rate: what is too much goes by the processor time that it gets.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cat >"$scratch/config" <<'CONFIG'
[{tier_config, [{http, {shop_http, handle_request, 2}}, {pool, {shop_worker, work, 2}}, {storage, {shop_storage, run, 2}},
                {render, {shop_render, page, 2}}, {burn, {shop_cost, burn, 1}}]}].
CONFIG
may_trip=1
start_collector

# load NAME SCHEDULERS COST: a node that makes requests without end, each of its schedulers bound to a processor.
load() {
  export ERL_FLAGS="+S $2:$2 +sbwt none"
  start_shop "$1" --truth false --http-cost "$3" --storage-cost "$3" --pool-cost "$3" --render-cost "$3"
  unset ERL_FLAGS
  is "$(target_eval "$1@localhost" 'erlang:system_info(schedulers_online).')" "$2" "schedulers of $1"
  taskset -apc "0-$(($2 - 1))" "$shop_pid" >/dev/null
  bind_schedulers "$shop_pid"
  target_eval "$1@localhost" 'scenario_overload:start(4).' >/dev/null
}

# bind_schedulers PID: the threads are named so before OTP 26, and from then on.
bind_schedulers() {
  local thread name
  for thread in /proc/"$1"/task/*; do
    name=$(cat "$thread/comm")
    if [[ $name =~ ^([0-9]+)_scheduler$ || $name =~ ^erts_sched_([0-9]+)$ ]]; then
      taskset -pc $((BASH_REMATCH[1] - 1)) "${thread##*/}" >/dev/null
    fi
  done
}

# pressure SCHEDULERS: a node of its own for 40 s, and its twin. Sets slow to what was slower than it should be, and fair to nothing where
# the machine was busy with other things, or time was stolen: the canary tells the latter; it wakes up late here, where all processors are
# taken, and so it is no measure of the former, of which the twins are.
pressure() {
  local schedulers=$1 seconds=${PRESSURE_SECONDS:-30} window=1 node told acted trips paused
  tries=$((tries + 1))
  local name=pressure${tries}_$$ twin=twin${tries}_$$
  node=$name@localhost
  [ "$schedulers" -eq 1 ] || window=2
  load "$twin" "$schedulers" 20
  load "$name" "$schedulers" 20
  sleep $((10 + window))
  watch
  start_tracing "$name" "$scratch/config"
  sleep 5 # trips may push the begin out of the history later: each is several of its events
  acted=$(first_action "$node")
  sleep $((seconds - 3))
  unwatch
  target_eval "$twin@localhost" "scenario_overload:save(\"$scratch/twin\")." >/dev/null
  target_eval "$twin@localhost" 'scenario_overload:stop().' >/dev/null
  told=$(target_eval "$node" "scenario_overload:told(\"$scratch/twin\", 200, $((seconds * 1000)), $window).")
  [[ $told =~ ^\{\"(.*)\",([0-9]+),([0-9]+),([0-9]+),([0-9]+)\}$ ]] || fail "not understood: $told"
  # holds matches, too
  local each=${BASH_REMATCH[1]} worst=${BASH_REMATCH[2]} before=${BASH_REMATCH[3]} whole=${BASH_REMATCH[5]}
  fair=${BASH_REMATCH[4]}
  [ "$fair" -ge $((seconds * 4)) ] && ! stolen || fair=
  echo "$name: untraced $(target_eval "$node" 'scenario_overload:untraced().') requests/s beside its twin; percent of that, each second" \
    "(in brackets: others had the processors):$each"
  cat "$scratch/history"
  echo "$name: $whole % as a whole, $worst % in the worst $window s, and $before % in the worst before tracing began," \
    "when the two were alike; $acted ms to the guard's first action${fair:+; the two had the processors}"
  slow=
  # 60 ms where the host leaves the machine alone; on one whose rate halves from minute to minute up to 230
  [ "$acted" -le 400 ] || slow+="; $acted ms from the begin of tracing to the guard's first action, of 400"
  [ "$worst" -ge 70 ] || slow+="; $worst percent of the untraced rate in the worst $window s, of 70"
  [ "$whole" -ge 70 ] || slow+="; $whole percent of the untraced rate as a whole, of 70"
  holds "$(target_eval "$node" 'scenario_overload:memory().')" -lt 150 "MB over the untraced peak"
  target_eval "$node" 'scenario_overload:stop().' >/dev/null
  wait_for 30 "tracing again, and each trip is in the ledger" trips_are_over "$node"
  trips=$(ledger_of "$node" trips)
  paused=$(ledger_of "$node" tripped_ms)
  is "$(grep -c "$node: tracing stopped (tripped)" "$collector_log")" "$trips" "each trip is in the ledger"
  holds "$paused" -ge $((trips * 900)) "ms of pause in the ledger"
  holds "$(ledger_of "$node" lowered_ms)" -ge 1000 "ms of lowered sampling in the ledger"
  holds "$(ledger_of "$node" requests_unsampled)" -gt 0 "requests that were left out"
  holds "$(ledger_of "$node" requests_complete)" -gt 0 "requests that were traced all the same"
  stop_tracing
  rm -f "$kprof_log"
}

# The last second may have tripped it: the pause and its row are still to come then.
trips_are_over() {
  "$kprof" nodes --node "$1" --collector "127.0.0.1:$collector_port" --json | grep -q '"state": *"tracing"' &&
    [ "$(ledger_of "$1" trips)" -eq "$(grep -c "$1: tracing stopped (tripped)" "$collector_log")" ] &&
    [ "$(ledger_of "$1" tripped_ms)" -ge "$(($(ledger_of "$1" trips) * 900))" ]
}

# beside ROUND: one scheduler that shares its processor with the twin's and with six busy loops. All time is its own or somebody else's,
# and each request is divided by the former.
beside() {
  local name=beside${1}_$$ twin=alike${1}_$$ share rate acted pid busy=()
  load "$twin" 1 100
  load "$name" 1 100
  for _ in 1 2 3 4 5 6; do
    start "$scratch/busy.log" taskset -c 0 bash -c 'while :; do :; done'
    busy+=($!)
  done
  sleep 4
  start_tracing "$name" "$scratch/config"
  sleep 8
  target_eval "$twin@localhost" "scenario_overload:save(\"$scratch/twin\")." >/dev/null
  share=$(target_eval "$name@localhost" "scenario_overload:share(\"$scratch/twin\", 2000, 6000).")
  acted=$(first_action "$name@localhost")
  cat "$scratch/history"
  holds "$acted" -lt 1000000 "ms from the begin of tracing to the guard's first action beside others"
  is "$(ledger_of "$name@localhost" trips)" 0 "which is not its breaker's"
  rate=$(sed -n 's/.*kprof: \([0-9]*\) kB of trace messages a second are too much.*/\1/p' "$scratch/$name.log" | head -n 1)
  holds "${rate:-none}" -lt 8000 "kB/s, which would not have been too much for all of a processor"
  [ "$acted" -le 2000 ] || differ+="$acted ms from the begin of tracing to the guard's first action, of 2000. "
  [ "$share" -ge 70 ] || differ+="$share percent of the untraced rate for each second of processor time, of 70."
  for pid in "${busy[@]}"; do kill -KILL -- "-$pid"; done
  target_eval "$name@localhost" 'scenario_overload:stop().' >/dev/null
  target_eval "$twin@localhost" 'scenario_overload:stop().' >/dev/null
  stop_tracing
  rm -f "$kprof_log"
}

# first_action NODE: the ms between the first two lines of its history that tell of tracing: its begin, and what the guard did about it.
first_action() {
  local began acted
  "$kprof" nodes --node "$1" --collector "127.0.0.1:$collector_port" --history >"$scratch/history"
  began=$(awk '/^ *20/ && $2 == "tracing" { print $1; exit }' "$scratch/history")
  acted=$(awk 'acts { print $1; exit } /^ *20/ && $2 == "tracing" { acts = 1 }' "$scratch/history")
  [ -n "$acted" ] || { echo 1000000; return; } # it never did
  echo $(($(date -d "$acted" +%s%3N) - $(date -d "$began" +%s%3N)))
}

# ledger_of NODE COLUMN
ledger_of() { sql "SELECT coalesce(sum($2), 0) FROM ledger WHERE resolution_s = 10 AND node = '$1'"; }

# stolen: more than a twentieth of the time, as lib.sh has it.
stolen() { [[ $noise =~ ([0-9]+)" ms were stolen" ]] && [ "${BASH_REMATCH[1]}" -gt $((50 * ${PRESSURE_SECONDS:-30})) ]; }

# One second in thirty may be the machine's: what tracing does, it does again. Two fair rounds that are slow fail.
tries=0
for schedulers in ${PRESSURE_SCHEDULERS:-1 2}; do
  misfits=0
  for _ in 1 2 3; do
    pressure "$schedulers"
    [ -n "$slow" ] || break
    echo "slower than that${slow}${fair:+, and the machine was not busy otherwise}: $noise"
    [ -z "$fair" ] || misfits=$((misfits + 1))
    [ "$misfits" -lt 2 ] || fail "how soon and how well, on $schedulers schedulers, twice$slow"
  done
  if [ -z "$slow" ]; then ok "how soon and how well, on $schedulers schedulers"
  else not_judged "how soon and how well, on $schedulers schedulers$slow"; fi
done
# It is part of this that the machine is busy: three rounds decide.
for round in 1 2 3; do
  differ=
  beside $round
  [ -n "$differ" ] || break
  echo "beside others: $differ"
  [ $round -lt 3 ] || fail "beside others, three times: $differ"
done
ok "as soon and as well beside others, for the processor time that the node gets"
stop_collector
counted_once
intact
