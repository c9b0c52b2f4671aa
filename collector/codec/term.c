// SPDX-License-Identifier: Apache-2.0
#include "codec/term.h"

#include <ei.h>
#include <inttypes.h>
#include <stdio.h>

#include "codec/mfa.h"

// Passes over a term's own bytes and returns how many terms follow as its parts.
static inline uint64_t skip_one(struct cursor *c) {
    uint8_t tag = cursor_u8(c);
    switch ((enum term_tag)tag) {
    case TERM_SMALL_INTEGER:
        cursor_claim(c, 1);
        return 0;
    case TERM_INTEGER:
        cursor_claim(c, 4);
        return 0;
    case TERM_NEW_FLOAT:
        cursor_claim(c, 8);
        return 0;
    case TERM_FLOAT:
        cursor_claim(c, 31);
        return 0;
    case TERM_NIL:
        return 0;
    case TERM_SMALL_ATOM:
    case TERM_SMALL_ATOM_UTF8:
        cursor_claim(c, cursor_u8(c));
        return 0;
    case TERM_ATOM:
    case TERM_ATOM_UTF8:
    case TERM_STRING:
        cursor_claim(c, cursor_u16(c));
        return 0;
    case TERM_BINARY:
        cursor_claim(c, cursor_u32(c));
        return 0;
    case TERM_BIT_BINARY: {
        size_t n = cursor_u32(c);
        cursor_claim(c, 1);
        cursor_claim(c, n);
        return 0;
    }
    case TERM_SMALL_BIG: {
        size_t n = cursor_u8(c);
        cursor_claim(c, n + 1);
        return 0;
    }
    case TERM_LARGE_BIG: {
        size_t n = cursor_u32(c);
        cursor_claim(c, n + 1);
        return 0;
    }
    case TERM_SMALL_TUPLE:
        return cursor_u8(c);
    case TERM_LARGE_TUPLE:
        return cursor_u32(c);
    case TERM_LIST:
        return (uint64_t)cursor_u32(c) + 1;
    case TERM_MAP:
        return 2 * (uint64_t)cursor_u32(c);
    case TERM_EXPORT:
        return 3;
    case TERM_NEW_FUN: {
        uint32_t size = cursor_u32(c); // counts itself
        if (size < 4) {
            cursor_fail(c);
        } else {
            cursor_claim(c, size - 4);
        }
        return 0;
    }
    // The node's atom comes first in the next five, in the references behind a count.
    case TERM_PID:
        term_atom(c);
        cursor_claim(c, 9);
        return 0;
    case TERM_NEW_PID:
    case TERM_V4_PORT:
        term_atom(c);
        cursor_claim(c, 12);
        return 0;
    case TERM_PORT:
    case TERM_REFERENCE:
        term_atom(c);
        cursor_claim(c, 5);
        return 0;
    case TERM_NEW_PORT:
        term_atom(c);
        cursor_claim(c, 8);
        return 0;
    case TERM_NEW_REFERENCE:
    case TERM_NEWER_REFERENCE: {
        size_t words = cursor_u16(c);
        term_atom(c);
        cursor_claim(c, words * 4 + (tag == TERM_NEWER_REFERENCE ? 4 : 1));
        return 0;
    }
    }
    cursor_fail(c);
    return 0;
}

void term_skip(struct cursor *c) {
    // Every part takes a byte at least, so that a huge claimed count ends with the bytes, not with
    // the count.
    for (uint64_t need = 1; need > 0 && !c->failed; need--) {
        need += skip_one(c);
    }
}

struct slice term_take(struct cursor *c) {
    const uint8_t *from = c->at;
    term_skip(c);
    return c->failed ? slice_of(from, 0) : slice_of(from, (size_t)(c->at - from));
}

uint32_t term_list(struct cursor *c, bool *has_tail, struct slice *bytes) {
    *has_tail = false;
    *bytes = slice_of(NULL, 0);
    switch (cursor_u8(c)) {
    case TERM_NIL:
        return 0;
    case TERM_STRING: {
        uint16_t n = cursor_u16(c);
        const uint8_t *p = cursor_claim(c, n);
        *bytes = slice_of(p, p ? n : 0);
        return (uint32_t)bytes->len;
    }
    case TERM_LIST:
        *has_tail = true;
        return cursor_u32(c);
    }
    cursor_fail(c);
    return 0;
}

