// SPDX-License-Identifier: Apache-2.0
// A pool of records of one size, named by a 32 bit index that stays valid until the record is
// freed. The records lie one behind the other in address space that is reserved for all of them at
// the first take; memory is taken as they are used, and given back by slab_free and slab_trim only,
// so that a steady load allocates nothing. One thread at a time.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLAB_NONE UINT32_MAX

struct slab {
    uint8_t *records;
    size_t size;   // bytes of a record: a multiple of 8
    uint32_t cap;  // records at most
    uint32_t most; // and for now, slab_limit
    uint32_t made; // records ever handed out: indexes below it were used
    uint32_t used; // records in use
    uint32_t free; // head of the free list, threaded through the records' first 4 bytes
    // Free records that are in no list, since their memory was given back.
    uint64_t *cold;    // a bit for each; NULL: there were none yet
    uint32_t colds;    // how many there are
    uint32_t coldest;  // none of them is below this
    uint32_t idle_for; // calls of slab_trim in a row that found many free
};

// A pool of at most cap records of size bytes.
void slab_init(struct slab *s, size_t size, uint32_t cap);
// Frees every record.
void slab_free(struct slab *s);
// Hands out no further records for now when so many are in use; SLAB_NONE: the cap again. False,
// and nothing has changed, when more are.
bool slab_limit(struct slab *s, uint32_t most);
// A record, not cleared, or SLAB_NONE at the cap or without memory.
uint32_t slab_take(struct slab *s);
// Gives a record back. Its index may be handed out again at once.
void slab_give(struct slab *s, uint32_t index);
// Gives the memory of free records back to the system, when few are in use and that was so at the
// calls before: call once a second. What a given record held is 0 then, or as it was.
void slab_trim(struct slab *s);

enum { SLAB_SHARE = 3 };

// The same for one of several users of a pool, who counts the records that he has in *own. When it
// is shared, nobody gets more than SLAB_SHARE times as many as are free: one who wants all has
// three quarters of them, and whoever else comes finds room; n who do have 3/(3n + 1) each, and a
// third of that stays free.
static inline uint32_t slab_take_own(struct slab *s, uint32_t *own, bool shared) {
    if (shared && *own >= (uint64_t)SLAB_SHARE * (s->most - s->used)) {
        return SLAB_NONE;
    }
    uint32_t index = slab_take(s);
    *own += index != SLAB_NONE;
    return index;
}

static inline void slab_give_own(struct slab *s, uint32_t *own, uint32_t index) {
    slab_give(s, index);
    --*own;
}

static inline void *slab_at(const struct slab *s, uint32_t index) {
    return s->records + index * s->size;
}

// The same for a type that is known and of a multiple of 8 bytes: no multiplication.
#define SLAB_AT(slab, type, index) (&((type *)(void *)(slab)->records)[index])
