// SPDX-License-Identifier: Apache-2.0
#include "base/slab.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    TRIM_BYTES = 4 << 20, // free ones of less are not worth a look
    TRIM_AFTER = 4,       // calls
    WORD = 64             // bits
};

void slab_init(struct slab *s, size_t size, uint32_t cap) {
    *s = (struct slab){
        .size = size < 8 ? 8 : (size + 7) & ~(size_t)7, .cap = cap, .most = cap, .free = SLAB_NONE};
}

bool slab_limit(struct slab *s, uint32_t most) {
    most = most < s->cap ? most : s->cap;
    if (s->used > most) {
        return false;
    }
    s->most = most;
    return true;
}

void slab_free(struct slab *s) {
    free(s->records);
    free(s->cold);
    slab_init(s, s->size, s->cap);
}

// The lowest record whose memory was given back; there is one.
static uint32_t take_cold(struct slab *s) {
    uint32_t word = s->coldest / WORD;
    while (s->cold[word] == 0) {
        word++;
    }
    uint32_t index = word * WORD + (uint32_t)__builtin_ctzll(s->cold[word]);
    s->cold[word] &= s->cold[word] - 1;
    s->coldest = index + 1;
    s->colds--;
    return index;
}

// slab_take without a free record that is warm; apart, so that the rest needs no stack frame.
__attribute__((noinline)) static uint32_t take_other(struct slab *s) {
    if (s->colds == 0 &&
        (s->made == s->cap || (!s->records && !(s->records = malloc(s->size * s->cap))))) {
        return SLAB_NONE;
    }
    s->used++;
    return s->colds > 0 ? take_cold(s) : s->made++;
}

uint32_t slab_take(struct slab *s) {
    uint32_t index = s->free;
    if (s->used >= s->most) {
        return SLAB_NONE;
    }
    if (index == SLAB_NONE) {
        return take_other(s);
    }
    memcpy(&s->free, slab_at(s, index), sizeof s->free);
    s->used++;
    return index;
}

void slab_give(struct slab *s, uint32_t index) {
    memcpy(slab_at(s, index), &s->free, sizeof s->free);
    s->free = index;
    s->used--;
}

// -- giving memory back ---------------------------------------------------------------------------

static bool is_cold(const struct slab *s, uint32_t index) {
    return s->cold[index / WORD] >> (index % WORD) & 1;
}

// Gives the pages back that lie wholly within the records from `first` up to the one before `end`.
static void release(const struct slab *s, uint32_t first, uint32_t end, uintptr_t page) {
    uintptr_t from = ((uintptr_t)slab_at(s, first) + page - 1) / page * page;
    uintptr_t until = (uintptr_t)slab_at(s, end) / page * page;
    if (from < until) {
        madvise(slab_at(s, first) + (from - (uintptr_t)slab_at(s, first)), until - from,
                MADV_DONTNEED);
    }
}

void slab_trim(struct slab *s) {
    uint32_t warm = s->made - s->used - s->colds;
    bool idle = warm > s->used && warm * s->size >= TRIM_BYTES;
    s->idle_for = idle ? s->idle_for + 1 : 0;
    if (s->idle_for < TRIM_AFTER ||
        (!s->cold && !(s->cold = calloc(s->cap / WORD + 1, sizeof *s->cold)))) {
        return;
    }
    s->idle_for = 0;
    while (s->free != SLAB_NONE) {
        uint32_t index = s->free;
        memcpy(&s->free, slab_at(s, index), sizeof s->free);
        s->cold[index / WORD] |= 1ULL << index % WORD;
    }
    s->colds += warm;
    s->coldest = 0;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (uint32_t first = 0, end; first < s->made; first = end + 1) {
        for (end = first; end < s->made && is_cold(s, end); end++) {
        }
        release(s, first, end, page);
    }
}
