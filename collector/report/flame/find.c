// SPDX-License-Identifier: Apache-2.0
#include "report/flame/find.h"

#include <stdlib.h>
#include <string.h>

static bool number_of(const char *text, int64_t *id) {
    char *end;
    bool digits = text[0] != 0 && text[strspn(text, "0123456789")] == 0 && strlen(text) < 19;
    *id = digits ? strtoll(text, &end, 10) : 0;
    return *id > 0;
}

enum flame_found flame_find(struct store *s, const char *what, int64_t *id, struct profile *out) {
    bool found;
    if (!number_of(what, id) && !query_profile_named(s, what, id)) {
        return FLAME_UNREAD;
    }
    if (*id == 0) {
        return FLAME_NONE;
    }
    return !query_profile(s, *id, &found, out) ? FLAME_UNREAD : found ? FLAME_FOUND : FLAME_NONE;
}
