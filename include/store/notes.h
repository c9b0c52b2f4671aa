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
    char node[NOTE_NODE_BYTES]; // the node that it is about; "": all nodes
    char text[NOTE_TEXT_BYTES];
};

// How long notes are kept, seconds.
#define NOTE_KEPT_S (2LL * 365 * 86400)

// Makes a note of texts from outside, which it cuts and cleans as names are. False where the text
// is empty then, or only spaces.
bool note_make(struct note *out, int64_t at_ns, struct slice node, struct slice text);

// Writes a note. Sets *id to its number, which no other note will get. On false nothing was written
// and store_error says why; the same note may be written again later.
bool store_keep_note(struct store *s, const struct note *note, int64_t *id);

struct note_filter {
    int64_t from_s, until_s; // as in struct query
    const char *node; // a choice of nodes (query.h), with the notes about all; NULL: all notes
    uint32_t most;    // the latest ones, so many at most
};

struct note_list {
    struct note *notes; // the latest first
    uint32_t count;
};

// For connections of store_open_reader; one short read transaction. On false there is no answer and
// store_error says why. Give it back with note_list_free, also after false.
bool query_notes(struct store *s, const struct note_filter *filter, struct note_list *out);
void note_list_free(struct note_list *list);
