// A pool of records of one size, named by a 32 bit index that stays valid until the record is freed.
// Records live in blocks that are never moved or given back before slab_free, so that a steady load allocates nothing.
// One thread at a time.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SLAB_NONE UINT32_MAX

enum { SLAB_BLOCK_BITS = 10, SLAB_BLOCK = 1 << SLAB_BLOCK_BITS };

struct slab {
    uint8_t **blocks; // cap / SLAB_BLOCK pointers, allocated as needed
    size_t size;      // bytes of a record, at least 4
    uint32_t cap;     // records at most
    uint32_t made;    // records ever handed out: indexes below it are in blocks
    uint32_t used;    // records in use
    uint32_t free;    // head of the free list, threaded through the records' first 4 bytes
};

// A pool of at most cap records of size bytes.
void slab_init(struct slab *s, size_t size, uint32_t cap);
// Frees every record and block.
void slab_free(struct slab *s);
// A record, not cleared, or SLAB_NONE at the cap or without memory.
uint32_t slab_take(struct slab *s);
// Gives a record back. Its index may be handed out again at once.
void slab_give(struct slab *s, uint32_t index);

static inline void *slab_at(const struct slab *s, uint32_t index) {
    return s->blocks[index >> SLAB_BLOCK_BITS] + (size_t)(index & (SLAB_BLOCK - 1)) * s->size;
}
