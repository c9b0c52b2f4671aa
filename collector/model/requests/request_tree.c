// SPDX-License-Identifier: Apache-2.0
#include "model/requests/request_tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "span_parents.h"

enum { TIERS = LIMIT_TIER_NAMES + 1 };
#define COUNTS (UINT32_MAX - 1)

struct request_tree {
    struct span *spans;  // LIMIT_SPANS_PER_REQUEST each, like the next
    struct span *sorted; // the spans in order of start, swapped with `spans` at the end
    uint32_t *order;     // sorted position -> arrival position
    uint32_t *position;  // arrival position -> sorted position
    // Children of a span as a list in order of start; index `count` stands for the request itself.
    uint32_t *first_child;
    uint32_t *last_child;
    uint32_t *sibling;
    struct span_parents *parents;
    int64_t *until; // up to where the children of a span cover it
    // Messages of spans, TREE_WAITS at most, and behind them what spans without such waited, N of
    // those. From when a message counts as waiting, `sent` to `taken` are the moments that do, and
    // `next` is COUNTS.
    struct span_wait *waits;
    uint32_t wait_count;
    int64_t *until_above; // what until_of_tier was before the span
    // latest end of the tier's spans above the one looked at; INT64_MIN: none
    int64_t until_of_tier[TIERS];
};

struct request_tree *request_tree_new(void) {
    enum { N = LIMIT_SPANS_PER_REQUEST + 1 };
    struct request_tree *t = calloc(1, sizeof *t);
    if (!t) {
        return NULL;
    }
    t->spans = malloc(N * sizeof *t->spans);
    t->sorted = malloc(N * sizeof *t->sorted);
    t->order = malloc(5 * N * sizeof *t->order);
    t->until = malloc(N * sizeof *t->until);
    t->until_above = malloc(N * sizeof *t->until_above);
    t->waits = malloc((TREE_WAITS + N) * sizeof *t->waits);
    if (!t->spans || !t->sorted || !t->order || !t->until || !t->until_above || !t->waits ||
        !(t->parents = span_parents_new())) {
        request_tree_free(t);
        return NULL;
    }
    for (uint32_t i = 0; i < TIERS; i++) {
        t->until_of_tier[i] = INT64_MIN;
    }
    t->position = t->order + N;
    t->first_child = t->position + N;
    t->last_child = t->first_child + N;
    t->sibling = t->last_child + N;
    return t;
}

void request_tree_free(struct request_tree *t) {
    if (t) {
        span_parents_free(t->parents);
        free(t->spans);
        free(t->sorted);
        free(t->order);
        free(t->until);
        free(t->until_above);
        free(t->waits);
        free(t);
    }
}

struct span *request_tree_spans(struct request_tree *t) {
    return t->spans;
}

struct spawn *request_tree_spawns(struct request_tree *t) {
    return span_parents_spawns(t->parents);
}

struct span_wait *request_tree_waits(struct request_tree *t) {
    return t->waits;
}

static void swap_spans(struct request_tree *t) {
    struct span *spans = t->spans;
    t->spans = t->sorted;
    t->sorted = spans;
}

static int by_start(const void *a, const void *b, void *context) {
    const struct span *spans = context;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    if (spans[i].start != spans[j].start) {
        return spans[i].start < spans[j].start ? -1 : 1;
    }
    return i < j ? -1 : 1; // arrival order is exact within a process
}

// Whether the spans come in order of start, with parents before them.
static bool in_order(const struct span *spans, uint32_t count) {
    int64_t latest = INT64_MIN;
    for (uint32_t i = 0; i < count; i++) {
        if (spans[i].start < latest || spans[i].parent + 1 > i) { // SPAN_NONE + 1 is 0
            return false;
        }
        latest = spans[i].start;
    }
    return true;
}

