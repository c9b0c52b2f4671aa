#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal of this test: ring_schedules finds mistakes. Each is made in a copy of ring.h and drain.c, and has to make it fail; without one it
# passes. Usage: ring_mistakes.sh SHIM_C_SRC
set -u
here=$(cd "$(dirname "$0")" && pwd)
source=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
made=0
failed=0

build() {
  "${CC:-cc}" -std=c11 -O1 -w -DRING_MODEL='"model.h"' -I "$work" -I "$here" "$here/ring_schedules.c" "$work/drain.c" -o "$work/run"
}

# mistake WHAT FILE SCRIPT: of sed, which has to change the file
mistake() {
  cp "$source"/ring.h "$source"/drain.h "$source"/drain.c "$source"/record.h "$work"
  sed -E -i "$3" "$work/$2"
  made=$((made + 1))
  if cmp -s "$work/$2" "$source/$2"; then
    echo "NOT MADE: $1"
    failed=1
  elif ! build; then
    echo "NOT COMPILED: $1"
    failed=1
  elif timeout 1500 "$work/run" >"$work/said"; then
    echo "NOT FOUND: $1"
    failed=1
  else
    echo "found: $1: $(grep -m 1 ': ' "$work/said" | tail -n 1)"
  fi
}

mistake 'published before it is written' ring.h \
  '/RING_RELEASE\(&r->head, r->written\)/d;'\
's/^    for \(uint64_t i = 0; i < count; i\+\+\) \{$/    RING_RELEASE(\&r->head, r->written + count);\n&/'
mistake 'head stored without release' ring.h 's/RING_RELEASE\(&r->head/RING_STORE_LOOSE(\&r->head/'
mistake 'head loaded without acquire' ring.h 's/RING_ACQUIRE\(&r->head/RING_LOAD_LOOSE(\&r->head/'
mistake 'tail stored without release' ring.h 's/RING_RELEASE\(&r->tail/RING_STORE_LOOSE(\&r->tail/'
mistake 'tail loaded without acquire' ring.h 's/RING_ACQUIRE\(&r->tail/RING_LOAD_LOOSE(\&r->tail/'
mistake 'room counted one word too large' ring.h 's/mask \+ 1 - \(r->written/mask + 2 - (r->written/'
mistake 'wrapped at half the words' ring.h 's/\(r->written \+ i\) & r->mask/(r->written + i) \& r->mask >> 1/'
mistake 'read without wrapping' ring.h 's/words\[\(r->read \+ i\) & r->mask\]/words[(r->read \& r->mask) + i]/'
mistake 'limit taken after the rings were looked at' drain.c \
  's/^    int64_t limit = d->now\(\);//; s/^    size_t n = look\(d\);/&\n    int64_t limit = d->now();/'
mistake 'handed out up to the limit itself' drain.c 's/>= limit/> limit/'
mistake 'no limit' drain.c 's/>= limit/== INT64_MAX/'
mistake 'not the earliest first' drain.c 's/times\[i\] < d->times\[least\]/times[i] > d->times[least]/'
mistake 'drops not counted' ring.h 's/^    r->drops\+\+;//'
mistake 'drops looked at before the head' ring.h \
  '/^    r->seen = RING_ACQUIRE/d; s/^    r->lost = RING_ACQUIRE.*/&\n    r->seen = RING_ACQUIRE(\&r->head);/'
mistake 'each drop begins a loss' ring.h 's/^    if \(RING_ACQUIRE\(&r->told\) == r->drops\) \{/    {/'
mistake 'the last drop kept as the first' ring.h '/RING_RELEASE\(&r->last_drop/d'
mistake 'the first drop stored behind the count' ring.h \
  's/^    RING_RELEASE\(&r->dropped, r->drops\);/&\n    RING_RELEASE(\&r->last_drop, (uint64_t)time);/;'\
'0,/^    RING_RELEASE\(&r->last_drop/{/^    RING_RELEASE\(&r->last_drop/d}'
mistake 'told, but not kept as told' ring.h 's/^    r->counted = r->lost;//'
mistake 'losses behind the records of later times' ring.h 's/r->since <= \*time/next == RING_NOTHING/'
mistake 'room given back before it was copied' drain.c \
  's/^    uint64_t count = ring_copy/    ring->read += 3; ring_return(ring); ring->read -= 3;\n&/'
mistake 'passed though there was no room for it' drain.c \
  's/== generation \&\& !take\(to, \&record\)/== generation \&\& !take(to, \&record) \&\& false/'

cp "$source"/ring.h "$source"/drain.h "$source"/drain.c "$source"/record.h "$work"
if ! build || ! "$work/run" >"$work/said"; then
  cat "$work/said"
  echo 'FAILED without a mistake'
  failed=1
fi
echo "$made mistakes"
exit "$failed"
