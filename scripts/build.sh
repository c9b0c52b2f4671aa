# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# How quickstart.sh and test.sh build. Sourced, from the repository's root; no program of its own.

# build DIR CMAKE-OPTION... [-- TARGET...]: configures and builds, quietly; what the compiler said is in DIR/build.log and is
# shown when it failed.
build() {
  local dir=$1 generator=() options=() targets=()
  shift
  while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1"); shift; done
  [ $# -le 1 ] || { shift; targets=(--target "$@"); }
  mkdir -p "$dir"
  # a build folder keeps the generator that it began with
  if [ ! -f "$dir/CMakeCache.txt" ] && command -v ninja >/dev/null; then generator=(-G Ninja); fi
  if ! { cmake -S . -B "$dir" ${generator[@]+"${generator[@]}"} ${options[@]+"${options[@]}"} &&
    cmake --build "$dir" --parallel "$(nproc)" ${targets[@]+"${targets[@]}"}; } >"$dir/build.log" 2>&1 </dev/null; then
    tail -n 30 "$dir/build.log" >&2
    echo "all of it: $dir/build.log" >&2
    return 1
  fi
}
