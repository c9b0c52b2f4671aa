// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <sys/random.h>

static uint64_t seed = 0x9e3779b97f4a7c15ULL;

void hash_seed(void) {
    uint64_t s;
    if (getrandom(&s, sizeof s, 0) == (ssize_t)sizeof s) {
        seed = s;
    }
}

// Folds the 128 bit product of its arguments: the multiply-and-fold step that wide multiply hashes
// are built from.
static inline uint64_t fold(uint64_t a, uint64_t b) {
    unsigned __int128 p = (unsigned __int128)a * b;
    return (uint64_t)p ^ (uint64_t)(p >> 64);
}

static inline uint64_t load64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

uint64_t hash_bytes(struct slice bytes) {
    const uint8_t *p = bytes.data;
    size_t n = bytes.len;
    uint64_t h = seed ^ fold(n ^ 0xa0761d6478bd642fULL, seed | 1);
    while (n > 16) {
        h = fold(load64(p) ^ 0xe7037ed1a0b428dbULL, load64(p + 8) ^ h);
        p += 16;
        n -= 16;
    }
    uint64_t a = 0, b = 0;
    if (n >= 8) {
        a = load64(p);
        b = load64(p + n - 8);
    } else if (n > 0) {
        for (size_t i = 0; i < n; i++) {
            a = a << 8 | p[i];
        }
    }
    return fold(a ^ 0x8ebc6af09c88c6e3ULL ^ seed, fold(b ^ 0x589965cc75374cc3ULL, h | 1) ^ h);
}
