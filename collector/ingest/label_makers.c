// SPDX-License-Identifier: Apache-2.0
#include "ingest/label_makers.h"

#include "model/directory/directory.h"

bool label_makers_init(struct label_makers *m) {
    *m = (struct label_makers){.mutex = PTHREAD_MUTEX_INITIALIZER};
    return map_init(&m->nodes);
}

void label_makers_free(struct label_makers *m) {
    map_free(&m->nodes);
}

static void lock(struct label_makers *m) {
    if (m->threads) {
        pthread_mutex_lock(&m->mutex);
    }
}

static void unlock(struct label_makers *m) {
    if (m->threads) {
        pthread_mutex_unlock(&m->mutex);
    }
}

void label_makers_tell(struct label_makers *m, uint16_t node, uint32_t start) {
    lock(m);
    if (map_get(&m->nodes, start) != node) {
        uint32_t *place = &m->starts[node][m->next[node]];
        if (*place != 0) {
            map_remove(&m->nodes, *place, node); // not when another node drew the same since
        }
        *place = map_set(&m->nodes, start, node) ? start : 0;
        m->next[node] = (uint8_t)((m->next[node] + 1) % LABEL_STARTS);
    }
    unlock(m);
}

void label_makers_forget(struct label_makers *m, uint16_t node) {
    lock(m);
    for (uint32_t i = 0; i < LABEL_STARTS; i++) {
        if (m->starts[node][i] != 0) {
            map_remove(&m->nodes, m->starts[node][i], node);
            m->starts[node][i] = 0;
        }
    }
    m->next[node] = 0;
    unlock(m);
}

uint16_t label_makers_find(struct label_makers *m, uint64_t label) {
    uint64_t start = label >> LABEL_COUNTER_BITS;
    if (start == 0) {
        return DIRECTORY_NONE;
    }
    lock(m);
    uint32_t node = map_get(&m->nodes, start);
    unlock(m);
    return node == MAP_NONE ? DIRECTORY_NONE : (uint16_t)node;
}
