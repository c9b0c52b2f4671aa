// SPDX-License-Identifier: Apache-2.0
#include "model/requests/request_tree.h"

#include "base/limits.h"
#include "unit.h"

static struct span span_of(uint64_t pid, uint64_t from, int64_t start, int64_t end, uint16_t tier,
                           uint32_t parent) {
    return (struct span){.start = start,
                         .end = end,
                         .pid = pid,
                         .from = from,
                         .parent = parent,
                         .tier = tier,
                         .waits = SPAN_NONE};
}

// Spans arrive in any order across processes, and come out in that of their start, parents before
// children.
static void order(void **state) {
    (void)state;
    struct request_tree *t = request_tree_new();
    assert_non_null(t);
    for (unsigned turn = 0; turn < 2; turn++) { // the scratch is swapped with every build
        struct span *s = request_tree_spans(t);
        s[0] = span_of(2, 1, 30, 40, 2, SPAN_NONE);
        s[1] = span_of(2, 1, 31, 32, 3, 0);
        s[2] = span_of(1, 1, 10, 90, 1, SPAN_NONE);
        s[3] = span_of(1, 2, 50, 60, 2, 2);
        struct tree_times times =
            request_tree_build(t, &(struct tree_request){.count = 4, .begin = 0, .end = 100});
        assert_true(times.uncovered == 20 && times.waiting == 20 && times.parallel == 0);
        s = request_tree_spans(t);
        const int64_t starts[] = {10, 30, 31, 50}, self[] = {40, 9, 1, 10};
        const uint32_t parents[] = {SPAN_NONE, 0, 1, 0}, depths[] = {0, 1, 2, 1};
        for (int i = 0; i < 4; i++) {
            assert_int_equal(s[i].start, starts[i]);
            assert_int_equal(s[i].parent, parents[i]);
            assert_int_equal(s[i].depth, depths[i]);
            assert_int_equal(s[i].self, self[i]);
            assert_true(s[i].outermost && !s[i].async);
        }
    }
    assert_int_equal(
        request_tree_build(t, &(struct tree_request){.count = 0, .begin = 5, .end = 25}).uncovered,
        20);
    request_tree_free(t);
}

// What was open where the token came from; of several, the innermost.
static void parents(void **state) {
    (void)state;
    struct request_tree *t = request_tree_new();
    struct span *s = request_tree_spans(t);
    s[0] = span_of(1, 1, 0, 50, 1, SPAN_NONE);
    s[1] = span_of(1, 1, 10, 20, 2, 0);
    s[2] = span_of(2, 1, 15, 16, 3, SPAN_NONE); // within 1
    s[3] = span_of(3, 1, 30, 31, 3, SPAN_NONE); // within 0, after 1
    s[4] = span_of(4, 1, 70, 71, 3, SPAN_NONE); // after both: it waits
    s[5] = span_of(5, 9, 72, 73, 3, SPAN_NONE); // from a process without spans
    s[6] = span_of(6, 6, 74, 75, 3, SPAN_NONE); // from itself
    s[7] = span_of(7, 8, 80, 81, 3, SPAN_NONE); // from a process that only begins later
    s[8] = span_of(8, 8, 82, 83, 3, SPAN_NONE);
    request_tree_build(t, &(struct tree_request){.count = 9, .begin = 0, .end = 100});
    s = request_tree_spans(t);
    const uint32_t expected[] = {SPAN_NONE, 0,         1,         0,        SPAN_NONE,
                                 SPAN_NONE, SPAN_NONE, SPAN_NONE, SPAN_NONE};
    for (int i = 0; i < 9; i++) {
        assert_int_equal(s[i].parent, expected[i]);
    }
    request_tree_free(t);
}

