#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: the helpers of lib.sh fail when what they check is wrong, wait no longer than told, and leave no
# process behind. Without this a scenario could pass for ever.
# shellcheck disable=SC2030,SC2031,SC2317  # judgements are tried in shells of their own
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# must_fail TEXT COMMAND...: in a shell of its own, without the trap of this one.
must_fail() {
  local text=$1 output
  shift
  if output=$( (trap - EXIT; "$@") 2>&1); then fail "this passed: $*"; fi
  [[ $output == *"FAIL: $text"* ]] || fail "$* failed otherwise: $output"
  ok "fails as it should: $*"
}

must_fail "a: got 1, wanted 2" is 1 2 a
must_fail "b: 1 -gt 2 does not hold" holds 1 -gt 2 b
must_fail "c: not numbers" holds "" -eq 0 c
echo "one line" >"$scratch/text"
must_fail "d: no line of text matches two" has "$scratch/text" two d
must_fail "e: one line" has_not "$scratch/text" one e
patience=1
must_fail "not within 1 s: f" wait_for 1 f false
must_fail "not within 1 s: process" ends "$$" 1
patience=3
must_fail "not within 3 s: f" wait_for 1 f false

start "$scratch/sleep.log" sleep 60
pid=$!
start "$scratch/status.log" bash -c 'exit 7'
ends $! 5
is "$status" 7 "ends gives the status"
collector=/bin/false
must_fail "the collector did not start" start_collector
is "$(bash -c 'kill -0 "$1" && echo lives' _ "$pid")" lives "what was started runs"

# A scenario that fails prints its logs, kills what it started, and ends with 1.
cat >"$scratch/scenario.sh" <<END
source "$top/tests/scenarios/lib.sh"
start "\$scratch/some.log" bash -c 'echo words of a log; sleep 60'
echo "\$!" >"$scratch/started"
wait_for 5 "the log" grep -q words "\$scratch/some.log"
is 1 2 "on purpose"
END
code=0
bash "$scratch/scenario.sh" >"$scratch/scenario.log" 2>&1 || code=$?
is "$code" 1 "a failed scenario ends with 1"
has "$scratch/scenario.log" "FAIL: on purpose" "and tells why"
has "$scratch/scenario.log" "words of a log" "and prints its logs"
wait_for 5 "what it started is gone" gone "$(cat "$scratch/started")"
ok "and leaves no process"

# Behind bounded.sh, as ctest runs all tests, one that talks without end is cut in the middle, and what it says first and last is there.
code=0
"$top/tests/bounded.sh" bash -c 'echo first; yes "its state" | head -c 20000000; echo last; exit 7' >"$scratch/bounded.log" || code=$?
is "$code" 7 "bounded.sh ends with the status of what it runs"
holds "$(wc -c <"$scratch/bounded.log")" -le 320000 "of 20 MB it passes on some 300 KB"
is "$(head -n 1 "$scratch/bounded.log")|$(tail -n 1 "$scratch/bounded.log")" "first|last" "the first and the last"
code=0
# shellcheck disable=SC2016  # the shell's own
"$top/tests/bounded.sh" bash -c 'kill -SEGV $$' >"$scratch/bounded.log" 2>&1 || code=$?
is "$code" 139 "also of what was killed"

# -- the canary ----------------------------------------------------------------------------------------------------------
# Its own sleep, as that of a process whose processor somebody took: it says so, however the machine is.
watch
kill -STOP "$canary_pid"
sleep 0.2
kill -CONT "$canary_pid"
sleep 0.3
unwatch
is "$quiet" "" "a canary that came late is noise: $noise"
came_late() { [[ $noise =~ "woke up late for "[1-9] ]]; } # not for what was stolen, or waited for
came_late || fail "the canary does not know that it came late: $noise"

# Four busy loops for each processor: each of them waits for a processor most of its time. An idle canary alone would hardly tell.
loops=()
for _ in $(seq $((4 * $(nproc)))); do
  start "$scratch/loop.log" bash -c 'while :; do :; done'
  loops+=($!)
done
has_waited() { read -r _ waited _ 2>/dev/null <"/proc/$1/schedstat" && [ "$waited" -gt 0 ]; }
if [ -r "/proc/${loops[0]}/schedstat" ]; then
  wait_for 10 "the loops run" has_waited "${loops[-1]}"
  watch "${loops[-1]}"
  sleep 1
  unwatch
  is "$quiet" "" "a process that waits for processors is noise: $noise"
  watch
  sleep 1
  unwatch
  is "$quiet" "" "so is any that the scenario started, when none is named: $noise"
fi
for loop in "${loops[@]}"; do kill -KILL -- "-$loop"; done

