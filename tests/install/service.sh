#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: the collector is a good service. It tells its supervisor when it is ready, that it is alive and when it ends, and
# only then; it takes the port that systemd opened, refuses what is no such port, and the unit lets it do all it does and little else.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# -- notify ------------------------------------------------------------------------------------------------------------
notify=$scratch/notify
told=$scratch/told.log
start "$told" erl -noinput -boot start_clean -pa "$SCENARIO_EBIN" -run scenario_notify main -extra "$notify"
wait_for 20 "the notify socket" test -S "$notify"
told() { grep -qE "^[0-9]+ $1" "$told"; }
times() { grep -cE "^[0-9]+ $1" "$told" || true; }

export NOTIFY_SOCKET=$notify WATCHDOG_USEC=400000
watch # who notes the times may be late
start_collector
wait_for 5 "READY=1" told 'READY=1$'
has "$told" "^[0-9]+ STATUS=Listening on 127.0.0.1:$collector_port\$" "it tells where it listens"
wait_for 5 "three signs of life" eval "[ \$(times 'WATCHDOG=1$') -ge 3 ]"
ok "it is ready and alive"
# A stopped process says nothing: what was seen is not this test's own doing.
kill -STOP "$collector_pid"
sleep 1
before=$(times 'WATCHDOG=1$')
sleep 1
is "$(times 'WATCHDOG=1$')" "$before" "a process that hangs gives no sign of life"
kill -CONT "$collector_pid"
is "$(times STOPPING)" 0 "it did not say that it ends"
stop_collector
wait_for 5 "STOPPING=1" told 'STOPPING=1$'
is "$(times 'READY=1$')" 1 "it was ready once"
intervals=$(awk '/WATCHDOG/ { if (last) print $1 - last; last = $1 }' "$told" | sort -n | head -n 1)
timely "$intervals" -ge 100 "signs of life come no more often than needed, ms apart"

# Not ready without its port, or without its database.
refused() {
  local want=$1 status=0
  shift
  timeout 200 "$collector" "$@" >"$scratch/refused.log" 2>&1 || status=$?
  is "$status" "$want" "refused: $*"
}
refused 4 --listen 0 --db "$scratch/nowhere/kprof.db"
sleep 1
is "$(times 'READY=1$')" 1 "who cannot start is not ready"
unset WATCHDOG_USEC

