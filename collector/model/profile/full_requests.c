// SPDX-License-Identifier: Apache-2.0
#include "full_state.h"

#include <stdio.h>
#include <string.h>

#include "base/time_math.h"

// The most events in the timelines of all requests whose fate is not known yet.
enum { MOST_EVENTS = 10 * LIMIT_TIMELINE_EVENTS };

struct full_request *full_request_of(struct full_trace *f, uint64_t token) {
    uint32_t at = map_get(&f->by_token, token);
    return at >= LIMIT_FULL_REQUESTS ? NULL : &f->requests[at];
}

// Remembers a token that is over: what still comes under it begins no request.
static void forget_token(struct full_trace *f, uint64_t token) {
    uint64_t *oldest = &f->forgotten[f->forgotten_count % LIMIT_FULL_CLOSED];
    if (f->forgotten_count++ >= LIMIT_FULL_CLOSED) {
        map_remove(&f->by_token, *oldest, LIMIT_FULL_REQUESTS);
    }
    *oldest = token;
    map_set(&f->by_token, token, LIMIT_FULL_REQUESTS);
}

// Frees the place of a request.
static void forget(struct full_trace *f, struct full_request *r) {
    map_remove(&f->by_token, r->token, (uint32_t)(r - f->requests));
    forget_token(f, r->token);
    r->phase = FULL_FREE;
    f->weights -= r->weights.count - r->of_processes;
    f->of_processes -= r->of_processes;
    f->events -= r->timeline.count;
    weights_clear(&r->weights);
    timeline_clear(&r->timeline);
}

// Whether only one request is wanted, and this is another.
static bool is_another(const struct full_trace *f, uint64_t token) {
    return f->options.token != 0 && token != f->options.token;
}

struct full_request *full_request_open(struct full_trace *f, uint64_t token) {
    uint32_t at = map_get(&f->by_token, token);
    if (at != MAP_NONE) {
        return at == LIMIT_FULL_REQUESTS ? NULL : &f->requests[at];
    }
    if (is_another(f, token)) {
        return NULL;
    }
    at = 0;
    while (at < LIMIT_FULL_REQUESTS && f->requests[at].phase != FULL_FREE) {
        at++;
    }
    if (at == LIMIT_FULL_REQUESTS || !map_set(&f->by_token, token, at)) {
        f->profile.counts.refused++;
        forget_token(f, token);
        return NULL;
    }
    struct full_request *r = &f->requests[at];
    struct weights weights = r->weights;
    struct timeline timeline = r->timeline;
    *r = (struct full_request){.token = token,
                               .phase = FULL_OPEN,
                               .since = f->since,
                               .root = NO_PROCESS,
                               .first = NO_PROCESS,
                               .weights = weights,
                               .timeline = timeline};
    return r;
}

struct weight *full_request_weight(struct full_trace *f, const struct full_process *p,
                                   uint32_t stack) {
    struct full_request *r = p->request;
    struct weight *w = NULL;
    if (p->named != PROFILE_NOBODY) {
        uint32_t before = f->of_processes;
        w = weights_of_process(&r->weights, profile_key(stack, 0, p->named), &f->of_processes);
        r->of_processes += f->of_processes - before;
    }
    if (!w) {
        uint32_t before = r->weights.count;
        w = weights_at(&r->weights, profile_key(stack, 0, PROFILE_NOBODY),
                       before + LIMIT_FULL_WEIGHTS - f->weights);
        f->weights += r->weights.count - before;
    }
    r->damaged = r->damaged || !w;
    return w;
}

// The longest request's timeline is the profile's, from its begin on.
static void keep_timeline(struct full_trace *f, struct full_request *r) {
    struct profile *p = &f->profile;
    if (r->duration <= p->timeline_ns || r->timeline.count == 0) {
        return;
    }
    for (uint32_t i = 0; i < r->timeline.count; i++) {
        struct timeline_event *e = &r->timeline.events[i];
        e->time = e->time > r->began ? e->time - r->began : 0;
    }
    f->events -= r->timeline.count;
    struct timeline before = p->timeline;
    p->timeline = r->timeline;
    p->timeline_ns = r->duration;
    p->timeline_identity = r->identity;
    r->timeline = before;
    timeline_clear(&r->timeline);
}

// The weights of a request that has ended and is complete are the profile's.
static void merge(struct full_trace *f, struct full_request *r) {
    struct profile_counts *counts = &f->profile.counts;
    int64_t ns = 0;
    for (uint32_t i = 0; i < r->weights.count; i++) {
        const struct weight *w = &r->weights.all[i];
        uint16_t process = names_called(f, profile_key_process(w->key));
        profile_add(&f->profile, profile_key(profile_key_stack(w->key), r->identity, process),
                    w->calls, w->ns);
        ns += w->ns;
    }
    if (ns < r->duration) {
        uint32_t missing = stacks_push(&f->profile.stacks, STACK_ROOT, f->missing);
        profile_add(&f->profile, profile_key(missing, r->identity, PROFILE_NOBODY), 0,
                    r->duration - ns);
        counts->missing_ns += r->duration - ns;
    } else {
        counts->parallel_ns += ns - r->duration;
    }
    keep_timeline(f, r);
    costs_traced(f, r);
    counts->requests++;
    counts->duration_ns += r->duration;
    counts->processes += r->processes;
    for (uint32_t i = 0; i < f->suspect_count; i++) {
        f->suspects[i].requests += r->suspects >> i & 1;
    }
}

