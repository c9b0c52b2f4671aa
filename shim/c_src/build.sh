#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the native tracer: FOLDER/kprof_native-x86_64.so and FOLDER/kprof_native-aarch64.so, as far as there are compilers for them.
# Usage: build.sh [FOLDER]   (default ../priv, seen from here)
#
# For this machine's processor cc is taken, or $CC, for the other one aarch64-linux-gnu-gcc or x86_64-linux-gnu-gcc, if that is there.
# Why there is none for this one is said in a line, and is no error: kprof then traces without it. With KPROF_NATIVE=no nothing is built.
# What is newer than its sources stays. Exit status: 1 when a compiler was there and failed.
set -eu
[ "${KPROF_NATIVE:-}" != no ] || exit 0
out=${1:-../priv}
case $out in
/*) ;;
*) [ $# -eq 0 ] || out=$PWD/$out ;;
esac
cd "$(dirname "$0")"
sources='kprof_native.c note.c block.c drain.c'
header=$(erl -noshell -eval 'io:put_chars(filename:join([code:root_dir(), "usr", "include"])), halt().' 2>/dev/null || true)
if [ ! -f "$header/erl_nif.h" ]; then
    echo "native tracer: not built, as erl_nif.h is not there (Debian: erlang-dev)"
    exit 0
fi

# is_newer FILE: than all that it is made of
is_newer() { [ -f "$1" ] && [ -z "$(find . -type f -newer "$1")" ]; }

# compile OPTION...: with the compiler $cc, which may have options itself
compile() {
    # shellcheck disable=SC2086
    $cc "$@"
}

# Nothing of libc is in it, so that it loads into a VM on glibc and on musl alike: -nostdlib, and none of the calls of memcpy and memset
# that a compiler makes of loops.
build() {
    # options that only some compilers, or some processors, have
    some=
    for option in -fno-tree-loop-distribute-patterns -mno-outline-atomics; do
        ! compile -Werror $option -x c -c -o /dev/null /dev/null 2>/dev/null || some="$some $option"
    done
    # shellcheck disable=SC2086
    compile -std=c11 -O2 -fPIC -fvisibility=hidden -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wvla -ffreestanding -fno-builtin \
        -fno-stack-protector -U_FORTIFY_SOURCE -isystem "$header" $some -nostdlib -shared -s -Wl,-z,relro,-z,now,-z,noexecstack \
        -o "$1.$$" $sources
    mv "$1.$$" "$1"
}

mkdir -p "$out"
for arch in x86_64 aarch64; do
    library=$out/kprof_native-$arch.so
    cc=$arch-linux-gnu-gcc
    [ "$arch" != "$(uname -m)" ] || cc=${CC:-cc}
    if ! command -v "${cc%% *}" >/dev/null; then
        [ "$arch" != "$(uname -m)" ] || echo "native tracer: not built, as there is no C compiler (${cc%% *})"
    elif ! is_newer "$library"; then
        build "$library"
    fi
done
