#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The benchmark: how fast captures are taken in, and what tracing costs a node. Not part of the tests.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: run.sh [--quick] [--fresh] [--no-build] [--build-dir DIR] [--only PART]...

Measures side by side, in one run, and prints tables with ratios:
  capture   a capture of at least a million messages: split into frames, kprof replay, and OTP's dbg:trace_client
            with a handler that builds the same sums per tier; each pinned to one core
  threads   the same capture taken in by one thread, and by two (--threads)
  calls     what a call costs in the traced node: untraced, without a token, with one
  shop      the sample application's requests per second: untraced, traced and nothing sampled, 1 in 10, all
  page      the page on a large database: what its first view costs, also kprof report and diff, while a collector writes; what ten
            people who look cost the thread that takes traces in
  flame     a full trace: the traced request beside fprof, eprof, tprof, dbg and eflame's way; all others meanwhile
  native    every request traced: what the native tracer, the trace port, eprof, tprof, call_time counters, dbg, recon_trace's way and
            fprof leave of a node's rate; a recording of the native tracer's beside dbg:trace_client
  sample    sampling of stacks: the node's processor time and its rate with and without, beside other ways of looking at processes; on
            a node of 100,000 processes, and on one that is overloaded
  export    --export into a ClickHouse, beside clickhouse-client inserting the same rows; what it takes for what 50 nodes make

  --quick          about a minute: a smaller capture, fewer rounds; not to be quoted
  --fresh          make the capture and the large database again; they are kept in DIR/bench
  --no-build       take the programs in DIR as they are
  --build-dir DIR  default: build
  --only PART      only this part; may be given several times

Exit status: 0 measured and all checks passed, 1 a check failed (two ways to the same sums differ, a count is wrong)
or something broke, 2 wrong usage. A ratio that is worse than hoped for is told, and is no failure.
USAGE
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)
build=$top/build quick='' fresh='' no_build='' parts=''
while [ $# -gt 0 ]; do
    case $1 in
        --help|-h) usage; exit 0 ;;
        --quick) quick=yes ;;
        --fresh) fresh=yes ;;
        --no-build) no_build=yes ;;
        --build-dir) [ $# -ge 2 ] || { usage >&2; exit 2; }; build=$(realpath -m "$2"); shift ;;
        --only)
            case ${2:-} in capture|threads|calls|shop|page|flame|native|sample|export) parts="$parts $2" ;; *) usage >&2; exit 2 ;; esac
            shift ;;
        *) usage >&2; exit 2 ;;
    esac
    shift
done
[ -n "$parts" ] || parts='capture threads calls shop page flame native sample export'

# Rounds are interleaved: every way is measured once in each. A pair is a stretch of work beside one of rest (bench_sample.erl).
if [ -n "$quick" ]; then
    wanted=100000 thread_rounds=10 rounds=3 bursts=40 shop_rounds=1 shop_seconds=4 flame_rounds=3 flame_rates=1 flame_window=10
    days=40 views=5 people_rounds=1 people_seconds=5 sample_pairs=3 sample_seconds=1 native_rounds=1 export_rounds=1
    export_history=10 export_minutes=1
else
    wanted=1000000 thread_rounds=2 rounds=5 bursts=200 shop_rounds=5 shop_seconds=5 flame_rounds=9 flame_rates=3 flame_window=30
    days=730 views=20 people_rounds=3 people_seconds=10 sample_pairs=30 sample_seconds=1 native_rounds=5 export_rounds=5
    export_history=60 export_minutes=3
fi
clients=8

export LC_ALL=C SHOP_EBIN=$build/sample/ebin
# Schedulers that spin while they wait would take the CPU from the others, and count as used.
export ERL_FLAGS="+sbwt none +sbwtdcpu none +sbwtdio none"
bench=$build/bench
scratch=$(mktemp -d "${TMPDIR:-/tmp}/kprof-bench.XXXXXX")
priv=$scratch/priv # the native tracer's library
collector='' kprof_node='' shop_node='' serve='' feeder='' collectors='' # process ids

# shellcheck source-path=SCRIPTDIR
source "$here/lib.sh"
source "$here/export.sh"
source "$here/flame.sh"
source "$here/native.sh"
source "$here/page.sh"
source "$here/sample.sh"
source "$here/threads.sh"

