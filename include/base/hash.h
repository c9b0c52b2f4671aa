// SPDX-License-Identifier: Apache-2.0
// A seeded hash for keys that come from a socket: whoever sends them cannot choose them to collide.
#pragma once

#include <stdint.h>

#include "base/bytes.h"

// Sets the seed of this process from the kernel's random source. Call once, before the first hash;
// without it the seed is a constant (tests). Results never leave the process, so that a different
// seed never changes what is stored.
void hash_seed(void);

// 64 bit hash of some bytes under the process's seed.
uint64_t hash_bytes(struct slice bytes);

// Mixes a number into a hash: one to one, so that different numbers never collide.
static inline uint64_t hash_mix(uint64_t x) {
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93ULL;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93ULL;
    x ^= x >> 32;
    return x;
}

// The number that hash_mix has mixed: it does each of those steps backwards.
static inline uint64_t hash_unmix(uint64_t x) {
    x ^= x >> 32;
    x *= 0xcfee444d8b59a89bULL; // times the other factor: 1
    x ^= x >> 32;
    x *= 0xcfee444d8b59a89bULL;
    x ^= x >> 32;
    return x;
}
