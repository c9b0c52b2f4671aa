# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# What the parts of the benchmark share: waiting, ending what was started, numbers, the collector. Sourced by run.sh, whose
# variables it uses: $scratch, and the process ids of what has to be ended.

# wait_until TENTHS COMMAND...: until it succeeds, so many tenths of a second at most: for what hangs, some ten times what is usual.
wait_until() {
    local tries=$1
    shift
    until "$@"; do
        [ $((tries--)) -gt 0 ] || return 1
        sleep 0.1
    done
}
gone() { ! kill -0 "$1" 2>/dev/null; }

# TERM, and KILL when that does not help within a minute.
stop() {
    kill -TERM "$1" 2>/dev/null || true
    wait_until 600 gone "$1" || true
    kill -KILL "$1" 2>/dev/null || true
    wait "$1" || true
}
clean_up() {
    local pid
    for pid in $kprof_node $shop_node $feeder $serve $collector $collectors; do stop "$pid"; done
    rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

die() { echo "run.sh: $1" >&2; exit 1; }
say() { echo "$(date +%T) $1" >&2; }
failed=''
check_failed() { echo "  CHECK FAILED: $1"; failed=yes; }

# Numbers: arithmetic, the median and the smallest of lines, thousands apart.
calc() { awk "BEGIN { printf \"$1\", $2 }"; }
median() { sort -g | awk '{ v[NR] = $1 } END { if (NR) print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
smallest() { sort -g | sed -n 1p; }
grouped() { printf '%.0f' "$1" | sed -e ':a' -e 's/\([0-9]\)\([0-9]\{3\}\)\($\|,\)/\1,\2\3/' -e 'ta'; }

# The words after the one given, of the lines that begin with it.
field() { awk -v key="$2" '{ for (i = 1; i < NF; i++) if ($i == key) print $(i + 1) }' "$1"; }
query() { sqlite3 -readonly "$1" "$2"; }
cpu_ticks() { awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$1/stat"; }

# start_collector NAME [DB OPTION...]: on a free port, in $port; its database is $scratch/NAME.db.
start_collector() {
    "$scratch/kprof-collector" --listen 0 --db "${2:-$scratch/$1.db}" "${@:3}" 2>"$scratch/$1.log" &
    collector=$!
    wait_until 600 said_or_gone ' listening on ' "$scratch/$1.log" $collector || true
    port=$(sed -n 's/.*listening on [^ ]*:\([0-9]*\),.*/\1/p' "$scratch/$1.log" | head -n 1)
    [ -n "$port" ] || { cat "$scratch/$1.log" >&2; die "the collector does not start"; }
}
# said_or_gone PATTERN LOG PID
said_or_gone() { grep -qs "$1" "$2" || gone "$3"; }
