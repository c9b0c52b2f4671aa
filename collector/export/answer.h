// SPDX-License-Identifier: Apache-2.0
// What an engine's answer means. The engine, or what answers in its place, may say anything. Pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "store/changes.h"

enum answer_meaning {
    ANSWER_DONE,    // it did what it was told
    ANSWER_REFUSED, // it does not take these rows, and may take others
    ANSWER_MISSING, // a table or the database is not there (any more)
    ANSWER_LATER    // anything else that was no success: the same may succeed later
};

struct answer {
    long status;        // of HTTP
    uint32_t exception; // of the head's X-ClickHouse-Exception-Code; 0: none
    struct slice body;  // its first bytes
    bool cut;           // there were more of them than are taken
    uint32_t retry_s;   // of the head's Retry-After, where that is a number; 0: none
};

// What an answer to a statement means that answers nothing when it succeeds, as an insert does.
// reason, CHANGE_REASON_BYTES: one clean line, "" after ANSWER_DONE.
enum answer_meaning answer_to_order(const struct answer *a, char *reason);
// The same of a question, whose answer is in the body.
enum answer_meaning answer_to_question(const struct answer *a, char *reason);

// The number of an exception that a text begins with ("Code: 60. …"); 0: it begins with none.
uint32_t answer_exception(struct slice body);
// The first two numbers of what version() answers; false: that is no version.
bool answer_version(struct slice body, uint32_t *major, uint32_t *minor);
// Two numbers with a tab between them, and a newline; false: anything else.
bool answer_numbers(struct slice body, uint64_t out[2]);

enum { ANSWER_WORD_BYTES = 129 };
// Takes a line of two words, of letters, digits, _ and -, with a tab between them, off the front of
// *body. False: there is no such line; *body is then as it was.
bool answer_pair(struct slice *body, char first[ANSWER_WORD_BYTES], char second[ANSWER_WORD_BYTES]);
