// SPDX-License-Identifier: Apache-2.0
#include "model/directory/paths.h"

#include <stdlib.h>

#include <string.h>

#include "base/slab.h"

_Static_assert(LIMIT_PATHS <= UINT16_MAX, "ids fit struct paths.latest");

bool paths_init(struct paths *p) {
    *p = (struct paths){.all = malloc((LIMIT_PATHS + 1) * sizeof *p->all)};
    if (!p->all || !map_init(&p->index)) {
        paths_free(p);
        return false;
    }
    memset(p->all, 0, (LIMIT_PATHS + 1) * sizeof *p->all);
    p->all[PATH_ROOT].tier = UINT16_MAX;
    return true;
}

void paths_free(struct paths *p) {
    map_free(&p->index);
    free(p->all);
    *p = (struct paths){0};
}

static uint64_t key_of(uint32_t parent, uint16_t tier) {
    return (uint64_t)parent << 16 | tier;
}

// A new path's id, or PATH_OTHER.
static uint32_t add(struct paths *p, uint16_t node, uint32_t parent, uint16_t tier) {
    uint32_t left = LIMIT_PATHS - paths_count(p);
    uint32_t id = p->free != PATH_ROOT ? p->free : p->count + 1;
    if (left == 0 || (p->shared && p->own[node] >= SLAB_SHARE * left) ||
        !map_set(&p->index, key_of(parent, tier), id)) {
        p->refused = UINT8_MAX;
        return PATH_OTHER;
    }
    struct path *path = &p->all[id];
    if (id == p->free) {
        p->free = path->parent;
        p->removed--;
    } else {
        p->count++;
    }
    p->own[node]++;
    path->parent = parent;
    path->tier = tier;
    path->depth = (uint8_t)(p->all[parent].depth + 1);
    path->owner = (uint8_t)node;
    path->users = 0;
    return id;
}

// paths_below without the short cut; apart from it, so that this needs no stack frame.
__attribute__((noinline)) static uint32_t find(struct paths *p, uint16_t node, uint32_t parent,
                                               uint16_t tier) {
    if (parent == PATH_OTHER || p->all[parent].tier == tier ||
        p->all[parent].depth == LIMIT_PATH_DEPTH) {
        return parent;
    }
    if (p->mutex) {
        pthread_mutex_lock(p->mutex);
    }
    uint32_t id = map_get(&p->index, key_of(parent, tier));
    id = id != MAP_NONE ? id : add(p, node, parent, tier);
    if (id != PATH_OTHER) {
        p->all[id].users |= (uint8_t)(1u << p->user_of[node]);
    }
    if (p->mutex) {
        pthread_mutex_unlock(p->mutex);
    }
    return id;
}

uint32_t paths_below(struct paths *p, uint16_t node, uint32_t parent, uint16_t tier) {
    // This runs for every span, and few paths make most of them.
    uint16_t *latest = &p->latest[p->user_of[node]][(parent * 37u + tier) % PATHS_LATEST];
    const struct path *path = &p->all[*latest];
    if (path->parent == parent && path->tier == tier) {
        return *latest;
    }
    uint32_t id = find(p, node, parent, tier);
    if (id != PATH_OTHER && id != parent) {
        *latest = (uint16_t)id;
    }
    return id;
}

void paths_forget(struct paths *p, uint32_t user, bool used[LIMIT_PATHS + 1]) {
    uint8_t bit = (uint8_t)(1u << user);
    used[PATH_ROOT] = true;
    for (uint32_t id = 1; id <= p->count; id++) {
        for (uint32_t above = id; used[id] && !used[p->all[above].parent];) {
            above = p->all[above].parent;
            used[above] = true;
        }
    }
    for (uint32_t id = 1; id <= p->count; id++) {
        struct path *path = &p->all[id];
        if (path->depth == 0 || used[id] || !(path->users & bit)) {
            continue;
        }
        path->users &= (uint8_t)~bit;
        if (path->users == 0) {
            map_remove(&p->index, key_of(path->parent, path->tier), id);
            p->own[path->owner]--;
            *path = (struct path){
                .parent = p->free, .generation = path->generation + 1, .tier = UINT16_MAX};
            p->free = id;
            p->removed++;
        }
    }
    p->refused &= (uint8_t)~bit;
    memset(p->latest[user], 0, sizeof p->latest[user]);
}

void paths_disown(struct paths *p, uint16_t node) {
    for (uint32_t id = 1; id <= p->count && p->own[node] > 0; id++) {
        struct path *path = &p->all[id];
        if (path->depth > 0 && path->owner == node) {
            path->owner = LIMIT_NODES;
            p->own[node]--;
            p->own[LIMIT_NODES]++;
        }
    }
}
