#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Lints collector/ with clang-tidy (.clang-tidy says which checks) and all shell scripts with shellcheck. Finds C that clang-format would
# write otherwise (.clang-format), lines of Erlang over 100 columns and of scripts over 140, tests that have eunit's five seconds, and
# sources whose head does not name the license.
#
# Usage: scripts/lint.sh [--quick | --deep] [--build-dir DIR] [file…]
#   --quick         without clang's static analyzer
#   --deep          the analyzer follows each function's paths as far as it is made for, which takes ten times as long
#   --build-dir DIR a configured build (default build), for its compile_commands.json
#   file            C files of collector/; all without
# Exit status: 0 clean, 1 findings, 2 wrong usage or no build.
set -eu
cd "$(dirname "$0")/.."
dir=build
checks=
nodes=15000 # of each function's paths; clang's own limit is 225,000
while :; do
    case ${1:-} in
    --quick) checks='--checks=-clang-analyzer-*' ;;
    --deep) nodes=225000 ;;
    --build-dir)
        [ $# -ge 2 ] || exit 2
        dir=$2
        shift
        ;;
    *) break ;;
    esac
    shift
done
if [ ! -f "$dir/compile_commands.json" ]; then
    echo "no $dir/compile_commands.json: run cmake -S . -B $dir first" >&2
    exit 2
fi
if [ $# -eq 0 ]; then
    # those that the build compiles: a file that nobody builds has no command line
    files=$(grep -o '"file": *"[^"]*/collector/[^"]*\.c"' "$dir/compile_commands.json" | sed 's/.*"\(.*\)"/\1/' | sort -u)
else
    files=$*
fi
status=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# gcc's options that clang does not know must not count as findings
echo "$files" | tr ' ' '\n' |
    xargs -P 2 -n 4 clang-tidy --quiet -p "$dir" ${checks:+"$checks"} --extra-arg=-Wno-unknown-warning-option \
        --extra-arg=-Wno-ignored-optimization-argument \
        --extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang --extra-arg=max-nodes=$nodes >"$log" 2>/dev/null || status=1
if [ $status -ne 0 ]; then
    cat "$log"
fi
if command -v shellcheck >/dev/null; then
    # shellcheck disable=SC2046  # paths without blanks
    shellcheck -x -P SCRIPTDIR .ci/run $(git ls-files 'scripts/*.sh' 'tests/*.sh') || status=1
fi
# shellcheck disable=SC2046  # paths without blanks
clang-format --dry-run --Werror $(git ls-files '*.[ch]') || status=1
# letters are counted, not bytes
LC_ALL=C.UTF-8 git grep -nE '.{101}' -- '*.erl' '*.hrl' '*.escript' && status=1
LC_ALL=C.UTF-8 git grep -nE '.{141}' -- '*.sh' '*CMakeLists.txt' && status=1
# a busy machine takes these for nothing (shim/test/patient.hrl)
git grep -nE '^[a-zA-Z0-9_]+_test\(\) ->|include_lib\("eunit/' -- 'shim/test/*_tests.erl' && status=1
git grep -L 'SPDX-License-Identifier: Apache-2.0' -- '*.[ch]' '*.erl' '*.hrl' '*.escript' '*.src' '*.config' '*.sh' '*.sql' '*.cmake' \
    '*CMakeLists.txt' '*.[18]' | sed 's/$/: no SPDX-License-Identifier/' | grep . && status=1
[ $status -ne 0 ] || echo "clean"
exit $status
