#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Stops a kprof node that start_kprof_node.sh started, and waits until it is gone.
set -euo pipefail

usage() {
  cat <<'END'
usage: stop_kprof_node.sh [--node NAME] [--pid-file FILE]

Tells the kprof node that traces the Erlang node NAME to take everything out of it and end, and waits for that (30 seconds
at most).

  --node NAME       the traced node; default: all kprof nodes of this user
  --pid-file FILE   the one that start_kprof_node.sh was given

exit status: 0 stopped; 1 none runs; 2 wrong usage; 3 it did not end in time
END
}

die() { echo "stop_kprof_node: $2" >&2; exit "$1"; }

node='' pidfile=''
while [ $# -gt 0 ]; do
  case $1 in
    --help|-h) usage; exit 0 ;;
    --node|--pid-file)
      [ $# -ge 2 ] || die 2 "$1 wants a value (--help tells more)"
      case $1 in --node) node=$2 ;; --pid-file) pidfile=$2 ;; esac
      shift 2 ;;
    *) die 2 "unknown option $1 (--help tells more)" ;;
  esac
done

run=${XDG_RUNTIME_DIR:-${TMPDIR:-/tmp}}
if [ -n "$pidfile" ]; then files=("$pidfile")
elif [ -n "$node" ]; then files=("$run/kprof-node-${node//\//_}.pid")
else files=("$run"/kprof-node-*.pid)
fi

stopped=0
for file in "${files[@]}"; do
  # only files of our own count: the folder may be everybody's
  [ -O "$file" ] || continue
  pid=$(cat "$file" 2>/dev/null) || continue
  [[ $pid =~ ^[0-9]+$ ]] || continue
  # the process id may have gone to somebody else since
  if [ -r "/proc/$pid/cmdline" ] && ! tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q kprof_node; then continue; fi
  kill -TERM "$pid" 2>/dev/null || continue
  for _ in $(seq 300); do
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  ! kill -0 "$pid" 2>/dev/null || die 3 "the kprof node, process $pid, did not end within 30 s"
  echo "stopped the kprof node, process $pid"
  stopped=$((stopped + 1))
done
[ "$stopped" -gt 0 ] || die 1 "no kprof node runs${node:+ for $node}"