// A call that came under another request's label, and was joined to this one later, lies on its own
// process's stack: its tier counts once.
static void joined_to_its_stack(void **state) {
    (void)state;
    struct request_tree *t = request_tree_new();
    for (uint64_t asked = 1; asked < 3;
         asked++) { // only in the process that began it; elsewhere, too
        struct span *s = request_tree_spans(t);
        s[0] = span_of(1, 1, 0, 50, 1, SPAN_NONE);
        s[1] = span_of(asked, 1, 10, 20, 2, asked == 1 ? 0 : SPAN_NONE);
        s[2] = span_of(1, 2, 30, 40, 1, SPAN_NONE); // an answer's label
        s[3] = span_of(1, 1, 32, 35, 2, 2);
        s[4] = span_of(1, 2, 50, 60, 1, SPAN_NONE); // behind the first
        request_tree_build(
            t, &(struct tree_request){
                   .count = 5, .begin = 0, .end = 100, .begin_pid = 1, .has_begin = true});
        s = request_tree_spans(t);
        const uint32_t expected[] = {SPAN_NONE, 0, 0, 2, SPAN_NONE};
        for (int i = 0; i < 5; i++) {
            assert_int_equal(s[i].parent, expected[i]);
            assert_int_equal(s[i].outermost, i != 2);
        }
    }
    request_tree_free(t);
}

// Times may run back, as in a capture while somebody set the clock: nothing waits for less than no
// time.
static void begins_before_its_request(void **state) {
    (void)state;
    struct request_tree *t = request_tree_new();
    struct span *s = request_tree_spans(t);
    s[0] = span_of(2, 1, 40, 150, 1, SPAN_NONE);
    s[1] = span_of(3, 1, 130, 140, 1, SPAN_NONE);
    request_tree_build(
        t, &(struct tree_request){
               .count = 2, .begin = 100, .end = 200, .begin_pid = 1, .has_begin = true});
    s = request_tree_spans(t);
    assert_int_equal(s[0].wait, 0);
    assert_int_equal(s[1].wait, 30);
    request_tree_free(t);
}

// Spans of hostile input: parents that begin later, ends before their starts' parents, all at the
// same time.
static void hostile(void **state) {
    (void)state;
    struct request_tree *t = request_tree_new();
    uint64_t random = 5;
    for (unsigned turn = 0; turn < 300; turn++) {
        struct span *s = request_tree_spans(t);
        uint32_t count = 1 + (uint32_t)(random_u64(&random) % 80);
        for (uint32_t i = 0; i < count; i++) {
            uint64_t x = random_u64(&random);
            int64_t start = (int64_t)(x % 8);
            s[i] = span_of(x >> 8 & 3, x >> 10 & 3, start, start + (int64_t)(x >> 12 & 7),
                           (uint16_t)(1 + (x >> 16 & 1)),
                           (x >> 20) % 3 == 0 ? (uint32_t)((x >> 24) % count) : SPAN_NONE);
            s[i].open = (x >> 32 & 7) == 0;
        }
        struct tree_times times =
            request_tree_build(t, &(struct tree_request){.count = count, .begin = 2, .end = 9});
        assert_true(times.uncovered >= 0 && times.waiting >= 0 && times.parallel >= 0);
        assert_true(times.uncovered <= 7);
        s = request_tree_spans(t);
        for (uint32_t i = 0; i < count; i++) {
            assert_true(i == 0 || s[i - 1].start <= s[i].start);
            assert_true(s[i].parent == SPAN_NONE || s[i].parent < i);
            assert_true(s[i].self >= 0 && (s[i].open || s[i].self <= s[i].end - s[i].start));
            assert_int_equal(s[i].async, s[i].open || s[i].end > 9);
        }
        // nothing of this tree is left in the scratch
        request_tree_spans(t)[0] = span_of(1, 1, 3, 4, 1, SPAN_NONE);
        times = request_tree_build(t, &(struct tree_request){.count = 1, .begin = 2, .end = 9});
        assert_true(times.uncovered == 6 && times.waiting == 0 && times.parallel == 0);
        assert_true(request_tree_spans(t)[0].outermost);
    }
    request_tree_free(t);
}

