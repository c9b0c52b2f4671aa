// SPDX-License-Identifier: Apache-2.0
#include "model/profile/weights.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/limits.h"

bool weights_init(struct weights *w) {
    *w = (struct weights){0};
    return map_init(&w->index);
}

void weights_free(struct weights *w) {
    map_free(&w->index);
    free(w->all);
    *w = (struct weights){0};
}

void weights_clear(struct weights *w) {
    map_clear(&w->index);
    if (w->room > ARRAY_FIRST_ROOM) {
        free(w->all);
        w->all = NULL;
        w->room = 0;
    }
    w->count = 0;
}

struct weight *weights_at(struct weights *w, uint64_t key, uint32_t cap) {
    uint32_t at = map_get(&w->index, key);
    if (at != MAP_NONE) {
        return &w->all[at];
    }
    at = w->count;
    if (at >= cap) {
        return NULL;
    }
    if (!array_grow((void **)&w->all, &w->room, at, sizeof *w->all) ||
        !map_set(&w->index, key, at)) {
        return NULL;
    }
    w->count++;
    w->all[at] = (struct weight){.key = key};
    return &w->all[at];
}

struct weight *weights_of_process(struct weights *w, uint64_t key, uint32_t *count) {
    uint32_t before = w->count;
    struct weight *of = weights_at(w, key, *count < LIMIT_PROCESS_WEIGHTS ? UINT32_MAX : before);
    *count += w->count - before;
    return of;
}
