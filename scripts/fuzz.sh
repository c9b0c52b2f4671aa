#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the fuzz targets with clang and runs them, one after the other.
#
# Usage: scripts/fuzz.sh [--seconds N] [--build-dir DIR] [--build-only | --no-build] [target…]
#   --seconds N     for each target (default 60)
#   --build-dir DIR default build-fuzz; what was found new stays in DIR/corpus and serves the next run
#   target          frame, term, message, native, control, histogram, auth, tracker, pipeline, session, params, orders, samples, answer,
#                   otlp; all without
# Exit status: 0 nothing found, 1 something found (the input's path is printed), 2 wrong usage, 3 no build.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
all="frame term message native control histogram auth tracker pipeline session params orders samples answer otlp"
seconds=60
dir=$root/build-fuzz
build=yes
run=yes
targets=""
usage() {
    sed -n '3,9s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
while [ $# -gt 0 ]; do
    case $1 in
    --seconds | --build-dir)
        [ $# -ge 2 ] || usage
        if [ "$1" = --seconds ]; then seconds=$2; else dir=$2; fi
        shift
        ;;
    --build-only) run=no ;;
    --no-build) build=no ;;
    -*) usage ;;
    *)
        case " $all " in
        *" $1 "*) targets="$targets $1" ;;
        *)
            echo "no target $1; there are: $all" >&2
            exit 2
            ;;
        esac
        ;;
    esac
    shift
done
case $seconds in '' | *[!0-9]* | 0) usage ;; esac
[ -n "$targets" ] || targets=$all

if [ $build = yes ]; then
    mkdir -p "$dir"
    # a machine may have ninja only; a build folder keeps the generator that it began with
    if [ ! -f "$dir/CMakeCache.txt" ] && command -v ninja >/dev/null; then export CMAKE_GENERATOR=Ninja; fi
    programs=fuzz_seeds
    for t in $targets; do
        programs="$programs fuzz_$t"
    done
    # shellcheck disable=SC2086  # a list of words
    if ! { cmake -S "$root" -B "$dir" -DCMAKE_C_COMPILER=clang -DKPROF_FUZZ=ON -DKPROF_SANITIZE=ON &&
        cmake --build "$dir" --target $programs; } >"$dir/build.log" 2>&1; then
        tail -n 30 "$dir/build.log" >&2
        exit 3
    fi
    for t in $all; do
        mkdir -p "$dir/seeds/$t" "$dir/corpus/$t"
    done
    "$dir/tests/fuzz/fuzz_seeds" "$root/tests/data" "$dir/seeds"
fi
[ $run = yes ] || exit 0

status=0
for t in $targets; do
    found=$dir/findings/$t
    mkdir -p "$found"
    echo "== $t, $seconds s"
    # What is kept from run to run makes the search for leaks after each run slow; these have theirs once, at the end.
    leaks=1
    case $t in pipeline | session) leaks=0 ;; esac
    # One allocation of more than 64 MB is a finding: what decodes must not believe a header.
    if ! "$dir/tests/fuzz/fuzz_$t" -max_total_time="$seconds" -max_len=8192 -malloc_limit_mb=64 -rss_limit_mb=1024 -timeout=10 \
        -print_final_stats=1 -verbosity=0 -detect_leaks=$leaks \
        -artifact_prefix="$found/" "$dir/corpus/$t" "$dir/seeds/$t" >"$dir/$t.log" 2>&1; then
        tail -n 60 "$dir/$t.log"
        echo "finding in $t:"
        ls "$found"/*
        status=1
    else
        grep number_of_executed_units "$dir/$t.log" || true
    fi
done
exit $status
