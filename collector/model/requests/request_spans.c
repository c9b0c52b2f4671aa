// SPDX-License-Identifier: Apache-2.0
#include "tracker.h"

// -- records --------------------------------------------------------------------------------------

bool chunk_add(struct tracker *t, struct request *r) {
    uint32_t chunk = r->count + CHUNK_SPANS <= RECORDS ? POOL_TAKE(t, chunks) : SLAB_NONE;
    if (chunk == SLAB_NONE) {
        return false;
    }
    SLAB_AT(&t->pool->chunks, struct chunk, chunk)->next = SLAB_NONE;
    if (r->last_chunk == SLAB_NONE) {
        r->first_chunk = chunk;
    } else {
        SLAB_AT(&t->pool->chunks, struct chunk, r->last_chunk)->next = chunk;
    }
    r->last_chunk = chunk;
    return true;
}

bool span_add(struct tracker *t, uint32_t index, struct call *call,
              const struct tracker_call *what) {
    struct request *r = request_at(t, index);
    bool spawn = call->tier == RECORD_SPAWN;
    if (spawn ? r->spawns == LIMIT_SPAWNS_PER_REQUEST : r->spans == LIMIT_SPANS_PER_REQUEST) {
        r->beyond += !spawn;
        r->cut = true;
        return false;
    }
    const struct call *below = call->below == SLAB_NONE ? NULL : call_at(t, call->below);
    bool nested = below && below->request == index && below->generation == r->generation;
    uint32_t record = r->count;
    struct span_record span = {.start = what->time,
                               .end = what->time,
                               .pid = what->pid,
                               .from = spawn ? 0 : what->from,
                               .parent = nested ? below->span : SPAN_NONE,
                               .tier = call->tier,
                               .open = !spawn,
                               .blind = call->caller != 0};
    if (!record_add(t, index, &span)) {
        request_hurt(r, REASON_ROOM);
        return false;
    }
    call->request = index;
    call->generation = r->generation;
    call->span = record;
    call->chunk = r->last_chunk;
    call->place = (uint16_t)(record % CHUNK_SPANS);
    r->spans += !spawn;
    r->open += !spawn;
    r->spawns += spawn;
    // Returns that were lost pile up calls too: only what was called since the last loss counts.
    if (below && !nested && below->losses == t->losses &&
        ++call->requests % LIMIT_LOOP_REQUESTS == 0) {
        tell_never_returns(t, call);
    }
    return true;
}

void spans_free(struct tracker *t, struct request *r) {
    for (uint32_t chunk = r->first_chunk; chunk != SLAB_NONE;) {
        uint32_t next = SLAB_AT(&t->pool->chunks, struct chunk, chunk)->next;
        POOL_GIVE(t, chunks, chunk);
        chunk = next;
    }
}

// -- a request's worth ----------------------------------------------------------------------------

static void spread_span(struct span *to, const struct span_record *s) {
    to->start = s->start;
    to->end = s->end;
    to->pid = s->pid;
    to->from = s->from;
    to->parent = s->parent;
    to->tier = s->tier;
    to->open = s->open;
    to->error = s->error;
    to->blind = s->blind;
    to->gc = 0;
    to->off_cpu = 0;
    to->wait = 0;
    to->waits = SPAN_NONE;
    to->brought = false;
}

void each_record(const struct tracker *t, const struct request *r, void *context,
                 void (*each)(void *context, uint32_t i, const struct span_record *record)) {
    uint32_t index = r->first_chunk;
    for (uint32_t i = 0; i < r->count;) {
        const struct chunk *chunk = SLAB_AT(&t->pool->chunks, struct chunk, index);
        prefetch_chunk(t, chunk->next);
        for (uint32_t k = 0; k < CHUNK_SPANS && i < r->count; k++, i++) {
            each(context, i, &chunk->spans[k]);
        }
        index = chunk->next;
    }
}

static void spread_plain(void *context, uint32_t i, const struct span_record *record) {
    spread_span((struct span *)context + i, record);
}

