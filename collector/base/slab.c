#include "base/slab.h"

#include <stdlib.h>
#include <string.h>

void slab_init(struct slab *s, size_t size, uint32_t cap) {
    *s = (struct slab){.size = size < 4 ? 4 : (size + 7) & ~(size_t)7, .cap = cap, .free = SLAB_NONE};
}

void slab_free(struct slab *s) {
    for (uint32_t i = 0; i < s->made; i += SLAB_BLOCK) {
        free(s->blocks[i >> SLAB_BLOCK_BITS]);
    }
    free(s->blocks);
    slab_init(s, s->size, s->cap);
}

// Makes the block for index s->made. Returns 0 when it cannot.
static int block_new(struct slab *s) {
    if (!s->blocks) {
        s->blocks = calloc(((size_t)s->cap >> SLAB_BLOCK_BITS) + 1, sizeof *s->blocks);
        if (!s->blocks) {
            return 0;
        }
    }
    uint8_t *block = malloc(s->size * SLAB_BLOCK);
    s->blocks[s->made >> SLAB_BLOCK_BITS] = block;
    return block != NULL;
}

uint32_t slab_take(struct slab *s) {
    uint32_t index = s->free;
    if (index != SLAB_NONE) {
        memcpy(&s->free, slab_at(s, index), sizeof s->free);
    } else if (s->made == s->cap || ((s->made & (SLAB_BLOCK - 1)) == 0 && !block_new(s))) {
        return SLAB_NONE;
    } else {
        index = s->made++;
    }
    s->used++;
    return index;
}

void slab_give(struct slab *s, uint32_t index) {
    memcpy(slab_at(s, index), &s->free, sizeof s->free);
    s->free = index;
    s->used--;
}
