// SPDX-License-Identifier: Apache-2.0
// What other nodes did for a request, among its own spans. A part's first call tells which process
// of another node its token came from: the part stands within a call of that one, and below it.
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/time_math.h"
#include "model/message/message.h"
#include "report/slow.h"

enum { DEEPEST = 256 }; // calls that are looked through, one above the other

static const uint32_t NONE = UINT32_MAX;

struct joined {
    struct slow_span span; // parent: an index in the array
    uint64_t process;      // one number for each of all nodes; 0: not known
    uint32_t earlier;      // the call before of the same process, NONE: there is none
    uint32_t at;           // where it stood before they were sorted
    struct {
        int64_t own_until; // until when the calls below of its own node cover it
        int64_t all_until; // and all of them, also those of other nodes
        int64_t more_ns;   // so much more of it than its own node's alone
    } below;
};

struct join {
    const struct slow_spans *of;
    const struct slow_spans *done; // of->part_count
    struct joined *all;
    uint32_t count;
    uint32_t *places;  // scratch: room for as many
    struct map latest; // process -> its last call in the array
};

static int64_t end_of(const struct slow_span *span) {
    return strcmp(span->outcome, "open") == 0 ? INT64_MAX
                                              : time_add(span->start_ns, span->duration_ns);
}

// -- callers --------------------------------------------------------------------------------------

// How well a call fits as the caller of what lasts from begin to end; the least is the best.
enum fit { AROUND, OPEN, BEFORE, LATER, FITS };

static enum fit fit_of(const struct slow_span *span, int64_t begin, int64_t end) {
    int64_t over = end_of(span);
    return span->start_ns > begin ? LATER : over >= end ? AROUND : over > begin ? OPEN : BEFORE;
}

// The call of a process that one from begin to end was made by, most likely: of those that fit best
// the one that began last. NONE: there is none of that process.
static uint32_t call_of(const struct join *j, uint64_t process, int64_t begin, int64_t end) {
    uint32_t best = NONE;
    enum fit best_fit = FITS;
    for (uint32_t i = process != 0 ? map_get(&j->latest, process) : NONE; i != NONE;
         i = j->all[i].earlier) {
        const struct slow_span *span = &j->all[i].span;
        enum fit fit = fit_of(span, begin, end);
        int64_t so_far = best == NONE ? 0 : j->all[best].span.start_ns;
        bool nearer = fit == LATER ? span->start_ns < so_far : span->start_ns > so_far;
        if (fit < best_fit || (fit == best_fit && nearer)) {
            best = i;
            best_fit = fit;
        }
    }
    return best;
}

// The same among all calls of the request's own node before one, where nothing is known of the
// process.
static uint32_t own_call(const struct join *j, uint32_t before, int64_t begin, int64_t end) {
    uint32_t best = NONE;
    enum fit best_fit = BEFORE;
    for (uint32_t i = 0; i < before; i++) {
        enum fit fit = j->all[i].span.node ? FITS : fit_of(&j->all[i].span, begin, end);
        if (fit < BEFORE && fit <= best_fit) {
            best = i;
            best_fit = fit;
        }
    }
    return best;
}

// -- gathering, each part where it belongs by time ------------------------------------------------

static void add(struct join *j, const struct slow_span *span, const char *node) {
    struct joined *to = &j->all[j->count];
    uint64_t pid;
    bool known = message_pid_parse(span->pid, &pid);
    *to = (struct joined){.span = *span,
                          .process = known ? message_process(slice_text(node), pid) : 0,
                          .earlier = NONE,
                          .at = j->count};
    if (known) {
        to->earlier = map_get(&j->latest, to->process);
        map_set(&j->latest, to->process, j->count); // without memory it is not found: nothing worse
    }
    j->count++;
}

// Where something that began and lasted so long by its own node's clock stands within what it was
// done for: nothing is done before that begins, or begun after its end.
static int64_t within(int64_t begin, int64_t length, int64_t from, int64_t until) {
    int64_t latest = time_sub(until, length);
    return begin < from ? from : begin <= until ? begin : latest > from ? latest : from;
}

