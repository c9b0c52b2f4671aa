#!/usr/bin/env bash
# The model test: kprof replay on random captures, against the truth of a simulated node. Leaves a capture that differs, as small as it
# could be made, in $KPROF_BUILD/model.
# KPROF_MODEL_SEED (or `new`), KPROF_MODEL_REQUESTS and KPROF_MODEL_SHRINK_MS choose others than the seed 20, 21000 and 20000.
set -eu
source=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/src
: "${KPROF_BUILD:?is the build folder}"
work=$KPROF_BUILD/model
export KPROF_MODEL_SEED=${KPROF_MODEL_SEED:-20}
if [ "$KPROF_MODEL_SEED" = new ]; then unset KPROF_MODEL_SEED; fi
rm -rf "$work"
mkdir -p "$work"
erlc -Werror -o "$work" "$source"/*.erl
exec env ERL_CRASH_DUMP="$work/erl_crash.dump" erl -noinput -pa "$work" -run model_main main "$work"
