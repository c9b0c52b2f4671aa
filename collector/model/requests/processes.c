// SPDX-License-Identifier: Apache-2.0
#include "tracker.h"

struct process *process_look_up(struct tracker *t, uint64_t pid) {
    uint32_t index = map_get(&t->by_pid, pid);
    if (index == MAP_NONE) {
        return NULL;
    }
    t->processes[pid % LATEST] = (struct latest){pid, index};
    return SLAB_AT(&t->pool->processes, struct process, index);
}

struct process *process_new(struct tracker *t, uint64_t pid, int64_t time) {
    uint32_t index = POOL_TAKE(t, processes);
    if (index == SLAB_NONE) {
        return NULL;
    }
    if (!map_set(&t->by_pid, pid, index)) {
        POOL_GIVE(t, processes, index);
        return NULL;
    }
    t->processes[pid % LATEST] = (struct latest){pid, index};
    struct process *p = SLAB_AT(&t->pool->processes, struct process, index);
    *p = (struct process){.pid = pid,
                          .gc_since = INT64_MIN,
                          .off_since = INT64_MIN,
                          .said_at = INT64_MIN,
                          .top = SLAB_NONE,
                          .begun = SLAB_NONE,
                          .guessed = SLAB_NONE,
                          .returned = SLAB_NONE,
                          .work = SLAB_NONE,
                          .waiting = SLAB_NONE,
                          .last = time};
    return p;
}

void settle_costs(struct tracker *t, const struct call *call) {
    const struct call_costs *costs = slab_at(&t->pool->costs, call->costs);
    if (alive(t, call->request, call->generation)) {
        record_add(t, call->request,
                   &(struct span_record){.start = (int64_t)costs->gc,
                                         .end = (int64_t)costs->off_cpu,
                                         .parent = call->span,
                                         .tier = RECORD_COSTS});
    }
    POOL_GIVE(t, costs, call->costs);
}

void process_forget(struct tracker *t, struct process *p) {
    pieces_settle(t, p, INT64_MAX);
    while (p->top != SLAB_NONE) {
        pop(t, p);
    }
    uint32_t index = map_get(&t->by_pid, p->pid);
    map_remove(&t->by_pid, p->pid, index);
    latest_forget(t->processes, p->pid);
    POOL_GIVE(t, processes, index);
}

void process_leave(struct tracker *t, struct process *p) {
    remember_forgotten(t, p);
    process_forget(t, p);
}

void process_dies(struct tracker *t, struct process *p) {
    if (t->pool->processes.used > LIMIT_IDLE_PROCESSES) {
        process_leave(t, p);
        return;
    }
    pieces_settle(t, p, INT64_MAX);
    p->said = 0;
    p->web_open = 0;
    p->gc_since = p->off_since = INT64_MIN;
}

void pop_lost(struct tracker *t, struct process *p) {
    while (p->top != SLAB_NONE) {
        const struct call *top = call_at(t, p->top);
        // without a value it may have ended in silence
        bool expected = top->losses == t->losses && top->caller == 0;
        if (top->tier != RECORD_SPAWN && (expected || alive(t, top->request, top->generation))) {
            return;
        }
        pop(t, p);
    }
}

void tell_never_returns(struct tracker *t, const struct call *top) {
    enum { LOOKED_AT = 64 };
    uint16_t tier = top->tier;
    int votes = 0; // majority vote: some on top may be of tiers that are called in the loop
    for (int i = 0; i < LOOKED_AT; i++) {
        tier = votes == 0 ? top->tier : tier;
        votes += top->tier == tier ? 1 : -1;
        if (top->below == SLAB_NONE) {
            break;
        }
        top = call_at(t, top->below);
    }
    if (tier <= LIMIT_TIER_NAMES && !t->told[tier]) {
        t->told[tier] = 1;
        t->options.events.never_returns(t->options.events.context, tier);
    }
}

void processes_sweep(struct tracker *t, bool all) {
    uint32_t slots = t->by_pid.mask + 1;
    for (uint32_t i = 0; i < slots;) {
        uint32_t index = t->by_pid.slots[i].value;
        struct process *p =
            index == MAP_NONE ? NULL : SLAB_AT(&t->pool->processes, struct process, index);
        bool idle = p && (all || t->now - p->last > t->options.timeout_ns);
        for (uint32_t c = idle && !all ? p->top : SLAB_NONE; c != SLAB_NONE && idle;
             c = call_at(t, c)->below) {
            idle = !alive(t, call_at(t, c)->request, call_at(t, c)->generation);
        }
        if (idle) {
            process_forget(t, p); // may move another entry into this slot: look at it again
        } else {
            i++;
        }
    }
}

uint32_t tracker_processes(const struct tracker *t, uint64_t *pids, uint32_t room) {
    uint32_t count = 0;
    for (uint32_t i = 0; i <= t->by_pid.mask && count < room; i++) {
        if (t->by_pid.slots[i].value != MAP_NONE) {
            pids[count++] = t->by_pid.slots[i].key;
        }
    }
    return count;
}

// -- time that a process was not running its calls ------------------------------------------------

// Adds to the innermost call's costs. None when the pause began before the call: its start or end
// was lost.
static void add_cost(struct tracker *t, struct process *p, enum tracker_pause kind, int64_t since,
                     int64_t time) {
    uint32_t innermost = p->top;
    while (innermost != SLAB_NONE && call_at(t, innermost)->tier == RECORD_SPAWN) {
        innermost = call_at(t, innermost)->below;
    }
    if (innermost == SLAB_NONE || since == INT64_MIN || time <= since) {
        return;
    }
    struct call *top = call_at(t, innermost);
    if (!alive(t, top->request, top->generation) || span_of(t, top)->start > since) {
        return;
    }
    if (top->costs == SLAB_NONE) {
        top->costs = POOL_TAKE(t, costs);
        if (top->costs == SLAB_NONE) {
            return;
        }
        *(struct call_costs *)slab_at(&t->pool->costs, top->costs) = (struct call_costs){0};
    }
    struct call_costs *costs = slab_at(&t->pool->costs, top->costs);
    *(kind == PAUSE_GC ? &costs->gc : &costs->off_cpu) += (uint64_t)(time - since);
}

void tracker_pause(struct tracker *t, uint64_t pid, enum tracker_pause kind, bool begins,
                   int64_t time) {
    struct process *p = process_find(t, pid);
    if (!p) {
        return;
    }
    int64_t *since = kind == PAUSE_GC ? &p->gc_since : &p->off_since;
    if (begins) {
        *since = time;
    } else {
        add_cost(t, p, kind, *since, time);
        if (kind == PAUSE_OFF_CPU) {
            rest_note(t, p, *since, time);
        }
        *since = INT64_MIN;
    }
}
