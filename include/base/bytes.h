// SPDX-License-Identifier: Apache-2.0
// A slice of bytes that somebody else owns, and a cursor that reads one without ever passing its
// end.
//
// The cursor's one claim primitive is cursor_claim; everything else stands on it. A failed cursor
// stays failed and yields zeros, so that a reader may check once, at its end. Pure: no allocation,
// no clock.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct slice {
    const uint8_t *data;
    size_t len;
};

struct cursor {
    const uint8_t *at;  // next byte; at <= end
    const uint8_t *end; // one past the last byte
    bool failed;        // once set, every claim of a byte fails
};

static inline struct slice slice_of(const void *data, size_t len) {
    return (struct slice){data, len};
}

typedef uint64_t bytes_16 __attribute__((vector_size(16)));

// Where 16 bytes differ: 0 where they do not.
static inline bytes_16 bytes_differ_16(const uint8_t *a, const uint8_t *b) {
    bytes_16 x, y;
    memcpy(&x, a, 16);
    memcpy(&y, b, 16);
    return x ^ y;
}

// Compares n bytes; faster than a call of memcmp for the few dozen that names have.
static inline bool bytes_equal(const uint8_t *a, const uint8_t *b, size_t n) {
    if (n < 16) {
        return memcmp(a, b, n) == 0;
    }
    bytes_16 differ = bytes_differ_16(a, b) | bytes_differ_16(a + n - 16, b + n - 16);
    for (size_t i = 16; i + 16 < n; i += 16) {
        differ |= bytes_differ_16(a + i, b + i);
    }
    return (differ[0] | differ[1]) == 0;
}

static inline struct slice slice_text(const char *text) {
    return (struct slice){(const uint8_t *)text, strlen(text)};
}

static inline bool slice_equal(struct slice a, struct slice b) {
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static inline bool slice_is(struct slice a, const char *text) {
    return slice_equal(a, slice_text(text));
}

// data may be NULL where there is nothing.
static inline struct cursor cursor_of(const void *data, size_t len) {
    return (struct cursor){data, len > 0 ? (const uint8_t *)data + len : data, false};
}

static inline size_t cursor_left(const struct cursor *c) {
    return (size_t)(c->end - c->at);
}

static inline void cursor_fail(struct cursor *c) {
    c->failed = true;
    c->at = c->end;
}

// Takes n bytes and returns their start, or fails and returns NULL.
static inline const uint8_t *cursor_claim(struct cursor *c, size_t n) {
    if (n > cursor_left(c)) { // a failed cursor stands at its end
        cursor_fail(c);
        return NULL;
    }
    const uint8_t *p = c->at;
    c->at += n;
    return p;
}

static inline uint8_t cursor_u8(struct cursor *c) {
    const uint8_t *p = cursor_claim(c, 1);
    return p ? *p : 0;
}

static inline uint16_t cursor_u16(struct cursor *c) {
    const uint8_t *p = cursor_claim(c, 2);
    return p ? (uint16_t)(p[0] << 8 | p[1]) : 0;
}

static inline uint32_t cursor_u32(struct cursor *c) {
    const uint8_t *p = cursor_claim(c, 4);
    if (!p) {
        return 0;
    }
    uint32_t v;
    memcpy(&v, p, 4);
    return __builtin_bswap32(v);
}
