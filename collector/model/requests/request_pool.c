// SPDX-License-Identifier: Apache-2.0
#include "tracker.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

void request_pool_divide(struct request_pool *p, uint32_t pools) {
    slab_init(&p->requests, sizeof(struct request), LIMIT_OPEN_REQUESTS / pools);
    slab_init(&p->names, sizeof(struct begun_name), LIMIT_OPEN_REQUESTS / pools);
    slab_init(&p->chunks, sizeof(struct chunk), LIMIT_SPAN_CHUNKS / pools);
    slab_init(&p->calls, sizeof(struct call), LIMIT_OPEN_CALLS / pools);
    slab_init(&p->costs, sizeof(struct call_costs), LIMIT_OPEN_CALLS / pools);
    slab_init(&p->processes, sizeof(struct process), LIMIT_PROCESSES / pools);
}

struct request_pool *request_pool_new(void) {
    struct request_pool *p = calloc(1, sizeof *p);
    if (!p) {
        return NULL;
    }
    request_pool_divide(p, 1);
    p->tree = request_tree_new();
    p->places = malloc(RECORDS * sizeof *p->places);
    p->closed = calloc(LIMIT_CLOSED_TOKENS, sizeof *p->closed);
    p->episodes = calloc(LIMIT_EPISODES, sizeof *p->episodes);
    p->hops = calloc(LIMIT_HOPS, sizeof *p->hops);
    p->rests = calloc(LIMIT_RESTS, sizeof *p->rests);
    p->sends = calloc(LIMIT_SENDS, sizeof *p->sends);
    p->lent = calloc(LIMIT_LENT_LABELS, sizeof *p->lent);
    p->forgotten = calloc(LIMIT_FORGOTTEN_PROCESSES, sizeof *p->forgotten);
    if (!p->tree || !p->places || !p->closed || !p->episodes || !p->hops || !p->rests ||
        !p->sends || !p->lent || !p->forgotten) {
        request_pool_free(p);
        return NULL;
    }
    return p;
}

void request_pool_free(struct request_pool *p) {
    if (p) {
        slab_free(&p->requests);
        slab_free(&p->names);
        slab_free(&p->chunks);
        slab_free(&p->calls);
        slab_free(&p->costs);
        slab_free(&p->processes);
        request_tree_free(p->tree);
        free(p->places);
        free(p->closed);
        free(p->episodes);
        free(p->hops);
        free(p->rests);
        free(p->sends);
        free(p->lent);
        free(p->forgotten);
        free(p);
    }
}

uint32_t request_pool_open(const struct request_pool *p) {
    return p->requests.used;
}

void request_pool_share(struct request_pool *p) {
    p->shared = true;
}

bool request_pool_spare(struct request_pool *p, uint32_t mb) {
    struct slab *slabs[] = {&p->requests, &p->names, &p->chunks,
                            &p->calls,    &p->costs, &p->processes};
    // what is no slab, hops above all, stays
    enum { SLABS = sizeof slabs / sizeof *slabs, FIXED_MB = 2 };
    enum { ALL = LIMIT_MB_REQUESTS - LIMIT_MB_SCRATCH - FIXED_MB };
    uint32_t before[SLABS];
    for (uint32_t i = 0; i < SLABS; i++) {
        uint64_t most = (uint64_t)slabs[i]->cap * (ALL - mb) / ALL;
        before[i] = slabs[i]->most;
        if (!slab_limit(slabs[i], (uint32_t)most)) {
            while (i-- > 0) {
                slab_limit(slabs[i], before[i]);
            }
            return false;
        }
    }
    return true;
}

void request_pool_trim(struct request_pool *p) {
    slab_trim(&p->requests);
    slab_trim(&p->names);
    slab_trim(&p->chunks);
    slab_trim(&p->calls);
    slab_trim(&p->costs);
    slab_trim(&p->processes);
}

void tracker_mark(const struct tracker *t, bool *identities) {
    for (enum phase phase = 0; phase < PHASES; phase++) {
        for (uint32_t i = t->lists[phase].head; i != SLAB_NONE; i = request_at(t, i)->next) {
            identities[request_at(t, i)->identity] = true;
        }
    }
}

void tracker_trim(struct tracker *t) {
    map_fit(&t->by_token);
    map_fit(&t->by_pid);
}

static uint64_t closed_key(const struct tracker *t, uint64_t token) {
    return hash_mix(token ^ t->salt) | 1; // never 0
}

static uint64_t *closed_set(const struct tracker *t, uint64_t key) {
    return &t->pool->closed[(key >> 32) % (LIMIT_CLOSED_TOKENS / CLOSED_WAYS) * CLOSED_WAYS];
}

void prefetch_closed(const struct tracker *t, uint64_t token) {
    __builtin_prefetch(closed_set(t, closed_key(t, token)));
}

void remember_closed(struct tracker *t, uint64_t token) {
    uint64_t key = closed_key(t, token);
    uint64_t *set = closed_set(t, key);
    uint64_t older[CLOSED_WAYS - 1]; // by way of registers: memmove is a call
    memcpy(older, set, sizeof older);
    memcpy(set + 1, older, sizeof older);
    set[0] = key;
}

bool closed_lately(const struct tracker *t, uint64_t token) {
    uint64_t key = closed_key(t, token);
    const uint64_t *set = closed_set(t, key);
    for (int i = 0; i < CLOSED_WAYS; i++) {
        if (set[i] == key) {
            return true;
        }
    }
    return false;
}

void forget_closed(struct tracker *t, uint64_t token) {
    uint64_t key = closed_key(t, token);
    uint64_t *set = closed_set(t, key);
    for (int i = 0; i < CLOSED_WAYS; i++) {
        if (set[i] == key) {
            set[i] = 0;
        }
    }
}
