#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: the native tracer tells the truth, on every release. kprof attach brings its library into the node through a folder
# that is gone again once it is loaded, and takes it out with the rest, also when it is killed. While the collector stands still what does
# not fit is dropped and told, and the node's memory stays bounded. Where the library is no library the port is used, and a line says so.
# In a node where everything goes on at once no event of a thousand traces is lost untold.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

chmod 400 "$scratch/cookie"
export TMPDIR=$scratch/tmp
mkdir "$TMPDIR"
name=native_$$
node=$name@localhost
attach_log=$scratch/attach.log

# attach [OPTION...]: in the background, until it traces.
started() { grep -qs '^tracing ' "$attach_log" || gone "$attach"; }
attach() {
  rm -f "$attach_log"
  start "$attach_log" "$kprof" attach "$node" --tracer native --cookie-file "$scratch/cookie" --collector "127.0.0.1:$collector_port" \
    --json "$@"
  attach=$!
  wait_for 30 "attaching" started
  grep -q '^tracing ' "$attach_log" || fail "kprof attach ended"
  has_not "$attach_log" 'warning' "without a warning"
}
mapped() { grep -q kprof_native "/proc/$shop_pid/maps"; }
not_mapped() { ! mapped; }
untouched() {
  wait_for 30 "the library is out of the node's memory $1" not_mapped
  is "$(target_eval "$node" 'scenario_left:differences("before").')" "[]" "nothing is left in the node $1"
  is "$(find "$TMPDIR" -name "kprof-*")" "" "nor in its folder for such things"
}
untouched_by_now() { [ "$( (trap - EXIT; target_eval "$node" 'code:which(kprof).') 2>/dev/null)" = non_existing ]; }

start_collector
start_shop "$name"
is "$(target_eval "$node" '{module, _} = code:ensure_loaded(scenario_flood), scenario_left:prepare(),
  scenario_left:snapshot("before").')" ok "the node before"

# -- the truth ---------------------------------------------------------------------------------------------------------
attach --tier http=shop_http:handle_request/2 --tier pool=shop_worker:work/2 --tier storage=shop_storage:run/2 \
  --tier render=shop_render:page/2 --tier accounting=shop_accounting:book/1 --identity shop_http:handle_request/2:1
mapped || fail "the library is not in the node's memory"
is "$(find "$TMPDIR" -name "kprof-*")" "" "the library's file is gone while it is loaded"
has "$collector_log" "node $node: tracing, by the native tracer" "the collector's log names it"
load --requests 800 --clients 4 --think 4 # so that the guard has no reason to lower the sampling
save_truth
wait_for 15 "all requests are there" ledger_reaches requests_complete "$(truth_total)"
kill -INT "$attach"
ends "$attach" 20
is "$status" 0 "Ctrl-C ends it with 0"
untouched "after Ctrl-C"
tells_truth
nothing_lost "$name"

# -- killed ------------------------------------------------------------------------------------------------------------
attach --entry scenario_flood:requests/1 --tier tick=scenario_flood:tick/1
mapped || fail "the library is not in the node's memory"
is "$(target_eval "$node" 'scenario_flood:requests(100).')" 100 "a request"
kill -KILL "$attach"
wait_for 30 "kprof is out by itself" untouched_by_now
untouched "after kill -9"

