#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: a process that works on under the label of a request that is over, as those of a websocket do, is taken out of the
# trace: some two seconds after the request's end it has no token, and makes no more messages. Until then each of its calls is counted, as
# asynchronous or as stale. The requests beside it are right to the last call, one that takes as long as all of that among them. One that is
# lent such a label is incomplete: it is without a token from there on.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

name=stale_$$
sockets=20 events=300
cat >"$scratch/config" <<'END'
{tier_config, [{handle, {scenario_stale, handle, 1}}, {event, {scenario_stale, event, 1}},
               {store, {scenario_stale, store, 1}, #{returns => none}}, {step, {scenario_stale, step, 1}}]}.
{entry, {scenario_stale, handle, 1}}.
{identity_f, fun({scenario_stale, handle, [{Kind, _}]}) -> Kind; ({scenario_stale, handle, [Kind]}) -> Kind; (_) -> undefined end}.
END
run() { target_eval "$name@localhost" "$1"; }
# truth KEY: what the application counted.
truth() { run "proplists:get_value($1, scenario_stale:truth(), 0)."; }
calls() { sql "SELECT coalesce(sum($3), 0) FROM tier_stats WHERE resolution_s = 10 AND tier = '$1' AND identity = '$2'"; }
finished() { [ "$(run "scenario_stale:finished().")" = true ]; }

start_collector
start_erl "$name" -s scenario_stale start
start_tracing "$name" "$scratch/config"
watch
is "$(run "scenario_stale:sockets($sockets, $events).")" ok "$sockets sockets of $events events, and requests beside them"
wait_for 90 "they are done" finished
unwatch
plain=$(truth plain)
all_closed() { ledger_reaches "requests_complete + requests_incomplete + requests_expired" $((plain + sockets + 2)); }
wait_for 20 "all requests are closed" all_closed

is "$(run "[length([Ms || {{over, _}, Ms} <- scenario_stale:truth()])].")" "[$sockets]" "each socket has lost its token while it went on"
timely "$(run "lists:max([Ms || {{over, _}, Ms} <- scenario_stale:truth()]).")" -le 3000 "some two seconds after its request, ms"
stop_tracing
stop_collector

# A socket's request is incomplete where it cannot be told whose work a call was; its calls are stale then.
complete=$(calls _total socket calls)
is "$(ledger requests_complete)|$(ledger requests_incomplete+requests_expired)" "$((plain + sockets + 1))|1" \
  "each request is complete but one"
is "$(ledger incomplete_token)|$(truth borrow)|$(calls _total borrow calls)" "1|1|0" "which was lent a label of a request that is over"
is "$complete" "$sockets" "those of the sockets"
for tier in event store; do is "$(calls "$tier" plain calls)" "$plain" "plain requests' calls of $tier, to the last one"; done
is "$(truth "{plain, event}")" "$plain" "none of which found itself without a token"
is "$(calls step long calls)" "$(truth "{long, step}")" "the long request's steps, to the last one"
stale=$(ledger stale_calls)
made=$(($(truth "{socket, event}") + $(truth "{socket, store}")))
holds "$stale" -gt 0 "calls of sockets were stale"
is "$(($(calls event socket calls) + $(calls store socket calls) + stale))" "$made" \
  "what sockets called under a token is counted, as stale or not"
timely "$made" -lt $((sockets * events)) "and is not all"
is "$(ledger dropped_messages+orphan_returns+decode_errors)|$(ledger lost_tokens)" "0|1" "nothing else was lost"
counted_once
intact
