#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: on a real terminal kprof attach shows one table that fits it, wide, narrow, and resized under way; the messages stand
# above it; Ctrl-C ends it, and leaves nothing in the node and the terminal as it was. Without a terminal there is no table and no colour.
# kprof flame shows how far it is in one line, and Ctrl-C keeps what there is.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

command -v tmux >/dev/null || { echo "skipped: there is no tmux"; exit 77; }

chmod 400 "$scratch/cookie"
name=term_$$
node=$name@localhost
export LC_ALL=C.UTF-8
terminals=0
t() { tmux -S "$scratch/tmux$terminals.sock" -f /dev/null "$@"; }
screen() { t capture-pane -p; }
# shows PATTERN: a line of the terminal matches
shows() { screen | grep -Eq -- "$1" || { screen >"$scratch/screen.log"; return 1; }; }
type_line() { t send-keys -l "$1"; t send-keys Enter; }
lines() { screen | grep -Ec -- "$1" || true; }
widest() { screen | wc -L; }
# shell_in WIDTH HEIGHT: a new terminal with a shell that waits
echo "PS1='ready> '" >"$scratch/bashrc"
shell_in() {
  terminals=$((terminals + 1))
  env -u NO_COLOR tmux -S "$scratch/tmux$terminals.sock" -f /dev/null new-session -d -x "$1" -y "$2" -e "HOME=$scratch/home" \
    -e "kprof=$kprof" \
    "exec bash --noprofile --rcfile $scratch/bashrc"
  groups+=("$(t display-message -p '#{pid}')")
  wait_for 10 "a shell in the terminal" shell_waits
}
shell_waits() { shows '^ready> *$'; }
# fresh_line LINE: types it once the screen is empty, so that nothing of before is taken for what it shows.
empty() { [ "$(screen | grep -c .)" -eq 1 ] && shell_waits; }
fresh_line() {
  type_line clear
  wait_for 10 "an empty screen" empty
  type_line "$1"
}

# untouched WHAT: nothing is in the node that was not there before. The load's own connections must have gone.
end_load() { kill -KILL -- "-$load_pid"; }
untouched_now() { [ "$( (trap - EXIT; target_eval "$node" 'scenario_left:differences("before").') 2>/dev/null)" = "[]" ]; }
untouched() { wait_for 20 "nothing is left in the node $1" untouched_now; ok "nothing is left in the node $1"; }

start_collector
start_shop "$name"
is "$(target_eval "$node" 'scenario_left:prepare(), scenario_left:snapshot("before").')" ok "the node before"
attach="\$kprof attach $node --collector 127.0.0.1:$collector_port --tier http=shop_http:handle_request/2 --tier pool=shop_worker:work/2 \
--identity shop_http:handle_request/2:1"

# -- 80 columns, 24 lines ----------------------------------------------------------------------------------------------------------
shell_in 80 24
type_line "stty -a >$scratch/stty.before; clear; echo above; $attach"
wait_for 30 "a table without requests" shows '^ no request yet: without --entry the application must mark them$'
is "$(lines '^tracing '"$node")" 1 "the message stands above it"
start_load --seconds 600 --clients 2 --think 20
wait_for 20 "rows" shows '^ read  .* µs .*%$'
sleep 3
# Each second it is written anew: what is seen in the middle of that is seen again.
has_lines() { [ "$(grep -Ec -- "$2" "$scratch/table")" -eq "$1" ]; }
whole() {
  screen >"$scratch/table"
  has_lines 1 '^ identity +req/s +mean +p99 +errors +lost +requests +failed$' && has_lines 1 '^ _total ' &&
    has_lines 6 '^ (search|order|update|create|read|delete) .* %$' && has_lines 1 "^ $node: tracing$" &&
    has_lines 1 '^ lost: requests incomplete 0, expired 0; messages dropped 0, unreadable 0$' && has_lines 1 '^above$'
}
wait_for 10 "one table, with all its columns, one sum, each identity once, the node's state, what was lost, below what stood there" whole
ok "one table, with all that belongs to it"
holds "$(widest)" -lt 80 "no line reaches the last column"
t capture-pane -p -e >"$scratch/coloured"
has "$scratch/coloured" $'\e\\[31m' "errors are red"
over() { total=$(screen | awk '$1 == "_total" { print $(NF - 2) }'); [ "${total:-0}" -gt "$1" ]; }
wait_for 10 "requests" over 0
wait_for 10 "the numbers go on" over "$total"
ok "the numbers go on"

