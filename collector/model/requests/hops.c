// SPDX-License-Identifier: Apache-2.0
// Hops: messages with a token that processes take out of their mailboxes. The native tracer tells
// each of them, so that what a process works at is known without any call of its own.
//
// A message was sent at what its sender was at then. That is told by the message: `previous` is the
// serial of what its sender had taken last, and so names the sender's hop. Before its first one it
// was at what it was spawned for, or at the request that it has begun under that label. Two of them
// under a lent label may tell the same serials: when they were sent tells them apart.
//
// Who takes a message that belongs to another request than what it is at either has the answer
// that it waited for, under the label of the one who gave it, and goes on; or has got new work. The
// first is so in the request that it has begun, and in that of the call that is open in it if the
// message is of the same one. With neither, it has new work unless it may wait for an answer of
// that sender: whoever has asked a process leaves a hop there. Where that is so nobody can tell:
// the hop is not sure, and the other rules (causes.c) decide; under a lent label the request is
// incomplete.
//
// A hop that was lost is missed by its serial: what hangs on it is not sure.
#include "causes.h"

#include "base/hash.h"

enum {
    UNSURE = 8 // requests of which a process may be at one
};

static bool hop_is_there(const struct tracker *t, uint32_t number) {
    return number != 0 && t->pool->hop_count - number < LIMIT_HOPS;
}

static const struct hop *hop_at(const struct tracker *t, uint32_t number) {
    return hop_is_there(t, number) ? &t->pool->hops[number % LIMIT_HOPS] : NULL;
}

// The request of a hop, SLAB_NONE when it is no longer there.
static uint32_t hop_request(const struct tracker *t, const struct hop *h) {
    return work_settled(t, h->request, h->generation);
}

// Puts a hop behind the others of a process, with the request that it is at.
static void hop_add(struct tracker *t, struct process *p, const struct hop *hop, uint32_t request) {
    struct request_pool *pool = t->pool;
    pool->hop_count += pool->hop_count == UINT32_MAX ? 2 : 1; // 0 is none
    struct hop next = *hop;
    next.request = request;
    next.generation = request == SLAB_NONE ? 0 : request_at(t, request)->generation;
    next.losses = t->losses;
    next.before = p->hop;
    pool->hops[pool->hop_count % LIMIT_HOPS] = next;
    p->hop = pool->hop_count;
}

// Whether a message that tells this of what its sender had got last can have been sent at a hop. A
// spawn makes that a number that looks like one (tracker.h).
static bool is_sent_at(const struct hop *h, const struct tracker_call *call) {
    return h->label == call->token && h->time <= call->time &&
           (h->spawned ||
            (h->spawns ? clock_is_spawned(call->full_previous) : h->got == call->full_previous));
}

// The number of the hop, from this one back, that a message was sent at; 0: none. Where it is not
// told when it was sent (INT64_MIN), it is the first one at which that can have been.
static uint32_t hop_sent(const struct tracker *t, uint32_t number, const struct tracker_call *call,
                         int64_t sent) {
    const struct hop *h = hop_at(t, number);
    int n = 0;
    while (h && n < LOOKED_BACK && (sent != INT64_MIN ? h->time > sent : !is_sent_at(h, call))) {
        number = h->before;
        h = hop_at(t, number);
        n++;
    }
    return h && n < LOOKED_BACK && is_sent_at(h, call) ? number : 0;
}

// Whether it was sent at a hop or after that: something that was sent there has a lower serial.
static bool is_behind(const struct hop *h, const struct tracker_call *call) {
    return h->sent > 0 && h->sent < call->full_serial && call->full_serial < MESSAGE_LAST_SERIAL;
}

// Whether it can have been sent at another hop before that for another request: two messages under
// a lent label may have the same serial.
static bool is_either(const struct tracker *t, const struct hop *at,
                      const struct tracker_call *call) {
    const struct hop *h = at;
    for (int n = 0; h && n < LOOKED_BACK && lent_find(t, call->token); n++) {
        if (h != at && is_sent_at(h, call) &&
            (!h->sure || hop_request(t, h) != hop_request(t, at))) {
            return true;
        }
        if (is_behind(h, call)) {
            return false;
        }
        h = hop_at(t, h->before);
    }
    return false;
}

