#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh clone to a table of where the requests of a live Erlang node spend their time, and a flame graph of them.
set -euo pipefail

usage() {
  cat <<'END'
usage: quickstart.sh [--seconds N] [--keep] [--no-install] [--db FILE]

Installs from Debian what is missing, builds kprof into build/, starts the collector and a small shop (an Erlang node of
its own) with clients that keep it busy, traces the shop for some seconds, and shows where the time of its requests went: a
table, and a flame graph of twenty requests for a browser, kprof-flame.svg in the current folder. While it runs, the page
shows the same: its address is printed. Everything that it starts is ended again, also on Ctrl-C; the database and the
picture stay.

  --seconds N    how long to trace (default 15)
  --keep         go on tracing until Ctrl-C, to look at the page; the table and the picture come then
  --no-install   install nothing; say what is missing, if anything is
  --db FILE      the database to write (default kprof.db in the current folder; if that is there already, kprof-2.db ...)

exit status: 0 the shop's requests were counted; 1 they were not, or something failed; 2 wrong usage; 130 Ctrl-C
END
}

problem() { echo "quickstart: $*" >&2; }
wrong() { problem "$1 (--help tells more)"; exit 2; }

seconds=15 install=yes keep='' db=''
while [ $# -gt 0 ]; do
  case $1 in
    --help|-h) usage; exit 0 ;;
    --no-install) install=no ;;
    --keep) keep=1 ;;
    --seconds|--db)
      [ $# -ge 2 ] || wrong "$1 wants a value"
      case $1 in --seconds) seconds=$2 ;; --db) db=$2 ;; esac
      shift ;;
    *) wrong "unknown option $1" ;;
  esac
  shift
done
[[ $seconds =~ ^[1-9][0-9]{0,4}$ ]] || wrong "--seconds wants a number of seconds from 1 on, not $seconds"

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$top/build
shop=$top/tests/sample/shop.sh

