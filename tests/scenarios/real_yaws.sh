#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: yaws, as Debian has it, serves dynamic pages to clients that keep their connections; kprof, which it knows nothing of,
# counts each request once and tells its time within what the clients measured.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$(dirname "${BASH_SOURCE[0]}")/debian.sh"
source "$(dirname "${BASH_SOURCE[0]}")/real.sh"

debian yaws
port=$(free_port)
mkdir -p "$scratch/www" "$scratch/yaws"
cat >"$scratch/yaws.conf" <<END
logdir = $scratch/yaws
ebin_dir = $scratch/yaws
include_dir = $root/usr/lib/yaws/include
max_connections = nolimit
trace = false
fail_on_bind_err = true
<server localhost>
  port = $port
  listen = 127.0.0.1
  docroot = $scratch/www
</server>
END
cat >"$scratch/www/list.yaws" <<'END'
<html><body>
<erl>
out(A) ->
    {ok, N} = yaws_api:queryvar(A, "n"),
    {ehtml, [{ul, [], [{li, [], integer_to_list(I)} || I <- lists:seq(1, list_to_integer(N))]}]}.
</erl>
</body></html>
END
cat >"$scratch/www/waits.yaws" <<'END'
<erl>
out(A) ->
    Self = self(),
    spawn_link(fun() -> timer:sleep(4), Self ! {answer, lists:keysort(1, yaws_api:parse_query(A))} end),
    receive {answer, Query} -> {html, io_lib:format("~p", [Query])} end.
</erl>
END
cat >"$scratch/www/posted.yaws" <<'END'
<erl>
out(A) -> {html, [integer_to_list(length(yaws_api:parse_post(A))), " fields of ", "the form"]}.
</erl>
END
cat >"$scratch/requests" <<'END'
{"GET /list.yaws?n=50", "GET", "/list.yaws?n=50", [], ""}.
{"GET /waits.yaws?x=1", "GET", "/waits.yaws?x=1", [], ""}.
{"POST /posted.yaws", "POST", "/posted.yaws", [{"Content-Type", "application/x-www-form-urlencoded"}], "a=1&b=2&c=3"}.
{"GET /list.yaws?n=2000", "GET", "/list.yaws?n=2000", [], ""}.
END
start_system -pa "$root/usr/lib/yaws/ebin" -conf "$scratch/yaws.conf" -run yaws
wait_for 20 "yaws listens" listening "$port"
load_http "$port" 2 40 0 # pages are compiled when they are first asked for
before=$(state)
attach_options=(--entry yaws_server:call_method/5 \
  --tier request=yaws_server:call_method/5 --tier page=yaws_server:deliver_dyn_part/8 \
  --tier send=yaws_server:deliver_accumulated/4 \
  --identity 'fun({yaws_server, call_method, [Method, _, _, {http_request, _, {abs_path, Path}, _}, _]}) -> {Method, Path};
                  (_) -> undefined end')
attach_and_load "$port" 8 400 8
"$kprof" report --db "$db"
told() { sql "SELECT CAST($1 AS INTEGER) FROM tier_stats WHERE resolution_s = 3600 AND identity = '$2' AND tier = '$3'"; }
holds "$(told 'sum(total_us) / sum(calls)' 'GET /waits.yaws?x=1' _total)" -ge 4000 "a page that sleeps 4 ms takes them, us"
if [ "$lowered" -eq 0 ]; then
  complete=$(ledger requests_complete)
  for tier in request page; do is "$(told 'sum(calls)' _total $tier)" "$complete" "calls of the tier $tier: one a request"; done
fi
detach_system
is "$(state)" "$before" "yaws is as it was before"
stop_collector
intact