// Fills sorted. Mostly the spans come in order; then they stay where they are, and the two arrays
// swap names. Else fills order and position, too, and returns true.
static bool sort_spans(struct request_tree *t, uint32_t count) {
    enum { FEW = 32 };
    if (in_order(t->spans, count)) {
        swap_spans(t);
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        t->order[i] = i;
    }
    if (count > FEW) {
        qsort_r(t->order, count, sizeof *t->order, by_start, t->spans);
    } else {
        for (uint32_t i = 1; i < count; i++) { // nearly sorted as it comes
            uint32_t moving = t->order[i];
            uint32_t j = i;
            for (; j > 0 && t->spans[t->order[j - 1]].start > t->spans[moving].start; j--) {
                t->order[j] = t->order[j - 1];
            }
            t->order[j] = moving;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        t->position[t->order[i]] = i;
        t->sorted[i] = t->spans[t->order[i]];
    }
    return true;
}

// The spans have moved: names the parents that the stacks tell by their new places.
static void move_parents(struct request_tree *t, const struct tree_request *request) {
    for (uint32_t i = 0; i < request->count; i++) {
        uint32_t parent = t->sorted[i].parent;
        t->sorted[i].parent =
            parent == SPAN_NONE || t->position[parent] >= i ? SPAN_NONE : t->position[parent];
    }
    struct spawn *spawns = span_parents_spawns(t->parents);
    for (uint32_t i = 0; i < request->spawns; i++) {
        spawns[i].parent =
            spawns[i].parent == SPAN_NONE ? SPAN_NONE : t->position[spawns[i].parent];
    }
}

// Lists each span's children in order of start.
static void list_children(struct request_tree *t, uint32_t count) {
    for (uint32_t i = 0; i <= count; i++) {
        t->first_child[i] = SPAN_NONE;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t parent = t->sorted[i].parent == SPAN_NONE ? count : t->sorted[i].parent;
        t->sibling[i] = SPAN_NONE;
        if (t->first_child[parent] == SPAN_NONE) {
            t->first_child[parent] = i;
        } else {
            t->sibling[t->last_child[parent]] = i;
        }
        t->last_child[parent] = i;
    }
}

// Whether a span is the outermost of its tier, by a look at each one above it.
static bool is_outermost(const struct request_tree *t, const struct span *span) {
    for (uint32_t i = span->parent; i != SPAN_NONE; i = t->sorted[i].parent) {
        const struct span *above = &t->sorted[i];
        // a parent in another process may have ended before
        if (above->tier == span->tier && (above->open || above->end >= span->start)) {
            return false;
        }
    }
    return true;
}

// The same for all spans of a large request: walks the tree depth first.
static void find_outermost(struct request_tree *t, uint32_t count) {
    list_children(t, count);
    uint32_t i = t->first_child[count];
    while (i != SPAN_NONE) {
        struct span *span = &t->sorted[i];
        int64_t *until = &t->until_of_tier[span->tier];
        int64_t end = span->open ? INT64_MAX : span->end;
        span->outermost = *until < span->start;
        t->until_above[i] = *until;
        *until = end > *until ? end : *until;
        if (t->first_child[i] != SPAN_NONE) {
            i = t->first_child[i];
            continue;
        }
        for (;;) { // leave spans until one has a sibling
            t->until_of_tier[t->sorted[i].tier] = t->until_above[i];
            if (t->sibling[i] != SPAN_NONE) {
                i = t->sibling[i];
                break;
            }
            i = t->sorted[i].parent;
            if (i == SPAN_NONE) {
                return;
            }
        }
    }
}

// What a span waited by its messages, where these are told.
static void measure(const struct request_tree *t, struct span *span) {
    int64_t wait = 0, run_queue = 0;
    span->measured = false;
    span->run_queue = SPAN_UNKNOWN;
    if (!span->brought || span->waits >= SPAN_AGAIN) {
        return;
    }
    for (uint32_t i = span->waits; i != SPAN_NONE; i = t->waits[i].next) {
        const struct span_wait *w = &t->waits[i];
        if (w->taken > span->start) { // times run back: that cannot be
            return;
        }
        wait += w->taken - w->sent;
        run_queue = w->ran == INT64_MIN || run_queue == SPAN_UNKNOWN ? SPAN_UNKNOWN
                                                                     : run_queue + w->ran - w->sent;
    }
    span->measured = true;
    span->wait = wait;
    span->run_queue = run_queue;
}

// What of the time from `from` to `to` was not covered yet; *until, up to where it is, moves on.
static inline int64_t cover(int64_t from, int64_t to, int64_t *until) {
    from = from > *until ? from : *until;
    if (to < from) {
        return 0;
    }
    *until = to;
    return to - from;
}

// Moments up to `to` count as waiting for a span, from `from` on or from where what is above it is
// covered until. Returns how many of them are covered by that now.
static int64_t wait_for(struct span_wait *w, uint32_t span, int64_t from, int64_t to,
                        int64_t *until) {
    from = from > *until ? from : *until;
    *w = (struct span_wait){.sent = from, .taken = to, .span = span, .next = COUNTS};
    return cover(from, to, until);
}

// The same of all that a span waited, below what ends at `end`.
static inline int64_t wait_above(struct request_tree *t, uint32_t i, int64_t end, int64_t *until) {
    const struct span *span = &t->sorted[i];
    int64_t covered = 0;
    if (span->wait <= 0 || span->start > end) {
        return 0;
    }
    if (!span->measured) {
        return span->start <= *until ? 0
                                     : wait_for(&t->waits[t->wait_count++], i,
                                                span->start - span->wait, span->start, until);
    }
    for (uint32_t k = span->waits, next; k != SPAN_NONE; k = next) {
        struct span_wait *w = &t->waits[k];
        next = w->next;
        if (w->taken > *until) {
            covered += wait_for(w, i, w->sent, w->taken, until);
        }
    }
    return covered;
}

static int by_taken(const void *a, const void *b) {
    const struct span_wait *x = a, *y = b;
    return x->taken != y->taken ? (x->taken < y->taken ? -1 : 1) : x->span < y->span ? -1 : 1;
}

// Gives each moment that counts as waiting to the span whose wait was over first.
static void wait_once(struct request_tree *t) {
    struct span_wait *waits = t->waits;
    uint32_t count = 0, end = 0;
    bool sorted = true;
    for (uint32_t i = 0; i < t->wait_count; i++) {
        if (waits[i].next == COUNTS) {
            sorted = sorted && (count == 0 || waits[count - 1].taken <= waits[i].taken);
            waits[count++] = waits[i];
        }
    }
    if (!sorted) {
        qsort(waits, count, sizeof *waits, by_taken);
    }
    // those looked at already, apart from each other, stand in the first places
    for (uint32_t i = 0; i < count; i++) {
        struct span_wait w = waits[i];
        int64_t fresh = w.taken - w.sent;
        for (; end > 0 && waits[end - 1].taken >= w.sent; end--) {
            const struct span_wait *before = &waits[end - 1];
            fresh -= before->taken - (before->sent > w.sent ? before->sent : w.sent);
            w.sent = before->sent < w.sent ? before->sent : w.sent;
        }
        t->sorted[w.span].waiting += fresh;
        waits[end++] = w;
    }
}

struct tree_times request_tree_build(struct request_tree *t, const struct tree_request *request) {
    enum { LARGE = 64 };
    uint32_t count = request->count;
    int64_t duration = request->end - request->begin, until = request->begin;
    struct tree_times times = {.uncovered = duration, .parallel = -duration};
    if (sort_spans(t, count)) {
        move_parents(t, request);
    }
    span_parents_find(t->parents, t->sorted, request);
    t->wait_count = request->waits;
    for (uint32_t i = 0; i < count; i++) { // in order of start: parents first
        struct span *span = &t->sorted[i];
        struct span *parent = span->parent != SPAN_NONE ? &t->sorted[span->parent] : NULL;
        span->async = span->open || span->end > request->end;
        span->self = span->async ? 0 : span->end - span->start;
        span->waiting = 0;
        span->depth = parent ? parent->depth + 1 : 0;
        t->until[i] = span->start;
        measure(t, span);
        if (!span->async) {
            times.parallel += span->self;
            if (!parent) {
                times.uncovered -= wait_above(t, i, request->end, &until);
            } else if (!parent->async) {
                int64_t *above = &t->until[span->parent];
                int64_t last = span->end < parent->end ? span->end : parent->end;
                int64_t taken = wait_above(t, i, parent->end, above);
                taken += cover(span->start, last, above);
                parent->self -= taken;
                times.parallel -= taken;
            }
            times.uncovered -=
                cover(span->start, span->end, &until); // it may go on after its parent
        }
        if (count <= LARGE) {
            span->outermost = is_outermost(t, span);
        }
    }
    if (count > LARGE) {
        find_outermost(t, count);
    }
    wait_once(t);
    for (uint32_t i = 0; i < count; i++) {
        times.waiting += t->sorted[i].waiting;
    }
    swap_spans(t);
    times.parallel += times.waiting + times.uncovered;
    return times;
}
