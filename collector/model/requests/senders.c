// SPDX-License-Identifier: Apache-2.0
// The request of a call by what its sender was at when it sent.
#include "causes.h"

// A call from a process of which nothing tells what it was at.
static uint32_t of_stranger(struct tracker *t, const struct brought *b, uint32_t labelled) {
    struct lent *lent = lent_find(t, b->label);
    if (lent) {
        lent_stranger(lent, b->time);
    }
    if (labelled != SLAB_NONE) {
        request_at(t, labelled)->strangers = true;
        forgotten_doubt(t, labelled, b->from, b->time);
    }
    return labelled;
}

// The call of an entry that is open in a process, or NULL.
static const struct span_record *entry_call(const struct tracker *t, const struct process *p) {
    if (!in_entry(t, p)) {
        return NULL;
    }
    uint32_t i = p->top, root = request_at(t, p->begun)->root;
    while (i != SLAB_NONE && (call_at(t, i)->request != p->begun || call_at(t, i)->span != root)) {
        i = call_at(t, i)->below;
    }
    return i == SLAB_NONE ? NULL : span_of(t, call_at(t, i));
}

// The lowest serial that a process had since it began a request with an answer: the first one after
// a sender had done `e` for it, with that sender's answer. 0: none is known.
static uint64_t clock_answered(struct tracker *t, const struct brought *b,
                               const struct episode *e) {
    const struct process *client = e && e->from != b->from ? process_find(t, e->from) : NULL;
    const struct span_record *entry = client ? entry_call(t, client) : NULL;
    bool answers = entry && entry->from == b->from && entry->start >= e->end;
    uint64_t clock = answers ? client->begun_clock : 0;
    const struct episode *own = client ? episode_find(t, client->episode) : NULL;
    for (int n = 0; own && own->start >= e->end && n < LOOKED_BACK; n++) {
        clock = own->own && own->from == b->from ? own->clock : clock;
        own = episode_find(t, own->before);
    }
    return clock;
}

// Whether a sender had answered for what it did before the work that it is at when it sent this.
static bool answered(struct tracker *t, const struct brought *b, const struct episode *before) {
    uint64_t clock = clock_answered(t, b, before);
    return clock > 0 && clock > before->clock && b->serial >= clock;
}

// Whether a sender answered for that work after it had sent this.
static bool answered_after(struct tracker *t, const struct brought *b, const struct episode *e) {
    return b->serial > 0 && clock_answered(t, b, e) > clock_next(b->serial);
}

// The latest episode, of this one and those before it, that a process was at when it sent what has
// this serial; NULL: none that is known.
static const struct episode *episode_sent(const struct tracker *t, const struct brought *b,
                                          const struct episode *e) {
    for (int n = 0; e && sent_before(b, e->clock, e->got) && n < LOOKED_BACK; n++) {
        e = episode_find(t, e->before);
    }
    return e && !sent_before(b, e->clock, e->got) ? e : NULL;
}

// Nobody can tell at which of these episodes, from the latest on, or of a later one, for which the
// call is taken, its sender sent it: of those for which somebody is known to have shown the label.
static void doubt_earlier(struct tracker *t, const struct brought *b, uint32_t index,
                          const struct episode *e) {
    bool more = true;
    for (int n = 0; e && more && n < LOOKED_BACK; n++) {
        uint32_t other = work_settled(t, e->request, e->generation);
        bool there = other != SLAB_NONE && other != index;
        if (there && (e->label == b->label || has_borrowed(t, other, b->label))) {
            requests_doubt_perhaps(t, index, other);
        }
        more = clock_unclear(b->serial, e->clock) || sent_unclear(b, e->clock, e->got) ||
               sent_before(b, e->clock, e->got);
        e = episode_find(t, e->before);
    }
}

// The sender sent this before it began what it is at. What it was at then has a lower serial. Where
// it is not known to have worked for the label's request it was at that, if it had begun it itself.
static uint32_t of_sender_before(struct tracker *t, const struct brought *b, uint32_t labelled,
                                 bool own, const struct episode *e) {
    e = episode_sent(t, b, e);
    uint32_t index = e ? work_settled(t, e->request, e->generation) : SLAB_NONE;
    bool begun = e && (e->own || (index != SLAB_NONE && begun_by(request_at(t, index), b->from)));
    if (begun && !own) {
        return index;
    }
    if ((begun || !own) && index != labelled && lent_find(t, b->label)) {
        requests_doubt(t, index, labelled);
    }
    return own ? labelled : of_stranger(t, b, labelled);
}

// The sender was at `open`, which the label does not say.
static uint32_t of_sender_at_work(struct tracker *t, const struct brought *b, uint32_t labelled,
                                  bool own, const struct work *open) {
    bool told = b->serial > 0 && open->clock > 0 && !clock_unclear(b->serial, open->clock);
    // an answer to what it sent at this would have a higher serial
    bool early = told && b->previous > 0 && b->previous <= open->clock;
    // and what it sent at this before any answer had come is known, and had a higher one
    early = early || (told && b->serial < open->sent && b->previous != open->got);
    if (early || (told && b->serial < open->clock)) {
        return of_sender_before(t, b, labelled, own, episode_find(t, open->before));
    }
    bool lent = lent_find(t, b->label);
    if (!told && !lent && (own || !open->begun)) {
        return labelled;
    }
    // its serials may have been beyond those of the message that brought this: then it may have got
    // another one before
    if (told && !own && !open->begun && open->got > 0 && clock_next(open->got) < open->clock) {
        requests_doubt(t, labelled, open->request);
    }
    if (!own || (told && open->begun)) {
        return open->request;
    }
    if (told && lent && b->previous > 0 && answered(t, b, episode_find(t, open->before))) {
        return open->request;
    }
    // a server may have sent it before, with a higher serial than its own calls tell
    requests_doubt(t, labelled, open->request);
    return open->request;
}