// Messages that brought spans, by the `waits` of these, which stay: so many each, the last first.
enum { TOLD = 12, MESSAGES = 3 };
struct told {
    struct span_wait waits[MESSAGES];
    uint32_t count;
};

// When the wait in which a span is at a time is over; INT64_MIN: it does not wait then.
static int64_t wait_over(const struct span *s, const struct told *told, int64_t t) {
    if (!s->measured) {
        return t >= s->start - s->wait && t < s->start ? s->start : INT64_MIN;
    }
    const struct told *of = &told[s->waits / MESSAGES];
    for (uint32_t i = 0; i < of->count; i++) {
        if (t >= of->waits[i].sent && t < of->waits[i].taken) {
            return of->waits[i].taken;
        }
    }
    return INT64_MIN;
}

// What each moment of a request is, painted ns by ns, from the spans' parents and waits alone.
struct painted {
    int64_t self[16], waiting[16];
    struct tree_times times;
    bool at_once; // several waited for spans at the same time
};

// The first of the spans below `above` (of the request: SPAN_NONE) for which it waits at a time;
// SPAN_NONE: none. Not while one of those before it runs, or is still to come.
static uint32_t waits_for(const struct span *s, const struct told *told, uint32_t count,
                          uint32_t above, int64_t end, int64_t t) {
    bool over = true;
    for (uint32_t c = 0; c < count && over; c++) {
        bool below = s[c].parent == above && !s[c].async;
        if (below && s[c].start <= end && wait_over(&s[c], told, t) != INT64_MIN) {
            return c;
        }
        over = !(below || (above == SPAN_NONE && !s[c].async)) || s[c].end <= t;
    }
    return SPAN_NONE;
}

static void paint(const struct span *s, const struct told *told, uint32_t count, int64_t begin,
                  int64_t end, struct painted *out) {
    *out = (struct painted){0};
    for (int64_t t = begin; t < end; t++) {
        uint32_t runs = 0, first = SPAN_NONE, waiting = 0;
        int64_t over = INT64_MAX;
        bool covered = false;
        for (uint32_t i = 0; i <= count; i++) { // the spans, then the request itself
            bool whole = i == count;
            if (!whole && (s[i].async || t < s[i].start || t >= s[i].end)) {
                continue;
            }
            covered |= !whole;
            bool below = whole && covered;
            for (uint32_t c = 0; c < count && !whole; c++) {
                below |= s[c].parent == i && !s[c].async && t >= s[c].start && t < s[c].end;
            }
            if (below) {
                continue;
            }
            uint32_t c =
                waits_for(s, told, count, whole ? SPAN_NONE : i, whole ? end : s[i].end, t);
            if (c != SPAN_NONE) {
                int64_t until = wait_over(&s[c], told, t);
                first = until < over || (until == over && c < first) ? c : first;
                over = until < over ? until : over;
                waiting++;
            } else {
                runs++;
                *(whole ? &out->times.uncovered : &out->self[i]) += 1;
            }
        }
        out->at_once |= waiting > 1;
        if (waiting > 0) {
            out->waiting[first]++;
            out->times.waiting++;
        }
        assert_true(runs + waiting > 0); // each moment is something
        out->times.parallel += runs + (waiting > 0) - 1;
    }
}

// Tells the messages that brought a span, each sent when the one before was taken or later; of some
// it is not known when their process ran. Few are nonsense: taken when the span had begun.
static void tell_messages(struct request_tree *t, struct span *s, struct told *told, uint32_t i,
                          uint64_t x) {
    struct span_wait *waits = request_tree_waits(t);
    int64_t at = s->start + (x % 31 == 0);
    told->count = (uint32_t)(x >> 5) % (MESSAGES + 1);
    s->waits = told->count == 0 ? SPAN_NONE : i * MESSAGES;
    for (uint32_t k = 0; k < told->count; k++) {
        int64_t taken = at - (int64_t)(x >> (8 + 9 * k) & 7);
        at = taken - (int64_t)(x >> (11 + 9 * k) & 7);
        bool known = (x >> (14 + 9 * k) & 7) > 0;
        told->waits[k] = (struct span_wait){
            .sent = at, .taken = taken, .ran = known ? (at + taken) / 2 : INT64_MIN};
    }
    for (uint32_t k = 0; k < told->count; k++) { // in the order of time
        struct span_wait *w = &waits[i * MESSAGES + k];
        *w = told->waits[told->count - 1 - k];
        w->next = k + 1 < told->count ? i * MESSAGES + k + 1 : SPAN_NONE;
    }
}