// The first call of a part that tells its caller, NONE: none does.
static uint32_t first_brought(const struct slow_spans *done) {
    uint32_t i = 0;
    while (i < done->count && (done->spans[i].parent != UINT32_MAX || done->spans[i].caller == 0)) {
        i++;
    }
    return i < done->count ? i : NONE;
}

static bool has_caller(const struct join *j, const struct slow_spans *done) {
    uint32_t first = first_brought(done);
    return first != NONE && map_get(&j->latest, done->spans[first].caller) != MAP_NONE;
}

// When a part began, from the request's begin.
static int64_t offset_of(const struct join *j, const struct slow_part *part,
                         const struct slow_spans *done) {
    int64_t offset = time_sub(part->started_ns, j->of->request.started_ns);
    if (has_caller(j, done)) {
        const struct slow_span *first = &done->spans[first_brought(done)];
        int64_t begin = time_add(offset, first->start_ns);
        const struct slow_span *caller =
            &j->all[call_of(j, first->caller, begin, time_add(begin, first->duration_ns))].span;
        return time_sub(within(begin, first->duration_ns, caller->start_ns, end_of(caller)),
                        first->start_ns);
    }
    return within(offset, part->duration_ns, 0, j->of->request.duration_ns);
}

static void add_part(struct join *j, uint32_t i) {
    const struct slow_part *part = &j->of->parts[i];
    int64_t offset = offset_of(j, part, &j->done[i]);
    uint32_t base = j->count;
    for (uint32_t k = 0; k < j->done[i].count; k++) {
        struct slow_span span = j->done[i].spans[k];
        span.node = part->node;
        span.start_ns = time_add(span.start_ns, offset);
        span.parent = span.parent == UINT32_MAX ? NONE : base + span.parent;
        add(j, &span, part->node);
    }
}

// Callers before what they called; where nothing is known of a caller, in the order of the parts.
// left: the parts, without those that have no spans.
static void add_parts(struct join *j, uint32_t *left, uint32_t count) {
    while (count > 0) {
        uint32_t later = 0;
        for (uint32_t i = 0; i < count; i++) {
            if (has_caller(j, &j->done[left[i]])) {
                add_part(j, left[i]);
            } else {
                left[later++] = left[i];
            }
        }
        if (later == count) {
            add_part(j, left[0]);
            memmove(left, left + 1, --later * sizeof *left);
        }
        count = later;
    }
}

static void gather(struct join *j) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < j->of->count; i++) {
        add(j, &j->of->spans[i], j->of->request.node);
    }
    for (uint32_t i = 0; i < j->of->part_count; i++) {
        if (j->done[i].count > 0) {
            j->places[count++] = i;
        }
    }
    add_parts(j, j->places, count);
}

// -- in the order of time, each below its caller --------------------------------------------------

static int by_start(const void *a, const void *b) {
    const struct joined *x = a, *y = b;
    return x->span.start_ns != y->span.start_ns ? (x->span.start_ns < y->span.start_ns ? -1 : 1)
           : x->at < y->at                      ? -1
                                                : 1;
}

// Sorts by start and has the numbers follow.
static void sort(struct join *j) {
    qsort(j->all, j->count, sizeof *j->all, by_start);
    for (uint32_t i = 0; i < j->count; i++) {
        j->places[j->all[i].at] = i;
    }
    map_clear(&j->latest);
    for (uint32_t i = 0; i < j->count; i++) {
        struct joined *one = &j->all[i];
        one->span.parent = one->span.parent == UINT32_MAX ? NONE : j->places[one->span.parent];
        one->earlier = NONE;
        if (one->process != 0) {
            one->earlier = map_get(&j->latest, one->process);
            map_set(&j->latest, one->process, i);
        }
    }
}