// The sender was at nothing. What it was at long ago tells nothing.
static uint32_t of_idle_sender(struct tracker *t, const struct brought *b, uint32_t labelled,
                               bool own) {
    const struct episode *e = episode_sent(t, b, episode_at(t, process_find(t, b->from), b->time));
    uint32_t last = e ? work_settled(t, e->request, e->generation) : SLAB_NONE;
    if (own) {
        if (last != SLAB_NONE && last != labelled && e->clock > 0) {
            if (lent_find(t, b->label)) {
                // it was not yet at the one when it did the other under this label
                requests_doubt(t, labelled, last);
            } else if (e->own && b->serial > 0 && b->serial < MESSAGE_LAST_SERIAL) {
                // its own request, which it had begun by then, comes before the label
                requests_doubt_perhaps(t, labelled, last);
            }
        }
        return labelled;
    }
    if (last != SLAB_NONE && !e->own && last != labelled) { // it may have been at that still
        if (answered_after(t, b, e)) {
            requests_doubt(t, labelled, last);
        }
        requests_doubt_perhaps(t, labelled, last);
    }
    if (last == SLAB_NONE || !e->own) {
        return of_stranger(t, b, labelled);
    }
    if (clock_unclear(b->serial, e->clock)) {
        doubt_earlier(t, b, last, episode_find(t, e->before));
    }
    return last;
}

// The request that a process was at under a label. Of several that have been this label's own it is
// the latest.
static uint32_t latest_under(const struct tracker *t, uint64_t label, uint32_t index,
                             uint32_t labelled) {
    bool own = index == SLAB_NONE ||
               (request_at(t, index)->token == label && request_at(t, index)->phase != PHASE_PIECE);
    return own ? labelled : index;
}

// The request that a call belongs to, of those that are open; SLAB_NONE: it is none of these.
static uint32_t decide(struct tracker *t, const struct brought *b) {
    uint32_t known = request_find(t, b->label);
    uint32_t labelled = known == MAP_NONE ? SLAB_NONE : known;
    struct work w = work_at(t, b->from, b->time);
    if (w.state == WORK_UNKNOWN) {
        return labelled != SLAB_NONE && worked_for(t, labelled, b->from, 0)
                   ? labelled
                   : of_stranger(t, b, labelled);
    }
    if (w.label == b->label && sent_unclear(b, w.clock, w.got)) {
        uint32_t index = latest_under(t, b->label, w.request, labelled);
        doubt_earlier(t, b, index, episode_find(t, w.before));
        return index;
    }
    bool before_that = sent_before(b, w.clock, w.got);
    const struct episode *early =
        w.label == b->label && before_that ? episode_sent(t, b, episode_find(t, w.before)) : NULL;
    if (early && early->label == b->label) { // sent before that, under the same label
        return latest_under(t, b->label, work_settled(t, early->request, early->generation),
                            labelled);
    }
    if (w.request != SLAB_NONE && w.request == labelled) {
        return labelled;
    }
    if (w.label == b->label && !before_that) {
        return latest_under(t, b->label, w.request, labelled); // it was at that under this label
    }
    // what it did under this label before, perhaps in a piece
    const struct episode *under = episode_under(t, b);
    uint32_t before = labelled;
    if (under) {
        before =
            latest_under(t, b->label, work_settled(t, under->request, under->generation), labelled);
    }
    bool own = under || (before != SLAB_NONE && worked_for(t, before, b->from, 0));
    if (w.state == WORK_OPEN) {
        return of_sender_at_work(t, b, before, own, &w);
    }
    return of_idle_sender(t, b, own ? before : labelled, own);
}

uint32_t sender_request(struct tracker *t, const struct brought *b) {
    uint32_t index = decide(t, b);
    bool is_new =
        index == SLAB_NONE && request_find(t, b->label) == MAP_NONE && !closed_lately(t, b->label);
    return is_new ? request_for(t, b->label, b->time, TIER_NONE) : index;
}

struct closing {
    struct tracker *tracker;
    uint32_t index;
    bool open;      // open calls are stale
    bool strangers; // calls of strangers behind the end are
};

static bool of_stranger_late(const struct closing *c, const struct span_record *record) {
    return record->parent == SPAN_NONE && record->from != record->pid &&
           record->start > request_at(c->tracker, c->index)->end &&
           !process_find(c->tracker, record->from) &&
           !worked_for(c->tracker, c->index, record->from, 0);
}

static void tell_stale(void *context, uint32_t i, const struct span_record *record) {
    (void)i;
    const struct closing *c = context;
    if (record->tier < RECORD_NONE &&
        ((c->open && record->open) || (c->strangers && of_stranger_late(c, record)))) {
        stale_count(c->tracker, record->tier, 0);
    }
}

void cause_stale(struct tracker *t, uint32_t index, bool complete) {
    const struct request *r = request_at(t, index);
    struct closing c = {t, index, complete && r->open > 0, r->strangers && r->has_end};
    if (c.open || c.strangers) {
        each_record(t, r, &c, tell_stale);
    }
}
