#include <string.h>

#include "model/keep.h"
#include "pipeline_node.h"

enum { IDENTITIES = LIMIT_IDENTITIES + IDENTITIES_FIXED };
// Looking at all there is takes some milliseconds: at most so often while identities are refused, and while few are left.
static const int64_t REFUSED_NS = 2LL * NANOSECONDS;
static const int64_t FEW_NS = 10LL * NANOSECONDS;

// Marks what statistics name that were gathered, or that perhaps are not written yet.
static void mark_statistics(const struct pipeline *p, bool nodes[LIMIT_NODES], bool identities[IDENTITIES]) {
    stats_mark(p->stats, nodes, identities);
    if (p->handed_out) {
        stats_mark(p->handed_out, nodes, identities);
    }
}

static void mark_live(const struct live *live, bool identities[IDENTITIES]) {
    for (uint32_t i = 0; i < live_count(live); i++) {
        identities[live_at(live, i)->identity] = true;
    }
}

static void forget_identities(struct pipeline *p) {
    bool nodes[LIMIT_NODES], used[IDENTITIES] = {0};
    mark_statistics(p, nodes, used);
    for (uint32_t i = 0; i < LIMIT_NODES; i++) {
        const struct pipeline_node *n = p->nodes[i];
        if (n) {
            identify_mark(&n->identify, used);
        }
        if (n && n->tracker) {
            tracker_mark(n->tracker, used);
        }
        if (n && n->live_rows) {
            mark_live(n->live_rows, used);
        }
    }
    for (uint32_t id = IDENTITIES_FIXED; id < p->directory.identities.count; id++) {
        if (!used[id] && names_has(&p->directory.identities, id)) {
            keep_forget_identity(p->keep, (uint16_t)id);
            directory_forget_identity(&p->directory, (uint16_t)id);
        }
    }
}

void names_settle(struct pipeline *p) {
    const struct names *names = &p->directory.identities;
    bool few = names_count(names) > names->cap / 8 * 7;
    int64_t since = p->now.steady - p->names_settled;
    if ((p->directory.identity_refused && since >= REFUSED_NS) || (few && since >= FEW_NS)) {
        p->names_settled = p->now.steady;
        p->directory.identity_refused = false;
        forget_identities(p);
    }
}

void pipeline_used_nodes(const struct pipeline *p, bool used[LIMIT_NODES]) {
    bool identities[IDENTITIES];
    memset(used, 0, LIMIT_NODES * sizeof *used);
    mark_statistics(p, used, identities);
    for (uint32_t i = 0; i < LIMIT_NODES; i++) {
        const struct pipeline_node *n = p->nodes[i];
        used[i] = used[i] || (n && (n->user || n->open || n->live_rows));
    }
}

void pipeline_forget(struct pipeline *p, uint16_t id) {
    node_free(p->nodes[id]);
    p->nodes[id] = NULL;
    label_makers_forget(&p->makers, id);
    keep_forget_node(p->keep, id);
    directory_forget_node(&p->directory, id);
}
