// SPDX-License-Identifier: Apache-2.0
#include "tracker.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum { SWEEP_SECONDS = 60 };

// -- requests -------------------------------------------------------------------------------------

static void list_append(struct tracker *t, uint32_t index, enum phase phase, int64_t deadline) {
    struct list *l = &t->lists[phase];
    struct request *r = request_at(t, index);
    r->deadline = deadline;
    r->phase = (uint8_t)phase;
    r->previous = l->tail;
    r->next = SLAB_NONE;
    if (l->tail == SLAB_NONE) {
        l->head = index;
    } else {
        request_at(t, l->tail)->next = index;
    }
    l->tail = index;
}

static void list_remove(struct tracker *t, uint32_t index) {
    struct request *r = request_at(t, index);
    struct list *l = &t->lists[r->phase];
    if (r->previous == SLAB_NONE) {
        l->head = r->next;
    } else {
        request_at(t, r->previous)->next = r->next;
    }
    if (r->next == SLAB_NONE) {
        l->tail = r->previous;
    } else {
        request_at(t, r->next)->previous = r->previous;
    }
}

void request_list(struct tracker *t, uint32_t index, enum phase phase, int64_t deadline) {
    if (request_at(t, index)->phase != PHASES) {
        list_remove(t, index);
    }
    list_append(t, index, phase, deadline);
}

uint32_t request_new(struct tracker *t, uint64_t token, int64_t time) {
    uint32_t index = POOL_TAKE(t, requests);
    if (index == SLAB_NONE) {
        return SLAB_NONE;
    }
    if (++t->pool->generation == 0) {
        t->pool->generation = 1; // 0 is no request's
    }
    *request_at(t, index) =
        (struct request){.token = token,
                         .first = time,
                         .last = time,
                         .generation = t->pool->generation,
                         .losses = time <= t->lost_until ? t->losses - 1 : t->losses,
                         .first_chunk = SLAB_NONE,
                         .last_chunk = SLAB_NONE,
                         .name = SLAB_NONE,
                         .root = SPAN_NONE,
                         .identity = IDENTITY_UNDEFINED,
                         .named_place = UINT8_MAX,
                         .phase = PHASES};
    return index;
}

void request_forget(struct tracker *t, uint32_t index) {
    struct request *r = request_at(t, index);
    spans_free(t, r);
    list_remove(t, index);
    r->generation = 0; // no call's: refs to it are stale now
    POOL_GIVE(t, requests, index);
}

// Opens a request under a token. SLAB_NONE at the cap.
static uint32_t request_open(struct tracker *t, uint64_t token, int64_t time) {
    uint32_t index = request_new(t, token, time);
    if (index == SLAB_NONE) {
        return SLAB_NONE;
    }
    list_append(t, index, PHASE_NEW, time + GRACE_NS);
    if (!map_set(&t->by_token, token, index)) {
        request_forget(t, index);
        return SLAB_NONE;
    }
    t->tokens[token % LATEST] = (struct latest){token, index};
    return index;
}

// A request that a process has begun is open there no longer.
static void begun_over(struct tracker *t, const struct request *r) {
    struct process *p = process_find(t, r->begin_pid);
    if (p && p->begun_open > 0) {
        p->begun_open--;
    }
}

void request_ends(struct tracker *t, uint32_t index, const struct tracker_end *end) {
    struct request *r = request_at(t, index);
    if (r->has_end && !r->died && end->time >= r->end) {
        return;
    }
    if (r->has_begin && !r->has_end) {
        begun_over(t, r);
    }
    r->has_end = true;
    r->died = false;
    r->error = end->error || r->failed_inside;
    r->end = end->time;
    r->root_pid = end->pid;
    request_list(t, index, PHASE_CLOSING, end->time + GRACE_NS);
}

// The node whose request it is a part of, or DIRECTORY_NONE. Our own requests have a begin.
static uint16_t maker_of(const struct tracker *t, const struct request *r) {
    bool known = t->markers && !r->has_begin && !r->has_end && t->options.events.maker;
    return known ? t->options.events.maker(t->options.events.context, hash_unmix(r->token))
                 : DIRECTORY_NONE;
}

void stale_count(struct tracker *t, uint16_t tier, uint64_t token) {
    if (tier == RECORD_SPAWN) {
        return;
    }
    t->counts.stale_calls++;
    if (tier < RECORD_NONE && t->options.events.stale) {
        uint64_t over = t->options.events.maker && closed_lately(t, token) ? hash_unmix(token) : 0;
        t->options.events.stale(t->options.events.context, tier, over);
    }
}