# The tiers as shop_truth names them, for replay and for bench_trace_client.
tiers=(http=shop_http:handle_request/2 pool=shop_worker:work/2 storage=shop_storage:run/2 render=shop_render:page/2
       accounting=shop_accounting:book/1)

build_all() {
    if [ -z "$no_build" ]; then
        say "building"
        { cmake -S "$top" -B "$build" &&
            cmake --build "$build" --target kprof kprof-collector bench_database bench_threads fleet_collector shim; } \
            >"$scratch/build.log" 2>&1 || { tail -n 30 "$scratch/build.log" >&2; die "the build failed"; }
    fi
    if grep -q '^KPROF_SANITIZE:BOOL=ON\|^CMAKE_BUILD_TYPE:STRING=Debug' "$build/CMakeCache.txt"; then
        die "$build is built with sanitizers or for debugging: such numbers say nothing"
    fi
    # Copies, so that a build at the same time changes nothing.
    install "$build/kprof" "$build/kprof-collector" "$scratch/"
    cp -r "$build/shim/default/lib/kprof/ebin" "$scratch/shim"
    cp -r "$build/shim/default/lib/kprof/priv" "$priv"
    mkdir -p "$bench/ebin"
    "$top/tests/sample/shop.sh" build "$build/sample"
    erlc -Werror -o "$bench/ebin" "$here"/*.erl "$top/tests/scenarios/src/scenario_many.erl"
    cc -O2 -flto -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -I"$top/include" \
        "$here/bench_frames.c" -o "$bench/bench_frames"
}

erlang() { erl -noshell -pa "$bench/ebin" "$scratch/shim" "$@"; }

machine() {
    local cpu
    cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
    echo "kprof benchmark, $(date -u +%F), commit $(git -C "$top" describe --always --dirty 2>/dev/null ||
        echo unknown)${quick:+, quick: not to be quoted}"
    echo "machine: ${cpu:-$(uname -m)}, $(nproc) cores, load $(cut -d ' ' -f 1 /proc/loadavg) before; OTP $(
        erl -noshell -eval 'io:put_chars([erlang:system_info(otp_release), ", erts ", erlang:system_info(version)]), halt().'
    ), $(cc --version | head -n 1), Linux $(uname -r)"
}

# -- a capture taken in ----------------------------------------------------------------------------------------------------

# Leaves a capture of $wanted messages or more in $capture, as the shop traced by dbg writes it.
make_capture() {
    local requests=$((wanted / 11)) messages
    capture=$bench/capture-$wanted.cap
    if [ -z "$fresh" ] && [ -f "$capture" ] && [ -z "$(find "$top/tests/sample/src" -newer "$capture")" ]; then
        return
    fi
    for _ in 1 2 3; do
        say "making a capture: the shop traced by dbg, $requests requests"
        "$top/tests/sample/shop.sh" run --trace dbg --capture "$capture.new" --clients $clients --requests "$requests" \
            --http-cost 0 --pool-cost 0 --storage-cost 0 --render-cost 0 --accounting-cost 0 --accounting-wait-ms 0 \
            >"$scratch/shop.log" 2>&1 || { tail -n 20 "$scratch/shop.log" >&2; die "the shop made no capture"; }
        "$bench/bench_frames" "$capture.new" >"$scratch/frames"
        messages=$(field "$scratch/frames" frames)
        if [ "$messages" -ge "$wanted" ]; then
            mv "$capture.new" "$capture"
            return
        fi
        requests=$(((requests * wanted / messages) * 21 / 20))
    done
    die "no capture of $wanted messages, only of $messages"
}

replay() {
    local tier args=()
    for tier in "${tiers[@]}"; do args+=(--tier "$tier"); done
    rm -f "$scratch/replay.db"*
    TIMEFORMAT='cpu_s %U %S'
    { time $pin "$scratch/kprof" replay "$capture" --db "$scratch/replay.db" --entry http "${args[@]}" 2>"$scratch/replay.log"; } \
        2>"$scratch/replay.time" || { cat "$scratch/replay.log" >&2; die "kprof replay failed"; }
    awk '{ print ($2 + $3) * 1e6 }' "$scratch/replay.time" >>"$scratch/replay.cpu"
    awk '/ messages\/s/ { print $1 * 1e6 }' "$scratch/replay.log" >>"$scratch/replay.wall"
}

trace_client() {
    $pin erl +S 1:1 -noshell -pa "$bench/ebin" -eval 'bench_trace_client:main(init:get_plain_arguments())' \
        -extra "$capture" "${tiers[@]}" >"$scratch/client.log"
    awk '/^messages/ { print $4 * 1e3 }' "$scratch/client.log" >>"$scratch/client.cpu"
    awk '/^messages/ { print $6 * 1e3 }' "$scratch/client.log" >>"$scratch/client.wall"
}

split_frames() {
    $pin "$bench/bench_frames" "$capture" >"$scratch/frames"
    field "$scratch/frames" cpu_us >>"$scratch/frames.cpu"
    field "$scratch/frames" wall_us >>"$scratch/frames.wall"
}

# Calls to the unit, times to the nanosecond. Replay tells async calls' time apart; the handler does not know of requests.
check_sums() {
    local replayed frames
    frames=$(field "$scratch/frames" frames)
    replayed=$(awk '/ messages, / { print $1; exit }' "$scratch/replay.log")
    [ "$(field "$scratch/frames" dropped)" = 0 ] || check_failed "messages were dropped while the capture was made"
    [ "$frames" -ge "$wanted" ] || check_failed "the capture has only $frames messages"
    [ "$frames" = "$replayed" ] || check_failed "$frames frames, but replay counted $replayed messages"
    [ "$frames" = "$(field "$scratch/client.log" messages)" ] || check_failed "$frames frames, but dbg:trace_client saw another number"
    grep -q ', 0 incomplete, 0 expired' "$scratch/replay.log" || check_failed "replay found requests that are not complete"
    query "$scratch/replay.db" "SELECT 'tier', tier, sum(calls), CAST(round(sum(total_us + async_us) * 1000) AS INTEGER) FROM tier_stats
        WHERE identity = '_total' AND tier <> '_total' AND resolution_s = 10 GROUP BY tier ORDER BY tier" |
        tr '|' ' ' >"$scratch/replay.sums"
    grep '^tier' "$scratch/client.log" | sort >"$scratch/client.sums"
    if ! diff "$scratch/replay.sums" "$scratch/client.sums" >"$scratch/sums.diff"; then
        check_failed "calls and nanoseconds per tier differ (< replay, > dbg:trace_client)"
        cat "$scratch/sums.diff"
    fi
}

capture_row() {
    local cpu wall client name=$1
    cpu=$(smallest <"$scratch/$2.cpu")
    wall=$(smallest <"$scratch/$2.wall")
    client=$(smallest <"$scratch/client.wall")
    printf '  %-34s %14s %9.0f %9.1f x\n' "$name" "$(grouped "$(calc %f "$messages / $wall * 1e6")")" \
        "$(calc %f "$cpu * 1000 / $messages")" "$(calc %f "$client / $wall")"
}

bench_capture() {
    local round messages ratio pin='' core
    make_capture
    if command -v taskset >/dev/null; then
        core=$(taskset -pc $$ | sed 's/.*[:,-] *//')
        pin="taskset -c $core"
    fi
    for ((round = 1; round <= rounds; round++)); do
        say "capture, round $round of $rounds"
        split_frames
        replay
        trace_client
    done
    messages=$(field "$scratch/frames" frames)
    echo
    echo "A capture of $(grouped "$messages") messages, $(($(field "$scratch/frames" bytes) / 1000000)) MB, taken in${pin:+ on one core};" \
        "best of $rounds"
    printf '  %-34s %14s %9s %11s\n' '' 'messages/s' 'CPU ns' 'trace_client'
    capture_row 'frames split, nothing else' frames
    capture_row 'kprof replay' replay
    capture_row 'dbg:trace_client, same sums' client
    ratio=$(calc %.1f "$(smallest <"$scratch/client.wall") / $(smallest <"$scratch/replay.wall")")
    echo "  replay takes in $ratio times what dbg:trace_client does; wanted: 10 times, $(
        calc %s "($ratio >= 10 ? \"reached\" : \"NOT reached\")")"
    check_sums
}

