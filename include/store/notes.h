// SPDX-License-Identifier: Apache-2.0
// Notes of what people did, such as "deployed 1.4": written by the thread that owns the store's
// writing connection, read by others.
#pragma once

#include "base/limits.h"
#include "store/store.h"

enum { NOTE_NODE_BYTES = LIMIT_NAME_BYTES + 1, NOTE_TEXT_BYTES = LIMIT_NOTE_BYTES + 1 };

struct note {
    int64_t id; // 0 before it is kept
    int64_t at_ns;
    char node[NOTE_NODE_BYTES]; // that it is of; "": of all of them
    char text[NOTE_TEXT_BYTES];
};

// How long notes are kept, seconds.
#define NOTE_KEPT_S (2LL * 365 * 86400)

// Makes a note of texts that come from outside: cut, and cleaned as names are. False where no text
// is left but spaces.
bool note_make(struct note *out, int64_t at_ns, struct slice node, struct slice text);

// Keeps a note. *id is its number then, which no other note will get. On false nothing was written,
// store_error says why, and the same note may be written again later.
bool store_keep_note(struct store *s, const struct note *note, int64_t *id);

struct note_filter {
    int64_t from_s, until_s; // as in struct query
    const char *node;        // of these, a choice (query.h), or of all; NULL: whatever they are of
    uint32_t most;           // this many at most, the latest
};

struct note_list {
    struct note *notes; // the latest first
    uint32_t count;
};

// For connections of store_open_reader; one short read transaction. On false there is no answer and
// store_error says why. Give it back with note_list_free, also after false.
bool query_notes(struct store *s, const struct note_filter *filter, struct note_list *out);
void note_list_free(struct note_list *list);
