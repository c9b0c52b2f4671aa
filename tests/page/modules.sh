# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154  # the variables of lib.sh
# What tests of what is drawn in a browser take from npm: package-lock.json says exactly what, with sums. Sourced.

# page_modules LOG [FOLDER]: installs them once into the user's cache, and sets `modules` to their folder. False, with npm's words in LOG:
# it cannot. FOLDER has other lists of packages than this one has.
page_modules() {
  local here log=$1 own
  here=$(cd "${2:-$(dirname "${BASH_SOURCE[0]}")}" && pwd)
  modules=${XDG_CACHE_HOME:-$HOME/.cache}/kprof/$(basename "$here")-$(sha256sum <"$here/package-lock.json" | cut -c 1-16)
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

# -- for scenarios, which have lib.sh --------------------------------------------------------------------------------------

# page_drivers: makes ready what drivers of a browser take, and where their pictures go. Without npm's packages the scenario ends, unjudged.
page_drivers() {
  drivers=$top/tests/page
  export PAGE_OUT=$KPROF_BUILD/page_pictures
  mkdir -p "$PAGE_OUT"
  if ! page_modules "$scratch/npm.log"; then
    unjudged+=("the page in a browser: npm cannot get what it takes ($(tail -n 1 "$scratch/npm.log"))")
    exit 0
  fi
  export PAGE_MODULES=$modules/node_modules
}

# works DRIVER ARGUMENT...: each check that it makes is one of ours
works() {
  local code=0
  HOME=$scratch/home timeout 600 node "$drivers/$1.js" "${@:2}" >"$scratch/$1.txt" 2>"$scratch/$1.log" || code=$?
  cat "$scratch/$1.txt"
  checks=$((checks + $(grep -c '^ok: ' "$scratch/$1.txt")))
  is "$code" 0 "$1 ${*:2}: $(cat "$scratch/$1.log")"
}