# -- calls -----------------------------------------------------------------------------------------------------------------

cost() { awk -v name="$1" -v at="$2" '$1 == "cost" && $2 == name { print $at }' "$scratch/calls"; }

# call_row TEXT NAME [COMPARED]: nothing where it was not measured.
call_row() {
    [ -n "$(cost "$2" 3)" ] || return 0
    printf '  %-48s %9.1f %9.1f %9s\n' "$1" "$(cost "$2" 3)" "$(cost "$2" 4)" \
        "$([ -z "${3:-}" ] || calc '%.0f x' "$(cost "$2" 3) / $(cost "$3" 3)")"
}

bench_calls() {
    local port calls requests seen accounted flags
    start_collector calls
    say "calls"
    erlang -eval 'bench_calls:main(init:get_plain_arguments())' -extra "$port" "$bursts" >"$scratch/calls" 2>"$scratch/calls.err" ||
        { tail -n 20 "$scratch/calls.err" "$scratch/calls" >&2; die "the node of the calls failed"; }
    stop $collector
    collector=''
    read -r _ calls requests < <(grep '^traced' "$scratch/calls")
    flags=$(sed -n 's/^flags //p' "$scratch/calls")
    seen=$(query "$scratch/calls.db" "SELECT sum(calls) FROM tier_stats WHERE identity = '_total' AND tier = 'tiny' AND resolution_s = 10")
    accounted=$(query "$scratch/calls.db" "SELECT sum(requests_complete + requests_unsampled) FROM ledger WHERE resolution_s = 10")
    echo
    echo "What a call of a tiny function costs in the node (median of bursts; CPU: the whole node's)"
    printf '  %-48s %9s %9s %9s\n' '' 'ns' 'CPU ns' 'untraced'
    call_row 'untraced' call_untraced
    call_row 'untraced, again at the end' call_untraced_again call_untraced
    call_row 'traced, process without a token' call_no_token call_untraced
    call_row 'traced, with a token: call and return delivered' call_token call_untraced
    call_row 'traced, with a token, returns => none' call_none call_untraced
    if [ -n "$flags" ]; then
        call_row "with ${flags/ /, }, without a token" call_no_token_flags call_untraced
        call_row "with ${flags/ /, }, with a token" call_token_flags call_untraced
    else
        echo "  trace_gc, trace_scheduling: not on this release of OTP"
    fi
    call_row 'a list of 1000 made and returned: untraced' list_untraced
    call_row 'traced, with a token: the list is sent' list_token list_untraced
    call_row 'traced, with a token, returns => none' list_none list_untraced
    call_row 'spawn_monitor and its end: untraced' spawn_untraced
    call_row 'traced, process without a token' spawn_no_token spawn_untraced
    call_row 'traced, with a token: 2 messages' spawn_token spawn_untraced
    call_row 'scheduled out and in again: untraced' yield_untraced
    call_row 'traced, with a token' yield_token yield_untraced
    call_row 'with trace_scheduling: 2 messages' yield_token_flags yield_untraced
    call_row 'a collection of a small heap: untraced' gc_untraced
    call_row 'traced, with a token' gc_token gc_untraced
    call_row 'with trace_gc: 2 messages' gc_token_flags gc_untraced
    call_row 'set_token + clear_token, tracing off' pair_off
    call_row 'set_token + clear_token, not sampled' pair_sampled_out
    call_row 'set_token + clear_token, sampled: 2 messages' pair_sampled
    if grep '^status' "$scratch/calls" | grep -qv ' tracing$'; then
        echo "  the guard tripped, and the rows from there on say nothing: $(grep '^status' "$scratch/calls" | tr '\n' ' ')"
    else
        [ "$seen" = "$calls" ] || check_failed "$calls calls were made under a token, the collector counted $seen"
        [ "$accounted" = "$requests" ] ||
            check_failed "$requests requests were made, of which $accounted were counted or left out by the sampler; the ledger has
$(sqlite3 -readonly -line "$scratch/calls.db" "SELECT * FROM ledger WHERE resolution_s = 3600" | grep -v '= 0$')"
    fi
}

