// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "model/stats/keep.h"
#include "pipeline_node.h"

enum { IDENTITIES = LIMIT_IDENTITIES + IDENTITIES_FIXED };
// Looking at all there is takes some milliseconds: at most so often while identities are refused,
// and while few are left.
static const int64_t REFUSED_NS = 2LL * NANOSECONDS;
static const int64_t FEW_NS = 10LL * NANOSECONDS;

// Marks what statistics name that were gathered, or that perhaps are not written yet.
static void mark_statistics(const struct pipeline *p, struct directory_used *used) {
    stats_mark(p->stats, used);
    if (p->handed_out) {
        stats_mark(p->handed_out, used);
    }
}

static void mark_live(const struct live *live, bool identities[IDENTITIES]) {
    for (uint32_t i = 0; i < live_count(live); i++) {
        identities[live_at(live, i)->identity] = true;
    }
}

static void mark_node(const struct pipeline_node *n, struct directory_used *used) {
    identify_mark(&n->identify, used->identities);
    if (n->tracker) {
        tracker_mark(n->tracker, used->identities);
    }
    if (n->live_rows) {
        mark_live(n->live_rows, used->identities);
    }
    for (uint32_t tier = 0; tier <= LIMIT_TIER_NAMES; tier++) {
        used->tiers[tier] = used->tiers[tier] || n->tiers_had[tier];
    }
}

static void forget_unused(struct pipeline *p) {
    struct directory_used used = {0};
    mark_statistics(p, &used);
    for (uint32_t i = 0; i < LIMIT_NODES; i++) {
        if (p->nodes[i]) {
            mark_node(p->nodes[i], &used);
        }
    }
    directory_forget(p->directory, p->user, &used);
    for (uint32_t id = IDENTITIES_FIXED; id < IDENTITIES; id++) {
        if (!used.identities[id]) {
            keep_forget_identity(p->keep, (uint16_t)id);
        }
    }
}

void names_settle(struct pipeline *p) {
    enum directory_want want = directory_wants(p->directory, p->user);
    int64_t since = p->now.steady - p->names_settled;
    if ((want == DIRECTORY_REFUSED && since >= REFUSED_NS) ||
        (want != DIRECTORY_PLENTY && since >= FEW_NS)) {
        p->names_settled = p->now.steady;
        forget_unused(p);
    }
}

void pipeline_make_room(const struct pipeline *p) {
    bool wanted = directory_wants_tiers(p->directory);
    for (uint32_t i = 0; wanted && i < pipeline_siblings(p); i++) {
        struct pipeline *one = pipeline_sibling(p, i);
        pipeline_visit(one);
        names_settle(one);
        pipeline_part(one);
    }
}

void pipeline_used_nodes(const struct pipeline *p, bool used[LIMIT_NODES]) {
    struct directory_used all = {0};
    pipeline_visit_all(p);
    for (uint32_t k = 0; k < pipeline_siblings(p); k++) {
        const struct pipeline *one = pipeline_sibling(p, k);
        mark_statistics(one, &all);
        for (uint32_t i = 0; i < LIMIT_NODES; i++) {
            const struct pipeline_node *n = one->nodes[i];
            all.nodes[i] = all.nodes[i] || (n && (n->user || n->open || n->live_rows));
        }
    }
    pipeline_part_all(p);
    memcpy(used, all.nodes, sizeof all.nodes);
}

void pipeline_forget(struct pipeline *p, uint16_t id) {
    pipeline_node_free(p->nodes[id]);
    p->nodes[id] = NULL;
    label_makers_forget(&p->names->makers, id);
    keep_forget_node(p->keep, id);
    directory_forget_node(p->directory, id);
}
