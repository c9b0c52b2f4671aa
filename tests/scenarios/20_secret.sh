#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: with --secret-file nobody gets in without the secret, and no shim talks to a collector that does not know it:
# not with a wrong one or none, not with the recorded bytes of a session, not with a byte changed on the way, not as an
# impostor that sends back what it gets, and not into another's session. Meanwhile a shim with the secret traces, exact to the last call.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

wire() { HOME=$scratch/home timeout 400 erl -noinput -pa "$SCENARIO_EBIN" "$KPROF_EBIN" -run scenario_wire main "$@"; }
# start_wire LOG WHAT ARGUMENT...: in the background; it writes its port to $scratch/wire.port. Sets wire_port and wire_pid.
start_wire() {
  local log=$1 what=$2
  shift 2
  rm -f "$scratch/wire.port"
  start "$log" env HOME="$scratch/home" erl -noinput -pa "$SCENARIO_EBIN" "$KPROF_EBIN" \
    -run scenario_wire main "$what" "$scratch/wire.port" "$@"
  wire_pid=$!
  wait_for 20 "the $what listens" test -s "$scratch/wire.port"
  wire_port=$(cat "$scratch/wire.port")
}
# refuses PATTERN WHAT OPTION...: start_kprof_node.sh ends with 8 (or $want) and one line that matches, and nothing stays in the node.
refuses() {
  local pattern=$1 what=$2 status=0
  shift 2
  timeout 400 "$node_scripts/start_kprof_node.sh" --node "$name@localhost" --cookie-file "$scratch/cookie" \
    --config "$top/tests/sample/kprof.config" --collector "127.0.0.1:$collector_port" "$@" >"$scratch/refusal.log" 2>&1 || status=$?
  [ "$status" = "${want:-8}" ] || fail "$what: exit status $status: $(cat "$scratch/refusal.log")"
  has "$scratch/refusal.log" "$pattern" "$what: $(cat "$scratch/refusal.log")"
  is "$(wc -l <"$scratch/refusal.log")" 1 "  in one line"
  has_not "$scratch/refusal.log" "$(cat "$scratch/secret")" "  without the secret"
}
refused() { has "$collector_log" "connection from 127.0.0.1:[0-9]+ refused: $1" "$2"; }

(umask 077
openssl rand -hex 32 >"$scratch/secret"
openssl rand -hex 32 >"$scratch/other"
echo 'too short' >"$scratch/short"
cp "$scratch/secret" "$scratch/open")
chmod 644 "$scratch/open"

name=secret_$$
start_shop "$name"

# -- a collector that others can reach, with a secret --------------------------------------------------------------------
start_collector --listen 0.0.0.0:0 --secret-file "$scratch/secret"
has "$collector_log" 'listening on 0.0.0.0:' "with a secret it listens on all addresses"

refuses 'refused: wrong secret' "a wrong secret" --secret-file "$scratch/other"
refused 'wrong secret' "  and the collector tells it"
refuses 'refused: this collector demands its secret: start with --secret-file' "no secret"
refused 'no secret' "  and the collector tells it"
want=6 refuses 'short: it has fewer than 16 bytes.*openssl rand' "a secret that is too short" --secret-file "$scratch/short"
want=6 refuses 'open: mode 644 opens the secret to everybody.*chmod 600' "a secret that everybody can read" --secret-file "$scratch/open"
want=6 refuses 'cannot read .*nowhere' "a secret that is not there" --secret-file "$scratch/nowhere"
is "$(target_eval "$name@localhost" '{code:which(kprof), erlang:trace_info(new, flags), scenario_trace:sessions()}.')" \
  "{non_existing,{flags,[]},[]}" \
  "none of this left anything in the node"

# -- the right one, through somebody who listens -------------------------------------------------------------------------
mkdir "$scratch/heard"
real_port=$collector_port
start_wire "$scratch/proxy.log" proxy "$real_port" "$scratch/heard" none
collector_port=$wire_port
tracing_options=(--secret-file "$scratch/secret")
start_tracing "$name"
collector_port=$real_port
has "$collector_log" "node $name@localhost .* connected" "the right secret"
start_load --clients 3 --think 10 --requests 900

