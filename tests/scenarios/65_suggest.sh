#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: kprof suggest tells what to trace in a node of which it knows nothing: the command that it prints, pasted, and the
# file that it writes give a table that names the requests. That is so where a server that it knows listens (cowboy), and where only the
# stacks of busy processes tell. Whatever ends it, nothing of it stays in the node, and 100,000 processes do not hold it up.
# A preset is the same without looking. An identity function may be Elixir's.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$(dirname "${BASH_SOURCE[0]}")/debian.sh"
source "$(dirname "${BASH_SOURCE[0]}")/web.sh"

chmod 400 "$scratch/cookie"
mkdir "$scratch/bin"
ln -s "$kprof" "$scratch/bin/kprof"
pasted() { # FILE MORE: runs the command that it ends with, with more behind it, as somebody who pastes it
  printf '%s%s\n' "$(cat "$1")" "$2" >"$scratch/pasted.sh"
  PATH="$scratch/bin:$PATH" timeout 120 bash "$scratch/pasted.sh" >"$scratch/pasted.log" 2>&1
}
# suggest NODE OPTION...: into $scratch/suggested
# It may see nobody at work where the machine held up all of its looks.
suggest() {
  local tries=5
  until timeout 600 "$kprof" suggest "$@" --cookie-file "$scratch/cookie" >"$scratch/suggested" 2>"$scratch/suggest.log"; do
    if [ $? -ne 10 ] || [ $((--tries)) -eq 0 ]; then fail "kprof suggest: $(cat "$scratch/suggest.log")"; fi
  done
}
traces() { grep -qs '^tracing ' "$scratch/$1.log"; } # LOG
untouched() { is "$(target_eval "$node" 'scenario_left:differences("before").')" "[]" "nothing is left in the node $1"; }
untouched_by_now() { [ "$( (trap - EXIT; target_eval "$node" 'code:which(kprof).') 2>/dev/null)" = non_existing ]; }

# -- a node that only stacks tell of -------------------------------------------------------------------------------------------------
start_collector
name=suggest_$$
node=$name@localhost
start_shop "$name"
is "$(target_eval "$node" 'scenario_left:prepare(), scenario_left:snapshot("before").')" ok "the node before"
status=0
"$kprof" suggest "$node" --cookie-file "$scratch/cookie" --for 200ms >"$scratch/idle" 2>&1 || status=$?
is "$status" 10 "an idle node: nothing to suggest"
has "$scratch/idle" "^kprof suggest: nothing to suggest: $node .* while it serves requests" "and it says what to do"
untouched "after that"

start_load --seconds 600 --clients 4 --think 2
served() { [ "$(target_eval "$node" 'length([P || P <- erlang:ports(), {_, "tcp_inet"} <- [erlang:port_info(P, name)]]) > 7.')" = true ]; }
wait_for 30 "clients are served" served
is "$(target_eval "$node" 'scenario_left:snapshot("before").')" ok "the node before, with its clients"
# a look of some seconds may miss a server that is quick
for _ in 1 2 3 4 5; do
  suggest "$node" --config-out "$scratch/suggested.config"
  ! grep -q 'shop_worker' "$scratch/suggested" || break
done
cat "$scratch/suggested"
untouched "after kprof suggest"
has "$scratch/suggested" "^kprof attach $node --cookie-file $scratch/cookie \\\\$" "a command to be pasted"
has "$scratch/suggested" '^  --entry shop_conn:answer/3,returns=none' "its entry is where the loop of a connection calls"
has "$scratch/suggested" '^#   --tier shop_worker=shop_worker:handle_call/3,returns=none$' "servers at work are tiers, and have a reason"
pasted "$scratch/suggested" " --collector 127.0.0.1:$collector_port --for 4s" || fail "the pasted command: $(cat "$scratch/pasted.log")"
untouched "after the pasted command"
routes() {
  sql "SELECT count(DISTINCT identity) FROM tier_stats
       WHERE identity IN ('read', 'search', 'order', 'update', 'create', 'delete') AND tier = 'shop_worker' AND calls > 0"
}
named() { [ "$(routes)" = 6 ]; }
wait_for 20 "the table names the shop's routes" named
is "$(sql "SELECT count(*) FROM tier_stats WHERE identity IN ('undefined', '_other')")" 0 "and has no request without a name"
before=$(ledger requests_complete)
"$kprof" attach "$node" --cookie-file "$scratch/cookie" --config "$scratch/suggested.config" --collector "127.0.0.1:$collector_port" \
  --for 2s >"$scratch/config.log" 2>&1 || fail "the configuration: $(cat "$scratch/config.log")"