// Whether a call was made for a process, if only by way of others: then what comes from there to
// that process is an answer.
static bool made_for(const struct join *j, uint32_t call, uint64_t process) {
    for (uint32_t n = 0; call != NONE && n < DEEPEST; n++, call = j->all[call].span.parent) {
        if (process != 0 &&
            (j->all[call].process == process || j->all[call].span.caller == process)) {
            return true;
        }
    }
    return false;
}

// Where the calls of the same process before one hang.
static uint32_t as_before(const struct join *j, uint32_t i) {
    uint32_t before = j->all[i].earlier;
    uint32_t parent = before;
    while (parent != NONE && j->all[parent].process == j->all[i].process) {
        parent = j->all[parent].span.parent;
    }
    return parent;
}

static uint32_t parent_of(const struct join *j, uint32_t i) {
    const struct joined *one = &j->all[i];
    int64_t end = end_of(&one->span);
    uint32_t caller = call_of(j, one->span.caller, one->span.start_ns, end);
    bool answer = made_for(j, caller, one->process);
    if (answer && one->earlier != NONE) {
        return as_before(j, i);
    }
    return caller != NONE && caller < i && !answer ? caller
                                                   : own_call(j, i, one->span.start_ns, end);
}

// -- self times -----------------------------------------------------------------------------------

static bool same_node(const struct slow_span *a, const struct slow_span *b) {
    return a->node == b->node || (a->node && b->node && strcmp(a->node, b->node) == 0);
}

// How much what lasts from begin to end adds to what is covered until then.
static int64_t cover(int64_t *until, int64_t begin, int64_t end) {
    int64_t from = begin > *until ? begin : *until;
    *until = end > *until ? end : *until;
    return end > from ? time_sub(end, from) : 0;
}

static void cover_caller(struct joined *caller, const struct slow_span *span) {
    int64_t begin = time_sub(span->start_ns, span->waiting_ns > 0 ? span->waiting_ns : 0);
    int64_t over = end_of(&caller->span), end = end_of(span) < over ? end_of(span) : over;
    int64_t more = cover(&caller->below.all_until, begin, end);
    int64_t own = same_node(span, &caller->span) ? cover(&caller->below.own_until, begin, end) : 0;
    caller->below.more_ns = time_add(caller->below.more_ns, time_sub(more, own));
}

// What only other nodes did for a call is no more its self time than what its own node did. All are
// in the order of time.
static void take_off_remote(struct join *j) {
    for (uint32_t i = 0; i < j->count; i++) {
        struct joined *one = &j->all[i];
        one->below.own_until = one->below.all_until = one->span.start_ns;
        if (one->span.parent != NONE) {
            cover_caller(&j->all[one->span.parent], &one->span);
        }
    }
    for (uint32_t i = 0; i < j->count; i++) {
        struct joined *one = &j->all[i];
        if (one->below.more_ns > 0) {
            int64_t left = time_sub(one->span.self_ns, one->below.more_ns);
            one->span.self_ns = left > 0 ? left : 0;
        }
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
    struct join j = {.of = of, .done = done, .all = malloc(count * sizeof *j.all)};
    struct slow_span *spans = malloc(count * sizeof *spans);
    j.places = malloc(((size_t)count + of->part_count) * sizeof *j.places);
    bool mapped = map_init(&j.latest);
    bool good = j.all && spans && j.places && mapped;
    if (good) {
        gather(&j);
        sort(&j);
        for (uint32_t i = 0; i < count; i++) {
            struct slow_span *span = &j.all[i].span;
            span->parent = span->node && span->parent == NONE ? parent_of(&j, i) : span->parent;
        }
        take_off_remote(&j);
        for (uint32_t i = 0; i < count; i++) {
            spans[i] = j.all[i].span;
        }
        free(of->spans);
        of->spans = spans;
        of->count = count;
        spans = NULL;
    }
    if (mapped) {
        map_free(&j.latest);
    }
    free(spans);
    free(j.places);
    free(j.all);
    return good;
}
