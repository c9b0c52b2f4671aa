// SPDX-License-Identifier: Apache-2.0
// What every unit test includes: cmocka, and small helpers for parsers.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// after the four above
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "fail_alloc.h"

// Memory whose last byte is the last of a page, with an unreadable page behind it: whoever reads
// past it dies.
struct guarded {
    uint8_t *pages;
    size_t size; // of the readable part
};

static inline struct guarded guarded_make(size_t room) {
    size_t size = (room + 4095) / 4096 * 4096 + 4096;
    uint8_t *pages =
        mmap(NULL, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    assert_int_equal(mprotect(pages + size, 4096, PROT_NONE), 0);
    return (struct guarded){pages, size};
}

static inline void guarded_free(struct guarded *g) {
    munmap(g->pages, g->size + 4096);
}

// A copy of the bytes that ends where the readable part ends; valid until the next call.
static inline struct slice guarded_copy(struct guarded *g, const void *data, size_t len) {
    assert_true(len <= g->size);
    uint8_t *to = g->pages + g->size - len;
    if (len > 0) {
        memcpy(to, data, len);
    }
    return slice_of(to, len);
}

// A file of tests/data, whole; free(result.data).
static inline struct slice data_file(const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", TEST_DATA, name);
    FILE *f = fopen(path, "rb");
    if (!f) {
        fail_msg("cannot open %s", path);
    }
    fseek(f, 0, SEEK_END);
    size_t len = (size_t)ftell(f);
    rewind(f);
    uint8_t *data = malloc(len + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, len, f), len);
    data[len] = 0;
    fclose(f);
    return slice_of(data, len);
}

// The same numbers in every run (splitmix64).
static inline uint64_t random_u64(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15ULL;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
    return z ^ z >> 31;
}
