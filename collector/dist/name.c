// SPDX-License-Identifier: Apache-2.0
#include "dist/name.h"

#include <stdio.h>
#include <string.h>

#include "base/names.h"

// What the atoms of node names hold, and nothing that steers a terminal.
static bool is_part(const char *text) {
    for (const char *p = text; *p; p++) {
        if ((unsigned char)*p <= ' ' || *p == 127 || *p == '@' || *p == '/') {
            return false;
        }
    }
    return *text != 0 && names_is_clean(slice_text(text));
}

bool dist_name_parse(const char *text, const char *this_host, struct dist_name *out) {
    const char *at = strchr(text, '@');
    size_t alive = at ? (size_t)(at - text) : strlen(text);
    const char *host = at ? at + 1 : this_host;
    if (alive >= sizeof out->alive || strlen(host) >= sizeof out->host ||
        alive + 1 + strlen(host) >= sizeof out->full) {
        return false;
    }
    memcpy(out->alive, text, alive);
    out->alive[alive] = 0;
    strcpy(out->host, host);
    strcpy(out->full, out->alive);
    out->full[alive] = '@';
    strcpy(out->full + alive + 1, host);
    out->is_long = strchr(host, '.') != NULL;
    return is_part(out->alive) && is_part(out->host);
}