# -- the port that systemd opened --------------------------------------------------------------------------------------
# activate LOG ADDRESS... -- COMMAND...: through systemd-socket-activate, which starts the command at the first connection
activate() {
  local log=$1 listen=()
  shift
  while [ "$1" != -- ]; do listen+=(-l "$1"); shift; done
  shift
  start "$log" systemd-socket-activate -E "NOTIFY_SOCKET=$notify" -E "PATH=$PATH" "${listen[@]}" "$@"
  collector_pid=$!
}
knock() { (exec 5<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

port=$(free_port)
activate "$collector_log" "127.0.0.1:$port" -- "$collector" --db "$db"
wait_for 5 "systemd-socket-activate listens" knock "$port"
wait_for 20 "the collector takes the port" listens
is "$(sed -n 's/.*listening on \([^ ]*\), .*/\1/p' "$collector_log")" "127.0.0.1:$port" \
  "without --listen it takes the port that it is given"
wait_for 5 "READY=1 again" eval "[ \$(times 'READY=1$') = 2 ]"
collector_port=$port
name=service_$$
start_shop "$name"
start_tracing "$name"
load --clients 4 --think 5 --requests 300 || fail "the load failed"
wait_for 15 "all requests are in the database" ledger_reaches requests_complete 300
stop_tracing
stop_collector
nothing_lost "$name"

# refuses_port STATUS PATTERN ADDRESS...
refuses_port() {
  local want=$1 pattern=$2
  shift 2
  activate "$scratch/refused.log" "$@" -- "$collector" --listen 0 --db "$db"
  wait_for 5 "systemd-socket-activate listens" knock "${1##*:}"
  ends "$collector_pid" 10
  is "$status" "$want" "refused: $*"
  has "$scratch/refused.log" "$pattern" "and why"
}
refuses_port 3 'error .*more than one socket.*ListenStream' "127.0.0.1:$(free_port)" "127.0.0.1:$(free_port)"
refuses_port 2 'error .*0\.0\.0\.0.*--secret-file' "0.0.0.0:$(free_port)"
refuses_port 2 'error .*::.*--secret-file' "[::]:$(free_port)"
# with a secret it takes that port
(umask 077; openssl rand -hex 32 >"$scratch/secret")
port=$(free_port)
mv "$collector_log" "$scratch/collector-1.log"
activate "$collector_log" "0.0.0.0:$port" -- "$collector" --db "$db" --secret-file "$scratch/secret"
wait_for 5 "systemd-socket-activate listens" knock "$port"
wait_for 20 "the collector takes the port" listens
"$kprof" nodes --collector "127.0.0.1:$port" --secret-file "$scratch/secret" >"$scratch/nodes.txt" || fail "kprof nodes with the secret"
ok "a socket for all addresses, and a secret"
if "$kprof" nodes --collector "127.0.0.1:$port" >"$scratch/nodes.txt" 2>&1; then fail "kprof nodes without the secret"; fi
has "$scratch/nodes.txt" 'demands its secret' "  which is demanded"
stop_collector
is "$(times 'READY=1$')" 3 "who cannot listen is not ready"

# -- the units ---------------------------------------------------------------------------------------------------------
units=$installed/lib/systemd/system
# as they will be found once DESTDIR is the root
sed "s,$prefix/bin/,$installed/bin/," "$units/kprof-collector.service" >"$scratch/kprof-collector.service"
cp "$units/kprof-collector.socket" "$scratch"
MANPATH=$installed/share/man systemd-analyze verify --man=yes "$scratch"/kprof-collector.{service,socket} >"$scratch/verify.log" 2>&1 ||
  status=$?
is "$(cat "$scratch/verify.log")" "" "systemd-analyze verify finds nothing"
systemd-analyze security --offline=yes --no-pager --threshold=15 "$scratch/kprof-collector.service" >"$scratch/security.log" ||
  fail "systemd-analyze security: $(tail -n 1 "$scratch/security.log")"
ok "$(sed -n 's/^→ //p' "$scratch/security.log")"
sed -i 's/^SystemCallFilter=.*//; s/^CapabilityBoundingSet=.*//; s/^PrivateUsers=.*//; s/^Restrict.*//' "$scratch/kprof-collector.service"
! systemd-analyze security --offline=yes --no-pager --threshold=15 "$scratch/kprof-collector.service" >"$scratch/security.log" ||
  fail "a unit without half of that passes"
ok "a unit without half of that is found out"

# What the collector asks of the kernel, from start to end and with a node traced, is what the unit's filter allows.
members() { # members SET...: the system calls of systemd's sets, as systemd tells them
  local set
  for set; do
    systemd-analyze syscall-filter "$set" | sed -n 's/^ *\([@a-z][a-z0-9_-]*\)$/\1/p' | tail -n +2 | while read -r word; do
      case $word in @*) members "$word" ;; *) echo "$word" ;; esac
    done
  done
}
read -r -a allowed < <(sed -n 's/^SystemCallFilter=\([^~]\)/\1/p' "$units/kprof-collector.service")
read -r -a denied < <(sed -n 's/^SystemCallFilter=~//p' "$units/kprof-collector.service")
comm -23 <(members "${allowed[@]}" | sort -u) <(members "${denied[@]}" | sort -u) >"$scratch/allowed"
holds "$(wc -l <"$scratch/allowed")" -gt 200 "the filter allows many calls"
is "$(grep -cx -e mount -e reboot -e setuid -e ptrace "$scratch/allowed" || true)" 0 "and not those of who administers a machine"
real=$collector
collector=$scratch/traced-collector
printf '#!/bin/sh\nexec strace -f -qq -o "%s" "%s" "$@"\n' "$scratch/strace" "$real" >"$collector"
chmod +x "$collector"
start_collector --record "$scratch/run"
kprof_log=$scratch/kprof-node-2.log
start_tracing "$name"
load --clients 2 --think 5 --requests 200 || fail "the load failed"
wait_for 15 "all requests are in the database" ledger_reaches requests_complete 500
stop_tracing
kill -TERM "$(pgrep -P "$collector_pid")"
ends "$collector_pid" 20
sed -E 's/^[0-9]+ +//' "$scratch/strace" | sed -nE 's/^([a-z0-9_]+)\(.*/\1/p' | sort -u >"$scratch/used"
holds "$(wc -l <"$scratch/used")" -gt 30 "the collector was watched"
# Its memory: what limits.h adds up to, and half as much for the kernel's sockets and pages; not twice as much.
sum=$(printf '#include "base/limits.h"\nLIMIT_MB\n' | cc -E -P -I "$top/include" - | tail -n 1 | tr -d ' ')
most=$(sed -n 's/^MemoryMax=\([0-9]*\)M$/\1/p' "$units/kprof-collector.service")
holds "$most" -ge "$((sum * 3 / 2))" "MemoryMax is what limits.h adds up to, and half as much again, MB"
holds "$most" -lt "$((sum * 2))" "and no more than twice that, MB"
holds "$((sum))" -lt 600 "which is less than 600 MB"

# Without the service's user of its own, SQLite gives its files to the database's owner.
[ "$(id -u)" -ne 0 ] || sed -i '/^fchown$/d' "$scratch/used"
is "$(comm -23 "$scratch/used" "$scratch/allowed")" "" "it calls nothing that the filter forbids"