// The request that a message was sent for, SLAB_NONE: not known for sure. Its sender's hop: *cause,
// 0: it was at none.
static uint32_t sent_for(struct tracker *t, const struct tracker_call *call, int64_t sent,
                         uint32_t *cause) {
    const struct process *from = process_find(t, call->from);
    uint32_t known = request_find(t, call->token), labelled = known == MAP_NONE ? SLAB_NONE : known;
    *cause = 0;
    if (!from) {
        return SLAB_NONE;
    }
    if (from->said != 0 && has_said(t, from, call->time)) {
        return from->said == call->token ? labelled : SLAB_NONE;
    }
    uint32_t number = hop_sent(t, from->hop, call, sent);
    if (number != 0) {
        struct hop *h = &t->pool->hops[number % LIMIT_HOPS];
        *cause = number;
        bool either = sent == INT64_MIN && is_either(t, h, call);
        if (!either && (h->sent == 0 || call->full_serial < h->sent)) {
            h->sent = call->full_serial;
        }
        return h->sure && !either ? hop_request(t, h) : SLAB_NONE;
    }
    // it may have got its label back while it is at its next one
    uint32_t begun = begun_here(t, from, call->time);
    bool own = labelled != SLAB_NONE && begun_by(request_at(t, labelled), call->from) &&
               (begun == labelled || begun == SLAB_NONE);
    return own ? labelled : SLAB_NONE;
}

// What a process may be at: requests of its hops since a time.
struct may_be {
    int64_t since;
    uint32_t requests[UNSURE];
    uint32_t count;
};

enum asked { ASKED_NOT, ASKED, ASKED_PERHAPS };

static bool is_one_of(const struct may_be *m, uint32_t request) {
    uint32_t i = 0;
    while (i < m->count && m->requests[i] != request) {
        i++;
    }
    return i < m->count;
}

// How many messages of one process another one has taken, of its latest ones, and since when these
// are.
static int taken_from(const struct tracker *t, const struct process *p, uint64_t from,
                      int64_t *since) {
    const struct hop *h = hop_at(t, p->hop);
    int count = 0, n = 0;
    for (; h && n < LOOKED_BACK; n++) {
        count += h->from == from && !h->spawned && !h->spawns;
        *since = h->time;
        h = hop_at(t, h->before);
    }
    *since = n < LOOKED_BACK ? INT64_MIN : *since;
    return count;
}

// The hop of a process at which it took the message of `pid` that it answers by one that it sent at
// `cause`. NULL: that answers none, as far as is known.
static const struct hop *hop_answered(const struct tracker *t, uint32_t cause, uint64_t label,
                                      uint64_t pid) {
    const struct hop *h = hop_at(t, cause);
    for (int n = 0; h && n < LOOKED_BACK && h->label == label && h->from != pid; n++) {
        h = hop_at(t, h->before);
    }
    return h && h->label == label && h->from == pid ? h : NULL;
}

// Whether a message answers one that its sender had taken from this process before that time. What
// it has asked itself then it would have had an answer to by now.
static bool answers_older(const struct tracker *t, const struct hop *answer, uint64_t pid,
                          int64_t time) {
    const struct hop *h = hop_answered(t, answer->cause, answer->label, pid);
    return h && h->time < time;
}

static uint32_t asker_bit(uint64_t pid) {
    return (uint32_t)1 << (hash_mix(pid) >> 59);
}

static void asker_note(const struct tracker *t, struct process *p, const struct hop *hop) {
    if (p->taken == LOOKED_BACK) {
        p->askers[1] = p->askers[0];
        p->askers[0] = 0;
        p->taken = 0;
    }
    p->taken++;
    if (!hop_answered(t, hop->cause, hop->label, p->pid)) {
        p->askers[0] |= asker_bit(hop->from);
    }
}

