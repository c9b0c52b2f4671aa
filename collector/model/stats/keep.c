// SPDX-License-Identifier: Apache-2.0
#include "model/stats/keep.h"

#include <stdlib.h>

#include "base/limits.h"
#include "base/map.h"
#include "base/slab.h"
#include "model/directory/directory.h"

// What one kept request is compared by.
struct place {
    int64_t duration;
    int64_t begin; // ns since 1970 UTC
};

// The requests of a bucket that were kept so far: those of reason i at places[offsets[i]] …, the
// best first.
struct chosen {
    int64_t bucket_start; // INT64_MIN: of none
    uint8_t count[KEPT_REASONS];
    struct place places[LIMIT_KEPT_OVER + LIMIT_KEPT_FAILED + LIMIT_KEPT_SLOWEST];
};

static const uint8_t offsets[KEPT_REASONS] = {0, LIMIT_KEPT_OVER,
                                              LIMIT_KEPT_OVER + LIMIT_KEPT_FAILED};
static const uint8_t limits[KEPT_REASONS] = {LIMIT_KEPT_OVER, LIMIT_KEPT_FAILED,
                                             LIMIT_KEPT_SLOWEST};

// What is known of a node's identity, 568 bytes. Requests close a bit out of order: after the first
// of a bucket some of the one before may come. A third bucket takes the place of the one that was
// asked for less lately, also when a clock was set back; what comes for that one afterwards is
// compared with too few, and the store sorts it out.
struct record {
    struct chosen buckets[2];
    uint32_t latest; // which of them was asked for last
    uint32_t key;    // node and identity
    uint32_t next;   // of the same node
};

struct keep {
    struct map index; // node and identity -> record
    struct slab records;
    struct {
        uint32_t first; // SLAB_NONE: none
        uint32_t count;
    } nodes[LIMIT_NODES];
    struct kept_span spans[LIMIT_KEPT_SPANS]; // of the request at hand
};

void keep_divide(struct keep *k, uint32_t keeps) {
    slab_init(&k->records, sizeof(struct record), LIMIT_KEEP_RECORDS / keeps);
}

struct keep *keep_new(void) {
    struct keep *k = malloc(sizeof *k);
    if (!k || !map_init(&k->index)) {
        free(k);
        return NULL;
    }
    keep_divide(k, 1);
    for (uint32_t node = 0; node < LIMIT_NODES; node++) {
        k->nodes[node].first = SLAB_NONE;
        k->nodes[node].count = 0;
    }
    return k;
}

void keep_free(struct keep *k) {
    if (k) {
        map_free(&k->index);
        slab_free(&k->records);
        free(k);
    }
}

void keep_forget_node(struct keep *k, uint16_t node) {
    while (k->nodes[node].first != SLAB_NONE) {
        uint32_t i = k->nodes[node].first;
        const struct record *r = slab_at(&k->records, i);
        k->nodes[node].first = r->next;
        map_remove(&k->index, r->key, i);
        slab_give_own(&k->records, &k->nodes[node].count, i);
    }
}

static void empty(struct record *r) {
    r->latest = 0;
    r->buckets[0].bucket_start = r->buckets[1].bucket_start = INT64_MIN;
}

void keep_forget_identity(struct keep *k, uint16_t identity) {
    for (uint32_t node = 0; node < LIMIT_NODES; node++) {
        uint32_t i = map_get(&k->index, node << 16 | identity);
        if (i != MAP_NONE) {
            empty(slab_at(&k->records, i));
        }
    }
}

void keep_trim(struct keep *k) {
    slab_trim(&k->records);
    map_fit(&k->index);
}

// The record of a node's identity, made when it is new. A node that has all that it may have begins
// anew. NULL when others have all, or without memory.
static struct record *record_of(struct keep *k, uint16_t node, uint16_t identity) {
    uint32_t key = (uint32_t)node << 16 | identity;
    uint32_t i = map_get(&k->index, key);
    if (i != MAP_NONE) {
        return slab_at(&k->records, i);
    }
    i = slab_take_own(&k->records, &k->nodes[node].count, true);
    if (i == SLAB_NONE) {
        keep_forget_node(k, node);
        i = slab_take_own(&k->records, &k->nodes[node].count, true);
    }
    if (i == SLAB_NONE) {
        return NULL;
    }
    if (!map_set(&k->index, key, i)) {
        slab_give_own(&k->records, &k->nodes[node].count, i);
        return NULL;
    }
    struct record *r = slab_at(&k->records, i);
    r->key = key;
    r->next = k->nodes[node].first;
    k->nodes[node].first = i;
    empty(r);
    return r;
}

