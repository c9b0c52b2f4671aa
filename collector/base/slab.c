#include "base/slab.h"

#include <stdlib.h>
#include <string.h>

void slab_init(struct slab *s, size_t size, uint32_t cap) {
    *s = (struct slab){.size = size < 8 ? 8 : (size + 7) & ~(size_t)7, .cap = cap, .free = SLAB_NONE};
}

void slab_free(struct slab *s) {
    free(s->records);
    slab_init(s, s->size, s->cap);
}

uint32_t slab_take(struct slab *s) {
    uint32_t index = s->free;
    if (index != SLAB_NONE) {
        memcpy(&s->free, slab_at(s, index), sizeof s->free);
    } else if (s->made == s->cap || (!s->records && !(s->records = malloc(s->size * s->cap)))) {
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
