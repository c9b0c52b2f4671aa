#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs from Debian what kprof needs and this machine lacks; quickstart.sh and test.sh begin with it.
set -euo pipefail

usage() {
  cat <<'END'
usage: install.sh [--check] run|test|long

Looks for what kprof needs, and installs from Debian (or Ubuntu) what is missing, as root or through sudo. What is there
already, from wherever, is left alone; when nothing is missing, nothing is done.

  run      what building and running take: C compiler, CMake, libevent, OpenSSL, msgpack-c, protobuf-c, zlib, libcurl,
           SQLite, esbuild, Erlang/OTP
  test     the same and what the tests take: cmocka, clang, rebar3, Elixir, shellcheck, ...
  long     the same and what test.sh --long takes: a browser, npm, Go, valgrind; large
  --check  installs nothing, only says what is missing

exit status: 0 nothing is missing (any more); 1 something is; 2 wrong usage
END
}

die() { echo "install: $2" >&2; exit "$1"; }

check=no wanted=''
while [ $# -gt 0 ]; do
  case $1 in
    --help|-h) usage; exit 0 ;;
    --check) check=yes ;;
    run|test|long) wanted=$1 ;;
    *) die 2 "unknown word $1 (--help tells more)" ;;
  esac
  shift
done
[ -n "$wanted" ] || die 2 "run, test or long? (--help tells more)"

scratch=$(mktemp -d "${TMPDIR:-/tmp}/kprof-install.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# --- what is there ---

have() { command -v "$1" >/dev/null 2>&1; }

compiles() { # compiles COMMAND...
  echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return !d && n; }' >"$scratch/fuzz.c"
  printf '#include <stdio.h>\nint main(void) { return puts("") < 0; }\n' >"$scratch/main.c"
  "$@" -o "$scratch/out" >"$scratch/compiler.log" 2>&1
}

newer() { # newer WANTED FOUND: FOUND is WANTED or newer
  [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]
}

cmake_there() { have cmake && newer 3.25 "$(cmake --version | sed -n '1s/[^0-9]*\([0-9.]*\).*/\1/p')"; }

has_module() { [ -x /usr/bin/python3 ] && /usr/bin/python3 -c "import $1" 2>/dev/null; } # of Debian's Python

has_library() { have pkg-config && pkg-config --exists "$1"; }

# Debian 12 knows two builds of libevent 2.1.12: the newer one mends eight vulnerabilities. pkg-config cannot tell them apart.
libevent_least=2.1.12-stable-8+deb12u1
libevent_there() {
  local state version
  has_library 'libevent >= 2.1.12' || return 1
  have dpkg-query || return 0
  read -r state version < <(dpkg-query -W -f '${db:Status-Status} ${Version}\n' libevent-dev 2>/dev/null) || return 0
  [ "$state" != installed ] || dpkg --compare-versions "$version" ge "$libevent_least"
}

msgpack_there() { has_library msgpack-c || has_library msgpack; }

