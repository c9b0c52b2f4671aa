// SPDX-License-Identifier: Apache-2.0
#include "codec/json_object.h"

enum { HEX_DIGITS = 4 };

struct json_object json_object_of(struct slice bytes) {
    return (struct json_object){.at = cursor_of(bytes.data, bytes.len)};
}

static enum json_kind fail(struct json_object *o, const char *why) {
    cursor_fail(&o->at);
    o->why = o->why ? o->why : why;
    return JSON_BAD;
}

// -- bytes ----------------------------------------------------------------------------------------

static int peek(const struct json_object *o) {
    return cursor_left(&o->at) > 0 ? *o->at.at : -1;
}

static void skip_space(struct json_object *o) {
    for (int c = peek(o); c == ' ' || c == '\t' || c == '\n' || c == '\r'; c = peek(o)) {
        cursor_u8(&o->at);
    }
}

static bool takes(struct json_object *o, char wanted) {
    skip_space(o);
    if (peek(o) != (unsigned char)wanted) {
        return false;
    }
    cursor_u8(&o->at);
    return true;
}

static bool takes_word(struct json_object *o, const char *word) {
    size_t len = strlen(word);
    if (cursor_left(&o->at) < len || memcmp(o->at.at, word, len) != 0) {
        return false;
    }
    cursor_claim(&o->at, len);
    return true;
}

// -- texts ----------------------------------------------------------------------------------------

// What is written into a field that is too small has failed.
struct writing {
    char *out;
    size_t room, len;
    bool full;
};

static void put(struct writing *w, uint32_t byte) {
    if (w->len + 1 < w->room) {
        w->out[w->len++] = (char)byte;
    } else {
        w->full = true;
    }
}

static void put_utf8(struct writing *w, uint32_t code) {
    if (code < 0x80) {
        put(w, code);
    } else if (code < 0x800) {
        put(w, 0xc0 | code >> 6);
        put(w, 0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        put(w, 0xe0 | code >> 12);
        put(w, 0x80 | (code >> 6 & 0x3f));
        put(w, 0x80 | (code & 0x3f));
    } else {
        put(w, 0xf0 | code >> 18);
        put(w, 0x80 | (code >> 12 & 0x3f));
        put(w, 0x80 | (code >> 6 & 0x3f));
        put(w, 0x80 | (code & 0x3f));
    }
}

// Four hexadecimal digits; UINT32_MAX: these are none.
static uint32_t hex(struct json_object *o) {
    uint32_t value = 0;
    for (int i = 0; i < HEX_DIGITS; i++) {
        uint8_t c = cursor_u8(&o->at);
        uint32_t digit = c >= '0' && c <= '9'   ? c - '0' + 0u
                         : c >= 'a' && c <= 'f' ? c - 'a' + 10u
                         : c >= 'A' && c <= 'F' ? c - 'A' + 10u
                                                : 16;
        if (digit > 15) {
            return UINT32_MAX;
        }
        value = value << 4 | digit;
    }
    return value;
}

// Behind "\u"; two halves make one character beyond 16 bits. False: it is none.
static bool take_code(struct json_object *o, struct writing *w) {
    uint32_t code = hex(o);
    if (code >= 0xd800 && code < 0xdc00 && takes_word(o, "\\u")) {
        uint32_t low = hex(o);
        bool pair = low >= 0xdc00 && low < 0xe000;
        code = pair ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00) : UINT32_MAX;
    }
    if (code == 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
        return false;
    }
    put_utf8(w, code);
    return true;
}

static bool take_escape(struct json_object *o, struct writing *w) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    uint8_t c = cursor_u8(&o->at);
    if (c == 'u') {
        return take_code(o, w);
    }
    const char *at = c ? strchr(from, c) : NULL;
    if (at) {
        put(w, (unsigned char)to[at - from]);
    }
    return at;
}

// Behind the quote that begins it.
static bool take_text(struct json_object *o, char *out, size_t room) {
    struct writing w = {out, room, 0, false};
    for (;;) {
        if (cursor_left(&o->at) == 0) {
            return fail(o, "a text does not end") != JSON_BAD;
        }
        uint8_t c = cursor_u8(&o->at);
        if (c == '"') {
            break;
        }
        if (c < ' ' || (c == '\\' && !take_escape(o, &w))) {
            return fail(o, "a text has a character that JSON does not have there") != JSON_BAD;
        }
        if (c != '\\') {
            put(&w, c);
        }
    }
    out[w.len] = 0;
    return !w.full || fail(o, "a text is too long") != JSON_BAD;
}

// -- other values ---------------------------------------------------------------------------------

static enum json_kind take_number(struct json_object *o) {
    bool negative = takes_word(o, "-");
    int64_t value = 0;
    int digits = 0, first = peek(o);
    for (int c = first; c >= '0' && c <= '9'; c = peek(o), digits++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, c - '0',
                                   &value)) { // below zero there is room for one more
            return fail(o, "a number is too large");
        }
        cursor_u8(&o->at);
    }
    int next = peek(o);
    if (digits == 0 || (first == '0' && digits > 1) || next == '.' || next == 'e' || next == 'E') {
        return fail(o, "want whole numbers");
    }
    if (!negative && value == INT64_MIN) {
        return fail(o, "a number is too large");
    }
    o->number = negative ? value : -value;
    return JSON_WHOLE;
}

static enum json_kind take_value(struct json_object *o) {
    skip_space(o);
    int c = peek(o);
    if (c == '"') {
        cursor_u8(&o->at);
        return take_text(o, o->text, sizeof o->text) ? JSON_TEXT : JSON_BAD;
    }
    if (c == '-' || (c >= '0' && c <= '9')) {
        return take_number(o);
    }
    o->number = takes_word(o, "true");
    if (o->number || takes_word(o, "false")) {
        return JSON_BOOL;
    }
    return takes_word(o, "null") ? JSON_NULL
                                 : fail(o, "want texts, whole numbers, true, false or null");
}

static enum json_kind end(struct json_object *o) {
    skip_space(o);
    return cursor_left(&o->at) == 0 ? JSON_END : fail(o, "something stands behind the object");
}

enum json_kind json_object_next(struct json_object *o) {
    if (o->why) {
        return JSON_BAD;
    }
    bool first = !o->begun;
    if (first && !takes(o, '{')) {
        return fail(o, "want a JSON object");
    }
    o->begun = true;
    if (takes(o, '}')) {
        return end(o);
    }
    if (!first && !takes(o, ',')) {
        return fail(o, "a comma is missing, or the object does not end");
    }
    if (!takes(o, '"')) {
        return fail(o, "a key is missing");
    }
    if (!take_text(o, o->key, sizeof o->key)) {
        return JSON_BAD;
    }
    return takes(o, ':') ? take_value(o) : fail(o, "a colon is missing");
}
