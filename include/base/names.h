// Interned names: a text gets a small number once, and everything after works with the number.
// Texts are cut at LIMIT_NAME_BYTES (at a UTF-8 border), bytes that are no printable UTF-8 become '?'.
// One thread at a time; names_text stays valid for the table's life and may be read by other threads that got the id
// from the owner afterwards.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/map.h"

#define NAME_NONE UINT32_MAX

struct names {
    struct map by_hash;
    char **texts; // cap pointers, made at init, so that readers never see it move
    uint32_t count;
    uint32_t cap;
};

// A table of at most cap names. Returns false without memory.
bool names_init(struct names *n, uint32_t cap);
void names_free(struct names *n);
// The id of a text, new or known; NAME_NONE when the table is full or memory is out.
uint32_t names_intern(struct names *n, struct slice text);
// The text of an id.
const char *names_text(const struct names *n, uint32_t id);

// Copies a text to out with the zero that ends it, cut at a UTF-8 border to room - 1 bytes; bytes that are no printable UTF-8 become '?'.
// Returns its length.
size_t names_clean(struct slice text, char *out, size_t room);
// Whether a text is printable UTF-8, so that names_clean changes nothing but what is too long.
bool names_is_clean(struct slice text);
