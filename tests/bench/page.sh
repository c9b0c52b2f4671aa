# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# The page on a large database: what its questions cost the server while a collector writes each second, and what ten people who ask
# without a pause cost the thread that takes traces in. Sourced by run.sh.

creation=0
# feed NODES SECONDS REQUESTS [TIMES]: simulated nodes, each with so many requests in 50 ms, so often. Sets feeder. A time has 90 s at most.
feed() {
    local from=$((creation + 1))
    creation=$((creation + ${4:-1}))
    erl -noshell -pa "$bench/ebin" "$scratch/shim" -eval "
        [scenario_many:run($port, $1, {$(($2 * 20)), $3}, C) || C <- lists:seq($from, $creation)], halt()." >"$scratch/feed.log" 2>&1 &
    feeder=$!
    fed=$((fed + $1 * $2 * 20 * $3))
}
written() { query "$large" "SELECT sum(requests_complete) FROM ledger WHERE resolution_s = 3600 AND node LIKE 'sim%'"; }
fed_all() { [ "$(written)" = "$fed" ]; }

# What the page asks at first, at once as browsers do: view PAGE SECONDS
view() {
    local what="from=$((until_s - $2))&until=$until_s" api=$1/api/v1
    curl -sfZ --compressed "$api/table?$what" -o /dev/null "$api/series?$what&points=240" -o /dev/null \
        "$api/slow?$what&most=6" -o /dev/null "$api/profiles?most=6" -o /dev/null 2>/dev/null
}

# flushes: the times at which something was written, as long as it runs.
flushes() {
    while sleep 0.1; do stat -c %.Y "$large-wal"; done 2>/dev/null
}
# The longest time between two flushes, s, of these but for the first two: those may be late as the file is opened.
longest_gap() { uniq "$1" | awk 'NR > 3 && $1 - before > most { most = $1 - before } { before = $1 } END { printf "%.1f", most }'; }

# view_row TEXT SECONDS WANTED
view_row() {
    local before after round cpu began
    : >"$scratch/view.wall"
    view "$serve_page" "$2"
    before=$(cpu_ticks "$serve")
    for ((round = 0; round < views; round++)); do
        began=$(date +%s%N)
        view "$serve_page" "$2" || check_failed "a view of $1 is not answered"
        echo $((($(date +%s%N) - began) / 1000)) >>"$scratch/view.wall"
    done
    after=$(cpu_ticks "$serve")
    cpu=$(calc %.1f "($after - $before) * 1000 / $(getconf CLK_TCK) / $views")
    printf '  %-34s %11s %11.1f %11s %s\n' "$1" "$cpu" "$(calc %f "$(median <"$scratch/view.wall") / 1000")" "$3" \
        "$(calc %s "($cpu <= $3 ? \"\" : \"NOT reached\")")"
}

# at SECONDS: the time so long before the database's end
at() { date -u -d "@$((until_s - $1))" +%FT%TZ; }

# command_row TEXT WANTED COMMAND...
command_row() {
    local TIMEFORMAT='%R %U %S' wall user system
    { time "${@:3}" >"$scratch/command.out" 2>&1; } 2>"$scratch/command.time" || check_failed "$1: $(tail -n 3 "$scratch/command.out")"
    read -r wall user system <"$scratch/command.time"
    printf '  %-34s %11.1f %11.1f %11s %s\n' "$1" "$(calc %f "($user + $system) * 1000")" "$(calc %f "$wall * 1000")" "$2" \
        "$(calc %s "(($user + $system) * 1000 <= $2 ? \"\" : \"NOT reached\")")"
}

page_of() { sed -n 's/.*the page .*\(http:[^ ]*\)\/.*/\1/p' "$1" | head -n 1; }

bench_views() {
    local flusher day=86400
    "$scratch/kprof" serve --db "$large" --http 0 2>"$scratch/serve.log" &
    serve=$!
    wait_until 600 said_or_gone 'the page of' "$scratch/serve.log" "$serve" || true
    serve_page=$(page_of "$scratch/serve.log")
    [ -n "$serve_page" ] || { cat "$scratch/serve.log" >&2; die "kprof serve does not start"; }
    feed 2 60 20 60
    wait_until 100 fed_some || die "the collector writes nothing: $(cat "$scratch/feed.log")"
    flushes >"$scratch/flushes" &
    flusher=$!
    echo
    echo "The page on a database of $(($(stat -c %s "$large") / 1000000)) MB, while a collector writes each second; $views views each"
    printf '  %-34s %11s %11s %11s\n' 'the first view of' 'CPU ms' 'ms' 'wanted'
    view_row '30 minutes' 1800 150
    view_row '6 hours' $((day / 4)) 1000
    view_row '24 hours' $day 1000
    view_row '7 days' $((7 * day)) 1000
    view_row '30 days' $((30 * day)) 1000
    command_row 'kprof report, 30 minutes' 1000 "$scratch/kprof" report --db "$large" --since "$(at 1800)" --until "$(at 0)"
    command_row 'kprof report, 30 days' 1000 "$scratch/kprof" report --db "$large" --since "$(at $((30 * day)))" --until "$(at 0)"
    command_row 'kprof diff, 15 days and 15 days' 1000 "$scratch/kprof" diff --db "$large" \
        --before "$(at $((30 * day)))..$(at $((15 * day)))" --after "$(at $((15 * day)))..$(at 0)"
    kill "$flusher"
    wait "$flusher" 2>/dev/null || true
    stop "$serve"
    serve=''
    gone "$feeder" && die "the simulated nodes failed: $(cat "$scratch/feed.log")"
    stop "$feeder"
    feeder=''
    echo "  meanwhile at most $(longest_gap "$scratch/flushes") s lay between two flushes; wanted: 1 s, and what the disk takes"
}
fed_some() { [ "$(query "$large" "SELECT count(*) FROM node_names WHERE name LIKE 'sim%'")" != 0 ]; }

