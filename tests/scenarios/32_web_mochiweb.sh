#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: kprof_mochiweb tells of every request of a real mochiweb (Debian's package) what its client saw, and no request notices
# that kprof comes and goes.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$(dirname "${BASH_SOURCE[0]}")/debian.sh"
source "$(dirname "${BASH_SOURCE[0]}")/web.sh"

debian erlang-mochiweb
name=mochiweb_$$
start_collector
serve scenario_web_mochiweb kprof_mochiweb -- -pa "$root"/usr/lib/erlang/lib/mochiweb*/ebin
more() { raw abandon 3; }
standard mochiweb
