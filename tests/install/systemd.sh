#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: what `cmake --install` lays down is a good service of a real systemd as PID 1, started in namespaces of its own on a
# copy of this machine's files. Ready only when it listens; its database below /var/lib/kprof and hardening in force while a node is traced;
# up again after a crash and after a hang, and not after a mistake; its port opened by systemd, over restarts; a secret as a credential;
# what it says in the journal.
#
# Skipped (77) without root, namespaces, overlayfs, or systemd.
skip() { echo "skipped: $1"; exit 77; }
if [ -z "${KPROF_NAMESPACE:-}" ]; then
  [ "$(id -u)" -eq 0 ] || skip "only root can make what systemd needs as PID 1"
  [ -x /lib/systemd/systemd ] || skip "no systemd here"
  trial=$(mktemp -d)
  # shellcheck disable=SC2016  # for the inner shell
  unshare --pid --mount --uts --ipc --net --cgroup --fork \
    --kill-child sh -ec 'ip link set lo up; cd "$0"; mount -t tmpfs tmpfs . && cd "$0" && mkdir a b c
    mount -t overlay overlay -o lowerdir=/,upperdir=a,workdir=b c && mount -t cgroup2 cgroup2 b' "$trial" 2>/dev/null || why=1
  rmdir "$trial"
  [ -z "${why:-}" ] || skip "no namespaces, overlayfs or cgroups of version 2"
  KPROF_NAMESPACE=1 exec unshare --net --mount "$0"
fi
ip link set lo up
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# -- booting -----------------------------------------------------------------------------------------------------------
mkdir "$scratch/machine" "$scratch/cgroups"
mount -t cgroup2 cgroup2 "$scratch/cgroups"
cgroup=$scratch/cgroups/kprof-test-$$
mkdir "$cgroup"
# shellcheck disable=SC2317  # called by the trap
halt() {
  local code=$?
  trap - EXIT
  set +e
  [ "$code" -eq 0 ] || [ -z "$init" ] || in_machine journalctl --no-pager -n 60 >"$scratch/journal.log" 2>&1
  kill -KILL "${boot_pid:-0}" 2>/dev/null # and with it PID 1, and with that everything
  for ((i = 0; i < 50; i++)); do
    if find "$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null; then break; fi
    sleep 0.1
  done
  umount "$scratch/cgroups"
  (exit "$code")
  clean_up
}
trap halt EXIT
# shellcheck disable=SC2016  # for the inner shell
start "$scratch/boot.log" sh -c 'echo $$ >"$0/cgroup.procs" && exec unshare --pid --mount --uts --ipc --cgroup --fork --kill-child "$@"' \
  "$cgroup" "$(dirname "${BASH_SOURCE[0]}")/boot.sh" "$scratch/machine" "$scratch/root"
boot_pid=$!
init=
booted() { init=$(pgrep -P "$boot_pid") && in_machine systemctl is-system-running 2>/dev/null | grep -qE 'running|degraded'; }
in_machine() { nsenter --target "$init" --mount --uts --ipc --pid --cgroup --root \
  --wd env -i PATH="$PATH" SYSTEMD_PAGER=cat LC_ALL=C "$@"; }
wait_for 30 "systemd is up" booted
is "$(in_machine cat /proc/1/comm)" systemd "systemd is PID 1"
is "$(in_machine systemctl --failed --plain --no-legend)" "" "and nothing has failed so far"

unit="kprof-collector"
property() { in_machine systemctl show -P "$1" "$unit"; }
state() { property ActiveState; }
is_restarts() { [ "$(property NRestarts)" = "$1" ]; }
is_state() { [ "$(state)" = "$1" ]; }
journal() { in_machine journalctl -u "$unit" -o cat --no-pager; }
drop_in() { # drop_in LINE...: settings besides the unit's, in [Service]
  in_machine mkdir -p "/run/systemd/system/$unit.service.d"
  printf '%s\n' '[Service]' "$@" | in_machine tee "/run/systemd/system/$unit.service.d/test.conf" >"$scratch/drop-in"
  in_machine systemctl daemon-reload
}
fails() { # fails WHAT COMMAND...
  local what=$1
  shift
  if "$@" >"$scratch/fails.out" 2>&1; then fail "$what"; fi
  ok "$what fails"
}

