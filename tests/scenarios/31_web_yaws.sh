#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: kprof_yaws tells of every request of an appmod in a real yaws (Debian's package) what its client saw, and no request
# notices that kprof comes and goes.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$(dirname "${BASH_SOURCE[0]}")/debian.sh"
source "$(dirname "${BASH_SOURCE[0]}")/web.sh"

debian erlang-yaws
name=yaws_$$
start_collector
serve_options="#{port => $(free_port)}"
serve scenario_web_yaws kprof_yaws -- -pa "$root"/usr/lib/yaws-*/ebin -run file set_cwd "$scratch"
more() { raw abandon 3; }
# yaws ends the process of a client that leaves in the middle of its body
standard yaws 'path == "/upload" { errors[id]++ }'
