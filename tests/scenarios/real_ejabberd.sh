#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: users register with ejabberd, as Debian has it, over its HTTP API, log in, and get messages. kprof, which the server
# knows nothing of, counts each request once and tells its time within what the clients measured.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$(dirname "${BASH_SOURCE[0]}")/debian.sh"
source "$(dirname "${BASH_SOURCE[0]}")/real.sh"

debian ejabberd
port=$(free_port)
ebins=("$root"/usr/lib/*/ejabberd-*/ebin/mod_http_api.beam)
mkdir -p "$scratch/mnesia"
cat >"$scratch/ejabberd.yml" <<END
hosts: [localhost]
loglevel: warning
auth_method: internal
auth_password_format: plain
listen:
  -
    port: $port
    ip: "127.0.0.1"
    module: ejabberd_http
    request_handlers:
      /api: mod_http_api
api_permissions:
  "all":
    who: all
    what: "*"
modules:
  mod_admin_extra: {}
  mod_roster: {}
  mod_offline: {}
  mod_last: {}
END
# Users are registered and unregistered again, so that there are many, and not ever more.
{
  for user in {1..20}; do
    of_user="\\\"user\\\":\\\"CLIENT-u$user\\\",\\\"host\\\":\\\"localhost\\\""
    echo "{\"register\", \"POST\", \"/api/register\", [], \"{$of_user,\\\"password\\\":\\\"p$user\\\"}\"}."
    echo "{\"check_password\", \"POST\", \"/api/check_password\", [], \"{$of_user,\\\"password\\\":\\\"p$user\\\"}\"}."
    message="\\\"from\\\":\\\"boss@localhost\\\",\\\"to\\\":\\\"CLIENT-u$user@localhost\\\""
    message+=",\\\"subject\\\":\\\"\\\",\\\"body\\\":\\\"hello\\\""
    echo "{\"send_message\", \"POST\", \"/api/send_message\", [], \"{\\\"type\\\":\\\"chat\\\",$message}\"}."
    echo "{\"registered_users\", \"POST\", \"/api/registered_users\", [], \"{\\\"host\\\":\\\"localhost\\\"}\"}."
  done
  for user in {1..20}; do
    echo "{\"unregister\", \"POST\", \"/api/unregister\", [], \"{\\\"user\\\":\\\"CLIENT-u$user\\\",\\\"host\\\":\\\"localhost\\\"}\"}."
  done
} >"$scratch/requests"
# its config is read through the environment
export EJABBERD_CONFIG_PATH=$scratch/ejabberd.yml EJABBERD_LOG_PATH=$scratch/ejabberd.log
start_system -pa "$(dirname "${ebins[0]}")" -mnesia dir "\"$scratch/mnesia\"" -s ejabberd
wait_for 60 "the API listens" listening "$port"
load_http "$port" 2 100 0 # modules are loaded when they are first needed
before=$(state)
attach_options=(--entry mod_http_api:process/2 \
  --tier api=mod_http_api:process/2 --tier command=ejabberd_commands:execute_command2/4 --tier auth=ejabberd_auth:check_password/4 \
  --tier register=ejabberd_auth:try_register/3 --tier route=ejabberd_router:route/1 --tier offline=mod_offline:store_offline_msg/1 \
  --identity 'fun({mod_http_api, process, [[Command | _], _]}) -> Command; (_) -> undefined end')
# mnesia's locker grants one process its lock while it works for another one, and under that one's token. A password is checked in a tenth
# of the time that its client waits, or less where that one waits for a processor.
may_lose=10 least=2 attach_and_load "$port" 8 400 8
"$kprof" report --db "$db"
if [ "$lowered" -eq 0 ]; then
  for tier in command auth register route; do holds "$(calls $tier)" -ge 400 "calls of the tier $tier"; done
fi
draws "$port" mod_http_api:process/2
detach_system
is "$(state)" "$before" "the server is as it was before"
load_http "$port" 2 100 0
is "$(awk -F'|' '$3 > 0' "$scratch/seen")" "" "and serves as before"
stop_collector
intact