# -- the sample application ------------------------------------------------------------------------------------------------

# Starts kprof on the shop's node with one request in $1, and waits until it traces.
start_kprof() {
    sed "s/^ *{print_calls, *false}/{sample, {one_in, $1}}, &/" "$top/tests/sample/kprof.config" >"$scratch/kprof.config"
    grep -q one_in "$scratch/kprof.config" || die "tests/sample/kprof.config has no line for print_calls to put sampling before"
    # The log of the one before says that it traces, too: on a slow machine it is read before the shell in the background empties it, and
    # the load would begin untraced.
    rm -f "$scratch/kprof.log"
    KPROF_EBIN=$scratch/shim "$top/scripts/start_kprof_node.sh" --node "$node" --cookie-file "$scratch/cookie" \
        --config "$scratch/kprof.config" --collector "127.0.0.1:$port" --pid-file "$scratch/kprof.pid" >"$scratch/kprof.log" 2>&1 &
    kprof_node=$!
    wait_until 1200 said_or_gone '^tracing ' "$scratch/kprof.log" $kprof_node || true
    grep -qs '^tracing ' "$scratch/kprof.log" || { cat "$scratch/kprof.log" >&2; die "tracing does not start"; }
}

# Complete requests, messages, requests complete or not or left out by the sampler, ms at less than what was asked for, ms not traced,
# messages dropped, incomplete requests.
ledger() {
    query "$scratch/shop.db" "SELECT coalesce(sum(requests_complete), 0), coalesce(sum(messages), 0),
            coalesce(sum(requests_complete + requests_incomplete + requests_expired + requests_unsampled), 0), coalesce(sum(lowered_ms), 0),
            coalesce(sum(paused_ms), 0), coalesce(sum(dropped_messages), 0), coalesce(sum(requests_incomplete), 0)
        FROM ledger WHERE resolution_s = 10" | tr '|' ' '
}

