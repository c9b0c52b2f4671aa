#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: the native tracer needs nothing but the VM, so that it loads on glibc and on musl alike.
#
# 1. It builds, for each processor that there is a compiler for.
# 2. All that it lacks are functions enif_*, of OTP 25, and clock_gettime, without a version; it offers nif_init alone, and is linked to
#    no library.
# 3. The check fails where something else is lacking.
# Usage: symbols.sh BUILD_SH FOLDER
set -eu
build=$1
out=$2
rm -rf "$out"
"$build" "$out"

# Names what a library should not lack, offer or be linked to.
strange() {
    nm -D --undefined-only "$1" | awk '{ print $NF }' | grep -vE '^(enif_[a-z0-9_]*|clock_gettime)$' | sed 's/^/lacks /' || true
    nm -D --defined-only "$1" | awk '{ print $NF }' | grep -vx nif_init | sed 's/^/offers /' || true
    readelf -d "$1" | grep -F '(NEEDED)' | sed 's/^/is linked to /' || true
    # newer than ERL_NIF 2.16
    nm -D --undefined-only "$1" | awk '{ print $NF }' | grep -xE 'enif_(set_option|make_new_atom.*|get_string_length|get_atom_utf8)' || true
}

built=0
for library in "$out"/*.so; do
    [ -f "$library" ] || continue
    built=$((built + 1))
    found=$(strange "$library")
    if [ -n "$found" ]; then
        echo "$library: $found"
        exit 1
    fi
done
if [ "$built" -eq 0 ]; then
    echo "nothing was built"
    exit 1
fi
cat >"$out/wrong.c" <<'EOC'
extern void *memcpy(void *, const void *, unsigned long);
void *stranger(void *a, const void *b, unsigned long n) { return memcpy(a, b, n); }
EOC
"${CC:-cc}" -shared -fPIC -nostdlib -fno-builtin -o "$out/wrong.so" "$out/wrong.c"
strange "$out/wrong.so" | grep -q 'lacks memcpy'
strange "$out/wrong.so" | grep -q 'offers stranger'
rm "$out/wrong.so" "$out/wrong.c"
echo "$built built"
