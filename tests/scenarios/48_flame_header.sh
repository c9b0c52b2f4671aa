#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: a node asks for full traces itself, with kprof:flame/1 and by a header of a web request: the profile is that request's
# alone, and its name comes back with the answer. Nobody else gets one, nobody gets many, and nothing of it stays.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$(dirname "${BASH_SOURCE[0]}")/debian.sh"
source "$(dirname "${BASH_SOURCE[0]}")/web.sh"

debian rabbitmq-server
plugins=$(echo "$root"/usr/lib/rabbitmq/lib/rabbitmq_server-*/plugins)
name=header_$$
node=$name@localhost
log=$scratch/$name.log
start_collector
serve scenario_web_cowboy kprof_cowboy -- -pa "$plugins"/cowboy-*/ebin "$plugins"/cowlib-*/ebin "$plugins"/ranch-*/ebin

# patterns: of all functions of the server's modules, what the node has of them
patterns() {
  target_eval "$node" 'lists:sort([{M, F, A, scenario_trace:info({M, F, A}, match_spec)}
    || M <- [scenario_web, scenario_web_cowboy, cowboy_router, ranch], {F, A} <- M:module_info(functions)]).'
}
# calls PROFILE FUNCTION: how many the profile has
calls() {
  sql "SELECT sum(self) FROM profile_stacks WHERE profile = $1 AND metric = 'calls' AND kind = 'function' AND name = '$2'"
}

# -- kprof:flame/1 -----------------------------------------------------------------------------------------------------
web_config
start_tracing "$name" "$scratch/web.config"
# shellcheck disable=SC2046
ask $(users 1 5)
wait_for 15 "requests, from which the processes are known" ledger_reaches requests_complete 5
before=$(patterns)
is "$(target_eval "$node" 'kprof:flame(#{requests => 0}).')" '{error,{bad_value,requests,0,"a number from 1 to 100000"}}' "wrong options"
is "$(target_eval "$node" '{error, Why} = kprof:flame(#{modules => ["no_such_*"]}), kprof:format_error(Why).')" \
  '"there is no profile: no module that is loaded has such a name"' "no such modules"
