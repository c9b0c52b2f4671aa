// SPDX-License-Identifier: Apache-2.0
// What a process was at, at a time: the request that it has begun, the call that is open in it, or
// the latest that was.
#include "causes.h"

enum {
    LOOKED_THROUGH = 4096 // records of a request
};

uint32_t work_settled(const struct tracker *t, uint32_t index, uint32_t generation) {
    while (alive(t, index, generation) && request_at(t, index)->phase == PHASE_JOINED) {
        generation = request_at(t, index)->into_generation;
        index = request_at(t, index)->into;
    }
    return alive(t, index, generation) ? index : SLAB_NONE;
}

const struct episode *episode_find(const struct tracker *t, uint32_t number) {
    bool there = number != 0 && t->pool->episode_count - number < LIMIT_EPISODES;
    return there ? &t->pool->episodes[number % LIMIT_EPISODES] : NULL;
}

const struct episode *episode_at(const struct tracker *t, const struct process *p, int64_t time) {
    const struct episode *e = episode_find(t, p->episode);
    for (int n = 0; e && e->start > time && n < LOOKED_BACK; n++) {
        e = episode_find(t, e->before);
    }
    return e && e->start <= time ? e : NULL;
}

bool sent_before(const struct brought *b, uint64_t clock, uint64_t got) {
    return b->serial < clock ||
           (got > 0 && b->previous > 0 && b->previous != got && b->previous < clock);
}

bool sent_unclear(const struct brought *b, uint64_t clock, uint64_t got) {
    bool spawned = clock > 0 && clock_is_spawned(clock - 1) && clock_is_spawned(b->previous);
    return spawned && got > 0 && b->previous != got && b->previous >= clock;
}

const struct episode *episode_under(struct tracker *t, const struct brought *b) {
    const struct process *p = process_find(t, b->from);
    const struct episode *e = p ? episode_at(t, p, b->time) : NULL;
    int n = 0;
    while (e && (e->label != b->label || sent_before(b, e->clock, e->got)) && n++ < LOOKED_BACK) {
        e = episode_find(t, e->before);
    }
    return n <= LOOKED_BACK ? e : NULL;
}

uint32_t begun_here(const struct tracker *t, const struct process *p, int64_t now) {
    if (!alive(t, p->begun, p->begun_generation) || (p->begun_open > 1 && !in_entry(t, p))) {
        return SLAB_NONE;
    }
    const struct request *r = request_at(t, p->begun);
    return !r->has_end || now <= r->end ? p->begun : SLAB_NONE;
}

// The same as seen from another process: it may not have begun by that time.
static uint32_t begun_at(const struct tracker *t, const struct process *p, int64_t time) {
    uint32_t begun = begun_here(t, p, time);
    return begun != SLAB_NONE && request_at(t, begun)->begin <= time ? begun : SLAB_NONE;
}

// Whether an open call is of a request that the process had begun, and ended before it began its
// latest: its return was lost.
static bool left_open(const struct tracker *t, const struct process *p, const struct call *call) {
    const struct request *r = request_at(t, call->request);
    return call->request != p->begun && r->has_end && begun_by(r, p->pid);
}

// The innermost of a process's open calls that had begun by a time, SLAB_NONE: none.
static uint32_t open_call_at(const struct tracker *t, const struct process *p, int64_t time) {
    uint32_t i = p->top;
    for (; i != SLAB_NONE; i = call_at(t, i)->below) {
        const struct call *call = call_at(t, i);
        if (call->tier != RECORD_SPAWN && alive(t, call->request, call->generation) &&
            span_of(t, call)->start <= time && !left_open(t, p, call)) {
            break;
        }
    }
    return i;
}

bool has_said(const struct tracker *t, const struct process *p, int64_t time) {
    if (p->said == 0 || time < p->said_at) {
        return false;
    }
    uint32_t begun = begun_here(t, p, time);
    return begun == SLAB_NONE || request_at(t, begun)->begin <= p->said_at;
}

struct work work_at(struct tracker *t, uint64_t pid, int64_t time) {
    const struct process *p = process_find(t, pid);
    if (!p) {
        return (struct work){.state = WORK_UNKNOWN, .request = SLAB_NONE};
    }
    if (p->said != 0 && has_said(t, p, time) && (p->said_within || p->said == p->label)) {
        uint32_t known = request_find(t, p->said);
        return (struct work){.state = WORK_OPEN,
                             .begun = true,
                             .request = known == MAP_NONE ? SLAB_NONE : known,
                             .label = p->said,
                             .before = p->episode};
    }
    uint32_t begun = begun_at(t, p, time);
    if (begun != SLAB_NONE) {
        bool same = p->work == begun && p->work_generation == p->begun_generation;
        return (struct work){.state = WORK_OPEN,
                             .begun = true,
                             .request = begun,
                             .label = same ? p->label : request_at(t, begun)->token,
                             .clock = p->begun_clock,
                             .before = p->episode};
    }
    uint32_t open = open_call_at(t, p, time);
    if (open != SLAB_NONE) {
        uint32_t index = call_at(t, open)->request;
        bool latest = open == p->top && p->work == index;
        return (struct work){.state = WORK_OPEN,
                             .request = index,
                             .label = latest ? p->label : request_at(t, index)->token,
                             .clock = p->since_clock,
                             .got = p->got,
                             .sent = p->sent,
                             .before = p->episode};
    }
    const struct episode *e = episode_at(t, p, time);
    if (!e) {
        return (struct work){.state = WORK_UNKNOWN, .request = SLAB_NONE};
    }
    enum work_state state = time <= e->end ? WORK_OPEN : WORK_LAST;
    uint32_t index = work_settled(t, e->request, e->generation);
    bool own = index != SLAB_NONE && begun_by(request_at(t, index), pid);
    return (struct work){.state = state,
                         .begun = own,
                         .request = index,
                         .label = e->label,
                         .clock = e->clock,
                         .got = e->got,
                         .before = e->before};
}

struct looked_for {
    uint64_t pid;
    uint64_t from; // 0: any
    bool found;
};

static void look(void *context, uint32_t i, const struct span_record *record) {
    struct looked_for *l = context;
    bool span = record->tier < RECORD_NONE && record->pid == l->pid &&
                (l->from == 0 || record->from == l->from);
    bool child = record->tier == RECORD_SPAWN && l->from == 0 &&
                 (record->from == l->pid || record->pid == l->pid);
    l->found = l->found || (i < LOOKED_THROUGH && (span || child));
}

bool worked_for(const struct tracker *t, uint32_t index, uint64_t pid, uint64_t from) {
    const struct request *r = request_at(t, index);
    struct looked_for l = {pid, from, from == 0 && begun_by(r, pid)};
    if (!l.found) {
        each_record(t, r, &l, look);
    }
    return l.found;
}
