// SPDX-License-Identifier: Apache-2.0
// Interned names: a text gets a small number once, and everything after works with the number.
// Texts are cut at LIMIT_NAME_BYTES (at a UTF-8 border), bytes that are no printable UTF-8 become
// '?'. One thread at a time; names_text and names_generation may be read by other threads that got
// the id from the owner afterwards, as long as the name is not removed.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/map.h"

#define NAME_NONE UINT32_MAX

struct names {
    struct map by_hash;
    char **texts; // cap pointers, made at init, so that readers never see it move; NULL: removed
    uint32_t *generations; // of each id
    uint32_t count;        // ids given out so far,
    uint32_t removed;      // and of these
    uint32_t cap;
};

// A table of at most cap names. Returns false without memory.
bool names_init(struct names *n, uint32_t cap);
void names_free(struct names *n);
// The id of a text, new or known; NAME_NONE when the table is full or memory is out.
uint32_t names_intern(struct names *n, struct slice text);
// The id of a text that is known, or NAME_NONE.
uint32_t names_find(const struct names *n, struct slice text);
// Names in the table.
static inline uint32_t names_count(const struct names *n) {
    return n->count - n->removed;
}
// Whether the id is a name's.
static inline bool names_has(const struct names *n, uint32_t id) {
    return id < n->count && n->texts[id];
}
// Forgets a name: nobody may have its id any more, as another text may get it. names_generation
// then is another one.
void names_remove(struct names *n, uint32_t id);
static inline uint32_t names_generation(const struct names *n, uint32_t id) {
    return n->generations[id];
}
// The text of an id.
const char *names_text(const struct names *n, uint32_t id);

// Copies a text to out with the zero that ends it, cut at a UTF-8 border to room - 1 bytes; bytes
// that are no printable UTF-8 become '?'. Returns its length.
size_t names_clean(struct slice text, char *out, size_t room);
// Whether a text is printable UTF-8, so that names_clean changes nothing but what is too long.
bool names_is_clean(struct slice text);
