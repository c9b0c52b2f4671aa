#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: kprof_httpd tells of every request of httpd (inets) what its client saw, also of those that mod_esi answers, and no
# request notices that kprof comes and goes.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$(dirname "${BASH_SOURCE[0]}")/web.sh"

erl -noinput -eval 'halt(case code:lib_dir(inets) of {error, _} -> 1; _ -> 0 end).' || { echo "skipped: no inets here"; exit 77; }
name=httpd_$$
start_collector
serve scenario_web_httpd kprof_httpd -- -run file set_cwd "$scratch"
more() { ask /esi/scenario_web_httpd:pieces /esi/scenario_web_httpd:pieces /esi/scenario_web_httpd:nothing; }
standard httpd 'path ~ /^\/esi/ { id = method " /esi" } path ~ /^\/esi.*pieces/ { store[id]++ }'
