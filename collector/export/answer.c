// SPDX-License-Identifier: Apache-2.0
#include "export/answer.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/names.h"

enum { OK = 200, CLIENT_ERROR = 400, NUMBER_DIGITS = 18 };

// -- reading --------------------------------------------------------------------------------------

// A number of at most NUMBER_DIGITS digits.
static bool take_number(struct cursor *c, uint64_t *out) {
    int digits = 0;
    *out = 0;
    while (cursor_left(c) > 0 && isdigit(*c->at) && digits < NUMBER_DIGITS) {
        *out = *out * 10 + (uint64_t)(cursor_u8(c) - '0');
        digits++;
    }
    return digits > 0;
}

static bool take_byte(struct cursor *c, char byte) {
    return cursor_u8(c) == (uint8_t)byte && !c->failed;
}

uint32_t answer_exception(struct slice body) {
    static const char before[] = "Code: ";
    struct cursor c = cursor_of(body.data, body.len);
    const uint8_t *start = cursor_claim(&c, sizeof before - 1);
    uint64_t number;
    return start && memcmp(start, before, sizeof before - 1) == 0 && take_number(&c, &number) &&
                   number <= UINT32_MAX
               ? (uint32_t)number
               : 0;
}

bool answer_version(struct slice body, uint32_t *major, uint32_t *minor) {
    struct cursor c = cursor_of(body.data, body.len);
    uint64_t first, second;
    if (!take_number(&c, &first) || !take_byte(&c, '.') || !take_number(&c, &second) ||
        first > UINT32_MAX || second > UINT32_MAX ||
        (cursor_left(&c) > 0 && *c.at != '.' && *c.at != '\n')) {
        return false;
    }
    *major = (uint32_t)first;
    *minor = (uint32_t)second;
    return true;
}

bool answer_numbers(struct slice body, uint64_t out[2]) {
    struct cursor c = cursor_of(body.data, body.len);
    return take_number(&c, &out[0]) && take_byte(&c, '\t') && take_number(&c, &out[1]) &&
           take_byte(&c, '\n') && cursor_left(&c) == 0;
}

static bool take_word(struct cursor *c, char out[ANSWER_WORD_BYTES]) {
    size_t n = 0;
    while (cursor_left(c) > 0 && (isalnum(*c->at) || *c->at == '_' || *c->at == '-')) {
        if (n == ANSWER_WORD_BYTES - 1) {
            return false;
        }
        out[n++] = (char)cursor_u8(c);
    }
    out[n] = 0;
    return n > 0;
}

bool answer_pair(struct slice *body, char first[ANSWER_WORD_BYTES],
                 char second[ANSWER_WORD_BYTES]) {
    struct cursor c = cursor_of(body->data, body->len);
    if (!take_word(&c, first) || !take_byte(&c, '\t') || !take_word(&c, second) ||
        !take_byte(&c, '\n')) {
        return false;
    }
    *body = slice_of(c.at, cursor_left(&c));
    return true;
}

// -- judging --------------------------------------------------------------------------------------

// Exceptions that are about the engine, what it may do for us, or what its tables are like, not
// about rows. Whatever else it says about an insert may be about the rows: then smaller parts of it
// tell (send.c).
static bool about_the_engine(uint32_t exception) {
    static const uint32_t all[] = {
        16,                    // no such column in a table
        47,                    // no such identifier
        62,                    // syntax
        115,                   // no such setting
        159,                   // timeout
        160,                   // too slow
        164,                   // read only
        173,                   // no memory
        192, 193,  194,  195,  // user, password
        201,                   // quota
        202,                   // too many queries
        203,                   // no free connection
        209, 210,              // network
        236,                   // aborted
        241,                   // memory limit
        242,                   // table is read only
        243,                   // no space
        252,                   // too many parts
        285, 286,  319,        // replicas
        291,                   // database access
        394,                   // cancelled
        425,                   // system
        497,                   // rights
        516,                   // authentication
        999, 1000, 1001, 1002, // keeper, library, unknown
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i] == exception) {
            return true;
        }
    }
    return false;
}

static bool is_missing(uint32_t exception) {
    return exception == 60 || exception == 81 || exception == 218; // table, database, dropped
}

// The exception's text ends where that of the class behind it begins.
static void tell(const struct answer *a, char *reason) {
    static const char tail[] = ", e.what()";
    char text[CHANGE_REASON_BYTES];
    const char *end = memmem(a->body.data, a->body.len, tail, sizeof tail - 1);
    size_t len = end ? (size_t)(end - (const char *)a->body.data) : a->body.len;
    while (len > 0 && (a->body.data[len - 1] == '\n' || a->body.data[len - 1] == ' ')) {
        len--;
    }
    names_clean(slice_of(a->body.data, len), text, sizeof text);
    if (a->status == OK && a->exception == 0 && answer_exception(a->body) == 0) {
        snprintf(reason, CHANGE_REASON_BYTES, "it answers what ClickHouse does not: %.200s", text);
    } else if (text[0] && answer_exception(a->body) > 0) {
        snprintf(reason, CHANGE_REASON_BYTES, "%s", text);
    } else {
        snprintf(reason, CHANGE_REASON_BYTES, "it answers with HTTP status %ld%s%.200s", a->status,
                 text[0] ? ": " : "", text);
    }
}

static enum answer_meaning judge(const struct answer *a, bool good, char *reason) {
    uint32_t exception = a->exception ? a->exception : answer_exception(a->body);
    reason[0] = 0;
    if (a->status == OK && exception == 0 && good && !a->cut) {
        return ANSWER_DONE;
    }
    tell(a, reason);
    if (is_missing(exception)) {
        return ANSWER_MISSING;
    }
    // a status of success may be followed by an exception; what has none is no engine's word
    bool rows = exception > 0 && !about_the_engine(exception) &&
                (a->status == OK || a->status >= CLIENT_ERROR);
    return rows ? ANSWER_REFUSED : ANSWER_LATER;
}

enum answer_meaning answer_to_order(const struct answer *a, char *reason) {
    return judge(a, a->body.len == 0, reason);
}

enum answer_meaning answer_to_question(const struct answer *a, char *reason) {
    return judge(a, true, reason);
}