// -- text -----------------------------------------------------------------------------------------

struct text {
    char *out;
    size_t len;
    size_t size;
};

static void put(struct text *t, const void *data, size_t n) {
    if (n > t->size - t->len) {
        n = t->size - t->len;
    }
    if (n > 0) {
        memcpy(t->out + t->len, data, n);
        t->len += n;
    }
}

// A code point as UTF-8; what is none as '?'.
static void put_char(struct text *t, uint64_t code) {
    uint8_t b[4];
    if (code < 0x80) {
        b[0] = (uint8_t)code;
        put(t, b, 1);
    } else if (code < 0x800) {
        b[0] = (uint8_t)(0xc0 | code >> 6);
        b[1] = (uint8_t)(0x80 | (code & 0x3f));
        put(t, b, 2);
    } else if (code < 0x10000) {
        b[0] = (uint8_t)(0xe0 | code >> 12);
        b[1] = (uint8_t)(0x80 | (code >> 6 & 0x3f));
        b[2] = (uint8_t)(0x80 | (code & 0x3f));
        put(t, b, 3);
    } else if (code < 0x110000) {
        b[0] = (uint8_t)(0xf0 | code >> 18);
        b[1] = (uint8_t)(0x80 | (code >> 12 & 0x3f));
        b[2] = (uint8_t)(0x80 | (code >> 6 & 0x3f));
        b[3] = (uint8_t)(0x80 | (code & 0x3f));
        put(t, b, 4);
    } else {
        put(t, "?", 1);
    }
}

static void put_atom(struct text *t, struct term_atom atom) {
    struct slice name = mfa_atom(atom.text);
    if (!atom.latin1) {
        put(t, name.data, name.len);
        return;
    }
    for (size_t i = 0; i < name.len; i++) {
        put_char(t, name.data[i]);
    }
}

// A list of characters. Returns false when an element is no character, with the text as it was.
static bool put_string(struct text *t, struct cursor *c) {
    size_t before = t->len;
    bool has_tail;
    struct slice bytes;
    uint32_t n = term_list(c, &has_tail, &bytes);
    for (size_t i = 0; i < bytes.len; i++) {
        put_char(t, bytes.data[i]);
    }
    for (uint32_t i = 0; has_tail && i < n && !c->failed; i++) {
        if (!term_is_integer(term_peek(c))) {
            t->len = before;
            return false;
        }
        int64_t code = term_integer(c);
        put_char(t, code < 0 ? UINT64_MAX : (uint64_t)code);
    }
    if (has_tail && cursor_u8(c) != TERM_NIL) {
        t->len = before;
        return false;
    }
    return !c->failed;
}

// Whether a term is an atom, or leads with a node's: all that the walk counts as having no parts
// but that are no plain bytes.
static bool names_atom(uint8_t tag) {
    return term_is_atom(tag) || (tag >= TERM_NEW_PID && tag <= TERM_NEWER_REFERENCE) ||
           (tag >= TERM_REFERENCE && tag <= TERM_PID) || tag == TERM_NEW_REFERENCE ||
           tag == TERM_V4_PORT;
}

// Whether erl_interface's printer may see these bytes: it checks no length and descends without a
// limit, so the walk must have accepted them, nesting must be small, and nothing may be in it that
// the walk passes over unread (funs). Its buffers for atoms hold 255 characters, and a node's
// latin-1 name of more than 510 writes one byte past them (decode_atom.c, latin1_to_utf8).
static bool printable(struct slice term) {
    // bytes: an atom of 255, five words of a reference, and what is around
    enum { DEEPEST = 32, LONGEST_NAMED = 300 };
    uint64_t open[DEEPEST + 1] = {1};
    size_t depth = 0;
    struct cursor c = cursor_of(term.data, term.len);
    while (!c.failed) {
        while (open[depth] == 0) {
            if (depth == 0) {
                return cursor_left(&c) == 0;
            }
            depth--;
        }
        open[depth]--;
        uint8_t tag = term_peek(&c);
        const uint8_t *from = c.at;
        if (tag == TERM_NEW_FUN || tag == TERM_EXPORT || tag == TERM_LARGE_BIG ||
            tag == TERM_FLOAT) {
            return false;
        }
        uint64_t parts = skip_one(&c);
        if (names_atom(tag) && c.at - from > LONGEST_NAMED) {
            return false;
        }
        if (parts > 0) {
            if (depth == DEEPEST || parts > INT32_MAX) {
                return false;
            }
            open[++depth] = parts;
        }
    }
    return false;
}

