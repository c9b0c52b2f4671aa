#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: `kprof flame` traces every function of chosen requests, through all processes that they go through, and what it keeps
# is true: calls to the call, times within a twentieth of what the functions themselves measured, the whole as long as the requests. What
# it writes other programs read, nothing of it stays in the node, and where there is nothing to draw it says why.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

chmod 400 "$scratch/cookie"
name=flame_$$
node=$name@localhost

# flame STATUS ARGUMENT...: what it says is in flame.txt
flame() {
  local want=$1 got=0
  shift
  timeout 300 "$kprof" flame "$@" >"$scratch/flame.txt" 2>&1 || got=$?
  is "$got" "$want" "kprof flame $* ends with $want: $(tail -n 1 "$scratch/flame.txt")"
}
says() { has "$scratch/flame.txt" "$1" "it says: $1"; }

# patterns: of all functions of the tree's module, what the node has of them
patterns() {
  target_eval "$node" 'lists:sort([{F, A, scenario_trace:info({scenario_flame, F, A}, match_spec)}
                                   || {F, A} <- scenario_flame:module_info(functions)]).'
}

start_collector
at=(--collector "127.0.0.1:$collector_port")
start_shop "$name"
is "$(target_eval "$node" 'scenario_flame:start().')" ok "the application runs"
start "$scratch/attach.log" "$kprof" attach "$node" --tracer "$tracer" --cookie-file "$scratch/cookie" "${at[@]}" \
  --entry scenario_flame:handle/1 --tier serve=scenario_flame:serve/0 --tier work=scenario_flame:work/0 --json
wait_for 30 "kprof attach traces" grep -qs '^tracing ' "$scratch/attach.log"

# -- none, and why -----------------------------------------------------------------------------------------------------
flame 1 no_such@localhost "${at[@]}"
says 'knows no node'
flame 12 "$node" "${at[@]}" --module 'no_such_*' --for 1s
says 'no module that is loaded has such a name'
flame 10 "$node" "${at[@]}" --module scenario_flame --for 1s
says 'no request came'

# -- ten requests ------------------------------------------------------------------------------------------------------
is "$(target_eval "$node" 'scenario_flame:requests(5).')" ok "requests, from which the processes are known"
wait_for 15 "they are there" ledger_reaches requests_complete 5
before=$(patterns)

# What each function ran for by itself, or was kept from it, against what it has measured, and the whole against the requests' durations,
# where that is not within a twentieth or 50 µs a request, the whole within a hundredth: name|µs that are true|µs of the profile.
times_differ() {
  sql "WITH truth(name, us) AS (VALUES $truth),
       own AS (SELECT CASE s.kind WHEN 'function' THEN s.name ELSE p.name END AS name, sum(s.self) AS us
               FROM profile_stacks AS s JOIN profile_stacks AS p ON p.profile = s.profile AND p.stack = s.parent
               WHERE s.profile = $1 AND s.metric = 'wall' AND p.metric = 'wall' AND s.kind <> 'waiting' GROUP BY 1)
       SELECT t.name, t.us, round(o.us) FROM truth AS t LEFT JOIN own AS o ON o.name LIKE 'scenario_flame:' || t.name || '/%'
       WHERE t.name <> 'request' AND abs(coalesce(o.us, 0) - t.us) > max(0.05 * t.us, 10 * 50)
       UNION ALL
       SELECT t.name, t.us, round(o.us) FROM truth AS t,
              (SELECT sum(self) AS us FROM profile_stacks WHERE profile = $1 AND metric = 'wall') AS o
       WHERE t.name = 'request' AND abs(o.us - t.us) > max(0.01 * t.us, 10 * 50)"
}

# traces FILE: the tool that writes it says that functions are traced
traces() {
  tells() { grep -qs '[1-9][0-9]* functions in' "$scratch/$1" || gone "$live"; }
  wait_for 20 "it traces" tells "$1"
  grep -q '[1-9][0-9]* functions in' "$scratch/$1" || fail "it ended before it traced: $(cat "$scratch/$1")"
}

# profile ROUND: of ten requests
profile() {
  local round=$1 live more
  is "$(target_eval "$node" 'scenario_flame_spin:forget().')" ok "the truth is new"
  start "$scratch/live.log" "$kprof" flame "$node" "${at[@]}" --db "$db" --requests 10 --module scenario_flame --for 300s \
    --out "$scratch/x.svg" --out "$scratch/x.collapsed" --out "$scratch/x.speedscope.json" --out "$scratch/x.callgrind" \
    --out "$scratch/x.perf.txt"
  live=$!
  traces live.log
  is "$(target_eval "$node" 'scenario_flame:requests(10).')" ok "ten requests"
  # A slow machine is not through with them within a window: then others come in the next, and the truth is not of those that were traced.
  more=
  for _ in {1..100}; do
    ! gone "$live" || break
    sleep 0.1
  done
  until gone "$live"; do
    more=yes
    is "$(target_eval "$node" 'scenario_flame:requests(1).')" ok "one more request"
  done
  ends "$live" 60
  is "$status" 0 "kprof flame ends by itself: $(tail -n 1 "$scratch/live.log")"
  is "$(patterns)" "$before" "the node's patterns are as before"
  is "$(sql "SELECT requests FROM profiles WHERE id = $round")" 10 "ten are in the profile"
  truth=$(target_eval "$node" 'scenario_flame_spin:truth().' | sed "s/{\([a-z_]*\),\([0-9]*\)}/('\1',\2)/g; s/[][]//g")
  differ=$(times_differ "$round")
  # what a process sends late, after the machine has stood still, cannot be joined
  [ "$(sql "SELECT incomplete FROM profiles WHERE id = $round")" = 0 ] || differ="one that is not whole was left out: $differ"
  [ -z "$more" ] || differ="others than those ten were traced: $differ"
}
watched=("$(target_eval "$node" 'list_to_integer(os:getpid()).')")
in_quiet "times by function" profile

