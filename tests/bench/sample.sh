# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# The part `sample` of the benchmark: what sampling of stacks costs a node, beside other ways of looking at its processes; what the
# sampler says that it costs; and what is left to a node that has no time to spare. Sourced by run.sh. That shares are right is tested
# by tests/scenarios/64_sample.sh: it is no matter of time.

# sample_node SET COLLECTOR: the node with the sample application in which bench_sample measures; replaces the shell that calls it.
sample_node() {
    exec env HOME="$scratch/home" ERL_CRASH_DUMP_BYTES=0 erl -noinput -sname "${node%@*}@localhost" -kernel logger_level error \
        -pa "$SHOP_EBIN" "$bench/ebin" -eval 'bench_sample:main(init:get_plain_arguments())' \
        -extra "$1" "$sample_pairs" "$sample_seconds" "$scratch/kprof" "$scratch" "$2" >"$scratch/sample.$1" 2>&1
}

# sample_set SET LOAD_OPTION...: measures it, with this load meanwhile. A node of very many processes keeps kprof from the begin to the end,
# as to take it out means to ask each process for each module.
sample_set() {
    local set=$1 sample_port load address=none port
    say "sample, $set: $sample_pairs pairs of stretches for each way"
    rm -f "$scratch/sample.db"*
    if [ "$set" = crowd ]; then
        start_collector sample
        address=127.0.0.1:$port
    fi
    (sample_node "$set" "$address") &
    shop_node=$!
    wait_until 1200 said_or_gone '^port ' "$scratch/sample.$set" $shop_node || true
    sample_port=$(field "$scratch/sample.$set" port)
    [ -n "$sample_port" ] || { cat "$scratch/sample.$set" >&2; die "the node to be sampled does not start"; }
    "$top/tests/sample/shop.sh" load --port "$sample_port" --seconds 3600 "${@:2}" >/dev/null 2>&1 &
    load=$!
    if [ "$set" = crowd ]; then
        "$scratch/kprof" attach "$node" --cookie-file "$scratch/cookie" --no-tiers --collector "$address" >"$scratch/sample.attach" 2>&1 &
        kprof_node=$!
    fi
    wait $shop_node || { tail -n 20 "$scratch/sample.$set" >&2; die "the node that is sampled failed"; }
    shop_node=''
    wait $load || true # its server is gone
    if [ "$set" = crowd ]; then
        stop "$kprof_node"
        stop "$collector"
        kprof_node='' collector=''
    fi
}

# sampled SET WAY FIELD: as bench_sample prints them, from 3 on: CPU, more, error, 6 busy, 7 rate, ratio, error, 10 requests in the same
# processor time, error, 12 work, error, 14 told, 15 looks, 16 held, 17 late, 18 comes, 19 goes.
sampled() { awk -v way="$2" -v at="$3" '$1 == "way" && $2 == way { print $at }' "$scratch/sample.$1"; }

cost_head() {
    printf '  %-42s %8s %14s %8s %9s %6s %9s%s\n' '' 'node CPU' 'more' 'it says' 'looks/s' 'held' 'requests' "$1"
}
# cost_row SET WAY TEXT
cost_row() {
    local late=''
    [ "$1" != crowd ] || late=$(printf ' %8.1f' "$(sampled "$1" "$2" 17)")
    printf '  %-42s %7.1f%% %6.2f +- %4.2f %8.2f %9.0f %5.0f%% %9.0f%s\n' "$3" "$(sampled "$1" "$2" 3)" "$(sampled "$1" "$2" 4)" \
        "$(sampled "$1" "$2" 5)" "$(sampled "$1" "$2" 14)" "$(sampled "$1" "$2" 15)" "$(sampled "$1" "$2" 16)" "$(sampled "$1" "$2" 7)" \
        "$late"
}
# reached VALUE OPERATOR LIMIT ERROR: whether that is so, or cannot be told as the limit is within twice the standard error.
reached() {
    if calc %d "(($1 - $3) ^ 2 > 4 * $4 ^ 2)" | grep -q 0; then
        echo "reached or not, within twice the standard error"
    else
        calc %s "($1 $2 $3) ? \"reached\" : \"NOT reached\""
    fi
}
# cost_wanted SET WHAT: 2 % of a processor at most by default.
cost_wanted() {
    local more error
    more=$(sampled "$1" top_100 4) error=$(sampled "$1" top_100 5)
    echo "  $2: kprof sample takes $more +- $error % of a processor; wanted: 2 at most, $(reached "$more" '<=' 2 "$error")"
}

rate_row() {
    printf '  %-42s %11.0f %6.3f +- %5.3f %6.3f +- %5.3f' "$3" "$(sampled "$1" "$2" 7)" "$(sampled "$1" "$2" 8)" \
        "$(sampled "$1" "$2" 9)" "$(sampled "$1" "$2" 10)" "$(sampled "$1" "$2" 11)"
    [ "$1" != overload ] || printf ' %6.3f +- %5.3f' "$(sampled "$1" "$2" 12)" "$(sampled "$1" "$2" 13)"
    printf ' %9.0f\n' "$(sampled "$1" "$2" 15)"
}
rate_wanted() {
    local ratio error
    ratio=$(sampled "$1" top_100 "$2") error=$(sampled "$1" top_100 $(($2 + 1)))
    echo "  $3: $ratio +- $error with kprof sample; wanted: 0.98, $(reached "$ratio" '>=' 0.98 "$error")"
}