static void put_printed(struct text *t, struct slice term) {
    enum { LONGEST = 4096, ROOM = 1024 };
    // The printer reads some tags' lengths as signed and allocates by them: what is long is not
    // printed. It prints to a stream of fixed size, because its own growing buffer is left without
    // an end when memory is out.
    if (term.len <= LONGEST && printable(term)) {
        char printed[ROOM] = "";
        int index = 0;
        FILE *stream = fmemopen(printed, sizeof printed, "w");
        if (stream) {
            int n = ei_print_term(stream, (const char *)term.data, &index);
            fclose(stream); // an error of the stream means that the text is cut
            if (n > 0) {
                put(t, printed, strnlen(printed, sizeof printed));
                return;
            }
        }
    }
    put(t, "term", 4);
}

static void put_element(struct text *t, struct cursor *c) {
    struct cursor start = *c;
    uint8_t tag = term_peek(c);
    if (term_is_atom(tag)) {
        put_atom(t, term_atom(c));
    } else if (tag == TERM_BINARY) {
        cursor_u8(c);
        size_t n = cursor_u32(c);
        const uint8_t *p = cursor_claim(c, n);
        put(t, p, p ? n : 0);
    } else if (tag == TERM_SMALL_INTEGER || tag == TERM_INTEGER) {
        char digits[24];
        int n = snprintf(digits, sizeof digits, "%" PRId64, term_integer(c));
        put(t, digits, (size_t)n);
    } else if (tag != TERM_STRING && tag != TERM_LIST && tag != TERM_NIL) {
        put_printed(t, term_take(c));
    } else if (!put_string(t, c)) {
        *c = start;
        put_printed(t, term_take(c));
    }
}

// The segments of a path: " /a/b".
static void put_path(struct text *t, struct cursor *c) {
    uint32_t arity = term_tuple(c);
    put(t, arity == 0 ? " /" : " ", arity == 0 ? 2 : 1);
    for (uint32_t i = 0; i < arity && !c->failed && t->len < t->size; i++) {
        put(t, "/", 1);
        put_element(t, c);
    }
}

static bool is_method(struct slice name) {
    static const char *const methods[] = {
        "GET",      "HEAD",      "POST",  "PUT",  "DELETE", "PATCH", "OPTIONS", "TRACE",  "CONNECT",
        "PROPFIND", "PROPPATCH", "MKCOL", "COPY", "MOVE",   "LOCK",  "UNLOCK",  "REPORT", "SEARCH"};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (slice_is(name, methods[i])) {
            return true;
        }
    }
    return false;
}

// A pair that is a method and a path, as web servers' helpers write it: a '_' that stands at `at`
// between them becomes " /".
static void join_path(struct text *t, size_t at) {
    bool has_root = t->len > at + 1 && t->out[at + 1] == '/';
    if (at >= t->len || (!has_root && !is_method(slice_of(t->out, at)))) {
        return;
    }
    t->out[at] = ' ';
    if (!has_root && at + 1 < t->size) {
        size_t end = t->len < t->size ? t->len : t->size - 1;
        memmove(t->out + at + 2, t->out + at + 1, end - at - 1);
        t->out[at + 1] = '/';
        t->len = end + 1;
    }
}

size_t term_text(struct slice term, char *out, size_t size) {
    struct text t = {out, 0, size};
    struct cursor c = cursor_of(term.data, term.len);
    if (!term_is_tuple(term_peek(&c))) {
        put_element(&t, &c);
        return t.len;
    }
    uint32_t arity = term_tuple(&c);
    for (uint32_t i = 0; i < arity && !c.failed && t.len < t.size; i++) {
        if (i == 1 && arity == 2 && term_is_tuple(term_peek(&c))) {
            put_path(&t, &c);
            break;
        }
        size_t at = t.len;
        if (i > 0) {
            put(&t, "_", 1);
        }
        put_element(&t, &c);
        if (i == 1 && arity == 2) {
            join_path(&t, at);
        }
    }
    return t.len;
}
