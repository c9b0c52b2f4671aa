// A pool of records of one size, named by a 32 bit index that stays valid until the record is freed.
// The records lie one behind the other in address space that is reserved for all of them at the first take; memory is taken as they are
// used, and given back by slab_free only, so that a steady load allocates nothing. One thread at a time.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SLAB_NONE UINT32_MAX

struct slab {
    uint8_t *records;
    size_t size;   // bytes of a record: a multiple of 8
    uint32_t cap;  // records at most
    uint32_t made; // records ever handed out: indexes below it were used
    uint32_t used; // records in use
    uint32_t free; // head of the free list, threaded through the records' first 4 bytes
};

// A pool of at most cap records of size bytes.
void slab_init(struct slab *s, size_t size, uint32_t cap);
// Frees every record.
void slab_free(struct slab *s);
// A record, not cleared, or SLAB_NONE at the cap or without memory.
uint32_t slab_take(struct slab *s);
// Gives a record back. Its index may be handed out again at once.
void slab_give(struct slab *s, uint32_t index);

static inline void *slab_at(const struct slab *s, uint32_t index) {
    return s->records + index * s->size;
}

// The same for a type that is known and of a multiple of 8 bytes: no multiplication.
#define SLAB_AT(slab, type, index) (&((type *)(void *)(slab)->records)[index])
