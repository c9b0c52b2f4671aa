#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command with another release of Erlang/OTP than the machine's own, from Debian's packages in a private folder.
set -euo pipefail

usage() {
  cat <<'END'
usage: otp.sh [--no-download] RELEASE COMMAND [ARGUMENT...]
       otp.sh --check RELEASE
       otp.sh --unpack DIR RELEASE PACKAGE...

Runs COMMAND with the erl, erlc, escript and rebar3 of Erlang/OTP RELEASE (25, 27, 29) first on its PATH, and KPROF_OTP=RELEASE
in its environment. This machine's own Erlang is taken when it is of that release. Otherwise Debian's packages are, of whichever
suite carries it: they are downloaded once (some 35 MB, from the mirror that apt uses here, with apt's own check of signatures)
and unpacked into ~/.cache/kprof/otp-RELEASE (XDG_CACHE_HOME is respected), which KPROF_OTP_ROOT names then. Nothing is
installed, and root is not needed: the programs bring their own C library. Remove that folder to get rid of it, or to have newer
packages.

  --no-download  runs COMMAND only when that release is there already
  --check        downloads and runs nothing, says whether that release is there already
  --unpack       runs nothing: unpacks other packages of the suite that carries RELEASE into the new folder DIR, rabbitmq-server say,
                 with what they need of Erlang and of C libraries and is not in the release's own folder. Its Erlang programs look
                 for C libraries in KPROF_OTP_LIBRARIES, too

exit status: COMMAND's; 2 wrong usage; 77 that release is not here or cannot be had: ctest calls a test skipped then

All scenarios on another release: scripts/otp.sh 27 ctest --test-dir build -L scenario
END
}

die() { echo "otp: $2" >&2; exit "$1"; }

check='' download=1 into=
case ${1:-} in
  --check) check=1 download=''; shift ;;
  --no-download) download=''; shift ;;
  --unpack)
    into=${2:-}
    [ -n "$into" ] || die 2 "into which folder? (--help tells more)"
    into=$(realpath -m "$into")
    [ ! -e "$into" ] || die 2 "$into is there already"
    shift 2 ;;
esac
case ${1:-} in
  --help|-h) usage; exit 0 ;;
  '') die 2 "which release? (--help tells more)" ;;
  *[!0-9]*) die 2 "a release is a number such as 27, not $1 (--help tells more)" ;;
esac
release=$1
shift
if [ -n "$check" ]; then [ $# -eq 0 ] || die 2 "--check runs no command (--help tells more)"
else [ $# -gt 0 ] || die 2 "which command, or packages? (--help tells more)"; fi

cache=${XDG_CACHE_HOME:-${HOME:?}/.cache}/kprof
root=$cache/otp-$release
bin=$root/usr/lib/erlang/bin

# Whether an erl is of the release that is wanted.
is_release() {
  [ "$("$1" -noinput -boot start_clean -eval 'io:put_chars(erlang:system_info(otp_release)), halt().' 2>/dev/null)" = "$release" ]
}

# What carries a release: no other suite has ever had it.
suites() {
  case $release in
    25) echo bookworm ;;
    27) echo trixie ;;
    *) echo forky sid ;;
  esac
}

# The programs of Erlang, the headers and libraries that its suites take, and rebar3. Their dependencies are not followed, for they
# lead to a desktop: C libraries are added by what the emulator and its crypto need.
packages=(erlang-base erlang-dev rebar3 libjs-jquery libjs-jquery-tablesorter)
for name in asn1 common-test crypto eunit inets parsetools proper public-key runtime-tools ssl syntax-tools tools xmerl; do
  packages+=("erlang-$name")
done

# apt with lists and archives of its own below $scratch; its configuration (proxies, say) is the machine's.
private() {
  local tool=$1
  shift
  "$tool" -q -o Dir::State="$scratch/state" -o Dir::State::status="$scratch/status" -o Dir::Cache="$scratch/cache" \
    -o Acquire::Retries=0 -o Acquire::http::Timeout=20 -o Dir::Etc::sourcelist="$scratch/sources.list" -o Dir::Etc::sourceparts=- \
    -o APT::Sandbox::User="$(id -un)" "$@"
}

# carries SUITE: gets its lists and looks.
carries() {
  local suite=$1 keys='' mirror
  # shellcheck disable=SC2016  # apt's own words
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | grep -m1 -E '/debian/?$') ||
    die 77 "there is no Debian mirror among apt's sources"
  [ ! -f /usr/share/keyrings/debian-archive-keyring.gpg ] || keys=' [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]'
  echo "deb$keys $mirror $suite main" >"$scratch/sources.list"
  private apt-get update -o APT::Update::Error-Mode=any >>"$scratch/log" 2>&1 ||
    { tail -n 3 "$scratch/log" >&2; die 77 "no Erlang/OTP $release here, and Debian's mirror cannot be reached"; }
  # no grep -q, which would not read on
  private apt-cache show erlang-base 2>/dev/null | grep -E "^Version: ([0-9]+:)?${release}[.]" >/dev/null
}

# needs PACKAGE...: these packages and all that they need, to the C library, a line each.
needs() { private apt-get install --print-uris -y --no-install-recommends "$@" 2>>"$scratch/log" | sed -n "s/^'[^']*' \([^_]*\)_.*/\1/p" |
  sort; }

