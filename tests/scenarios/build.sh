#!/usr/bin/env bash
# Compiles the sample application and the scenarios' own Erlang modules into SCENARIO_EBIN, once before all scenarios.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${SCENARIO_EBIN:?}"
"$here/../sample/shop.sh" build "$(dirname "$SCENARIO_EBIN")"
erlc +debug_info -Werror -o "$SCENARIO_EBIN" "$here"/src/*.erl
