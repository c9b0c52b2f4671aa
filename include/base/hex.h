// SPDX-License-Identifier: Apache-2.0
// Bytes as hexadecimal digits.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HEX_DIGITS "0123456789abcdef"

// Writes two digits for each byte, in lower case, and a 0 behind them: 2 * size + 1 bytes.
static inline void hex_text(const uint8_t *bytes, size_t size, char *out) {
    for (size_t i = 0; i < size; i++) {
        out[2 * i] = HEX_DIGITS[bytes[i] >> 4];
        out[2 * i + 1] = HEX_DIGITS[bytes[i] & 15];
    }
    out[2 * size] = 0;
}
