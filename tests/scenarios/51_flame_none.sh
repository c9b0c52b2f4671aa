#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: where `kprof flame` has nothing to draw it says why, in one line, with an exit status of its own. Here are the reasons
# that take some force: no chosen function was reached, as requests ran through none of them or in a process that was not followed; the
# collector could not join them; the guard had to end it; the node lacks runtime_tools. (44_flame.sh has no request, others' identities, and
# no such module.) Nothing is kept and nothing stays in the node.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

chmod 400 "$scratch/cookie"
name=none_$$
node=$name@localhost

# flame ARGUMENT...: in the background, until patterns stand
flame() {
  start "$scratch/flame.log" "$kprof" flame "$node" --collector "127.0.0.1:$collector_port" --db "$db" "$@"
  flame=$!
  wait_for 20 "it traces" grep -qs '[1-9][0-9]* functions in' "$scratch/flame.log"
}
# none STATUS LINE: it has ended with that
none() {
  ends "$flame" 60
  is "$status" "$1" "kprof flame ends with $1: $(tail -n 1 "$scratch/flame.log")"
  has <(tail -n 1 "$scratch/flame.log") "^kprof flame: $2" "its last line tells why"
  is "$(sql 'SELECT count(*) FROM profiles')" 0 "nothing is kept"
  is "$(target_eval "$node" 'scenario_undone:stands().')" 0 "no patterns are left"
}
attached() { grep -qs '^tracing ' "$scratch/attach.log"; }
attach() {
  rm -f "$scratch/attach.log"
  start "$scratch/attach.log" "$kprof" attach "$node" --cookie-file "$scratch/cookie" --collector "127.0.0.1:$collector_port" --json "$@"
  attach=$!
  wait_for 30 "kprof attach traces" attached
}
request() { is "$(target_eval "$node" "scenario_flame:requests($1).")" ok "$1 requests"; }
# within EXPRESSION: while patterns stand, which they do for five seconds of ten
within() { target_eval "$node" "scenario_undone:await(true), $1."; }

start_collector
start_shop "$name"

# -- the token did not reach -------------------------------------------------------------------------------------------
is "$(target_eval "$node" 'scenario_flame:start().')" ok "the application runs"
attach --entry scenario_flame:handle/1 --tier serve=scenario_flame:serve/0
request 3
is "$(target_eval "$node" 'scenario_undone:stands().')" 0 "a module that no request runs is loaded"
flame --requests 2 --for 30s --module scenario_undone
is "$(within 'scenario_flame:requests(2)')" ok "2 requests"
none 13 '2 requests came, but ran through none of these modules, or in processes that were not followed$'
# Whose entry's process has no flag: it began after the patterns were set, and who made it has none. Before OTP 27 the tiers rest, and
# nobody hears of that request.
flame --requests 1 --for 15s --module timer
is "$(within 'scenario_flame_spin:requests(fun scenario_flame:handle/1, 1)')" ok "a request in a process without a flag"
if [ "$(otp_release)" -ge 27 ]; then
  none 13 '1 request came, but ran through none of these modules, or in processes that were not followed$'
else
  none 10 'no request came in that time'
fi
kill -TERM "$attach"
ends "$attach" 30

# -- what came could not be joined -------------------------------------------------------------------------------------
# More calls are open at once than the collector keeps: it has to leave some of that request out.
attach --entry scenario_flood:deep/1
is "$(target_eval "$node" '[scenario_flood:deep(9) || _ <- [1, 2, 3]].')" '[ok,ok,ok]' "short requests"
flame --requests 1 --for 30s --module scenario_flood
is "$(within 'scenario_flood:deep(60000)')" ok "a request of 120000 calls, all open at once"
kill -INT "$flame"
none 14 '1 request came, and of each messages were lost or could not be joined; kprof report tells why$'
kill -TERM "$attach"
ends "$attach" 30

# -- the guard ---------------------------------------------------------------------------------------------------------
attach --entry scenario_flood:requests/1
is "$(target_eval "$node" '[scenario_flood:requests(5) || _ <- [1, 2, 3]].')" '[5,5,5]' "short requests"
# none of these requests is wanted, else those that came before are drawn. The process that they are traced to is kept from working
flame --requests 100000 --for 60s --module scenario_flood --only nobody
is "$(within 'scenario_undone:hold(kprof_full_relay, fun() -> scenario_flood:run(2, 3000) > 1000 end)')" true \
  "two processes call as fast as they can, and nobody takes the messages"
none 15 'the guard of the node has ended it: the node made messages faster than the process that it is traced to takes them'
is "$(target_eval "$node" 'kprof:status().')" tracing "the tiers are traced as before"
kill -TERM "$attach"
ends "$attach" 30

# -- no runtime_tools --------------------------------------------------------------------------------------------------
is "$(target_eval "$node" 'code:del_path(runtime_tools).')" true "a node without runtime_tools"
got=0
timeout 60 "$kprof" flame "$node" --cookie-file "$scratch/cookie" --entry scenario_flame:handle/1 --db "$scratch/none.db" \
  >"$scratch/flame.log" 2>&1 || got=$?
is "$got" 8 "kprof flame ends with 8: $(tail -n 1 "$scratch/flame.log")"
has "$scratch/flame.log" 'runtime_tools' "and says what the node lacks"
