#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: an application that knows nothing of kprof has requests all the same: those that an entry function handles. They are
# counted to the last one, over connections that carry thousands of them in one process, whatever they are made of and however they
# end; their times are the application's own; what a process does behind a request is none of it; and the node is afterwards as it was.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

name=entry_$$
cat >"$scratch/config" <<'END'
{tier_config, [{handle, {scenario_entry, handle, 2}}, {compute, {scenario_entry, compute, 1}}, {store, {scenario_entry, store, 1}},
               {book, {scenario_entry, book, 1}}, {part, {scenario_entry, part, 1}}, {log, {scenario_entry, log, 1}}]}.
{entry, {scenario_entry, handle, 2}}.
{identity_f, fun({scenario_entry, handle, [Op, _]}) -> Op; (_) -> undefined end}.
END
run() { target_eval "$name@localhost" "$1"; }
# truth OF: what the application counted, of functions or of a kind of request.
truth() { run "proplists:get_value($1, scenario_entry:truth(), 0)."; }
calls() { sql "SELECT coalesce(sum($3), 0) FROM tier_stats WHERE resolution_s = 10 AND tier = '$1' AND identity = '$2'"; }
finished() { [ "$(run "scenario_entry:finished().")" = true ]; }
# clients HOW-MANY KINDS REQUESTS
clients() {
  is "$(run "scenario_entry:clients($1, $2, $3).")" ok "$1 clients, $3 requests each"
  wait_for 90 "the clients are ready" finished
}
all_closed() { ledger_reaches "requests_complete + requests_incomplete + requests_expired" "$1"; }

start_collector
start_erl "$name" -s scenario_entry start
is "$(run "scenario_entry:client([local, stored, fails], 30), timer:sleep(100), scenario_entry:reset().")" ok \
  "the application runs without kprof"
before=$(run "scenario_entry:state().")

# -- thousands of requests over one connection, then several kinds at once -------------------------------------------------------
start_tracing "$name" "$scratch/config"
has "$kprof_log" 'tracing .*: 1 entry, 6 tiers' "the entry is told of"
[ "$(run "scenario_entry:state().")" != "$before" ] || fail "the state of the node does not show that it is traced"
clients 1 "[local, stored]" 2500
wait_for 20 "they are in the database" all_closed 2500
is "$(ledger requests_complete)" 2500 "each is a complete request"
watch
clients 8 "[local, stored, booked, spawning, nested, fails, dies, killed]" 300
wait_for 20 "they are in the database" all_closed 4900

# Two calls of the entry at the same moment may get the same token when the kernel takes the processor from one of them.
incomplete=$(ledger requests_incomplete)
timely "$incomplete" -le 4 "hardly any request is incomplete"
holds "$incomplete" -le 49 "nor is one in a hundred on any machine"
is "$(ledger requests_complete+requests_incomplete+requests_expired)" 4900 "each is a request, none is made up"
for kind in local stored booked spawning nested fails dies killed; do
  # an entry's call within another's is a tier of the outer request
  wanted=$(truth "{handle, $kind}")
  [ "$kind" != stored ] || wanted=$((wanted - $(truth "{handle, nested}")))
  got=$(calls _total "$kind" calls)
  holds "$got" -le "$wanted" "requests of the kind $kind"
  holds "$got" -ge $((wanted - incomplete)) "all of them"
done
for kind in fails dies killed; do
  is "$(calls _total "$kind" errors)" "$(calls _total "$kind" calls)" "each request of the kind $kind is an error"
done
for kind in local stored booked spawning nested; do is "$(calls _total "$kind" errors)" 0 "none of the kind $kind is"; done
for tier in compute store book part; do # an incomplete request's calls are in no sum: four of a kind at most
  holds "$(calls "$tier" _total calls)" -le "$(truth "$tier")" "calls of the tier $tier"
  holds "$(calls "$tier" _total calls)" -ge $(($(truth "$tier") - 4 * incomplete)) "all of them but those of $incomplete requests"
done
is "$(calls handle nested calls)" $((2 * $(calls _total nested calls))) "a nested entry is a call of its tier"
is "$(calls log _total calls)" 0 "what comes behind a request is not counted to it"
is "$(ledger stale_calls)" "$(truth log)" "but as stale, to the last call"
holds "$(calls book booked async_calls)" -gt 0 "bookings outlive their requests"
is "$(sql "SELECT sum(requests_expired), sum(requests_unsampled), sum(dropped_messages), sum(orphan_returns), sum(decode_errors),
                  sum(unwound_frames), sum(lost_tokens)
           FROM ledger WHERE resolution_s = 10")" "0|0|0|0|0|0|0" "nothing was lost"