# accounted NUMBER: the ledger tells of as many requests.
accounted() {
    local now
    read -r -a now < <(ledger)
    [ "${now[2]}" -ge "$1" ]
}

trips() { grep -c 'trace messages faster' "$scratch/shop.log" || true; }

# Runs the load, again when the guard tripped in it: on a machine that is busy otherwise it may.
load() {
    local before
    for _ in 1 2 3; do
        before=$(trips)
        one_load "$@"
        if [ "$(trips)" = "$before" ]; then
            cat "$scratch/load.row" >>"$scratch/shop.$1"
            return
        fi
        tripped=$((tripped + 1))
    done
    die "the guard trips again and again with $1: the machine is too busy for this"
}

# One run of the load: $1 its name, $2 the sampling, 0 for untraced. Leaves in load.row requests/s, the node's and the
# collector's CPU us a request, of the collector complete requests and messages a request, then requests made, how many of them the
# collector accounts for, and ms at less than what was asked for.
one_load() {
    local before after cpu_before cpu_after collector_before collector_after made
    [ "$2" = 0 ] || start_kprof "$2"
    read -r -a before < <(ledger)
    cpu_before=$(cpu_ticks "$beam") collector_before=$(cpu_ticks $collector)
    "$top/tests/sample/shop.sh" load --port "$shop_port" --clients $clients --seconds $shop_seconds --seed $((++seed)) --json \
        >"$scratch/load.json" || die "the load failed"
    cpu_after=$(cpu_ticks "$beam") collector_after=$(cpu_ticks $collector)
    read -r -a after < <(ledger)
    if [ "$2" != 0 ]; then
        made=$(sed 's/"types".*//' "$scratch/load.json" | grep -o '"requests":[0-9]*' | cut -d: -f 2)
        # Tracing goes on until each is accounted for: a request that ended has calls that did not, which would be cut.
        wait_until 300 accounted $((before[2] + made)) || true
        stop $kprof_node
        kprof_node=''
        wait_until 300 accounted $((before[2] + made)) || true # the last flush tells the rest
        read -r -a after < <(ledger)
    fi
    sed 's/"types".*//' "$scratch/load.json" | grep -o '"\(requests\|requests_per_s\)":[0-9.e+]*' | sort | cut -d: -f 2 | tr '\n' ' ' |
        awk -v cpu=$((cpu_after - cpu_before)) -v collector=$((collector_after - collector_before)) -v hz="$(getconf CLK_TCK)" \
            -v complete=$((after[0] - before[0])) -v messages=$((after[1] - before[1])) \
            -v accounted=$((after[2] - before[2])) -v lowered=$((after[3] - before[3])) -v paused=$((after[4] - before[4])) \
            -v dropped=$((after[5] - before[5])) -v incomplete=$((after[6] - before[6])) \
            '{ print $2, cpu / hz * 1e6 / $1, collector / hz * 1e6 / $1, complete / $1, messages / $1, $1, accounted, lowered, paused,
               dropped, incomplete }' \
            >"$scratch/load.row"
}