// Where the spans among other records go.
struct spreading {
    struct span *spans;
    struct spawn *spawns;
    struct span_wait *waits;
    uint32_t *places; // record -> place in spans
    uint32_t span_count;
    uint32_t spawn_count;
    uint32_t wait_count;
    struct trace_parent parent;
};

static uint32_t place_of(const struct spreading *s, uint32_t record) {
    return record == SPAN_NONE ? SPAN_NONE : s->places[record];
}

// Messages past the cap leave their span without any: it is estimated then.
static void spread_wait(struct spreading *s, const struct span_record *record) {
    uint32_t place = s->places[record->parent];
    struct span *span = &s->spans[place];
    if (record->open || record->end < record->start || s->wait_count == TREE_WAITS) {
        span->waits = record->open ? SPAN_AGAIN : SPAN_NONE;
        return;
    }
    int64_t ran = (int64_t)record->pid;
    bool known = ran >= record->start && ran <= record->end;
    s->waits[s->wait_count] = (struct span_wait){.sent = record->start,
                                                 .taken = record->end,
                                                 .ran = known ? ran : INT64_MIN,
                                                 .span = place,
                                                 .next = span->waits};
    span->waits = s->wait_count++;
}

static void spread_mixed(void *context, uint32_t i, const struct span_record *record) {
    struct spreading *s = context;
    if (record->tier == RECORD_COSTS) {
        struct span *span = &s->spans[s->places[record->parent]];
        span->gc += record->start;
        span->off_cpu += record->end;
    } else if (record->tier == RECORD_WAIT) {
        spread_wait(s, record);
    } else if (record->tier == RECORD_PARENT) {
        s->parent = record_parent(record);
    } else if (record->tier == RECORD_SPAWN) {
        if (record->from != 0) {
            s->spawns[s->spawn_count++] = (struct spawn){record->start, record->pid, record->from,
                                                         place_of(s, record->parent)};
        }
    } else if (record->tier < RECORD_NONE) {
        s->places[i] = s->span_count;
        struct span *span = &s->spans[s->span_count++];
        spread_span(span, record);
        span->parent = place_of(s, record->parent);
    }
}

// Copies the records to the tree's scratch.
static struct spreading spread(struct tracker *t, const struct request *r) {
    struct spreading s = {.spans = request_tree_spans(t->pool->tree),
                          .waits = request_tree_waits(t->pool->tree),
                          .spawns = request_tree_spawns(t->pool->tree),
                          .places = t->pool->places};
    if (r->count == r->spans) {
        each_record(t, r, s.spans, spread_plain);
    } else {
        each_record(t, r, &s, spread_mixed);
    }
    return s;
}

// Without markers: takes begin, end and outcome from the call that opened the request. Returns
// false when that is not the one that should have, or did not return.
static bool rooted(const struct tracker *t, struct request *r, const struct span *spans) {
    uint32_t first = 0;
    int64_t earliest = spans[0].start;
    for (uint32_t i = 1; i < r->spans; i++) {
        if (spans[i].start < earliest) {
            earliest = spans[i].start;
            first = i;
        }
    }
    if (r->spans == 0 || spans[first].open ||
        (t->options.entry != TIER_NONE && spans[first].tier != t->options.entry)) {
        return false;
    }
    r->begin = spans[first].start;
    r->end = spans[first].end;
    r->error = spans[first].error;
    return true;
}

// Whether some calls of the request may not have been traced.
static bool in_gap(const struct tracker *t, const struct request *r) {
    for (uint32_t i = t->gap_count; i > 0 && r->begin <= t->gaps[i - 1].until; i--) {
        if (r->end >= t->gaps[i - 1].from) {
            return true;
        }
    }
    return false;
}

// Takes begin and end of a part of another node's request from its calls, none of which is open.
static void framed(struct request *r, const struct span *spans) {
    r->begin = INT64_MAX;
    r->end = INT64_MIN;
    for (uint32_t i = 0; i < r->spans; i++) {
        r->begin = spans[i].start < r->begin ? spans[i].start : r->begin;
        r->end = spans[i].end > r->end ? spans[i].end : r->end;
    }
}