struct stale_spans {
    struct tracker *tracker;
    uint64_t token;
};

static void tell_stale(void *context, uint32_t i, const struct span_record *record) {
    (void)i;
    const struct stale_spans *s = context;
    if (record->tier < RECORD_NONE) {
        stale_count(s->tracker, record->tier, s->token);
    }
}

void spans_stale(struct tracker *t, const struct request *r) {
    each_record(t, r, &(struct stale_spans){t, r->token}, tell_stale);
    t->counts.stale_calls += r->beyond;
}

// A part of another node's request is over.
static void part_close(struct tracker *t, struct request *r, uint16_t maker) {
    struct request_result result = {
        .identity = IDENTITY_REMOTE, .remote = true, .maker = maker, .label = hash_unmix(r->token)};
    r->remote = true;
    request_judge(t, r, r->open == 0 ? REQUEST_COMPLETE : REQUEST_INCOMPLETE, &result);
    if (result.fate == REQUEST_COMPLETE) {
        t->options.events.finished(t->options.events.context, &result);
    } else {
        spans_stale(t, r);
    }
}

// What named it, or else what its begin calls it.
static uint16_t identity_of(const struct tracker *t, const struct request *r) {
    if ((r->identity != IDENTITY_UNDEFINED && !r->met) || r->name == SLAB_NONE) {
        return r->identity;
    }
    const struct begun_name *name = SLAB_AT(&t->pool->names, struct begun_name, r->name);
    return t->options.events.identity(t->options.events.context, slice_of(name->text, name->len));
}

static void name_free(struct tracker *t, struct request *r) {
    if (r->name != SLAB_NONE) {
        POOL_GIVE(t, names, r->name);
        r->name = SLAB_NONE;
    }
}

struct stretch {
    const struct request *request;
    int64_t end;
    bool open;
};

static void stretch_by(void *context, uint32_t i, const struct span_record *record) {
    (void)i;
    struct stretch *s = context;
    if (record->tier < RECORD_NONE && record->pid == s->request->root_pid &&
        record->start <= s->request->end) {
        s->open = s->open || record->open;
        s->end = !record->open && record->end > s->end ? record->end : s->end;
    }
}

// The end of a request that stretches is the last return of the calls that its process had open at
// the end mark. False: one is still open.
static bool stretched(struct tracker *t, struct request *r) {
    struct stretch s = {r, r->end, false};
    each_record(t, r, &s, stretch_by);
    if (!s.open) {
        r->end = s.end;
        r->stretches = false;
    }
    return !s.open;
}

static void request_close(struct tracker *t, uint32_t index, enum request_fate fate) {
    struct request *r = request_at(t, index);
    if (r->stretches) {
        stretched(t, r);
    }
    bool marked = t->markers || r->has_begin;
    uint16_t maker = maker_of(t, r);
    // else it is another request's by now, or part's
    if (map_remove(&t->by_token, r->token, index) && maker == DIRECTORY_NONE) {
        remember_closed(t, r->token);
    }
    latest_forget(t->tokens, r->token);
    if (maker != DIRECTORY_NONE) {
        part_close(t, r, maker);
    } else if (marked && !r->has_begin && !r->has_end && r->losses == t->losses &&
               r->damage == REASON_NONE) {
        // Never was a request: calls under somebody's token, or what came after a begin that nobody
        // saw.
        spans_stale(t, r);
    } else {
        struct request_result result = {.identity = identity_of(t, r),
                                        .label =
                                            t->options.events.maker ? hash_unmix(r->token) : 0};
        request_judge(t, r, fate, &result);
        cause_stale(t, index, result.fate == REQUEST_COMPLETE);
        t->options.events.finished(t->options.events.context, &result);
    }
    if (r->tokens > 0) {
        if (fate == REQUEST_EXPIRED && r->by_entry) {
            entry_expired(t, index);
        }
        entry_tokens_free(t, index);
    }
    name_free(t, r);
    if (r->has_begin && !r->has_end) {
        begun_over(t, r);
    }
    request_forget(t, index);
}

void request_leave_token(struct tracker *t, uint64_t token) {
    uint32_t index = map_get(&t->by_token, token);
    if (index != MAP_NONE) {
        map_remove(&t->by_token, token, index);
    }
    latest_forget(t->tokens, token);
}

