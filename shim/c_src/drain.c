// SPDX-License-Identifier: Apache-2.0
#include "drain.h"

// Looks at every ring there is. Returns their number.
static size_t look(struct drain *d) {
    size_t n = 0;
    for (size_t i = 0; i < d->count; i++) {
        struct ring *ring = (struct ring *)(uintptr_t)RING_ACQUIRE(&d->places[i]);
        if (ring) {
            ring_look(ring);
            ring_next(ring, &d->times[n]);
            d->rings[n++] = ring;
        }
    }
    return n;
}

// The ring whose next record, or loss, is the earliest.
static size_t earliest(const struct drain *d, size_t n) {
    size_t least = 0;
    for (size_t i = 1; i < n; i++) {
        if (d->times[i] < d->times[least]) {
            least = i;
        }
    }
    return least;
}

static bool give_loss(struct ring *ring, drain_take *take, void *to) {
    union record loss;
    loss.of.head = RECORD_LOST;
    loss.of.time = ring->since;
    loss.of.messages = ring->lost - ring->counted;
    loss.of.until = ring->until;
    if (!take(to, &loss)) {
        return false;
    }
    ring_tell(ring);
    return true;
}

static bool give_record(struct ring *ring, uint64_t generation, drain_take *take, void *to) {
    union record record;
    uint64_t count = ring_copy(ring, record.words, RECORD_WORDS);
    if (count > 0 && record.of.head >> 48 == generation && !take(to, &record)) {
        return false;
    }
    ring_pass(ring, count);
    return true;
}

bool drain_run(struct drain *d, uint64_t generation, drain_take *take, void *to) {
    int64_t limit = d->now();
    size_t n = look(d);
    bool more = false;
    while (n > 0 && !more) {
        size_t i = earliest(d, n);
        if (d->times[i] >= limit) {
            break;
        }
        int64_t time;
        more = ring_next(d->rings[i], &time) == RING_LOSS
                   ? !give_loss(d->rings[i], take, to)
                   : !give_record(d->rings[i], generation, take, to);
        ring_next(d->rings[i], &d->times[i]);
    }
    for (size_t i = 0; i < n; i++) {
        ring_return(d->rings[i]);
    }
    return more;
}