# has_otp APPLICATION...: of an OTP that is new enough
has_otp() {
  local list
  list=$(printf '%s,' "$@")
  have erl && have erlc && erl -noinput -boot start_clean -eval "
    Lacks = fun(erl_interface) -> not filelib:is_regular(code:lib_dir(erl_interface) ++ \"/include/ei.h\");
               (A) -> not filelib:is_dir(code:lib_dir(A, ebin)) end,
    New = list_to_integer(erlang:system_info(otp_release)) >= 25,
    halt(case New andalso not lists:any(fun(A) -> try Lacks(A) catch _:_ -> true end end, [${list%,}]) of true -> 0; false -> 1 end)." \
    >/dev/null 2>&1
}

cmocka_there() { compiles cc "$scratch/main.c" -lcmocka; }

# --- what is missing ---

missing=() # Debian's names
need() { # need "PACKAGE..." COMMAND...: the packages are missing unless COMMAND succeeds
  local packages=$1
  shift
  # shellcheck disable=SC2206  # a list of words
  "$@" || missing+=($packages)
}

msgpack_package() {
  # renamed after Debian 12
  if have apt-cache && apt-cache show libmsgpack-c-dev >/dev/null 2>&1; then echo libmsgpack-c-dev; else echo libmsgpack-dev; fi
}

find_missing() {
  missing=()
  need 'gcc libc6-dev' compiles cc "$scratch/main.c"
  need cmake cmake_there
  have make || need ninja-build have ninja
  need pkg-config have pkg-config
  need libevent-dev libevent_there
  need libssl-dev has_library 'openssl >= 1.1.1'
  need "$(msgpack_package)" msgpack_there
  need libprotobuf-c-dev has_library 'libprotobuf-c >= 1.4'
  need protobuf-c-compiler have protoc-c
  need zlib1g-dev has_library zlib
  need libcurl4-openssl-dev has_library 'libcurl >= 7.74'
  need libsqlite3-dev has_library 'sqlite3 >= 3.40'
  need sqlite3 have sqlite3
  need esbuild have esbuild # the page, and flame graphs as .html
  need 'erlang-base erlang-dev erlang-runtime-tools' has_otp runtime_tools erl_interface
  need erlang-crypto has_otp crypto # a secret takes it
  [ "$wanted" != run ] || return 0
  need git have git
  need curl have curl
  need openssl have openssl
  need 'protobuf-compiler libprotobuf-dev' test -e /usr/include/google/protobuf/timestamp.proto -a -x /usr/bin/protoc
  need golang-github-prometheus-client-model-dev test -d /usr/share/gocode/src/github.com/prometheus/client_model
  need python3-jsonschema has_module jsonschema
  need procps have ps
  need libcmocka-dev cmocka_there
  need 'clang libclang-rt-dev' compiles clang -fsanitize=fuzzer,address,undefined "$scratch/fuzz.c"
  need clang-format have clang-format
  need clang-tidy have clang-tidy
  need shellcheck have shellcheck
  need 'erlang-eunit erlang-common-test erlang-tools' has_otp eunit common_test tools
  need 'erlang-crypto erlang-public-key erlang-ssl' has_otp crypto public_key ssl
  need rebar3 have rebar3
  need elixir have mix
  need erlang-proper has_otp proper
  need systemd have systemd-socket-activate
  need iproute2 have ip
  need strace have strace
  need man-db have man
  need mandoc have mandoc
  need zsh have zsh
  need fish have fish
  need tmux have tmux
  need dpkg-dev have dpkg-shlibdeps
  # the native tracer, for the other processor and another libc
  if [ "$(uname -m)" = aarch64 ]; then need 'gcc-x86-64-linux-gnu libc6-dev-amd64-cross' compiles x86_64-linux-gnu-gcc "$scratch/main.c"
  else need 'gcc-aarch64-linux-gnu libc6-dev-arm64-cross' compiles aarch64-linux-gnu-gcc "$scratch/main.c"; fi
  need qemu-user have qemu-aarch64
  need 'musl-tools' compiles musl-gcc "$scratch/main.c"
  need file have file # CPack asks it what is a program
  need debootstrap have debootstrap
  need clickhouse-server have clickhouse-server # what --export sends to
  [ "$wanted" = long ] || return 0
  # what reads flame graphs
  need chromium have chromium
  need npm have npm
  need golang-go have go
  # what scrapes metrics
  need prometheus have promtool
  need valgrind have callgrind_annotate
}

find_missing
[ ${#missing[@]} -gt 0 ] || exit 0

by_hand="apt-get install --no-install-recommends ${missing[*]}"
[ "$check" = no ] || die 1 "missing: ${missing[*]}
install: to install them: $by_hand"

# --- installing ---

have apt-get || die 1 "there is no apt-get here. Install these by your own system's means (the names are Debian's),
install: then start again with --no-install: ${missing[*]}"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  have sudo || die 1 "missing, and neither root nor sudo to install it. As root: $by_hand"
  as_root=(sudo)
  [ -t 0 ] || as_root=(sudo -n)
fi
apt() { ${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 "$@"; }

start=$SECONDS
echo "installing from Debian${as_root[*]:+ (through sudo)}, with all they need: ${missing[*]}"
if ! apt update </dev/null >"$scratch/apt.log" 2>&1; then
  tail -n 10 "$scratch/apt.log" >&2
  die 1 "apt-get update failed; see above"
fi
find_missing # a package's name may be known only now
if ! apt install --no-install-recommends "${missing[@]}" </dev/null >"$scratch/apt.log" 2>&1; then
  tail -n 15 "$scratch/apt.log" >&2
  die 1 "cannot install; see above. By hand: $by_hand"
fi
hash -r
find_missing
if [ ${#missing[@]} -gt 0 ]; then
  case " ${missing[*]} " in
    *' libevent-dev '*) die 1 \
      "libevent-dev must be $libevent_least or newer (security fixes); is Debian's security archive among apt's sources?" ;;
  esac
  die 1 "installed, but still not usable (too old, or something else comes first on the PATH): ${missing[*]}"
fi
echo "installed in $((SECONDS - start)) s"
