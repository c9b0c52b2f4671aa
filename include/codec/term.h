// SPDX-License-Identifier: Apache-2.0
// The external term format (erts/emulator/doc: erl_ext_dist), read in place: bounds-checked,
// without allocation or recursion. Every reader takes a cursor at a term's tag, moves it behind the
// term, and fails the cursor on anything else. Pure.
#pragma once

#include "base/bytes.h"

enum { TERM_VERSION = 131 }; // leads a term that stands alone

enum term_tag {
    TERM_BIT_BINARY = 77,
    TERM_NEW_FLOAT = 70,
    TERM_NEW_PID = 88,
    TERM_NEW_PORT = 89,
    TERM_NEWER_REFERENCE = 90,
    TERM_SMALL_INTEGER = 97,
    TERM_INTEGER = 98,
    TERM_FLOAT = 99,
    TERM_ATOM = 100,
    TERM_REFERENCE = 101,
    TERM_PORT = 102,
    TERM_PID = 103,
    TERM_SMALL_TUPLE = 104,
    TERM_LARGE_TUPLE = 105,
    TERM_NIL = 106,
    TERM_STRING = 107,
    TERM_LIST = 108,
    TERM_BINARY = 109,
    TERM_SMALL_BIG = 110,
    TERM_LARGE_BIG = 111,
    TERM_NEW_FUN = 112,
    TERM_EXPORT = 113,
    TERM_NEW_REFERENCE = 114,
    TERM_SMALL_ATOM = 115,
    TERM_MAP = 116,
    TERM_ATOM_UTF8 = 118,
    TERM_SMALL_ATOM_UTF8 = 119,
    TERM_V4_PORT = 120
};

struct term_atom {
    struct slice text;
    bool latin1; // the text is ISO 8859-1 (OTP 25 and before), else UTF-8
};

struct term_pid {
    struct term_atom node;
    uint32_t id;
    uint32_t serial;
    uint32_t creation;
};

// The tag of the next term, 0 at the end.
static inline uint8_t term_peek(const struct cursor *c) {
    // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): bytes do not begin at NULL
    return c->at < c->end ? *c->at : 0;
}

// Passes over one whole term.
void term_skip(struct cursor *c);
// As term_skip, and returns the term's bytes.
struct slice term_take(struct cursor *c);
// A list's length; its elements follow, and then, when *has_tail, one more term (NIL in a proper
// list). A string of bytes is a list whose elements are plain bytes: *bytes is set to them, and
// nothing follows.
uint32_t term_list(struct cursor *c, bool *has_tail, struct slice *bytes);

static inline bool term_is_atom(uint8_t tag) {
    return tag == TERM_ATOM || tag == TERM_SMALL_ATOM || tag == TERM_ATOM_UTF8 ||
           tag == TERM_SMALL_ATOM_UTF8;
}

static inline bool term_is_tuple(uint8_t tag) {
    return tag == TERM_SMALL_TUPLE || tag == TERM_LARGE_TUPLE;
}

static inline bool term_is_integer(uint8_t tag) {
    return tag == TERM_SMALL_INTEGER || tag == TERM_INTEGER || tag == TERM_SMALL_BIG;
}

// -- the readers of every message: inline ---------------------------------------------------------

// A tuple's arity; its elements follow.
static inline uint32_t term_tuple(struct cursor *c) {
    switch (cursor_u8(c)) {
    case TERM_SMALL_TUPLE:
        return cursor_u8(c);
    case TERM_LARGE_TUPLE:
        return cursor_u32(c);
    }
    cursor_fail(c);
    return 0;
}

static inline struct term_atom term_atom(struct cursor *c) {
    size_t len = 0;
    uint8_t tag = cursor_u8(c);
    switch (tag) {
    case TERM_SMALL_ATOM:
    case TERM_SMALL_ATOM_UTF8:
        len = cursor_u8(c);
        break;
    case TERM_ATOM:
    case TERM_ATOM_UTF8:
        len = cursor_u16(c);
        break;
    default:
        cursor_fail(c);
    }
    const uint8_t *text = cursor_claim(c, len);
    return (struct term_atom){slice_of(text, text ? len : 0),
                              tag == TERM_ATOM || tag == TERM_SMALL_ATOM};
}

// An integer of at most 64 bits, signed.
static inline int64_t term_integer(struct cursor *c) {
    switch (cursor_u8(c)) {
    case TERM_SMALL_INTEGER:
        return cursor_u8(c);
    case TERM_INTEGER:
        return (int32_t)cursor_u32(c);
    case TERM_SMALL_BIG: {
        uint8_t n = cursor_u8(c);
        uint8_t sign = cursor_u8(c);
        const uint8_t *p = cursor_claim(c, n);
        uint64_t value = 0;
        if (p && n == 8) {        // as times and labels come
            memcpy(&value, p, 8); // little-endian, like every machine this is built for
            n = 0;
        }
        for (unsigned i = 0; p && i < n; i++) {
            if (i < 8) {
                value |= (uint64_t)p[i] << (8 * i);
            } else if (p[i] != 0) {
                p = NULL;
            }
        }
        // -2^63 has no positive counterpart
        if (p && value <= (uint64_t)INT64_MAX + (sign != 0)) {
            return sign ? (int64_t)(0 - value) : (int64_t)value;
        }
    }
    }
    cursor_fail(c);
    return 0;
}

static inline struct term_pid term_pid(struct cursor *c) {
    struct term_pid pid = {0};
    uint8_t tag = cursor_u8(c);
    if (tag != TERM_NEW_PID && tag != TERM_PID) {
        cursor_fail(c);
        return pid;
    }
    pid.node = term_atom(c);
    pid.id = cursor_u32(c);
    pid.serial = cursor_u32(c);
    pid.creation = tag == TERM_NEW_PID ? cursor_u32(c) : cursor_u8(c);
    return pid;
}

// A term as the short text that an identity is: an atom's name as mfa_atom shows it, the characters
// of a string or binary, an integer's digits, a tuple's elements so with '_' between, {a, {b, c}}
// as "a /b/c", {a, "/b"} as "a /b" and {'GET', b} as "GET /b"; any other term as Erlang prints it.
// term holds exactly one term without the leading 131. Writes at most size bytes (size > 0) and
// returns their number; no terminating zero.
size_t term_text(struct slice term, char *out, size_t size);