# download PACKAGE...: into $scratch/debs.
download() { (cd "$scratch/debs" && private apt-get download "$@") >>"$scratch/log" 2>&1 || { tail -n 3 "$scratch/log" >&2; return 1; }; }

# What runs Erlang: without its own packages' dependencies, but with the C libraries of the emulator and its crypto.
base() { needs erlang-base erlang-crypto | grep '^lib'; printf '%s\n' "${packages[@]}"; }

# unpack TREE: all that was downloaded.
unpack() {
  local deb
  for deb in "$scratch"/debs/*.deb; do dpkg-deb -x "$deb" "$1"; done
}

# wrap TREE PLACE RELEASE: the programs below TREE, which will be PLACE, are run by the dynamic loader that came with the release, which is
# unpacked in RELEASE and will be $root: a script in the place of each says so. No environment variable does, which would reach programs of
# this machine, too.
wrap() {
  local tree=$1 place=$2 release_tree=$3 loader libraries='' folder program own
  loader=$(find "$release_tree" -name 'ld-linux*.so*' -o -name 'ld64.so*' | head -n 1)
  loader=$root${loader#"$release_tree"}
  for folder in "$release_tree"/lib/*-linux-gnu* "$release_tree"/usr/lib/*-linux-gnu*; do
    [ ! -d "$folder" ] || libraries+=${libraries:+:}$root${folder#"$release_tree"}
  done
  find "$tree/usr/lib/erlang" -type f -perm -100 ! -name '*.so' -print0 | while IFS= read -r -d '' program; do
    [ "$(head -c 4 "$program" | tail -c 3)" = ELF ] || continue
    own=$(dirname "$program")/elf
    mkdir -p "$own"
    mv "$program" "$own/"
    # shellcheck disable=SC2016  # the script's own parameters
    printf '#!/bin/sh\nexec "%s" --argv0 "$0" --library-path "%s${KPROF_OTP_LIBRARIES:+:$KPROF_OTP_LIBRARIES}" "%s" "$@"\n' "$loader" \
      "$libraries" \
      "$place${own#"$tree"}/$(basename "$program")" >"$program"
    chmod 755 "$program"
  done
}

# Finds the suite that carries the release, in a scratch folder that is gone in the end. Sets suite.
open_suite() {
  command -v apt-get >/dev/null || die 77 "no Erlang/OTP $release here, and no apt to get Debian's packages with"
  mkdir -p "$cache"
  scratch=$(mktemp -d "$cache/otp-$release.XXXXXX")
  trap 'rm -rf "$scratch"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  mkdir -p "$scratch"/{state/lists/partial,cache/archives/partial,debs,tree/usr/lib/erlang}
  : >"$scratch/status"
  for suite in $(suites); do
    ! carries "$suite" || return 0
  done
  die 77 "no suite of Debian carries Erlang/OTP $release (looked in $(suites))"
}

close_suite() { rm -rf "$scratch"; trap - EXIT; }

fetch() {
  local wanted tree
  open_suite
  tree=$scratch/tree
  echo "otp: unpacking Erlang/OTP $release of Debian's $suite into $root" >&2
  mapfile -t wanted < <(base)
  download "${wanted[@]}" || die 77 "the packages of Erlang/OTP $release cannot be downloaded"
  unpack "$tree"
  wrap "$tree" "$root" "$tree"
  sed -i "s|^\( *ROOTDIR=\)/usr/lib/erlang|\1$root/usr/lib/erlang|" "$tree"/usr/lib/erlang/bin/erl "$tree"/usr/lib/erlang/erts-*/bin/erl
  cp "$tree/usr/bin/rebar3" "$tree/usr/lib/erlang/bin/"
  rm -rf "$root"
  mv "$tree" "$root"
  is_release "$bin/erl" || { rm -rf "$root"; die 77 "Debian's packages of Erlang/OTP $release do not run on this machine"; }
  close_suite
}

# Others: all that is named, and of what that needs the part that Erlang loads.
fetch_others() {
  local wanted
  open_suite
  mapfile -t wanted < <({ needs "$@" | comm -23 - <(base | sort) | grep -E '^(erlang-|lib)'; printf '%s\n' "$@"; } | sort -u)
  download "${wanted[@]}" || die 77 "the packages of Debian's $suite cannot be downloaded: $*"
  unpack "$scratch/tree"
  [ ! -d "$root" ] || wrap "$scratch/tree" "$into" "$root"
  mkdir -p "$(dirname "$into")"
  mv -T "$scratch/tree" "$into"
  close_suite
}

if [ "${KPROF_OTP:-}" = "$release" ] || is_release erl; then
  bin=
elif [ ! -x "$bin/erl" ]; then
  [ -n "$download" ] || die 77 "Erlang/OTP $release is not here (otp.sh $release true gets it, when Debian has it)"
  mkdir -p "$cache"
  # one at a time: tests run side by side
  exec 9>"$cache/otp-$release.lock"
  flock 9
  [ -x "$bin/erl" ] || fetch
  exec 9>&-
fi
if [ -n "$into" ]; then
  fetch_others "$@"
  exit 0
fi
if [ -n "$check" ]; then
  [ -n "$bin" ] || bin='it is the one on the PATH'
  echo "Erlang/OTP $release is here: $bin"
  exit 0
fi
export KPROF_OTP=$release
[ -z "$bin" ] || export KPROF_OTP_ROOT=$root
PATH=${bin:+$bin:}$PATH
exec "$@"
