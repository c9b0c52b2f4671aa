#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: what the collector cannot do it says in one clear line, with the exit status that --help names, and
# whatever file was in its way is left as it was. SIGHUP brings other keys.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# refuses STATUS PATTERN WHAT ARGUMENT...: it ends at once with this status and one line that matches.
refuses() {
  local want=$1 pattern=$2 what=$3 status=0
  shift 3
  timeout 200 "$collector" "$@" >"$scratch/refusal.out" 2>"$scratch/refusal.log" || status=$?
  [ "$status" = "$want" ] || fail "$what: exit status $status, not $want: $(cat "$scratch/refusal.log")"
  if [ "$(wc -l <"$scratch/refusal.log")" != 1 ] || [ -s "$scratch/refusal.out" ]; then
    fail "$what: not one line but: $(cat "$scratch/refusal.log" "$scratch/refusal.out")"
  fi
  has "$scratch/refusal.log" "$pattern" "$what: $(cat "$scratch/refusal.log")"
}
sum() { cat "$@" | sha256sum; }

# -- the command line --------------------------------------------------------------------------------------------------
new=$scratch/new.db
refuses 2 'listen.*missing' "no --listen" --db "$new"
refuses 2 '\-\-db.*missing' "no --db" --listen 0
refuses 2 'unknown option.*--frobnicate' "an unknown option" --listen 0 --db "$new" --frobnicate
refuses 2 'unexpected argument' "an argument too many" --listen 0 --db "$new" more
refuses 2 '\-\-db needs a value' "an option without its value" --listen 0 --db
for port in '' x 65536 -1 4711x 127.0.0.1: ; do refuses 2 'want \[ADDR:\]PORT' "the port '$port'" --listen "$port" --db "$new"; done
refuses 2 'not an IP address' "a host name" --listen example.org:4711 --db "$new"
for address in 0.0.0.0 192.0.2.1 '[::]'; do
  refuses 2 'other machines can connect.*--secret-file FILE' "the address $address" --listen "$address:4711" --db "$new"
done
refuses 2 '--secret-file .*nowhere: No such file' "a secret that is not there" --listen 0 --db "$new" --secret-file "$scratch/nowhere"
refuses 2 '--secret-file .*run: not a file' "a folder as secret" --listen 0 --db "$new" --secret-file "$scratch/run"
# secret MODE TEXT PATTERN WHAT
secret() {
  (umask 077; printf '%s' "$2" >"$scratch/secret")
  chmod "$1" "$scratch/secret"
  refuses 2 "--secret-file .*secret: $3" "$4" --listen 0.0.0.0:0 --db "$new" --secret-file "$scratch/secret"
  rm -f "$scratch/secret"
}
secret 644 0123456789abcdef 'mode 644 opens .* chmod 600' "a secret that everybody can read"
secret 602 0123456789abcdef 'mode 602 opens .* chmod 600' "a secret that everybody can write"
secret 600 '' 'the file is empty.*openssl rand' "an empty secret"
secret 600 0123456789abcde 'a secret has 16 to 1024 bytes, this one fewer.*openssl rand' "a secret that is too short"
for bucket in 0 7 -1 x 7200; do refuses 2 '\-\-bucket' "--bucket $bucket" --listen 0 --db "$new" --bucket "$bucket"; done
refuses 2 '\-\-flush' "--flush 0" --listen 0 --db "$new" --flush 0
refuses 2 '\-\-request-timeout' "--request-timeout never" --listen 0 --db "$new" --request-timeout never
refuses 2 '\-\-record.*not a folder' "--record of no folder" --listen 0 --db "$new" --record "$scratch/nowhere"
refuses 2 '\-\-stats-log' "--stats-log that cannot be written" --listen 0 --db "$new" --stats-log "$scratch/nowhere/log"
[ ! -e "$new" ] || fail "a database was made although nothing ran"
ok "nothing was made"

# -- the port ----------------------------------------------------------------------------------------------------------
start_collector
refuses 3 "cannot listen on 127.0.0.1:$collector_port: .*in use" "a port in use" --listen "$collector_port" --db "$new"

