// SPDX-License-Identifier: Apache-2.0
#include "ingest/label_makers.h"

#include "model/directory/directory.h"

bool label_makers_init(struct label_makers *m) {
    *m = (struct label_makers){0};
    return map_init(&m->nodes);
}

void label_makers_free(struct label_makers *m) {
    map_free(&m->nodes);
}

void label_makers_tell(struct label_makers *m, uint16_t node, uint32_t start) {
    uint32_t *place = &m->starts[node][m->next[node]];
    if (map_get(&m->nodes, start) == node) {
        return;
    }
    if (*place != 0) {
        map_remove(&m->nodes, *place, node); // not when another node drew the same since
    }
    *place = map_set(&m->nodes, start, node) ? start : 0;
    m->next[node] = (uint8_t)((m->next[node] + 1) % LABEL_STARTS);
}

void label_makers_forget(struct label_makers *m, uint16_t node) {
    for (uint32_t i = 0; i < LABEL_STARTS; i++) {
        if (m->starts[node][i] != 0) {
            map_remove(&m->nodes, m->starts[node][i], node);
            m->starts[node][i] = 0;
        }
    }
    m->next[node] = 0;
}

uint16_t label_makers_find(const struct label_makers *m, uint64_t label) {
    uint64_t start = label >> LABEL_COUNTER_BITS;
    uint32_t node = start == 0 ? MAP_NONE : map_get(&m->nodes, start);
    return node == MAP_NONE ? DIRECTORY_NONE : (uint16_t)node;
}
