#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: the Debian package is all that a bare Debian needs: installed by apt in a chroot without compiler and Erlang, its
# collector runs, its kprof traces a node and reports, with manuals, completions and the service where people look for them; removed, it
# leaves nothing but what was collected.
#
# Skipped (77) where this machine cannot make a bare Debian: not root, no debootstrap, or no mirror of Debian that answers.
skip() { echo "skipped: $1"; exit 77; }
[ "$(id -u)" -eq 0 ] || skip "only root can make a bare Debian"
command -v debootstrap >/dev/null || skip "no debootstrap here"
suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
mirror=$(grep -rhoE '^(URIs:|deb)[[:space:]].*' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null |
  grep -oE '(https?|file)://[^[:space:]]+/debian/?' | head -n 1) || skip "apt's sources name no mirror of Debian"
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# -- a bare Debian -----------------------------------------------------------------------------------------------------
bare=$scratch/bare
debootstrap --variant=minbase "$suite" "$bare" "$mirror" >"$scratch/debootstrap.log" 2>&1 ||
  skip "debootstrap $suite from $mirror: $(tail -n 1 "$scratch/debootstrap.log")"
# shellcheck disable=SC2317  # called by the trap
leave() {
  local code=$?
  trap - EXIT
  umount -l "$bare/proc"
  (exit "$code")
  clean_up
}
mount -t proc proc "$bare/proc"
trap leave EXIT
# where Debian is found, and through whom, is this machine's matter
cp -rL /etc/apt/. "$bare/etc/apt" 2>"$scratch/copy.log" || true
cp -L /etc/resolv.conf /etc/hosts "$bare/etc"
cp -rL /etc/ssl/certs "$bare/etc/ssl/certs" 2>>"$scratch/copy.log" || cp -rL /etc/ssl "$bare/etc"
inside() { chroot "$bare" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
  http_proxy="${http_proxy:-}" https_proxy="${https_proxy:-}" "$@"; }
files() { (cd "$bare" && find usr etc lib opt srv home -xdev \( -type f -o -type l \) | sort); }
inside apt-get -q -o Acquire::Retries=3 update >"$scratch/apt.log" 2>&1 ||
  skip "apt-get update in the bare Debian: $(tail -n 1 "$scratch/apt.log")"
inside sh -c '! command -v cc && ! command -v erl' || fail "it is not bare"

# -- installed ---------------------------------------------------------------------------------------------------------
(cd "$KPROF_BUILD" && cpack -B "$scratch/package") >"$scratch/cpack.log" 2>&1 || fail "cpack"
package=$(cd "$scratch/package" && ls -- *.deb)
cp "$scratch/package/$package" "$bare/tmp"
is "$package" \
  "kprof_$(sed -n 's/^project(kprof VERSION \([0-9.]*\).*/\1/p' "$top/CMakeLists.txt")_$(dpkg --print-architecture).deb" "its name"
inside apt-get -q -y -o Acquire::Retries=3 install --no-install-recommends "/tmp/$package" \
  >"$scratch/apt.log" 2>&1 || fail "apt-get install"
for program in kprof kprof-collector start_kprof_node.sh stop_kprof_node.sh; do
  inside "$program" --help >"$scratch/help.txt" || fail "$program --help"
done
ok "the programs run"
unit=$bare/usr/lib/systemd/system/kprof-collector.service
is "$(sed -n 's/^ExecStart=\([^ ]*\) .*/\1/p' "$unit")" /usr/bin/kprof-collector "the service names the program"
for file in man/man1/kprof.1 man/man8/kprof-collector.8 bash-completion/completions/kprof fish/vendor_completions.d/kprof.fish \
  zsh/site-functions/_kprof doc/kprof/copyright kprof/ebin/kprof.app; do
  # a minimal system may leave documentation out
  [ -s "$bare/usr/share/$file" ] || inside dpkg -L kprof | grep -qx "/usr/share/$file" || fail "no $file"
done
ok "manuals, completions, the license and the shim"

# -- used --------------------------------------------------------------------------------------------------------------
name=package_$$
start_shop "$name"
install -m 400 "$scratch/cookie" "$bare/root/cookie"
start "$scratch/collector.log" chroot "$bare" kprof-collector --listen 127.0.0.1:0 --db /root/kprof.db
collector_port() { sed -n 's/.* listening on 127.0.0.1:\([0-9]*\),.*/\1/p' "$scratch/collector.log"; }
listens() { [ -n "$(collector_port)" ]; }
wait_for 30 "the collector listens" listens
start "$scratch/attach.log" chroot "$bare" kprof attach "$name@localhost" --cookie-file /root/cookie --json \
  --collector "127.0.0.1:$(collector_port)" --tier http=shop_http:handle_request/2 --tier storage=shop_storage:run/2
attach=$!
wait_for 30 "it traces" grep -q '^tracing ' "$scratch/attach.log"
load --clients 2 --think 5 --requests 200 || fail "the load failed"
counted() { [ "$(sqlite3 -readonly "$bare/root/kprof.db" "SELECT sum(requests_complete) FROM ledger WHERE resolution_s = 10")" = 200 ]; }
wait_for 30 "200 requests are in the database" counted
kill -INT "$attach"
ends "$attach" 60
is "$status" 0 "kprof attach ended with 0"
inside kprof report --db /root/kprof.db >"$scratch/report.txt" || fail "kprof report"
has "$scratch/report.txt" "^ 200 complete requests; nothing lost" "kprof report tells of every request"

# -- removed -----------------------------------------------------------------------------------------------------------
inside dpkg -L kprof | sed 's,^/,,' | sort >"$scratch/list.txt"
inside apt-get -q -y purge kprof >"$scratch/apt.log" 2>&1 || fail "apt-get purge"
is "$(files | grep -v ^etc/ | grep -Fxf "$scratch/list.txt" || true)" "" "nothing of it stays"
[ -s "$bare/root/kprof.db" ] || fail "what was collected is gone"
ok "what was collected does"
