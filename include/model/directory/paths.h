// SPDX-License-Identifier: Apache-2.0
// Positions in the tree of spans: a path is a tier below a path, or below the request itself. Ids
// are from 1 up to LIMIT_PATHS. Those that nothing names any more are given back; until then the
// writer thread may read what it was handed, while one thread adds.
//
// Several users on threads of their own may share paths: nodes belong to one of them each. A path
// is given back when no user names it any more.
//
// A path is charged to the node that first had it. Where several nodes share them, none may have
// more than SLAB_SHARE times as many as are free (base/slab.h).
//
// A tier that calls itself directly is one position, not two: recursion makes no new paths. What
// lies deeper than LIMIT_PATH_DEPTH counts at that depth.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/map.h"

enum { PATH_ROOT = 0, PATH_OTHER = UINT32_MAX }; // the request itself; every path past the cap

enum { PATHS_LATEST = 1024 };

struct path {
    // PATH_ROOT: below the request; of a free id: the next one that is, PATH_ROOT: none
    uint32_t parent;
    uint32_t generation; // of the id: another one once it was given back
    uint16_t tier;       // directory id
    uint8_t depth;       // 1: below the request; 0: the id is free
    uint8_t owner;       // the node, LIMIT_NODES: none that is there
    uint8_t users;       // a bit for each that may name it
};
_Static_assert(LIMIT_PATH_DEPTH <= UINT8_MAX && LIMIT_NODES <= UINT8_MAX && LIMIT_PIPELINES <= 8,
               "they are bytes");

struct paths {
    struct map index;
    struct path *all; // LIMIT_PATHS + 1 of them, allocated once; all[id]
    uint32_t count;   // ids handed out so far,
    uint32_t removed; // and of these
    uint32_t free;    // the first free one of them, PATH_ROOT: none
    bool shared;
    pthread_mutex_t *mutex;        // protects all but what users hold and latest; NULL: one thread
    uint8_t refused;               // one was one too many: a bit for each user that has given
                                   // none back since
    uint32_t own[LIMIT_NODES + 1]; // how many each node has
    uint8_t user_of[LIMIT_NODES + 1];
    // of each user the id found last for each value of a cheap hash of parent and tier; PATH_ROOT:
    // none yet
    uint16_t latest[LIMIT_PIPELINES][PATHS_LATEST];
};

// Returns false without memory.
bool paths_init(struct paths *p);
void paths_free(struct paths *p);
// The path of a tier below another path (PATH_ROOT, PATH_OTHER too), made when it is new, for a
// node. PATH_OTHER when there are too many.
uint32_t paths_below(struct paths *p, uint16_t node, uint32_t parent, uint16_t tier);
// A user names none any more but those in use, by id, and those above them, which are marked so,
// too. What no user names is given back. Who calls this has the mutex.
void paths_forget(struct paths *p, uint32_t user, bool used[LIMIT_PATHS + 1]);
// What a node is charged with is nobody's from now on. Who calls this has the mutex.
void paths_disown(struct paths *p, uint16_t node);
static inline uint32_t paths_count(const struct paths *p) {
    return p->count - p->removed;
}
