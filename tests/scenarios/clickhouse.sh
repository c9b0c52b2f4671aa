# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# A ClickHouse for scenarios and the benchmark, with one user, kprof, and a password. Sourced behind their lib.sh, never run.
#   ENGINE   debian (which is of 2018), or today: the one that npm has, as a library, behind an HTTP server of ours
source "$(dirname "${BASH_SOURCE[0]}")/ports.sh"

engine_password='of the-engine\one'
engine_log=$scratch/clickhouse.log
engine_pid=

# Writes its configuration, with ports that nobody has now: engine_port speaks HTTP, engine_tls_port TLS, with a certificate for localhost
# and far.localhost from the authority engine_ca, engine_tcp_port what clickhouse-client speaks. Data lies in $scratch/clickhouse.
make_engine() {
  local dir=$scratch/clickhouse
  mkdir -p "$dir"
  engine_port=$(free_port) engine_tls_port=$(free_port) engine_tcp_port=$(free_port)
  engine_ca=$dir/ca.pem
  # shellcheck disable=SC2015
  { openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=kprof-test-ca -keyout "$dir/ca.key" -out "$engine_ca" &&
    openssl req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout "$dir/server.key" -out "$dir/server.csr" &&
    openssl x509 -req -in "$dir/server.csr" -CA "$engine_ca" -CAkey "$dir/ca.key" -CAcreateserial -days 30 \
      -extfile <(echo subjectAltName=DNS:localhost,DNS:far.localhost) -out "$dir/server.pem" &&
    openssl dhparam -dsaparam -out "$dir/dh.pem" 2048; } >"$dir/openssl.log" 2>&1 || fail "openssl: $(tail -n 3 "$dir/openssl.log")"
  cat >"$dir/config.xml" <<END_OF_CONFIG
<yandex>
  <logger><level>none</level><console>1</console></logger>
  <listen_host>127.0.0.1</listen_host>
  <http_port>$engine_port</http_port>
  <tcp_port>$engine_tcp_port</tcp_port>
  <https_port>$engine_tls_port</https_port>
  <openSSL><server>
    <certificateFile>$dir/server.pem</certificateFile><privateKeyFile>$dir/server.key</privateKeyFile>
    <dhParamsFile>$dir/dh.pem</dhParamsFile><verificationMode>none</verificationMode>
  </server></openSSL>
  <path>$dir/</path><tmp_path>$dir/tmp/</tmp_path>
  <mark_cache_size>16777216</mark_cache_size>
  <users_config>$dir/users.xml</users_config><default_profile>default</default_profile><default_database>default</default_database>
  <timezone>Asia/Tokyo</timezone>
</yandex>
END_OF_CONFIG
  cat >"$dir/users.xml" <<END_OF_USERS
<yandex>
  <profiles><default><max_memory_usage>4000000000</max_memory_usage></default></profiles>
  <users><kprof>
    <password>$engine_password</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota>
  </kprof></users>
  <quotas><default/></quotas>
</yandex>
END_OF_USERS
}

engine_answers() { [ "$(engine 'SELECT 1' 2>/dev/null)" = 1 ]; }

# Without npm's package the scenario ends, unjudged.
engine_modules() {
  # shellcheck source=../page/modules.sh
  source "$top/tests/page/modules.sh"
  page_modules "$scratch/npm.log" "$top/tests/clickhouse" ||
    { unjudged+=("today's ClickHouse: npm cannot get it ($(tail -n 1 "$scratch/npm.log"))"); exit 0; }
}

start_engine() {
  [ ! -f "$engine_log" ] || mv "$engine_log" "$engine_log.$RANDOM.log"
  if [ "${ENGINE:-debian}" = today ]; then
    engine_modules
    start "$engine_log" node "$top/tests/clickhouse/front.mjs" "$scratch/clickhouse" "$engine_port" "$engine_tls_port" \
      "$modules/node_modules"
  else
    start "$engine_log" clickhouse-server --config-file="$scratch/clickhouse/config.xml"
  fi
  engine_pid=$!
  wait_for 30 "ClickHouse answers" engine_answers
}

kill_engine() {
  kill -KILL "$engine_pid"
  ends "$engine_pid" 20
}

# engine QUERY: what it answers, tab separated, within engine_seconds.
engine_seconds=60
engine() {
  curl -sS --fail-with-body --max-time "$engine_seconds" -H 'X-ClickHouse-User: kprof' -H "X-ClickHouse-Key: $engine_password" \
    "http://127.0.0.1:$engine_port/" --data-binary "$1"
}
