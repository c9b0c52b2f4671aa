// What other nodes did for a request, among its own spans.
#include <stdlib.h>
#include <string.h>

#include "tool/slow.h"

struct joined {
    struct slow_span span; // parent: an index of the array before it is sorted
    uint32_t at;           // this one's
};

struct join {
    struct joined *all;
    uint32_t count;
};

// The sum, or the nearest there is: the file may hold anything.
static int64_t sum(int64_t a, int64_t b) {
    int64_t both;
    return __builtin_add_overflow(a, b, &both) ? (a < 0 ? INT64_MIN : INT64_MAX) : both;
}

// Where a part began within the request. Both nodes tell by their own clocks; but nothing is done for a request before it begins, or begun
// after its end.
static int64_t offset_of(const struct slow_request *r, const struct slow_part *part) {
    int64_t offset, latest;
    if (__builtin_sub_overflow(part->started_ns, r->started_ns, &offset) || offset < 0) {
        return 0;
    }
    if (offset <= r->duration_ns) {
        return offset;
    }
    return __builtin_sub_overflow(r->duration_ns, part->duration_ns, &latest) || latest < 0 ? 0 : latest;
}

// The call of the request's own node that a part from `begin` to `end` was done for, most likely: of those that were open all that time,
// or else when it began, the one that began last. UINT32_MAX: none.
static uint32_t caller_of(const struct slow_spans *of, int64_t begin, int64_t end) {
    uint32_t around = UINT32_MAX, open = UINT32_MAX;
    for (uint32_t i = 0; i < of->count && of->spans[i].start_ns <= begin; i++) {
        int64_t over = sum(of->spans[i].start_ns, of->spans[i].duration_ns);
        open = over > begin ? i : open;
        around = over >= end ? i : around;
    }
    return around != UINT32_MAX ? around : open;
}

static void add_own(struct join *j, const struct slow_spans *of) {
    for (uint32_t i = 0; i < of->count; i++) {
        j->all[j->count] = (struct joined){of->spans[i], j->count};
        j->count++;
    }
}

static void add_part(struct join *j, const struct slow_spans *of, const struct slow_part *part, const struct slow_spans *done) {
    int64_t offset = offset_of(&of->request, part);
    uint32_t caller = caller_of(of, offset, sum(offset, part->duration_ns));
    uint32_t base = j->count;
    for (uint32_t i = 0; i < done->count; i++) {
        struct slow_span span = done->spans[i];
        span.node = part->node;
        span.start_ns = sum(span.start_ns, offset);
        span.parent = span.parent == UINT32_MAX ? caller : base + span.parent;
        j->all[j->count] = (struct joined){span, j->count};
        j->count++;
    }
}

static int by_start(const void *a, const void *b) {
    const struct joined *x = a, *y = b;
    return x->span.start_ns != y->span.start_ns ? (x->span.start_ns < y->span.start_ns ? -1 : 1) : x->at < y->at ? -1 : 1;
}

// Sorts by start and has the parents' numbers follow. places: room for as many.
static void sort(struct join *j, uint32_t *places) {
    qsort(j->all, j->count, sizeof *j->all, by_start);
    for (uint32_t i = 0; i < j->count; i++) {
        places[j->all[i].at] = i;
    }
    for (uint32_t i = 0; i < j->count; i++) {
        struct slow_span *span = &j->all[i].span;
        span->parent = span->parent == UINT32_MAX ? UINT32_MAX : places[span->parent];
    }
}

bool slow_join(struct slow_spans *of, const struct slow_spans *done) {
    uint32_t count = of->count;
    for (uint32_t i = 0; i < of->part_count; i++) {
        count += done[i].count;
    }
    if (count == of->count) {
        return true;
    }
    struct join j = {.all = malloc(count * sizeof *j.all)};
    struct slow_span *spans = malloc(count * sizeof *spans);
    uint32_t *places = malloc(count * sizeof *places);
    bool good = j.all && spans && places;
    if (good) {
        add_own(&j, of);
        for (uint32_t i = 0; i < of->part_count; i++) {
            add_part(&j, of, &of->parts[i], &done[i]);
        }
        sort(&j, places);
        for (uint32_t i = 0; i < count; i++) {
            spans[i] = j.all[i].span;
        }
        free(of->spans);
        of->spans = spans;
        of->count = count;
        spans = NULL;
    }
    free(spans);
    free(places);
    free(j.all);
    return good;
}
