#include "tracker.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum { SWEEP_SECONDS = 60 };

// -- requests --------------------------------------------------------------------------------------------------------

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

// Opens a request under a token. SLAB_NONE at the cap.
static uint32_t request_open(struct tracker *t, uint64_t token, int64_t time) {
    uint32_t index = slab_take(&t->pool->requests);
    if (index == SLAB_NONE) {
        return SLAB_NONE;
    }
    if (!map_set(&t->by_token, token, index)) {
        slab_give(&t->pool->requests, index);
        return SLAB_NONE;
    }
    t->tokens[token % LATEST] = (struct latest){token, index};
    if (++t->pool->generation == 0) {
        t->pool->generation = 1; // 0 is no request's
    }
    *request_at(t, index) = (struct request){.token = token,
                                             .first = time,
                                             .last = time,
                                             .generation = t->pool->generation,
                                             .losses = time <= t->lost_until ? t->losses - 1 : t->losses,
                                             .first_chunk = SLAB_NONE,
                                             .last_chunk = SLAB_NONE,
                                             .name = SLAB_NONE,
                                             .root = SPAN_NONE,
                                             .identity = IDENTITY_UNDEFINED,
                                             .named_place = UINT8_MAX};
    list_append(t, index, PHASE_NEW, time + GRACE_NS);
    return index;
}

void request_ends(struct tracker *t, uint32_t index, const struct tracker_end *end) {
    struct request *r = request_at(t, index);
    if (r->has_end && !r->died && end->time >= r->end) {
        return;
    }
    r->has_end = true;
    r->died = false;
    r->error = end->error;
    r->end = end->time;
    r->root_pid = end->pid;
    list_remove(t, index);
    list_append(t, index, PHASE_CLOSING, end->time + GRACE_NS);
}

// The node whose request it is a part of, or DIRECTORY_NONE. Our own requests have a begin.
static uint16_t maker_of(const struct tracker *t, const struct request *r) {
    bool known = t->markers && !r->has_begin && !r->has_end && t->options.events.maker;
    return known ? t->options.events.maker(t->options.events.context, hash_unmix(r->token)) : DIRECTORY_NONE;
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
        t->counts.stale_calls += r->spans + r->beyond;
    }
}

// What named it, or else what its begin calls it.
static uint16_t identity_of(const struct tracker *t, const struct request *r) {
    if (r->identity != IDENTITY_UNDEFINED || r->name == SLAB_NONE) {
        return r->identity;
    }
    const struct begun_name *name = SLAB_AT(&t->pool->names, struct begun_name, r->name);
    return t->options.events.identity(t->options.events.context, slice_of(name->text, name->len));
}

static void name_free(struct tracker *t, struct request *r) {
    if (r->name != SLAB_NONE) {
        slab_give(&t->pool->names, r->name);
        r->name = SLAB_NONE;
    }
}

static void request_close(struct tracker *t, uint32_t index, enum request_fate fate) {
    struct request *r = request_at(t, index);
    bool marked = t->markers || r->has_begin;
    uint16_t maker = maker_of(t, r);
    if (maker != DIRECTORY_NONE) {
        part_close(t, r, maker);
    } else if (marked && !r->has_begin && !r->has_end && r->losses == t->losses && !r->damaged) {
        // Never was a request: calls under somebody's token, or what came after a begin that nobody saw.
        t->counts.stale_calls += r->spans + r->beyond;
    } else {
        struct request_result result = {.identity = identity_of(t, r),
                                        .label = t->options.events.maker ? hash_unmix(r->token) : 0};
        request_judge(t, r, fate, &result);
        t->options.events.finished(t->options.events.context, &result);
    }
    if (r->tokens > 0) {
        if (fate == REQUEST_EXPIRED && r->by_entry) {
            entry_expired(t, index);
        }
        entry_tokens_free(t, index);
    }
    name_free(t, r);
    spans_free(t, r);
    if (map_remove(&t->by_token, r->token, index) && maker == DIRECTORY_NONE) { // else it is another request's by now, or part's
        remember_closed(t, r->token);
    }
    t->tokens[r->token % LATEST].value = SLAB_NONE;
    list_remove(t, index);
    r->generation = 0; // no call's: refs to it are stale now
    slab_give(&t->pool->requests, index);
}

