// The names that statistics are kept under, shared by all nodes of a collector: small numbers for nodes, identities and tiers.
// Ids are never given back; texts outlive every row that names them and may be read from the writer thread.
#pragma once

#include <stdint.h>

#include "base/names.h"
#include "model/paths.h"

enum {
    IDENTITY_TOTAL = 0,     // "_total": all identities together
    IDENTITY_UNDEFINED = 1, // "undefined": nothing named the request
    IDENTITY_OTHER = 2,     // "_other": identities past LIMIT_IDENTITIES
    IDENTITY_REMOTE = 3,    // "_remote": parts of other nodes' requests, no part of "_total"
    IDENTITIES_FIXED = 4,   // that are there from the start
    TIER_TOTAL = 0,         // "_total": the whole request
    DIRECTORY_NONE = UINT16_MAX
};

struct directory {
    struct names nodes;
    struct names identities;
    struct names tiers;
    struct paths paths; // positions in the tree, of all nodes
};

// Returns false without memory.
bool directory_init(struct directory *d);
void directory_free(struct directory *d);
// The id of a node or tier name; DIRECTORY_NONE at the limit.
uint16_t directory_node(struct directory *d, struct slice name);
uint16_t directory_tier(struct directory *d, struct slice name);
// The id of an identity; IDENTITY_OTHER at the limit.
uint16_t directory_identity(struct directory *d, struct slice text);
