// SPDX-License-Identifier: Apache-2.0
#include "model/profile/reorder.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/limits.h"

static bool earlier(const struct full_event *a, const struct full_event *b) {
    return a->time < b->time || (a->time == b->time && a->order < b->order);
}

void reorder_free(struct reorder *r) {
    free(r->heap);
    *r = (struct reorder){0};
}

bool reorder_put(struct reorder *r, const struct full_event *event) {
    if (r->count == LIMIT_FULL_HELD ||
        !array_grow((void **)&r->heap, &r->room, r->count, sizeof *r->heap)) {
        return false;
    }
    struct full_event added = *event;
    added.order = r->came++;
    r->latest = r->came == 1 || added.time > r->latest ? added.time : r->latest;
    uint32_t at = r->count++;
    for (; at > 0 && earlier(&added, &r->heap[(at - 1) / 2]); at = (at - 1) / 2) {
        r->heap[at] = r->heap[(at - 1) / 2];
    }
    r->heap[at] = added;
    return true;
}

bool reorder_take(struct reorder *r, int64_t before, struct full_event *event) {
    if (r->count == 0 || r->heap[0].time > before) {
        return false;
    }
    *event = r->heap[0];
    struct full_event last = r->heap[--r->count];
    uint32_t at = 0;
    for (uint32_t below = 1; below < r->count; below = 2 * at + 1) {
        below += below + 1 < r->count && earlier(&r->heap[below + 1], &r->heap[below]);
        if (!earlier(&r->heap[below], &last)) {
            break;
        }
        r->heap[at] = r->heap[below];
        at = below;
    }
    r->heap[at] = last;
    return true;
}