wait_for 20 "the configuration traces the same" ledger_reaches requests_complete $((before + 50))
is "$(sql "SELECT count(*) FROM tier_stats WHERE identity IN ('undefined', '_other')")" 0 "with the same names"

suggest "$node" --json
is "$(sqlite3 :memory: "SELECT j ->> '\$.node', j ->> '\$.options[0].option', j ->> '\$.options[0].value',
    j ->> '\$.command' LIKE 'kprof attach %' FROM (SELECT readfile('$scratch/suggested') AS j)")" \
  "$node|entry|shop_conn:answer/3,returns=none|1" "--json"

# -- however it ends -----------------------------------------------------------------------------------------------------------------
begin() {
  written_when "$node" "$scratch/entered" 'is_pid(whereis(kprof_sup))'
  start "$scratch/ended.log" "$kprof" suggest "$node" --cookie-file "$scratch/cookie" --for 4s
  suggest_pid=$!
  wait_for 30 "the shim is in the node" test -e "$scratch/entered"
}
begin
kill -INT "$suggest_pid"
ends "$suggest_pid" 30
is "$status" 1 "Ctrl-C ends it"
is "$(tr -d '\n' <"$scratch/ended.log")" "kprof suggest: taking kprof out of the node" "and it prints no command"
untouched "after Ctrl-C"
begin
kill -KILL "$suggest_pid"
wait_for 20 "the node takes kprof out by itself" untouched_by_now
untouched "after kill -9"

# -- somebody else traces there ------------------------------------------------------------------------------------------------------
start "$scratch/attach.log" "$kprof" attach "$node" --cookie-file "$scratch/cookie" --collector "127.0.0.1:$collector_port" \
  --entry shop_http:handle_request/2
attach_pid=$!
wait_for 30 "another one traces" traces attach
suggest "$node"
has "$scratch/suggested" '^  --entry shop_conn:answer/3,returns=none' "a node that is traced tells the same"
gone "$attach_pid" && fail "the other one has ended"
kill -INT "$attach_pid"
ends "$attach_pid" 20
untouched "after both"

# -- a large node --------------------------------------------------------------------------------------------------------------------
is "$(target_eval "$node" '
  P = spawn(fun() -> [spawn_link(fun() -> receive stop -> ok end end) || _ <- lists:seq(1, 100000)], receive stop -> ok end end),
  register(scenario_crowd, P).')" true "100,000 processes are spawned"
crowded() { [ "$(target_eval "$node" 'erlang:system_info(process_count) > 100000.')" = true ]; }
alone() { [ "$(target_eval "$node" 'erlang:system_info(process_count) > 1000.')" = false ]; }
wait_for 60 "they are there" crowded
watch
began=$SECONDS
suggest "$node"
has "$scratch/suggested" '^  --entry shop_conn:answer/3,returns=none' "the busy ones among 100,000 tell the same"
timely $((SECONDS - began)) -le 12 "in some seconds"
is "$(target_eval "$node" 'exit(whereis(scenario_crowd), kill).')" true "they are killed"
wait_for 60 "they are gone" alone
purged() { [ "$(target_eval "$node" 'scenario_left:differences("before").')" = "[]" ]; }
wait_for 60 "the last module is purged: the more processes there were, the longer it rested after each" purged
untouched "after that"
kill -TERM "$load_pid" 2>/dev/null || true

# -- a server that is known: cowboy, as Debian's rabbitmq-server brings it ------------------------------------------------------------
debian rabbitmq-server
plugins=$(echo "$root"/usr/lib/rabbitmq/lib/rabbitmq_server-*/plugins)
name=suggest_cowboy_$$ serve_options='#{stream_handlers => [cowboy_stream_h]}'
node=$name@localhost
serve scenario_web_cowboy kprof_cowboy -- -pa "$plugins"/cowboy-*/ebin "$plugins"/cowlib-*/ebin "$plugins"/ranch-*/ebin
ask /users/1
suggest "$node" --for 100ms
cat "$scratch/suggested"
has "$scratch/suggested" '^#       a cowboy listens: scenario_web_cowboy; it runs each request in this function$' "a listener is the reason"
rm -f "$scratch/seen" "$scratch/pasted.log"
before=$(ledger requests_complete)
pasted "$scratch/suggested" " --collector 127.0.0.1:$collector_port --for 6s" & pasted=$!
wait_for 30 "the pasted command traces" traces pasted
ask /users/1 /users/2 /slow
ask -X POST /users/1
wait "$pasted" || fail "the pasted command: $(cat "$scratch/pasted.log")"
wait_for 20 "the requests are in the database" ledger_reaches requests_complete $((before + 4))
is "$(sql "SELECT identity, tier, sum(calls) FROM tier_stats WHERE resolution_s = 10 AND node LIKE '$name@%' AND identity <> '_total'
           GROUP BY 1, 2 ORDER BY 1, 2" | grep -v _total)" \
  $'GET /scenario_web_cowboy|cowboy_stream_h:request_process/3|3\nGET /scenario_web_cowboy|handler|3
