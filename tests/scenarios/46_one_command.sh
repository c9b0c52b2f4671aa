#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: one command is enough for a first picture and a first table. `kprof flame NODE --entry` and `kprof attach NODE` run a
# collector of their own where none is named and none answers, which nobody enters without the secret of the occasion; it and all that came
# into the node is gone when they are, also when they, or it, are killed. Where kprof traces a node already, its trace goes on beside.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

chmod 400 "$scratch/cookie"
name=one_$$
node=$name@localhost
mkdir "$scratch/here"
cd "$scratch/here" # where kprof.db is by default

# The clients' own connections would be seen as something left.
loads() { start_load --seconds 600 --clients 2 --think 20; }
no_load() { kill -KILL -- "-$load_pid" 2>/dev/null || true; wait_for 10 "the clients end" gone "$load_pid"; }
# The node itself waits for 2 s: on a busy machine it takes seconds to ask it.
untouched_by_now() {
  [ "$( (trap - EXIT; target_eval "$node" 'Left = fun Look(N) ->
    case scenario_left:differences("before") of More when More =/= [], N > 0 -> timer:sleep(100), Look(N - 1); All -> All end
  end, Left(20).') 2>/dev/null)" = "[]" ]
}
# has_left SECONDS WHEN: nothing is in the node that was not there before. After 10 s it would have left by itself.
has_left() { no_load; wait_for "$1" "the node is as it was $2" untouched_by_now; ok "nothing is left in the node $2"; loads; }
untouched() { has_left 2 "$1"; }

# A collector that one of our commands runs: of this scratch folder, so of this test.
collectors() { pgrep -f "^kprof-collector .*--db $1( |\$)" || true; }
no_collector() { [ -z "$(collectors "$1")" ]; }
has_no_collector() { wait_for 20 "no collector is left $2" no_collector "$1"; ok "no collector is left $2"; }

# drawn FILE FUNCTION WHAT: the picture has it
drawn() {
  local titles
  titles=$(grep -o '<title>.*' "$1") || fail "$3: $(basename "$1") has no frames"
  grep -Fqx -- "<title>$2" <<<"$titles" || fail "$3: no $2 in $(basename "$1"), but $(head -n 40 <<<"$titles" | tr '\n' ' ')"
  ok "$3"
}

said=$scratch/said.log
begin() { # ARGUMENT...: kprof in the background; what it says is in $said
  rm -f "$said"
  start "$said" env HOME="$scratch/home" "$kprof" "$@"
  pid=$!
}
traces() { grep -qs '^tracing ' "$said"; }
traces_or_ended() { traces || gone "$pid"; }
begin_tracing() { begin "$@"; wait_for 30 "it traces" traces_or_ended; traces || fail "kprof $* ended: $(cat "$said")"; }
refuses() { # STATUS PATTERN WHAT ARGUMENT...
  local want=$1 pattern=$2 what=$3 got=0
  shift 3
  HOME=$scratch/home timeout 120 "$kprof" "$@" >"$scratch/refusal.log" 2>&1 || got=$?
  is "$got" "$want" "$what: $(tail -n 1 "$scratch/refusal.log")"
  has "$scratch/refusal.log" "$pattern" "$what, and why"
}
stop() { # SIGNAL: and the exit status 0
  kill "-$1" "$pid"
  ends "$pid" 30
  is "$status" 0 "it ends with 0"
}

start_shop "$name"
is "$(target_eval "$node" 'scenario_left:prepare(), scenario_left:snapshot("before").')" ok "the node before"
entry=(--entry shop_http:handle_request/2 --tier storage=shop_storage:run/2 --identity shop_http:handle_request/2:1)
start_erl "other_$$"
other=other_$$@localhost
loads

# -- a picture, of a node that has nothing of kprof --------------------------------------------------------------------
# On a busy machine it knows other processes of requests before those that they begin in, once in some thirty times, and follows these
# alone: it says so ("not followed"), and is asked again.
follows() { # PICTURE LOG COMMAND...
  local try
  for try in 1 2 3; do
    rm -f "$1"
    "${@:3}"
    ! grep -q '<title>shop_http:handle_request/2$' "$1" || return 0
    has "$2" 'processes that were not followed' "try $try has not followed where requests begin, and says so"
  done
}
draws_x() {
  rm -f "$scratch"/flame.db*
  begin flame "$node" "${entry[@]}" --db "$scratch/flame.db" --requests 10 --module 'shop_*' --out "$scratch/x.svg"
  ends "$pid" 90
  is "$status" 0 "kprof flame --db: $(tail -n 1 "$said")"
}
follows "$scratch/x.svg" "$said" draws_x
is "$(sed -n 1p "$said" | sed 's/:[0-9]*,/:PORT,/')" "running a collector at 127.0.0.1:PORT, which writes $scratch/flame.db" \
  "its first line says which collector"
has "$said" '^wrote .*x\.svg$' "it has drawn"
drawn "$scratch/x.svg" shop_http:handle_request/2 "the requests"
is "$(sqlite3 -readonly "$scratch/flame.db" 'SELECT requests FROM profiles')" 10 "as many as were wanted"
holds "$(sqlite3 -readonly "$scratch/flame.db" "SELECT sum(calls) FROM tier_stats WHERE resolution_s = 10 AND tier = 'storage'")" -gt 0 \
  "and the tiers meanwhile"
untouched "after kprof flame"
has_no_collector "$scratch/flame.db" "after kprof flame"

# -- a table -----------------------------------------------------------------------------------------------------------
begin_tracing attach "$node" "${entry[@]}" --db "$scratch/attach.db" --json
at=$(sed -n 's/^running a collector at \([0-9.:]*\), which writes .*/\1/p' "$said")
rows() { grep -q '"requests":[1-9]' "$said"; }
wait_for 20 "live numbers" rows
ok "kprof attach --db shows numbers"
refuses 1 'secret' "nobody enters its collector without the secret" nodes --collector "$at"
refuses 8 "no collector of its own: another kprof-collector, process $(collectors "$scratch/attach.db"), writes $scratch/attach.db" \
  "a database that another collector holds" attach "$other" --tier map=lists:map/2 --db "$scratch/attach.db"
refuses 9 'traced already by kprof_attach_.*; or name the collector that it is connected to with --collector$' \
  "a picture of a node that another collector's trace is in" flame "$node" "${entry[@]}" --db "$scratch/flame.db"
stop INT
has "$said" '^kprof is out of' "Ctrl-C takes kprof out"
has "$said" "^$scratch/attach.db holds what was traced" "and it says where the numbers are"
untouched "after kprof attach"
has_no_collector "$scratch/attach.db" "after kprof attach"
"$kprof" report --db "$scratch/attach.db" >"$scratch/report.txt" || fail "kprof report"
has "$scratch/report.txt" 'storage' "the table"

# -- where nothing is named --------------------------------------------------------------------------------------------
# One at a time on this machine: the default port is looked at, and taken.
exec 8>"${TMPDIR:-/tmp}/kprof-scenario-4711.lock"
flock 8
if (exec 5<>/dev/tcp/127.0.0.1/4711) 2>/dev/null; then
  echo "a collector of this machine's is at 4711: what is done without it cannot be tried"
else
  begin_tracing attach "$node" "${entry[@]}"
  has "$said" '^running a collector at 127.0.0.1:[0-9]+, which writes kprof.db$' "without --collector and --db: kprof.db"
  written() { [ "$(sqlite3 -readonly kprof.db 'SELECT count(*) > 0 FROM tier_stats' 2>&1)" = 1 ]; }
  wait_for 20 "requests are written" written
  ok "which is in this folder"
  stop TERM
  untouched "after that"
  # A configuration that says nothing of a collector changes nothing of that.
  echo '{tier_config, [{storage, {shop_storage, run, 2}}]}. {entry, [{shop_http, handle_request, 2}]}.' >"$scratch/config"
  rm kprof.db*
  begin_tracing attach "$node" --config "$scratch/config"
  has "$said" '^running a collector at 127.0.0.1:[0-9]+, which writes kprof.db$' "the same with --config"
  wait_for 20 "requests are written" written
  ok "which is in this folder"
  stop INT
  untouched "after --config"
  refuses 6 'there is no such function' "what cannot be traced" flame "$other" --entry lists:map/17 --out never.svg
  refuses 2 'which requests\? Say --entry' "no requests at all" flame "$other"
  rm kprof.db*
  refuses 6 'there is no such function' "the same" attach "$other" --entry lists:map/17
  is "$(echo ./*)" './*' "then no database is left"
  # A collector at the default port is taken when it answers, and its database found.
  collector_port=4711
  start_collector
  begin_tracing attach "$node" "${entry[@]}"
  is "$(head -n 1 "$said")" "using the collector at 127.0.0.1:4711" "a collector at the default address is taken"
  stop INT
  begin_tracing attach "$node" --config "$scratch/config"
  is "$(head -n 1 "$said")" "using the collector at 127.0.0.1:4711" "and with --config"
  # The node is traced already: the picture goes on beside.
  draws_y() {
    HOME=$scratch/home timeout 120 "$kprof" flame "$node" --requests 5 --module 'shop_*' --out "$scratch/y.svg" \
      >"$scratch/beside.log" 2>&1 || fail "kprof flame beside: $(cat "$scratch/beside.log")"
  }
  follows "$scratch/y.svg" "$scratch/beside.log" draws_y
  is "$(head -n 1 "$scratch/beside.log")" "using the collector at 127.0.0.1:4711" "kprof flame takes it, too"
  drawn "$scratch/y.svg" shop_http:handle_request/2 "and draws beside the running trace, out of that collector's database"
  is "$(target_eval "$node" 'kprof:status().')" tracing "which runs on"
  stop INT
  untouched "after both"
  # The node is not traced: in and out, through that collector.
  draws_z() {
    begin flame "$node" "${entry[@]}" --requests 5 --module 'shop_*' --out "$scratch/z.svg"
    ends "$pid" 90
    is "$status" 0 "in and out through a collector that runs: $(tail -n 1 "$said")"
  }
  follows "$scratch/z.svg" "$said" draws_z
  drawn "$scratch/z.svg" shop_http:handle_request/2 "a picture"
  untouched "after that"
  stop_collector
fi
exec 8>&-

# -- Ctrl-C, and killed ------------------------------------------------------------------------------------------------
progress() { grep -qs ' of 100000 requests, [1-9]' "$said"; }
begin_flame() { # DATABASE
  begin flame "$node" "${entry[@]}" --db "$1" --requests 100000 --for 60s --module 'shop_*'
  wait_for 30 "it traces fully" progress
}
begin_flame "$scratch/flame.db"
kill -INT "$pid"
ends "$pid" 30
is "$status" 0 "Ctrl-C keeps what is there"
holds "$(sqlite3 -readonly "$scratch/flame.db" 'SELECT requests FROM profiles ORDER BY id DESC LIMIT 1')" -gt 0 "requests of that moment"
untouched "after Ctrl-C"
has_no_collector "$scratch/flame.db" "after Ctrl-C"

attached() { pgrep -P "$pid" -x kprof; }
no_attach() { gone "$attach_pid"; }
begin_flame "$scratch/flame.db"
attach_pid=$(attached)
kill -KILL "$pid"
has_left 20 "after kill -9 of kprof flame"
has_no_collector "$scratch/flame.db" "after that"
wait_for 20 "kprof attach is gone" no_attach

begin_flame "$scratch/flame.db"
kill -KILL "$(attached)"
ends "$pid" 60
is "$status" 1 "kprof flame ends when its kprof attach is killed"
has "$said" "^kprof flame: kprof attach was killed; the node takes kprof out" "and says so"
has_left 20 "after kill -9 of its kprof attach"
has_no_collector "$scratch/flame.db" "after that"

begin_flame "$scratch/flame.db"
attach_pid=$(attached)
kill -KILL "$(collectors "$scratch/flame.db")"
ends "$pid" 60
is "$status" 1 "kprof flame ends when its collector is killed"
has "$said" "^kprof flame: the collector is gone" "and says so"
has_left 20 "after kill -9 of its collector"
wait_for 20 "kprof attach is gone" no_attach

begin_tracing attach "$node" "${entry[@]}" --db "$scratch/attach.db"
kill -KILL "$(collectors "$scratch/attach.db")"
ends "$pid" 30
is "$status" 8 "kprof attach ends when its collector is killed"
has "$said" '^kprof attach: its collector has ended: it was killed$' "and says so"
untouched "after kill -9 of its collector"

begin_tracing attach "$node" "${entry[@]}" --db "$scratch/attach.db"
kill -KILL "$pid"
has_no_collector "$scratch/attach.db" "after kill -9 of kprof attach"
has_left 20 "after kill -9 of kprof attach"

# -- an address of this host -------------------------------------------------------------------------------------------
address=$(ip -4 -o addr show scope global 2>/dev/null | sed -n 's/.* inet \([0-9.]*\).*/\1/p' | head -n 1)
if [ -n "$address" ]; then
  begin_tracing attach "$other" --tier map=lists:map/2 --db "$scratch/listen.db" --listen "$address:0"
  has "$said" "^running a collector at $address:[0-9]+, which writes" "--listen"
  has "$said" "^tracing $other: 1 tier, collector $address:" "is what the node is told"
  stop INT
fi
begin_tracing attach "$other" --tier map=lists:map/2 --db "$scratch/listen.db" --listen 0.0.0.0:0
has "$said" "^tracing $other: 1 tier, collector 127.0.0.1:" "a node of this host goes through loopback"
stop INT
refuses 8 'no collector of its own: cannot listen on 192.0.2.1' "an address that is not of this host" \
  attach "$other" --tier map=lists:map/2 --db "$scratch/never.db" --listen 192.0.2.1:0
is "$(echo "$scratch"/never*)" "$scratch/never*" "no database is made then"
refuses 2 'say one of them' "--db with --collector" attach "$other" --tier map=lists:map/2 --db x.db --collector 127.0.0.1:1
refuses 2 'without TLS' "--db with TLS" attach "$other" --tier map=lists:map/2 --db x.db --tls

# -- a node on another host --------------------------------------------------------------------------------------------
# Two network namespaces stand for two hosts; they are gone with the processes that hold them.
if [ "$(id -u)" -ne 0 ] || ! unshare -n true 2>/dev/null || ! command -v ip >/dev/null; then
  echo "no network namespaces can be made here: a node on another host cannot be tried"
else
  start "$scratch/us" unshare -n sleep 600
  us=$!
  start "$scratch/them" unshare -n sleep 600
  them=$!
  own_namespace() { [ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/self/ns/net)" ]; }
  wait_for 10 "a network namespace" own_namespace "$us"
  wait_for 10 "and another one" own_namespace "$them"
  ip link add kprof_us netns "$us" type veth peer name kprof_them netns "$them"
  host() { # PID DEVICE ADDRESS
    nsenter -t "$1" -n ip addr add "$3/24" dev "$2" && nsenter -t "$1" -n ip link set "$2" up && nsenter -t "$1" -n ip link set lo up
  }
  host "$us" kprof_us 10.99.7.1
  host "$them" kprof_them 10.99.7.2
  far=far_$$@10.99.7.2
  start "$scratch/far.log" env HOME="$scratch/home" nsenter -t "$them" -n erl -noinput -name "$far" -pa "$SCENARIO_EBIN" \
    -eval 'spawn(fun Go() -> lists:map(fun(X) -> X end, [1]), timer:sleep(20), Go() end).'
  is_up() {
    nsenter -t "$us" -n env HOME="$scratch/home" "$kprof" detach "$far" >"$scratch/up" 2>&1 || true
    grep -q 'nothing of kprof' "$scratch/up"
  }
  wait_for 30 "the node is up" is_up
  HOME=$scratch/home timeout 120 nsenter -t "$us" -n "$kprof" flame "$far" --entry lists:map/2 --all-modules --module lists \
    --requests 5 --out "$scratch/far.svg" >"$said" 2>&1 || fail "kprof flame of another host: $(cat "$said")"
  has "$said" '^running a collector at 10\.99\.7\.1:[0-9]+, which writes kprof.db$' \
    "a node on another host is given the address that the distribution's connection uses"
  has "$said" "^warning: what is traced can be read on the way from $far to here" "and it is said that this can be read on the way"
  drawn "$scratch/far.svg" lists:map/2 "and it is drawn"
fi
