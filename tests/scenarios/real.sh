# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# What the scenarios of systems that nobody here wrote share: starting one, loading it, and comparing what kprof tells with what the clients
# saw. Sourced behind lib.sh and debian.sh. Such a system keeps its state in the scratch folder, listens on loopback and knows nothing of
# kprof.

name=real_$$

# start_system ARGUMENT...: Erlang with these arguments as the node $name, its state in $scratch/home. Sets erl_pid.
start_system() {
  start "$scratch/$name.log" env HOME="$scratch/home" ERL_LIBS="$root/usr/lib/erlang/lib" erl -noinput -sname "$name@localhost" "$@"
  erl_pid=$!
  wait_for 60 "node $name is up" answers_or_ended
  gone "$erl_pid" && fail "the system did not start"
  return 0
}
answers_or_ended() { gone "$erl_pid" || answers "$name@localhost"; }

# attach_system OPTION...: kprof attach, until it traces; detach_system: Ctrl-C.
attach_system() {
  start "$scratch/attach.log" env HOME="$scratch/home" "$kprof" attach "$name@localhost" --collector "127.0.0.1:$collector_port" "$@"
  attach_pid=$!
  wait_for 30 "tracing begins" attached_or_ended
  gone "$attach_pid" && fail "kprof attach ended"
  ok "kprof attach traces"
}
attached_or_ended() { grep -q '^tracing ' "$scratch/attach.log" || gone "$attach_pid"; }
detach_system() {
  kill -INT "$attach_pid"
  ends "$attach_pid" 30
  is "$status" 0 "kprof attach ends with 0 on Ctrl-C"
}

# load_http PORT CLIENTS REQUESTS THINK: what scenario_load sends of $scratch/requests; what it saw is $scratch/seen.
load_http() {
  watch
  send_http "$@"
  unwatch
}
send_http() {
  timeout 1000 erl -noinput -pa "$SCENARIO_EBIN" \
    -run scenario_load main "$1" "$2" "$3" "$4" "$scratch/requests" >"$scratch/seen" 2>"$scratch/load.log" ||
    fail "the load"
}

# What tracing changes in a node.
state() {
  target_eval "$name@localhost" '
    Kprof = fun(T) -> string:find(io_lib:format("~0p", [T]), "kprof") =/= nomatch end,
    Of = fun(Item) -> lists:usort([I || P <- processes(), {_, I} <- [erlang:trace_info(P, Item)]]) end,
    Sessions = case list_to_integer(erlang:system_info(otp_release)) >= 27 of true -> trace:session_info(all); false -> [] end,
    {[Of(flags), Of(tracer)], [S || {kprof, _} = S <- Sessions],
     [erlang:trace_info(W, I) || W <- [new, new_processes, new_ports], I <- [flags, tracer]],
     lists:usort([I || {M, _} <- code:all_loaded(), {F, A} <- M:module_info(functions), {_, I} <- [erlang:trace_info({M, F, A}, all)],
                       I =/= false]),
     [X || X <- [M || {M, _} <- code:all_loaded()] ++ [K || {K, _} <- persistent_term:get()] ++ ets:all() ++ registered(), Kprof(X)],
     [P || P <- erlang:ports(), {_, "trace_ip" ++ _} <- [erlang:port_info(P, name)]],
     erlang:system_info(trace_control_word), [T || P <- processes(), {_, T} <- [process_info(P, sequential_trace_token)], T =/= []]}.'
}

# calls TIER: of complete requests.
calls() { sql "SELECT coalesce(sum(calls), 0) FROM tier_stats WHERE resolution_s = 10 AND tier = '$1' AND identity = '_total'"; }

# attach_and_load PORT CLIENTS REQUESTS THINK: kprof attach, with ${attach_options[@]}, a load, and what kprof tells of it. The guard may
# lower the sampling, or trip, where a thread has lost the processor for a moment, which no canary sees: then once more, in a new database.
attach_and_load() {
  local round
  for round in 1 2 3; do
    db=$scratch/round$round.db
    start_collector
    attach_system "${attach_options[@]}"
    load_http "$@"
    tells_seen
    if [ "$lowered" -eq 0 ] || [ "$round" -eq 3 ]; then break; fi
    detach_system
    stop_collector
  done
  timely "$lowered" -eq 0 "the guard lets all requests be traced"
}

# all_there REQUESTS: so many are in the ledger; where the guard has lowered the sampling, or tripped, as many as come. Entry calls that are
# left out are counted without a lock, and a thread that is interrupted there takes others' counts back.
all_there() {
  local before=${there:-}
  there=$(ledger requests_complete+requests_incomplete+requests_unsampled)
  [ "$there" -ge "$1" ] || { [ "$(ledger lowered_ms+trips)" -gt 0 ] && sleep 3 && [ "$there" = "$before" ] && [ "$there" -gt 0 ]; }
}

