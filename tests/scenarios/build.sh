#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles the sample application and the scenarios' own Erlang modules, once before all scenarios, for each release of OTP apart:
# into what SCENARIO_EBIN is by default in lib.sh.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${SCENARIO_EBIN:=${KPROF_BUILD:?}/scenarios${KPROF_OTP:+-otp$KPROF_OTP}/ebin}"
"$here/../sample/shop.sh" build "$(dirname "$SCENARIO_EBIN")"
erlc +debug_info +nowarn_deprecated_catch -Werror -o "$SCENARIO_EBIN" "$here"/src/*.erl
