# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# The part `flame` of the benchmark: what a full trace costs the requests that are traced, beside other profilers, and what the
# node's other requests lose meanwhile. Sourced by run.sh.

# On OTP 27 where it is there: tprof is since then. The first words of a command that runs on it.
flame_otp() {
    if "$top/scripts/otp.sh" --no-download 27 true 2>/dev/null; then on_otp=("$top/scripts/otp.sh" --no-download 27)
    else on_otp=(env); fi
}

# flame_node LOG ARGUMENT...: a node with the sample application that does what bench_flame is told; replaces the shell that calls it.
flame_node() {
    local log=$1
    shift
    exec "${on_otp[@]}" env HOME="$scratch/home" ERL_CRASH_DUMP_BYTES=0 erl -noinput -sname "${node%@*}@localhost" \
        -kernel logger_level error -pa "$SHOP_EBIN" "$bench/ebin" -eval 'bench_flame:main(init:get_plain_arguments())' \
        -extra "$@" >"$log" 2>&1
}

bench_flame() {
    local node=kprof_flame_$$@localhost on_otp release
    flame_otp
    release=$("${on_otp[@]}" erl -noshell -eval 'io:put_chars(erlang:system_info(otp_release)), halt().')
    mkdir -p "$scratch/home"
    (umask 077; head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n' | tee "$scratch/cookie" >"$scratch/home/.erlang.cookie")
    chmod 400 "$scratch/home/.erlang.cookie"
    flame_slow
    flame_rate
}

# -- the traced request --

# slowed WAY FIELD: 3 µs a request, 4 times untraced, 5 and 6 the same of the round with the lowest and the highest.
slowed() { awk -v name="$1" -v at="$2" '$1 == "way" && $2 == name { print $at }' "$scratch/slow"; }
slow_row() {
    [ -z "$(slowed "$1" 3)" ] || printf '  %-58s %9.0f %9.1f x %7.1f to %5.1f\n' "$2" "$(slowed "$1" 3)" "$(slowed "$1" 4)" \
        "$(slowed "$1" 5)" "$(slowed "$1" 6)"
}

flame_slow() {
    local way
    say "flame, $flame_rounds rounds of the traced request"
    cp "$top/tests/sample/kprof.config" "$scratch/flame.config"
    sed 's/{print_calls, false}/{tracer, native}/' "$scratch/flame.config" >"$scratch/flame.config.native"
    (flame_node "$scratch/slow" slow "$flame_rounds" "$scratch/kprof" "$scratch/flame.config" "$scratch") ||
        { tail -n 20 "$scratch/slow" >&2; die "the node of the traced requests failed"; }
    echo
    echo "20 requests of the sample application, one at a time, under a profiler, OTP $release;" \
        "of each request the median of $flame_rounds rounds"
    printf '  %-58s %9s %11s %s\n' '' 'us' 'untraced' 'round by round'
    slow_row untraced 'untraced'
    slow_row untraced_again 'untraced, at the end of each round'
    slow_row kprof "kprof flame: the application's functions, tiers beside"
    slow_row kprof_native 'kprof flame by the native tracer'
    slow_row dbg_process 'dbg: its calls and returns, to a process'
    slow_row dbg_file 'dbg: the same, to a file'
    slow_row eflame_app "eflame's way: its functions, to a process"
    slow_row eflame "eflame's way: all functions, as eflame does"
    slow_row fprof 'fprof: all functions, to a file'
    slow_row eprof 'eprof: all functions, counts and times alone'
    slow_row tprof 'tprof: all functions, counts and times alone'
    [ "$(slowed tripped 3)" = 0 ] ||
        echo "  the guard tripped in $(slowed tripped 3) rounds of kprof flame, which were made again: the machine was busy"
    for way in fprof dbg_process dbg_file eflame; do
        echo "  kprof flame: $(calc '%.2f' "$(slowed kprof 3) / $(slowed "$way" 3)") of the time under $way; wanted: less than 1, $(
            calc %s "($(slowed kprof 3) < $(slowed "$way" 3) ? \"reached\" : \"NOT reached\")")"
    done
}

# -- the others --