# -- who is killed in the end --------------------------------------------------------------------------------------------
start "$scratch/own.log" sleep 600
own=$!
start "$scratch/bare.log" env -i HOME="$scratch/home" sleep 600
bare=$!
(unset XDG_RUNTIME_DIR && exec setsid sleep 600) &
strange=$!
is_its_leader() { [ "$(ps -o pgid= -p "$1" | tr -d ' ')" = "$1" ] && [ "$(cat "/proc/$1/comm")" = sleep ]; }
for pid in "$own" "$bare" "$strange"; do wait_for 10 "a group of its own" is_its_leader "$pid"; done
ours "$own" || fail "what the scenario has started is not its own"
ours "$bare" || fail "what it has started without its environment is not its own"
! ours "$strange" || fail "a group that another has started is its own"
kill -KILL "$strange"
! ours "$strange" || fail "a group that is gone is its own"
ok "it kills in the end what it has started, and nobody else"

# The judgements, on a machine that is said to be quiet and one that is said not to be.
in_quiet_when() { # QUIET DIFFER: one that stays so
  (trap - EXIT
   unwatch() { canary_pid="" noise=said quiet=$said; }
   watch() { :; }
   said=$1 rounds=0
   one_round() { rounds=$((rounds + 1)) differ=$wrong; }
   wrong=$2
   in_quiet "it fits" one_round
   echo "$rounds rounds, ${#unjudged[@]} not judged")
}
is "$(in_quiet_when 1 "" | tail -n 1)" "1 rounds, 0 not judged" "what fits is judged at once"
is "$(in_quiet_when "" "" | tail -n 1)" "1 rounds, 0 not judged" "also on a machine that is not quiet"
is "$(in_quiet_when "" wrong | tail -n 1)" "6 rounds, 1 not judged" "what does not fit on a machine that is never quiet is not judged"
must_fail "it fits: not in three rounds on a quiet machine" in_quiet_when 1 wrong
timely_when() { (trap - EXIT; unwatch() { canary_pid="" noise=said quiet=$said; }; said=$1; timely "$2" -le 5 "five"); }
is "$(timely_when "" 5)" "ok: five (5 -le 5)" "a time that holds"
is "$(timely_when "" 6)" "not judged: five (6 -le 5): the machine was not quiet (said)" "one that does not, on a machine that is not quiet"
must_fail "five: 6 -le 5 does not hold, and the machine was quiet" timely_when 1 6
must_fail "five: not numbers" timely_when "" x

cat >"$scratch/noisy.sh" <<END
source "$top/tests/scenarios/lib.sh"
noise=said
not_judged "a time"
is 1 \$1 "a count"
END
code=0
bash "$scratch/noisy.sh" 1 >"$scratch/scenario.log" 2>&1 || code=$?
is "$code" 77 "a scenario with a time that is not judged is skipped"
has "$scratch/scenario.log" "^  a time: the machine was not quiet \(said\)" "and tells why"
code=0
bash "$scratch/noisy.sh" 2 >"$scratch/scenario.log" 2>&1 || code=$?
is "$code" 1 "but fails when a count is wrong"

# A scenario in which the guard has tripped runs once more when it fails, and no more than that.
cat >"$scratch/trips.sh" <<END
source "$top/tests/scenarios/lib.sh"
may_trip=\$1
[ -z "\$2" ] || echo "info node x: tracing stopped (tripped) for a reason" >"\$scratch/collector.log"
echo run >>"$scratch/runs"
[ "\$(wc -l <"$scratch/runs")" -ge "\$3" ] || fail "too few runs"
END
# runs STATUS RUNS WHAT MAY-TRIP TRIPPED WANTED
runs() {
  : >"$scratch/runs"
  code=0
  bash "$scratch/trips.sh" "${@:4}" >"$scratch/scenario.log" 2>&1 || code=$?
  is "$code|$(wc -l <"$scratch/runs")" "$1|$2" "$3"
}
runs 0 2 "what fails where the guard has tripped runs once more" "" 1 2
has "$scratch/scenario.log" '^--- once more, as the guard has tripped: .*for a reason' "and tells why"
runs 1 2 "what fails again has failed" "" 1 3
runs 1 1 "so has what fails for another reason" "" "" 2
runs 1 1 "and what makes it trip" 1 1 2
runs 0 1 "what does not fail runs once" "" 1 1

# Last, as it may not be judged: without noise the canary says quiet.
for _ in $(seq 10); do
  watch
  sleep 1
  unwatch
  [ -z "$quiet" ] || break
done
if [ -n "$quiet" ]; then ok "a quiet machine is quiet: $noise"; else not_judged "a quiet machine is quiet, in ten seconds"; fi
