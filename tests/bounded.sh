#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bounded.sh COMMAND...: runs it and passes on what it says, of which the first 200 KB and the last 100: logs of tests are kept, and read.
# Ends with its status.
set -u
status=$(mktemp)
trap 'rm -f "$status"' EXIT
{ "$@" 2>&1; echo $? >"$status"; } | {
  head -c 204800
  end=$(tail -c 102400 | tr -d '\0')
  [ -z "$end" ] || printf '\n[...]\n%s\n' "$end"
}
exit "$(cat "$status")"
