// SPDX-License-Identifier: Apache-2.0
#include "model/directory/directory.h"

#include <stdlib.h>

#include "base/limits.h"
#include "base/slab.h"

enum { NO_NODE = LIMIT_NODES, ALL_USERS = UINT8_MAX };
_Static_assert(NO_NODE <= UINT8_MAX, "owners are bytes");
_Static_assert(LIMIT_SURE_TIER_NAMES *LIMIT_NODES < LIMIT_TIER_NAMES,
               "some are for those who come first");

static void lock(struct directory *d) {
    if (d->threads) {
        pthread_mutex_lock(&d->mutex);
    }
}

static void unlock(struct directory *d) {
    if (d->threads) {
        pthread_mutex_unlock(&d->mutex);
    }
}

static void owners_free(struct directory_owners *o) {
    free(o->of);
    free(o->users);
}

static bool owners_init(struct directory_owners *o, uint32_t names) {
    o->of = malloc(names);
    o->users = calloc(names, 1);
    if (o->of && o->users) {
        return true;
    }
    owners_free(o);
    return false;
}

void directory_share(struct directory *d) {
    d->shared = true;
    d->paths.shared = true;
    d->tier_owners.sure = LIMIT_SURE_TIER_NAMES;
}

void directory_thread(struct directory *d) {
    d->threads = true;
    d->paths.mutex = &d->mutex;
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

bool directory_init(struct directory *d) {
    *d = (struct directory){.mutex = PTHREAD_MUTEX_INITIALIZER};
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
    d->identity_refused = d->tier_refused = 0;
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
    owners_free(&d->tier_owners);
err_owners:
    owners_free(&d->identity_owners);
    return false;
}

void directory_free(struct directory *d) {
    names_free(&d->nodes);
    names_free(&d->identities);
    names_free(&d->tiers);
    paths_free(&d->paths);
    owners_free(&d->identity_owners);
    owners_free(&d->tier_owners);
}

static uint16_t id_or(uint32_t id, uint16_t otherwise) {
    return id == NAME_NONE ? otherwise : (uint16_t)id;
}

uint16_t directory_node_of(struct directory *d, uint32_t user, struct slice name) {
    lock(d);
    bool known = names_find(&d->nodes, name) != NAME_NONE;
    uint16_t id = id_or(names_intern(&d->nodes, name), DIRECTORY_NONE);
    if (id != DIRECTORY_NONE && !known) {
        d->paths.user_of[id] = (uint8_t)user;
    } else if (id != DIRECTORY_NONE && d->paths.user_of[id] != user) {
        id = DIRECTORY_NONE;
    }
    unlock(d);
    return id;
}

uint16_t directory_node(struct directory *d, struct slice name) {
    return directory_node_of(d, 0, name);
}

// The id of a name, new if need be and if its node may have one more. If not, that is refused.
static uint32_t intern(struct directory *d, struct names *names, struct directory_owners *o,
                       uint16_t node, struct slice text, uint8_t *refused) {
    lock(d);
    uint32_t id = names_find(names, text);
    if (id == NAME_NONE && !(d->shared && o->own[node] >= o->sure &&
                             o->own[node] - o->sure >= SLAB_SHARE * left_of(names, o))) {
        id = names_intern(names, text);
        if (id != NAME_NONE) {
            o->of[id] = (uint8_t)node;
            o->own[node]++;
        }
    }
    if (id != NAME_NONE) {
        o->users[id] |= (uint8_t)(1u << d->paths.user_of[node]);
    } else {
        *refused = ALL_USERS;
    }
    unlock(d);
    return id;
}

uint16_t directory_tier_of(struct directory *d, uint16_t node, struct slice name) {
    return id_or(intern(d, &d->tiers, &d->tier_owners, node, name, &d->tier_refused),
                 DIRECTORY_NONE);
}

uint16_t directory_tier(struct directory *d, struct slice name) {
    return directory_tier_of(d, NO_NODE, name);
}

uint16_t directory_identity_of(struct directory *d, uint16_t node, struct slice text) {
    return id_or(intern(d, &d->identities, &d->identity_owners, node, text, &d->identity_refused),
                 IDENTITY_OTHER);
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
    lock(d);
    disown(&d->identities, &d->identity_owners, node);
    disown(&d->tiers, &d->tier_owners, node);
    paths_disown(&d->paths, node);
    names_remove(&d->nodes, node);
    unlock(d);
}

// A user names none of these names any more, from an id on, but those in use. All ids that he has
// not named before are marked as if they were.
static void forget_names(struct names *names, struct directory_owners *o, uint32_t from,
                         uint32_t user, bool *used) {
    uint8_t bit = (uint8_t)(1u << user);
    for (uint32_t id = from; id < names->cap; id++) {
        if (used[id] || !names_has(names, id) || !(o->users[id] & bit)) {
            used[id] = true;
            continue;
        }
        o->users[id] &= (uint8_t)~bit;
        if (o->users[id] == 0) {
            o->own[o->of[id]]--;
            names_remove(names, id);
        }
    }
}

void directory_forget(struct directory *d, uint32_t user, struct directory_used *used) {
    lock(d);
    paths_forget(&d->paths, user, used->paths);
    for (uint32_t id = 1; id <= d->paths.count; id++) {
        if (used->paths[id]) {
            used->tiers[d->paths.all[id].tier] = true;
        }
    }
    forget_names(&d->identities, &d->identity_owners, IDENTITIES_FIXED, user, used->identities);
    forget_names(&d->tiers, &d->tier_owners, TIER_TOTAL + 1, user, used->tiers);
    d->identity_refused &= (uint8_t) ~(1u << user);
    d->tier_refused &= (uint8_t) ~(1u << user);
    unlock(d);
}

static bool few_left(uint32_t count, uint32_t cap) {
    return count > cap / 8 * 7;
}

static bool few_tiers(const struct directory *d) {
    return left_of(&d->tiers, &d->tier_owners) < LIMIT_TIERS;
}

enum directory_want directory_wants(struct directory *d, uint32_t user) {
    lock(d);
    bool refused = (d->identity_refused | d->tier_refused | d->paths.refused) >> user & 1;
    bool few = few_left(names_count(&d->identities), d->identities.cap) || few_tiers(d) ||
               few_left(paths_count(&d->paths), LIMIT_PATHS);
    unlock(d);
    return refused ? DIRECTORY_REFUSED : few ? DIRECTORY_FEW : DIRECTORY_PLENTY;
}

bool directory_wants_tiers(struct directory *d) {
    lock(d);
    bool few = few_tiers(d);
    d->tier_refused = few ? ALL_USERS : d->tier_refused;
    unlock(d);
    return few;
}
