#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: kprof attach traces a node that has nothing of kprof, without any Erlang for itself, and what it says is true;
# however it ends, Ctrl-C, TERM, --for, kprof detach or kill -9, nothing of it stays in the node; what it cannot do it says in one line.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

chmod 400 "$scratch/cookie"
mkdir "$scratch/here"
cd "$scratch/here" # where a collector of its own writes kprof.db: what it refuses leaves none
name=attach_$$
node=$name@localhost
attach_log=$scratch/attach.log
attach_pid=

# The tool finds no Erlang: an empty folder is its whole PATH.
mkdir "$scratch/nothing"
tool() { env -i PATH="$scratch/nothing" HOME="$scratch/home" "$kprof" "$@"; }

started() { grep -qs '^tracing ' "$attach_log" || gone "$attach_pid"; }

# attach NODE [OPTION...]: in the background, until it traces.
attach() {
  rm -f "$attach_log"
  start "$attach_log" env -i PATH="$scratch/nothing" HOME="$scratch/home" "$kprof" attach "$@" --collector "127.0.0.1:$collector_port"
  attach_pid=$!
  wait_for 30 "attaching" started
  grep -q '^tracing ' "$attach_log" || fail "kprof attach ended"
}

# untouched WHAT: nothing is in the node that was not there before.
untouched() { is "$(target_eval "$node" 'scenario_left:differences("before").')" "[]" "nothing is left in the node $1"; }
untouched_by_now() { [ "$( (trap - EXIT; target_eval "$node" 'code:which(kprof).') 2>/dev/null)" = non_existing ]; }

# refuses STATUS PATTERN WHAT COMMAND ARGUMENT...: one line on stderr, and the exit status of --help.
refuses() {
  local want=$1 pattern=$2 what=$3 status=0
  shift 3
  timeout 600 env -i PATH="$scratch/nothing" HOME="$scratch/home" "$kprof" "$@" >"$scratch/refusal.log" 2>&1 || status=$?
  [ "$status" = "$want" ] || fail "$what: exit status $status, not $want: $(cat "$scratch/refusal.log")"
  [ "$(wc -l <"$scratch/refusal.log")" = 1 ] || fail "$what: not one line but: $(cat "$scratch/refusal.log")"
  has "$scratch/refusal.log" "$pattern" "$what: $(cat "$scratch/refusal.log")"
}

start_collector
start_shop "$name"
is "$(target_eval "$node" 'scenario_left:prepare(), scenario_left:snapshot("before").')" ok "the node before"
is "$(target_eval "$node" \
  'erlang:trace_pattern({lists, map, 2}, true, [local]), D = scenario_left:differences("before"),
   erlang:trace_pattern({lists, map, 2}, false, [local]), length(D).')" \
   1 "a trace pattern would show"
tiers=(--tier http=shop_http:handle_request/2 --tier pool=shop_worker:work/2 --tier storage=shop_storage:run/2
       --tier render=shop_render:page/2 --tier accounting=shop_accounting:book/1 --identity shop_http:handle_request/2:1)

# -- it traces, and tells the truth ----------------------------------------------------------------------------------------------
attach "$node" "${tiers[@]}" --json
has "$attach_log" "^tracing $node: 5 tiers, collector 127.0.0.1:$collector_port" "it says what it does"
wait_for 10 "live numbers" grep -q '^{' "$attach_log"
load --requests 800 --clients 4 --think 4 # so that the guard has no reason to lower the sampling
save_truth
wait_for 15 "all requests are there" ledger_reaches requests_complete "$(truth_total)"
# live EXPRESSION WHERE: of all rows of identities (i) of all seconds (l) that were shown
live() {
  grep '^{' "$attach_log" | sed '1s/^/[/; $!s/$/,/; $s/$/]/' >"$scratch/live.json"
  sqlite3 :memory: "SELECT $1 FROM (SELECT i.value ->> 'identity' AS identity, i.value AS i
                                    FROM json_each(readfile('$scratch/live.json')) AS l, json_each(l.value, '\$.identities') AS i) WHERE $2"
}
all_live() { [ "$(live "sum(i ->> 'requests')" "identity = '_total'")" -ge "$(truth_total)" ]; }
wait_for 10 "the live numbers have them" all_live
sleep 1 # were there more, they would be there by then
is "$(live "sum(i ->> 'requests')" "identity = '_total'")" "$(truth_total)" "the live numbers add up to the requests that were made"
is "$(live "group_concat(DISTINCT i ->> 'incomplete')" 1)" 0 "and tell of no loss"
kill -INT "$attach_pid"
ends "$attach_pid" 20
is "$status" 0 "Ctrl-C ends it with 0"
has "$attach_log" "^kprof is out of $node" "and it says so"
untouched "after Ctrl-C"
tells_truth
nothing_lost "$name"

