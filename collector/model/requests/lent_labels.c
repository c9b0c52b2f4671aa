// SPDX-License-Identifier: Apache-2.0
// Labels that are lent: that a process shows while it works for another request. And the doubts
// about requests that come of them.
#include "causes.h"

#include "base/hash.h"
#include "base/time_math.h"

enum {
    LOOKED_FOR = 64 // processes of a request whose arrival is looked for
};

static struct lent *lent_set(const struct tracker *t, uint64_t key) {
    return &t->pool->lent[(key >> 32) % (LIMIT_LENT_LABELS / CLOSED_WAYS) * CLOSED_WAYS];
}

static uint64_t lent_key(const struct tracker *t, uint64_t label) {
    return hash_mix(label ^ t->salt) | 1; // never 0
}

struct lent *lent_find(const struct tracker *t, uint64_t label) {
    if (!t->lends) {
        return NULL;
    }
    uint64_t key = lent_key(t, label);
    struct lent *set = lent_set(t, key);
    for (int i = 0; i < CLOSED_WAYS; i++) {
        if (set[i].key == key) {
            return &set[i];
        }
    }
    return NULL;
}

void lent_stranger(struct lent *lent, int64_t time) {
    lent->strangers[lent->count++ % LENT_STRANGERS] = time;
    lent->count = lent->count == 0 ? LENT_STRANGERS : lent->count; // it has gone round
}

struct arrival {
    uint64_t pid;
    bool told;
};

static void look_for_arrival(void *context, uint32_t i, const struct span_record *record) {
    (void)i;
    struct arrival *a = context;
    a->told = a->told || (record->tier == RECORD_SPAWN && record->from == a->pid) ||
              (record->tier < RECORD_NONE && record->pid == a->pid && record->from != a->pid);
}

struct unasked {
    const struct tracker *tracker;
    const struct request *request;
    uint64_t first; // its first process
    uint32_t looked_for;
    bool found;
};

static void look_for_unasked(void *context, uint32_t i, const struct span_record *record) {
    (void)i;
    struct unasked *u = context;
    if (u->found || record->tier >= RECORD_NONE || record->parent != SPAN_NONE ||
        record->from != record->pid || record->pid == u->first) {
        return;
    }
    struct arrival a = {record->pid, false};
    if (u->looked_for++ < LOOKED_FOR) {
        each_record(u->tracker, u->request, &a, look_for_arrival);
    }
    u->found = !a.told;
}

// Whether nobody is known by now to have asked, or spawned, a process that made calls for a
// request: their token was its own, as it had sent something before.
static bool has_unasked(const struct tracker *t, const struct request *r) {
    struct unasked u = {t, r, r->has_begin ? r->begin_pid : r->root_pid, 0, false};
    each_record(t, r, &u, look_for_unasked);
    return u.found;
}

// A label is lent from now on, to this request at least; the one that was first of those at its
// place makes room.
static void lend(struct tracker *t, uint64_t label, const struct request *to) {
    uint64_t key = lent_key(t, label);
    struct lent *set = lent_set(t, key);
    t->lends = true;
    int64_t now = to->last > t->now ? to->last : t->now;
    if (to->losses == t->losses && now > t->lent_at) { // else it may be the loss that makes it seem
        t->lent_at = now;
    }
    if (lent_find(t, label)) {
        return;
    }
    for (int i = CLOSED_WAYS - 1; i > 0; i--) {
        set[i] = set[i - 1];
    }
    set[0] = (struct lent){.key = key};
    uint32_t known = request_find(t, label);
    struct request *r = known == MAP_NONE ? NULL : request_at(t, known);
    if (r && (r->strangers || (r->unasked && has_unasked(t, r)))) {
        r->strangers = true;
        int64_t last = to->has_end ? to->end : to->last, strange = r->last;
        // some of them may have been that early
        lent_stranger(&set[0], strange < last ? strange : last);
    }
}

// Remembers a label of another request with one.
static void remember_label(struct tracker *t, uint32_t index, uint64_t label) {
    struct request *r = request_at(t, index);
    if (!record_add(t, index,
                    &(struct span_record){
                        .start = (int64_t)label, .parent = SPAN_NONE, .tier = RECORD_LENT})) {
        request_hurt(r, REASON_ROOM);
        return;
    }
    r->borrowed = true;
}

struct unsure {
    struct tracker *tracker;
    uint64_t label;
    const struct request *request; // whose label that is
    const struct request *other;   // NULL: any that the label was lent to
    uint32_t found;                // who did it, SLAB_NONE: nobody
};