// What a span waited is the sum of what its messages did. Returns whether it is measured.
static bool is_measured(const struct span *s, const struct told *told) {
    int64_t wait = 0, run_queue = 0;
    bool told_all = s->brought && s->waits < SPAN_AGAIN, known = true;
    const struct told *of = told_all ? &told[s->waits / MESSAGES] : NULL;
    for (uint32_t k = 0; of && k < of->count; k++) {
        const struct span_wait *w = &of->waits[k];
        told_all = told_all && w->taken <= s->start;
        known = known && w->ran != INT64_MIN;
        wait += w->taken - w->sent;
        run_queue += known ? w->ran - w->sent : 0;
    }
    assert_int_equal(s->measured, told_all);
    assert_true(!told_all || s->wait == wait);
    assert_int_equal(s->run_queue, told_all && known ? run_queue : SPAN_UNKNOWN);
    return told_all;
}

// Random spans of four processes, those of half of the requests with messages; each parent and wait
// that comes out leads to these times.
static void each_moment_once(void **state) {
    (void)state;
    enum { MOST = TOLD, BEGIN = 5, LENGTH = 60 };
    static struct told told[TOLD];
    struct request_tree *t = request_tree_new();
    uint64_t random = 11;
    uint32_t waited = 0, parallel = 0, at_once = 0, async = 0, measured = 0, apart = 0;
    for (unsigned turn = 0; turn < 20000; turn++) {
        struct span *s = request_tree_spans(t);
        uint32_t count = 1 + (uint32_t)(random_u64(&random) % MOST);
        for (uint32_t i = 0; i < count; i++) {
            uint64_t x = random_u64(&random);
            int64_t start = BEGIN + (int64_t)(x % LENGTH);
            s[i] = span_of(1 + (x >> 8 & 3), 1 + (x >> 10 & 3), start,
                           start + (int64_t)(x >> 12 & (x & 64 ? 63 : 15)), 1, SPAN_NONE);
            s[i].open = (x >> 32 & 15) == 0;
            if (turn % 2 == 0) {
                tell_messages(t, &s[i], &told[i], i, random_u64(&random));
            }
        }
        struct tree_request request = {.count = count,
                                       .begin = BEGIN,
                                       .end = BEGIN + LENGTH,
                                       .begin_pid = 1,
                                       .end_pid = 1,
                                       .has_begin = turn % 8 > 1,
                                       .waits = turn % 2 == 0 ? count * MESSAGES : 0};
        for (uint32_t i = 0; i < request.waits; i++) { // those of no span
            struct span_wait *w = &request_tree_waits(t)[i];
            w->next = i % MESSAGES < told[i / MESSAGES].count ? w->next : SPAN_NONE;
        }
        struct tree_times times = request_tree_build(t, &request);
        struct painted truth;
        s = request_tree_spans(t);
        paint(s, told, count, request.begin, request.end, &truth);
        int64_t sum = times.uncovered + times.waiting - times.parallel;
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(s[i].self, truth.self[i]);
            assert_int_equal(s[i].waiting, truth.waiting[i]);
            async += s[i].async;
            sum += s[i].self;
            measured += is_measured(&s[i], told);
            apart += s[i].run_queue != SPAN_UNKNOWN;
        }
        assert_int_equal(times.uncovered, truth.times.uncovered);
        assert_int_equal(times.waiting, truth.times.waiting);
        assert_int_equal(times.parallel, truth.times.parallel);
        assert_int_equal(sum, LENGTH);
        waited += times.waiting > 0;
        parallel += times.parallel > 0;
        at_once += truth.at_once;
    }
    assert_true(waited > 1000 && parallel > 1000 && at_once > 50 && async > 1000);
    assert_true(measured > 10000 && apart > 1000 && apart < measured);
    request_tree_free(t);
}