is "$(sql "SELECT DISTINCT path FROM path_stats WHERE resolution_s = 10 AND identity = 'spawning' ORDER BY path")" \
  $'handle\nhandle > part' "what is spawned hangs below its request"

# Measured inside of the entry the time is a little shorter, measured by the client it is longer.
times() {
  run "lists:flatten([io_lib:format(\"~s,~b,~b;\", [Op, Ns div 1000, Client div 1000]) || {Op, Ns, Client} <- scenario_entry:stamps()])." |
    tr -d '"' | tr ';' '\n'
}
times >"$scratch/stamps"
for kind in local spawning nested; do
  IFS=, read -r _ inner outer < <(grep "^$kind," "$scratch/stamps")
  total=$(sql "SELECT CAST(sum(total_us) AS INTEGER) FROM tier_stats WHERE resolution_s = 10 AND tier = '_total' AND identity = '$kind'")
  n=$(calls _total "$kind" calls)
  some=$((incomplete * inner * 3 / n)) # what incomplete requests may have taken, thrice the mean each
  holds "$total" -ge $((inner - some)) "total time of the kind $kind, us: what the entry measured,"
  timely "$total" -le $((inner + inner / 20 + 50 * n)) "and hardly more,"
  holds "$total" -lt "$outer" "and less than what the client saw"
done

stop_tracing
is "$(run "scenario_entry:state().")" "$before" "the node is as it was before, without a token"
counted_once

# -- sampling ------------------------------------------------------------------------------------------------------------------------
kprof_log=$scratch/kprof-node-2.log
{ cat "$scratch/config"; echo "{sample, {one_in, 5}}."; } >"$scratch/config.5"
is "$(run "scenario_entry:reset().")" ok "counting anew"
known=$(ledger requests_complete+requests_incomplete)
seen() { echo $(($(ledger requests_complete+requests_incomplete) - known)); }
start_tracing "$name" "$scratch/config.5"
watch
clients 4 "[local, stored]" 500
unwatch
sampled() { [ $(($(ledger requests_unsampled) + $(seen))) -ge "$1" ]; }
soon 3 sampled 2000 || true
stop_tracing
# Calls that count at the same moment are counted as one; who is interrupted while it counts takes back what others have counted.
wait_for 20 "the ledger has most of them" sampled 1000
drawn=$(seen) all=$(($(ledger requests_unsampled) + drawn))
holds "$all" -le 2005 "sampled and left out are all that there were"
timely "$all" -ge 1960 "hardly any is missed"
holds "$drawn" -ge $((all / 5 - 5)) "one in five is sampled"
holds "$drawn" -le 405 "and no more"
is "$(run "scenario_entry:state().")" "$before" "the node is as it was before"

# -- from the command line, and a loop as an entry -----------------------------------------------------------------------------------
kprof_log=$scratch/kprof-node-3.log
start "$kprof_log" "$top/scripts/start_kprof_node.sh" --node "$name@localhost" --cookie-file "$scratch/cookie" \
  --entry scenario_entry:serve/1 --entry scenario_entry:handle/2 --collector "127.0.0.1:$collector_port"
kprof_pid=$!
wait_for 30 "tracing begins" traced_or_ended
has "$kprof_log" 'tracing .*: 2 entries, 0 tiers' "entries need no file"
known=$(ledger requests_complete)
is "$(run "scenario_entry:loop(25000).")" ok "a loop that is an entry serves 25000 messages"
wait_for 15 "it is taken off" grep -Eq "warning node $name@localhost: .*scenario_entry:serve/1 .*taken off" "$collector_log"
is "$(run "scenario_entry:client([local], 100).")" ok "the other entry goes on"
wait_for 20 "its requests are in the database" ledger_reaches requests_complete $((known + 100))
is "$(calls scenario_entry:handle/2 _total calls)" 100 "under the function's name"
stack() { run "element(2, process_info(whereis(scenario_entry_loop), stack_size))."; }
grown=$(stack)
is "$(run "scenario_entry:loop_client(500).")" ok "so does the loop"
holds "$(stack)" -le $((grown + 100)) "whose stack grows no further, words"
stop_tracing
is "$(run "exit(whereis(scenario_entry_loop), kill), timer:sleep(50), scenario_entry:state().")" "$before" "the node is as it was before"
stop_collector
intact