# -- ten people ------------------------------------------------------------------------------------------------------------

intake_ns() { cut -d ' ' -f 1 "/proc/$collector/task/$collector/schedstat"; }

# intake NAME: simulated nodes send the same each time. Appends to $scratch/intake.NAME the seconds that it took, and those that the thread
# which takes traces in was busy.
intake() {
    local before began
    before=$(intake_ns) began=$(date +%s%N)
    feed 8 "$people_seconds" 150
    wait "$feeder" || die "the simulated nodes failed: $(cat "$scratch/feed.log")"
    feeder=''
    calc '%f %f\n' "($(date +%s%N) - $began) / 1e9, ($(intake_ns) - $before) / 1e9" >>"$scratch/intake.$1"
}
intake_column() { awk -v at="$2" '{ print $at }' "$scratch/intake.$1" | median; }
intake_row() {
    printf '  %-34s %11.0f %11.2f %11.1f %%\n' "$2" "$(calc %f "$requests / $(intake_column "$1" 1)")" \
        "$(calc %f "$(intake_column "$1" 2) / $requests * 1e6")" "$(calc %f "$(intake_column "$1" 2) / $(intake_column "$1" 1) * 100")"
}

# Looks over and over until the file is gone; tells how often.
looker() {
    local looks=0
    while [ -e "$scratch/looking" ]; do view "$people_page" 1800 && looks=$((looks + 1)); done
    echo "$looks" >>"$scratch/looks"
}

bench_people() {
    local round i lookers began seconds=0 requests loss
    people_page=$(page_of "$scratch/page.log")
    sleep 5 # what was sent before is written
    fed=$(written)
    : >"$scratch/looks"
    for ((round = 1; round <= people_rounds; round++)); do
        say "ten people, round $round of $people_rounds"
        intake alone
        touch "$scratch/looking"
        lookers=() began=$SECONDS
        for ((i = 0; i < 10; i++)); do
            looker &
            lookers+=($!)
        done
        intake together
        rm "$scratch/looking"
        wait "${lookers[@]}"
        seconds=$((seconds + SECONDS - began))
    done
    wait_until 300 fed_all || check_failed "$fed requests were sent, which are not all in the database: $(
        query "$large" "SELECT sum(requests_complete), sum(requests_incomplete), sum(dropped_messages) FROM ledger
            WHERE resolution_s = 3600 AND node LIKE 'sim%'")"
    requests=$((8 * people_seconds * 20 * 150))
    loss=$(calc %.1f "($(intake_column together 2) - $(intake_column alone 2)) / $(intake_column together 1) * 100")
    echo
    echo "The thread that takes traces in: eight simulated nodes, ten people who ask for 30 minutes over and over; median of $people_rounds"
    printf '  %-34s %11s %11s %13s\n' '' 'requests/s' 'CPU us each' 'busy'
    intake_row alone 'alone'
    intake_row together 'with ten people'
    echo "  ten people take $loss % of its time, with $(calc %.0f "$(awk '{ n += $1 } END { print n }' "$scratch/looks") / $seconds"
        ) views a second; wanted: less than 5, $(calc %s "($loss < 5 ? \"reached\" : \"NOT reached\")")"
    echo "  every request is complete in the database"
}

# Leaves a copy of a large database in $large, and the end of its time in $until_s. It is kept for a day: then old rows would go as it is
# opened.
make_large() {
    local made=$bench/large-$days.db
    if [ -n "$fresh" ] || [ -z "$(find "$made" -mmin -1440 2>/dev/null)" ]; then
        say "making a large database, of $days days"
        rm -f "$made"* "$made.new"*
        "$build/tests/bench_database" "$made.new" "$days" || die "no database"
        mv "$made.new" "$made"
        rm -f "$made.new"*
    fi
    rm -f "$large"*
    cp "$made" "$large"
    until_s=$(query "$large" "SELECT max(bucket_start) + 10 FROM ledger_rows WHERE resolution_s = 10")
}

bench_page() {
    local fed=0 large=$bench/page.db until_s serve_page people_page
    make_large
    start_collector page "$large" --http 0
    bench_views
    bench_people
    stop "$collector"
    collector=''
    rm -f "$large"*
}