// Whether a process, or somebody for it, has asked the one who has sent this, and has had no answer
// yet. Only those hops of that one are looked at that are unlike an answer.
static enum asked has_asked(struct tracker *t, const struct process *p,
                            const struct tracker_call *call, const struct may_be *m) {
    const struct process *from = process_find(t, call->from);
    if (!from) {
        return ASKED_NOT;
    }
    bool own = begun_here(t, from, call->time) != SLAB_NONE;
    bool asks = ((from->askers[0] | from->askers[1]) & asker_bit(p->pid)) != 0;
    int64_t known = INT64_MAX;
    // each of its own messages there is the answer to one of these, or asks
    int open = asks ? -taken_from(t, p, call->from, &known) : 0;
    int64_t until = known < m->since ? known : m->since;
    uint32_t number = from->hop;
    const struct hop *h = hop_at(t, number);
    for (int n = 0; h && n < LOOKED_BACK && h->time >= until; n++) {
        if (h->from == p->pid) {
            open += h->time >= known && !h->spawned && !h->spawns &&
                    !answers_older(t, h, call->from, known);
        } else if (h->time >= m->since && !own && m->count > 0 && is_one_of(m, hop_request(t, h))) {
            return ASKED;
        }
        number = h->before;
        h = hop_at(t, number);
    }
    bool more = number != 0 && (!h || h->time >= m->since);
    return open > 0 ? ASKED : more ? ASKED_PERHAPS : ASKED_NOT;
}

// Whether a process in which nothing is open does not wait for an answer of the one who has sent it
// a message for another request than what it is at: then that is new work. What it was at before
// the last hop that is sure, it is at no longer.
static bool is_new_work(struct tracker *t, const struct process *p,
                        const struct tracker_call *call) {
    struct may_be m = {.since = INT64_MIN};
    uint32_t number = p->hop;
    for (int n = 0; number != 0; n++) {
        const struct hop *h = hop_at(t, number);
        if (!h || n == LOOKED_BACK) {
            return false;
        }
        uint32_t request = hop_request(t, h);
        bool over = h->request != SLAB_NONE && request == SLAB_NONE;
        // which does not wait for itself
        bool asker = h->sure && !h->spawned && h->from == call->from;
        if (h->losses != t->losses) {
            return over && m.count == 0;
        }
        if (!over && request != SLAB_NONE && !asker && !is_one_of(&m, request)) {
            if (m.count == UNSURE) {
                return false;
            }
            m.requests[m.count++] = request;
        }
        m.since = h->time;
        if (h->sure) {
            if ((over || asker) && n == 0) {
                return true;
            }
            break;
        }
        number = h->before;
    }
    return has_asked(t, p, call, &m) == ASKED_NOT;
}

// The request that a process is at when it has taken a message for `index`, as far as is known for
// sure.
static uint32_t goes_to(struct tracker *t, const struct process *p, const struct tracker_call *call,
                        uint32_t index, bool *sure) {
    uint32_t begun = begun_here(t, p, call->time);
    *sure = true;
    if (p->said != 0 && has_said(t, p, call->time)) {
        uint32_t known = request_find(t, p->said);
        *sure = known != MAP_NONE && (p->said_within || p->said == call->token);
        return *sure ? known : index;
    }
    if (begun != SLAB_NONE) {
        return begun;
    }
    uint32_t i = p->top;
    while (i != SLAB_NONE && (call_at(t, i)->tier == RECORD_SPAWN ||
                              !alive(t, call_at(t, i)->request, call_at(t, i)->generation))) {
        i = call_at(t, i)->below;
    }
    if (i != SLAB_NONE) {
        // from within that call it is the answer that it waits for
        uint32_t inside = call_at(t, i)->request;
        struct may_be m = {span_of(t, call_at(t, i))->start, {inside}, 1};
        *sure =
            index != SLAB_NONE &&
            (inside == index || (call_at(t, i)->caller == 0 && has_asked(t, p, call, &m) == ASKED));
        return inside;
    }
    const struct hop *at = hop_at(t, p->hop);
    bool same = at && at->sure && index != SLAB_NONE && hop_request(t, at) == index;
    *sure = index != SLAB_NONE && p->begun_open == 0 && (same || is_new_work(t, p, call));
    return index;
}

