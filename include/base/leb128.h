// SPDX-License-Identifier: Apache-2.0
// Unsigned numbers as bytes of seven bits, the lowest first (LEB128, as in DWARF): small ones take
// one byte. Pure.
#pragma once

#include "base/buffer.h"
#include "base/bytes.h"

enum { LEB128_MOST = 10 }; // bytes of the largest number

// Appends a number; a buffer that cannot take it is failed.
static inline void leb128_append(struct buffer *out, uint64_t number) {
    uint8_t bytes[LEB128_MOST];
    size_t n = 0;
    for (; number >= 0x80; number >>= 7) {
        bytes[n++] = (uint8_t)(number | 0x80);
    }
    bytes[n++] = (uint8_t)number;
    buffer_append(out, bytes, n);
}

// Takes a number; bits past 64 are left out, and more than LEB128_MOST bytes fail the cursor.
static inline uint64_t leb128_take(struct cursor *c) {
    uint64_t number = 0;
    for (int shift = 0; shift < 7 * LEB128_MOST; shift += 7) {
        uint8_t byte = cursor_u8(c);
        number |= shift < 63 ? (uint64_t)(byte & 0x7f) << shift : (uint64_t)(byte & 1) << 63;
        if (byte < 0x80) {
            return number;
        }
    }
    cursor_fail(c);
    return 0;
}