// A token is no longer that of the request that it was.
static void token_free(struct tracker *t, uint64_t token) {
    uint32_t index = map_get(&t->by_token, token);
    if (index != MAP_NONE) {
        map_remove(&t->by_token, token, index);
    }
    t->tokens[token % LATEST].value = SLAB_NONE;
}

// The request for a message under a token: known, or opened. SLAB_NONE when it is stale or past the cap.
static uint32_t request_for(struct tracker *t, uint64_t token, int64_t time) {
    uint32_t index = request_find(t, token);
    if (index == MAP_NONE) {
        if (closed_lately(t, token)) {
            t->counts.stale_calls++;
            return SLAB_NONE;
        }
        index = request_open(t, token, time);
        if (index == SLAB_NONE) {
            t->counts.refused_calls++;
        }
        return index;
    }
    struct request *r = request_at(t, index);
    r->first = time < r->first ? time : r->first;
    r->last = time > r->last ? time : r->last;
    return index;
}

// -- calls -------------------------------------------------------------------------------------------------------------

// Without markers: whether this call opens the token's next request, the one before being over.
static bool opens_again(struct tracker *t, const struct tracker_call *call, const struct process *p) {
    if (t->markers || t->options.entry == TIER_NONE || call->tier != t->options.entry || p->top != SLAB_NONE) {
        return false;
    }
    uint32_t index = request_find(t, call->token);
    return index == MAP_NONE || request_at(t, index)->has_end;
}

// Without markers: the span that is the request is the entry tier's first, or the first of all.
static void find_root(struct tracker *t, struct request *r, const struct tracker_call *call) {
    if (t->options.entry != TIER_NONE && call->tier != t->options.entry) {
        return;
    }
    if (r->root == SPAN_NONE) {
        r->root = r->count - 1;
        r->root_pid = call->pid;
    }
}

// A call of another request, or of none, above one whose return has no value: that one was left in silence, most likely.
static void doubt_below(struct tracker *t, const struct call *below, uint32_t request) {
    if (below->caller != 0 && below->request != request && alive(t, below->request, below->generation) &&
        !request_at(t, below->request)->damaged) {
        request_at(t, below->request)->damaged = true;
        t->counts.ambiguous_returns++;
    }
}

// What a process calls under the token of its request when the entry has returned: no match spec runs then that could take the token away.
static bool after_entry(const struct tracker *t, const struct tracker_call *call, uint32_t index) {
    const struct request *r = request_at(t, index);
    return r->by_entry && r->has_end && r->begin_pid == call->pid;
}

struct request_ref take_call(struct tracker *t, const struct tracker_call *call, uint16_t tier) {
    if (t->tokens[call->token % LATEST].key != call->token) { // a new one, most likely
        prefetch_closed(t, call->token);
    }
    struct process *p = process_for(t, call->pid, call->time);
    if (!p) {
        t->counts.refused_calls++;
        uint32_t known = map_get(&t->by_token, call->token);
        if (known != MAP_NONE) {
            request_at(t, known)->damaged = true;
        }
        return NO_REQUEST;
    }
    pop_lost(t, p);
    if (opens_again(t, call, p)) {
        token_free(t, call->token);
        forget_closed(t, call->token);
    }
    uint32_t index = in_entry(t, p) ? entry_request(t, p, call) : request_for(t, call->token, call->time);
    if (index != SLAB_NONE && after_entry(t, call, index)) {
        t->counts.stale_calls += tier != RECORD_SPAWN;
        index = SLAB_NONE;
    }
    struct call *open = push(t, p, tier);
    if (open) {
        open->function = call->function;
        open->caller = call->caller;
        open->blind += call->caller != 0;
    }
    if (open && open->blind > 0 && open->below != SLAB_NONE) {
        doubt_below(t, call_at(t, open->below), index);
    }
    if (index == SLAB_NONE) {
        return NO_REQUEST;
    }
    if (!open) {
        request_at(t, index)->damaged = true;
    }
    if (!open || !span_add(t, index, open, call)) {
        t->counts.refused_calls++;
        return NO_REQUEST;
    }
    return (struct request_ref){index, request_at(t, index)->generation};
}