# -- enable --now ------------------------------------------------------------------------------------------------------
in_machine systemctl enable --now "$unit" 2>"$scratch/enable.log" || fail "systemctl enable --now: $(cat "$scratch/enable.log")"
is "$(state)|$(property SubState)|$(property Type)" "active|running|notify" "enable --now"
is "$(property StatusText)" "Listening on 127.0.0.1:4711" "  and its status"
"$kprof" nodes >"$scratch/nodes.txt" || fail "kprof nodes"
ok "it listens as soon as it is active"
has <(journal) 'kprof-collector [0-9.]+ listening on 127.0.0.1:4711, writing to /var/lib/kprof/kprof.db' "  and the journal says so"
warnings() { in_machine journalctl -u "$unit" -t kprof-collector -p warning -o cat --no-pager; }
is "$(warnings)" "" "  and not as a warning"
in_machine systemctl is-enabled --quiet "$unit" || fail "it is not enabled"

user=$(in_machine ps -o user= -p "$(property MainPID)")
[ "$user" != root ] || fail "it runs as root"
is "$(in_machine stat -c '%a %F' /var/lib/private/kprof)|$(in_machine readlink /var/lib/kprof)" "750 directory|private/kprof" \
  "the folder of its own, as user $user"
is "$(in_machine stat -c %a /var/lib/kprof/kprof.db)" 600 "  and nobody else reads the database"
status_of() { sed -n "s/^$1:[[:space:]]*//p" "/proc/$(pgrep -f -P "$init" "$prefix/bin/kprof-collector")/status"; }
is "$(status_of CapEff)|$(status_of NoNewPrivs)|$(status_of Seccomp)" "0000000000000000|1|2" \
  "it has no capabilities, gets none, and its system calls are filtered"

# -- a node is traced, through a crash and a hang --------------------------------------------------------------------------
machine_db() { in_machine "$prefix/bin/kprof" report --db /var/lib/kprof/kprof.db --json; }
complete() { machine_db >"$scratch/report.json" &&
  sqlite3 :memory: "SELECT readfile('$scratch/report.json') ->> '\$.ledger.requests_complete'"; }
