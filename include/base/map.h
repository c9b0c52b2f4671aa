// SPDX-License-Identifier: Apache-2.0
// A map from 64 bit keys to 32 bit values: open addressing, linear probing, deletion without
// tombstones. Keys are spread with hash_mix; the key 0 is allowed. Grows by doubling up to what its
// owner puts in; the owner keeps the cap. One thread at a time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"

#define MAP_NONE UINT32_MAX // never a value

struct map_slot {
    uint64_t key;
    uint32_t value; // MAP_NONE: the slot is free
};

struct map {
    struct map_slot *slots;
    uint32_t mask;  // slots - 1; a power of two less one
    uint32_t count; // at most 3/4 of the slots
};

// An empty map. Returns false without memory.
bool map_init(struct map *m);
void map_free(struct map *m);

// Sets the value (never MAP_NONE). Returns false without memory; the map is then as it was.
bool map_set(struct map *m, uint64_t key, uint32_t value);
// Takes the key out if it has this value. Returns whether it had.
bool map_remove(struct map *m, uint64_t key, uint32_t value);
// Takes everything out, and gives memory back when the map had become large.
void map_clear(struct map *m);
// Gives memory back when the map is far larger than what is in it. Moves slots.
void map_fit(struct map *m);

// Bytes that it takes.
static inline size_t map_bytes(const struct map *m) {
    return ((size_t)m->mask + 1) * sizeof *m->slots;
}

// The slot that holds key, or the free one where it belongs. One always exists: the map is never
// full.
static inline struct map_slot *map_find(const struct map *m, uint64_t key) {
    for (uint32_t i = (uint32_t)hash_mix(key) & m->mask;; i = (i + 1) & m->mask) {
        struct map_slot *s = &m->slots[i];
        if (s->value == MAP_NONE || s->key == key) {
            return s;
        }
    }
}

// The value under key, or MAP_NONE.
static inline uint32_t map_get(const struct map *m, uint64_t key) {
    return map_find(m, key)->value;
}
