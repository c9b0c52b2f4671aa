// SPDX-License-Identifier: Apache-2.0
#include "full_state.h"

// How far the chain of askers is followed: who waits for somebody who waits, and so on.
enum { FARTHEST_ASKER = 16 };

void times_pass(struct full_trace *f, struct full_process *p, int64_t time) {
    int64_t passed = time > p->since ? time - p->since : 0;
    p->since = time > p->since ? time : p->since;
    if (p->depth == 0) {
        return;
    }
    bool served = top_call(p)->children > 0;
    struct unsettled *u = &p->unsettled;
    if (p->state == PROCESS_COLLECTS) {
        u->gc += passed;
    } else if (p->state == PROCESS_OUT) {
        *(served ? &p->out_under : &p->out_ns) += passed;
    } else if (served && !f->options.scheduling) {
        u->under += passed;
    } else {
        u->run += passed;
    }
}

static void add(struct full_trace *f, const struct full_process *p, uint32_t stack, uint32_t frame,
                int64_t ns) {
    if (ns <= 0) {
        return;
    }
    if (frame != UINT32_MAX) {
        stack = stacks_push(&f->profile.stacks, stack, frame);
    }
    struct weight *w = full_request_weight(f, p, stack);
    if (w) {
        w->ns += ns;
    }
}

// The asker's call that a process works for, if it is on top there still.
static struct full_process *asker_of(const struct full_trace *f, const struct full_process *p) {
    struct full_process *asker = p->asker == NO_PROCESS ? NULL : process_at(f, p->asker);
    bool there = asker && asker->request == p->request && asker->depth == p->asker_depth &&
                 top_call(asker)->number == p->asker_number;
    return there ? asker : NULL;
}

// Takes so much of a time, or all there is. Returns what is still to be taken.
static int64_t take_from(int64_t *time, int64_t ns) {
    int64_t taken = ns < *time ? ns : *time;
    *time -= taken;
    return ns - taken;
}

// So much of the time that others waited for this process is its own.
static void take_from_askers(struct full_trace *f, const struct full_process *p, int64_t ns) {
    struct full_process *asker = asker_of(f, p);
    for (int i = 0; asker && i < FARTHEST_ASKER; i++) {
        times_pass(f, asker, p->since);
        take_from(&asker->unsettled.under, take_from(&asker->out_under, ns));
        asker->waits = true;
        asker = asker_of(f, asker);
    }
}

void times_settle(struct full_trace *f, struct full_process *p) {
    struct unsettled u = p->unsettled;
    p->unsettled = (struct unsettled){0};
    if (p->depth == 0 || !p->request) {
        return;
    }
    uint32_t stack = top_call(p)->stack;
    // where nothing shows that others still work for it, it may have gone on long ago
    *(f->options.scheduling ? &u.waiting : &u.run) += u.under;
    add(f, p, stack, UINT32_MAX, u.run);
    add(f, p, stack, f->waiting, u.waiting);
    add(f, p, stack, f->asleep, u.asleep);
    add(f, p, stack, f->gc, u.gc);
    take_from_askers(f, p, u.run + u.waiting + u.asleep + u.gc);
}

void times_drop(struct full_process *p) {
    p->unsettled = (struct unsettled){0};
    p->out_ns = p->out_under = 0;
}

void times_asked(struct full_trace *f, struct full_process *asker, int64_t time) {
    times_pass(f, asker, time);
    struct unsettled *u = &asker->unsettled;
    if (asker->state == PROCESS_OUT) {
        u->waiting += asker->out_ns;
        asker->out_ns = 0;
    } else if (!f->options.scheduling) {
        u->waiting += u->run;
        u->run = 0;
    }
    int64_t under = u->under; // of others, who work for it still
    u->under = 0;
    times_settle(f, asker);
    u->under = under;
    asker->waits = true;
}

void times_change(struct full_process *p, enum full_event_kind kind) {
    struct unsettled *u = &p->unsettled;
    if (p->state == PROCESS_OUT) {
        // it sleeps, and does not wait, while nobody works for it
        *(p->waits ? &u->waiting : &u->asleep) += p->out_ns;
        *(p->waits ? &u->under : &u->asleep) += p->out_under;
        p->out_ns = p->out_under = 0;
        p->waits = false;
    }
    p->state = kind == FULL_OUT        ? PROCESS_OUT
               : kind == FULL_GC_START ? PROCESS_COLLECTS
                                       : PROCESS_RUNS;
}
