#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: the installed programs are hardened: position independent, all of the dynamic linker's tables read-only before main,
# no executable stack, stack protector, and the C library's checked functions. (The notes of -fcf-protection are not looked for: Debian's
# objects around main have none, so that the linker leaves them out.)
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

if grep -qE '^KPROF_(SANITIZE|FUZZ):BOOL=ON|^CMAKE_BUILD_TYPE:STRING=Debug' "$KPROF_BUILD/CMakeCache.txt"; then
  echo "skipped: this is no release build"
  exit 77
fi
# elf FILE: what readelf knows of it.
elf() { readelf --wide --file-header --program-headers --dynamic --dyn-syms "$1" >"$scratch/elf"; }
# weak FILE: what it lacks, a word each.
weak() {
  elf "$1"
  grep -qE '^ *Type: +DYN' "$scratch/elf" && grep -qE 'FLAGS_1.*PIE' "$scratch/elf" || echo pie
  grep -qE '^ *GNU_RELRO ' "$scratch/elf" || echo relro
  grep -qE '\(FLAGS\).*BIND_NOW|\(FLAGS_1\).*NOW' "$scratch/elf" || echo bind_now
  grep -qE '^ *GNU_STACK .* RW +' "$scratch/elf" || echo stack
  grep -qE ' __stack_chk_fail(@|$)' "$scratch/elf" || echo stack_protector
  grep -qE ' __[a-z]+_chk(@|$)' "$scratch/elf" || echo fortify
}
for program in "$collector" "$kprof"; do
  is "$(weak "$program")" "" "$(basename "$program") is hardened"
done

# The test sees what is missing.
cat >"$scratch/weak.c" <<'END'
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv) { char b[64]; strcpy(b, argv[argc - 1]); return puts(b); }
END
cc -O2 -fno-stack-protector -U_FORTIFY_SOURCE -no-pie -Wl,-z,norelro,-z,lazy,-z,execstack "$scratch/weak.c" \
  -o "$scratch/weak" 2>/dev/null ||
  fail "the weak program does not compile"
is "$(weak "$scratch/weak" | tr '\n' ' ')" "pie relro bind_now stack stack_protector fortify " "a weak program is seen"