# -- the database ------------------------------------------------------------------------------------------------------
refuses 4 "$(basename "$db").*(in use|another|already)" "the database of another collector" --listen 0 --db "$db"
is "$(sql 'PRAGMA integrity_check')" ok "which is intact"
stop_collector

refuses 4 'nowhere' "a folder that is not there" --listen 0 --db "$scratch/nowhere/kprof.db"
refuses 4 'run' "a folder as database" --listen 0 --db "$scratch/run"

head -c 100000 /dev/urandom >"$scratch/random"
echo 'This is my diary.' >"$scratch/diary.txt"
sqlite3 "$scratch/other.db" 'CREATE TABLE mine (x); INSERT INTO mine VALUES (1); PRAGMA user_version = 7'
cp "$db" "$scratch/newer.db"
sqlite3 "$scratch/newer.db" 'PRAGMA user_version = 999; PRAGMA wal_checkpoint(TRUNCATE)' >/dev/null
# foreign FILE WHAT PATTERN
foreign() {
  local before files
  before=$(sum "$scratch/$1")
  files=$(ls "$scratch")
  refuses 5 "$3" "$2" --listen 0 --db "$scratch/$1"
  is "$(sum "$scratch/$1")" "$before" "  and the file is untouched"
  is "$(ls "$scratch")" "$files" "  and nothing lies beside it"
}
foreign random "random bytes as database" 'random.*(not|no) .*database'
foreign diary.txt "a text as database" 'diary.*(not|no) .*database'
foreign other.db "somebody else's database" 'other.db.*(not|no) .*kprof'
foreign newer.db "a database of a newer kprof" 'newer.db.*newer'
is "$(sqlite3 "$scratch/other.db" 'SELECT x FROM mine; PRAGMA user_version')" "1
7" "somebody else's data is all there"

if [ "$(id -u)" -ne 0 ]; then
  cp "$db" "$scratch/readonly.db"
  chmod 444 "$scratch/readonly.db"
  refuses 4 'readonly.db' "a database that may not be written" --listen 0 --db "$scratch/readonly.db"
fi

# -- other keys, with SIGHUP ---------------------------------------------------------------------------------------------
(umask 077; echo 0123456789abcdef >"$scratch/secret.old"; echo fedcba9876543210 >"$scratch/secret.new"
 for i in 1 2; do
   openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=localhost" \
     -addext subjectAltName=DNS:localhost -keyout "$scratch/key.$i" -out "$scratch/cert.$i" 2>/dev/null
 done
 cp "$scratch/secret.old" "$scratch/secret"; cp "$scratch/key.1" "$scratch/key"; cp "$scratch/cert.1" "$scratch/cert")
start_collector --secret-file "$scratch/secret" --tls-cert "$scratch/cert" --tls-key "$scratch/key"
# asks SECRET CERT: whether a tool gets in with them
asks() {
  "$kprof" nodes --collector "localhost:$collector_port" --secret-file "$scratch/secret.$1" --tls-ca "$scratch/cert.$2" >/dev/null 2>&1
}
told() { [ "$(grep -c "SIGHUP: $1" "$collector_log")" -eq "$2" ]; }
asks old 1 || fail "the first keys"
echo short >"$scratch/secret"
kill -HUP "$collector_pid"
wait_for 5 "bad keys are told" told 'secret and certificates stay as they were' 1
asks old 1 || fail "keys that are no use change nothing"
cp "$scratch/secret.new" "$scratch/secret"; cp "$scratch/key.2" "$scratch/key"; cp "$scratch/cert.2" "$scratch/cert"
kill -HUP "$collector_pid"
wait_for 5 "other keys are told" told 'secret and certificates are read again' 1
asks new 2 || fail "the new keys"
asks old 2 && fail "the old secret"
asks new 1 && fail "the old certificate"
ok "SIGHUP brings the new secret and certificate"
stop_collector

# An empty file is nobody's: it becomes a database.
db=$scratch/empty.db
: >"$db"
start_collector
stop_collector
intact
"$collector" --help >"$scratch/help.txt"
is "$("$collector" --version)" "kprof-collector $(sed -n 's/^project(kprof VERSION \([0-9.]*\).*/\1/p' "$top/CMakeLists.txt")" "--version"
has "$scratch/help.txt" '^Exit status' "--help tells the exit statuses"