struct borrowing {
    uint64_t label;
    bool found;
};

static void look_for_label(void *context, uint32_t i, const struct span_record *record) {
    (void)i;
    struct borrowing *b = context;
    b->found = b->found || (record->tier == RECORD_LENT && (uint64_t)record->start == b->label);
}

bool has_borrowed(const struct tracker *t, uint32_t index, uint64_t label) {
    struct borrowing b = {label, false};
    if (request_at(t, index)->borrowed) {
        each_record(t, request_at(t, index), &b, look_for_label);
    }
    return b.found;
}

static void look_for_sender(void *context, uint32_t i, const struct span_record *record) {
    (void)i;
    struct unsure *u = context;
    if (u->found != SLAB_NONE || record->tier >= RECORD_NONE || record->parent != SPAN_NONE ||
        record->from == record->pid) {
        return;
    }
    struct work w = work_at(u->tracker, record->from, record->start);
    bool at_it = w.request != SLAB_NONE && request_at(u->tracker, w.request) != u->request &&
                 (w.state == WORK_OPEN || (w.state == WORK_LAST && w.label == u->label));
    if (at_it && (!u->other ? has_borrowed(u->tracker, w.request, u->label)
                            : request_at(u->tracker, w.request) == u->other)) {
        u->found = w.request;
    }
}

// Of calls that went to a request by its label before its senders' messages had come as far: the
// other request, or any that the label was lent to, that one of the senders was at; SLAB_NONE.
static uint32_t sender_at_another(struct tracker *t, const struct request *r,
                                  const struct request *other) {
    struct unsure u = {t, r->token, r, other, SLAB_NONE};
    if (r->unsure) {
        each_record(t, r, &u, look_for_sender);
    }
    return u.found;
}

void cause_borrowed(struct tracker *t, uint32_t index, uint64_t label) {
    uint32_t known = request_find(t, label);
    if (known != MAP_NONE &&
        sender_at_another(t, request_at(t, known), request_at(t, index)) != SLAB_NONE) {
        requests_doubt(t, known, index);
    }
    lend(t, label, request_at(t, index));
    remember_label(t, index, label);
}

struct borrower {
    struct tracker *tracker;
    const struct request *request;
    bool doubtful;
};

// Whether a request's calls have gone to the one whose label it was lent; that one is hurt, too.
static bool lender_has_calls(const struct borrower *b, uint64_t label) {
    uint32_t known = request_find(b->tracker, label);
    bool has = known != MAP_NONE && sender_at_another(b->tracker, request_at(b->tracker, known),
                                                      b->request) != SLAB_NONE;
    if (has) {
        request_hurt(request_at(b->tracker, known), REASON_CAUSE);
    }
    return has;
}

static void doubt_borrowed(void *context, uint32_t i, const struct span_record *record) {
    (void)i;
    struct borrower *b = context;
    if (record->tier != RECORD_LENT) {
        return;
    }
    uint64_t label = (uint64_t)record->start;
    const struct lent *lent = lent_find(b->tracker, label);
    b->doubtful = b->doubtful || lender_has_calls(b, label);
    uint32_t known = !lent ? 0 : lent->count < LENT_STRANGERS ? lent->count : LENT_STRANGERS;
    for (uint32_t k = 0; k < known; k++) {
        int64_t time = lent->strangers[k];
        // of more than are remembered one may have been before the oldest
        bool early = lent->count > LENT_STRANGERS || time >= b->request->begin;
        b->doubtful = b->doubtful || (time <= b->request->end && early);
    }
}

// Whether labels were seen to be lent while a request went on, or shortly before.
static bool lent_beside(const struct tracker *t, const struct request *r) {
    return t->lent_at >= time_sub(r->first, GRACE_NS);
}

bool cause_doubtful(struct tracker *t, const struct request *r) {
    bool lent = lent_find(t, r->token);
    struct borrower b = {t, r, (r->strangers && lent) || (r->perhaps && lent_beside(t, r))};
    // now that all messages have come
    uint32_t other = lent && !b.doubtful ? sender_at_another(t, r, NULL) : SLAB_NONE;
    if (other != SLAB_NONE) {
        request_hurt(request_at(t, other), REASON_CAUSE);
        return true;
    }
    if (r->borrowed && !b.doubtful) {
        each_record(t, r, &b, doubt_borrowed);
    }
    return b.doubtful;
}