// Once it has ended and its fate is known, it is taken or left.
static void decide(struct full_trace *f, struct full_request *r) {
    if (r->phase != FULL_ENDED || !r->told) {
        return;
    }
    if (r->damaged || !r->complete) {
        f->profile.counts.incomplete++;
    } else if (!full_trace_done(f)) {
        merge(f, r);
    }
    forget(f, r);
}

void full_request_ends(struct full_trace *f, struct full_request *r, int64_t time) {
    while (r->first != NO_PROCESS) {
        struct full_process *p = process_at(f, r->first);
        times_pass(f, p, time);
        if (r->first == r->root) {
            times_change(p, p->state == PROCESS_OUT ? FULL_IN : FULL_GC_END);
            times_settle(f, p);
        }
        full_request_left(f, p);
    }
    r->ended = time;
    r->phase = FULL_ENDED;
    decide(f, r);
}

bool full_request_joined(struct full_trace *f, uint32_t process, struct full_request *r,
                         uint32_t asker, int64_t time) {
    struct full_process *p = process_at(f, process);
    uint32_t stack = STACK_ROOT;
    p->asker = NO_PROCESS;
    if (asker != NO_PROCESS && process_at(f, asker)->request == r) {
        struct full_process *who = process_at(f, asker);
        times_asked(f, who, time);
        stack = top_call(who)->stack;
        top_call(who)->children++;
        p->asker = asker;
        p->asker_depth = who->depth;
        p->asker_number = top_call(who)->number;
    }
    times_drop(p);
    p->since = time;
    p->shown =
        (struct timeline_event){.stack = STACK_NONE, .line = timeline_line(&r->timeline, p->pid)};
    if (!frames_open(f, p, stack)) {
        r->damaged = true;
        p->depth = 0;
        return false;
    }
    p->request = r;
    p->previous = NO_PROCESS;
    p->next = r->first;
    if (r->first != NO_PROCESS) {
        process_at(f, r->first)->previous = process;
    }
    r->first = process;
    r->processes++;
    p->state = PROCESS_RUNS;
    full_request_show(f, p, time); // what it lies on
    return true;
}

void full_request_left(struct full_trace *f, struct full_process *p) {
    struct full_request *r = p->request;
    if (!r) {
        return;
    }
    struct full_process *asker = p->asker == NO_PROCESS ? NULL : process_at(f, p->asker);
    if (asker && asker->request == r && asker->depth >= p->asker_depth &&
        asker->calls[p->asker_depth - 1].number == p->asker_number) {
        times_pass(f, asker, p->since);
        asker->calls[p->asker_depth - 1].children--;
        asker->waits = asker->waits || asker->state == PROCESS_OUT;
    }
    *(p->previous == NO_PROCESS ? &r->first : &process_at(f, p->previous)->next) = p->next;
    if (p->next != NO_PROCESS) {
        process_at(f, p->next)->previous = p->previous;
    }
    times_drop(p);
    p->depth = 0;
    full_request_show(f, p, p->since);
    p->request = NULL;
    p->asker = NO_PROCESS;
    p->depth = 0;
}

void full_request_show(struct full_trace *f, struct full_process *p, int64_t time) {
    static const enum timeline_state states[] = {[PROCESS_RUNS] = TIMELINE_RUNS,
                                                 [PROCESS_OUT] = TIMELINE_OUT,
                                                 [PROCESS_COLLECTS] = TIMELINE_COLLECTS};
    struct full_request *r = p->request;
    struct timeline_event e = {.time = time,
                               .stack = p->depth > 0 ? top_call(p)->stack : STACK_ROOT,
                               .line = p->shown.line,
                               .state = p->depth > 0 ? (uint8_t)states[p->state] : TIMELINE_LEFT};
    if (!r || (e.stack == p->shown.stack && e.state == p->shown.state)) {
        return;
    }
    uint32_t before = r->timeline.count, left = MOST_EVENTS - f->events;
    timeline_add(&r->timeline, &e,
                 left < LIMIT_TIMELINE_EVENTS - before ? before + left : LIMIT_TIMELINE_EVENTS);
    f->events += r->timeline.count - before;
    p->shown = e;
}

void full_request_suspects(struct full_trace *f, struct full_request *r, uint64_t pid) {
    uint32_t i = 0;
    while (i < f->suspect_count && f->suspects[i].pid != pid) {
        i++;
    }
    if (i == LIMIT_FULL_SUSPECTS) {
        return;
    }
    if (i == f->suspect_count) {
        f->suspects[f->suspect_count++] = (struct full_suspect){.pid = pid};
    }
    r->suspects |= 1u << i;
}