# tells_seen: for each kind of request kprof counted what the clients did, to the last one, and its time is not over theirs, and not far
# below: at least $least percent of it (what remains is the server's way to the entry and back, the network, and the client). Of a thousand
# requests $may_lose at most may have lost their token: they are in no mean, but the ledger has each. Where the guard has lowered the
# sampling it is only judged that none is there twice. Sets lowered, which is 0 where it has not.
tells_seen() {
  local wanted complete incomplete
  wanted=$(awk -F'|' '{ n += $2 } END { print n + 0 }' "$scratch/seen")
  holds "$wanted" -gt 0 "requests were made"
  is "$(awk -F'|' '$3 > 0' "$scratch/seen")" "" "none of them failed"
  wait_for 30 "the requests are in the database" all_there "$wanted"
  sleep 1.5 # were there more, they would be there by then
  complete=$(ledger requests_complete) incomplete=$(ledger requests_incomplete) lowered=$(ledger lowered_ms+trips)
  if [ "$lowered" -gt 0 ]; then
    holds "$(ledger requests_complete+requests_incomplete+requests_unsampled)" -le "$wanted" "the ledger has no request twice"
    return
  fi
  is $((complete + incomplete)) "$wanted" "the ledger has each request once"
  is "$incomplete" "$(ledger "incomplete_token + incomplete_cause")" \
    "those are incomplete that lost their token, or whose causes nobody knows"
  timely $((1000 * incomplete)) -le $((${may_lose:-0} * wanted)) "and hardly any has"
  sqlite3 :memory: -separator '|' "ATTACH 'file:$db?mode=ro' AS k" \
    "CREATE TABLE seen (identity TEXT, requests INTEGER, failed INTEGER, us INTEGER)" \
    ".import $scratch/seen seen" "
    WITH told AS (SELECT identity, sum(calls) AS requests, sum(total_us) AS total, sum(total_us) / sum(calls) AS mean
                  FROM k.tier_stats WHERE resolution_s = 10 AND tier = '_total' AND identity <> '_total' GROUP BY identity)
    SELECT coalesce(seen.identity, told.identity), seen.requests, told.requests, round(1.0 * us / seen.requests), round(told.mean),
           CASE WHEN coalesce(told.requests, 0) NOT BETWEEN coalesce(seen.requests, 0) - $incomplete AND coalesce(seen.requests, 0)
                THEN 'other requests'
                WHEN told.total > us THEN 'longer than the client waited'
                WHEN told.mean < ${least:-5} / 100.0 * us / seen.requests THEN 'too short' ELSE 'fits' END
    FROM seen FULL OUTER JOIN told USING (identity) ORDER BY 1" >"$scratch/compared"
  echo "identity | requests: clients, kprof | mean us: clients, kprof"
  cat "$scratch/compared"
  is "$(grep '|other requests$' "$scratch/compared")" "" "kprof tells the requests that the clients made"
  # clients that wait for a processor wait longer; who has answered, and waits for one before it returns, is longer than his client
  timely "$(grep -cv '|fits$' "$scratch/compared")" -eq 0 "no time is longer than theirs, or far below"
  is "$(sql "SELECT sum(requests_expired), sum(requests_unsampled), sum(dropped_messages), sum(decode_errors), sum(orphan_returns),
                    sum(unwound_frames) FROM ledger WHERE resolution_s = 10")" "0|0|0|0|0|0" "nothing was lost on the way"
  counted_once
}

# The guard has ended the full trace, or all tracing, for a while.
guarded() { grep -qE 'the guard of the node has|not traced at the moment' "$scratch/flame.log"; }

# draws PORT ENTRY OPTION...: while the clients go on, a flame graph of twenty requests, which begin with that function. On a busy machine
# the guard may end it before.
draws() {
  local port=$1 entry=$2 live functions id
  shift 2
  for _ in 1 2 3 4 5; do
    watch
    start "$scratch/flame.log" "$kprof" flame "$name@localhost" --collector "127.0.0.1:$collector_port" --db "$db" "$@" \
      --requests 20 --for 60s --out "$scratch/flame.svg" --out "$scratch/flame.collapsed"
    live=$!
    until gone "$live"; do # to find the functions takes a slow machine long
      send_http "$port" 2 200 5
      is "$(awk -F'|' '$3 > 0' "$scratch/seen")" "" "no request fails meanwhile"
    done
    ends "$live" 90
    unwatch
    cat "$scratch/flame.log"
    guarded || break
    sleep 15 # it is more careful for a while
  done
  timely "$(guarded && echo 1 || echo 0)" -eq 0 "the guard lets it come to its end"
  ! grep -q 'not traced at the moment' "$scratch/flame.log" || return 0
  [ "$status" -ne 15 ] || return 0 # it ended it before the first request was over
  is "$status" 0 "kprof flame ends well"
  id=$(sql 'SELECT max(id) FROM profiles')
  has "$scratch/flame.collapsed" "^$entry(;[^ ]+)+ [0-9]+$" "they begin with $entry"
  if ! guarded; then # else it may have ended it after the first request
    is "$(sql "SELECT requests FROM profiles WHERE id = $id")" 20 "of twenty requests"
    functions=$(sql "SELECT count(DISTINCT name) FROM profile_stacks WHERE profile = $id AND kind = 'function'")
    holds "$functions" -ge 30 "functions in the picture"
  fi
  is "$(sql "SELECT sum(value) > 0.99 * (SELECT requests_us FROM profiles WHERE id = $id) FROM profile_stacks
             WHERE profile = $id AND metric = 'wall' AND stack = 0")" 1 "it has all of the requests' time"
}