POST /scenario_web_cowboy|cowboy_stream_h:request_process/3|1\nPOST /scenario_web_cowboy|handler|1' "it names method and handler"

# -- presets -------------------------------------------------------------------------------------------------------------------------
suggest "$node" --preset cowboy
has "$scratch/suggested" '^  --entry cowboy_stream_h:request_process/3 ' "a preset is shown"
before=$(ledger requests_complete)
start "$scratch/preset.log" "$kprof" attach "$node" --cookie-file "$scratch/cookie" --collector "127.0.0.1:$collector_port" \
  --preset cowboy --tier store=scenario_web:store/1,returns=none --tier handler=cowboy_handler:execute/2
attach_pid=$!
wait_for 30 "a preset, to which a tier is added, and of which one is replaced" traces preset
has "$scratch/preset.log" '^tracing .* 1 entry, 2 tiers' "and it says so"
ask /users/1
wait_for 20 "its request is in the database" ledger_reaches requests_complete $((before + 1))
kill -INT "$attach_pid"
ends "$attach_pid" 20
is "$(sql "SELECT identity, sum(calls) FROM tier_stats WHERE resolution_s = 10 AND tier = 'store' AND identity <> '_total' GROUP BY 1")" \
  "GET /scenario_web_cowboy|1" "it has the preset's name, and the added tier"
refuses() { # STATUS PATTERN OPTION...
  local status=0 want=$1 pattern=$2
  shift 2
  "$kprof" attach "$node" --cookie-file "$scratch/cookie" --collector "127.0.0.1:$collector_port" "$@" >"$scratch/refusal.log" 2>&1 ||
    status=$?
  is "$status" "$want" "refused: $*"
  has "$scratch/refusal.log" "$pattern" "and why"
}
refuses 6 'nothing of ejabberd runs there' --preset ejabberd
refuses 6 'there is no such module' --preset phoenix=MyApp.Endpoint
refuses 6 'lists is no Phoenix endpoint' --preset phoenix=lists
refuses 6 'there is no such function, but scenario_web:store/1' --tier store=scenario_web:stor/1,returns=none

# -- an identity function in Elixir --------------------------------------------------------------------------------------------------
refuses 6 'this node runs no Elixir: write a fun' --preset cowboy --identity 'fn _ -> :x end'
# the machine's Elixir is for its own OTP
if [ -z "${KPROF_OTP:-}" ] && command -v elixir >/dev/null; then
  name=suggest_elixir_$$
  node=$name@localhost
  start_erl "$name" -pa "$(elixir -e 'IO.puts(:code.lib_dir(:elixir))')/ebin" -s scenario_entry start
  is "$(target_eval "$node" '{ok, _} = application:ensure_all_started(elixir), ok.')" ok "a node runs Elixir"
  refuses 6 'missing terminator' --entry scenario_entry:handle/2 --identity 'fn {a, -> a end'
  before=$(ledger requests_complete)
  start "$scratch/elixir.log" "$kprof" attach "$node" --cookie-file "$scratch/cookie" --collector "127.0.0.1:$collector_port" \
    --entry scenario_entry:handle/2 --identity 'fn {:scenario_entry, :handle, [what, _]} when what != :stored -> what; _ -> nil end'
  attach_pid=$!
  wait_for 30 "it is traced with an fn" traces elixir
  target_eval "$node" 'scenario_entry:client([local, stored, fails], 30).' >/dev/null
  wait_for 20 "its requests are in the database" ledger_reaches requests_complete $((before + 30))
  kill -INT "$attach_pid"
  ends "$attach_pid" 20
  is "$(sql "SELECT identity, sum(calls) FROM tier_stats WHERE resolution_s = 10 AND node LIKE '$name@%' AND tier = '_total'
             AND identity <> '_total' GROUP BY 1 ORDER BY 1")" $'fails|10\nlocal|10\nundefined|10' "the fn names them; nil is no name"
fi
stop_collector
intact