column() { awk -v at="$2" '{ print $at }' "$scratch/shop.$1" | median; }

shop_row() {
    printf '  %-34s %11.0f %9.2f %11.0f %11.0f %9.1f %8.1f %%\n' "$2" "$(column "$1" 1)" \
        "$(calc %f "$(column "$1" 1) / $untraced")" "$(column "$1" 2)" "$(column "$1" 3)" "$(column "$1" 5)" \
        "$(calc %f "$(column "$1" 4) * 100")"
}

# What the collector must have seen in each run, so that the row is what it says it is: every request was counted, or left out by the
# sampler, and while the guard let all through that was asked for, $2 to $3 of them were counted.
check_share() {
    local share made accounted lowered paused dropped incomplete
    while read -r _ _ _ share _ made accounted lowered paused dropped incomplete; do
        [ "$made" = "$accounted" ] ||
            check_failed "shop, $1: $made requests were made, of which $accounted were counted or left out by the sampler; the ledger has
$lowered ms lowered, $paused ms paused, $dropped messages dropped, $incomplete requests incomplete"
        calc %s "($share <= $3 && ($share >= $2 || $lowered > 0))" | grep -q 1 ||
            check_failed "shop, $1: the collector counted $share complete requests a request, want $2 to $3"
    done <"$scratch/shop.$1"
}

bench_shop() {
    local port shop_port node=kprof_bench_$$@localhost beam untraced round seed=0 tripped=0
    (umask 077; head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$scratch/cookie")
    start_collector shop
    "$top/tests/sample/shop.sh" node --name "$node" --cookie-file "$scratch/cookie" --port-file "$scratch/port" --truth false \
        >"$scratch/shop.log" 2>&1 &
    shop_node=$!
    wait_until 1200 said_or_gone . "$scratch/port" $shop_node || true
    [ -s "$scratch/port" ] || { cat "$scratch/shop.log" >&2; die "the shop does not start"; }
    shop_port=$(cat "$scratch/port")
    beam=$(pgrep -P $shop_node)
    say "shop, warming up"
    "$top/tests/sample/shop.sh" load --port "$shop_port" --clients $clients --seconds 2 >/dev/null
    for ((round = 1; round <= shop_rounds; round++)); do
        say "shop, round $round of $shop_rounds"
        load before 0
        load unsampled 1000000000
        load tenth 10
        load all 1
        load after 0
    done
    stop $shop_node
    shop_node=''
    stop $collector
    collector=''
    untraced=$(awk '{ print $1 }' "$scratch/shop.before" "$scratch/shop.after" | median)
    echo
    echo "The sample application, $clients clients without think time; node, collector and load share the cores; median of $shop_rounds"
    printf '  %-34s %11s %9s %11s %11s %9s %10s\n' '' 'requests/s' 'untraced' 'node CPU us' 'coll CPU us' 'messages' 'complete'
    shop_row before 'untraced, before'
    shop_row after 'untraced, after'
    shop_row unsampled 'traced, nothing sampled'
    shop_row tenth 'traced, 1 in 10'
    shop_row all 'traced, all asked for'
    echo "  CPU, messages and complete requests are per request made"
    [ $tripped = 0 ] || echo "  the guard tripped in $tripped runs, which were made again: the machine was busy"
    check_share unsampled 0 0.001
    check_share tenth 0.095 0.105
    check_share all 1 1
}

build_all
machine
for part in $parts; do "bench_$part"; done
[ -z "$failed" ]
