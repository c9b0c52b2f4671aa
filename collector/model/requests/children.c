// SPDX-License-Identifier: Apache-2.0
// A child works for the request that its parent was at, whatever the label of both says.
#include "causes.h"

// A child's calls that came before its spawn was told, under the label of another request than its,
// have gone to that one, or to none.
static void child_overtook(struct tracker *t, uint32_t index, uint64_t label, uint64_t child) {
    uint32_t known = request_find(t, label);
    uint32_t labelled = known == MAP_NONE ? SLAB_NONE : known;
    const struct process *c = process_find(t, child);
    bool unplaced = c && c->label == label && c->work == SLAB_NONE;
    if (unplaced || (labelled != SLAB_NONE && worked_for(t, labelled, child, 0))) {
        requests_doubt(t, index, labelled);
    }
}

void cause_child(struct tracker *t, const struct process *p, uint32_t index,
                 const struct span_record *spawn) {
    uint64_t child = spawn->from, label = p->label;
    if (request_find(t, label) == index) {
        return;
    }
    if (!is_piece(t, index)) { // else it is known later whose that is
        child_overtook(t, index, label, child);
    }
    struct process *c = process_find(t, child);
    c = c ? c : process_new(t, child, spawn->start);
    if (!c) {
        request_hurt(request_at(t, index), REASON_ROOM);
        return;
    }
    if (c->top != SLAB_NONE || c->episode != 0) {
        return; // it has overtaken that
    }
    uint32_t before;
    *episode_new(t, c, &before) = (struct episode){.start = spawn->start,
                                                   .end = spawn->start,
                                                   .label = label,
                                                   .request = index,
                                                   .generation = request_at(t, index)->generation,
                                                   .from = p->pid};
    c->label = label;
    c->work = index;
    c->work_generation = request_at(t, index)->generation;
}

struct children {
    struct tracker *tracker;
    uint32_t index;
    uint64_t label;
};

static void child_moves(void *context, uint32_t i, const struct span_record *record) {
    (void)i;
    const struct children *c = context;
    if (record->tier == RECORD_SPAWN && record->from != 0) {
        child_overtook(c->tracker, c->index, c->label, record->from);
    }
}

void children_move(struct tracker *t, const struct request *piece, uint32_t index) {
    each_record(t, piece, &(struct children){t, index, piece->token}, child_moves);
}
