// SPDX-License-Identifier: Apache-2.0
#include "report/slow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *slow_started(int64_t ns, char out[TEXT_TIME_BYTES]) {
    enum { US = 1000, SECOND_US = 1000000 };
    int64_t us = ns / US - (ns % US < 0);
    int64_t part = us % SECOND_US + (us % SECOND_US < 0 ? SECOND_US : 0);
    text_time_format(ns, false, out);
    char *z = strchr(out, 'Z'); // none in "invalid"
    if (z) {
        snprintf(z, TEXT_TIME_BYTES - (size_t)(z - out), ".%06dZ", (int)part);
    }
    return out;
}

// Reads what other nodes did for a request. What a part was done for is not known on its own node.
static enum slow_read read_parts(struct store *store, struct slow_whole *whole) {
    const struct slow_spans *spans = &whole->spans;
    whole->parts = calloc(spans->part_count + 1, sizeof *whole->parts);
    if (!whole->parts) {
        return SLOW_NO_MEMORY;
    }
    for (uint32_t i = 0; !spans->request.origin && i < spans->part_count; i++) {
        bool found; // it may be gone by now
        if (!query_slow_spans(store, spans->parts[i].id, &found, &whole->parts[i])) {
            return SLOW_UNREAD;
        }
    }
    return slow_join(&whole->spans, whole->parts) ? SLOW_FOUND : SLOW_NO_MEMORY;
}

enum slow_read slow_read(struct store *store, int64_t id, struct slow_whole *out) {
    bool found;
    *out = (struct slow_whole){0};
    if (!query_slow_spans(store, id, &found, &out->spans)) {
        return SLOW_UNREAD;
    }
    if (!found) {
        return SLOW_NONE;
    }
    struct profile_filter of_such = {.from_s = INT64_MIN,
                                     .until_s = INT64_MAX,
                                     .node = out->spans.request.node,
                                     .identity = out->spans.request.identity,
                                     .most = SLOW_PROFILES};
    return query_profiles(store, &of_such, &out->profiles) ? read_parts(store, out) : SLOW_UNREAD;
}

void slow_whole_free(struct slow_whole *whole) {
    for (uint32_t i = 0; whole->parts && i < whole->spans.part_count; i++) {
        slow_spans_free(&whole->parts[i]);
    }
    free(whole->parts);
    slow_spans_free(&whole->spans);
    profile_list_free(&whole->profiles);
    *whole = (struct slow_whole){0};
}