uint32_t request_under(struct tracker *t, uint64_t token, int64_t time) {
    uint32_t index = request_find(t, token);
    if (index == MAP_NONE) {
        return request_open(t, token, time);
    }
    struct request *r = request_at(t, index);
    r->first = time < r->first ? time : r->first;
    r->last = time > r->last ? time : r->last;
    return index;
}

uint32_t request_for(struct tracker *t, uint64_t token, int64_t time, uint16_t tier) {
    if (request_find(t, token) == MAP_NONE && closed_lately(t, token)) {
        stale_count(t, tier, token);
        return SLAB_NONE;
    }
    uint32_t index = request_under(t, token, time);
    t->counts.refused_calls += index == SLAB_NONE;
    return index;
}

void request_refuse(struct tracker *t, uint64_t token) {
    t->counts.refused_requests++;
    remember_closed(t, token);
}

// -- loss and time --------------------------------------------------------------------------------

void tracker_lost(struct tracker *t, int64_t latest) {
    // the nearest loss to a request is the first since it opened: one that is told late is there
    // from the earlier ones on
    for (uint32_t i = t->losses; i != t->losses - LOSSES && t->lost_at[i % LOSSES] > latest; i--) {
        t->lost_at[i % LOSSES] = latest;
    }
    t->losses++;
    t->lost_at[t->losses % LOSSES] = latest;
}

void tracker_rested(struct tracker *t, int64_t time) {
    tracker_lost(t, time);
    for (enum phase phase = PHASE_NEW; phase < PHASES; phase++) {
        for (uint32_t i = t->lists[phase].head; i != SLAB_NONE; i = request_at(t, i)->next) {
            struct request *r = request_at(t, i);
            r->losses += r->first > time && r->losses == t->losses - 1;
        }
    }
}

void tracker_lost_until(struct tracker *t, int64_t time) {
    t->lost_until = time;
}

void tracker_gap(struct tracker *t, int64_t from, int64_t until) {
    if (t->gap_count == GAPS) {
        t->gaps[1].from = t->gaps[0].from;
        t->gap_count--;
        memmove(t->gaps, t->gaps + 1, t->gap_count * sizeof *t->gaps);
    }
    const struct gap *last = t->gap_count > 0 ? &t->gaps[t->gap_count - 1] : NULL;
    until = last && last->until > until ? last->until : until;
    t->gaps[t->gap_count++] = (struct gap){from, until};
}

// Many requests close at a time, and were last touched a second ago: asks for the memory of the
// next ones while one closes.
static inline void prefetch_closing(const struct tracker *t, const struct request *r) {
    const struct request *next = r->next == SLAB_NONE ? NULL : request_at(t, r->next);
    const struct request *after =
        !next || next->next == SLAB_NONE ? NULL : request_at(t, next->next);
    if (after) {
        prefetch_chunk(t, after->first_chunk);
        prefetch_closed(t, after->token);
        if (after->next != SLAB_NONE) {
            prefetch(request_at(t, after->next), sizeof *r);
        }
    }
}

static bool too_old(const struct tracker *t, const struct request *r) {
    return t->now - r->first > t->options.timeout_ns;
}

// A request that stretches waits for its end, and from there on for late calls.
static bool stretches_on(struct tracker *t, uint32_t index) {
    struct request *r = request_at(t, index);
    if (r->damage != REASON_NONE || r->losses != t->losses || too_old(t, r)) {
        return false;
    }
    int64_t deadline = (stretched(t, r) ? r->end : t->now) + GRACE_NS;
    if (deadline > t->now) {
        request_list(t, index, PHASE_CLOSING, deadline);
    }
    return deadline > t->now;
}

static void close_due(struct tracker *t) {
    for (uint32_t index = t->lists[PHASE_CLOSING].head; index != SLAB_NONE;
         index = t->lists[PHASE_CLOSING].head) {
        struct request *r = request_at(t, index);
        if (r->deadline > t->now) {
            break;
        }
        prefetch_closing(t, r);
        if (r->stretches && stretches_on(t, index)) {
            continue;
        }
        if (r->answers_due > 0) {
            r->answers_due = 0;
            request_list(t, index, PHASE_CLOSING, r->end + GRACE_NS + GRACE_ASK_NS);
        } else {
            request_close(t, index, REQUEST_COMPLETE);
        }
    }
}