struct request_ref tracker_call(struct tracker *t, const struct tracker_call *call) {
    struct request_ref ref = take_call(t, call, call->tier);
    if (!t->markers && ref.index != SPAN_NONE && !request_at(t, ref.index)->has_begin) {
        find_root(t, request_at(t, ref.index), call);
    }
    return ref;
}

void tracker_spawn(struct tracker *t, const struct tracker_call *call) {
    if (request_find(t, call->token) != MAP_NONE || !closed_lately(t, call->token)) {
        take_call(t, call, RECORD_SPAWN);
    } else { // of what is over it tells nothing, but it has a return
        tracker_pass(t, call->pid, RECORD_SPAWN, call->time);
    }
}

void tracker_pass(struct tracker *t, uint64_t pid, uint16_t tier, int64_t time) {
    struct process *p = process_for(t, pid, time);
    if (p) {
        pop_lost(t, p);
        push(t, p, tier);
    }
}

// A marker of a request: it is no longer one of a stream without markers, and an end that was found out is none.
static struct request *request_marked(struct tracker *t, uint32_t index) {
    struct request *r = request_at(t, index);
    if (r->root != SPAN_NONE) {
        r->root = SPAN_NONE;
        r->root_pid = 0;
        if (r->has_end) {
            r->has_end = false;
            r->error = false;
            list_remove(t, index);
            list_append(t, index, PHASE_NEW, t->now + GRACE_NS);
        }
    }
    return r;
}

struct request_ref tracker_begin(struct tracker *t, const struct tracker_call *call) {
    t->markers = true;
    uint32_t known = map_get(&t->by_token, call->token);
    if (known != MAP_NONE && request_at(t, known)->has_begin) {
        token_free(t, call->token); // it is used again: the request before it closes by itself
    }
    forget_closed(t, call->token);
    uint32_t index = request_for(t, call->token, call->time);
    if (index == SLAB_NONE) {
        t->counts.refused_requests++;
        return NO_REQUEST;
    }
    struct request *r = request_marked(t, index);
    struct process *p = process_for(t, call->pid, call->time);
    r->has_begin = true;
    r->begin = call->time;
    r->begin_pid = call->pid;
    if (p) {
        p->begun = index;
        p->begun_generation = r->generation;
        p->last_event = LAST_RETURN;
        p->returned = index;
    }
    return (struct request_ref){index, r->generation};
}

struct request_ref tracker_web_begin(struct tracker *t, const struct tracker_call *call) {
    struct request_ref ref = tracker_begin(t, call);
    struct process *p = process_find(t, call->pid);
    if (ref.index != SPAN_NONE) {
        request_at(t, ref.index)->ends_here = true;
        if (p) {
            p->web_open++;
        }
    }
    return ref;
}

static void end_of_death(struct tracker *t, uint32_t index, uint64_t pid, int64_t time) {
    request_ends(t, index, &(struct tracker_end){.pid = pid, .time = time, .error = true});
    request_at(t, index)->died = true;
}

void request_died(struct tracker *t, const struct process *p, bool crashed, int64_t time) {
    if (crashed && alive(t, p->begun, p->begun_generation) && !request_at(t, p->begun)->has_end) {
        end_of_death(t, p->begun, p->pid, time);
    }
    // A connection may have had many at a time. Few processes die with one open, so that looking for them is cheap.
    for (enum phase phase = PHASE_NEW; phase <= PHASE_OPEN && p->web_open > 0; phase++) {
        for (uint32_t index = t->lists[phase].head, next; index != SLAB_NONE; index = next) {
            const struct request *r = request_at(t, index);
            next = r->next;
            if (r->ends_here && r->begin_pid == p->pid) {
                end_of_death(t, index, p->pid, time);
            }
        }
    }
}