// A process that calls may come to need the room that those have which only take messages.
static struct process *process_of_hop(struct tracker *t, uint64_t pid, int64_t time) {
    struct process *p = process_find(t, pid);
    bool room = t->pool->processes.used < LIMIT_PROCESSES / 2;
    return p || !room ? p : process_new(t, pid, time);
}

void tracker_taken(struct tracker *t, const struct tracker_call *call) {
    struct process *p = process_of_hop(t, call->pid, call->time);
    int64_t sent = send_taken(t, call);
    t->takes = true;
    if (!p) {
        return;
    }
    process_acts(t, p, call->time);
    struct hop hop = {
        .time = call->time, .label = call->token, .got = call->full_serial, .from = call->from};
    bool sure;
    uint32_t index = sent_for(t, call, sent, &hop.cause);
    uint32_t request = goes_to(t, p, call, index, &sure);
    hop.sure = sure;
    hop.same = request == index;
    hop.sent_at = sent;
    hop.in_at = sent == INT64_MIN ? INT64_MIN : rest_over(t, p, sent);
    hop_add(t, p, &hop, request);
    asker_note(t, p, &hop);
}

void tracker_takes_nothing(struct tracker *t) {
    t->takes = t->measures = false;
}

// Its further messages tell nothing of the one that it had taken before.
static void hop_spawns(struct tracker *t, struct process *p, int64_t time, uint32_t request) {
    struct hop hop = {.time = time, .same = true};
    if (hop_is_there(t, p->hop)) {
        hop = t->pool->hops[p->hop % LIMIT_HOPS];
    }
    hop.label = p->label;
    hop.spawned = false;
    hop.spawns = true;
    hop.sure = p->sure;
    hop_add(t, p, &hop, request);
}

void hop_spawned(struct tracker *t, struct process *parent, uint64_t child, int64_t time,
                 uint32_t request) {
    struct process *p = t->takes && parent->sure ? process_of_hop(t, child, time) : NULL;
    if (t->takes) {
        hop_spawns(t, parent, time, request);
    }
    if (p && p->hop == 0) {
        hop_add(t, p,
                &(struct hop){.time = time,
                              .label = parent->label,
                              .from = parent->pid,
                              .sure = true,
                              .spawned = true},
                request);
    }
}

// The hop that a process is at when it makes a call; NULL when its token says something else.
static const struct hop *hop_of_call(const struct tracker *t, const struct process *p,
                                     const struct tracker_call *call) {
    const struct hop *h = hop_at(t, p->hop);
    if (!h || h->spawned || h->label != call->token) {
        return NULL;
    }
    // when it has sent something since, the token is its own
    bool it = call->from == p->pid ? (h->spawns ? clock_is_spawned(call->full_previous)
                                                : call->full_previous == h->got)
                                   : call->from == h->from && call->full_serial == h->got;
    return it ? h : NULL;
}

bool hop_known(const struct tracker *t, const struct process *p, const struct tracker_call *call,
               uint32_t *request) {
    const struct hop *h = hop_of_call(t, p, call);
    *request = h ? hop_request(t, h) : SLAB_NONE;
    return h && h->sure;
}

uint64_t hop_asker(struct tracker *t, struct process *p, const struct tracker_call *call,
                   uint32_t request, struct hop_chain *chain) {
    const struct hop *h = hop_of_call(t, p, call);
    bool again = p->hop_called == p->hop, measured = true;
    uint32_t number = p->hop;
    if (!h || !h->sure || !h->same || (again && call->from == p->pid)) {
        return call->from;
    }
    p->hop_called = p->hop;
    for (int n = 0; n < HOPS_DEEP; n++) {
        const struct process *from = process_find(t, h->from);
        const struct hop *before = hop_at(t, h->cause);
        bool at_it = from && from->work == request &&
                     from->work_generation == request_at(t, request)->generation;
        measured = measured && h->sent_at != INT64_MIN;
        if (measured && !h->told) {
            chain->hops[chain->count++] = number;
        }
        if (at_it || !before || before->spawned || !before->sure || !before->same ||
            begun_by(request_at(t, request), h->from)) {
            break;
        }
        number = h->cause;
        h = before;
    }
    chain->count = measured && !again ? chain->count : 0;
    chain->again = again && t->measures;
    return h->from;
}
