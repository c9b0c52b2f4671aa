// SPDX-License-Identifier: Apache-2.0
#include "base/names.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/limits.h"

bool names_init(struct names *n, uint32_t cap) {
    *n = (struct names){.cap = cap,
                        .texts = calloc(cap, sizeof *n->texts),
                        .generations = calloc(cap, sizeof *n->generations)};
    if (n->texts && n->generations && map_init(&n->by_hash)) {
        return true;
    }
    free(n->texts);
    free(n->generations);
    return false;
}

void names_free(struct names *n) {
    for (uint32_t i = 0; i < n->count; i++) {
        free(n->texts[i]);
    }
    free(n->texts);
    free(n->generations);
    map_free(&n->by_hash);
    *n = (struct names){0};
}

// Bytes of the UTF-8 character at p (n bytes are left), 0 when it is none: overlong forms,
// surrogates and control characters are none.
static size_t character(const uint8_t *p, size_t n) {
    if (p[0] < 0x80) {
        return p[0] >= ' ' && p[0] != 0x7f;
    }
    size_t len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || len > n) {
        return 0;
    }
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
        (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f) ||
        (p[0] == 0xc2 && p[1] < 0xa0)) {
        return 0;
    }
    return len;
}

size_t names_clean(struct slice text, char *out, size_t room) {
    size_t len = 0;
    for (size_t i = 0; i < text.len && len < room - 1;) {
        size_t n = character(text.data + i, text.len - i);
        if (n == 0) {
            out[len++] = '?';
            i++;
        } else if (len + n > room - 1) {
            break;
        } else {
            memcpy(out + len, text.data + i, n);
            len += n;
            i += n;
        }
    }
    out[len] = 0;
    return len;
}

bool names_is_clean(struct slice text) {
    for (size_t i = 0; i < text.len;) {
        size_t n = character(text.data + i, text.len - i);
        if (n == 0) {
            return false;
        }
        i += n;
    }
    return true;
}

// The id of a text and, where that needs one, its cleaned form, of *len bytes; *len is 0 where the
// text is known as it is.
static uint32_t find(const struct names *n, struct slice text, char cleaned[LIMIT_NAME_BYTES + 1],
                     size_t *len) {
    // A raw text that needs no cleaning is found without copying it; one that does is looked up
    // again, cleaned.
    uint32_t id = map_get(&n->by_hash, hash_bytes(text));
    *len = 0;
    if (id != MAP_NONE && slice_is(text, n->texts[id])) {
        return id;
    }
    *len = names_clean(text, cleaned, LIMIT_NAME_BYTES + 1);
    return map_get(&n->by_hash, hash_bytes(slice_of(cleaned, *len)));
}

uint32_t names_find(const struct names *n, struct slice text) {
    char cleaned[LIMIT_NAME_BYTES + 1];
    size_t len;
    return find(n, text, cleaned, &len);
}

_Static_assert(MAP_NONE == NAME_NONE, "what is not found has no name");

// The id that a new name gets; there is one.
static uint32_t free_id(const struct names *n) {
    uint32_t id = n->removed > 0 ? 0 : n->count;
    while (id < n->count && n->texts[id]) {
        id++;
    }
    return id;
}

uint32_t names_intern(struct names *n, struct slice text) {
    char cleaned[LIMIT_NAME_BYTES + 1];
    size_t len;
    uint32_t id = find(n, text, cleaned, &len);
    if (id != MAP_NONE) {
        return id;
    }
    if (names_count(n) == n->cap) {
        return NAME_NONE;
    }
    id = free_id(n);
    char *copy = malloc(len + 1);
    if (!copy || !map_set(&n->by_hash, hash_bytes(slice_of(cleaned, len)), id)) {
        free(copy);
        return NAME_NONE;
    }
    memcpy(copy, cleaned, len + 1);
    n->texts[id] = copy;
    if (id == n->count) {
        n->count++;
    } else {
        n->removed--;
    }
    return id;
}

void names_remove(struct names *n, uint32_t id) {
    map_remove(&n->by_hash, hash_bytes(slice_text(n->texts[id])), id);
    free(n->texts[id]);
    n->texts[id] = NULL;
    n->generations[id]++;
    n->removed++;
}

const char *names_text(const struct names *n, uint32_t id) {
    return n->texts[id];
}