heard() { [ "$(stat -c %s "$scratch/heard/2.client" 2>/dev/null || echo 0)" -gt 100000 ]; }
wait_for 20 "the data connection was heard" heard
has_not <(cat "$scratch"/heard/* | tr -c '[:print:]' '\n') "$(cat "$scratch/secret")" "the secret is not on the wire"
for side in 1 2; do
  cp "$scratch/heard/$side.client" "$scratch/recorded.$side"
  wire replay "$real_port" "$scratch/recorded.$side" >>"$scratch/wire.log" 2>&1 ||
    fail "replaying connection $side: $(tail -n 1 "$scratch/wire.log")"
done
ok "the recorded bytes of both connections open nothing"
refused 'wrong secret' "  and are told as a wrong secret"
wire join "$real_port" "$scratch/secret" 1 >>"$scratch/wire.log" 2>&1 || fail "joining another's session: $(tail -n 1 "$scratch/wire.log")"
ok "another shim, with the secret, cannot bring data into this session"

status=0
wait "$load_pid" || status=$?
is "$status" 0 "the load ends well"
save_truth
wait_for 15 "all requests are in the database" ledger_reaches requests_complete "$(truth_total)"
is "$(grep -c "node $name@localhost.* connected" "$collector_log")" 1 "the session was never disturbed"
stop_tracing
tracing_options=()
kill -KILL -- "-$wire_pid"

# -- the tool ------------------------------------------------------------------------------------------------------------
at=(--collector "127.0.0.1:$real_port")
"$kprof" nodes "${at[@]}" --secret-file "$scratch/secret" >"$scratch/nodes.txt" || fail "kprof nodes with the secret"
has "$scratch/nodes.txt" "$name@" "kprof nodes, with the secret"
# mistake STATUS PATTERN ARGUMENT...
mistake() {
  local want=$1 pattern=$2 status=0
  shift 2
  "$kprof" "$@" >"$scratch/mistake.log" 2>&1 || status=$?
  is "$status|$(wc -l <"$scratch/mistake.log")" "$want|1" "kprof $1: $(cat "$scratch/mistake.log")"
  has "$scratch/mistake.log" "$pattern" "  which tells it"
}
mistake 1 'wrong secret' nodes "${at[@]}" --secret-file "$scratch/other"
mistake 1 'demands its secret' trace "$name@localhost" pause "${at[@]}"
mistake 2 'mode 644 opens' nodes "${at[@]}" --secret-file "$scratch/open"
"$kprof" attach "$name@localhost" --cookie-file "$scratch/home/.erlang.cookie" "${at[@]}" --tier http=shop_http:handle_request/2 --for 4s \
  --json --secret-file "$scratch/secret" \
  >"$scratch/attach.log" 2>&1 || fail "kprof attach with the secret: $(tail -n 2 "$scratch/attach.log")"
is "$(grep -c "node $name@localhost.* connected" "$collector_log")" 2 "kprof attach, with the secret"
has "$scratch/attach.log" '^\{.*"identities"' "  and what it shows each second"
# configured SECRET-FILE: a configuration that says all of it
configured() {
  printf '%s.\n' "{tier_config, [{http, {shop_http, handle_request, 2}}]}" "{collector, {\"127.0.0.1\", $real_port}}" \
    "{secret_file, \"$1\"}" >"$scratch/config"
}
alone() {
  timeout 600 "$kprof" attach "$name@localhost" --cookie-file "$scratch/home/.erlang.cookie" --config "$scratch/config" --for 4s --json \
    "$@" >"$scratch/attach.log" 2>&1
}
configured "$scratch/secret"
alone || fail "kprof attach with the secret in the configuration: $(tail -n 2 "$scratch/attach.log")"
has "$scratch/attach.log" '^\{.*"identities"' "kprof attach shows numbers with nothing but a configuration"
configured "$scratch/other"
alone --secret-file "$scratch/secret" ||
  fail "kprof attach with another secret than the configuration's: $(tail -n 2 "$scratch/attach.log")"
has "$scratch/attach.log" '^\{.*"identities"' "and the command line goes before it"
mistake 8 'wrong secret' attach "$name@localhost" --cookie-file "$scratch/home/.erlang.cookie" --config "$scratch/config" --for 2s
mistake 8 'wrong secret' attach "$name@localhost" --cookie-file "$scratch/home/.erlang.cookie" "${at[@]}" \
  --tier http=shop_http:handle_request/2 --for 2s --secret-file "$scratch/other"
mistake 2 'mode 644 opens' attach "$name@localhost" "${at[@]}" --tier http=shop_http:handle_request/2 --secret-file "$scratch/open"

# -- a byte changed on the way -------------------------------------------------------------------------------------------
# Somewhere in each of the four messages: nonces and proofs, of both sides.
for flip in client:30 client:60 collector:40 client:110 collector:90; do
  start_wire "$scratch/flip.log" proxy "$real_port" "$scratch/heard" "$flip"
  refuses 'wrong secret|does not know the secret|protocol|closed|damaged|refused' "byte $flip changed" --secret-file "$scratch/secret" \
    --collector "127.0.0.1:$wire_port"
  kill -KILL -- "-$wire_pid"
done
is "$(grep -c "node $name@localhost.* connected" "$collector_log")" 4 "none of them became a session"

# -- a collector that is none --------------------------------------------------------------------------------------------
start_wire "$scratch/impostor.log" impostor
refuses 'does not know the secret: nothing was sent to it' "an impostor that sends everything back" \
  --secret-file "$scratch/secret" --collector "127.0.0.1:$wire_port"
is "$(grep '^got' "$scratch/impostor.log" | sort -u | tr '\n' ' ')" "got answer got auth " "  it got no hello, not even the node's name"
has_not "$scratch/impostor.log" "$name" "  indeed not"
kill -KILL -- "-$wire_pid"

stop_collector
tells_truth
nothing_lost "$name"
intact

# -- a collector without a secret ----------------------------------------------------------------------------------------
collector_port=0 db=$scratch/plain.db
start_collector
refuses 'refused: this collector has no secret' "a secret for a collector without one" --secret-file "$scratch/secret"
stop_collector

# -- an application's own shim: secret_file, secret, and mistakes --------------------------------------------------------
collector_port=0 db=$scratch/embedded.db
start_collector --secret-file "$scratch/secret"
start_erl "embedded_$$" -pa "$KPROF_EBIN"
trace() { target_eval "embedded_$$@localhost" \
  "_ = kprof:start(), case kprof:start_trace([{tier_config, [{t, {lists, seq, 2}}]},
         {collector, {\"127.0.0.1\", $collector_port}} $1]) of
         ok -> kprof:stop_trace(); {error, E} -> kprof:format_error(E) end."; }
is "$(trace ", {secret_file, \"$scratch/secret\"}")" ok "{secret_file, File}"
is "$(trace ", {secret, <<\"$(cat "$scratch/secret")\">>}")" ok "{secret, Binary}"
is "$(trace ", {secret, <<\"$(cat "$scratch/other")\">>}")" "\"the collector at 127.0.0.1:$collector_port refused: wrong secret\"" \
  "a wrong one"
is "$(trace ", {secret_file, \"$scratch/open\"}")" \
  "\"the secret file \\\"$scratch/open\\\": mode 644 opens the secret to everybody on that machine; chmod 600 it\"" "a file that is open"
is "$(trace ', {secret, <<"short">>}')" '"the option secret: it has fewer than 16 bytes; make one with: openssl rand -hex 32"' "a short one"
is "$(trace ", {secret, <<\"0123456789abcdef\">>}, {secret_file, \"x\"}")" '"the options secret and secret_file exclude each other"' "both"
is "$(target_eval "embedded_$$@localhost" \
  '[begin _ = code:del_path(A), _ = application:unload(A), code:purge(A), code:delete(A) end || A <- [ssl, crypto]],
   code:which(crypto).')" \
  non_existing "a node without OTP's crypto and ssl"
is "$(trace ", {secret_file, \"$scratch/secret\"}")" \
  "\"the secret wants OTP's application crypto, which is not on this node: add it to its release\"" "  cannot prove a secret, and says so"
is "$(trace ', {tls, #{}}')" "\"TLS wants OTP's application ssl, which is not on this node: add it to its release\"" "  nor speak TLS"
is "$(target_eval "embedded_$$@localhost" '{kprof:status(), erlang:trace_info(new, flags), scenario_trace:sessions()}.')" \
  "{idle,{flags,[]},[]}" "nothing is left"
stop_collector