const struct full_suspect *full_trace_suspects(const struct full_trace *f, uint32_t *count) {
    *count = f->suspect_count;
    return f->suspects;
}

static void count_other(struct full_trace *f, struct slice identity) {
    char name[LIMIT_NAME_BYTES + 4];
    uint32_t i = 0;
    names_clean(identity, name, sizeof name);
    while (i < f->other_count && strcmp(f->others[i].identity, name) != 0) {
        i++;
    }
    if (i == FULL_OTHERS) {
        return;
    }
    if (i == f->other_count) {
        snprintf(f->others[f->other_count++].identity, sizeof name, "%s", name);
    }
    f->others[i].requests++;
}

const struct full_other *full_trace_others(const struct full_trace *f, uint32_t *count) {
    *count = f->other_count;
    return f->others;
}

void full_trace_fate(struct full_trace *f, const struct full_fate *fate) {
    struct full_request *r = full_request_of(f, fate->token);
    bool wanted = !f->only[0] || slice_is(fate->identity, f->only);
    if (wanted && !is_another(f, fate->token)) {
        costs_fate(f, fate);
    }
    // one of a window before has ended in that
    bool before = r && r->phase == FULL_ENDED && r->since < f->since;
    bool whole = before
                     ? fate->begin >= r->since
                     : fate->begin >= f->since && time_add(fate->begin, fate->duration) <= f->until;
    if (!whole || is_another(f, fate->token)) {
        f->profile.counts.partly += r && wanted;
        wanted = false; // its begin, or its end, was not traced, or nothing of it is wanted
    } else if (!wanted && fate->complete) {
        f->profile.counts.others++;
        count_other(f, fate->identity);
    }
    if (!r) {
        bool unknown = map_get(&f->by_token, fate->token) == MAP_NONE;
        f->profile.counts.unseen += fate->complete && wanted && unknown;
        return;
    }
    if (!wanted) {
        full_request_ends(f, r, r->phase == FULL_ENDED ? r->ended : f->held.latest);
        forget(f, r);
        return;
    }
    uint32_t name = names_intern(&f->profile.stacks.names, fate->identity);
    r->told = true;
    r->complete = fate->complete && name != NAME_NONE;
    r->identity = (uint16_t)name;
    r->began = fate->begin;
    r->duration = fate->duration;
    decide(f, r);
}

// Only a part of a request was traced, or has come. Where an identity is wanted nobody knows
// whether it has that.
static void leave_out(struct full_trace *f, struct full_request *r, bool lost) {
    *(lost ? &f->profile.counts.incomplete : &f->profile.counts.partly) += !f->only[0];
    forget(f, r);
}

void full_trace_shut(struct full_trace *f, int64_t until) {
    f->until = until < f->until ? until : f->until;
    for (uint32_t i = 0; i < LIMIT_FULL_REQUESTS; i++) {
        struct full_request *r = &f->requests[i];
        if (r->phase == FULL_ENDED && r->ended > f->until) {
            leave_out(f, r, false);
        }
    }
}

// The ends of those that are open have not been traced.
void full_trace_close(struct full_trace *f) {
    full_trace_advance(f, INT64_MAX);
    for (uint32_t i = 0; i < LIMIT_FULL_REQUESTS; i++) {
        struct full_request *r = &f->requests[i];
        if (r->phase != FULL_OPEN) {
            continue;
        }
        bool lost = r->damaged; // and the message of its end may be, too
        r->damaged = true;      // if it lies within the window: the message of its end is lost
        full_request_ends(f, r, f->held.latest);
        if (r->phase == FULL_ENDED) {
            leave_out(f, r, lost);
        }
    }
}

void full_trace_open(struct full_trace *f, int64_t since) {
    full_trace_close(f);
    f->since = since;
    f->until = INT64_MAX;
}

// The number of requests in a phase.
static uint32_t count_in(const struct full_trace *f, enum full_phase phase) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < LIMIT_FULL_REQUESTS; i++) {
        count += f->requests[i].phase == phase;
    }
    return count;
}

bool full_trace_busy(const struct full_trace *f) {
    return count_in(f, FULL_OPEN) > 0;
}

bool full_trace_enough(const struct full_trace *f) {
    uint64_t ended = f->profile.counts.requests + count_in(f, FULL_ENDED);
    if (f->options.token != 0) {
        return ended > 0; // there is no other one
    }
    uint64_t wanted = f->options.requests, more = wanted / 4 + 2;
    return !f->only[0] && ended >= wanted + more;
}

bool full_trace_awaits_fates(const struct full_trace *f) {
    return count_in(f, FULL_ENDED) > 0;
}

void full_trace_lost(struct full_trace *f) {
    f->profile.counts.lost++;
    for (uint32_t i = 0; i < LIMIT_FULL_REQUESTS; i++) {
        struct full_request *r = &f->requests[i];
        if (r->phase == FULL_OPEN ||
            (r->phase == FULL_ENDED && r->ended > f->held.latest - DISORDER_NS)) {
            r->damaged = true;
        }
    }
}
