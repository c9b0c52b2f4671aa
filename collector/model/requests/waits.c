// SPDX-License-Identifier: Apache-2.0
// How long messages waited: when each was sent and taken, and, where scheduling is traced, when its
// process was scheduled in for it. Where the native tracer tells of both, what a call waited is
// measured so, and no estimate of request_tree.h.
//
// A message is known again by its label, its sender and its serial. A sender may give two of them
// the same serial under a lent label (hops.c): while both are on their way nothing is known of
// either.
#include "tracker.h"

#include "base/hash.h"

enum {
    SEND_WAYS = 4,
    RESTS_BACK = 64 // of a process that are looked through
};
_Static_assert(SEND_WAYS * sizeof(struct send) == 64, "a set has the size of a cache line");

static uint64_t send_key(const struct tracker *t, const struct tracker_call *call) {
    return hash_mix(call->token ^ hash_mix(call->from ^ hash_mix(call->full_serial ^ t->salt))) | 1;
}

// The set that a message has its place in, and that place; NULL: it is not there.
static struct send *send_find(const struct tracker *t, uint64_t key, struct send **set) {
    *set = &t->pool->sends[(key >> 32) % (LIMIT_SENDS / SEND_WAYS) * SEND_WAYS];
    for (int i = 0; i < SEND_WAYS; i++) {
        if ((*set)[i].key == key) {
            return &(*set)[i];
        }
    }
    return NULL;
}

void tracker_sent(struct tracker *t, const struct tracker_call *call) {
    t->measures = true;
    uint64_t key = send_key(t, call);
    struct send *set, *known = send_find(t, key, &set);
    if (known) {
        known->time = INT64_MIN; // one of two
        return;
    }
    for (int i = SEND_WAYS - 1; i > 0; i--) { // the latest first
        set[i] = set[i - 1];
    }
    set[0] = (struct send){key, call->time};
}

int64_t send_taken(struct tracker *t, const struct tracker_call *call) {
    struct send *set, *known = send_find(t, send_key(t, call), &set);
    if (!known || known->time > call->time) {
        return INT64_MIN;
    }
    int64_t time = known->time;
    if (time != INT64_MIN) { // else another one of its key is on its way
        for (; known < set + SEND_WAYS - 1; known++) {
            known[0] = known[1];
        }
        *known = (struct send){0, 0};
    }
    return time;
}

// -- the run queue --------------------------------------------------------------------------------

static const struct rest *rest_at(const struct tracker *t, uint32_t number) {
    return number != 0 && t->pool->rest_count - number < LIMIT_RESTS
               ? &t->pool->rests[number % LIMIT_RESTS]
               : NULL;
}

void rest_note(struct tracker *t, struct process *p, int64_t from, int64_t to) {
    struct request_pool *pool = t->pool;
    if (!t->takes || from == INT64_MIN || to < from) {
        return;
    }
    pool->rest_count += pool->rest_count == UINT32_MAX ? 2 : 1; // 0 is none
    pool->rests[pool->rest_count % LIMIT_RESTS] = (struct rest){from, to, p->rest, t->losses};
    p->rest = pool->rest_count;
}

int64_t rest_over(const struct tracker *t, const struct process *p, int64_t time) {
    const struct rest *r = p->off_since == INT64_MIN ? rest_at(t, p->rest) : NULL;
    for (int n = 0; r && r->from > time && n < RESTS_BACK; n++) {
        r = rest_at(t, r->before);
    }
    if (!r || r->from > time || r->losses != t->losses) {
        return INT64_MIN;
    }
    return r->to > time ? r->to : time;
}

// -- what a call waited ---------------------------------------------------------------------------

static void wait_add(struct tracker *t, uint32_t index, const struct span_record *record) {
    if (!record_add(t, index, record)) {
        request_hurt(request_at(t, index), REASON_ROOM);
    }
}

void waits_add(struct tracker *t, uint32_t index, const struct call *call,
               const struct hop_chain *chain) {
    struct span_record record = {.parent = call->span, .tier = RECORD_WAIT, .open = chain->again};
    if (chain->again) {
        wait_add(t, index, &record);
    }
    for (uint32_t i = 0; i < chain->count; i++) {
        struct hop *h = &t->pool->hops[chain->hops[i] % LIMIT_HOPS];
        h->told = true;
        record.start = h->sent_at;
        record.end = h->time;
        record.pid = (uint64_t)h->in_at;
        wait_add(t, index, &record);
    }
}