# -- what is lost, by identity ---------------------------------------------------------------------------------------------------
# A reload takes the patterns off for a moment: what is open then is incomplete.
attach "$node" "${tiers[@]}" --json
reloads='[begin true = code:soft_purge(shop_storage), {module, _} = code:load_file(shop_storage),
                 timer:sleep(400) end || _ <- lists:seq(1, 8)], true = code:soft_purge(shop_storage), ok.'
lost_shown() { lost=$(ledger requests_incomplete) && [ "$(live "sum(i ->> 'incomplete')" "identity = '_total'")" = "$lost" ]; }
lost=0
# on a busy machine few requests are let through, so that none of them may be open at a reload
for ((round = 1; lost == 0 && round <= 5; round++)); do
  start_load --seconds 8 --clients 8 --think 4
  is "$(target_eval "$node" "$reloads")" ok "reloads under load"
  ends "$load_pid" 20
  sleep 3 # by then the ledger has them, and the live numbers do; on a slow machine a little later
  wait_for 10 "the live numbers and the ledger agree" lost_shown
done
holds "$lost" -gt 0 "requests are incomplete"
is "$(live "sum(i ->> 'incomplete')" "identity = '_total'")" "$lost" "as many as the ledger has are shown as lost"
is "$(live "sum(i ->> 'incomplete')" "identity <> '_total'")" "$lost" "each under its identity,"
holds "$(live "sum(i ->> 'incomplete')" "identity NOT IN ('_total', 'undefined')")" -gt 0 "which most have"
kill -INT "$attach_pid"
ends "$attach_pid" 20
untouched "after losses"

# -- the other ends --------------------------------------------------------------------------------------------------------------
begun=$SECONDS
attach "$node" "${tiers[@]}" --for 3s
ends "$attach_pid" 20
is "$status" 0 "--for ends it with 0"
holds $((SECONDS - begun)) -ge 3 "and not too early"
untouched "after --for"

attach "$node" --config "$top/tests/sample/kprof.config" --sample 10
has "$attach_log" "5 tiers" "a configuration file is evaluated in the node"
refuses 9 "traced already by kprof_attach_$attach_pid@.*: Ctrl-C ends that, or kprof detach $node\$" "a second one" \
  attach "$node" "${tiers[@]}"
tool detach "$node" >"$scratch/detach.out" || fail "kprof detach"
is "$(cat "$scratch/detach.out")" "kprof is out of $node" "kprof detach says so"
ends "$attach_pid" 20
is "$status" 0 "kprof detach ends it with 0"
has "$attach_log" "taken out" "it says why it ended"
untouched "after kprof detach"
refuses 1 "nothing of kprof" "nothing to detach" detach "$node"

attach "$node" "${tiers[@]}" --sample 50/s
"$kprof" nodes --collector "127.0.0.1:$collector_port" --json >"$scratch/nodes.json" || fail "kprof nodes"
is "$(sqlite3 :memory: "SELECT j ->> '\$.nodes[0].one_in', j ->> '\$.nodes[0].per_second'
  FROM (SELECT readfile('$scratch/nodes.json') AS j)")" \
  "0|50" "--sample R/s, and kprof nodes shows it"
kill -KILL "$attach_pid"
wait_for 15 "the node takes kprof out by itself" untouched_by_now
untouched "after kill -9"

attach "$node" "${tiers[@]}"
kill -STOP "$attach_pid"
wait_for 15 "the node takes kprof out by itself" untouched_by_now
kill -CONT "$attach_pid"
back() { [ "$(grep -c '^tracing ' "$attach_log")" = 2 ]; }
wait_for 15 "who slept comes back" back
kill -TERM "$attach_pid"
sleep 0.05
kill -TERM "$attach_pid" 2>/dev/null || true # as timeout(1) does
ends "$attach_pid" 20
is "$status" 0 "TERM ends it with 0, a second one too"
untouched "after TERM"

