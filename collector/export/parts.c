// SPDX-License-Identifier: Apache-2.0
#include "export/parts.h"

#include <stdio.h>

// An item alone was refused. Whether to go on.
static bool suspect(struct parts *p, uint32_t item) {
    if (p->taken) {
        p->refuse(p->context, item, p->why);
        return true;
    }
    if (p->suspect_count == PARTS_SUSPECTS) {
        return false;
    }
    if (p->suspect_count == 0) {
        snprintf(p->reason, sizeof p->reason, "%s", p->why);
    }
    p->suspects[p->suspect_count++] = item;
    return true;
}

// Some are taken: those that were suspected are refused.
static void convict(struct parts *p) {
    p->taken = true;
    for (uint32_t i = 0; i < p->suspect_count; i++) {
        p->refuse(p->context, p->suspects[i], p->reason);
    }
    p->suspect_count = 0;
}

// As deep as the items can be halved.
static enum sent send_part(struct parts *p, uint32_t from, uint32_t until) {
    switch (p->insert(p->context, from, until)) {
    case ANSWER_DONE:
        convict(p);
        p->done = until;
        return SENT_ALL;
    case ANSWER_MISSING:
        return SENT_MISSING;
    case ANSWER_LATER:
        return SENT_LATER;
    case ANSWER_REFUSED:
        break;
    }
    if (until - from == 1) {
        bool go_on = suspect(p, from);
        p->done = p->taken ? until : p->done;
        return go_on ? SENT_ALL : SENT_LATER;
    }
    uint32_t middle = from + (until - from) / 2;
    enum sent first = send_part(p, from, middle);
    return first == SENT_ALL ? send_part(p, middle, until) : first;
}

enum sent parts_send(struct parts *p, uint32_t count) {
    enum sent sent = send_part(p, 0, count);
    // all of them were refused: it may be where they go. With others beside them it will show
    return sent == SENT_ALL && p->suspect_count > 0 ? SENT_LATER : sent;
}
