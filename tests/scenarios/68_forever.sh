#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: the stacks of a node are sampled all the time, in one profile after the other, and each look is in one of them. Others
# may sample the node meanwhile. It goes on when the collector comes back, and ends with the trace, of which nothing is left.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

chmod 400 "$scratch/cookie"
name=forever_$$
node=$name@localhost
start_collector
start_shop "$name"
is "$(target_eval "$node" 'scenario_sample:start().')" ok "the application runs"
depth_of_stacks() { target_eval "$node" 'N = erlang:system_flag(backtrace_depth, 8), erlang:system_flag(backtrace_depth, N), N.'; }
depth=$(depth_of_stacks)
cat >"$scratch/forever.config" <<'END'
[{tier_config, []},
 {sampling, #{slice => 5, hz => 20, registered => [scenario_works, scenario_full, scenario_sleeps]}}].
END
start_tracing "$name" "$scratch/forever.config"

slices() { [ "$(sql "SELECT count(*) FROM profile_rows WHERE label = 'always'")" -ge "$1" ]; }
stands() {
  "$kprof" nodes --collector "127.0.0.1:$collector_port" | grep -q '^   stacks are sampled for ever (always): 3 processes, [1-9]'
}
wait_for 30 "kprof nodes tells it" stands
is "$(depth_of_stacks)" "$depth" "stacks are as deep as they were"
wait_for 60 "two profiles" slices 2

# -- beside it ---------------------------------------------------------------------------------------------------------
"$kprof" sample "$node" --collector "127.0.0.1:$collector_port" --db "$db" --for 1s --registered scenario_works --json \
  >"$scratch/other.json" || fail "it is sampled by hand meanwhile"
has "$scratch/other.json" 'scenario_sample:one/1' "and that is drawn"
is "$(target_eval "$node" 'case kprof:sample(#{seconds => 1, registered => [scenario_works], name => inside}) of
  {ok, _} -> ok; E -> E end.')" ok "or from inside"
is "$(sql "SELECT count(*) FROM profile_rows WHERE label = ''")" 2 "these two are asked for"
wait_for 30 "it stands still" stands

# -- each look is in one profile ------------------------------------------------------------------------------------------
stop_tracing
over() { grep -q 'stacks are sampled no longer, for ever: ' "$collector_log"; }
wait_for 15 "the log tells its end" over
told=$(sed -n 's/.*stacks are sampled no longer, for ever: \([0-9]*\) looks, \([0-9]*\) unchanged, .*/\1 \2/p' "$collector_log" | tail -n 1)
all="SELECT sum(looks) || ' ' || sum(unchanged) FROM profile_sampled JOIN profile_rows AS p ON p.id = profile WHERE p.label = 'always'"
counted() { [ "$(sql "$all")" = "$told" ]; }
wait_for 15 "the last one is kept" counted
is "$(sql "SELECT count(*) FROM profile_rows AS p WHERE label = 'always' AND id > 1 AND NOT EXISTS (SELECT 1 FROM profile_rows AS b
           WHERE b.label = 'always' AND b.id < p.id AND b.end_ns = p.begin_ns)")" 0 "each begins where the one before ended"
is "$(sql "SELECT count(*) FROM profile_rows WHERE label = 'always' AND end_ns - begin_ns < 5000000000 AND id < (SELECT max(id) FROM
           profile_rows WHERE label = 'always')")" 0 "after 5 s at least"
for id in $(sql "SELECT id FROM profile_rows WHERE label = 'always' ORDER BY id LIMIT 2"); do
  looks=$(sql "SELECT looks + unchanged + unanswered FROM profile_sampled WHERE profile = $id")
  drawn=$("$kprof" flame --db "$db" --profile "$id" --group process --json |
    python3 -c 'import json, sys; print(sum(s["self"] for s in json.load(sys.stdin)["stacks"]))')
  is "$drawn" "$looks" "profile $id is drawn, each look once"
  holds "$(sql "SELECT sum(self) FROM profile_stacks WHERE profile = $id AND metric = 'samples' AND
                name = 'scenario_sample:two/1'")" -ge 1 "with its functions' names"
done
holds "$(sql "SELECT sum(length(records)) / (SELECT sum(looks + unchanged) FROM profile_sampled) FROM profile_second_rows")" -le 20 \
  "bytes a look: a day of 100 a second takes less than 200 MB"
is "$("$kprof" profiles --db "$db" --json | python3 -c 'import json, sys
print(sorted({p["name"] for p in json.load(sys.stdin)["profiles"]}))')" "['', 'always', 'inside']" "kprof profiles tells them apart"

# -- the collector goes, and comes back -----------------------------------------------------------------------------------
start_tracing "$name" "$scratch/forever.config"
wait_for 30 "it stands" stands
kill -KILL "$collector_pid"
ends "$collector_pid" 20
before=$(sql "SELECT count(*) FROM profile_rows WHERE label = 'always'")
start_collector
wait_for 60 "it stands again" stands
wait_for 60 "and is kept" slices $((before + 1))

# -- who samples dies: all is as before, and the run is told to be over -----------------------------------------------------
is "$(target_eval "$node" '[Pid] = [P || P <- processes(),
    {_, {kprof_sampler_loop, next, 1}} <- [process_info(P, current_function)]], exit(Pid, kill), ok.')" ok "the sampler is killed"
killed() { grep -q 'stacks are sampled no longer, for ever: .*the sampler ended' "$collector_log"; }
wait_for 15 "the log says so" killed
is "$(depth_of_stacks)" "$depth" "stacks are as deep as they were"
stop_tracing
is "$(target_eval "$node" '[P || P <- processes(), {_, {M, _, _}} <- [process_info(P, current_function)],
    lists:prefix("kprof_sampl", atom_to_list(M))].')" '[]' "nothing that samples is left in the node"
stop_collector
