// SPDX-License-Identifier: Apache-2.0
// The names that statistics are kept under, shared by all nodes of a collector: small numbers for
// nodes, identities and tiers. Texts outlive every row that names them and may be read from the
// writer thread. Ids are given back once nothing names them.
//
// Several pipelines may share a directory, each on a thread of its own: users of it, numbered from
// 0. A node is one user's, and so is what it names; a name is given back when no user names it any
// more. The functions here may be called by all of them at the same time. Texts are read as they
// are: whoever has an id of a name that he uses, may.
//
// Names are charged to the node that first used them. Where several nodes share a directory, none
// may have more than SLAB_SHARE times as many as are free (base/slab.h); of tiers each is sure of
// LIMIT_SURE_TIER_NAMES, and this holds for the rest.
#pragma once

#include <pthread.h>
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
    uint8_t *users;                // by name, a bit for each that may name it
    uint32_t own[LIMIT_NODES + 1]; // how many each has, the last: those of no node
    uint32_t sure;                 // how many each may have in any case, when they are shared
};

struct directory {
    pthread_mutex_t mutex; // taken when
    bool threads;          // there are several users
    bool shared;           // by nodes, of which none may take what others need
    // One was one too many: a bit for each user that has given none back since.
    uint8_t identity_refused, tier_refused;
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

// From now on no node may have more than its share. Before any other thread uses it.
void directory_share(struct directory *d);
// From now on there may be users on several threads. Likewise.
void directory_thread(struct directory *d);
// A directory of one user, 0, on one thread. Returns false without memory.
bool directory_init(struct directory *d);
void directory_free(struct directory *d);
// The id of a node or tier name; DIRECTORY_NONE at the limit.
uint16_t directory_node(struct directory *d, struct slice name);
uint16_t directory_tier(struct directory *d, struct slice name);
// The id of an identity; IDENTITY_OTHER at the limit.
uint16_t directory_identity(struct directory *d, struct slice text);
// The id of a user's node; DIRECTORY_NONE also when it is another user's.
uint16_t directory_node_of(struct directory *d, uint32_t user, struct slice name);
// The same as the above for a node, which the name is charged to if it is new.
uint16_t directory_tier_of(struct directory *d, uint16_t node, struct slice name);
uint16_t directory_identity_of(struct directory *d, uint16_t node, struct slice text);
// Gives a node's id back that nothing names any more. What it is charged with is nobody's then.
void directory_forget_node(struct directory *d, uint16_t node);
// A user names no identities, tiers and paths any more but those in use. Marks what those paths
// name that stay in use, and what he has not named before: what is not marked then he has given
// back.
void directory_forget(struct directory *d, uint32_t user, struct directory_used *used);
// Whether a user shall give names back: now, as one was refused; or soon, as few are left.
enum directory_want { DIRECTORY_PLENTY, DIRECTORY_FEW, DIRECTORY_REFUSED };
enum directory_want directory_wants(struct directory *d, uint32_t user);
// Whether a node's tiers may have no room. Then that counts as refused.
bool directory_wants_tiers(struct directory *d);
