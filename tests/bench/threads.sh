# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# The part `threads` of the benchmark: what --threads brings. Sourced by run.sh, whose variables it uses.

# threads_take_in THREADS: two nodes that send the capture, again and again.
threads_take_in() {
    "$build/tests/bench_threads" "$capture" "$1" 2 "$thread_rounds" "${tiers[@]}" >"$scratch/threads.$1" || die "bench_threads failed"
    threads_note "$1" "$scratch/threads.$1"
}

# threads_note NAME FILE...: messages a second, of all together, and CPU ns for a message.
threads_note() {
    cat "${@:2}" | awk '{ rate += $2 / $6 * 1e6; n += $2; cpu += $8 } END { print rate, cpu * 1e3 / n }' >"$scratch/threads.row"
    cut -d ' ' -f 1 "$scratch/threads.row" >>"$scratch/threads.$1.rate"
    cut -d ' ' -f 2 "$scratch/threads.row" >>"$scratch/threads.$1.cpu"
}

threads_row() {
    printf '  %-34s %14s %9.2f %9.0f\n' "$1" "$(grouped "$(median <"$scratch/threads.$2.rate")")" \
        "$(calc %f "$(median <"$scratch/threads.$2.rate") / $(median <"$scratch/threads.1.rate")")" "$(median <"$scratch/threads.$2.cpu")"
}

bench_threads() {
    local round ratio most best=() times=$((4 * rounds))
    make_capture
    for ((round = 1; round <= times; round++)); do
        say "threads, round $round of $times"
        threads_take_in 1
        threads_take_in 2
        # what the machine itself gives to two that have nothing to do with each other
        "$build/tests/bench_threads" "$capture" 1 1 "$thread_rounds" "${tiers[@]}" >"$scratch/threads.other" &
        "$build/tests/bench_threads" "$capture" 1 1 "$thread_rounds" "${tiers[@]}" >"$scratch/threads.apart" || die "bench_threads failed"
        wait $! || die "bench_threads failed"
        threads_note apart "$scratch/threads.other" "$scratch/threads.apart"
    done
    ratio=$(calc %.2f "$(median <"$scratch/threads.2.rate") / $(median <"$scratch/threads.1.rate")")
    echo
    echo "The capture, taken in as the streams of two nodes, from memory, with a flush five times a second; median of $times"
    printf '  %-34s %14s %9s %9s\n' '' 'messages/s' 'one' 'CPU ns'
    threads_row 'one thread' 1
    threads_row 'two threads (--threads 2)' 2
    threads_row 'two processes, nothing shared' apart
    echo "  two threads take in $ratio times what one does; wanted: 1.8 times, $(calc %s "($ratio >= 1.8 ? \"reached\" : \"NOT reached\")")"
    # where others use the processors, the best rounds tell more
    for most in 1 2 apart; do best+=("$(sort -g "$scratch/threads.$most.rate" | tail -n 1)"); done
    echo "  in the best rounds: $(calc %.2f "${best[1]} / ${best[0]}") times; two processes: $(calc %.2f "${best[2]} / ${best[0]}")"
    [ "$(cut -d ' ' -f 1-4 "$scratch/threads.1")" = "$(cut -d ' ' -f 1-4 "$scratch/threads.2")" ] ||
        check_failed "one thread counted $(cat "$scratch/threads.1"), two $(cat "$scratch/threads.2")"
}
