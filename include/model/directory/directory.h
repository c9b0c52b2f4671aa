// SPDX-License-Identifier: Apache-2.0
// The names that statistics are kept under, shared by all nodes of a collector: small numbers for
// nodes, identities and tiers. Texts outlive every row that names them and may be read from the
// writer thread. Ids are given back once nothing names them.
//
// Names are charged to the node that first used them. Where several nodes share a directory, none
// may have more than SLAB_SHARE times as many as are free (base/slab.h); of tiers each is sure of
// LIMIT_SURE_TIER_NAMES, and this holds for the rest.
#pragma once

#include <stdint.h>

#include "base/limits.h"
#include "base/names.h"
#include "model/directory/paths.h"

enum {
    IDENTITY_TOTAL = 0,     // "_total": all identities together
    IDENTITY_UNDEFINED = 1, // "undefined": nothing named the request
    IDENTITY_OTHER = 2,     // "_other": identities past LIMIT_IDENTITIES
    IDENTITY_REMOTE = 3,    // "_remote": parts of other nodes' requests, no part of "_total"
    IDENTITIES_FIXED = 4,   // that are there from the start
    TIER_TOTAL = 0,         // "_total": the whole request
    DIRECTORY_NONE = UINT16_MAX
};

// Names by the node that they are charged to.
struct directory_owners {
    uint8_t *of;                   // by name
    uint32_t own[LIMIT_NODES + 1]; // how many each has, the last: those of no node
    uint32_t sure;                 // how many each may have in any case, when they are shared
};

struct directory {
    bool shared;
    bool identity_refused; // one was one too many; set back by who gives some back,
    bool tier_refused;     // likewise
    struct directory_owners identity_owners;
    struct directory_owners tier_owners;
    struct names nodes;
    struct names identities;
    struct names tiers;
    struct paths paths; // positions in the tree, of all nodes
};

// What names something, by id.
struct directory_used {
    bool nodes[LIMIT_NODES];
    bool identities[LIMIT_IDENTITIES + IDENTITIES_FIXED];
    bool tiers[LIMIT_TIER_NAMES + 1];
    bool paths[LIMIT_PATHS + 1];
};

// Names of tiers that are free for those who have all that they are sure of.
uint32_t directory_tiers_left(const struct directory *d);
// From now on no node may have more than its share.
void directory_share(struct directory *d);
// Returns false without memory.
bool directory_init(struct directory *d);
void directory_free(struct directory *d);
// The id of a node or tier name; DIRECTORY_NONE at the limit.
uint16_t directory_node(struct directory *d, struct slice name);
uint16_t directory_tier(struct directory *d, struct slice name);
// The id of an identity; IDENTITY_OTHER at the limit.
uint16_t directory_identity(struct directory *d, struct slice text);
// The same for a node, which the name is charged to if it is new.
uint16_t directory_tier_of(struct directory *d, uint16_t node, struct slice name);
uint16_t directory_identity_of(struct directory *d, uint16_t node, struct slice text);
// Gives ids back that nothing names any more. What a node is charged with is nobody's then.
void directory_forget_node(struct directory *d, uint16_t node);
void directory_forget_identity(struct directory *d, uint16_t identity);
// The same of all tiers and paths that are not in use. Marks what those paths name that stay.
void directory_forget_tiers(struct directory *d, struct directory_used *used);
