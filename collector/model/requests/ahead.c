// SPDX-License-Identifier: Apache-2.0
// Calls that went by their label ahead of their senders' messages: they are looked at again when
// these have come.
//
// To let each of them wait in a piece would be dear: who asks another process does nothing else
// until it has the answer, so that its messages are always behind; and of whom nothing is known
// there are most often none to come. So they go to their label's request right away. Where that
// turns out to be wrong, it is incomplete, and so is the right one.
#include "causes.h"

static void look_again(struct tracker *t) {
    const struct ahead *a = &t->ahead[t->ahead_first];
    const struct brought *b = &a->brought;
    t->ahead_first = (t->ahead_first + 1) % LIMIT_CALLS_AHEAD;
    t->ahead_count--;
    const struct process *from = process_find(t, b->from);
    // what it had said before its latest word is forgotten, and was the label most likely
    if (!from || from->said_at > b->time || !alive(t, a->request, a->generation) ||
        request_find(t, b->label) != a->request) {
        return;
    }
    uint32_t index = sender_request(t, b);
    if (index == a->request) {
        return;
    }
    requests_doubt(t, a->request, index);
    if (index != SLAB_NONE) {
        cause_borrowed(t, index, b->label);
    }
}

void ahead_note(struct tracker *t, uint32_t index, const struct brought *b) {
    if (t->ahead_count == LIMIT_CALLS_AHEAD) {
        look_again(t);
    }
    t->ahead[(t->ahead_first + t->ahead_count++) % LIMIT_CALLS_AHEAD] =
        (struct ahead){*b, index, request_at(t, index)->generation};
}

void ahead_settle(struct tracker *t, int64_t now) {
    while (t->ahead_count > 0 && t->ahead[t->ahead_first].brought.time <= now - DISORDER_NS) {
        look_again(t);
    }
}
