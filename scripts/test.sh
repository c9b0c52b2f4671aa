#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what the tests need and is missing, builds, and runs every test through ctest.
set -euo pipefail

usage() {
  cat <<'END'
usage: test.sh [--quick | --long | --sanitize] [--no-install] [-- CTEST-OPTION...]

Builds into build/ and runs all tests there: C units, the shim's eunit and common_test suites through rebar3, the sample
application's own tests, whole-system scenarios, some seconds of fuzzing, and lint.

A test that judges times does so while the machine is quiet: a process beside it tells. One that never was given a quiet moment is
skipped, and says so; its counts were judged all the same.

  --quick        the tests that tell most for their time: C units, the shim's eunit, three scenarios and lint
                 without clang's static analyzer; some two minutes
  --long         instead of all those what looks for more for hours: each fuzz target for ten minutes, the model with other
                 seeds and ten times as many requests; and other programs, which are large, read what kprof flame writes
  --sanitize     build into build-sanitize/ with the address and undefined-behaviour sanitizers instead, and run the C
                 tests and the scenarios with those programs
  --no-install   install nothing; say what is missing, if anything is
  --             what follows goes to ctest, for example: -- -L unit, or -- -R store -V

exit status: 0 all tests passed; 1 one failed, or the build did; 2 wrong usage
END
}

die() { echo "test: $2" >&2; exit "$1"; }

quick=no long=no sanitize=no install=yes
while [ $# -gt 0 ]; do
  case $1 in
    --help|-h) usage; exit 0 ;;
    --quick) quick=yes ;;
    --long) long=yes ;;
    --sanitize) sanitize=yes ;;
    --no-install) install=no ;;
    --) shift; break ;;
    *) die 2 "unknown option $1 (--help tells more)" ;;
  esac
  shift
done

case $quick$long$sanitize in *yes*yes*) die 2 "one of --quick, --long and --sanitize (--help tells more)" ;; esac

cd "$(dirname "${BASH_SOURCE[0]}")/.."
needs='test'
[ "$long" = no ] || needs=long
if [ "$install" = yes ]; then scripts/install.sh "$needs"; else scripts/install.sh --check "$needs"; fi

dir=build
configure=(-DBUILD_TESTING=ON -DKPROF_SANITIZE=OFF)
run=(--test-dir build --output-on-failure --no-tests=error -j "$((3 * $(nproc)))") # tests/CMakeLists.txt
[ "$quick" = no ] || run+=(-C quick -L '^quick$')
[ "$long" = no ] || run+=(-C long -L '^long$')
if [ "$sanitize" = yes ]; then
  dir=build-sanitize
  configure=(-DBUILD_TESTING=ON -DKPROF_SANITIZE=ON)
  # The rest runs no program of this build, and the fuzz targets have the sanitizers in every build.
  run[1]=$dir
  run+=(-LE 'lint|fuzz|shim|sample')
  export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:abort_on_error=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
  export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}
fi

echo "building into $dir/"
source scripts/build.sh
build "$dir" "${configure[@]}" || die 1 "the build failed"

# The tests start Erlang nodes, and the first node on a machine starts epmd: it is ended again, unless others use it by then.
epmd=
if ! epmd -names >/dev/null 2>&1; then epmd=ours; fi
trap '[ -z "$epmd" ] || epmd -kill >/dev/null 2>&1 || true' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# said LOG NAME: what a test said, without colours and empty lines.
said() {
  awk -v begin="Testing: $2" '
    substr($0, length($0) - length(begin)) == " " begin { within = 1; said = lines = 0 }
    within && !said && /^-+$/ { said = 1; lines = 0; next }
    within && /<end of output>$/ { sub(/<end of output>$/, ""); last = 1 }
    within && NF { line[++lines] = $0 }
    last { within = last = 0 }
    END { for (i = 1; i <= lines; i++) print line[i] }
  ' "$1" | sed 's/\x1b\[[0-9;]*m//g'
}

# Says once more, behind ctest's long output, how what each failed test said ended, and behind all of these what failed.
say_failed() {
  local log=$1/LastTest.log name names=()
  [ -s "$1/LastTestsFailed.log" ] || return 0
  while IFS=: read -r _ name; do
    grep -q " Testing: $name\$" "$log" || continue # of an earlier run: ctest keeps the list when it finds no tests
    names+=("$name")
    printf '\n%s failed. The end of what it said (all of it is in %s):\n' "$name" "$log"
    said "$log" "$name" | tail -n 25 | sed 's/^/  /'
  done < "$1/LastTestsFailed.log"
  printf '\n%s\n' "Failed:"
  for name in ${names[@]+"${names[@]}"}; do
    said "$log" "$name" | awk -v name="$name" '/^FAIL/ { print "  " name ": " substr($0, 1, 600); found = 1 }
      END { if (!found) print "  " name }'
  done
}

status=0
ctest "${run[@]}" "$@" </dev/null || status=1
[ "$status" = 0 ] || say_failed "$dir/Testing/Temporary"
exit "$status"
