#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The sample application from the shell: build it, run its node, its load generator, or both.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: shop.sh COMMAND [OPTION VALUE]...

  build DIR    compile into DIR/ebin
  node         run the shop in the foreground; TERM ends it cleanly
      --name NAME@HOST --cookie-file FILE   a distributed node (both or neither)
      --port P             listen on 127.0.0.1:P (default 0: any free port)
      --port-file FILE     write the port there once it listens
      --trace none|kprof|dbg   dbg: the shop traces itself into --capture FILE. An overloaded tracer
                               fills the node's memory: keep dbg runs short
      --truth true|false   count calls and time per tier (default true)
      --http-cost N, --pool-cost, --storage-cost, --render-cost, --accounting-cost
                           work per call of a layer, N units of up to a microsecond
      --accounting-wait-ms N   how long a booking waits besides
  load         closed-loop clients against a running shop
      --port P [--host H] [--clients 8] [--seconds 10] [--requests N] [--think MS] [--seed 1]
      [--mix read=45,search=10,create=10,update=10,delete=5,order=19,unknown=1] [--json]
  truth        print what the shop counted, as JSON, once the bookings are done
      --port P
  run          node, load, truth and a clean end in one go: the options of node and load, and
      --truth-file FILE    write the truth there
      --collector HOST:PORT    with --trace kprof: start_kprof_node.sh traces the node for it
      --settle SECONDS     with --trace kprof: time for tracing to begin, and for the last
                           data to leave (default 3)
  selftest     compile and run the tests

Compiled code is taken from SHOP_EBIN (default: build/sample/ebin of the repository).
Exit codes: 0 fine, 1 failed, 2 wrong usage.
USAGE
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)
ebin=${SHOP_EBIN:-$top/build/sample/ebin}
scratch=
children=()

fail() { echo "shop.sh: $2" >&2; exit "$1"; }

# TERM, and KILL when that does not help.
stop() {
    local tries
    kill -TERM "$1" 2>/dev/null || true
    for ((tries = 0; tries < 200; tries++)); do
        kill -0 "$1" 2>/dev/null || break
        sleep 0.1
    done
    kill -KILL "$1" 2>/dev/null || true
    wait "$1"
}