# What the user is told to type, from the folder where they are.
shown() { case $1 in "$PWD"/*) printf '%q' "${1#"$PWD"/}" ;; *) printf '%q' "$1" ;; esac; }

note=
if [ -n "$db" ]; then
  [ ! -e "$db" ] || { problem "$db is there already: choose another name, or remove it"; exit 1; }
else
  db=kprof.db
  for ((i = 2; ; i++)); do
    [ -e "$db" ] || break
    db=kprof-$i.db
    note=" (what was there before stays)"
  done
fi
if [ ! -d "$(dirname "$db")" ] || [ ! -w "$(dirname "$db")" ]; then
  problem "cannot write into the folder $(dirname "$db"): choose another one with --db FILE"
  exit 1
fi
db=$(cd "$(dirname "$db")" && pwd)/$(basename "$db")
picture=$PWD/kprof-flame.svg
for ((i = 2; ; i++)); do
  [ -e "$picture" ] || break
  picture=$PWD/kprof-flame-$i.svg
done

# --- what runs, and its end ---

scratch=$(mktemp -d "${TMPDIR:-/tmp}/kprof-quickstart.XXXXXX")
export ERL_CRASH_DUMP=$scratch/erl_crash.dump
sessions=() # each is also its first process. Apart from ours, so that Ctrl-C reaches only this script, which ends them in order
made=       # set once the database is ours

# start LOG COMMAND...: in the background, in a session of its own; $! is its process.
start() {
  local log=$scratch/$1.log
  shift
  setsid "$@" >"$log" 2>&1 </dev/null &
  sessions+=($!)
}

lives() { kill -0 "$1" 2>/dev/null; }

# kill_session PID: what is left of it, the compilers that ninja gave process groups of their own too.
kill_session() {
  local file stat
  for file in /proc/[0-9]*/stat; do
    { read -r stat <"$file"; } 2>/dev/null || continue
    # after the name, which may have blanks in it: state, parent, group, session
    # shellcheck disable=SC2086  # a list of words
    set -- "$1" ${stat##*) }
    [ "$5" != "$1" ] || kill -KILL "$(basename "$(dirname "$file")")" 2>/dev/null || true
  done
}

# stop PID [SECONDS]: TERM, and KILL to its whole session after a while. Gives its exit status. An Erlang node that is just
# starting does not hear the first TERM.
stop() {
  local pid=$1 tries status=0
  for ((tries = 0; tries < 10 * ${2:-15}; tries++)); do
    [ $((tries % 20)) -ne 0 ] || kill -TERM "$pid" 2>/dev/null || true
    lives "$pid" || break
    sleep 0.1
  done
  kill_session "$pid"
  wait "$pid" 2>/dev/null || status=$?
  return "$status"
}

# For what has nothing to tidy up: the load generator and the build.
stop_at_once() { kill -TERM -- "-$1" 2>/dev/null || true; stop "$1" 5 || true; }

# shellcheck disable=SC2317  # called by the trap
clean_up() {
  local status=$? pid
  trap '' INT TERM HUP
  set +e
  [ "$status" -ne 130 ] || { end_line; echo "interrupted: ending what was started" >&2; }
  [ -z "${load:-}" ] || stop_at_once "$load"
  [ -z "${compiler:-}" ] || stop_at_once "$compiler"
  for pid in $(jobs -rp | tac); do stop "$pid"; done # the last one first
  for pid in ${sessions[@]+"${sessions[@]}"}; do kill_session "$pid"; done
  readonly=()
  if [ "$status" -ne 0 ] && [ -n "$made" ]; then
    if [ "$(counted 2>/dev/null || echo 0)" -gt 0 ]; then
      echo "$(shown "$db") holds what was counted until then" >&2
    else
      rm -f "$db" "$db-wal" "$db-shm"
    fi
  fi
  rm -rf "$scratch"
  exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

# fail TEXT [LOG]: with the end of that log.
fail() {
  end_line
  if [ -s "$scratch/${2:-}.log" ]; then tail -n 12 "$scratch/$2.log" | cut -c1-300 | sed 's/^/  | /' >&2; fi
  problem "$1"
  exit 1
}

# --- what is said ---

open_line=
end_line() { [ -z "$open_line" ] || echo; open_line=; }

# A line that is written over by the next one; not at all unless this is a terminal.
if [ -t 1 ]; then ticker() { printf '\r\033[K%s' "$1"; open_line=1; }; else ticker() { :; }; fi
say() {
  if [ -n "$open_line" ]; then printf '\r\033[K'; open_line=; fi
  printf '%s\n' "$1"
}

# await SECONDS LOG PATTERN PID WHAT: until the log has a line like that.
await() {
  local until=$((SECONDS + $1)) log=$scratch/$2.log
  until grep -qs -- "$3" "$log"; do
    lives "$4" || fail "$5 did not start" "$2"
    [ "$SECONDS" -lt "$until" ] || fail "$5 did not start within $1 s" "$2"
    sleep 0.1
  done
}

# --- numbers ---

readonly=(-readonly) # as long as the collector writes
query() { sqlite3 ${readonly[@]+"${readonly[@]}"} -cmd '.timeout 5000' "$db" "$1"; }
counted() { query "SELECT coalesce(sum(requests_complete), 0) FROM ledger WHERE resolution_s = 10"; }

# How many requests the shop has answered, as it counts itself.
answered() {
  local page
  exec 3<>"/dev/tcp/127.0.0.1/$shop_port"
  printf 'GET /_truth HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&3
  page=$(timeout 10 cat <&3)
  exec 3>&-
  grep -o '"requests":[0-9]*' <<<"$page" | awk -F: '{ n += $2 } END { print n + 0 }'
}

# --- first: what is needed ---

cd "$top"
if [ "$install" = yes ]; then
  scripts/install.sh run || exit $?
else
  scripts/install.sh --check run || exit 1
fi

# A build folder that has the tests in it keeps them; a new one does without.
options=()
[ -f "$build/CMakeCache.txt" ] || options=(-DBUILD_TESTING=OFF)
began=$SECONDS
[ -t 1 ] || [ -x "$build/kprof" ] || say "building into $(cd "$OLDPWD" && shown "$build")/ ..."
# shellcheck disable=SC2016  # the inner shell's
start build bash -c '. scripts/build.sh && build "$@"' build build ${options[@]+"${options[@]}"} \
  -- kprof kprof-collector shim sample
compiler=$!
while lives "$compiler"; do
  ticker "building into build/, $((SECONDS - began)) s"
  sleep 0.2
done
wait "$compiler" || { cat "$scratch/build.log" >&2; compiler=; fail "the build failed"; }
compiler=
say "built into build/ in $((SECONDS - began)) s"
cd "$OLDPWD"

# --- collector, shop, clients ---

made=1
start collector "$build/kprof-collector" --listen 0 --http 0 --db "$db"
collector=$!
await 20 collector 'listening on ' "$collector" "the collector"
collector_at=$(sed -n 's/.*listening on \([0-9.]*:[0-9]*\).*/\1/p' "$scratch/collector.log" | head -n 1)
[ -n "$collector_at" ] || fail "the collector does not say where it listens" collector
say "collector   listens on $collector_at, writes $(shown "$db")$note"
page=$(sed -n 's/.*the page is at \(http[^ ]*\).*/\1/p' "$scratch/collector.log" | head -n 1)
[ -n "$page" ] || fail "the collector does not say where the page is" collector
say "page        $page"

# An epmd (which knows the ports of nodes) of our own, on loopback: no other node sees ours, none is in its way.
epmd=$(command -v epmd || erl -noinput -boot start_clean -eval \
  'io:put_chars(hd(filelib:wildcard(code:root_dir() ++ "/erts-*/bin/epmd"))), halt().') || fail "there is no epmd, a part of Erlang"
for _ in 1 2 3 4 5; do
  export ERL_EPMD_PORT=$((20000 + RANDOM % 10000))
  start epmd "$epmd" -address 127.0.0.1 -port "$ERL_EPMD_PORT"
  epmd_pid=$!
  for ((i = 0; i < 50; i++)); do
    ! lives "$epmd_pid" || ! "$epmd" -port "$ERL_EPMD_PORT" -names >/dev/null 2>&1 || break
    lives "$epmd_pid" || break
    sleep 0.1
  done
  lives "$epmd_pid" && break
done
lives "$epmd_pid" || fail "epmd did not start" epmd

node=shop@127.0.0.1
head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$scratch/cookie"
chmod 400 "$scratch/cookie"
start shop env SHOP_EBIN="$build/sample/ebin" "$shop" node --name "$node" --cookie-file "$scratch/cookie"
shop_pid=$!
await 60 shop 'listening on ' "$shop_pid" "the shop"
shop_port=$(sed -n 's/.*listening on [0-9.]*:\([0-9]*\).*/\1/p' "$scratch/shop.log" | head -n 1)
clients=8 think=10
start load env SHOP_EBIN="$build/sample/ebin" "$shop" load --port "$shop_port" --clients $clients --think $think \
  --seconds $((seconds + 600))
load=$!
say "shop        node $node serves 127.0.0.1:$shop_port, $clients clients keep it busy"

# --- tracing ---

start kprof "$top/scripts/start_kprof_node.sh" --node "$node" --cookie-file "$scratch/cookie" \
  --config "$top/tests/sample/kprof.config" --collector "$collector_at" --pid-file "$scratch/kprof.pid"
kprof_pid=$!
await 60 kprof '^tracing ' "$kprof_pid" "tracing"
before=$(answered) || fail "the shop does not answer" shop
began=$SECONDS
if [ -n "$keep" ]; then how_long="until Ctrl-C"; else how_long="for $seconds s"; fi
say "tracing     $(sed -n 's/^tracing [^:]*: \([0-9]* tiers\).*/\1/p' "$scratch/kprof.log"), loaded into the running node, $how_long"

check_all() {
  lives "$load" || fail "the load generator ended" load
  lives "$shop_pid" || fail "the shop ended" shop
  lives "$kprof_pid" || fail "the kprof node ended" kprof
  lives "$collector" || fail "the collector ended" collector
}
told=0
# The first Ctrl-C ends --keep in order, the next one all at once.
[ -z "$keep" ] || trap 'keep=; seconds=0; trap "exit 130" INT' INT
while passed=$((SECONDS - began)); [ -n "$keep" ] || [ "$passed" -lt "$seconds" ]; do
  check_all
  ticker "            $passed s, $(counted) requests counted"
  if [ ! -t 1 ] && [ -z "$keep" ] && [ $((passed - told)) -ge 5 ]; then
    told=$passed
    say "            $passed s, $(counted) requests counted"
  fi
  sleep 0.25
done
check_all

# --- the end of tracing, in order: no new requests, what is under way comes in, the node is itself again, all is written ---

ticker "            taking tracing out of the shop"
stop_at_once "$load"
load=
sleep 2 # a request is closed a second after its end
after=$(answered) || fail "the shop does not answer" shop
requests=$((after - before))
stop "$kprof_pid" 30 || fail "taking tracing out of the shop failed" kprof

# --- a flame graph: one command, which needs nothing of what ran above ---

ticker "            tracing every function of 20 requests"
start load env SHOP_EBIN="$build/sample/ebin" "$shop" load --port "$shop_port" --clients 2 --think 20 --seconds 600
load=$!
start flame "$build/kprof" flame "$node" --cookie-file "$scratch/cookie" --config "$top/tests/sample/kprof.config" \
  --module 'shop_*' --db "$scratch/flame.db" --out "$picture"
wait $! || fail "kprof flame failed" flame
stop_at_once "$load"
load=
say "flame graph drawn, of 20 requests"

# --- the end ---

stop "$shop_pid" || fail "the shop did not end well" shop
stop "$collector" || fail "the collector did not end well" collector
stop "$epmd_pid" || true
readonly=()
found=$(counted)

say ""
if [ "$found" -gt 0 ]; then "$build/kprof" report --db "$db" || fail "kprof report failed"; say ""; fi
say "kprof counted $found requests. The shop's own count, begun a moment after tracing, says $requests."
if [ "$found" -eq 0 ] || [ $((2 * found)) -lt "$requests" ]; then
  fail "that is less than half of them. $(query "
    SELECT 'Incomplete: ' || sum(requests_incomplete) || ', expired: ' || sum(requests_expired) || ', messages dropped: ' ||
      sum(dropped_messages) ||
      ', tracing paused by the guard for ' || sum(tripped_ms) || ' ms.' FROM ledger WHERE resolution_s = 10")" kprof
fi

slowest="SELECT identity, tier, sum(calls) AS calls, round(max(p50_us)) AS p50_us, round(max(p99_us)) AS p99_us FROM tier_stats
         WHERE resolution_s = 3600 AND identity <> '_total' GROUP BY identity, tier ORDER BY p99_us DESC LIMIT 10"
failing="SELECT identity, sum(calls) AS requests, sum(errors) AS errors FROM tier_stats WHERE resolution_s = 3600 AND tier = '_total'
         GROUP BY identity ORDER BY errors DESC"
for q in "$slowest" "$failing"; do
  [ -n "$(query "$q")" ] || fail "this query should have found something: $q"
done
program=$(shown "$build/kprof")
case $program in */*) ;; *) program=./$program ;; esac
cat <<END

The table again, what the tracing cost, and the slowest requests, one of which \`slow ID' draws:
  $program report --db $(shown "$db")
  $program report --cost --db $(shown "$db")
  $program slow --db $(shown "$db")
The slowest calls, and which requests fail:
  sqlite3 -box $(shown "$db") "$slowest"
  sqlite3 -box $(shown "$db") "$failing"
The page of it, for a browser, until Ctrl-C:
  $program serve --db $(shown "$db")
Every function that 20 of the requests ran, to be opened in a browser; \`kprof flame NODE --entry M:F/A' draws your node's:
  $(shown "$picture")
END
