# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2119,SC2120
# What the scenarios share: starting and ending the real programs, asking the database, and checking. Sourced, never run.
#
#   KPROF_BUILD    the build folder: kprof-collector, kprof and the shim are taken from it
#   SCENARIO_EBIN  the compiled Erlang modules of tests/scenarios/src and of the sample application
#   KPROF_OTP      scripts/otp.sh sets it: another release of OTP for all nodes. The shim stays the one that the build folder has
#   TRACER         port, or native: what kprof attach traces by, in scenarios that are run with both
#   KEEP=1         leave the scratch folder
#
# Every wait has an end, everything that is started lives in a process group of its own and is killed at the end, and
# on failure the ends of all logs are printed.
#
# Counts are judged always, and exactly (is, holds). Times are judged where the machine was quiet:
#   in_quiet WHAT ROUND      rounds of a measurement, for what can be measured again (the best way)
#   watch, timely A OP B WHAT  one measurement, for what cannot be; `timely_within SECONDS WHAT COMMAND` waits for something
# Where the guard has tripped, which it does when the machine takes the processor of a node's thread away for some 90 ms, requests are
# missing that a scenario wants every one of. One that fails then runs once more. Those that make it trip say so: may_trip=1.
# What was never judged, for want of a quiet machine, makes the test end as skipped (77), with the reason, if all else held. A time that
# fits is accepted on any machine: noise makes wrong times right too seldom to wait for.
# The limits of wait_for and its like are for what hangs, and no judgement: give some ten times what is usual.
set -euo pipefail

: "${KPROF_BUILD:?set it to the build folder, or run ctest -L scenario}"
KPROF_BUILD=$(cd "$KPROF_BUILD" && pwd)
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
source "$top/tests/scenarios/ports.sh"
: "${SCENARIO_EBIN:=$KPROF_BUILD/scenarios${KPROF_OTP:+-otp$KPROF_OTP}/ebin}"
collector=$KPROF_BUILD/kprof-collector
kprof=$KPROF_BUILD/kprof
node_scripts=$top/scripts # where start_kprof_node.sh lies
shop=$top/tests/sample/shop.sh
export KPROF_EBIN=$KPROF_BUILD/shim/default/lib/kprof/ebin SHOP_EBIN=$SCENARIO_EBIN

script=("$(realpath "$0")" "$@")
scratch=$(mktemp -d "${TMPDIR:-/tmp}/kprof-scenario.XXXXXX")
# The scripts of the kprof node keep their pid files here, apart from everybody else's.
export XDG_RUNTIME_DIR=$scratch/run
mkdir "$scratch/home" "$scratch/run"
echo "scenario$$x$RANDOM" >"$scratch/cookie"
install -m 400 "$scratch/cookie" "$scratch/home/.erlang.cookie"
tracer=${TRACER:-port}
groups=() # process groups to be killed at the end
checks=0
may_trip=
patience=3 # how often a limit for hanging is waited for: it is written for a usual machine

# Sanitized builds keep freed memory back and are slow.
sanitized=
if grep -qs '^KPROF_SANITIZE:BOOL=ON' "$KPROF_BUILD/CMakeCache.txt"; then sanitized=1; fi

# -- checking ----------------------------------------------------------------------------------------------------------

fail() { echo "FAIL: $*" >&2; exit 1; }
ok() { checks=$((checks + 1)); echo "ok: $*"; }

# What is said to be of another release must not be this machine's own.
otp_release() { erl -noinput -boot start_clean -eval 'io:put_chars(erlang:system_info(otp_release)), halt().'; }
if [ -n "${KPROF_OTP:-}" ] && [ "$(otp_release)" != "$KPROF_OTP" ]; then
  fail "this is not OTP $KPROF_OTP"
fi

# is GOT WANTED WHAT
is() {
  [ "$1" = "$2" ] || fail "$3: got $(printf '%.2000s' "$1"), wanted $(printf '%.2000s' "$2")"
  ok "$3"
}

# holds LEFT OPERATOR RIGHT WHAT: an integer comparison, such as: holds "$n" -gt 0 "requests were counted"
holds() {
  [[ $1 =~ ^-?[0-9]+$ && $3 =~ ^-?[0-9]+$ ]] || fail "$4: not numbers: '$1' $2 '$3'"
  test "$1" "$2" "$3" || fail "$4: $1 $2 $3 does not hold"
  ok "$4 ($1 $2 $3)"
}