# Ten nodes' looks, as many as their samplers make where nothing holds them back, and what they take: of the collector, with the profiles
# in the end, and of the database.
sample_collector() {
    local nodes=10 seconds=$((sample_pairs * sample_seconds)) feeder i tools=() before after bytes looks kept
    start_collector looks
    erlang -eval 'bench_looks:main(init:get_plain_arguments())' -extra "$port" $nodes >"$scratch/looks" 2>&1 &
    feeder=$!
    wait_until 600 said_or_gone "^node looked$nodes@" "$scratch/looks" $feeder || die "the nodes do not come: $(cat "$scratch/looks")"
    wait_until 600 all_looked_at $nodes || die "the nodes do not come: $(cat "$scratch/looks")"
    before=$(cpu_ticks "$collector")
    for ((i = 1; i <= nodes; i++)); do
        "$scratch/kprof" sample "looked$i@bench" --collector "127.0.0.1:$port" --db "$scratch/looks.db" --for 600s \
            >"$scratch/looks.$i" 2>&1 &
        tools+=($!)
    done
    sleep "$seconds"
    kill -INT "${tools[@]}"
    wait "${tools[@]}" || { tail -n 3 "$scratch"/looks.* >&2; die "kprof sample failed"; }
    wait $feeder || die "the nodes failed: $(tail -n 5 "$scratch/looks")"
    after=$(cpu_ticks "$collector")
    looks=$(field "$scratch/looks" "done")
    kept=$(query "$scratch/looks.db" "SELECT count(*) || ' ' || sum(looks) FROM profile_sampled")
    bytes=$(query "$scratch/looks.db" "SELECT sum(length(records)) FROM profile_second_rows")
    stop "$collector"
    collector=''
    [ "$kept" = "$nodes $looks" ] || check_failed "$nodes nodes sent $looks looks, and of the profiles kept are $kept"
    echo
    echo "The collector, while 100 processes each of $nodes nodes are looked at 99 times a second, which all find something new:"
    awk -v ticks=$((after - before)) -v hz="$(getconf CLK_TCK)" -v looks="$looks" -v bytes="$bytes" -v nodes=$nodes 'BEGIN {
        seconds = looks / nodes / 9900
        cost = ticks / hz / seconds * 100
        size = bytes / seconds / nodes * 60 / 1e6
        printf "  %.1f %% of a core, the profiles in the end included; wanted: 10 at most, %s\n", cost,
            cost <= 10 ? "reached" : "NOT reached"
        printf "  %.1f bytes a look, %.1f MB for a minute of a node; wanted: 15 at most, %s\n", bytes / looks, size,
            size <= 15 ? "reached" : "NOT reached"
    }'
}
all_looked_at() { [ "$(grep -c '^node ' "$scratch/looks")" = "$1" ]; }

bench_sample() {
    local node=kprof_sampled_$$@localhost release
    release=$(erl -noshell -eval 'io:put_chars(erlang:system_info(otp_release)), halt().')
    mkdir -p "$scratch/home"
    (umask 077; head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n' | tee "$scratch/cookie" >"$scratch/home/.erlang.cookie")
    chmod 400 "$scratch/home/.erlang.cookie" "$scratch/cookie"
    sample_set usual --clients "$clients" --think 10
    sample_set crowd --clients "$clients" --think 10
    sample_set full --clients "$clients"
    sample_set overload --clients "$clients"
    echo
    echo "A node that is looked at, by its own processor time: the sample application, $clients clients who think for 10 ms, and 1,000" \
        "processes that work for some us five times a second; OTP $release; % of one processor;" \
        "means of $sample_pairs stretches of work, each beside one of rest, and their standard errors"
    cost_head ''
    cost_row usual nobody 'nobody looks'
    cost_row usual rests 'kprof attach, and nothing is looked at'
    cost_row usual top_10 'kprof sample --top 10'
    cost_row usual top_100 'kprof sample'
    cost_row usual top_1000 'kprof sample --top 1000'
    cost_row usual top_100_dear 'kprof sample --budget 50%'
    cost_row usual items_list '100 busiest, all items, 99 Hz each'
    cost_row usual items_each 'the same, a question for each item'
    cost_row usual items_groups "flame_prof's way: an eleventh, each 9 ms"
    cost_row usual poll "etop's way: all processes, each second"
    cost_wanted usual 'usual node'
    echo "  to come takes $(sampled usual top_100 18) s of the node's processor time, and to go without a trace" \
        "$(sampled usual top_100 19) s, which are in no row"
    echo
    echo "The same with 100,000 processes more that sleep, and kprof in the node all the time;" \
        "late: ms that a process came late at most which wants to run each ms"
    cost_head '     late'
    cost_row crowd nobody 'nobody looks'
    cost_row crowd top_100 'kprof sample'
    cost_row crowd items_list '100 busiest, all items, 99 Hz each'
    cost_row crowd poll "etop's way: all processes, each second"
    cost_wanted crowd 'many processes'
    echo
    echo "The sample application, $clients clients without think time: requests a second; and in the same processor time of the node"
    printf '  %-42s %11s %15s %15s %9s\n' '' 'requests/s' 'of nobody' 'by CPU' 'looks/s'
    rate_row full nobody 'nobody looks'
    rate_row full top_100 'kprof sample'
    rate_wanted full 8 'requests a second'
    rate_wanted full 10 'requests in the same processor time'
    echo
    echo "The same beside 100 processes that are always busy; work: theirs in the same processor time"
    printf '  %-42s %11s %15s %15s %15s %9s\n' '' 'requests/s' 'of nobody' 'by CPU' 'work' 'looks/s'
    rate_row overload nobody 'nobody looks'
    rate_row overload top_100 'kprof sample'
    rate_row overload items_list '100 busiest, all items, 99 Hz each'
    rate_wanted overload 8 'requests a second'
    rate_wanted overload 12 'work'
    sample_collector
}