# rates FROM UNTIL: of what was counted, with the command from then until then, ms: requests a second without it, and, as shares of that,
# the worst window of $flame_window s that contains it, its worst second, and the worst second without it.
rates() {
    awk -v from="$1" -v until="$2" -v window=$((flame_window * 1000)) '
        { t[NR] = $1; n[NR] = $2 }
        function rate(i, j) { return (n[j] - n[i]) / (t[j] - t[i]) * 1000 }
        function least(length_ms, inside,    i, j, r, min) {
            min = -1
            j = 1
            for (i = 1; i <= NR; i++) {
                while (j < NR && t[j] - t[i] < length_ms) j++
                if (t[j] - t[i] < length_ms) break
                # a second: whether it overlaps the command; a window: whether it contains it
                if (length_ms > 1000 ? t[i] > from || t[j] < until : (t[j] > from && t[i] < until) != inside) continue
                r = rate(i, j)
                if (min < 0 || r < min) min = r
            }
            return min
        }
        END {
            for (i = 1; i <= NR && t[i] < from; i++) before = i
            for (; i <= NR && t[i] <= until; i++);
            usual = (n[before] - n[1] + n[NR] - n[i]) / (t[before] - t[1] + t[NR] - t[i]) * 1000
            print usual, least(window, 1) / usual, least(1000, 1) / usual, least(1000, 0) / usual, (until - from) / 1000
        }' "$scratch/counts.whole"
}

# One round: load without pause, and the command in its middle.
one_rate() {
    local first from until load flame_port
    rm -f "$scratch/counts" "$scratch/rate.db"*
    (flame_node "$scratch/rate.log" rate "$scratch/counts") &
    shop_node=$!
    wait_until 1200 said_or_gone '^port ' "$scratch/rate.log" $shop_node || true
    flame_port=$(field "$scratch/rate.log" port)
    [ -n "$flame_port" ] || { cat "$scratch/rate.log" >&2; die "the shop does not start"; }
    "$top/tests/sample/shop.sh" load --port "$flame_port" --clients "$clients" --seconds 600 >/dev/null 2>&1 &
    load=$!
    sleep 3
    first=$(date +%s%3N)
    sleep "$flame_window"
    from=$(date +%s%3N)
    "$scratch/kprof" flame "$node" --config "$top/tests/sample/kprof.config" --cookie-file "$scratch/cookie" --db "$scratch/rate.db" \
        --requests 20 >"$scratch/rate.flame" 2>&1 || { cat "$scratch/rate.flame" >&2; die "kprof flame failed under load"; }
    until=$(date +%s%3N)
    sleep $((flame_window + 1))
    awk -v first="$first" '$1 > first && NF == 2' "$scratch/counts" >"$scratch/counts.whole"
    stop $shop_node
    shop_node=''
    wait $load || true # its server is gone
    echo "$(rates "$from" "$until") $(query "$scratch/rate.db" 'SELECT requests FROM profiles')" >>"$scratch/rates"
}

rate_of() { awk -v at="$1" '{ print $at }' "$scratch/rates" | median; }

flame_rate() {
    local round
    : >"$scratch/rates"
    for ((round = 1; round <= flame_rates; round++)); do
        say "flame, round $round of $flame_rates of all other requests"
        one_rate
    done
    echo
    echo "All other requests while kprof flame --requests 20 brings kprof in, traces, and takes it out;" \
        "$clients clients without think time, OTP $release; median of $flame_rates"
    printf '  %-58s %9.0f\n' 'requests a second without it' "$(rate_of 1)"
    printf '  %-58s %9.2f\n' "the worst $flame_window s that contain the command, of that" "$(rate_of 2)" \
        'the worst second of the command' "$(rate_of 3)" 'the worst second without it' "$(rate_of 4)" \
        'how long the command took, s' "$(rate_of 5)" 'how many of the 20 requests are in its profile' "$(rate_of 6)"
    echo "  wanted: 0.9 of the rate in any 30 s, $(calc %s "($(rate_of 2) >= 0.9 ? \"reached\" : \"NOT reached\")")," \
        "and half in the worst second, $(calc %s "($(rate_of 3) >= 0.5 ? \"reached\" : \"NOT reached\")")"
}
