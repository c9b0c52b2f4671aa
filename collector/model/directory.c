#include "model/directory.h"

#include "base/limits.h"

bool directory_init(struct directory *d) {
    *d = (struct directory){0};
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
    bool ok = names_intern(&d->tiers, slice_text("_total")) == TIER_TOTAL;
    for (uint32_t i = 0; i < IDENTITIES_FIXED; i++) {
        ok = names_intern(&d->identities, slice_text(fixed[i])) == i && ok;
    }
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
    return false;
}

void directory_free(struct directory *d) {
    names_free(&d->nodes);
    names_free(&d->identities);
    names_free(&d->tiers);
    paths_free(&d->paths);
}

static uint16_t id_or(uint32_t id, uint16_t otherwise) {
    return id == NAME_NONE ? otherwise : (uint16_t)id;
}

uint16_t directory_node(struct directory *d, struct slice name) {
    return id_or(names_intern(&d->nodes, name), DIRECTORY_NONE);
}

uint16_t directory_tier(struct directory *d, struct slice name) {
    return id_or(names_intern(&d->tiers, name), DIRECTORY_NONE);
}

uint16_t directory_identity(struct directory *d, struct slice text) {
    return id_or(names_intern(&d->identities, text), IDENTITY_OTHER);
}
