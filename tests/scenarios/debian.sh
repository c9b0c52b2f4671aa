# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# Servers of Debian's packages, for scenarios. Sourced behind lib.sh. Nothing is installed and no daemon is started by a package: it is
# unpacked into $root and runs from there as a process of ours. On another release of OTP it is the package of the suite that carries this
# release, compiled by it.
root=$scratch/root

skip() { echo "skipped: $*"; exit 77; }

# debian PACKAGE: unpacks a package and what it needs that is not here; sets root. Kept in the build folder. Skips the test where it cannot
# be had.
debian() {
  { command -v apt-get && command -v dpkg-deb; } >/dev/null || skip "no apt-get here"
  if [ -n "${KPROF_OTP_ROOT:-}" ]; then of_release "$1"; else of_machine "$1"; fi ||
    skip "Debian's package $1 cannot be had: $(tail -n 1 "$scratch/apt.log")"
}

of_machine() {
  local kept=$KPROF_BUILD/debian/$1 deb
  if [ ! -e "$kept/whole" ]; then
    mkdir -p "$kept/partial"
    timeout 180 apt-get -qq -y --no-install-recommends --download-only --reinstall -o Debug::NoLocking=1 -o APT::Sandbox::User=root \
      -o Dir::Cache::archives="$kept" install "$1" >"$scratch/apt.log" 2>&1 || return 1
    touch "$kept/whole"
  fi
  for deb in "$kept"/*.deb; do dpkg-deb -x "$deb" "$root"; done
  export LD_LIBRARY_PATH=$root/usr/lib/x86_64-linux-gnu:$root/usr/lib/aarch64-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}

of_release() {
  root=$KPROF_BUILD/debian/otp-$KPROF_OTP/$1
  [ -d "$root" ] || timeout 180 "$top/scripts/otp.sh" --unpack "$root" "$KPROF_OTP" "$1" >"$scratch/apt.log" 2>&1 || return 1
  # for Erlang alone, whose C library is not the machine's
  export KPROF_OTP_LIBRARIES=$root/usr/lib/x86_64-linux-gnu:$root/usr/lib/aarch64-linux-gnu
}