# has FILE PATTERN WHAT: a line of the file matches the extended regular expression, or soon will: a log may be behind what it tells of.
has() { soon 5 grep -Eqs -- "$2" "$1" || fail "$3: no line of $(basename "$1") matches $2"; ok "$3"; }
has_not() { ! grep -Eq -- "$2" "$1" || fail "$3: $(grep -E -m1 -- "$2" "$1")"; ok "$3"; }

# soon SECONDS COMMAND...: whether the command succeeds within that time; with patience, for a slow machine is no failure.
soon() {
  local until=$((SECONDS + $1 * patience + 1))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$until" ] || return 1
    sleep 0.1
  done
}
# wait_for SECONDS WHAT COMMAND...: until it does.
wait_for() {
  local seconds=$1 what=$2
  shift 2
  soon "$seconds" "$@" || fail "not within $((seconds * patience)) s: $what"
}

gone() { ! kill -0 "$1" 2>/dev/null; }

# ends PID SECONDS: waits for a child and gives its status in $status.
ends() {
  wait_for "$2" "process $1 ends" gone "$1"
  status=0
  wait "$1" || status=$?
}

# -- times -------------------------------------------------------------------------------------------------------------

canary=$KPROF_BUILD/scenarios/canary
canary_pid=
quiet=1 noise='nobody watched'
unjudged=() # what was not judged, and why

