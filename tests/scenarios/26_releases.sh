#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: the kprof node and its target may run different releases of OTP. What an older release compiled is loaded as it is;
# what a newer one compiled is compiled again on the target, and where that has no compiler this is said in one line.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

newest=29
own=$(erl -noinput -boot start_clean -eval 'io:put_chars(erlang:system_info(otp_release)), halt().')
# shellcheck disable=SC2016  # for the inner shell
bin=$("$top/scripts/otp.sh" --no-download "$newest" bash -c 'dirname "$(command -v erl)"') || exit 77
[ "$own" -lt "$newest" ] || { echo "this is OTP $newest itself"; exit 77; }
PATH=$bin:$PATH escript "$top/scripts/build_shim.escript" "$top/shim" "$scratch/newer" || fail "OTP $newest cannot compile the shim"
echo '{tier_config, [{tick, {scenario_flood, tick, 1}}]}.' >"$scratch/config"
start_collector

# requests NAME: fifty, and every one is counted with its calls.
requests() {
  local before
  before=$(ledger requests_complete)
  is "$(target_eval "$1@localhost" 'lists:foreach(fun(_) -> kprof:do_apply(scenario_flood, requests, [5]) end, lists:seq(1, 50)).')" ok \
    "fifty requests"
  wait_for 15 "they are counted" ledger_reaches requests_complete $((before + 50))
  is "$(sql "SELECT sum(calls) FROM tier_stats WHERE resolution_s = 10 AND identity = '_total' AND tier = 'tick' AND node LIKE '$1@%'")" \
    250 "and each of their calls"
}

# -- an older kprof, a newer target ------------------------------------------------------------------------------------
erlc -o "$scratch" "$top/tests/scenarios/src/scenario_flood.erl"
PATH=$bin:$PATH start_erl "newer_$$" -pa "$scratch"
is "$(target_eval "newer_$$@localhost" 'list_to_integer(erlang:system_info(otp_release)).')" "$newest" \
  "the target runs OTP $newest, kprof OTP $own"
start_tracing "newer_$$" "$scratch/config"
has_not "$kprof_log" 'compiled' "what OTP $own compiled is loaded as it is"
requests "newer_$$"
stop_tracing
# so does kprof attach
chmod 400 "$scratch/cookie"
start "$scratch/attach.log" env HOME="$scratch/home" "$kprof" attach "newer_$$@localhost" --config "$scratch/config" \
  --collector "127.0.0.1:$collector_port"
attach_pid=$!
wait_for 20 "attaching" grep -q '^tracing ' "$scratch/attach.log"
# shellcheck disable=SC2016  # $kprof's shim is the one that it was built with, whatever release this is run on
built=$(erl -noinput -eval '{ok, {_, [{_, Info}]}} = beam_lib:chunks(hd(init:get_plain_arguments()), [compile_info]),
  io:format("~0p", [proplists:get_value(version, Info)]), halt().' -extra "$KPROF_EBIN/kprof.beam")
is "$(target_eval "newer_$$@localhost" 'proplists:get_value(version, kprof:module_info(compile)).')" "$built" \
  "kprof attach loads what it was built with, too"
kill -INT "$attach_pid"
ends "$attach_pid" 20
is "$status" 0 "and leaves"
has_not "$scratch/newer_$$.log" 're-compile' "all without a word in the target's log"

# -- a newer kprof, an older target ------------------------------------------------------------------------------------
start_erl "older_$$"
rm -f "$kprof_log"
KPROF_EBIN=$scratch/newer PATH=$bin:$PATH start_tracing "older_$$" "$scratch/config"
has "$kprof_log" "compiled the shim on older_$$@localhost" "what OTP $newest compiled is compiled on the target"
requests "older_$$"
stop_tracing
is "$(target_eval "older_$$@localhost" '[M || {M, _} <- code:all_loaded(), lists:prefix("kprof", atom_to_list(M))].')" "[]" \
  "and taken out again"

is "$(target_eval "older_$$@localhost" 'code:del_path(compiler), [begin code:delete(M), code:purge(M) end || {M, F} <- code:all_loaded(),
      is_list(F), string:find(F, "/compiler-") =/= nomatch], code:which(compile).')" non_existing "a target that has no compiler"
status=0
KPROF_EBIN=$scratch/newer PATH=$bin:$PATH timeout 400 "$top/scripts/start_kprof_node.sh" --node "older_$$@localhost" \
  --cookie-file "$scratch/cookie" \
  --config "$scratch/config" --collector "127.0.0.1:$collector_port" >"$scratch/refused.log" 2>&1 || status=$?
is "$status" 7 "cannot be traced so"
has "$scratch/refused.log" "has no compiler: take a kprof built with OTP $own" "and that is said: $(cat "$scratch/refused.log")"
is "$(wc -l <"$scratch/refused.log")" 1 "in one line"
is "$(target_eval "older_$$@localhost" '[M || {M, _} <- code:all_loaded(), lists:prefix("kprof", atom_to_list(M))].')" "[]" \
  "nothing stays there"
stop_collector
counted_once
intact