clean_up() {
    local pid
    for pid in ${children[@]+"${children[@]}"}; do stop "$pid" || true; done
    [ -z "$scratch" ] || rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

make_scratch() { [ -n "$scratch" ] || scratch=$(mktemp -d "${TMPDIR:-/tmp}/shop.XXXXXX"); }

need_value() { [ $# -ge 2 ] || fail 2 "$1 needs a value"; }

build() {
    [ $# -eq 1 ] || fail 2 "build needs one directory"
    mkdir -p "$1/ebin"
    erlc +debug_info -Werror -o "$1/ebin" "$here"/src/*.erl
    cp "$here/src/shop.app.src" "$1/ebin/shop.app"
}

need_ebin() {
    [ -f "$ebin/shop_cli.beam" ] || fail 1 "no compiled shop in $ebin (shop.sh build DIR; SHOP_EBIN=DIR/ebin)"
}

# Runs in the foreground. The cookie reaches erl as $HOME/.erlang.cookie of a private home, so
# that no command line shows it.
node() {
    local name='' cookie='' flags=() args=() code=0 pid
    while [ $# -gt 0 ]; do
        need_value "$@"
        case $1 in
            --name) name=$2 ;;
            --cookie-file) cookie=$2 ;;
            *) args+=("$1" "$2") ;;
        esac
        shift 2
    done
    if [ -n "$name" ]; then
        case $name in ?*@?*) ;; *) fail 2 "--name must be NAME@HOST" ;; esac
        [ -n "$cookie" ] || fail 2 "--name needs --cookie-file"
        [ -r "$cookie" ] || fail 1 "cannot read the cookie file $cookie"
        case ${name#*@} in *.*) flags+=(-name "$name") ;; *) flags+=(-sname "$name") ;; esac
        case ${name#*@} in localhost|127.*) flags+=(-kernel inet_dist_use_interface '{127,0,0,1}') ;; esac
        make_scratch
        install -m 400 "$cookie" "$scratch/.erlang.cookie"
        export HOME=$scratch
    elif [ -n "$cookie" ]; then
        fail 2 "--cookie-file needs --name"
    fi
    # In the background and waited for, so that TERM is passed on at once; the node drains and ends with 0. A wait that a signal
    # interrupts is taken up again; Erlang forgets a TERM that reaches it while it boots, so it is told again.
    erl -noinput -pa "$ebin" ${flags[@]+"${flags[@]}"} -s shop_cli main -extra node ${args[@]+"${args[@]}"} &
    pid=$!
    local told='' ended=''
    trap 'told=1; kill -TERM "$pid" 2>/dev/null || true' TERM INT
    while [ -z "$ended" ]; do
        if [ -n "$told" ] && kill -TERM "$pid" 2>/dev/null; then
            sleep 1
            continue
        fi
        code=0
        wait "$pid" || code=$?
        kill -0 "$pid" 2>/dev/null || ended=1
    done
    return "$code"
}

# A short-lived command: load or truth.
client() { erl -noinput -pa "$ebin" -s shop_cli main -extra "$@"; }

wait_for_port() {
    local file=$1 pid=$2 tries
    for ((tries = 0; tries < 3000; tries++)); do
        [ -s "$file" ] && return 0
        kill -0 "$pid" 2>/dev/null || fail 1 "the node ended before it listened"
        sleep 0.1
    done
    fail 1 "the node does not listen after five minutes"
}

run() {
    local node_args=() load_args=() trace=none name='' cookie='' collector='' truth_file='' settle=3
    local node_pid kprof_pid='' port code=0
    while [ $# -gt 0 ]; do
        if [ "$1" = --json ]; then load_args+=("$1"); shift; continue; fi
        need_value "$@"
        case $1 in
            --truth-file) truth_file=$2 ;;
            --collector) collector=$2 ;;
            --settle) settle=$2 ;;
            --host|--clients|--seconds|--requests|--think|--seed|--mix) load_args+=("$1" "$2") ;;
            --port-file) fail 2 "run has a port file of its own" ;;
            *) node_args+=("$1" "$2") ;;
        esac
        case $1 in --trace) trace=$2 ;; --name) name=$2 ;; --cookie-file) cookie=$2 ;; esac
        shift 2
    done
    if [ "$trace" = kprof ] && { [ -z "$name" ] || [ -z "$cookie" ] || [ -z "$collector" ]; }; then
        fail 2 "--trace kprof needs --name, --cookie-file and --collector"
    fi
    make_scratch
    # The node's own words go to stderr: stdout is the load generator's.
    "$here/shop.sh" node --port-file "$scratch/port" ${node_args[@]+"${node_args[@]}"} >&2 &
    node_pid=$!
    children=("$node_pid")
    wait_for_port "$scratch/port" "$node_pid"
    port=$(cat "$scratch/port")
    if [ "$trace" = kprof ]; then
        "$top/scripts/start_kprof_node.sh" --node "$name" --cookie-file "$cookie" \
            --config "$here/kprof.config" --collector "$collector" >&2 &
        kprof_pid=$!
        children=("$kprof_pid" "$node_pid")
        sleep "$settle"
        kill -0 "$kprof_pid" 2>/dev/null || fail 1 "kprof ended before the load began"
    fi
    client load --port "$port" ${load_args[@]+"${load_args[@]}"} || code=$?
    client truth --port "$port" > "$scratch/truth"
    [ -z "$truth_file" ] || cp "$scratch/truth" "$truth_file"
    if [ -n "$kprof_pid" ]; then
        sleep "$settle"
        children=("$node_pid")
        stop "$kprof_pid" || fail 1 "kprof ended with $?"
    fi
    children=()
    stop "$node_pid" || fail 1 "the node ended with $?"
    return "$code"
}

selftest() {
    make_scratch
    build "$scratch"
    erlc +debug_info -Werror -o "$scratch/ebin" "$here"/test/*.erl
    # A home of its own: a node of the test without a cookie would leave one in the real home.
    HOME=$scratch SHOP_EBIN=$scratch/ebin erl -noinput -kernel logger_level warning -pa "$scratch/ebin" \
        -eval 'case eunit:test([shop_tests, shop_sh_tests], [verbose]) of ok -> halt(0); _ -> halt(1) end' \
        -extra "$here/shop.sh" "$here/kprof.config" "$scratch"
}

command=${1:-}
[ $# -eq 0 ] || shift
case " $* " in *" --help "*) usage; exit 0 ;; esac
case $command in
    build|selftest) "$command" "$@" ;;
    node|run) need_ebin; "$command" "$@" ;;
    load|truth) need_ebin; client "$command" "$@" ;;
    help|--help|-h) usage ;;
    '') usage >&2; exit 2 ;;
    *) fail 2 "unknown command $command (shop.sh --help)" ;;
esac