# watch [PID...]: from here on a canary tells how quiet the machine is, and for how long the threads of these processes wait for a
# processor; of all that the scenario has started when none is named.
watch() {
  local pid options=()
  [ -z "$canary_pid" ] || unwatch
  # shellcheck disable=SC2046  # numbers
  [ $# -gt 0 ] || [ ${#groups[@]} -eq 0 ] || set -- $(pgrep -g "$(IFS=,; echo "${groups[*]}")")
  for pid in "$@"; do options+=(--pid "$pid"); done
  start "$scratch/canary" "$canary" ${options[@]+"${options[@]}"}
  canary_pid=$!
  wait_for 20 "the canary watches" test -s "$scratch/canary"
}

# Ends it, if it was not ended. Sets noise, what it saw in words, and quiet, which is empty when the machine was not: when wake-ups came
# late, time was stolen, or what is measured waited for a processor, each for more than a twentieth of the time.
# A twentieth, because: on a virtual machine of two processors with nothing else to do, wake-ups were late for up to 5 ms a second, up to
# 35 ms were stolen, and a process that works every other 2 ms waited for up to 1 ms; beside one busy loop for 23 to 41 ms, beside two for
# 200 to 280. How late an idle process wakes up hardly tells of busy loops: the kernel lets it go first.
# And what takes less than a twentieth is no excuse for who is off by a twentieth each time, the least that is judged.
unwatch() {
  local ms late worst stolen waited lost
  [ -n "$canary_pid" ] || return 0
  kill -TERM "$canary_pid"
  wait "$canary_pid" || fail "the canary is dead"
  canary_pid=
  read -r _ ms _ late _ worst _ stolen _ waited < <(tail -n 1 "$scratch/canary")
  noise="in $ms ms a process beside it woke up late for $late ms, by up to $worst"
  noise+="; $stolen ms were stolen; its threads waited $waited ms"
  quiet=1
  for lost in "$late" "$stolen" "$waited"; do
    [ $((20 * lost)) -le "$ms" ] || quiet=
  done
}

# not_judged WHAT: it is told, and the test ends as skipped when nothing else fails.
not_judged() {
  unjudged+=("$1: the machine was not quiet ($noise)")
  echo "not judged: ${unjudged[-1]}"
}

# timely LEFT OPERATOR RIGHT WHAT: as holds, for a time that was taken since `watch`. Ends the watch; more such judgements may follow.
timely() {
  unwatch
  if test "$1" "$2" "$3"; then ok "$4 ($1 $2 $3)"
  elif [ -n "$quiet" ]; then fail "$4: $1 $2 $3 does not hold, and the machine was quiet: $noise"
  else [[ $1 =~ ^-?[0-9]+$ && $3 =~ ^-?[0-9]+$ ]] || fail "$4: not numbers: '$1' $2 '$3'"
    not_judged "$4 ($1 $2 $3)"; fi
}

# timely_within SECONDS WHAT COMMAND...: the command succeeds within this time, which is judged, and at all, which is, too.
timely_within() {
  local seconds=$1 what=$2 began
  shift 2
  watch
  began=$(date +%s%3N)
  wait_for $((10 * seconds)) "$what" "$@"
  timely $(($(date +%s%3N) - began)) -le $((1000 * seconds)) "$what, ms"
}

# in_quiet WHAT ROUND...: runs ROUND with the number of the round, 1 and so on, behind its arguments. It makes the measurement, fails by
# itself when a count is wrong, and sets differ: empty when the times fit, else how they do not. What does not fit in three quiet rounds
# fails; what does not fit in six of which fewer were quiet is not judged. To tell how long the traced node waited for processors, set
# watched to its process id.
watched=()
in_quiet() {
  local what=$1 round misfits=0
  shift
  for round in 1 2 3 4 5 6; do
    differ=
    watch ${watched[@]+"${watched[@]}"}
    "$@" "$round"
    unwatch
    if [ -z "$differ" ]; then
      ok "$what (round $round)"
      return
    fi
    printf '%.4000s\n' "$differ"
    if [ -z "$quiet" ]; then
      echo "round $round is not judged: $noise"
    else
      echo "round $round does not fit: $noise"
      misfits=$((misfits + 1))
      [ "$misfits" -lt 3 ] || fail "$what: not in three rounds on a quiet machine"
    fi
  done
  not_judged "$what"
}

# -- starting and ending -----------------------------------------------------------------------------------------------

# start LOG COMMAND...: in the background, in a process group of its own; $! is both.
start() {
  local log=$1
  shift
  : >"$log" # at once: nobody takes for its word what stands there from before
  setsid "$@" >"$log" 2>&1 </dev/null &
  groups+=($!)
}

# ours GROUP: whether one of its processes is of this scenario. A busy machine gives numbers again within minutes, and one of a group that
# has ended may be another scenario's by now.
# shellcheck disable=SC2317  # as below
ours() {
  local pid
  for pid in $(pgrep -g "$1"); do
    ! grep -aqsF "$scratch" "/proc/$pid/environ" "/proc/$pid/cmdline" || return 0
  done
  return 1
}

# What the collector has said of it, where that may be why the scenario has failed, and it was not run again for it yet.
# shellcheck disable=SC2317  # as below
tripped() {
  [ -n "$may_trip" ] || [ -n "${SCENARIO_AGAIN:-}" ] || grep -h -m 1 'tracing stopped (tripped)' "$scratch"/*.log 2>/dev/null | head -n 1
}

# shellcheck disable=SC2317  # called by the trap
clean_up() {
  local code=$? group log again=
  trap - EXIT
  set +e
  for group in ${groups[@]+"${groups[@]}"}; do ! ours "$group" || kill -KILL -- "-$group" 2>/dev/null; done
  wait 2>/dev/null
  if [ "$code" -ne 0 ]; then
    again=$(tripped)
    # what differs from nought, of some nodes
    [ ! -s "$db" ] || { echo "--- ledger"; sqlite3 -readonly -line "$db" "SELECT * FROM ledger WHERE resolution_s = 3600 LIMIT 10" |
      grep -vE '= 0?$'; } >&2
    for log in "$scratch"/*.log; do
      [ ! -s "$log" ] || { echo "--- $(basename "$log")"; tail -n 40 "$log" | cut -c1-400; }
    done | head -c 200000 >&2
  elif [ ${#unjudged[@]} -gt 0 ]; then
    echo "$checks checks passed in $SECONDS s, but these were not made:"
    printf '  %s\n' "${unjudged[@]}"
    code=77
  else
    echo "$checks checks passed in $SECONDS s"
  fi
  if [ -n "${KEEP:-}" ]; then echo "left: $scratch"; else rm -rf "$scratch"; fi
  if [ "$code" -eq 1 ] && [ -n "$again" ]; then
    echo "--- once more, as the guard has tripped: $again"
    cd "$top" && SCENARIO_AGAIN=1 exec bash "${script[@]}"
  fi
  exit "$code"
}
trap clean_up EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

db=$scratch/kprof.db
collector_log=$scratch/collector.log
collector_port=0
collector_pid=

listens() { grep -qs 'listening on' "$collector_log"; }
listens_or_ended() { listens || gone "$collector_pid"; }

# start_collector [OPTION...]: on a free port the first time, on the same one later. The log is appended to.
start_collector() {
  local port
  [ ! -f "$collector_log" ] || mv "$collector_log" "$collector_log.$RANDOM.log"
  for _ in 1 2 3; do # another test may have been given the same one
    port=$collector_port
    [ "$port" -ne 0 ] || port=$(free_port)
    start "$collector_log" "$collector" --listen "$port" --db "$db" "$@"
    collector_pid=$!
    wait_for 20 "the collector listens" listens_or_ended
    if [ "$collector_port" -ne 0 ] || ! grep -qs 'Address already in use' "$collector_log"; then break; fi
  done
  listens || fail "the collector did not start"
  collector_port=$(sed -n 's/.*listening on [^ ]*:\([0-9]*\),.*/\1/p' "$collector_log" | head -n 1)
}

stop_collector() {
  kill -TERM "$collector_pid"
  ends "$collector_pid" 20
  is "$status" 0 "the collector ends with 0 on TERM"
}
# ends_sent WHAT OPTION...: the collector ends, and has sent everything (all_sent, which the scenario has), for which it has some seconds.
# What a busy machine leaves it no time for the next one sends, with these options.
ends_sent() {
  watch
  stop_collector
  timely "$(all_sent && echo 1 || echo 0)" -eq 1 "$1"
  ! all_sent || return 0
  start_collector "${@:2}"
  wait_for 60 "the next one has sent it" all_sent
  stop_collector
}

# page_of LOG: where the page is that a collector, or kprof serve, serves, without a slash behind it.
page_of() { sed -nE 's/.*the page (is|of .* is) at (https?:[^ ;]*)\/.*/\2/p' "$1" | head -n 1; }

# left_out PATTERN: of how many lines of a kind the collector's log tells that they were left out.
left_out() {
  sed -nE "s/.* log: ([0-9]+) more lines? left out in .* like this one: .*($1).*/\\1/p" "$collector_log" |
    awk '{ n += $1 } END { print n + 0 }'
}
# in_log PATTERN: how many lines of a kind were written, or are told to be left out.
in_log() { echo $(($(grep -v ' log: ' "$collector_log" | grep -cE -- "$1") + $(left_out "$1"))); }

# Resident memory of a process, KB.
rss_kb() { sed -n 's/^VmRSS:[[:space:]]*\([0-9]*\) kB/\1/p' "/proc/$1/status"; }

# Runs an Erlang expression (with its full stop) in the node $1 and prints its value. Bounded: two minutes.
target_eval() {
  TARGET=$1 EXPRESSION=$2 HOME=$scratch/home timeout 120 erl -noinput -hidden -sname "eval_${BASHPID}_$RANDOM@localhost" -eval '
    {ok, Tokens, _} = erl_scan:string(os:getenv("EXPRESSION")),
    {ok, Parsed} = erl_parse:parse_exprs(Tokens),
    try erpc:call(list_to_atom(os:getenv("TARGET")), erl_eval, exprs, [Parsed, []], 100000) of
      {value, Value, _} -> io:format("~0tp~n", [Value]), halt(0)
    catch Class:Why -> io:format(standard_error, "~0tp: ~0tP~n", [Class, Why, 30]), halt(1)
    end.' || fail "evaluating $2 in $1"
}

# written_when NODE FILE CONDITION: the node writes FILE as soon as this expression is true there. Does not wait for it. To ask from outside
# takes a second here and there, which is longer than some things last.
written_when() {
  rm -f "$2"
  is "$(target_eval "$1" "spawn(fun Wait() ->
    case $3 of true -> file:write_file(\"$2\", <<>>); false -> timer:sleep(5), Wait() end end), ok.")" ok "the node looks out for it"
}

# In a shell of its own: a failure here is no end, and would have no voice.
answers() { (trap - EXIT; target_eval "$1" "ok.") >/dev/null 2>&1; }

# start_shop NAME [OPTION...]: the sample application as a node of its own. Sets shop_port and shop_pid (the emulator's).
start_shop() {
  local name=$1
  shift
  rm -f "$scratch/shop.port"
  start "$scratch/$name.log" "$shop" node --name "$name@localhost" --cookie-file "$scratch/cookie" \
    --port-file "$scratch/shop.port" "$@"
  wait_for 30 "the shop listens" test -s "$scratch/shop.port"
  shop_port=$(cat "$scratch/shop.port")
  shop_pid=$(target_eval "$name@localhost" 'list_to_integer(os:getpid()).')
}

# start_erl NAME [ARGUMENT...]: a plain distributed node with the scenarios' modules in its path. Sets erl_pid.
start_erl() {
  local name=$1
  shift
  start "$scratch/$name.log" env HOME="$scratch/home" erl -noinput -sname "$name@localhost" -pa "$SCENARIO_EBIN" "$@"
  erl_pid=$!
  wait_for 20 "node $name is up" answers "$name@localhost"
}

kprof_log=$scratch/kprof-node.log
kprof_pid=

# traced N: the kprof node has said N times that it traces.
traced() { [ -f "$kprof_log" ] && [ "$(grep -c "^tracing .* collector " "$kprof_log")" -ge "$1" ]; }
traced_or_ended() { traced 1 || gone "$kprof_pid"; }

# start_tracing NODE [CONFIG]: through start_kprof_node.sh, with the options in tracing_options, until it traces.
tracing_options=()
start_tracing() {
  [ ! -f "$kprof_log" ] || mv "$kprof_log" "$kprof_log.$RANDOM.log" # it says that the one before traced
  start "$kprof_log" "$node_scripts/start_kprof_node.sh" --node "$1@localhost" --cookie-file "$scratch/cookie" \
    --config "${2:-$top/tests/sample/kprof.config}" --collector "127.0.0.1:$collector_port" ${tracing_options[@]+"${tracing_options[@]}"}
  kprof_pid=$!
  wait_for 30 "tracing begins" traced_or_ended
  traced 1 || fail "start_kprof_node.sh ended"
}

stop_tracing() {
  kill -TERM "$kprof_pid"
  ends "$kprof_pid" 30
  is "$status" 0 "start_kprof_node.sh ends with 0 on TERM"
}

# load [OPTION...]: runs the load generator; its summary is $scratch/load.json. The status is the generator's.
load() { "$shop" load --port "$shop_port" --json "$@" >"$scratch/load.json" 2>"$scratch/load.log"; }
# start_load [OPTION...]: the same in the background. Sets load_pid.
start_load() {
  setsid "$shop" load --port "$shop_port" --json "$@" >"$scratch/load.json" 2>"$scratch/load.log" </dev/null &
  load_pid=$!
  groups+=("$load_pid")
}
# loaded KEY: a number of that summary.
loaded() { sqlite3 :memory: "SELECT json_extract(readfile('$scratch/load.json'), '\$.$1')"; }
save_truth() { "$shop" truth --port "$shop_port" >"$scratch/truth.json"; }

# -- asking the database -----------------------------------------------------------------------------------------------

# sql QUERY [FILE]: rows as a|b|c, read only.
sql() { sqlite3 -readonly -cmd '.timeout 5000' "${2:-$db}" "$1"; }

# ledger COLUMN: its sum over all buckets and nodes.
ledger() { sql "SELECT coalesce(sum($1), 0) FROM ledger WHERE resolution_s = 10"; }

ledger_reaches() { [ "$(ledger "$1")" -ge "$2" ]; }

intact() { is "$(sql 'PRAGMA integrity_check')" ok "the database is intact"; }

# Each request once: in every bucket at every resolution what the ledger calls complete is what _total counts.
counted_once() {
  is "$(sql "SELECT l.resolution_s, l.bucket_start, l.node, l.requests_complete, s.calls
             FROM ledger l LEFT JOIN tier_stats s ON s.resolution_s = l.resolution_s AND s.bucket_start = l.bucket_start
                  AND s.node = l.node AND s.identity = '_total' AND s.tier = '_total'
             WHERE l.requests_complete <> coalesce(s.calls, 0)")" "" "every bucket: complete requests = calls of _total"
  is "$(sql "SELECT resolution_s, node, bucket_start FROM tier_stats WHERE tier = '_total'
             GROUP BY resolution_s, node, bucket_start
             HAVING sum(calls) <> 2 * sum(calls) FILTER (WHERE identity = '_total')")" "" \
    "every bucket: the identities add up to _total"
}

# nothing_lost NODE: the ledger of that node tells of no loss at all.
nothing_lost() {
  is "$(sql "SELECT sum(requests_incomplete), sum(requests_expired), sum(requests_unsampled), sum(dropped_messages),
                    sum(orphan_returns), sum(stale_calls), sum(decode_errors)
             FROM ledger WHERE resolution_s = 10 AND node LIKE '$1@%'")" "0|0|0|0|0|0|0" "nothing was lost"
}

# Calls and errors by tier and identity as the shop counted them itself: tier|identity|calls|errors.
truth_rows() {
  sqlite3 :memory: "
    WITH t AS (SELECT tier.key AS tier, route.key AS identity, route.value ->> 'calls' AS calls, route.value ->> 'errors' AS errors
               FROM json_each(readfile('$scratch/truth.json'), '\$.tiers') AS tier, json_each(tier.value) AS route),
         r AS (SELECT '_total' AS tier, key AS identity, value ->> 'requests' AS calls, value ->> 'errors' AS errors
               FROM json_each(readfile('$scratch/truth.json'), '\$.routes')),
         one AS (SELECT * FROM t UNION ALL SELECT * FROM r),
         both AS (SELECT * FROM one UNION ALL SELECT tier, '_total', sum(calls), sum(errors) FROM one GROUP BY tier)
    SELECT tier, identity, calls, errors FROM both WHERE calls > 0 ORDER BY 1, 2"
}

# The same from a database, at one resolution. tiers_of RESOLUTION [FILE]
tiers_of() {
  sql "SELECT tier, identity, sum(calls), sum(errors) FROM tier_stats WHERE resolution_s = $1
       GROUP BY tier, identity ORDER BY 1, 2" "${2:-$db}"
}

truth_total() { sqlite3 :memory: "SELECT sum(value ->> 'requests') FROM json_each(readfile('$scratch/truth.json'), '\$.routes')"; }

# many_truth NODE COUNT REQUESTS ROUNDS: what so many simulated nodes (scenario_many, on NODE) have made, after so many rounds of so many
# requests: name|calls of one|of two|their ns|of two|errors.
many_truth() {
  target_eval "$1" "[[I | scenario_many:expected(I, $3)] || I <- lists:seq(1, $2)]." | tr -d '[] \n' | tr ',' '\n' |
    paste -d'|' - - - - - - |
    awk -F'|' -v r="$4" '{ print "sim" $1 "@host" $1 ".example.org|" r * $2 "|" r * $3 "|" r * $4 "|" r * $5 "|" r * $6 }' | sort
}
# many_told RESOLUTION: the same, as the database has it.
many_told() {
  sql "SELECT node, sum(calls) FILTER (WHERE tier = 'one'), coalesce(sum(calls) FILTER (WHERE tier = 'two'), 0),
              CAST(round(1000 * sum(total_us) FILTER (WHERE tier = 'one')) AS INTEGER),
              CAST(round(1000 * coalesce(sum(total_us) FILTER (WHERE tier = 'two'), 0)) AS INTEGER),
              sum(errors) FILTER (WHERE tier = '_total')
       FROM tier_stats WHERE resolution_s = $1 AND identity = '_total' AND node LIKE 'sim%' GROUP BY node" | sort
}

# tells_truth: what the database holds is what the shop counted, to the last call.
tells_truth() {
  holds "$(truth_rows | wc -l)" -ge 30 "the truth has many rows"
  is "$(tiers_of 10)" "$(truth_rows)" "calls and errors per tier and identity, buckets of 10 s"
  is "$(tiers_of 3600)" "$(truth_rows)" "calls and errors per tier and identity, buckets of an hour"
  is "$(ledger requests_complete)" "$(truth_total)" "the ledger's complete requests"
}