void tracker_end(struct tracker *t, const struct tracker_end *end) {
    t->markers = true;
    bool late = request_find(t, end->token) == MAP_NONE && closed_lately(t, end->token);
    uint32_t index = late ? SLAB_NONE : request_for(t, end->token, end->time); // new: its begin may be late
    struct process *p = process_find(t, end->pid);
    if (p) {
        p->last_event = LAST_RETURN;
        p->returned = index;
    }
    if (index == SLAB_NONE) {
        return;
    }
    struct request *r = request_marked(t, index);
    if (p && p->web_open > 0 && r->ends_here && r->begin_pid == end->pid && !r->has_end) {
        p->web_open--;
    }
    r->damaged = r->damaged || end->token_lost;
    t->counts.lost_tokens += end->token_lost;
    request_ends(t, index, end);
}

// -- identities ------------------------------------------------------------------------------------------------------

bool tracker_unnamed(const struct tracker *t, struct request_ref ref) {
    return alive(t, ref.index, ref.generation) && request_at(t, ref.index)->identity == IDENTITY_UNDEFINED;
}

struct request_ref tracker_find(const struct tracker *t, uint64_t token) {
    uint32_t index = map_get(&t->by_token, token);
    return index == MAP_NONE ? NO_REQUEST : (struct request_ref){index, request_at(t, index)->generation};
}

void tracker_name(struct tracker *t, struct request_ref ref, uint16_t identity) {
    if (tracker_unnamed(t, ref)) {
        request_at(t, ref.index)->identity = identity;
        request_at(t, ref.index)->named_place = 0;
    }
}

void tracker_name_begun(struct tracker *t, struct request_ref ref, struct slice name) {
    if (!alive(t, ref.index, ref.generation) || request_at(t, ref.index)->name != SLAB_NONE) {
        return;
    }
    uint32_t place = slab_take(&t->pool->names);
    if (place == SLAB_NONE) {
        return;
    }
    request_at(t, ref.index)->name = place;
    struct begun_name *begun = SLAB_AT(&t->pool->names, struct begun_name, place);
    begun->len = (uint32_t)(name.len < sizeof begun->text ? name.len : sizeof begun->text);
    memcpy(begun->text, name.data, begun->len);
}

void tracker_name_late(struct tracker *t, struct request_ref ref, uint16_t identity) {
    if (tracker_unnamed(t, ref)) {
        request_at(t, ref.index)->identity = identity;
        request_at(t, ref.index)->named_place = UINT8_MAX;
    }
}

int tracker_asked(struct tracker *t, struct request_ref ref) {
    if (!alive(t, ref.index, ref.generation) || request_at(t, ref.index)->asked == LIMIT_ASKS_PER_REQUEST) {
        return -1;
    }
    request_at(t, ref.index)->answers_due++;
    return request_at(t, ref.index)->asked++;
}

void tracker_answered(struct tracker *t, struct request_ref ref, int place, uint16_t identity) {
    if (!alive(t, ref.index, ref.generation)) {
        return;
    }
    struct request *r = request_at(t, ref.index);
    if (r->answers_due > 0) {
        r->answers_due--;
    }
    if (identity != DIRECTORY_NONE && place < r->named_place) {
        r->identity = identity;
        r->named_place = (uint8_t)place;
    }
}

// -- loss and time ---------------------------------------------------------------------------------------------------

void tracker_lost(struct tracker *t) {
    t->losses++;
}

void tracker_lost_until(struct tracker *t, int64_t time) {
    t->lost_until = time;
}

void tracker_gap(struct tracker *t, int64_t from, int64_t until) {
    t->gaps[t->gap_count % GAPS] = (struct gap){from, until};
    t->gap_count = t->gap_count == UINT32_MAX ? GAPS : t->gap_count + 1;
}