# -- resized -----------------------------------------------------------------------------------------------------------------------
# settled WIDTH PATTERN COUNT: within seconds there is one table, and nothing of another
settled() { [ "$(lines '^ identity ')" = "$3" ] && [ "$(lines '^ _total( |$)')" = 1 ] && [ "$(widest)" -lt "$1" ] && shows "$2"; }
t resize-window -x 44 -y 24
wait_for 10 "narrow: the table fits" settled 44 '^ identity +req/s +mean( +p99)?$' 1
ok "narrow"
is "$(t capture-pane -p -J -S - | grep -Ec '^above *$|^tracing ')" 2 "what stood above it is there, at most scrolled away"
t resize-window -x 44 -y 8
wait_for 10 "low: the table fits" settled 44 '^ … and [0-9]+ more$' 1
ok "low"
holds "$(screen | grep -c .)" -le 8 "not more lines than there are"
scrolled() { t capture-pane -p -J -S - | grep -c '^ lost: '; }
before=0
for _ in {1..5}; do now=$(scrolled) before=$((now > before ? now : before)); done
sleep 3
holds "$(scrolled)" -le "$before" "nor goes the table into the scrollback each second"
t resize-window -x 12 -y 5
wait_for 10 "tiny: the table fits" settled 12 '^ _total' 0
ok "tiny"
t resize-window -x 130 -y 40
wait_for 10 "wide: the table fits" settled 130 '^ identity +req/s +mean +p99 +errors +lost +requests +failed$' 1
ok "wide again"
sleep 2
one_table() { [ "$(lines '^ identity ')|$(lines '^ _total ')|$(lines 'lost: ')" = "1|1|1" ]; } # while none is being written
wait_for 10 "and stays one table" one_table
ok "and stays one table"

# -- Ctrl-C ------------------------------------------------------------------------------------------------------------------------
t send-keys C-c
wait_for 20 "the shell is back" shell_waits
is "$(lines "^kprof is out of $node\$")" 1 "Ctrl-C ends it, and it says so in a line of its own"
is "$(lines '^ _total ')" 1 "the last table stays"
type_line "echo status \$?; stty -a >$scratch/stty.after"
wait_for 10 "its status" shows '^status 0$'
wait_for 10 "the terminal's settings" test -s "$scratch/stty.after"
is "$(diff <(sed 1d "$scratch/stty.before") <(sed 1d "$scratch/stty.after"))" "" "the terminal's settings are as before"
is "$(t display-message -p '#{cursor_flag} #{alternate_on} #{insert_flag} #{wrap_flag} #{keypad_flag}')" "1 0 0 1 0" \
  "its cursor is shown, lines wrap, nothing else is switched"
end_load
untouched "after Ctrl-C"

