# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# The part `native` of the benchmark: what tracing every request leaves of a node's rate, by the native tracer beside the trace port and
# other profilers, and how fast a recording of the native tracer's is taken in. Sourced by run.sh.

# A copy of the shim whose guard neither trips nor lowers the sampling: what the tracers cost is measured, not what it lets through.
native_unguarded() {
    local in=$top/shim/src/guard out=$scratch/unguarded.src
    cp -r "$scratch/shim" "$scratch/unguarded"
    mkdir -p "$out"
    sed 's/^-define(BUDGET, [0-9]*)\./-define(BUDGET, 1 bsl 50)./' "$in/kprof_sampling.erl" >"$out/kprof_sampling.erl"
    sed 's/^-define(REFUSALS, [0-9]*)\./-define(REFUSALS, 1 bsl 50)./' "$in/kprof_guard.erl" >"$out/kprof_guard.erl"
    [ "$(cat "$out"/*.erl | grep -c '1 bsl 50')" = 2 ] || die "the limits of the shim's guard are not where they were"
    erlc -o "$scratch/unguarded" "$out"/*.erl
}

native_node() {
    erl -noinput -kernel logger_level error -env ERL_CRASH_DUMP_BYTES 0 -pa "$SHOP_EBIN" "$bench/ebin" "$scratch/unguarded" \
        -eval 'bench_native:main(init:get_plain_arguments())' -extra "$@"
}

bench_native() {
    local release work
    release=$(erl -noshell -eval 'io:put_chars(erlang:system_info(otp_release)), halt().')
    [ -n "$(find "$priv" -name '*.so')" ] || die "there is no library of the native tracer in $priv"
    native_unguarded
    : >"$scratch/native"
    for work in 10 1000 shop; do native_rates $work; done
    native_tables
    native_replay
}

# -- what is left of the rate --

# native_rates WORK: its lines end up in the file native, and of the collectors' ledgers: ledger WORK WAY MESSAGES DROPPED COMPLETE SEEN,
# and of how many requests it cannot be known whose a call was.
native_rates() {
    local way ports=()
    say "native, $native_rounds rounds of $1"
    for way in port native marks; do
        start_collector "native-$1-$way"
        collectors="$collectors $collector"
        ports+=("$port")
        collector=''
    done
    native_node rates "$1" "$native_rounds" "${ports[@]}" "$priv" "$top/tests/sample/kprof.config" "$scratch" >>"$scratch/native" \
        2>"$scratch/native.err" || { cat "$scratch/native.err" >&2; die "the node failed that is traced by all of them"; }
    for way in $collectors; do stop "$way"; done
    collectors=''
    for way in port native marks; do
        echo "ledger $1 $way $(query "$scratch/native-$1-$way.db" "SELECT sum(messages), sum(dropped_messages), sum(requests_complete),
                sum(requests_complete + requests_incomplete + requests_expired), sum(incomplete_cause)
            FROM ledger WHERE resolution_s = 10" | tr '|' ' ')" >>"$scratch/native"
    done
}

# native_of KIND WORK NAME FIELD: of the line that begins with these words.
native_of() { awk -v k="$1" -v w="$2" -v n="$3" -v at="$4" '$1 == k && $2 == w && $3 == n { print $at }' "$scratch/native"; }

# native_row TEXT NAME: what it leaves of the rate of each work.
native_row() {
    local work
    [ -n "$(native_of way 10 "$2" 4)" ] || return 0
    printf '  %-46s' "$1"
    for work in 10 1000 shop; do
        if [ -n "$(native_of way $work "$2" 5)" ]; then
            printf ' %4.2f (%4.2f to %4.2f)' "$(native_of way $work "$2" 5)" "$(native_of way $work "$2" 6)" "$(native_of way $work "$2" 7)"
        else printf ' %19s' -; fi
    done
    printf ' %9.1f\n' "$(native_of way 10 "$2" 8)"
}

native_name() { case $1 in 10) echo '10 us' ;; 1000) echo '1 ms' ;; *) echo 'sample application' ;; esac; }

native_tables() {
    echo
    echo "What is left of the rate when every request is traced, OTP $release: requests for a second of the node's processor"
    echo "time, of those untraced before and after; median of $native_rounds (lowest to highest)"
    printf '  %-46s %19s %19s %19s %9s\n' '' '10 us, 14 calls' '1 ms, 14 calls' 'sample application' 'MB, 10 us'
    native_row 'untraced' untraced
    native_row 'kprof, native tracer' native
    native_row 'kprof, native tracer, begins and ends alone' marks
    native_row 'kprof, native tracer, one request in a hundred' hundredth
    native_row 'kprof, trace port' port
    native_row 'call_time counters, all processes' call_time
    native_row 'eprof: counts and times alone' eprof
    native_row 'tprof: counts and times alone' tprof
    native_row 'dbg, to a process' dbg
    native_row "recon_trace's way: each message printed" recon
    native_row 'fprof: all functions, to a file' fprof
    echo "  untraced: $(grouped "$(native_of way 10 untraced 4)"), $(grouped "$(native_of way 1000 untraced 4)") and $(
        grouped "$(native_of way shop untraced 4)") requests a second. MB: by how much the node's memory grew;" \
        "the native tracer keeps what it had in the first round"
    echo "  native tracer, 10 us: $(native_of way 10 native 5); wanted: 0.60, $(
        calc %s "($(native_of way 10 native 5) >= 0.6 ? \"reached\" : \"NOT reached\")")"
    native_calls
    native_ledger
}

# native_cost TEXT NAME: of a call and its return, also as times of what call_time counters take.
native_cost() {
    [ -n "$(native_of call 10 "$2" 4)" ] || return 0
    printf '  %-46s %9.0f %9.2f\n' "$1" "$(native_of call 10 "$2" 4)" \
        "$(calc %f "$(native_of call 10 "$2" 4) / $(native_of call 10 call_time 4)")"
}

native_calls() {
    echo
    echo "A call and its return in the requests of 10 us, of the node's processor time; median of $native_rounds"
    printf '  %-46s %9s %9s\n' '' ns 'call_time'
    native_cost 'kprof, native tracer, with a token' native
    native_cost 'kprof, trace port, with begins and ends' port
    native_cost 'dbg, to a process' dbg
    native_cost 'call_time counters' call_time
    native_cost 'eprof' eprof
    native_cost 'tprof' tprof
    printf '  %-46s %9.0f\n' 'begin and end of a request, native tracer' "$(native_of request 10 native 4)"
}

# Every call under the native tracer and the port, as their collectors saw them.
native_ledger() {
    local work way ledger lost made dropped=()
    echo
    echo "What came of the requests, all rounds together"
    printf '  %-46s %12s %12s %9s %9s %9s\n' '' messages dropped '' requests complete
    for work in 10 1000 shop; do
        for way in native port; do
            read -r -a ledger < <(native_of ledger $work $way 0 | cut -d ' ' -f 4-)
            made=$(native_of made $work $way 4)
            dropped+=("${ledger[1]}")
            lost=$(calc %f "100 * ${ledger[1]} / (${ledger[0]} + ${ledger[1]})")
            printf '  %-46s %12s %12s %7.1f %% %9s %7.1f %%\n' \
                "$(native_name $work), $([ $way = native ] && echo native tracer || echo trace port)" "$(grouped "${ledger[0]}")" \
                "$(grouped "${ledger[1]}")" "$lost" "$(grouped "$made")" "$(calc %f "100 * ${ledger[2]} / $made")"
            [ "${ledger[3]}" -le "$made" ] || check_failed "native, $work, $way: $made requests were made, the collector has ${ledger[3]}"
            # of some it cannot be known whose a call was
            [ "${ledger[1]}" -gt 0 ] || [ $((ledger[2] + ledger[4])) = "$made" ] ||
                check_failed "native, $work, $way: nothing was dropped, but of $made requests ${ledger[2]} are complete; the ledger has
$(sqlite3 -readonly -line "$scratch/native-$work-$way.db" "SELECT * FROM ledger WHERE resolution_s = 3600" | grep -v '= 0$')"
        done
    done
    if [ "${dropped[0]}" = 0 ]; then echo "  10 us: the port dropped ${dropped[1]} messages, the native tracer none"
    else echo "  10 us: the port dropped $(calc %.1f "${dropped[1]} / ${dropped[0]}") times as many messages as the native tracer"; fi
}

# -- a recording --

# The same requests of the sample application, whose own work takes nothing: traced by the native tracer and recorded by a collector; and
# traced by dbg into a file, which dbg:trace_client reads.
native_record() {
    local requests=$((wanted / 11))
    native_recording=$bench/native-$wanted-otp$release.cap native_capture=$bench/native-dbg-$wanted-otp$release.cap
    if [ -z "$fresh" ] && [ -f "$native_recording" ] && [ -f "$native_capture" ] &&
        [ -z "$(find "$top/tests/sample/src" "$top/shim" "$top/collector/ingest" "$here/bench_native.erl" -type f \
            -newer "$native_capture")" ]; then
        return
    fi
    say "native, a recording and a capture of $requests requests"
    mkdir "$scratch/recorded"
    start_collector recorded "" --record "$scratch/recorded"
    native_node record native $requests "$port" "$priv" "$top/tests/sample/kprof.config" "" >"$scratch/record.log" 2>&1 ||
        { tail -n 20 "$scratch/record.log" >&2; die "no recording was made"; }
    stop "$collector"
    collector=''
    [ "$(query "$scratch/recorded.db" "SELECT sum(dropped_messages) FROM ledger WHERE resolution_s = 10")" = 0 ] ||
        check_failed "messages were dropped while the recording was made"
    native_node record dbg $requests 0 "$priv" "$top/tests/sample/kprof.config" "$native_capture.new" >"$scratch/record.log" 2>&1 ||
        { tail -n 20 "$scratch/record.log" >&2; die "no capture was made"; }
    mv "$scratch/recorded"/*.cap "$native_recording"
    mv "$native_capture.new" "$native_capture"
}

native_replay() {
    local round messages ratio requests pin='' core native_recording native_capture capture name
    native_record
    if command -v taskset >/dev/null; then
        core=$(taskset -pc $$ | sed 's/.*[:,-] *//')
        pin="taskset -c $core"
    fi
    for name in replay client; do rm -f "$scratch/$name.cpu" "$scratch/$name.wall"; done
    for ((round = 1; round <= rounds; round++)); do
        say "native, replay, round $round of $rounds"
        capture=$native_recording
        replay
        capture=$native_capture
        trace_client
    done
    messages=$(awk '/ messages, / { print $1; exit }' "$scratch/replay.log")
    requests=$((wanted / 11))
    echo
    echo "$(grouped $requests) requests of the sample application taken in${pin:+ on one core}, OTP $release; best of $rounds"
    printf '  %-34s %14s %14s %9s %9s\n' '' messages 'messages/s' 'CPU ns' MB
    native_taken 'kprof replay, native recording' replay "$messages" "$native_recording"
    native_taken 'dbg:trace_client, same sums' client "$(field "$scratch/client.log" messages)" "$native_capture"
    ratio=$(calc %.1f "$(smallest <"$scratch/client.wall") / $(smallest <"$scratch/replay.wall")")
    echo "  replay takes in $ratio times as many requests a second as dbg:trace_client; wanted: 20 times, $(
        calc %s "($ratio >= 20 ? \"reached\" : \"NOT reached\")"); by processor time $(
        calc %.1f "$(smallest <"$scratch/client.cpu") / $(smallest <"$scratch/replay.cpu")")"
    native_check $requests
}

