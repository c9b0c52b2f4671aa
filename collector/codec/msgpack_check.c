// SPDX-License-Identifier: Apache-2.0
#include "codec/msgpack_check.h"

#include "base/limits.h"

// Passes over one value's own bytes and returns how many values follow as its parts.
static uint64_t skip_one(struct cursor *c) {
    uint8_t tag = cursor_u8(c);
    if (tag <= 0x7f || tag >= 0xe0) { // fixint
        return 0;
    }
    if (tag <= 0x8f) { // fixmap
        return 2 * (uint64_t)(tag & 0x0f);
    }
    if (tag <= 0x9f) { // fixarray
        return tag & 0x0f;
    }
    if (tag <= 0xbf) { // fixstr
        cursor_claim(c, tag & 0x1f);
        return 0;
    }
    switch (tag) {
    case 0xc0: // nil
    case 0xc2: // false
    case 0xc3: // true
        return 0;
    case 0xc4: // bin 8
    case 0xd9: // str 8
        cursor_claim(c, cursor_u8(c));
        return 0;
    case 0xc5: // bin 16
    case 0xda: // str 16
        cursor_claim(c, cursor_u16(c));
        return 0;
    case 0xc6: // bin 32
    case 0xdb: // str 32
        cursor_claim(c, cursor_u32(c));
        return 0;
    case 0xc7: // ext 8
        cursor_claim(c, (size_t)cursor_u8(c) + 1);
        return 0;
    case 0xc8: // ext 16
        cursor_claim(c, (size_t)cursor_u16(c) + 1);
        return 0;
    case 0xc9: // ext 32
        cursor_claim(c, (size_t)cursor_u32(c) + 1);
        return 0;
    case 0xcc: // uint 8
    case 0xd0: // int 8
        cursor_claim(c, 1);
        return 0;
    case 0xcd:
    case 0xd1:
        cursor_claim(c, 2);
        return 0;
    case 0xca: // float 32
    case 0xce:
    case 0xd2:
        cursor_claim(c, 4);
        return 0;
    case 0xcb: // float 64
    case 0xcf:
    case 0xd3:
        cursor_claim(c, 8);
        return 0;
    case 0xd4: // fixext 1, 2, 4, 8, 16
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8:
        cursor_claim(c, ((size_t)1 << (tag - 0xd4)) + 1);
        return 0;
    case 0xdc: // array 16
        return cursor_u16(c);
    case 0xdd: // array 32
        return cursor_u32(c);
    case 0xde: // map 16
        return 2 * (uint64_t)cursor_u16(c);
    case 0xdf: // map 32
        return 2 * (uint64_t)cursor_u32(c);
    }
    cursor_fail(c); // 0xc1 is never used
    return 0;
}

bool msgpack_check(struct slice bytes) {
    uint64_t open[LIMIT_CONTROL_DEPTH + 1] = {1}; // values still to come at each depth
    size_t depth = 0;
    uint64_t elements = 0;
    struct cursor c = cursor_of(bytes.data, bytes.len);
    while (!c.failed) {
        while (open[depth] == 0) {
            if (depth == 0) {
                return cursor_left(&c) == 0;
            }
            depth--;
        }
        open[depth]--;
        uint64_t parts = skip_one(&c);
        elements += parts;
        if (elements > LIMIT_CONTROL_ELEMENTS) {
            return false;
        }
        if (parts > 0) {
            if (depth == LIMIT_CONTROL_DEPTH) {
                return false;
            }
            open[++depth] = parts;
        }
    }
    return false;
}
