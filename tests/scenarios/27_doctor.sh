#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: kprof doctor says what is there when all is well, and finds each thing that is made to be wrong, with what to do
# and the right exit status; looking changes nothing in the node.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# doctor STATUS ARGUMENT...: what it says is in doctor.txt
doctor() {
  local want=$1 got=0
  shift
  HOME=$scratch/home timeout 600 "$kprof" doctor "$@" >"$scratch/doctor.txt" 2>"$scratch/doctor.err" || got=$?
  [ "$got" = "$want" ] || fail "kprof doctor $*: exit status $got, not $want: $(cat "$scratch/doctor.txt" "$scratch/doctor.err")"
}
says() { has "$scratch/doctor.txt" "$1" "doctor says: $1"; }
says_not() { has_not "$scratch/doctor.txt" "$1" "doctor does not say: $1"; }

# -- nothing is there --------------------------------------------------------------------------------------------------
doctor 1 --collector 127.0.0.1:1 --db "$scratch/none.db" "nobody_$$@localhost"
says '^ problem  collector 127.0.0.1:1: cannot be reached'
says '^ +-> .*--collector'
says '^ problem  database .*none.db: '
says "^ problem  node nobody_$$@localhost: "
says '^ 3 problems, 0 warnings$'
doctor 1 --collector 127.0.0.1:1 --db "$scratch/none.db" --json
is "$(sqlite3 :memory: \
  "SELECT j ->> '\$.problems', j ->> '\$.findings[0].level', j ->> '\$.findings[0].advice' IS NOT NULL, json_array_length(j, '\$.findings')
  FROM (SELECT readfile('$scratch/doctor.txt') AS j)")" "2|problem|1|2" "and so in JSON"
doctor 2 --collector nowhere:x
doctor 2 --frobnicate
doctor 0 --help

# -- a collector without nodes, an empty database ----------------------------------------------------------------------
start_collector
at=(--collector "127.0.0.1:$collector_port" --db "$db")
doctor 0 "${at[@]}"
says '^ ok       collector .*: runs, version [0-9.]+$'
says '^ warning  collector .*: no node has connected'
says '^ warning  database .*: holds no data yet'

# -- all is well -------------------------------------------------------------------------------------------------------
name=doctor_$$
start_shop "$name"
doctor 0 "${at[@]}" "$name@localhost"
says "^ ok       node $name@localhost: reached, OTP [0-9]+\$"
says "^ ok       node $name@localhost: nothing of kprof is in it"
is "$(target_eval "$name@localhost" '[M || {M, _} <- code:all_loaded(), lists:prefix("kprof", atom_to_list(M))].')" "[]" \
  "looking has loaded nothing"
start_tracing "$name"
load --clients 2 --think 5 --requests 200 || fail "the load failed"
wait_for 15 "all requests are in the database" ledger_reaches requests_complete 200
doctor 0 "${at[@]}" "$name@localhost"
says "^ ok       node $name@localhost: armed: 5 tiers, sampling all; "
says "^ ok       node $name@localhost: its clock is [0-9.]+ .s (ahead of|behind) the collector's"
says "^ ok       node $name@localhost: its clock is [0-9.]+ .s (ahead of|behind) this host's"
says "^ ok       node $name@localhost: kprof is in it: tracing"
says "^ ok       node $name@localhost: tier http, shop_http:handle_request/2: armed$"
is "$(grep -c ': tier .*: armed$' "$scratch/doctor.txt")" 5 "doctor names each armed function"
says '^ ok       database .*: [0-9.]+ MB, data until 20'
says '^ ok       database .*: 200 complete requests in the last hour, ok$'
says '^ 0 problems, 0 warnings$'

# -- the database cannot be written: somebody else holds its lock, as with a full disk ---------------------------------
exec {other}> >(sqlite3 -cmd '.timeout 10000' "$db" >"$scratch/other.log" 2>&1)
echo 'BEGIN IMMEDIATE;' >&"$other"
unwritten() {
  "$kprof" nodes --collector "127.0.0.1:$collector_port" 2>"$scratch/nodes.err" >"$scratch/nodes.txt"
  grep -q 'not been able to write its database for [0-9]* s' "$scratch/nodes.err"
}
written() { ! unwritten; }
wait_for 60 "the collector says that it cannot write" unwritten
doctor 1 "${at[@]}"
says '^ problem  collector .*: has not been able to write its database for [0-9]+ s$'
says '^ +-> make room on its disk'
exec {other}>&-
wait_for 60 "the collector writes again" written
doctor 0 "${at[@]}"