# -- kprof flame: how far it is, in one line ---------------------------------------------------------------------------------------
start_load --seconds 600 --clients 2 --think 20
fresh_line "\$kprof flame $node --collector 127.0.0.1:$collector_port --db $db --entry shop_http:handle_request/2 --module 'shop_*' \
--requests 100000 --for 60s --limit 3"
progress='^[0-9]+ of 100000 requests, [0-9]+ messages \([0-9]+ functions in [0-9]+ processes'
got() { screen | sed -n 's/^\([0-9]*\) of 100000 requests, .*/\1/p'; }
more() { now=$(got); [ "${now:-0}" -gt "$1" ]; }
wait_for 40 "requests that it has got, of those that are wanted" more 0
wait_for 20 "it goes on" more "$now"
in_one_line() { [ "$(lines "$progress")" -eq 1 ]; }
wait_for 10 "in one line" in_one_line
ok "in one line"
t send-keys C-c
wait_for 40 "the shell is back" shell_waits
in_all() { t capture-pane -p -J -S - | grep -Ec -- "$1" || true; } # what has scrolled away, too
is "$(in_all '^[1-9][0-9]* of 100000 requests: it ended early, as the tool wanted no more *$')" 1 "Ctrl-C ends it"
is "$(in_all '^Profile [0-9]+: [1-9][0-9]* requests, together ')|$(in_all "$progress")" "1|0" \
  "what there is is drawn, where the progress was"
end_load
untouched "after kprof flame"

# -- what comes between, twice Ctrl-C, kill ----------------------------------------------------------------------------------------
start_load --seconds 600 --clients 2 --think 20
shell_in 80 24
type_line "$attach --wait --tier late=shop_nowhere:run/1"
wait_for 30 "rows" shows '^ read  .* %$'
is "$(lines '^warning: tier late: ')" 1 "a warning"
stop_collector
wait_for 30 "the loss of the collector is told" shows 'the collector is lost; tracing goes on when it is back$'
wait_for 10 "the table is below it, and says that it is old" shows "^ $node: no word from the collector$"
is "$(lines '^ _total +0 +- +- ')|$(lines 'is lost; tracing')" "1|1" "once, and once"
start_collector
wait_for 30 "it is back" shows '^.*: tracing again$'
wait_for 10 "the table goes on" shows "^ $node: tracing(;|$)" # what was not traced meanwhile may be told behind it
still_one() { screen >"$scratch/table" && has_lines 1 '^ identity ' && has_lines 1 '^ _total ' && has_lines 0 '^no live numbers'; }
wait_for 10 "it is one table" still_one
ok "it is one table"
t send-keys C-c C-c
wait_for 20 "the shell is back" shell_waits
t send-keys C-c
unloaded() { [ "$( (trap - EXIT; target_eval "$node" 'code:which(kprof).') 2>/dev/null)" = non_existing ]; }
wait_for 20 "twice Ctrl-C: the node is rid of kprof" unloaded
fresh_line "$attach"
wait_for 30 "rows" shows '^ read  .* %$'
kill -KILL "$(pgrep -x kprof -g "$(t display-message -p '#{pane_pid}')" || pgrep -x kprof -P "$(t display-message -p '#{pane_pid}')")"
wait_for 10 "the shell is back" shell_waits
is "$(t display-message -p '#{cursor_flag} #{alternate_on} #{wrap_flag}')" "1 0 1" "after kill -9 the terminal is as it was, too"
wait_for 20 "the node is rid of kprof" unloaded

# -- colours, and terminals that cannot draw -----------------------------------------------------------------------------------------
fresh_line "NO_COLOR=1 $attach"
wait_for 30 "rows" shows '^ read  .* %$'
t capture-pane -p -e >"$scratch/plain"
has_not "$scratch/plain" $'\e' "no colour with NO_COLOR"
t send-keys C-c
wait_for 20 "the shell is back" shell_waits
fresh_line "TERM=dumb $attach --for 3s; echo over"
wait_for 30 "its end" shows '^over$'
is "$(lines '^ _total')" 0 "no table where the cursor cannot be moved"
timeout 600 env HOME="$scratch/home" TERM=xterm "$kprof" attach "$node" --collector "127.0.0.1:$collector_port" \
  --tier http=shop_http:handle_request/2 --for 3s \
  >"$scratch/piped.out" 2>"$scratch/piped.log" || fail "kprof attach without a terminal"
is "$(cat "$scratch/piped.out")" "" "nothing on standard output that is no terminal"
has_not "$scratch/piped.log" $'\e' "and no colour"
end_load
untouched "in the end"
stop_collector
