#!/usr/bin/env bash
# Goal of this test: the helpers of lib.sh fail when what they check is wrong, wait no longer than told, and leave no
# process behind. Without this a scenario could pass for ever.
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
must_fail "not within 1 s: f" wait_for 1 f false
must_fail "not within 1 s: process" ends "$$" 1

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