# one connection, whose process makes those of its requests
# shellcheck disable=SC2046
ask $(printf '/slow\n/users/1\n%.0s' {1..200}) & asks=$!
is "$(target_eval "$node" 'Self = self(),
  Flame = fun() -> Self ! {told, kprof:flame(#{requests => 5, identity => {"GET", "/users/:id"}, name => "from inside"})} end,
  Told = fun() -> receive {told, What} -> What end end,
  [spawn(Flame) || _ <- [1, 2]],
  {error, Why} = Told(),
  {Told(), kprof:format_error(Why)}.')" \
  '{{ok,1},"a full trace that this node asked for runs already: try again when it is over"}' "kprof:flame/1, one at a time"
wait "$asks"
is "$(sql "SELECT name || '|' || requests FROM profiles WHERE id = 1")" "from inside|5" "its profile"
is "$(calls 1 scenario_web:store/1)" 5 "has the calls of its requests"
is "$(patterns)" "$before" "the node's patterns are as before"
stop_tracing

# -- the header --------------------------------------------------------------------------------------------------------
secret=$(head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n')
# asked PATH [CURL-OPTION...]: the name of the profile that the answer tells, empty without one
asked() { curl -sS -m 20 -o /dev/null -D - "${@:2}" "http://127.0.0.1:$port$1" | its_name; }
its_name() { tr -d '\r' | sed -n 's/^x-kprof-profile: //Ip'; }
# named PATH [CURL-OPTION...]: asks until it was traced, as a busy machine takes more than 50 ms for its patterns. Sets profile.
named() {
  local i
  for i in {1..30}; do
    profile=$(asked "$@")
    [ -z "$profile" ] || return 0
    [ "$i" = 1 ] || forgive
    sleep 0.5
  done
  fail "no request was traced: $(grep 'gets none' "$log" | tail -n 1)"
}
# as if none had been traced lately
forgive() {
  is "$(target_eval "$node" 'atomics:put(kprof_slots:find(), 25, erlang:monotonic_time(millisecond)).')" ok "as if none had been lately"
}
# kept NAME: the number of the profile
kept() { sql "SELECT id FROM profiles WHERE name = '$1'"; }
is_kept() { [ -n "$(kept "$1")" ]; }
# Where the machine stands still for a tenth of a second the trace's messages come too late to be joined, and the log says so.
lost() { grep -q "$profile: there is no profile: 1 request came, but of each messages were lost" "$log"; }
kept_or_lost() { is_kept "$profile" || lost; }
# traced_whole named|logged PATH [CURL-OPTION...]: asks until a profile is kept, which it sets.
traced_whole() {
  local i
  for i in {1..10}; do
    "$@"
    has <(echo "$profile") '^flame-[0-9a-z]+$' "$name: the profile's name is told"
    wait_for 15 "it is kept, or the log says that messages came too late" kept_or_lost
    ! is_kept "$profile" || return 0
    forgive
  done
  fail "none of $i traces was whole: $(grep 'there is no profile' "$log" | tail -n 1)"
}

rm -f "$kprof_log"
web_config '{sample, {one_in, 1000000}}' "{flame_header, \"X-Trace-Request\", \"$secret\"}"
start_tracing "$name" "$scratch/web.config"
for wrong in true "${secret%?}" "${secret}0" "x${secret#?}" ''; do
  is "$(asked /users/1 -H "X-Trace-Request: $wrong")" '' "another word than the secret does nothing"
done
is "$(asked /users/2)" '' "nor does none"
traced_whole named /users/3 -H "X-Trace-Request: $secret"
is "$(sql "SELECT requests || '|' || incomplete FROM profiles WHERE name = '$profile'")" "1|0" "of one request, which is complete"
is "$(sql "SELECT DISTINCT identity FROM profile_stacks WHERE profile = $(kept "$profile")")" "GET /users/:id" "under its route"
is "$(calls "$(kept "$profile")" scenario_web:store/1)" 1 "its process was traced"
is "$(sql "SELECT count(*) FROM profile_processes WHERE profile = $(kept "$profile") AND process NOT GLOB '?* <0.[0-9]*.[0-9]*>'")" 0 \
  "its processes have names and pids"
holds "$(sql "SELECT count(DISTINCT process) FROM profile_processes WHERE profile = $(kept "$profile")")" -ge 1 "and are there"
wait_for 5 "the log says so, too" grep -q "$profile is kept as profile $(kept "$profile")" "$log"
is "$(patterns)" "$before" "the node's patterns are as before"

# -- not many, and not for long -----------------------------------------------------------------------------------------
# untraced WHY: the last request ran without, and the log says why
untraced() {
  is "$profile" '' "one runs untraced"
  wait_for 5 "the log says why: $1" grep -q "asked for a full trace gets none: $1" "$log"
}
# nothing is under way that the next one would have to wait for
may() { [ "$(target_eval "$node" 'kprof_slots:full(kprof_slots:find()).')" = 0 ]; }

# what comes while one is traced, or kept
# Sets profile, of the one that comes meanwhile.
two_asked() {
  local long over=
  forgive
  written_when "$node" "$scratch/traced" 'kprof_slots:full(kprof_slots:find()) =/= 0'
  asked /long -H "X-Trace-Request: $secret" >"$scratch/long" & long=$!
  wait_for 15 "a long one is traced, or over without" traced_or_gone "$long"
  profile=$(asked /users/4 -H "X-Trace-Request: $secret")
  ! gone "$long" || over=1
  wait "$long"
  # else its patterns did not stand in time, or it was over too early
  [ -s "$scratch/long" ] && [ -z "$over" ]
}
traced_or_gone() { [ -e "$scratch/traced" ] || gone "$1"; }
for i in {1..30}; do
  if two_asked; then
    untraced 'another one is traced so'
    profile=$(cat "$scratch/long")
    wait_for 15 "the long one is kept, or the log says that messages came too late" kept_or_lost
    ! is_kept "$profile" || break
  fi
  wait_for 15 "the next one may come" may
done
is_kept "$profile" || fail "none of $i long ones was kept"
is "$(patterns)" "$before" "the node's patterns are as before"

# where nobody in the node tells its end, the collector sees it, and does not wait for what becomes of the request
# Sets profile.
untold() {
  local eval
  forgive
  watch
  target_eval "$node" 'Slots = kprof_slots:find(), Hide = fun Hide(0) -> never; Hide(N) ->
    case kprof_slots:full(Slots) of 0 -> timer:sleep(5), Hide(N - 1); _ -> kprof_slots:set_full(Slots, 0), hidden end end,
    Hide(1000).' >"$scratch/hidden" & eval=$!
  sleep 1
  # its process lives on, with the next request
  profile=$(curl -sS -m 20 -o "$scratch/slow" -D - -H "X-Trace-Request: $secret" "http://127.0.0.1:$port/slow" \
    --next -sS -m 20 -o "$scratch/long" "http://127.0.0.1:$port/long" | its_name)
  wait "$eval"
  unwatch
  [ -n "$profile" ] && grep -q hidden "$scratch/hidden"
}
wait_for 15 "the next one may come" may
for i in {1..30}; do
  untold || continue
  wait_for 15 "the one that is not told is kept, or the log says that messages came too late" kept_or_lost
  ! is_kept "$profile" || break
done
timely "$(sql "SELECT patterns_ms FROM profiles WHERE name = '$profile'")" -lt 900 "its patterns have stood for no second, ms"
is "$(calls "$(kept "$profile")" scenario_web:store/1)" 1 "and it is whole"
is "$(patterns)" "$before" "the node's patterns are as before"

# who cannot have it within 50 ms goes on
wait_for 15 "the next one may come" may
since=$SECONDS
forgive
is "$(target_eval "$node" 'sys:suspend(kprof_life).')" ok "the session is kept busy"
began=$(date +%s%N)
profile=$(asked /users/5 -H "X-Trace-Request: $secret")
took=$((($(date +%s%N) - began) / 1000000))
is "$(target_eval "$node" 'sys:resume(kprof_life).')" ok "and no longer"
untraced 'the patterns did not stand within 50 ms'
holds "$took" -lt 10000 "and has not waited for it, ms" # it would wait for ever
is "$(patterns)" "$before" "the node's patterns are as before"

# many, one after the other
made=0
too_many() { grep -q 'asked for a full trace gets none: there were too many lately' "$log"; }
for i in {1..100}; do # some of them while another one is traced
  profile=$(asked /users/6 -H "X-Trace-Request: $secret")
  if [ -n "$profile" ]; then made=$((made + 1)); elif too_many; then break; fi
  sleep 0.5
done
untraced 'there were too many lately'
# each twelve seconds allow one more
holds "$made" -le $((4 + (SECONDS - since + 1) / 12)) "of five, with the one before"
# one whose process dies is over
wait_for 15 "the next one may come" may
target_eval "$node" 'Slots = kprof_slots:find(),
  Until = fun Again(F) -> F() orelse begin timer:sleep(5), Again(F) end end,
  Until(fun() -> kprof_slots:full(Slots) =/= 0 end),
  [exit(P, kill) || P <- ranch:procs(scenario_web_cowboy, connections)],
  element(1, timer:tc(fun() -> Until(fun() -> kprof_slots:full(Slots) =:= 0 end) end)) div 1000.' >"$scratch/killed" & killed=$!
sleep 1.5
watch
for i in {1..30}; do # they get no answer
  gone "$killed" || { forgive && asked /long -m 1 -H "X-Trace-Request: $secret" 2>>"$scratch/curl.log"; } || true
done
wait "$killed"
timely "$(cat "$scratch/killed")" -lt 600 "its trace is over, after ms"
is "$(patterns)" "$before" "the node's patterns are as before"
stop_tracing

# -- for test systems: no secret -----------------------------------------------------------------------------------------
rm -f "$kprof_log"
web_config '{flame_header, "X-Trace-Request", any, #{modules => ["scenario_web*"]}}'
start_tracing "$name" "$scratch/web.config"
is "$(asked /users/7 -H 'X-Trace-Request: no')" '' "no is no"
# yes is enough, and an answer in parts tells the name, too
traced_whole named /pieces --http2-prior-knowledge -H 'X-Trace-Request: true'
is "$(sql "SELECT group_concat(module) FROM (SELECT DISTINCT module FROM profile_stacks
           WHERE profile = $(kept "$profile") AND kind = 'function' ORDER BY 1)")" \
  "scenario_web,scenario_web_cowboy" "of the modules that were named"
stop_tracing

# -- other servers' helpers: the answer's header, or the log alone ----------------------------------------------------------
# traced_with SERVER named|logged MODULE HELPER [ARGUMENT...]: in a node of its own. Sets profile.
traced_with() {
  local tells=$2
  name=$1_$$ node=$1_$$@localhost log=$scratch/$1_$$.log
  shift 2
  rm -f "$kprof_log"
  serve "$@"
  start_tracing "$name" "$scratch/web.config"
  traced_whole "$tells" /users/8 -H 'X-Trace-Request: true'
  is "$(calls "$(kept "$profile")" scenario_web:store/1)" 1 "its process was traced"
  stop_tracing
}
# logged PATH [CURL-OPTION...]: as named, where only the log has the name. Sets profile.
logged() {
  local i
  for i in {1..80}; do
    [ $((i % 10)) != 1 ] || { forgive && is "$(asked "$@")" '' "the answer has no name"; }
    sleep 0.3
    profile=$(sed -n 's/.* \(flame-[0-9a-z]*\) is kept as profile .*/\1/p' "$log" | head -n 1)
    [ -z "$profile" ] || return 0
  done
  fail "no request was traced: $(grep 'gets none' "$log" | tail -n 1)"
}
traced_with plug named scenario_web_plug Elixir.Kprof.Plug
traced_with elli named scenario_web_elli kprof_elli
debian erlang-yaws
serve_options="#{port => $(free_port)}"
traced_with yaws named scenario_web_yaws kprof_yaws -- -pa "$root"/usr/lib/yaws-*/ebin -run file set_cwd "$scratch"
debian erlang-mochiweb
traced_with mochiweb logged scenario_web_mochiweb kprof_mochiweb -- -pa "$root"/usr/lib/erlang/lib/mochiweb*/ebin
traced_with httpd logged scenario_web_httpd kprof_httpd -- -run file set_cwd "$scratch"
traced_with misultin logged scenario_web_misultin kprof_misultin
stop_collector
