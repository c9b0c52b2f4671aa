#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: the management API of rabbitmq-server, as Debian has it, under load: each request runs in a process of its own below a
# cowboy that keeps connections, asks the broker's processes, and hands its answer to another process. kprof, which the server knows nothing
# of, counts each request once and tells its time within what the clients measured.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$(dirname "${BASH_SOURCE[0]}")/debian.sh"
source "$(dirname "${BASH_SOURCE[0]}")/real.sh"

debian rabbitmq-server
port=$(free_port)
home=$(echo "$root"/usr/lib/rabbitmq/lib/rabbitmq_server-*)
mkdir -p "$scratch/mnesia" "$scratch/log"
echo '[rabbitmq_management].' >"$scratch/plugins"
: >"$scratch/env.conf"
cat >"$scratch/rabbitmq.conf" <<END
listeners.tcp.1 = 127.0.0.1:$(free_port)
management.tcp.ip = 127.0.0.1
management.tcp.port = $port
log.console = true
log.console.level = warning
END

queue=/api/queues/%2F/q
json='[{"Authorization", "Basic Z3Vlc3Q6Z3Vlc3Q="}, {"Content-Type", "application/json"}]'
cat >"$scratch/requests" <<END
{"PUT $queue", "PUT", "$queue", $json, "{}"}.
{"POST /api/exchanges/%2F/amq.default/publish", "POST", "/api/exchanges/%2F/amq.default/publish", $json,
 "{\"properties\":{},\"routing_key\":\"q\",\"payload\":\"some payload\",\"payload_encoding\":\"string\"}"}.
{"POST $queue/get", "POST", "$queue/get", $json, "{\"count\":5,\"ackmode\":\"ack_requeue_false\",\"encoding\":\"auto\"}"}.
{"GET /api/overview", "GET", "/api/overview", $json, ""}.
{"GET /api/queues", "GET", "/api/queues", $json, ""}.
{"GET /api/users", "GET", "/api/users", $json, ""}.
{"PUT /api/users/a", "PUT", "/api/users/a", $json, "{\"password\":\"a\",\"tags\":\"\"}"}.
{"GET /api/aliveness-test/%2F", "GET", "/api/aliveness-test/%2F", $json, ""}.
END
start "$scratch/$name.log" env HOME="$scratch/home" ERL_LIBS="$root/usr/lib/erlang/lib" RABBITMQ_NODENAME="$name@localhost" \
  RABBITMQ_MNESIA_BASE="$scratch/mnesia" RABBITMQ_LOG_BASE="$scratch/log" RABBITMQ_LOGS=- RABBITMQ_ENABLED_PLUGINS_FILE="$scratch/plugins" \
  RABBITMQ_CONF_ENV_FILE="$scratch/env.conf" RABBITMQ_CONFIG_FILE="$scratch/rabbitmq.conf" RABBITMQ_PID_FILE="$scratch/pid" \
  RABBITMQ_DIST_PORT="$(free_port)" RABBITMQ_GENERATED_CONFIG_DIR="$scratch/generated" RABBITMQ_FEATURE_FLAGS_FILE="$scratch/flags" \
  "$home/sbin/rabbitmq-server"
wait_for 90 "the management API listens" listening "$port"
wait_for 30 "it is all there" grep -q 'completed with .* plugins' "$scratch/$name.log"
load_http "$port" 2 40 0 # modules are loaded when they are first needed
before=$(state)
attach_options=(--entry cowboy_stream_h:request_process/3 \
  --tier http=cowboy_stream_h:request_process/3 --tier rest=cowboy_rest:upgrade/4 \
  --tier login=rabbit_auth_backend_internal:user_login_authentication/2 --tier augment=rabbit_mgmt_db:augment_queues/3 \
  --tier channel=rabbit_channel:handle_method/6 \
  --identity 'fun({cowboy_stream_h, request_process, [Request, _, _]}) -> {map_get(method, Request), map_get(path, Request)};
                  (_) -> undefined end')
# the overview is worked out once for all who ask at that time, and answered to each of them under one token
may_lose=150 attach_and_load "$port" 8 400 8
"$kprof" report --db "$db"
if [ "$lowered" -eq 0 ]; then
  holds "$(calls login)" -ge 3200 "each has been authenticated"
  for tier in augment channel; do holds "$(calls $tier)" -ge 400 "calls of the tier $tier"; done
fi
# all of the broker would be some 2,000 calls a request
draws "$port" cowboy_stream_h:request_process/3 --app rabbitmq_management --app cowboy --app rabbitmq_web_dispatch
detach_system
is "$(state)" "$before" "the server is as it was before"
load_http "$port" 2 40 0
is "$(awk -F'|' '$3 > 0' "$scratch/seen")" "" "and serves as before"
stop_collector
intact
