#include "base/names.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/limits.h"

bool names_init(struct names *n, uint32_t cap) {
    *n = (struct names){.cap = cap, .texts = calloc(cap, sizeof *n->texts)};
    if (n->texts && map_init(&n->by_hash)) {
        return true;
    }
    free(n->texts);
    return false;
}

void names_free(struct names *n) {
    for (uint32_t i = 0; i < n->count; i++) {
        free(n->texts[i]);
    }
    free(n->texts);
    map_free(&n->by_hash);
    *n = (struct names){0};
}

// Bytes of the UTF-8 character at p (n bytes are left), 0 when it is none: overlong forms, surrogates and control characters
// are none.
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
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf0 && p[1] < 0x90) ||
        (p[0] == 0xf4 && p[1] > 0x8f) || (p[0] == 0xc2 && p[1] < 0xa0)) {
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

uint32_t names_intern(struct names *n, struct slice text) {
    // A raw text that needs no cleaning is found without copying it; one that does is looked up again, cleaned.
    uint64_t key = hash_bytes(text);
    uint32_t id = map_get(&n->by_hash, key);
    if (id != MAP_NONE && slice_is(text, n->texts[id])) {
        return id;
    }
    char cleaned[LIMIT_NAME_BYTES + 1];
    size_t len = names_clean(text, cleaned, sizeof cleaned);
    key = hash_bytes(slice_of(cleaned, len));
    id = map_get(&n->by_hash, key);
    if (id != MAP_NONE) {
        return id;
    }
    if (n->count == n->cap) {
        return NAME_NONE;
    }
    char *copy = malloc(len + 1);
    if (!copy || !map_set(&n->by_hash, key, n->count)) {
        free(copy);
        return NAME_NONE;
    }
    memcpy(copy, cleaned, len + 1);
    n->texts[n->count] = copy;
    return n->count++;
}

const char *names_text(const struct names *n, uint32_t id) {
    return n->texts[id];
}
