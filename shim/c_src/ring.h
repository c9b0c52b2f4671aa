// SPDX-License-Identifier: Apache-2.0
// A ring of words from one thread of the VM, its producer, to one reader. Neither waits for the
// other: a record that does not fit is dropped, and told as lost.
//
//   record  word 0: bits 32..47 say how many words it has; the rest is record.h's
//           word 1: its time, in ns
//           words
//
//   words   read .. written   records, at these numbers & mask
//           head = written    as published: all before it is whole
//           tail = read       as given back: the producer may write over what is before it
//
// Positions and counts only grow; 64 bits of them do not end. What is dropped is counted once, in
// `dropped`, and the reader says in `told` how many of these it has told. So it learns of a loss
// while that lasts, and none is left to tell when a thread falls silent in the middle of one.
// first_drop is the time of the first drop that is not told for certain, last_drop of the last.
//
// A ring has one producer and one reader at a time. Functions say whose they are; who takes over
// from another has to have synchronised with it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef RING_MODEL // a test's own memory stands behind these, in which old values may be read
#include RING_MODEL
#else
#include <stdatomic.h>
typedef _Atomic uint64_t ring_atomic;
#define RING_ACQUIRE(at) atomic_load_explicit(at, memory_order_acquire)
#define RING_RELEASE(at, value) atomic_store_explicit(at, value, memory_order_release)
#define RING_READ(at) (*(at))
#define RING_WRITE(at, value) (*(at) = (value))
#endif

enum { RING_LINE = 64, RING_COUNT_SHIFT = 32, RING_HEADER = 2 };

struct ring {
    uint64_t *words;
    uint64_t mask; // their number, a power of two, less 1
    // The producer's line.
    _Alignas(RING_LINE) ring_atomic head;
    ring_atomic dropped;
    ring_atomic first_drop;
    ring_atomic last_drop;
    uint64_t written;
    uint64_t free_from; // the tail as last looked at
    uint64_t drops;
    int64_t last; // time
    // The reader's.
    _Alignas(RING_LINE) ring_atomic tail;
    ring_atomic told;
    uint64_t read;
    uint64_t seen;    // the head, when it looked last,
    uint64_t lost;    // and what was dropped
    uint64_t counted; // of that it has told so many
    int64_t since;
    int64_t until;
};

enum ring_next { RING_NOTHING, RING_RECORD, RING_LOSS };

// An empty ring in words that stay the caller's. Size: their number, a power of two, and no less
// than the longest record. Before either thread knows of it.
static inline void ring_init(struct ring *r, uint64_t *words, uint64_t size) {
    *r = (struct ring){.words = words, .mask = size - 1, .last = INT64_MIN};
}

// Producer: counts a record as dropped. What the reader has told is over; a loss that it has not
// begins with its first drop.
static inline void ring_drop(struct ring *r, int64_t time) {
    if (RING_ACQUIRE(&r->told) == r->drops) {
        RING_RELEASE(&r->first_drop, (uint64_t)time);
    }
    RING_RELEASE(&r->last_drop, (uint64_t)time);
    r->drops++;
    RING_RELEASE(&r->dropped, r->drops);
}

// Producer: adds a record of so many words, whole, or drops it: false. Its time must be taken after
// what its process did before was put into whichever ring, and is set to that of the record before
// when that is later.
static inline bool ring_put(struct ring *r, uint64_t *words, uint64_t count) {
    if ((int64_t)words[1] < r->last) {
        words[1] = (uint64_t)r->last;
    }
    r->last = (int64_t)words[1];
    if (r->mask + 1 - (r->written - r->free_from) < count) {
        r->free_from = RING_ACQUIRE(&r->tail);
    }
    if (r->mask + 1 - (r->written - r->free_from) < count) {
        ring_drop(r, r->last);
        return false;
    }
    for (uint64_t i = 0; i < count; i++) {
        RING_WRITE(&r->words[(r->written + i) & r->mask], words[i]);
    }
    r->written += count;
    RING_RELEASE(&r->head, r->written);
    return true;
}

// Reader: sees what is there now. The drops are looked at after the head: who sees a record then
// sees what its thread dropped before it, too.
static inline void ring_look(struct ring *r) {
    r->seen = RING_ACQUIRE(&r->head);
    r->lost = RING_ACQUIRE(&r->dropped);
    if (r->lost != r->counted) {
        r->since = (int64_t)RING_ACQUIRE(&r->first_drop);
        r->until = (int64_t)RING_ACQUIRE(&r->last_drop);
    }
}

// Reader: what is next of what it has seen, and its time. A loss comes before records of its time.
static inline enum ring_next ring_next(const struct ring *r, int64_t *time) {
    enum ring_next next = RING_NOTHING;
    *time = INT64_MAX;
    if (r->read != r->seen) {
        next = RING_RECORD;
        *time = (int64_t)RING_READ(&r->words[(r->read + 1) & r->mask]);
    }
    if (r->lost != r->counted && r->since <= *time) {
        next = RING_LOSS;
        *time = r->since;
    }
    return next;
}

// Reader: copies the next record into so many words. Returns how many it has; 0, and nothing of
// what was seen is left, if that cannot be true.
static inline uint64_t ring_copy(struct ring *r, uint64_t *words, uint64_t room) {
    uint64_t count = RING_READ(&r->words[r->read & r->mask]) >> RING_COUNT_SHIFT & 0xffff;
    if (count < RING_HEADER || count > room || count > r->seen - r->read) {
        r->read = r->seen;
        return 0;
    }
    for (uint64_t i = 0; i < count; i++) {
        words[i] = RING_READ(&r->words[(r->read + i) & r->mask]);
    }
    return count;
}

// Reader: is done with a record of so many words.
static inline void ring_pass(struct ring *r, uint64_t count) {
    r->read += count;
}

// Reader: the loss that it has seen is told.
static inline void ring_tell(struct ring *r) {
    r->counted = r->lost;
    RING_RELEASE(&r->told, r->counted);
}

// Reader: gives back the room of the records that it has passed.
static inline void ring_return(struct ring *r) {
    RING_RELEASE(&r->tail, r->read);
}

// Reader: passes over everything that is there.
static inline void ring_skip(struct ring *r) {
    ring_look(r);
    r->read = r->seen;
    ring_tell(r);
    ring_return(r);
}