// As many as there may be, as deep, as wide and as much out of order as they can be.
static void large(void **state) {
    (void)state;
    enum { N = LIMIT_SPANS_PER_REQUEST };
    struct request_tree *t = request_tree_new();
    for (unsigned shape = 0; shape < 5; shape++) {
        struct span *s = request_tree_spans(t);
        struct span_wait *waits = request_tree_waits(t);
        for (uint32_t i = 0; i < N; i++) {
            switch (shape) {
            case 0: // a recursion
                s[i] = span_of(1, 1, i, 2 * N - i, 1, i == 0 ? SPAN_NONE : i - 1);
                break;
            case 1: // children of one span, each in its own process, arriving backwards
                s[i] = i == N - 1 ? span_of(1, 1, 0, 2 * N, 1, SPAN_NONE)
                                  : span_of(2 + i, 1, N - i, N - i + 1, 2, SPAN_NONE);
                break;
            case 2: // each from the one before
                s[i] = span_of(1 + i, i, i, 2 * N - i, 1, SPAN_NONE);
                break;
            case 3: // siblings
                s[i] = span_of(1, 1, i, i + 1, LIMIT_TIER_NAMES, SPAN_NONE);
                break;
            case 4: // as 1, each brought by a message of its own, taken the earlier the later it
                    // begins
                s[i] = i == N - 1 ? span_of(1, 1, 0, 2 * N, 1, SPAN_NONE)
                                  : span_of(2 + i, 1, N + i, N + i + 1, 2, SPAN_NONE);
                waits[i] = (struct span_wait){N - i - 1, N - i, INT64_MIN, 0, SPAN_NONE};
                s[i].waits = i < N - 1 ? i : SPAN_NONE;
                break;
            }
        }
        struct tree_request request = {
            .count = N, .waits = shape == 4 ? N - 1 : 0, .begin = 0, .end = 2 * N};
        int64_t uncovered = request_tree_build(t, &request).uncovered;
        s = request_tree_spans(t);
        uint32_t outermost = 0, deepest = 0;
        for (uint32_t i = 0; i < N; i++) {
            outermost += s[i].outermost;
            deepest = s[i].depth > deepest ? s[i].depth : deepest;
        }
        assert_int_equal(uncovered, shape == 3 ? N : 0);
        assert_int_equal(outermost, shape == 1 || shape > 2 ? N : 1);
        assert_int_equal(deepest, shape == 1 || shape == 4 ? 1 : shape == 3 ? 0 : N - 1);
        // of 4: the first child's wait ends just before it begins, behind those of the others
        assert_int_equal(s[0].self, shape == 0   ? 2
                                    : shape == 1 ? N - 1
                                    : shape == 4 ? 2 * N - N
                                                 : 1);
    }
    request_tree_free(t);
}

static void without_memory(void **state) {
    (void)state;
    fail_alloc_at(-1);
    struct request_tree *t = request_tree_new();
    assert_non_null(t);
    assert_non_null(request_tree_spans(t));
    long all = fail_alloc_count();
    request_tree_free(t);
    assert_true(all >= 4);
    for (long i = 0; i < all; i++) {
        fail_alloc_once(i);
        assert_null(request_tree_new());
    }
    fail_alloc_at(-1);
    request_tree_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(order),
                                       cmocka_unit_test(parents),
                                       cmocka_unit_test(joined_to_its_stack),
                                       cmocka_unit_test(hostile),
                                       cmocka_unit_test(begins_before_its_request),
                                       cmocka_unit_test(each_moment_once),
                                       cmocka_unit_test(large),
                                       cmocka_unit_test(without_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