# kprof trace steers it, and it stays.
attach "$node" "${tiers[@]}"
steer() { "$kprof" trace "$node" "$1" --collector "127.0.0.1:$collector_port" >"$scratch/steer.log" || fail "kprof trace $1"; }
steer pause
wait_for 10 "the pause is told" grep -q "^$node: paused with kprof trace" "$attach_log"
sleep 12
is "$(target_eval "$node" 'kprof:status().')" paused "a pause lasts longer than the node waits for a word of a tool that is gone"
steer resume
wait_for 10 "its end is told" grep -q "^$node: tracing again" "$attach_log"
steer pause
refuses 9 "traced already by kprof_attach_$attach_pid@" "a second one during a pause" attach "$node" "${tiers[@]}"
kill -INT "$attach_pid"
ends "$attach_pid" 20
is "$status" 0 "Ctrl-C during a pause ends it with 0"
has "$attach_log" "^kprof is out of $node" "and it says so"
untouched "after a pause"
attach "$node" "${tiers[@]}"
steer pause
tool detach "$node" >"$scratch/detach.out" || fail "kprof detach during a pause"
ends "$attach_pid" 20
untouched "after kprof detach during a pause"

# Under nohup it outlives its terminal.
trap '' HUP
attach "$node" "${tiers[@]}"
trap - HUP
kill -HUP "$attach_pid"
sleep 1
kill -INT "$attach_pid"
ends "$attach_pid" 20
is "$status" 0 "a hangup that nohup ignores does not end it, Ctrl-C does"
has "$attach_log" "^kprof is out of $node" "which says so"
untouched "after that"

# Its reader has enough, or there is no room for what it shows.
shows_to() {
  timeout 600 "$kprof" attach "$node" --cookie-file "$scratch/home/.erlang.cookie" --collector "127.0.0.1:$collector_port" "${tiers[@]}" \
    --json 2>"$attach_log"
}
status=0
shows_to | head -n 1 >"$scratch/first.json" || status=$?
is "$status|$(grep -c '^{' "$scratch/first.json")" "0|1" "attach --json | head -n 1 ends"
is "$(tail -n 1 "$attach_log")" "kprof is out of $node" "and says that it has left"
untouched "after that"
status=0
shows_to >/dev/full || status=$?
is "$status|$(grep -c 'cannot write the output: No space left on device' "$attach_log")" "1|1" "on a full disk it ends, and says why"
untouched "after that, too"

# Killed and attached again: the newcomer takes over without waiting for the switch.
attach "$node" "${tiers[@]}"
kill -KILL "$attach_pid"
wait_for 5 "it is gone" gone "$attach_pid"
unseen() { [ "$(target_eval "$node" '[N || N <- nodes(connected), lists:prefix("kprof_attach_", atom_to_list(N))].')" = "[]" ]; }
wait_for 5 "and the node has seen it" unseen
attach "$node" "${tiers[@]}" --for 1s
ends "$attach_pid" 20
is "$status" 0 "what a killed one left is taken over"
untouched "after that"

# -- a start_kprof_node.sh of somebody else is left alone --------------------------------------------------------------------------
start_tracing "$name"
refuses 9 "traced already by kprof_.*: stop that kprof node where it runs, with scripts/stop_kprof_node.sh\$" \
  "a node that a kprof node traces" attach "$node" "${tiers[@]}"
refuses 9 "stop_kprof_node.sh" "and to detach it" detach "$node"
stop_tracing
untouched "after start_kprof_node.sh"