wait_for 15 "all requests are counted" ledger_reaches requests_complete 15
if [ "$(otp_release)" -ge 27 ]; then is "$(ledger paused_ms)" 0 "the tiers were traced all the time"
else holds "$(ledger paused_ms)" -gt 0 "the tiers rested, which the ledger tells"; fi
is "$(ledger decode_errors)" 0 "all messages were understood"

# of_json FILE PLACE
of_json() { sqlite3 :memory: "SELECT json_extract(readfile('$scratch/$1'), '\$.$2')"; }

# calls of each function on its stack
calls() {
  sql "SELECT group_concat(name || ' ' || n, ', ') FROM
         (SELECT replace(replace(name, 'scenario_flame:', ''), '''', '') AS name, sum(self) AS n FROM profile_stacks
          WHERE profile = 1 AND metric = 'calls' AND kind = 'function' AND self > 0 GROUP BY name ORDER BY name)"
}
is "$(calls)" "behind/0 10, catching/0 10, deep/1 40, each/1 20, funs/0 10, handle/1 10, handle_call/3 10, inner/0 10, last/0 10, \
leaf/0 10, loop/0 10, nested/0 10, raising/0 10, serve/0 10, work/0 10" "calls are exact"
# whose frame each lies on
parent() {
  sql "SELECT DISTINCT replace(p.name, 'scenario_flame:', '') FROM profile_stacks AS s
       JOIN profile_stacks AS p ON p.profile = s.profile AND p.stack = s.parent
       WHERE s.profile = 1 AND s.name = 'scenario_flame:$1'"
}
for pair in inner/0=nested/0 behind/0=handle/1 last/0=handle/1 leaf/0=deep/1 raising/0=catching/0 each/1=funs/0 work/0=handle/1 \
            handle_call/3=handle/1 serve/0=handle_call/3; do
  is "$(parent "${pair%=*}")" "${pair#*=}" "${pair%=*} lies on ${pair#*=}"
done

# -- what others read --------------------------------------------------------------------------------------------------
has "$scratch/x.collapsed" '^scenario_flame:handle/1;scenario_flame:nested/0;scenario_flame:inner/0 [0-9]+$' "collapsed stacks"
is "$(of_json x.speedscope.json profiles[0].unit)" nanoseconds "speedscope's JSON"
has "$scratch/x.perf.txt" '^	ffffffff scenario_flame:inner/0 \(scenario_flame\)$' "perf script"
has "$scratch/x.svg" '<title>scenario_flame:inner/0$' "the picture"
"$kprof" flame --db "$db" --profile 1 --json >"$scratch/flame.json"
is "$(of_json flame.json requests)" 10 "JSON"
"$kprof" profiles --db "$db" --json >"$scratch/profiles.json"
is "$(of_json profiles.json profiles[0].id)" "$(sql 'SELECT max(id) FROM profiles')" "kprof profiles lists it"
slow=$(sql 'SELECT id FROM slow_requests LIMIT 1')
"$kprof" slow "$slow" --db "$db" >"$scratch/slow.txt"
latest=$(sql 'SELECT max(id) FROM profiles')
has "$scratch/slow.txt" "^ Profiles of such requests: $latest .10 requests." "kprof slow names the profiles of its identity"

# what it has cost, and what its times lack
is "$(sql 'SELECT bytes > messages AND patterns_ms > 0 AND functions > 0 FROM profiles WHERE id = 1')" 1 "its cost is kept"
is "$(sql 'SELECT otp FROM profiles WHERE id = 1')" "$(otp_release)" "with the node's release"
flame 0 --db "$db" --profile 1
says '^It cost [0-9,]+ messages, [0-9.]+ [KM]B; [0-9]+ functions had patterns for [0-9.]+ m?s'
says ': 10 requests, mean [0-9.]+ ms; '
if [ "$(otp_release)" -ge 27 ]; then has_not "$scratch/flame.txt" 'the tiers were not traced' "the tiers were traced meanwhile"
else says 'and the tiers were not traced meanwhile$'; fi
if [ "$(sql 'SELECT asleep_in_self FROM profiles WHERE id = 1')" = 1 ]; then
  says "^Time asleep and garbage collection are within self: .*, OTP $(otp_release) "
  has "$scratch/x.svg" '>Time asleep and garbage collection are within self' "the picture says so"
elif [ "$(sql 'SELECT gc_in_self FROM profiles WHERE id = 1')" = 1 ]; then
  says "^Garbage collection is within self: .*, OTP $(otp_release) "
  has "$scratch/x.svg" '>Garbage collection is within self' "the picture says so"
fi
is "$(of_json flame.json asleep_in_self)" "$(sql 'SELECT asleep_in_self FROM profiles WHERE id = 1')" "so does the JSON"

# the longest request as a waterfall
flame 0 --db "$db" --profile 1 --waterfall --width 140
says '^ The longest request of profile 1, '
says '^ +offset +duration +self .* process +function$'
says '[█#].*<0\.[0-9]+\.0> +scenario_flame:handle/1$'
says '(█|▉|▊|▋|▌|▍|▎|▏|▐|▕|#).*<0\.[0-9]+\.0> +scenario_flame:inner/0$' # its bar may be narrower than a column
flame 0 --db "$db" --profile 1 --waterfall --limit 3
says '^ 3 of [0-9]+ calls are drawn, those at which most time passed: [1-9][0-9]\.[0-9] % of all'
is "$(grep -c '<0\.[0-9]*\.0>' "$scratch/flame.txt")" 3 "so many lines"
flame 0 --db "$db" --profile 1 --waterfall --json
of_json flame.txt spans >"$scratch/spans.json"
# NAME=PARENT pairs of its calls, and whether they are of one process
below() {
  sqlite3 :memory: "WITH s AS (SELECT replace(value ->> 'name', 'scenario_flame:', '') AS name, value ->> 'pid' AS pid, key,
                                      value ->> 'parent' AS parent FROM json_each(readfile('$scratch/spans.json')))
                    SELECT DISTINCT b.name || '=' || coalesce(p.name, 'none') || iif(b.pid IS p.pid, '', ', another process')
                    FROM s AS b LEFT JOIN s AS p ON p.key = b.parent WHERE b.name = '$1'"
}
for pair in handle/1=none,* inner/0=nested/0 leaf/0=deep/1 "handle_call/3=handle/1, another process" serve/0=handle_call/3; do
  # shellcheck disable=SC2053 # a pattern
  [[ $(below "${pair%%=*}") == $pair ]] || fail "of the waterfall $(below "${pair%%=*}") instead of $pair"
done
flame 2 --db "$db" --profile 1 --waterfall --before 1
says 'there is nothing to compare'

flame 1 --db "$db" --profile 99
says 'keeps no profile 99'
flame 1 --db "$db" --profile 1 --before-range 2d..1d
says 'keeps no other profile'
flame 2 --db "$db" --profile 1 --before-range 2d
says 'is not FROM..UNTIL'
flame 0 --db "$db" --profile 1 --before 1
is "$(grep -c '^[+-]' "$scratch/flame.txt" || true)" 0 "compared with itself nothing has changed"

# -- compared with those before it --------------------------------------------------------------------------------------
for _ in 1 2; do
  start "$scratch/live.log" "$kprof" flame "$node" "${at[@]}" --requests 5 --module scenario_flame --for 60s
  live=$!
  traces live.log
  is "$(target_eval "$node" 'scenario_undone:await(true), scenario_flame:requests(5).')" ok "five requests"
  ends "$live" 60
done
last=$(sql 'SELECT max(id) FROM profiles')
others=$(sql "SELECT group_concat(id) FROM (SELECT id FROM profiles WHERE id <> $last ORDER BY id DESC)")
flame 0 --db "$db" --profile "$last" --before-range 1h..0s --json
is "$(of_json flame.txt before)" "[$others]" "compared with all others"
is "$(of_json flame.txt stacks[0].before_value)" \
  "$(sql "SELECT value FROM (SELECT sum(value) AS value FROM profile_stacks WHERE metric = 'wall' AND stack = 0 AND profile <> $last)" |
    sed 's/\.0$//')" "as heavy as they are together"

# -- ten requests, of another identity ---------------------------------------------------------------------------------
start "$scratch/flame.txt" "$kprof" flame "$node" "${at[@]}" --for 15s --module scenario_flame --only no_such_identity
live=$!
traces flame.txt
is "$(target_eval "$node" 'scenario_undone:await(true), scenario_flame:requests(10).')" ok "ten requests"
ends "$live" 60
is "$status" 11 "kprof flame --only no_such_identity ends with 11: $(tail -n 1 "$scratch/flame.txt")"
# on a busy machine some of the ten come before functions are traced
says '[1-9][0-9]* requests? came, but none of no_such_identity: [1-9][0-9]* undefined'
is "$(patterns)" "$before" "the node's patterns are as before"
is "$(sql 'SELECT count(*) FROM profiles')" "$(sql 'SELECT max(id) FROM profiles')" "of that nothing is kept"
