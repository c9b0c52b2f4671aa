# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What tests of what is drawn in a browser take from npm: package-lock.json says exactly what, with sums. Sourced.

# page_modules LOG: installs them once into the user's cache, and sets `modules` to their folder. False, with npm's words in LOG: it cannot.
page_modules() {
  local here log=$1 own
  here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
  modules=${XDG_CACHE_HOME:-$HOME/.cache}/kprof/page-$(sha256sum <"$here/package-lock.json" | cut -c 1-16)
  [ ! -d "$modules" ] || return 0
  mkdir -p "$(dirname "$modules")"
  own=$(mktemp -d "$modules.XXXXXX")
  cp "$here/package.json" "$here/package-lock.json" "$own"
  if ! (cd "$own" && timeout 300 npm ci --ignore-scripts --no-audit --no-fund) >"$log" 2>&1; then
    rm -rf "$own"
    return 1
  fi
  mv -T "$own" "$modules" 2>/dev/null || { rm -rf "$own"; [ -d "$modules" ]; }
}
