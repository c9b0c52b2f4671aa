# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# What the tests of the installation share: all of ../scenarios/lib.sh, with the programs as they are installed. Sourced, never run.
source "$(dirname "${BASH_SOURCE[0]}")/../scenarios/lib.sh"

prefix=/usr/local
DESTDIR=$scratch/root cmake --install "$KPROF_BUILD" --prefix "$prefix" >"$scratch/install.out" || fail "cmake --install"
installed=$scratch/root$prefix
collector=$installed/bin/kprof-collector
kprof=$installed/bin/kprof
node_scripts=$installed/bin
unset KPROF_EBIN
programs=("$kprof" "$collector" "$installed/bin/start_kprof_node.sh" "$installed/bin/stop_kprof_node.sh")

# The commands of kprof, and the options of a program or one of its commands, both as --help tells them.
commands() { "$kprof" --help | sed -nE 's/^  ([a-z][a-z0-9-]*)  .*/\1/p'; }
options() { "$@" --help | grep -oE '^ +--[a-z].*' | grep -oE '^ +--[a-z-]+(, --[a-z-]+)*' | grep -oE -e '--[a-z-]+' | sort -u; }
