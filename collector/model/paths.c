#include "model/paths.h"

#include <stdlib.h>

#include "base/limits.h"

_Static_assert(LIMIT_PATHS <= UINT16_MAX, "ids fit struct paths.latest");

bool paths_init(struct paths *p) {
    *p = (struct paths){.all = malloc((LIMIT_PATHS + 1) * sizeof *p->all)};
    if (!p->all || !map_init(&p->index)) {
        paths_free(p);
        return false;
    }
    p->all[PATH_ROOT] = (struct path){.tier = UINT16_MAX};
    return true;
}

void paths_free(struct paths *p) {
    map_free(&p->index);
    free(p->all);
    *p = (struct paths){0};
}

// paths_below without the short cut; apart from it, so that this needs no stack frame.
__attribute__((noinline)) static uint32_t find(struct paths *p, uint32_t parent, uint16_t tier) {
    if (parent == PATH_OTHER || p->all[parent].tier == tier || p->all[parent].depth == LIMIT_PATH_DEPTH) {
        return parent;
    }
    uint64_t key = (uint64_t)parent << 16 | tier;
    uint32_t id = map_get(&p->index, key);
    if (id != MAP_NONE) {
        return id;
    }
    if (p->count == LIMIT_PATHS || !map_set(&p->index, key, p->count + 1)) {
        return PATH_OTHER;
    }
    id = ++p->count;
    p->all[id] = (struct path){.parent = parent, .tier = tier, .depth = (uint16_t)(p->all[parent].depth + 1)};
    return id;
}

uint32_t paths_below(struct paths *p, uint32_t parent, uint16_t tier) {
    // This runs for every span, and few paths make most of them.
    uint16_t *latest = &p->latest[(parent * 37u + tier) % PATHS_LATEST];
    const struct path *path = &p->all[*latest];
    if (path->parent == parent && path->tier == tier) {
        return *latest;
    }
    uint32_t id = find(p, parent, tier);
    if (id != PATH_OTHER && id != parent) {
        *latest = (uint16_t)id;
    }
    return id;
}
