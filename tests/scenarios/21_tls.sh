#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: with --tls-cert everything goes through TLS 1.2 or newer, nothing can be read on the way, the numbers are as exact as
# without; the shim talks to no collector whose certificate is not the right one (another authority, another name, expired), and with
# --tls-ca the collector to no shim without one of its authority. Each refusal is told in a line, on both sides.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# -- certificates --------------------------------------------------------------------------------------------------------
umask 077
pki=$scratch/pki
mkdir "$pki"
tls() { openssl "$@" >>"$scratch/openssl.log" 2>&1 || fail "openssl $*"; }
# authority NAME
authority() { tls req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=$1" -keyout "$pki/$1.key" \
  -out "$pki/$1.pem"; }
# certificate NAME AUTHORITY DAYS SAN: NAME.pem and NAME.key
certificate() {
  tls req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" -keyout "$pki/$1.key" -out "$pki/$1.csr"
  printf 'subjectAltName=%s\n' "$4" >"$pki/$1.ext"
  tls x509 -req -in "$pki/$1.csr" -CA "$pki/$2.pem" -CAkey "$pki/$2.key" -CAcreateserial -days "$3" -extfile "$pki/$1.ext" \
    -out "$pki/$1.pem"
}
authority ours
authority theirs
certificate collector ours 2 DNS:localhost,DNS:collector.example,IP:127.0.0.1
certificate rogue ours 2 DNS:localhost,IP:127.0.0.1
certificate expired ours 0 DNS:localhost,IP:127.0.0.1
certificate shim ours 2 DNS:shim.example
certificate stranger theirs 2 DNS:shim.example
certificate lapsed ours 0 DNS:shim.example
openssl rand -hex 32 >"$scratch/secret"
umask 022

# -- what the collector cannot use ---------------------------------------------------------------------------------------
# rejects PATTERN WHAT ARGUMENT...: the collector ends at once with 2 and one line.
rejects() {
  local pattern=$1 what=$2 status=0
  shift 2
  timeout 200 "$collector" --listen 0 --db "$scratch/none.db" "$@" >"$scratch/refusal.log" 2>&1 || status=$?
  is "$status|$(wc -l <"$scratch/refusal.log")" "2|1" "$what: exit status 2, one line: $(head -c 300 "$scratch/refusal.log")"
  has "$scratch/refusal.log" "$pattern" "  which tells it"
}
rejects 'nowhere: not a certificate.*: No such file' "a certificate that is not there" --tls-cert "$scratch/nowhere" \
  --tls-key "$pki/collector.key"
rejects 'nowhere: .*No such file' "a key that is not there" --tls-cert "$pki/collector.pem" --tls-key "$scratch/nowhere"
rejects "ours.key: not the certificate's key" "a key of another certificate" --tls-cert "$pki/collector.pem" --tls-key "$pki/ours.key"
rejects 'collector.key: not a certificate' "a key as certificate" --tls-cert "$pki/collector.key" --tls-key "$pki/collector.key"
cp "$pki/collector.key" "$pki/open.key"
chmod 644 "$pki/open.key"
rejects 'open.key: mode 644 opens the key.*chmod 600' "a key that everybody can read" --tls-cert "$pki/collector.pem" \
  --tls-key "$pki/open.key"
tls pkey -in "$pki/collector.key" -aes256 -passout pass:word -out "$pki/locked.key"
chmod 600 "$pki/locked.key"
rejects 'locked.key: .*without a passphrase' "a key with a passphrase" --tls-cert "$pki/collector.pem" --tls-key "$pki/locked.key"
rejects 'expired.pem: the certificate has expired' "a certificate that has expired" --tls-cert "$pki/expired.pem" \
  --tls-key "$pki/expired.key"
rejects 'collector.csr: not certificates of authorities' "no authorities" --tls-cert "$pki/collector.pem" --tls-key "$pki/collector.key" \
  --tls-ca "$pki/collector.csr"

# -- a collector that asks no certificates of shims ----------------------------------------------------------------------
name=tls_$$
start_shop "$name"
# refuses PATTERN WHAT OPTION...: start_kprof_node.sh ends with 8 (or $want) and one line that matches.
refuses() {
  local pattern=$1 what=$2 status=0
  shift 2
  timeout 400 "$node_scripts/start_kprof_node.sh" --node "$name@localhost" --cookie-file "$scratch/cookie" \
    --config "$top/tests/sample/kprof.config" --collector "127.0.0.1:$collector_port" "$@" >"$scratch/refusal.log" 2>&1 || status=$?
  is "$status|$(wc -l <"$scratch/refusal.log")" "${want:-8}|1" "$what: $(head -c 300 "$scratch/refusal.log")"
  has "$scratch/refusal.log" "$pattern" "  which tells it"
}
refused() { has "$collector_log" "connection from 127.0.0.1:[0-9]+ refused: $1" "$2"; }

start_collector --tls-cert "$pki/collector.pem" --tls-key "$pki/collector.key"
refuses 'cannot be trusted: TLS: the certificate is of an unknown authority' "a certificate of another authority" --tls-ca "$pki/theirs.pem"
refused 'TLS: .*unknown ca' "  and the collector hears why"
refuses 'cannot be trusted: TLS: the certificate is for another name' "a certificate of another name" --tls-ca "$pki/ours.pem" \
  --tls-name other.example
refuses 'refused: this collector speaks TLS: start with --tls-ca' "a shim without TLS"
refused 'it speaks without TLS: start it with --tls-ca' "  and the collector tells it"
(umask 077; openssl rand -hex 32 >"$scratch/any-secret")
refuses 'refused: this collector speaks TLS: start with --tls-ca' "a shim with a secret, without TLS" --secret-file "$scratch/any-secret"
if "$kprof" nodes --collector "127.0.0.1:$collector_port" >"$scratch/nodes.log" 2>&1; then fail "kprof nodes without TLS"; fi
has "$scratch/nodes.log" 'it said: this collector speaks TLS: start with --tls-ca' "kprof nodes without TLS"
sleep 1 # a second has five lines of refusals
exec {http}<>"/dev/tcp/127.0.0.1/$collector_port"
printf 'GET / HTTP/1.0\r\n\r\n' >&"$http" || true # its first line may be enough
timeout 100 cat <&"$http" >/dev/null 2>&1 || [ $? -ne 124 ] || fail "a browser may stay"
exec {http}>&-
refused 'an HTTP request; this port speaks' "somebody who speaks neither"
want=6 refuses 'cannot read .*nowhere' "authorities that are not there" --tls-ca "$scratch/nowhere"
want=6 refuses 'the option tls: .*no certificate in it' "authorities that are none" --tls-ca "$pki/collector.key"
want=2 refuses 'go with --tls' "a certificate without --tls" --tls-cert "$pki/shim.pem"
for old in -tls1 -tls1_1; do
  if openssl s_client -connect "127.0.0.1:$collector_port" "$old" -cipher ALL:@SECLEVEL=0 </dev/null >"$scratch/s_client.log" 2>&1; then
    fail "TLS $old is spoken"
  fi
done
openssl s_client -connect "127.0.0.1:$collector_port" -tls1_2 </dev/null >"$scratch/s_client.log" 2>&1 || fail "TLS 1.2 is not spoken"
ok "TLS 1.2 is the oldest that is spoken"
# The tool.
for host in localhost 127.0.0.1; do
  "$kprof" nodes --collector "$host:$collector_port" --tls-ca "$pki/ours.pem" --json >"$scratch/nodes.json" ||
    fail "kprof nodes through TLS, $host"
done
ok "kprof nodes, by name and by address"
if "$kprof" nodes --collector "127.0.0.1:$collector_port" --tls-ca "$pki/theirs.pem" >"$scratch/nodes.log" 2>&1; then
  fail "kprof nodes trusts anybody"
fi
has "$scratch/nodes.log" 'TLS: the certificate is of an unknown authority' "kprof nodes and a certificate of another authority"
# 127.0.0.1, otherwise
if "$kprof" nodes --collector "127.1:$collector_port" --tls-ca "$pki/ours.pem" >"$scratch/nodes.log" 2>&1; then
  fail "kprof nodes trusts another name"
fi
has "$scratch/nodes.log" "TLS: the certificate is for another name" "kprof nodes and a certificate of another name"
"$kprof" nodes --collector "127.1:$collector_port" --tls-ca "$pki/ours.pem" --tls-name collector.example >"$scratch/nodes.log" 2>&1 ||
  fail "kprof nodes --tls-name: $(cat "$scratch/nodes.log")"
if "$kprof" nodes --collector "127.0.0.1:$collector_port" --tls-ca "$pki/ours.pem" --tls-name other.example >"$scratch/nodes.log" 2>&1; then
  fail "kprof nodes trusts another name than --tls-name"
fi
has "$scratch/nodes.log" "TLS: the certificate is for another name" "kprof nodes --tls-name, the right one and another"
status=0
"$kprof" nodes --collector "127.0.0.1:$collector_port" --tls-name collector.example >"$scratch/nodes.log" 2>&1 || status=$?
is "$status|$(cat "$scratch/nodes.log")" \
  "2|kprof nodes: --tls-cert, --tls-key and --tls-name go with --tls or --tls-ca" "kprof nodes --tls-name without TLS"
if "$kprof" nodes --collector "127.0.0.1:$collector_port" --tls >"$scratch/nodes.log" 2>&1; then
  fail "kprof nodes trusts whom its system does not"
fi
has "$scratch/nodes.log" 'TLS: the certificate is of an unknown authority' "kprof nodes and the system's authorities"
# attach OPTION...: for a few seconds, with what it shows in attach.log.
attach() {
  timeout 600 "$kprof" attach "$name@localhost" --cookie-file "$scratch/home/.erlang.cookie" --collector "127.0.0.1:$collector_port" \
    --tier http=shop_http:handle_request/2 --for 4s --json "$@" >"$scratch/attach.log" 2>&1
}
attach --tls-ca "$pki/ours.pem" --tls-name collector.example || fail "kprof attach through TLS: $(tail -n 2 "$scratch/attach.log")"
has "$scratch/attach.log" '^\{.*"identities"' "kprof attach through TLS, by a name that is given, and what it shows"
status=0
attach --tls-ca "$pki/ours.pem" --tls-name other.example || status=$?
is "$status|$(wc -l <"$scratch/attach.log")" "8|1" "kprof attach and a certificate of another name: $(cat "$scratch/attach.log")"
has "$scratch/attach.log" 'the certificate is for another name' "  which tells it"
has "$collector_log" "node $name@localhost .* connected" "kprof attach, through TLS"
# configured TERM...: a configuration that says all of it; alone: attached with nothing else
configured() {
  printf '%s.\n' "{tier_config, [{http, {shop_http, handle_request, 2}}]}" "{collector, {\"127.0.0.1\", $collector_port}}" \
    "$@" >"$scratch/config"
}
alone() {
  timeout 600 "$kprof" attach "$name@localhost" --cookie-file "$scratch/home/.erlang.cookie" --config "$scratch/config" --for 4s --json \
    >"$scratch/attach.log" 2>&1
}
configured "{tls, #{cacertfile => \"$pki/ours.pem\", server_name => \"collector.example\"}}"
alone || fail "kprof attach with TLS in the configuration: $(tail -n 2 "$scratch/attach.log")"
has "$scratch/attach.log" '^\{.*"identities"' "kprof attach shows numbers with nothing but a configuration"
# Somebody who does not even begin with TLS, and somebody who stops in its middle.
silent() { { timeout 100 cat <&"$1" >/dev/null; } 2>/dev/null || [ $? -ne 124 ]; }
exec {nothing}<>"/dev/tcp/127.0.0.1/$collector_port" {half}<>"/dev/tcp/127.0.0.1/$collector_port"
printf '\x16\x03\x01\x02\x00\x01' >&"$half"
for fd in "$nothing" "$half"; do silent "$fd" || fail "who does not go on with TLS may stay"; done
exec {nothing}>&- {half}>&-
is "$(grep -c 'refused: no complete message in time' "$collector_log")" 2 "who does not go on with TLS is closed within seconds"
for host in localhost 127.0.0.1; do
  tracing_options=(--tls-ca "$pki/ours.pem" --collector "$host:$collector_port")
  start_tracing "$name"
  stop_tracing
  rm -f "$kprof_log"
done
tracing_options=(--tls-ca "$pki/ours.pem" --tls-name collector.example)
start_tracing "$name"
stop_tracing
rm -f "$kprof_log"
ok "the right authority, by name, by address, and by a name that is given"
stop_collector

# A server whose certificate has expired; the collector would not start with it.
sleep 1
rm -f "$scratch/s_server.log"
start "$scratch/s_server.log" openssl s_server -www -accept 127.0.0.1:0 -cert "$pki/expired.pem" -key "$pki/expired.key"
s_server=$!
wait_for 10 "the server listens" grep -q '^ACCEPT .*:[0-9]' "$scratch/s_server.log"
refuses 'cannot be trusted: TLS: the certificate has expired' "a certificate that has expired" --tls-ca "$pki/ours.pem" \
  --collector "127.0.0.1:$(sed -n 's/^ACCEPT .*:\([0-9]*\)$/\1/p' "$scratch/s_server.log" | head -n 1)"
kill -KILL -- "-$s_server"

# -- one that asks, and a secret besides ---------------------------------------------------------------------------------
db=$scratch/mutual.db
start_collector --tls-cert "$pki/collector.pem" --tls-key "$pki/collector.key" --tls-ca "$pki/ours.pem" --secret-file "$scratch/secret"
with=(--tls-ca "$pki/ours.pem" --secret-file "$scratch/secret")
refuses 'does not trust this node|closed the connection' "a shim without certificate" "${with[@]}"
refused 'TLS: peer did not return a certificate' "  and the collector tells it"
"$kprof" nodes --collector "127.0.0.1:$collector_port" "${with[@]}" --tls-cert "$pki/shim.pem" --tls-key "$pki/shim.key" \
  --json >"$scratch/nodes.json" ||
  fail "kprof nodes with a certificate and the secret"
if "$kprof" nodes --collector "127.0.0.1:$collector_port" "${with[@]}" >"$scratch/nodes.log" 2>&1; then
  fail "kprof nodes gets in without a certificate"
fi
ok "kprof nodes, with a certificate, and not without"
refuses 'does not trust this node|closed the connection' "a certificate of a strange authority" "${with[@]}" \
  --tls-cert "$pki/stranger.pem" --tls-key "$pki/stranger.key"
refused 'TLS: the certificate is of an unknown authority' "  and the collector tells it"
refuses 'does not trust this node|closed the connection' "a shim's certificate that has expired" "${with[@]}" --tls-cert "$pki/lapsed.pem" \
  --tls-key "$pki/lapsed.key"
refuses 'refused: this collector demands its secret' "no secret, through TLS" --tls-ca "$pki/ours.pem" --tls-cert "$pki/shim.pem" \
  --tls-key "$pki/shim.key"
want=6 refuses 'the option tls: .*needs its key' "a certificate without key" "${with[@]}" --tls-cert "$pki/shim.pem"
is "$(grep -c ' connected from ' "$collector_log" || true)" 0 "none of them became a session"

"$kprof" nodes --collector "127.0.0.1:$collector_port" "${with[@]}" --tls-cert "$pki/shim.pem" \
  --tls-key "$pki/shim.key" >"$scratch/nodes.log" || fail "kprof nodes"
# Somebody in between, with a certificate of the right name and authority.
start "$scratch/between.log" env HOME="$scratch/home" erl -noinput -pa "$SCENARIO_EBIN" "$KPROF_EBIN" \
  -run scenario_wire main between "$scratch/between.port" \
  "$collector_port" "$pki/rogue.pem" "$pki/rogue.key" "$pki/shim.pem" "$pki/shim.key"
between=$!
wait_for 20 "somebody is in between" test -s "$scratch/between.port"
at=(--collector "127.0.0.1:$(cat "$scratch/between.port")")
refuses 'refused: somebody is in between' "a secret through somebody in between" "${with[@]}" "${at[@]}"
refused 'somebody is in between: the client sees another certificate' "  and the collector tells it"
if "$kprof" nodes "${at[@]}" "${with[@]}" >"$scratch/nodes.log" 2>&1; then fail "kprof nodes through somebody in between"; fi
has "$scratch/nodes.log" 'somebody is in between' "kprof nodes, likewise"
kill -KILL -- "-$between"
attach "${with[@]}" --tls-cert "$pki/shim.pem" --tls-key "$pki/shim.key" ||
  fail "kprof attach with a certificate: $(tail -n 2 "$scratch/attach.log")"
is "$(grep -c "node $name@localhost.* connected from " "$collector_log")" 1 "kprof attach with a certificate and the secret"
has "$scratch/attach.log" '^\{.*"identities"' "  and what it shows"
configured "{secret_file, \"$scratch/secret\"}" \
  "{tls, #{cacertfile => \"$pki/ours.pem\", certfile => \"$pki/shim.pem\", keyfile => \"$pki/shim.key\"}}"
alone || fail "kprof attach with a certificate and the secret in the configuration: $(tail -n 2 "$scratch/attach.log")"
has "$scratch/attach.log" '^\{.*"identities"' "and so with a certificate and the secret in a configuration"
status=0
attach "${with[@]}" || status=$?
is "$status|$(wc -l <"$scratch/attach.log")" "8|1" "kprof attach without a certificate: $(cat "$scratch/attach.log")"

mkdir "$scratch/heard"
start "$scratch/proxy.log" env HOME="$scratch/home" erl -noinput -pa "$SCENARIO_EBIN" "$KPROF_EBIN" \
  -run scenario_wire main proxy "$scratch/wire.port" \
  "$collector_port" "$scratch/heard" none
wait_for 20 "the proxy listens" test -s "$scratch/wire.port"
tracing_options=("${with[@]}" --tls-cert "$pki/shim.pem" --tls-key "$pki/shim.key" --collector "127.0.0.1:$(cat "$scratch/wire.port")")
start_tracing "$name"
load --clients 4 --think 5 --requests 3000 || fail "the load failed" # so that the guard has no reason to act
is "$(loaded connection_errors)" 0 "no request of the load failed"
save_truth
wait_for 15 "all requests are in the database" ledger_reaches requests_complete "$(truth_total)"
stop_tracing
stop_collector
tells_truth
nothing_lost "$name"
intact
holds "$(stat -c %s "$scratch/heard/2.client")" -gt 1000000 "bytes passed on the way"
has_not <(cat "$scratch"/heard/* | tr -c '[:print:]' '\n') "shop_|kprof|$name|trace_ts" "and none of them can be read"

# -- a shim with TLS at a collector without ------------------------------------------------------------------------------
collector_port=0 db=$scratch/plain.db
start_collector
refuses 'closed the connection instead of speaking TLS: was it started with --tls-cert' "TLS towards a collector without" \
  --tls-ca "$pki/ours.pem"
refused 'a TLS handshake; this collector was started without --tls-cert' "  and the collector tells it"
if "$kprof" nodes --collector "127.0.0.1:$collector_port" --tls-ca "$pki/ours.pem" >"$scratch/nodes.log" 2>&1; then
  fail "kprof nodes with TLS at a collector without"
fi
has "$scratch/nodes.log" \
  'closed the connection instead of speaking TLS; was it started with --tls-cert' "kprof nodes with TLS at a collector without"
stop_collector