// Many requests close at a time, and were last touched a second ago: asks for the memory of the next ones while one closes.
static inline void prefetch_closing(const struct tracker *t, const struct request *r) {
    const struct request *next = r->next == SLAB_NONE ? NULL : request_at(t, r->next);
    const struct request *after = !next || next->next == SLAB_NONE ? NULL : request_at(t, next->next);
    if (after) {
        prefetch_chunk(t, after->first_chunk);
        prefetch_closed(t, after->token);
        if (after->next != SLAB_NONE) {
            prefetch(request_at(t, after->next), sizeof *r);
        }
    }
}

static void close_due(struct tracker *t) {
    for (uint32_t index = t->lists[PHASE_CLOSING].head; index != SLAB_NONE; index = t->lists[PHASE_CLOSING].head) {
        struct request *r = request_at(t, index);
        if (r->deadline > t->now) {
            break;
        }
        prefetch_closing(t, r);
        if (r->answers_due > 0) {
            r->answers_due = 0;
            list_remove(t, index);
            list_append(t, index, PHASE_CLOSING, r->end + GRACE_NS + GRACE_ASK_NS);
        } else {
            request_close(t, index, REQUEST_COMPLETE);
        }
    }
}

// Requests that will get no end: those whose begin did not come, and those without a root call.
static bool hopeless(const struct tracker *t, const struct request *r) {
    bool rootless = t->markers ? !r->has_begin : r->root == SPAN_NONE && r->open == 0;
    return rootless && !r->has_begin && t->now - r->last > GRACE_NS &&
           (r->open == 0 || r->damaged || maker_of(t, r) == DIRECTORY_NONE); // a part waits for its returns
}

static bool too_old(const struct tracker *t, const struct request *r) {
    return t->now - r->first > t->options.timeout_ns;
}

// Looks at the requests that are new no longer. Those that have begun as they should wait for their end from then on.
static void judge_new(struct tracker *t) {
    const struct list *l = &t->lists[PHASE_NEW];
    for (uint32_t index = l->head; index != SLAB_NONE && request_at(t, index)->deadline <= t->now; index = l->head) {
        const struct request *r = request_at(t, index);
        if (too_old(t, r)) {
            request_close(t, index, REQUEST_EXPIRED);
        } else if (hopeless(t, r)) {
            request_close(t, index, REQUEST_INCOMPLETE);
        } else {
            bool begun = r->has_begin || (!t->markers && r->root != SPAN_NONE);
            list_remove(t, index);
            list_append(t, index, begun ? PHASE_OPEN : PHASE_NEW, t->now + GRACE_NS);
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
    close_due(t);
    judge_new(t);
    expire_open(t);
    if (t->now - t->swept > SWEEP_SECONDS * 1000000000LL) {
        t->swept = t->now;
        processes_sweep(t, false);
    }
}

void tracker_reset(struct tracker *t) {
    while (t->lists[PHASE_CLOSING].head != SLAB_NONE) {
        request_close(t, t->lists[PHASE_CLOSING].head, REQUEST_COMPLETE);
    }
    for (enum phase phase = PHASE_NEW; phase <= PHASE_OPEN; phase++) {
        while (t->lists[phase].head != SLAB_NONE) {
            request_close(t, t->lists[phase].head, REQUEST_INCOMPLETE);
        }
    }
    processes_sweep(t, true);
    map_clear(&t->by_token); // both are empty, and may have become large
    map_clear(&t->by_pid);
    memset(t->told, 0, sizeof t->told);
    t->now = INT64_MIN / 2; // the next stream may have another clock
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
                          .lists = {{SLAB_NONE, SLAB_NONE}, {SLAB_NONE, SLAB_NONE}, {SLAB_NONE, SLAB_NONE}},
                          .salt = hash_mix(++pool->nodes_made),
                          .lost_until = INT64_MIN,
                          .now = INT64_MIN / 2,
                          .swept = INT64_MIN / 2,
                          .markers = options->markers};
    for (int i = 0; i < LATEST; i++) {
        t->tokens[i].value = t->processes[i].value = SLAB_NONE;
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