complete_reaches() { [ "$(complete)" -ge "$1" ]; }
collector_port=4711 name=systemd_$$
start_shop "$name"
start_tracing "$name"
load --clients 4 --think 5 --requests 300 || fail "the load failed"
wait_for 15 "all requests are in the database" complete_reaches 300
is "$(complete)" 300 "a node is traced"
# shellcheck disable=SC2016  # for the inner shell
offered=$(PATH=$installed/bin:$PATH bash --norc \
  -c 'source "$0"; COMP_LINE="kprof trace sys" COMP_POINT=15 COMP_WORDS=(kprof trace sys) COMP_CWORD=2
  _kprof; echo "${COMPREPLY[@]}"; COMP_LINE="kprof trace $1@l" COMP_POINT=${#COMP_LINE}
  COMP_WORDS=(kprof trace "$1" @ l) COMP_CWORD=4; _kprof; echo "${COMPREPLY[@]}"' \
  "$installed/share/bash-completion/completions/kprof" "$name")
is "$offered" "$name@localhost"$'\n'localhost "completion offers the nodes that the collector knows"

back() { is_state active && "$kprof" nodes --json >"$scratch/nodes.json" 2>/dev/null &&
  [ "$(sqlite3 :memory: "SELECT readfile('$scratch/nodes.json') ->> '\$.nodes[0].state'")" = tracing ]; }
first=$(property MainPID)
in_machine kill -SEGV "$first"
wait_for 20 "it is up again, and the node back" back
is "$(property NRestarts)|$([ "$(property MainPID)" != "$first" ] && echo another)" "1|another" \
  "after a crash it is started again, and the node comes back"
load --clients 4 --think 5 --requests 200 || fail "the load failed"
wait_for 15 "all requests are in the database" complete_reaches 500
drop_in WatchdogSec=2
in_machine systemctl restart "$unit"
wait_for 20 "the node is back" back
in_machine kill -STOP "$(property MainPID)"
wait_for 20 "a hang is noticed" is_restarts 1
has <(journal) 'Watchdog timeout' "a hang is noticed"
wait_for 20 "it is up again, and the node back" back
ok "  and it is started again"
stop_tracing
in_machine systemctl stop "$unit"
is "$(state)|$(property Result)" "inactive|success" "systemctl stop"
in_machine sqlite3 /var/lib/kprof/kprof.db 'PRAGMA integrity_check' >"$scratch/check.txt"
is "$(cat "$scratch/check.txt")" ok "the database is intact"

# -- mistakes ----------------------------------------------------------------------------------------------------------
echo 'KPROF_OPTIONS="--bucket 7"' | in_machine tee /etc/default/kprof-collector >"$scratch/default"
fails "a wrong option" in_machine systemctl start "$unit"
sleep 3 # RestartSec=2
is "$(state)|$(property ExecMainStatus)|$(property NRestarts)" "failed|2|0" "  once and for all"
has <(journal) '--bucket 7: want whole seconds that divide an hour' "  and the journal says why"
echo 'KPROF_OPTIONS="--slow-threshold 500ms"' | in_machine tee /etc/default/kprof-collector >"$scratch/default"
in_machine systemctl reset-failed "$unit"
start "$scratch/squatter.log" erl -noinput -boot start_clean \
  -eval '{ok, _} = gen_tcp:listen(4711, [{ip, {127,0,0,1}}, {reuseaddr, true}]), timer:sleep(60000).'
squatter=$!
wait_for 10 "somebody has the port" eval '(exec 5<>/dev/tcp/127.0.0.1/4711) 2>/dev/null'
fails "a port that somebody has" in_machine systemctl start "$unit"
is "$(property ExecMainStatus)" 3 "  with 3"
has <(warnings) '^cannot listen .*4711|4711.*in use' "  which the journal has as an error"
kill -KILL -- "-$squatter"
wait_for 15 "it starts once the port is free" is_state active
ok "it starts by itself once the port is free"
in_machine systemctl stop "$unit"

# -- its port opened by systemd -------------------------------------------------------------------------------------------
in_machine systemctl enable --now "$unit.socket" 2>"$scratch/enable.log" || fail "the socket: $(cat "$scratch/enable.log")"
is "$(state)" inactive "with the socket nothing runs yet"
rm -f "$kprof_log"
start_tracing "$name"
is "$(state)" active "the first shim starts it"
load --clients 4 --think 5 --requests 200 || fail "the load failed"
wait_for 15 "all requests are in the database" complete_reaches 700
# shellcheck disable=SC2016  # for the inner shell
start "$scratch/knocks.log" \
  bash -c 'for ((i = 0; i < 200; i++)); do (exec 5<>/dev/tcp/127.0.0.1/4711) || echo turned away; sleep 0.01; done; echo knocked'
knocks=$!
in_machine systemctl restart "$unit"
wait_for 20 "the node is back" back
ends "$knocks" 20
is "$(cat "$scratch/knocks.log")" knocked "over a restart nobody is turned away"
stop_tracing
in_machine systemctl disable --now "$unit.socket" "$unit" 2>"$scratch/enable.log" ||
  fail "systemctl disable --now: $(cat "$scratch/enable.log")"
is "$(state)" inactive "disable --now"

# -- a secret that only root can read, as kprof-collector(8) says ----------------------------------------------------------
(umask 077; openssl rand -hex 32 >"$scratch/secret")
in_machine install -d -m 700 /etc/kprof
in_machine tee /etc/kprof/secret <"$scratch/secret" >"$scratch/tee.out"
in_machine chmod 600 /etc/kprof/secret
mapfile -t said < <(man -l "$installed/share/man/man8/kprof-collector.8" 2>/dev/null | sed -n '/LoadCredential=/,/kprof\.db/s/^ *//p')
[ "${#said[@]}" -ge 3 ] || fail "kprof-collector(8) tells no LoadCredential"
drop_in "${said[@]}"
in_machine systemctl start "$unit" || fail "with a secret it does not start: $(journal | tail -n 3)"
is "$(property StatusText)" "Listening on 0.0.0.0:4711" "with a secret, on all addresses"
fails "kprof nodes without it" "$kprof" nodes
"$kprof" nodes --secret-file "$scratch/secret" >"$scratch/nodes.txt" || fail "kprof nodes with it"
ok "kprof nodes with it"
in_machine systemctl stop "$unit"
# A socket for all addresses, and no secret.
in_machine rm -r "/run/systemd/system/$unit.service.d"
in_machine mkdir -p "/run/systemd/system/$unit.socket.d"
printf '%s\n' '[Socket]' ListenStream= ListenStream=0.0.0.0:4711 |
  in_machine tee "/run/systemd/system/$unit.socket.d/test.conf" >"$scratch/drop-in"
in_machine systemctl daemon-reload
in_machine systemctl start "$unit.socket"
fails "a socket for all addresses without a secret" in_machine systemctl start "$unit"
has <(journal) '0\.0\.0\.0.*--secret-file' "  and the journal says why"