# -- what does not fit -------------------------------------------------------------------------------------------------
attach --entry scenario_flood:requests/1 --tier tick=scenario_flood:tick/1
before=$(ledger requests_complete)
is "$(target_eval "$node" '[scenario_flood:requests(5) || _ <- [1, 2, 3]].')" '[5,5,5]' "short requests"
wait_for 15 "they are there" ledger_reaches requests_complete $((before + 3))
grown=$(target_eval "$node" "Rss = fun() -> {ok, T} = file:read_file(\"/proc/self/status\"),
    {match, [Kb]} = re:run(T, \"VmRSS:\\\\s+([0-9]+)\", [{capture, all_but_first, list}]), list_to_integer(Kb) div 1000 end,
  Before = Rss(), _ = os:cmd(\"kill -STOP $collector_pid\"),
  {_, Ref} = spawn_monitor(fun() -> exit(scenario_flood:requests(400000)) end), receive {'DOWN', Ref, _, _, 400000} -> ok end,
  After = Rss(), _ = os:cmd(\"kill -CONT $collector_pid\"), After - Before.")
ok "a request of 400000 calls while the collector stands still"
holds "$grown" -lt 100 "the node keeps some of its messages: it has grown by $grown MB"
wait_for 30 "the collector knows of messages that were dropped" ledger_reaches dropped_messages 1
# Was the return of its entry dropped, too, it expires.
not_whole() { ledger_reaches requests_incomplete 1 || ledger_reaches requests_expired 1; }
wait_for 60 "the request is incomplete, or has expired" not_whole
traces_again() { target_eval "$node" 'scenario_flood:requests(5).' >/dev/null; ledger_reaches requests_complete $((before + 5)); }
wait_for 60 "requests after it are complete again" traces_again
is "$(ledger decode_errors)" 0 "all that came was understood"
kill -TERM "$attach"
ends "$attach" 20
is "$status" 0 "TERM ends it with 0"
untouched "after TERM"

# -- no library --------------------------------------------------------------------------------------------------------
shim=$(dirname "$KPROF_EBIN")
mkdir "$scratch/shim"
cp -r "$shim/ebin" "$scratch/shim/ebin"
cp -r "$shim/priv" "$scratch/shim/priv"
for library in "$scratch"/shim/priv/*; do head -c 3000 "$library" >"$library.cut" && mv "$library.cut" "$library"; done
sed 's/{print_calls, false}/{tracer, native}/' "$top/tests/sample/kprof.config" >"$scratch/native.config"
export KPROF_EBIN=$scratch/shim/ebin
before=$(ledger requests_complete)
start_tracing "$name" "$scratch/native.config"
wait_for 10 "it says why it is the port" grep -q \
  'warning: traces to a port, not by the native tracer: what kprof brought is not the whole library' "$kprof_log"
has "$scratch/$name.log" 'kprof: traces to a port, not by the native tracer' "in the node's log, too"
load --requests 100 --clients 2 --think 4
wait_for 15 "all requests are there" ledger_reaches requests_complete $((before + 100))
stop_tracing
untouched "after that"
export KPROF_EBIN=$shim/ebin

# -- folders that are full, and such that nothing can be run from --------------------------------------------------------
# shellcheck disable=SC2016 # the inner shell expands them
closed='for folder in $NOEXEC; do mount --bind "$folder" "$folder" && mount -o remount,bind,noexec "$folder" || exit; done
  [ -z "${FULL:-}" ] || mount -t tmpfs -o size=20k none "$FULL" || exit'
# attach_closed NAME: kprof attach traces a new node, for which the folders of NOEXEC are such and in FULL a library has no room.
attach_closed() {
  shop=$scratch/closed.sh start_shop "$1"
  node=$1@localhost
  start "$attach_log" "$kprof" attach "$node" --tracer native --cookie-file "$scratch/cookie" --collector "127.0.0.1:$collector_port" \
    --json --entry scenario_flood:requests/1
  attach=$!
  wait_for 30 "attaching" started
}
# through_next NAME WHAT
through_next() {
  attach_closed "$1"
  mapped || fail "the library is not in the node's memory"
  ok "$2: it goes through the next folder"
  kill -INT "$attach"
  ends "$attach" 20
  rm -f "$attach_log"
}
rm -f "$attach_log"
if [ "$(id -u)" -ne 0 ] || ! FULL=$TMPDIR NOEXEC=$TMPDIR unshare -m sh -c "$closed" 2>/dev/null; then
  echo "nothing can be mounted here: a folder that is full, or that nothing can be run from, cannot be tried"
else
  printf '#!/bin/sh\nexec unshare -m sh -c '\''%s; exec "$@"'\'' sh "%s" "$@"\n' "$closed" "$shop" >"$scratch/closed.sh"
  chmod +x "$scratch/closed.sh"
  FULL=$TMPDIR NOEXEC='' through_next "full_$$" "a full disk"
  NOEXEC=$TMPDIR through_next "closed1_$$" "nothing can be run"
  NOEXEC="$TMPDIR /tmp /var/tmp" attach_closed "closed2_$$"
  has "$attach_log" "traces to a port, not by the native tracer: .*$TMPDIR/kprof-[0-9a-f]*/kprof_native" "or it is the port, and says why"
  has "$collector_log" "node $node: tracing\$" "which the collector knows"
  kill -INT "$attach"
  ends "$attach" 20
fi
left_there() { find "$TMPDIR" /var/tmp -maxdepth 1 -name "kprof-*" -user "$(id -un)"; }
nothing_there() { [ -z "$(left_there)" ]; }
wait_for 10 "nothing is left in the folders, which other tests use as well" nothing_there
ok "nothing is left in the folders"
stop_collector
intact

# -- everything at once ------------------------------------------------------------------------------------------------
# chaos SECONDS: in a node of its own
chaos() {
  HOME=$scratch/home timeout $((10 * $1 + 600)) erl -noinput -pa "$SCENARIO_EBIN" -pa "$shim/ebin" -env TMPDIR "$TMPDIR" -eval "
    Priv = \"$shim/priv\",
    ok = application:set_env(kprof, libraries, kprof_library:carried(Priv)),
    io:format(\"~w~n\", [scenario_chaos:run($1, 3)]), halt()." >"$scratch/chaos.log" 2>&1 || fail "chaos: $(tail -n 3 "$scratch/chaos.log")"
  has "$scratch/chaos.log" '^{ok,[1-9][0-9]*,[1-9][0-9]*,[0-9]+,[0-9]+}$' \
    "chaos of $1 s: traces, events, dropped, loads: $(cat "$scratch/chaos.log")"
}
chaos "${CHAOS_SECONDS:-6}"
is "$(find "$TMPDIR" -name "kprof-*")" "" "nothing is left in the folder"
