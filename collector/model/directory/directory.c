// SPDX-License-Identifier: Apache-2.0
#include "model/directory/directory.h"

#include <stdlib.h>

#include "base/limits.h"
#include "base/slab.h"

enum { NO_NODE = LIMIT_NODES };
_Static_assert(NO_NODE <= UINT8_MAX, "owners are bytes");
_Static_assert(LIMIT_SURE_TIER_NAMES *LIMIT_NODES < LIMIT_TIER_NAMES,
               "some are for those who come first");

static bool owners_init(struct directory_owners *o, uint32_t names) {
    o->of = malloc(names);
    return o->of != NULL;
}

void directory_share(struct directory *d) {
    d->shared = true;
    d->paths.shared = true;
    d->tier_owners.sure = LIMIT_SURE_TIER_NAMES;
}

// Names that are free for those who have all that they are sure of: none of them is kept for
// anybody.
static uint32_t left_of(const struct names *names, const struct directory_owners *o) {
    uint32_t all = names->cap - o->sure * LIMIT_NODES, taken = o->own[NO_NODE];
    for (uint32_t node = 0; node < LIMIT_NODES; node++) {
        taken += o->own[node] > o->sure ? o->own[node] - o->sure : 0;
    }
    return all > taken ? all - taken : 0;
}

uint32_t directory_tiers_left(const struct directory *d) {
    return left_of(&d->tiers, &d->tier_owners);
}

bool directory_init(struct directory *d) {
    *d = (struct directory){0};
    if (!owners_init(&d->identity_owners, LIMIT_IDENTITIES + IDENTITIES_FIXED)) {
        return false;
    }
    if (!owners_init(&d->tier_owners, LIMIT_TIER_NAMES + 1)) {
        goto err_owners;
    }
    if (!names_init(&d->nodes, LIMIT_NODES)) {
        goto err0;
    }
    if (!names_init(&d->identities, LIMIT_IDENTITIES + IDENTITIES_FIXED)) {
        goto err1;
    }
    if (!names_init(&d->tiers, LIMIT_TIER_NAMES + 1)) {
        goto err2;
    }
    if (!paths_init(&d->paths)) {
        goto err3;
    }
    static const char *const fixed[] = {"_total", "undefined", "_other", "_remote"};
    bool ok = directory_tier(d, slice_text("_total")) == TIER_TOTAL;
    for (uint32_t i = 0; i < IDENTITIES_FIXED; i++) {
        ok = directory_identity(d, slice_text(fixed[i])) == i && ok;
    }
    d->identity_refused = false;
    d->tier_refused = false;
    if (ok) {
        return true;
    }
    paths_free(&d->paths);
err3:
    names_free(&d->tiers);
err2:
    names_free(&d->identities);
err1:
    names_free(&d->nodes);
err0:
    free(d->tier_owners.of);
err_owners:
    free(d->identity_owners.of);
    return false;
}

void directory_free(struct directory *d) {
    names_free(&d->nodes);
    names_free(&d->identities);
    names_free(&d->tiers);
    paths_free(&d->paths);
    free(d->identity_owners.of);
    free(d->tier_owners.of);
}

static uint16_t id_or(uint32_t id, uint16_t otherwise) {
    return id == NAME_NONE ? otherwise : (uint16_t)id;
}

uint16_t directory_node(struct directory *d, struct slice name) {
    return id_or(names_intern(&d->nodes, name), DIRECTORY_NONE);
}

// The id of a name, new if need be and if its node may have one more.
static uint32_t intern(const struct directory *d, struct names *names, struct directory_owners *o,
                       uint16_t node, struct slice text) {
    uint32_t id = names_find(names, text);
    if (id != NAME_NONE) {
        return id;
    }
    if (d->shared && o->own[node] >= o->sure &&
        o->own[node] - o->sure >= SLAB_SHARE * left_of(names, o)) {
        return NAME_NONE;
    }
    id = names_intern(names, text);
    if (id != NAME_NONE) {
        o->of[id] = (uint8_t)node;
        o->own[node]++;
    }
    return id;
}

uint16_t directory_tier_of(struct directory *d, uint16_t node, struct slice name) {
    uint32_t id = intern(d, &d->tiers, &d->tier_owners, node, name);
    d->tier_refused = d->tier_refused || id == NAME_NONE;
    return id_or(id, DIRECTORY_NONE);
}

uint16_t directory_tier(struct directory *d, struct slice name) {
    return directory_tier_of(d, NO_NODE, name);
}

uint16_t directory_identity_of(struct directory *d, uint16_t node, struct slice text) {
    uint32_t id = intern(d, &d->identities, &d->identity_owners, node, text);
    d->identity_refused = d->identity_refused || id == NAME_NONE;
    return id_or(id, IDENTITY_OTHER);
}

uint16_t directory_identity(struct directory *d, struct slice text) {
    return directory_identity_of(d, NO_NODE, text);
}

static void disown(const struct names *names, struct directory_owners *o, uint16_t node) {
    for (uint32_t id = 0; id < names->count && o->own[node] > 0; id++) {
        if (names_has(names, id) && o->of[id] == node) {
            o->of[id] = NO_NODE;
            o->own[node]--;
            o->own[NO_NODE]++;
        }
    }
}

void directory_forget_node(struct directory *d, uint16_t node) {
    disown(&d->identities, &d->identity_owners, node);
    disown(&d->tiers, &d->tier_owners, node);
    paths_disown(&d->paths, node);
    names_remove(&d->nodes, node);
}

void directory_forget_identity(struct directory *d, uint16_t identity) {
    d->identity_owners.own[d->identity_owners.of[identity]]--;
    names_remove(&d->identities, identity);
}

void directory_forget_tiers(struct directory *d, struct directory_used *used) {
    paths_forget(&d->paths, used->paths);
    for (uint32_t id = 1; id <= d->paths.count; id++) {
        if (used->paths[id]) {
            used->tiers[d->paths.all[id].tier] = true;
        }
    }
    for (uint32_t id = TIER_TOTAL + 1; id < d->tiers.count; id++) {
        if (!used->tiers[id] && names_has(&d->tiers, id)) {
            d->tier_owners.own[d->tier_owners.of[id]]--;
            names_remove(&d->tiers, id);
        }
    }
}
