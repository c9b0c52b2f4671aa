#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The model test: kprof replay on random captures, against the truth of a simulated node. A run draws a new seed and prints it; the suite
# has one of its own, in CMakeLists.txt, so that what fails there is what was changed. A capture that differs is made as small as can be,
# printed, and left in $KPROF_BUILD/model.
# KPROF_MODEL_SEED, KPROF_MODEL_REQUESTS and KPROF_MODEL_SHRINK_MS choose the seed, and others than 21000 requests and 60000 ms.
# KPROF_MODEL_LENDING=12 KPROF_MODEL_KINDS=evident,handed looks for requests that are called complete with others' calls: the smaller a
# capture, the more of its buckets have nothing that is unclear, which would excuse them. With dark there are some that nobody can tell.
set -eu
source=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/src
: "${KPROF_BUILD:?is the build folder}"
work=$KPROF_BUILD/model
rm -rf "$work"
mkdir -p "$work"
erlc -Werror -o "$work" "$source"/*.erl
env ERL_CRASH_DUMP="$work/erl_crash.dump" erl -noinput -pa "$work" -run model_main main "$work"
# an emulator whose output process has died ends with 0, too
[ -e "$work/passed" ] || { echo "the model test did not come to its end"; exit 1; }