// Requests that will get no end: those whose begin did not come, and those without a root call.
static bool hopeless(const struct tracker *t, const struct request *r) {
    bool rootless = t->markers ? !r->has_begin : r->root == SPAN_NONE && r->open == 0;
    return rootless && !r->has_begin && t->now - r->last > GRACE_NS &&
           // a part waits for its returns
           (r->open == 0 || r->damage != REASON_NONE || maker_of(t, r) == DIRECTORY_NONE);
}

// Looks at the requests that are new no longer. Those that have begun as they should wait for their
// end from then on.
static void judge_new(struct tracker *t) {
    const struct list *l = &t->lists[PHASE_NEW];
    for (uint32_t index = l->head; index != SLAB_NONE && request_at(t, index)->deadline <= t->now;
         index = l->head) {
        const struct request *r = request_at(t, index);
        if (too_old(t, r)) {
            request_close(t, index, REQUEST_EXPIRED);
        } else if (hopeless(t, r)) {
            request_close(t, index, REQUEST_INCOMPLETE);
        } else {
            bool begun = r->has_begin || (!t->markers && r->root != SPAN_NONE);
            request_list(t, index, begun ? PHASE_OPEN : PHASE_NEW, t->now + GRACE_NS);
        }
    }
}

static void expire_open(struct tracker *t) {
    const struct list *l = &t->lists[PHASE_OPEN];
    while (l->head != SLAB_NONE && too_old(t, request_at(t, l->head))) {
        request_close(t, l->head, REQUEST_EXPIRED);
    }
}

void tracker_advance(struct tracker *t, int64_t now) {
    t->now = now > t->now ? now : t->now;
    pieces_settle_due(t, t->now);
    ahead_settle(t, t->now);
    close_due(t);
    judge_new(t);
    expire_open(t);
    pieces_forget_due(t, t->now);
    if (t->now - t->swept > SWEEP_SECONDS * 1000000000LL) {
        t->swept = t->now;
        processes_sweep(t, false);
    }
}

void tracker_reset(struct tracker *t) {
    pieces_settle_due(t, INT64_MAX);
    ahead_settle(t, INT64_MAX);
    while (t->lists[PHASE_CLOSING].head != SLAB_NONE) {
        request_close(t, t->lists[PHASE_CLOSING].head, REQUEST_COMPLETE);
    }
    for (enum phase phase = PHASE_NEW; phase <= PHASE_OPEN; phase++) {
        while (t->lists[phase].head != SLAB_NONE) {
            request_close(t, t->lists[phase].head, REQUEST_INCOMPLETE);
        }
    }
    pieces_forget_due(t, INT64_MAX);
    processes_sweep(t, true);
    map_clear(&t->by_token); // both are empty, and may have become large
    map_clear(&t->by_pid);
    memset(t->told, 0, sizeof t->told);
    t->now = INT64_MIN / 2; // the next stream may have another clock
    t->lent_at = INT64_MIN;
    t->swept = t->now;
}

struct request_counts tracker_take_counts(struct tracker *t) {
    struct request_counts counts = t->counts;
    t->counts = (struct request_counts){0};
    return counts;
}

struct tracker *tracker_new(struct request_pool *pool, const struct tracker_options *options) {
    struct tracker *t = calloc(1, sizeof *t);
    if (!t) {
        goto err0;
    }
    *t = (struct tracker){.pool = pool,
                          .options = *options,
                          .salt = hash_mix(++pool->nodes_made),
                          .lost_until = INT64_MIN,
                          .lent_at = INT64_MIN,
                          .now = INT64_MIN / 2,
                          .swept = INT64_MIN / 2,
                          .markers = options->markers};
    for (int i = 0; i < PHASES; i++) {
        t->lists[i] = (struct list){SLAB_NONE, SLAB_NONE};
    }
    for (uint64_t i = 0; i < LATEST; i++) {
        latest_forget(t->tokens, i);
        latest_forget(t->processes, i);
    }
    if (!map_init(&t->by_token)) {
        goto err1;
    }
    if (!map_init(&t->by_pid)) {
        goto err2;
    }
    return t;
err2:
    map_free(&t->by_token);
err1:
    free(t);
err0:
    return NULL;
}

void tracker_free(struct tracker *t) {
    if (t) {
        tracker_reset(t);
        map_free(&t->by_token);
        map_free(&t->by_pid);
        free(t);
    }
}
