// Positions in the tree of spans: a path is a tier below a path, or below the request itself. Ids grow from 1, and a path's is
// larger than its parent's. Grows only, up to LIMIT_PATHS; one thread adds, the writer thread may read what it was handed.
//
// A tier that calls itself directly is one position, not two: recursion makes no new paths. What lies deeper than
// LIMIT_PATH_DEPTH counts at that depth.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

enum { PATH_ROOT = 0, PATH_OTHER = UINT32_MAX }; // the request itself; every path past the cap

enum { PATHS_LATEST = 1024 };

struct path {
    uint32_t parent; // PATH_ROOT: below the request
    uint16_t tier;   // directory id
    uint16_t depth;  // 1: below the request
};

struct paths {
    struct map index;
    struct path *all; // LIMIT_PATHS + 1 of them, allocated once; all[id]
    uint32_t count;   // ids handed out
    uint16_t latest[PATHS_LATEST]; // the id found last for each value of a cheap hash of parent and tier; PATH_ROOT: none yet
};

// Returns false without memory.
bool paths_init(struct paths *p);
void paths_free(struct paths *p);
// The path of a tier below another path (PATH_ROOT, PATH_OTHER too), made when it is new.
uint32_t paths_below(struct paths *p, uint32_t parent, uint16_t tier);
