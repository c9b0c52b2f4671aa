# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# What the scenarios of systems that nobody here wrote share: starting one, loading it, and comparing what kprof tells with what the clients
# saw. Sourced behind lib.sh and debian.sh. Such a system keeps its state in the scratch folder, listens on loopback and knows nothing of
# kprof.

name=real_$$

# free_port: a number that nobody listens on now.
free_port() { erl -noinput \
  -eval '{ok, S} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]), {ok, P} = inet:port(S), io:format("~b", [P]), halt(0).'; }

# start_system ARGUMENT...: Erlang with these arguments as the node $name, its state in $scratch/home. Sets erl_pid.
start_system() {
  start "$scratch/$name.log" env HOME="$scratch/home" ERL_LIBS="$root/usr/lib/erlang/lib" erl -noinput -sname "$name@localhost" "$@"
  erl_pid=$!
  wait_for 60 "node $name is up" answers_or_ended
  gone "$erl_pid" && fail "the system did not start"
  return 0
}
answers_or_ended() { gone "$erl_pid" || answers "$name@localhost"; }
listening() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

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
load_http() { watch; send_http "$@"; }
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

# all_there REQUESTS: so many are in the ledger; where the guard has lowered the sampling, as many as come. Entry calls that are left out
# are counted without a lock, and a thread that is interrupted there takes others' counts back.
all_there() {
  local before=${there:-}
  there=$(ledger requests_complete+requests_incomplete+requests_unsampled)
  [ "$there" -ge $(($1 - $1 / 500)) ] || { [ "$(ledger lowered_ms)" -gt 0 ] && sleep 3 && [ "$there" = "$before" ] && [ "$there" -gt 0 ]; }
}

# tells_seen: for each kind of request kprof counted what the clients did, to the last one, and its mean time is not over theirs, and not
# far below: at least $least percent of it (what remains is the server's way to the entry and back, the network, and the client). Of a
# thousand requests $may_lose at most may have lost their token: they are in no mean, but the ledger has each. Where the guard has lowered
# the sampling, since the machine was not quiet, it is only judged that none is there twice. Sets lowered, for how many ms it has.
tells_seen() {
  local wanted complete incomplete
  wanted=$(awk -F'|' '{ n += $2 } END { print n + 0 }' "$scratch/seen")
  holds "$wanted" -gt 0 "requests were made"
  is "$(awk -F'|' '$3 > 0' "$scratch/seen")" "" "none of them failed"
  wait_for 30 "the requests are in the database" all_there "$wanted"
  sleep 1.5 # were there more, they would be there by then
  complete=$(ledger requests_complete) incomplete=$(ledger requests_incomplete) lowered=$(ledger lowered_ms)
  if [ "$lowered" -gt 0 ]; then
    holds "$(ledger requests_complete+requests_incomplete+requests_unsampled)" -le "$wanted" "the ledger has no request twice"
    timely "$lowered" -eq 0 "the guard lets all requests be traced"
    return
  fi
  is $((complete + incomplete)) "$wanted" "the ledger has each request once"
  is "$incomplete" "$(ledger "incomplete_token + incomplete_cause")" \
    "those are incomplete that lost their token, or whose causes nobody knows"
  timely $((1000 * incomplete)) -le $((${may_lose:-0} * wanted)) "and hardly any has"
  sqlite3 :memory: -separator '|' "ATTACH 'file:$db?mode=ro' AS k" \
    "CREATE TABLE seen (identity TEXT, requests INTEGER, failed INTEGER, us INTEGER)" \
    ".import $scratch/seen seen" "
    WITH told AS (SELECT identity, sum(calls) AS requests, sum(total_us) / sum(calls) AS mean FROM k.tier_stats
                  WHERE resolution_s = 10 AND tier = '_total' AND identity <> '_total' GROUP BY identity)
    SELECT coalesce(seen.identity, told.identity), seen.requests, told.requests, round(1.0 * us / seen.requests), round(told.mean),
           CASE WHEN coalesce(told.requests, 0) NOT BETWEEN coalesce(seen.requests, 0) - $incomplete AND coalesce(seen.requests, 0)
                THEN 'other requests'
                WHEN told.mean > 1.0 * us / seen.requests THEN 'longer than the client waited'
                WHEN told.mean < ${least:-5} / 100.0 * us / seen.requests THEN 'too short' ELSE 'fits' END
    FROM seen FULL OUTER JOIN told USING (identity) ORDER BY 1" >"$scratch/compared"
  echo "identity | requests: clients, kprof | mean us: clients, kprof"
  cat "$scratch/compared"
  is "$(grep -v '|\(fits\|too short\)$' "$scratch/compared")" "" "kprof tells what the clients saw"
  # clients that wait for a processor wait longer
  timely "$(grep -c '|too short$' "$scratch/compared")" -eq 0 "and no time is far below theirs"
  is "$(sql "SELECT sum(requests_expired), sum(requests_unsampled), sum(dropped_messages), sum(decode_errors), sum(orphan_returns),
                    sum(unwound_frames) FROM ledger WHERE resolution_s = 10")" "0|0|0|0|0|0" "nothing was lost on the way"
  counted_once
}

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
    cat "$scratch/flame.log"
    grep -q 'the guard of the node has' "$scratch/flame.log" || break
    sleep 15 # it is more careful for a while
  done
  timely "$(grep -c 'the guard of the node has' "$scratch/flame.log")" -eq 0 "the guard lets it come to its end"
  [ "$status" -ne 15 ] || return 0 # it ended it before the first request was over
  is "$status" 0 "kprof flame ends well"
  id=$(sql 'SELECT max(id) FROM profiles')
  grep -q 'the guard of the node has' "$scratch/flame.log" ||
    is "$(sql "SELECT requests FROM profiles WHERE id = $id")" 20 "of twenty requests"
  has "$scratch/flame.collapsed" "^$entry(;[^ ]+)+ [0-9]+$" "they begin with $entry"
  functions=$(sql "SELECT count(DISTINCT name) FROM profile_stacks WHERE profile = $id AND kind = 'function'")
  holds "$functions" -ge 30 "functions in the picture"
  is "$(sql "SELECT sum(value) > 0.99 * (SELECT requests_us FROM profiles WHERE id = $id) FROM profile_stacks
             WHERE profile = $id AND metric = 'wall' AND stack = 0")" 1 "it has all of the requests' time"
}
