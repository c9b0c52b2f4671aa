#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: the native tracer works where it was not built.
#
# 1. The library for this machine's processor loads into a program of musl's.
# 2. That for the other processor (arm64 or x86-64) loads into a program there, which qemu runs.
# 3. The rings bring each record there, or tell how many they dropped: ring_threads.c.
# 4. A library that lacks something does not load: the check bites.
# Usage: elsewhere.sh C_SRC TESTS FOLDER
set -eu
source=$1
tests=$2
out=$3
rm -rf "$out"
mkdir -p "$out"
here=$(uname -m)
case $here in
aarch64) other=x86_64 ;;
*) other=aarch64 ;;
esac
"$source/build.sh" "$out/priv"
headers=$(erl -noshell -eval 'io:put_chars(filename:join([code:root_dir(), "usr", "include"])), halt().')

# loads COMPILER FOLDER LIBRARY: builds the program, with a function for each that the library lacks. erl_nif.h is of this machine's
# processor; what it says is the same on both.
loads() {
    nm -D --undefined-only "$3" | awk '$NF ~ /^enif_/ { print "void " $NF "(void) { __builtin_trap(); }" }' >"$2/vm.c"
    "$1" -std=c11 -Wall -Wextra -Werror -isystem "$headers" -rdynamic -o "$2/loads" "$tests/loads.c" -x c "$2/vm.c"
}

mkdir "$out/musl" "$out/other"
library=$out/priv/kprof_native-$here.so
loads musl-gcc "$out/musl" "$library"
said=$("$out/musl/loads" "$library")
echo "musl, $said"
cat >"$out/lacking.c" <<'EOC'
extern void *__memcpy_chk(void *, const void *, unsigned long, unsigned long);
void *nif_init(void *a, const void *b, unsigned long n) { return __memcpy_chk(a, b, n, n); }
EOC
musl-gcc -shared -fPIC -nostdlib -o "$out/lacking.so" "$out/lacking.c"
if "$out/musl/loads" "$out/lacking.so" 2>"$out/lacking.txt"; then
    echo "a library loads that lacks something"
    exit 1
fi
grep -q __memcpy_chk "$out/lacking.txt"

library=$out/priv/kprof_native-$other.so
loads "$other-linux-gnu-gcc" "$out/other" "$library"
run="qemu-$other -L /usr/$other-linux-gnu"
said=$($run "$out/other/loads" "$library")
echo "$other, $said"
"$other-linux-gnu-gcc" -std=c11 -O2 -D_GNU_SOURCE -Wall -Wextra -Werror -pthread -I "$source" -o "$out/other/ring_threads" \
    "$tests/ring_threads.c" "$source/drain.c"
said=$($run "$out/other/ring_threads" 200000)
echo "$other, $said"
