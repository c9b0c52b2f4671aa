#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the native tracer: FOLDER/kprof_native-x86_64.so and FOLDER/kprof_native-aarch64.so, as far as there are compilers for them.
# Usage: build.sh [FOLDER]   (default ../priv, seen from here)
#
# For this machine's processor cc is taken, or $CC, for the other one aarch64-linux-gnu-gcc or x86_64-linux-gnu-gcc. What is not there
# is said, one line each, and is no error: kprof then traces without it. Exit status: 1 when a compiler was there and failed.
set -eu
out=${1:-../priv}
case $out in
/*) ;;
*) [ $# -eq 0 ] || out=$PWD/$out ;;
esac
cd "$(dirname "$0")"
header=$(erl -noshell -eval 'io:put_chars(filename:join([code:root_dir(), "usr", "include"])), halt().' 2>/dev/null || true)
if [ ! -f "$header/erl_nif.h" ]; then
    echo "native tracer: not built, as erl_nif.h is not there (Debian: erlang-dev)"
    exit 0
fi
if ! command -v make >/dev/null; then
    echo "native tracer: not built, as make is not there"
    exit 0
fi
for arch in x86_64 aarch64; do
    cc=$arch-linux-gnu-gcc
    [ "$arch" != "$(uname -m)" ] || cc=${CC:-cc}
    # $CC may have options
    # shellcheck disable=SC2086
    set -- $cc
    if command -v "$1" >/dev/null; then
        make -s ARCH="$arch" CC="$cc" ERL_INCLUDE="$header" OUT="$out"
    else
        echo "native tracer: not built for $arch, as $1 is not there"
    fi
done
