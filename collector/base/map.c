// SPDX-License-Identifier: Apache-2.0
#include "base/map.h"

#include <stdlib.h>

#include "base/hash.h"

enum { FIRST_SLOTS = 64, LARGE_SLOTS = 4096 };

static struct map_slot *slots_new(uint32_t n) {
    struct map_slot *slots = calloc(n, sizeof *slots);
    for (uint32_t i = 0; slots && i < n; i++) {
        slots[i].value = MAP_NONE;
    }
    return slots;
}

bool map_init(struct map *m) {
    *m = (struct map){.slots = slots_new(FIRST_SLOTS), .mask = FIRST_SLOTS - 1};
    return m->slots != NULL;
}

void map_free(struct map *m) {
    free(m->slots);
    *m = (struct map){0};
}

// Moves everything to as many slots.
static bool move(struct map *m, uint32_t slots) {
    struct map other = {.slots = slots_new(slots), .mask = slots - 1, .count = m->count};
    if (!other.slots) {
        return false;
    }
    for (uint32_t i = 0; i <= m->mask; i++) {
        if (m->slots[i].value != MAP_NONE) {
            *map_find(&other, m->slots[i].key) = m->slots[i];
        }
    }
    free(m->slots);
    *m = other;
    return true;
}

bool map_set(struct map *m, uint64_t key, uint32_t value) {
    struct map_slot *s = map_find(m, key);
    if (s->value == MAP_NONE) {
        if ((uint64_t)(m->count + 1) * 4 > ((uint64_t)m->mask + 1) * 3) {
            if (!move(m, (m->mask + 1) * 2)) {
                return false;
            }
            s = map_find(m, key);
        }
        m->count++;
    }
    *s = (struct map_slot){key, value};
    return true;
}

bool map_remove(struct map *m, uint64_t key, uint32_t value) {
    struct map_slot *s = map_find(m, key);
    if (s->value != value || value == MAP_NONE) {
        return false;
    }
    m->count--;
    // Move later members of the run into the hole when their home lies at or before it, so that no
    // probe stops early.
    uint32_t hole = (uint32_t)(s - m->slots);
    for (uint32_t i = (hole + 1) & m->mask; m->slots[i].value != MAP_NONE; i = (i + 1) & m->mask) {
        uint32_t home = (uint32_t)hash_mix(m->slots[i].key) & m->mask;
        if (((i - home) & m->mask) >= ((i - hole) & m->mask)) {
            m->slots[hole] = m->slots[i];
            hole = i;
        }
    }
    m->slots[hole].value = MAP_NONE;
    return true;
}

void map_clear(struct map *m) {
    if (m->mask >= LARGE_SLOTS) {
        struct map_slot *slots = slots_new(FIRST_SLOTS);
        if (slots) {
            free(m->slots);
            *m = (struct map){.slots = slots, .mask = FIRST_SLOTS - 1};
            return;
        }
    }
    for (uint32_t i = 0; i <= m->mask; i++) {
        m->slots[i].value = MAP_NONE;
    }
    m->count = 0;
}

void map_fit(struct map *m) {
    uint32_t slots = m->mask + 1;
    while (slots > LARGE_SLOTS && m->count < slots / 8) {
        slots /= 2;
    }
    if (slots <= m->mask) {
        move(m, slots); // without memory it stays as it is
    }
}