# native_taken TEXT NAME MESSAGES FILE
native_taken() {
    printf '  %-34s %14s %14s %9.0f %9.1f\n' "$1" "$(grouped "$3")" "$(grouped "$(calc %f "$3 / $(smallest <"$scratch/$2.wall") * 1e6")")" \
        "$(calc %f "$(smallest <"$scratch/$2.cpu") * 1000 / $3")" "$(calc %f "$(stat -c %s "$4") / 1e6")"
}

# Both have the same calls, in times of their own: the requests were made twice. Where it cannot be known whose a call was, the request
# counts nowhere in the replay, which tells how many these are.
native_check() {
    local counts="SELECT 'tier', tier, sum(calls) FROM tier_stats WHERE identity = '_total' AND tier <> '_total' AND resolution_s = 10
        GROUP BY tier ORDER BY tier" complete unknown
    read -r complete unknown < <(query "$scratch/replay.db" "SELECT sum(requests_complete), sum(incomplete_cause) FROM ledger
        WHERE resolution_s = 10" | tr '|' ' ')
    [ $((complete + unknown)) = "$1" ] || check_failed "of the $1 requests that were recorded $complete are complete"
    [ $((unknown * 1000)) -le "$1" ] || check_failed "of $unknown requests of $1 it is not known whose a call was"
    [ "$unknown" = 0 ] || { echo "  of $unknown requests it cannot be known whose a call was"; return; }
    query "$scratch/replay.db" "$counts" | tr '|' ' ' >"$scratch/replay.sums"
    awk '/^tier/ { print $1, $2, $3 }' "$scratch/client.log" | sort >"$scratch/client.sums"
    if ! diff "$scratch/replay.sums" "$scratch/client.sums" >"$scratch/sums.diff"; then
        check_failed "calls per tier differ (< replay, > dbg:trace_client)"
        cat "$scratch/sums.diff"
    fi
}