# -- one thing after the other goes wrong ------------------------------------------------------------------------------
echo wrong >"$scratch/home/wrong.cookie"
chmod 400 "$scratch/home/wrong.cookie"
doctor 1 "${at[@]}" --cookie-file "$scratch/home/wrong.cookie" "$name@localhost"
says "^ problem  node $name@localhost: .*cookie"
install -m 644 "$scratch/cookie" "$scratch/COOKIE"
doctor 0 "${at[@]}" --cookie-file "$scratch/COOKIE" "$name@localhost"
says "^ warning  node $name@localhost: the cookie file $scratch/COOKIE can be read by others than its owner"
"$kprof" trace "$name@localhost" pause --collector "127.0.0.1:$collector_port" >"$scratch/trace.log" || fail "kprof trace pause"
doctor 0 "${at[@]}"
says "^ warning  node $name@localhost: paused with kprof trace: nothing is armed"
says '^ +-> kprof trace NODE resume$'
"$kprof" trace "$name@localhost" resume --collector "127.0.0.1:$collector_port" >"$scratch/trace.log" || fail "kprof trace resume"
"$kprof" trace "$name@localhost" pause --collector "127.0.0.1:$collector_port" >"$scratch/trace.log" || fail "kprof trace pause"
doctor 0 "${at[@]}" "$name@localhost"
says "^ ok       node $name@localhost: tier http, shop_http:handle_request/2: not armed now$"
"$kprof" trace "$name@localhost" resume --collector "127.0.0.1:$collector_port" >"$scratch/trace.log" || fail "kprof trace resume"
# somebody else's pattern in the place of ours; from OTP 27 on beside it
target_eval "$name@localhost" "erlang:trace_pattern({shop_http, handle_request, 2}, [{'_', [], [{message, theirs}]}], [local])." >/dev/null
doctor 0 "${at[@]}" "$name@localhost"
if [ "$(target_eval "$name@localhost" 'scenario_beside:sessions().')" = true ]; then
  says "^ ok       node $name@localhost: tier http, shop_http:handle_request/2: armed$"
  target_eval "$name@localhost" \
    "spawn(fun() -> S = trace:session_create(theirs, self(), []), receive S -> ok end end), timer:sleep(200)." >/dev/null
  doctor 0 "${at[@]}" "$name@localhost"
  says "^ ok       node $name@localhost: others trace here, beside kprof: theirs"
else
  says "^ warning  node $name@localhost: tier http, shop_http:handle_request/2: somebody else's trace pattern is there$"
fi
target_eval "$name@localhost" "erlang:trace_pattern({shop_http, handle_request, 2}, false, [local])." >/dev/null
stop_tracing
doctor 0 "${at[@]}" "$name@localhost"
says "^ warning  node $name@localhost: not connected"
says "^ ok       node $name@localhost: nothing of kprof is in it"

# a tracer that is there before kprof
if [ "$(target_eval "$name@localhost" 'scenario_beside:sessions().')" = false ]; then
  target_eval "$name@localhost" "spawn(fun() -> erlang:trace(new, true, [call]), receive never -> ok end end), timer:sleep(100)." >/dev/null
  doctor 0 "$name@localhost" "${at[@]}"
  says "^ warning  node $name@localhost: somebody else traces new processes there$"
fi

# a function of Elixir's that is not there, and an entry
start_erl "elixir_$$" -pa "$KPROF_EBIN"
target_eval "elixir_$$@localhost" \
  "ok = kprof:start(), kprof:start_trace([{entry, {lists, seq, 2}}, {tier_config, [{repo, {'Elixir.MyApp.Repo', all, 2}}]},
                                         {collector, {\"127.0.0.1\", $collector_port}}])." >/dev/null
doctor 0 "${at[@]}" "elixir_$$@localhost"
says "^ warning  node elixir_$$@localhost: tier repo, MyApp.Repo.all/2: not on this node yet; it is armed once it is loaded$"
says "^ ok       node elixir_$$@localhost: entry lists:seq/2: armed$"
target_eval "elixir_$$@localhost" "kprof:stop_trace()." >/dev/null

# clocks, versions and losses of a node that is simulated
start_erl "sim_$$" -pa "$KPROF_EBIN"
target_eval "sim_$$@localhost" \
  "P = spawn(fun() -> scenario_many:strange($collector_port, 3), receive never -> ok end end),
   timer:sleep(700), is_process_alive(P)." >/dev/null
doctor 0 "${at[@]}"
says '^ warning  node sim3@host3: its shim is of version 9.9.9'
says "^ warning  node sim3@host3: its clock is 1[0-9.]+ (s|min|h) ahead of the collector's"
says '^ warning  node sim3@host3: connected, nothing is armed'
doctor 0 "${at[@]}" --json
is "$(sqlite3 :memory: "SELECT count(*) > 0 FROM json_each(readfile('$scratch/doctor.txt'), '$.findings')
  WHERE value ->> 'about' = 'node sim3@host3.example.org'")" 1 "with its short host; in JSON with all of it"
stop_collector
doctor 1 "${at[@]}"
says '^ problem  collector'

# -- a secret and TLS ----------------------------------------------------------------------------------------------------
(umask 077
openssl rand -hex 32 >"$scratch/secret"
openssl rand -hex 32 >"$scratch/other"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
  -addext subjectAltName=DNS:collector.example \
  -keyout "$scratch/tls.key" -out "$scratch/tls.pem" >"$scratch/openssl.log" 2>&1)
collector_port=0 db=$scratch/tls.db
start_collector --secret-file "$scratch/secret" --tls-cert "$scratch/tls.pem" --tls-key "$scratch/tls.key"
at=(--collector "127.0.0.1:$collector_port" --tls-ca "$scratch/tls.pem" --tls-name collector.example)
doctor 0 "${at[@]}" --secret-file "$scratch/secret"
says '^ ok       collector .*: runs, version [0-9.]+$'
doctor 1 "${at[@]}" --secret-file "$scratch/other"
says '^ problem  collector .*: cannot be reached: it said: wrong secret$'
doctor 1 "${at[@]}"
says '^ problem  collector .*: cannot be reached: it said: this collector demands its secret'
doctor 1 --collector "127.0.0.1:$collector_port" --secret-file "$scratch/secret"
says '^ problem  collector .*: cannot be reached: it said: this collector speaks TLS: start with --tls-ca'
is "$(cat "$scratch/doctor.err")" "" "all of it among the findings"
stop_collector