# -- refusals --------------------------------------------------------------------------------------------------------------------
config() { printf '%s\n' "$1" >"$scratch/config"; }
echo wrong >"$scratch/wrong"
refuses 2 'want name@host' "no name" attach 'a b@localhost' "${tiers[@]}"
refuses 2 'what is to be traced' "nothing to trace" attach "$node"
refuses 2 'MODULE:FUNCTION' "a tier that is none" attach "$node" --tier db=nonsense
refuses 2 'MODULE:FUNCTION' "a function that is no UTF-8" attach "$node" --tier $'db=b\xff:c/1'
refuses 2 'printable UTF-8' "a tier's name that is none" attach "$node" --tier $'d\xff=b:c/1'
refuses 2 'want name@host' "a node's name that is none" attach $'n\xff@localhost' "${tiers[@]}"
refuses 2 'a time such as 60s' "no time at all" attach "$node" "${tiers[@]}" --for 0
refuses 3 "no host nowhere.invalid" "a host that is not there" attach x@nowhere.invalid "${tiers[@]}"
refuses 3 "epmd on .* knows .*$name" "a name that is not there" attach "nobody_$$@localhost" "${tiers[@]}"
chmod 666 "$scratch/wrong"
refuses 4 'can be written by others .*chmod 400' "a cookie file that others can write" \
  attach "$node" "${tiers[@]}" --cookie-file "$scratch/wrong"
chmod 400 "$scratch/wrong"
refuses 4 'cookie is wrong' "a wrong cookie" attach "$node" "${tiers[@]}" --cookie-file "$scratch/wrong"
refuses 4 'cannot read the cookie' "no cookie file" attach "$node" "${tiers[@]}" --cookie-file "$scratch/nowhere"
refuses 6 'cannot read the config' "no configuration file" attach "$node" --config "$scratch/nowhere"
refuses 6 '--tier db=shop_http:handle_reqest/2: there is no such function, but shop_http:handle_request/2; with --wait' \
  "a function that is not there" attach "$node" --tier db=shop_http:handle_reqest/2
refuses 6 '--entry shop_htp:handle_request/2: there is no module shop_htp, but shop_http; with --wait it is traced once it is loaded' \
  "a module that is not there" attach "$node" --entry shop_htp:handle_request/2
refuses 6 '--identity shop_http:handle_reqest/2:1: that is no entry and no tier, .* want one of shop_http:handle_request/2' \
  "an identity of what is not traced" attach "$node" --entry shop_http:handle_request/2 --identity shop_http:handle_reqest/2:1
config '{tier_config, [{db, {shop_http, handle_reqest, 2}}]}.'
refuses 6 'the tier db: there is no function shop_http:handle_reqest/2, but shop_http:handle_request/2' \
  "nor one of a configuration" attach "$node" --config "$scratch/config"
config "{tier_config, [{http, {shop_http, '_', 2}}]}."
refuses 6 'wildcard' "a wildcard" attach "$node" --config "$scratch/config"
config '(fun F() -> F() end)().'
refuses 6 'not evaluated within' "a configuration without end" attach "$node" --config "$scratch/config"
config 'lists:duplicate(1 bsl 40, x).'
refuses 6 'cannot be evaluated|not evaluated within' "a configuration that eats memory" attach "$node" --config "$scratch/config"
refuses 8 '127.0.0.1:1 cannot be reached' "no collector" attach "$node" "${tiers[@]}" --collector 127.0.0.1:1
untouched "by all that"
is "$(echo ./*)" './*' "and no database is made"
attach "$node" --wait --tier db=shop_http:nowhere/2 --entry nowhere:at_all/0 --for 1s
ends "$attach_pid" 20
is "$status" 0 "with --wait it traces,"
has "$attach_log" '^warning: entry nowhere:at_all/0: no module nowhere on this node' "warns of a module that is not there"
has "$attach_log" '^warning: tier db: there is no function shop_http:nowhere/2' "and of a function"
# mix writes releases/COOKIE so that everybody can read it.
install -m 644 "$scratch/cookie" "$scratch/COOKIE"
attach "$node" "${tiers[@]}" --cookie-file "$scratch/COOKIE" --for 1s
ends "$attach_pid" 20
is "$status" 0 "a cookie file that others can read is used"
has "$attach_log" "^kprof attach: warning: the cookie file $scratch/COOKIE can be read by others than its owner \(mode 644\)" \
  "with a warning"
foreign='P = spawn(fun() -> erlang:trace(new_processes, true, [call, {tracer, self()}]), register(foreign, self()),
                       receive stop -> ok end end), is_pid(P).'
is "$(target_eval "$node" "$foreign")" true "somebody else traces the node"
if [ "$(target_eval "$node" 'list_to_integer(erlang:system_info(otp_release)) >= 27.')" = true ]; then
  attach "$node" "${tiers[@]}" --for 1s
  ends "$attach_pid" 20
  is "$status" 0 "from OTP 27 on a foreign tracer is no matter"
  is "$(target_eval "$node" '{tracer, T} = erlang:trace_info(new_processes, tracer), T =:= whereis(foreign).')" true "and traces on"