// Whether messages that were lost may have been the request's, and not of its asynchronous calls
// alone. Of the losses since it opened the first is the nearest.
static bool hit_by_loss(const struct tracker *t, const struct request *r) {
    uint32_t since = t->losses - r->losses;
    if (since == 0) {
        return false;
    }
    int64_t over = r->last > r->end ? r->last : r->end;
    int64_t lost_at = t->lost_at[(r->losses + 1) % LOSSES];
    return since > LOSSES || !r->has_end || r->open > 0 || lost_at < over ||
           lost_at - over <= DISORDER_NS;
}

// Whether a request that has its end is whole, with begin and end set.
static bool whole(struct tracker *t, struct request *r, const struct span *spans) {
    if (cause_doubtful(t, r)) {
        request_hurt(r, REASON_CAUSE);
    }
    if (r->damage != REASON_NONE || hit_by_loss(t, r)) {
        return false;
    }
    if (r->remote) {
        framed(r, spans);
        return r->spans > 0 && !in_gap(t, r);
    }
    if (!r->has_end) {
        return false;
    }
    if (r->has_begin) {
        // Of what has begun before the end and is open, a return never came in the process that
        // ended it. Elsewhere that is work that goes on, or, without return values, may have ended
        // in silence.
        for (uint32_t i = 0; i < r->spans && r->open > 0; i++) {
            bool late = !spans[i].open || spans[i].start > r->end;
            if (!late && spans[i].blind) {
                t->counts.ambiguous_returns++;
                return false;
            }
            if (!late && spans[i].pid == r->root_pid) {
                return false;
            }
        }
    } else if (t->markers || !rooted(t, r, spans)) { // with markers its begin was lost
        return false;
    }
    return r->end >= r->begin && !in_gap(t, r);
}

// Why a request is incomplete that is not good, or was cut.
static enum incomplete_reason reason_of(const struct tracker *t, const struct request *r,
                                        bool good) {
    if (good) {
        return REASON_LARGE;
    }
    if (r->damage != REASON_NONE) {
        return r->damage;
    }
    if (hit_by_loss(t, r)) {
        return REASON_LOSS;
    }
    // without markers: the first call was not the one that begins
    if (!r->has_end || (!r->has_begin && (t->markers || r->open == 0))) {
        return REASON_END;
    }
    return r->end >= r->begin && in_gap(t, r) ? REASON_GAP : REASON_RETURN;
}

void request_judge(struct tracker *t, struct request *r, enum request_fate fate,
                   struct request_result *result) {
    struct request_tree *tree = t->pool->tree;
    struct spreading spread_out = spread(t, r);
    bool good = fate == REQUEST_COMPLETE && whole(t, r, request_tree_spans(tree));
    result->error = r->error;
    result->parent = spread_out.parent;
    result->calls = r->spans + r->beyond;
    result->cut = good && r->cut;
    result->fate = good && !r->cut           ? REQUEST_COMPLETE
                   : fate == REQUEST_EXPIRED ? REQUEST_EXPIRED
                                             : REQUEST_INCOMPLETE;
    result->reason =
        result->fate == REQUEST_INCOMPLETE ? (uint8_t)reason_of(t, r, good) : REASON_NONE;
    result->begin = good ? r->begin : r->first;
    result->end = good ? r->end : r->last;
    if (good) {
        struct tree_request whole_one = {.count = r->spans,
                                         .spawns = spread_out.spawn_count,
                                         .waits = spread_out.wait_count,
                                         .begin = r->begin,
                                         .end = r->end,
                                         .begin_pid = r->begin_pid,
                                         .end_pid = r->root_pid,
                                         .has_begin = r->has_begin};
        result->times = request_tree_build(tree, &whole_one);
        result->spans = request_tree_spans(tree);
        result->count = r->spans;
    }
    for (uint32_t i = 0; good && r->remote && i < r->spans; i++) {
        result->error = result->error || (result->spans[i].depth == 0 && result->spans[i].error);
    }
}
