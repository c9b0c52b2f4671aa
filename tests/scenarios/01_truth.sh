#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: what kprof says about a live node is the truth, to the last call, and it leaves nothing behind: a shop
# under load is traced through start_kprof_node.sh, and compared with what the shop counted itself; afterwards the node
# is as it was before.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

name=truth_$$
start_collector
# Costs that stand out of the noise: 200 units of about a microsecond and more.
start_shop "$name" --http-cost 200 --storage-cost 300 --render-cost 100 --accounting-wait-ms 5

# Everything of the node that tracing changes. Processes come and go: what their flags are is compared, not how many there are.
state() {
  target_eval "$name@localhost" '
    Kprof = fun(T) -> string:find(io_lib:format("~0p", [T]), "kprof") =/= nomatch end,
    Of = fun(Item) -> lists:usort([I || P <- processes(), {_, I} <- [erlang:trace_info(P, Item)]]) end,
    {[Of(flags), Of(tracer), scenario_trace:sessions()],
     [erlang:trace_info(W, I) || W <- [new, new_processes, new_ports], I <- [flags, tracer]],
     lists:usort([erlang:trace_info(MFA, all) || {_, MFA} <- shop_truth:tiers()]),
     lists:usort([I || {M, _} <- code:all_loaded(), atom_to_list(M) =/= "shop_trace", {F, A} <- M:module_info(functions),
                       {_, I} <- [erlang:trace_info({M, F, A}, traced)], I =/= false]),
     [M || {M, _} <- code:all_loaded(), Kprof(M)],
     [K || {K, _} <- persistent_term:get(), Kprof(K)],
     [T || T <- ets:all(), Kprof(T)],
     [N || N <- registered(), Kprof(N)],
     [A || {A, _, _} <- application:loaded_applications(), Kprof(A)],
     [P || P <- erlang:ports(), {_, "trace_ip" ++ _} <- [erlang:port_info(P, name)]],
     seq_trace:get_system_tracer(), code:which(kprof), erlang:function_exported(kprof, do_apply, 3)}.'
}
before=$(state)
start_tracing "$name"
[ "$(state)" != "$before" ] || fail "the state of the node does not show that it is traced"
ok "the state of the node shows that it is traced"

watch
load --clients 8 --think 5 --requests 1600 || fail "the load failed"
unwatch
is "$(loaded connection_errors)" 0 "no connection of the load failed"
save_truth
is "$(truth_total)" 1600 "the shop counted every request"
wait_for 15 "all requests are in the database" ledger_reaches requests_complete 1600

stop_tracing
is "$(state)" "$before" "the node is as it was before"
"$kprof" report --db "$db" >"$scratch/report.txt" || fail "kprof report failed"
"$kprof" report --db "$db" --json >"$scratch/report.json" || fail "kprof report --json failed"
stop_collector

tells_truth
nothing_lost "$name"
counted_once
intact
is "$(sql "SELECT count(*) FROM tier_stats WHERE tier = '_total' AND errors > 0 AND identity = 'order'")" \
   "$(sql "SELECT count(*) FROM tier_stats WHERE tier = 'http' AND errors > 0 AND identity = 'order'")" \
   "failed requests are errors of their tiers too"
holds "$(sql "SELECT sum(errors) FROM tier_stats WHERE resolution_s = 3600 AND tier = '_total' AND identity = '_total'")" -gt 0 \
   "some requests failed"

# The shop measures inside the traced function, so kprof's time is never shorter, and not much longer.
times=$(sqlite3 "$db" "
  WITH t AS (SELECT tier.key AS tier, route.key AS identity, route.value ->> 'calls' AS calls, route.value ->> 'inclusive_ns' AS ns
             FROM json_each(readfile('$scratch/truth.json'), '\$.tiers') AS tier, json_each(tier.value) AS route),
       k AS (SELECT tier, identity, sum(mean_us * calls) * 1000 AS ns, min(min_us) AS least, max(max_us) AS most
             FROM tier_stats WHERE resolution_s = 10 GROUP BY tier, identity)
  SELECT t.tier, t.identity, t.calls, round(t.ns / 1000.0 / t.calls, 1) AS truth_us, round(k.ns / 1000.0 / t.calls, 1) AS kprof_us,
         CASE WHEN k.ns < t.ns - t.calls THEN 'too short'
              WHEN k.ns > 1.5 * t.ns + 1000000.0 * t.calls THEN 'too long'
              WHEN k.least > k.ns / 1000 / t.calls + 0.01 OR k.most < k.ns / 1000 / t.calls - 0.01 THEN 'min and max do not fit'
              ELSE 'fits' END
  FROM t LEFT JOIN k USING (tier, identity) WHERE t.calls > 0 ORDER BY 1, 2")
echo "$times"
is "$(grep -cv '\(fits\|too long\)$' <<<"$times" || true)" 0 "kprof's mean times are the truth's, and over"
timely "$(grep -c 'too long$' <<<"$times" || true)" -eq 0 "but a little"
is "$(sql "SELECT count(*) FROM tier_stats WHERE NOT (min_us <= p25_us AND p25_us <= p50_us AND p50_us <= p75_us
           AND p75_us <= p90_us AND p90_us <= p95_us AND p95_us <= p99_us AND p99_us <= p999_us AND p999_us <= max_us)")" 0 \
   "quantiles are in order"
holds "$(sql "SELECT sum(async_calls) FROM tier_stats WHERE resolution_s = 10 AND tier = 'accounting' AND identity = '_total'")" -gt 0 \
   "bookings outlive their requests"

has "$scratch/report.txt" 'Totals across all calls:.* 1600 +[0-9]+$' "the report shows the total"
is "$(sqlite3 :memory: "SELECT value ->> 'calls' FROM json_each(readfile('$scratch/report.json'), '\$.rows')
      WHERE value ->> 'tier' = '_total' AND value ->> 'identity' = '_total'")" 1600 "and so does its JSON"