else
  refuses 9 'by somebody else' "a foreign tracer" attach "$node" "${tiers[@]}"
fi
is "$(target_eval "$node" 'foreign ! stop, ok.')" ok "who stops"
is "$(target_eval "$node" 'code:del_path(runtime_tools).')" true "a node without runtime_tools"
refuses 8 'runtime_tools' "a node without runtime_tools" attach "$node" "${tiers[@]}" --collector "127.0.0.1:$collector_port"
untouched "in the end"

# -- other nodes -----------------------------------------------------------------------------------------------------------------
# An application that brings its own kprof keeps it.
start_erl "guest_$$" -pa "$KPROF_EBIN"
attach "guest_$$@localhost" --tier map=lists:map/2
is "$(target_eval "guest_$$@localhost" '[kprof:status(), filename:basename(filename:dirname(code:which(kprof)))].')" '[tracing,"ebin"]' \
  "its own kprof traces"
kill -INT "$attach_pid"
ends "$attach_pid" 20
is "$(target_eval "guest_$$@localhost" '[kprof:status(), filename:basename(filename:dirname(code:which(kprof)))].')" \
  '[not_started,"ebin"]' "and stays"
own="ok = kprof:start(), kprof:start_trace([{tier_config, [{map, {lists, map, 2}}]}, {collector, {\"127.0.0.1\", $collector_port}}])."
is "$(target_eval "guest_$$@localhost" "$own")" ok "the application traces itself"
refuses 9 "traced already by its own kprof: the application must call kprof:stop_trace\(\)\$" "a node that traces itself" \
  attach "guest_$$@localhost" --tier map=lists:map/2
is "$(target_eval "guest_$$@localhost" 'kprof:stop_trace(), application:stop(kprof).')" ok "until it stops that"
start_tracing "guest_$$"
refuses 9 "traced already by kprof_.*: stop that kprof node where it runs, with scripts/stop_kprof_node.sh\$" \
  "such a node that a kprof node traces" attach "guest_$$@localhost" --tier map=lists:map/2
refuses 9 "traced by the kprof node kprof_.*stop_kprof_node.sh" "and to detach it" detach "guest_$$@localhost"
stop_tracing
is "$(target_eval "guest_$$@localhost" '[kprof:status(), filename:basename(filename:dirname(code:which(kprof)))].')" \
  '[not_started,"ebin"]' "which leaves it as it was"
attach "guest_$$@localhost" --tier map=lists:map/2
kill -KILL "$attach_pid" # looked at in the end: it takes ten seconds

# One of another release, or none at all.
mkdir "$scratch/other"
echo '-module(kprof). -export([start/0, status/0]). start() -> ok. status() -> idle.' >"$scratch/other/kprof.erl"
erlc -o "$scratch/other" "$scratch/other/kprof.erl"
start_erl "other_$$" -pa "$scratch/other"
refuses 7 "its own module kprof, $scratch/other/kprof.beam, is of another release than this tool" "a kprof that the tool does not know" \
  attach "other_$$@localhost" --tier map=lists:map/2

# attach_named NAME@HOST: starts a node with a long name, and traces it for a second.
attach_named() {
  start "$scratch/named.log" env HOME="$scratch/home" erl -noinput -name "$1"
  wait_for 20 "node $1 is up" is_up "$1"
  attach "$1" --tier map=lists:map/2 --for 1s
  ends "$attach_pid" 20
}
is_up() { tool detach "$1" >"$scratch/up.log" 2>&1; grep -q 'nothing of kprof' "$scratch/up.log"; }
# A long name, and one without its host.
long=long_$$@127.0.0.1
attach_named "$long"
is "$status" 0 "a long name"
# A host that no table knows and that is no address by its looks: its name is shown up to the dot.
brief=brief_$$@0x7f.1
attach_named "$brief"
is "$(sed -n 's/^tracing \([^ ]*\): .*/\1/p; s/^kprof is out of //p' "$attach_log" | uniq)" "${brief%.1}" \
  "a node is shown with its short host"