static struct chosen *chosen_of(struct record *r, int64_t bucket_start) {
    if (r->buckets[r->latest].bucket_start != bucket_start) {
        r->latest ^= 1;
        if (r->buckets[r->latest].bucket_start != bucket_start) {
            r->buckets[r->latest] = (struct chosen){.bucket_start = bucket_start};
        }
    }
    return &r->buckets[r->latest];
}

static bool better(struct place a, struct place b) {
    return a.duration > b.duration || (a.duration == b.duration && a.begin < b.begin);
}

static bool taken(const struct chosen *c, enum kept_reason reason, struct place p) {
    return c->count[reason] < limits[reason] ||
           better(p, c->places[offsets[reason] + limits[reason] - 1]);
}

// Puts a taken request in its place; the worst goes when there are too many.
static void take(struct chosen *c, enum kept_reason reason, struct place p) {
    struct place *places = c->places + offsets[reason];
    uint32_t i = c->count[reason];
    if (i < limits[reason]) {
        c->count[reason]++;
    } else {
        i--;
    }
    for (; i > 0 && better(p, places[i - 1]); i--) {
        places[i] = places[i - 1];
    }
    places[i] = p;
}

// Copies the first spans of a request, parents among them.
static uint32_t copy_spans(struct keep *k, const struct request_result *r) {
    uint32_t count = r->count < LIMIT_KEPT_SPANS ? r->count : LIMIT_KEPT_SPANS;
    for (uint32_t i = 0; i < count; i++) {
        const struct span *s = &r->spans[i];
        k->spans[i] = (struct kept_span){
            .start = s->start - r->begin,
            .duration = s->open ? 0 : s->end - s->start,
            .self = s->self,
            .wait = s->wait,
            .waiting = s->waiting,
            .measured = s->measured,
            .run_queue = s->run_queue,
            .gc = s->gc,
            .off_cpu = s->off_cpu,
            .pid = s->pid,
            .parent = s->parent,
            .tier = s->tier,
            .open = s->open,
            .error = s->error,
            .async = s->async,
            .blind = s->blind,
            .caller = r->remote && s->parent == SPAN_NONE && s->from != s->pid ? s->from : 0};
    }
    return count;
}

_Static_assert(SPAN_NONE == UINT32_MAX, "a kept span's parent is written as a span's");

bool keep_offer(struct keep *k, const struct account *a, const struct request_result *result,
                int64_t over_ns) {
    struct place place = {result->end - result->begin, result->begin + a->offset};
    enum kept_reason reason = place.duration > over_ns ? KEPT_OVER
                              : result->error          ? KEPT_FAILED
                                                       : KEPT_SLOWEST;
    int64_t bucket_start = account_bucket(a, result->end);
    struct record *record = record_of(k, a->node, result->identity);
    struct chosen *chosen = record ? chosen_of(record, bucket_start) : NULL;
    if (chosen && !taken(chosen, reason, place)) {
        return false;
    }
    const struct kept_request request = {.bucket_start = bucket_start,
                                         .node = a->node,
                                         .identity = result->identity,
                                         .reason = (uint8_t)reason,
                                         .error = result->error,
                                         .cut = result->cut,
                                         .remote = result->remote,
                                         .maker = result->maker,
                                         .label = result->label,
                                         .begin = place.begin,
                                         .duration = place.duration,
                                         .uncovered = result->times.uncovered,
                                         .parallel = result->times.parallel,
                                         .parent = result->parent,
                                         .spans = result->calls,
                                         .count = copy_spans(k, result)};
    if (!stats_keep(a->stats, &request, k->spans)) {
        return false; // and leaves its place to others
    }
    if (chosen) {
        take(chosen, reason, place);
    }
    return true;
}