attach "long_$$@localhost" --tier 'map=:lists.map/2' --for 1s
has "$attach_log" "^tracing $long" "a node is known by the name that it has itself"
ends "$attach_pid" 20
is "$status" 0 "and Elixir's way to write a function"

# Elixir's functions and modules, as Elixir shows them; more than one entry; and the collector that the configuration names.
elixir=elixir_$$@localhost
start_erl "${elixir%@*}"
module='Parsed = fun(L) -> {ok, T, _} = erl_scan:string(L), {ok, F} = erl_parse:parse_form(T), F end,
  {ok, M, B} = compile:forms([Parsed(L) || L <- ["-module('"'Elixir.MyApp.Repo'"').",
                                                "-export([all/2, one/1]).", "all(_, X) -> X.", "one(X) -> X."]]),
  {module, M} = code:load_binary(M, "nowhere", B), ok.'
is "$(target_eval "$elixir" "$module")" ok "a module of Elixir's"
echo "{collector, {\"127.0.0.1\", $collector_port}}. {tier_config, [{'Elixir.MyApp.Later', {'Elixir.MyApp.Later', run, 0}}]}." \
  >"$scratch/config"
rm -f "$attach_log" # what stands there would be taken for this one's
start "$attach_log" env -i PATH="$scratch/nothing" HOME="$scratch/home" "$kprof" attach "$elixir" --config "$scratch/config" --json \
  --entry MyApp.Repo.all/2 --entry :lists.sum/1 --identity MyApp.Repo.all/2:1
attach_pid=$!
wait_for 30 "attaching" started
has "$attach_log" "^tracing $elixir: 2 entries, 1 tier, collector 127.0.0.1:$collector_port" \
  "two entries, and the configuration's collector"
has "$attach_log" '^warning: tier MyApp.Later: no module MyApp.Later on this node' "a warning about Elixir's module"
is "$(target_eval "$elixir" "[begin 'Elixir.MyApp.Repo':all('Elixir.MyApp.User', X), lists:sum([1]) end || X <- [1, 2, 3]], ok.")" ok \
  "six requests"
users_shown() { [ "$(live "sum(i ->> 'requests')" "identity = 'MyApp.User'")" = 3 ]; }
wait_for 15 "they are shown" users_shown
ok "the live numbers of the collector that the configuration names, with Elixir's identity"
kill -INT "$attach_pid"
ends "$attach_pid" 20
reported() { "$kprof" report --db "$db" --node "$elixir" >"$scratch/elixir.txt" && grep -Eq '^ MyApp\.User ' "$scratch/elixir.txt"; }
wait_for 10 "they are in the report" reported
has "$scratch/elixir.txt" '^ .* MyApp\.Repo\.all/2 .*total' "an entry's tier as Elixir writes it"
has "$scratch/elixir.txt" '^ MyApp\.User ' "an identity likewise"
has_not "$scratch/elixir.txt" 'Elixir' "and nothing of how Erlang does"

# Before it is in the node one Ctrl-C is enough.
start_erl "stopped_$$"
kill -STOP "$erl_pid"
start "$attach_log" env -i HOME="$scratch/home" "$kprof" attach "stopped_$$@localhost" --tier map=lists:map/2
attach_pid=$!
watch
sleep 1
kill -INT "$attach_pid"
began=$(date +%s%3N)
ends "$attach_pid" 20
timely $(($(date +%s%3N) - began)) -le 2000 "Ctrl-C while it connects, ms"
is "$status" 130 "Ctrl-C while it connects ends it at once"
kill -KILL "$erl_pid"

# A node that comes again is traced again.
start_erl "again_$$"
attach "again_$$@localhost" --tier map=lists:map/2
kill -KILL "$erl_pid"
wait_for 10 "its end is seen" grep -q 'is gone, waiting' "$attach_log"
start_erl "again_$$"
wait_for 15 "it is traced again" back
kill -INT "$attach_pid"
ends "$attach_pid" 20
is "$status" 0 "and left when told"
is "$(target_eval "again_$$@localhost" 'code:which(kprof).')" non_existing "without kprof"

# The one that was killed above.
idle() { [ "$(target_eval "guest_$$@localhost" 'kprof:status().')" = not_started ]; }
wait_for 20 "it stops by itself" idle
stop_collector
