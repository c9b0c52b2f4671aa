// SPDX-License-Identifier: Apache-2.0
#include "model/stats/account.h"

#include "base/limits.h"
#include "model/directory/directory.h"
#include "unit.h"

static const int64_t SECOND = 1000000000;

static void buckets(void **state) {
    (void)state;
    struct account a = {.bucket_s = 10, .offset = 5 * SECOND};
    const struct {
        int64_t time, bucket;
    } cases[] = {{0, 0},
                 {5 * SECOND - 1, 0},
                 {5 * SECOND, 10},
                 {-5 * SECOND, 0},
                 {-5 * SECOND - 1, -10},
                 {-15 * SECOND, -10},
                 {-15 * SECOND - 1, -20},
                 {1795000000 * SECOND, 1795000000}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(account_bucket(&a, cases[i].time), cases[i].bucket);
    }
}

static const struct stat_row *row(const struct stats *s, uint16_t identity, uint16_t tier) {
    for (uint32_t i = 0; i < stats_rows(s); i++) {
        const struct stat_row *r = stats_row_at(s, i);
        if (r->key.identity == identity && r->key.tier == tier) {
            return r;
        }
    }
    fail_msg("no row of %u %u", identity, tier);
    return NULL;
}

static void numbers(void **state) {
    (void)state;
    struct stats *s = stats_new();
    struct account a = {.stats = s, .bucket_s = 10, .node = 3, .offset = 100 * SECOND};
    // tier 1: two calls one within the other, an error; tier 2: async; tier 3: still open; tier 4:
    // sync below async
    const struct span spans[] = {
        {.start = 10, .end = 60, .tier = 1, .outermost = true, .self = 20},
        {.start = 20, .end = 50, .tier = 1, .error = true, .self = 30},
        {.start = 70, .end = 400, .tier = 2, .outermost = true, .async = true},
        {.start = 80, .tier = 3, .outermost = true, .async = true, .open = true},
        {.start = 85, .end = 95, .tier = 4, .outermost = true, .self = 10},
    };
    struct request_result r = {.fate = REQUEST_COMPLETE,
                               .identity = 9,
                               .error = true,
                               .begin = 0,
                               .end = 100,
                               .times = {.uncovered = 20},
                               .spans = spans,
                               .count = 5};
    account_request(&a, &r);
    stats_add_totals(s);
    assert_int_equal(stats_rows(s), 8); // _total and the identity: the request and tiers 1, 2 and 4
    const uint16_t identities[] = {IDENTITY_TOTAL, 9};
    for (int i = 0; i < 2; i++) {
        const struct stat_row *t = row(s, identities[i], TIER_TOTAL),
                              *one = row(s, identities[i], 1), *two = row(s, identities[i], 2),
                              *four = row(s, identities[i], 4);
        assert_int_equal(t->key.bucket_start, 100);
        assert_int_equal(t->key.node, 3);
        assert_true(t->requests == 1 && t->calls == 1 && t->errors == 1 && t->total_ns == 100 &&
                    t->self_ns == 20);
        assert_true(t->async_calls == 0 && t->min_ns == 100 && t->max_ns == 100 &&
                    histogram_count(&t->durations) == 1);
        assert_true(one->requests == 1 && one->calls == 2 && one->errors == 1 &&
                    one->total_ns == 50 && one->self_ns == 50);
        assert_true(one->duration_ns == 80 && one->min_ns == 30 && one->max_ns == 50 &&
                    one->square_ns == 2500 + 900);
        assert_true(two->calls == 1 && two->async_calls == 1 && two->async_ns == 330 &&
                    two->total_ns == 0 && two->self_ns == 0);
        assert_true(two->requests == 1 && two->max_ns == 330);
        assert_true(four->total_ns == 10 && four->self_ns == 10 && four->async_calls == 0);
    }
    // what is not complete is counted in the ledger, in the bucket in which it ended, and nowhere
    // else
    r.fate = REQUEST_INCOMPLETE;
    account_request(&a, &r);
    r.fate = REQUEST_EXPIRED;
    r.end = 10 * SECOND;
    account_request(&a, &r);
    assert_int_equal(row(s, 9, 1)->calls, 2);
    assert_int_equal(stats_ledgers(s), 2);
    const struct ledger_row *first = stats_ledger_at(s, 0), *second = stats_ledger_at(s, 1);
    assert_true(first->bucket_start == 100 && first->requests_complete == 1 &&
                first->requests_incomplete == 1);
    assert_true(second->bucket_start == 110 && second->requests_expired == 1 && second->node == 3);
    stats_free(s);
}

// What a span waited and lost belongs to its tier, async or not, but not while it is open. So does
// what of that is measured, and known apart.
static void waiting_and_pauses(void **state) {
    (void)state;
    struct stats *s = stats_new();
    struct account a = {.stats = s, .bucket_s = 10};
    const struct span spans[] = {
        {.start = 10,
         .end = 60,
         .tier = 1,
         .outermost = true,
         .self = 20,
         .wait = 3,
         .measured = true,
         .run_queue = 1,
         .gc = 5,
         .off_cpu = 7},
        {.start = 20,
         .end = 50,
         .parent = 0,
         .tier = 1,
         .self = 30,
         .wait = 10,
         .measured = true,
         .run_queue = SPAN_UNKNOWN,
         .gc = 20,
         .off_cpu = 40},
        {.start = 70,
         .end = 400,
         .tier = 2,
         .outermost = true,
         .async = true,
         .wait = 100,
         .gc = 200,
         .off_cpu = 400},
        {.start = 80,
         .tier = 2,
         .outermost = true,
         .async = true,
         .open = true,
         .wait = 1000,
         .gc = 1000,
         .off_cpu = 1000},
    };
    struct request_result r = {
        .fate = REQUEST_COMPLETE, .identity = 9, .end = 100, .spans = spans, .count = 4};
    account_request(&a, &r);
    account_request(&a, &r);
    stats_add_totals(s);
    const uint16_t identities[] = {IDENTITY_TOTAL, 9};
    for (int i = 0; i < 2; i++) {
        const struct stat_row *one = row(s, identities[i], 1), *two = row(s, identities[i], 2),
                              *t = row(s, identities[i], TIER_TOTAL);
        assert_true(one->wait_ns == 26 && one->gc_ns == 50 && one->off_cpu_ns == 94);
        assert_true(two->wait_ns == 200 && two->gc_ns == 400 && two->off_cpu_ns == 800);
        assert_true(one->measured_ns == 26 && one->mailbox_ns == 4 && one->run_queue_ns == 2);
        assert_true(two->measured_ns == 0 && two->mailbox_ns == 0 && two->run_queue_ns == 0);
        // as without them
        assert_true(one->total_ns == 100 && one->self_ns == 100 && two->async_ns == 660 &&
                    two->total_ns == 0);
        assert_true(t->wait_ns == 0 && t->gc_ns == 0 && t->off_cpu_ns == 0);
    }
    assert_int_equal(stats_paths(s), 0); // without a place for paths
    stats_free(s);
}

// How a span of a tier without return values ended is not known, unless it is an error.
static void blind_spans(void **state) {
    (void)state;
    struct stats *s = stats_new();
    struct paths paths;
    assert_true(paths_init(&paths));
    struct account a = {.stats = s, .bucket_s = 10, .paths = &paths};
    const struct span spans[] = {
        {.start = 1, .end = 6, .parent = SPAN_NONE, .tier = 1, .error = true, .blind = true},
        {.start = 2, .end = 6, .parent = SPAN_NONE, .tier = 1, .error = true},
        {.start = 3, .end = 6, .parent = SPAN_NONE, .tier = 1, .blind = true},
    };
    struct request_result r = {
        .identity = 9, .error = true, .end = 100, .spans = spans, .count = 3};
    account_request(&a, &r);
    stats_add_totals(s);
    assert_int_equal(row(s, 9, 1)->calls, 3);
    assert_int_equal(row(s, 9, 1)->errors, 2);
    assert_int_equal(stats_ledger_at(s, 0)->unknown_outcomes, 1);
    assert_int_equal(row(s, IDENTITY_TOTAL, 1)->errors, 2);
    assert_int_equal(stats_path_at(s, 0)->calls, 3);
    assert_int_equal(stats_path_at(s, 0)->errors, 2);
    assert_int_equal(row(s, 9, TIER_TOTAL)->errors, 1);
    paths_free(&paths);
    stats_free(s);
}

// -- by position ----------------------------------------------------------------------------------

// The row of the path that `tiers` (digits) tells, of an identity.
static const struct path_row *at(const struct stats *s, struct paths *p, uint16_t identity,
                                 const char *tiers) {
    uint32_t path = PATH_ROOT;
    for (const char *c = tiers; *c; c++) {
        path = paths_below(p, 0, path, (uint16_t)(*c - '0'));
    }
    for (uint32_t i = 0; i < stats_paths(s); i++) {
        const struct path_row *r = stats_path_at(s, i);
        if (r->identity == identity && r->path == path) {
            return r;
        }
    }
    fail_msg("no row of %u %s", identity, tiers);
    return NULL;
}

static void positions(void **state) {
    (void)state;
    struct stats *s = stats_new();
    struct paths paths;
    assert_true(paths_init(&paths));
    struct account a = {
        .stats = s, .bucket_s = 10, .node = 3, .offset = 100 * SECOND, .paths = &paths};
    // 1 calls 2, 3 and 3; the second 3 calls 2. 2 calls itself. 4 is open, with a 2 and, async, a 5
    // below it.
    const struct span spans[] = {
        {.start = 10, .end = 90, .parent = SPAN_NONE, .tier = 1, .outermost = true, .self = 11},
        {.start = 12, .end = 30, .parent = 0, .tier = 2, .outermost = true, .self = 8, .wait = 2},
        {.start = 15, .end = 25, .parent = 1, .tier = 2, .self = 10, .error = true, .wait = 1},
        {.start = 40, .end = 45, .parent = 0, .tier = 3, .outermost = true, .self = 5},
        {.start = 50,
         .end = 57,
         .parent = 0,
         .tier = 3,
         .outermost = true,
         .self = 4,
         .error = true},
        // what is no first call of a tier may be one of a position
        {.start = 51, .end = 54, .parent = 4, .tier = 2, .self = 3},
        {.start = 60,
         .parent = SPAN_NONE,
         .tier = 4,
         .outermost = true,
         .async = true,
         .open = true,
         .wait = 1000},
        {.start = 70, .end = 76, .parent = 6, .tier = 2, .outermost = true, .self = 6},
        {.start = 80,
         .end = 180,
         .parent = 6,
         .tier = 5,
         .outermost = true,
         .async = true,
         .wait = 9},
    };
    struct request_result r = {.identity = 9, .end = 100, .spans = spans, .count = 9};
    account_request(&a, &r);
    assert_int_equal(stats_paths(s), 6); // none of _total, none of the open one
    const struct path_row *one = at(s, &paths, 9, "1"), *two = at(s, &paths, 9, "12"),
                          *three = at(s, &paths, 9, "13");
    const struct path_row *below = at(s, &paths, 9, "132"), *open = at(s, &paths, 9, "42"),
                          *async = at(s, &paths, 9, "45");
    assert_true(one->bucket_start == 100 && one->node == 3);
    assert_true(one->calls == 1 && one->errors == 0 && one->total_ns == 80 && one->self_ns == 11 &&
                one->duration_ns == 80);
    assert_true(two->calls == 2 && two->errors == 1 && two->total_ns == 18 && two->self_ns == 18 &&
                two->duration_ns == 28);
    assert_true(two->min_ns == 10 && two->max_ns == 18 && two->wait_ns == 3 &&
                two->async_calls == 0);
    assert_true(three->calls == 2 && three->errors == 1 && three->total_ns == 12 &&
                three->min_ns == 5 && three->max_ns == 7);
    assert_true(below->calls == 1 && below->total_ns == 3 && open->calls == 1 &&
                open->total_ns == 6 && open->self_ns == 6);
    assert_true(async->calls == 1 && async->async_calls == 1 && async->async_ns == 100 &&
                async->duration_ns == 100);
    assert_true(async->total_ns == 0 && async->self_ns == 0 && async->wait_ns == 9 &&
                async->max_ns == 100);
    // other identities, and what is not complete
    r.identity = 7;
    account_request(&a, &r);
    r.fate = REQUEST_INCOMPLETE;
    account_request(&a, &r);
    assert_int_equal(stats_paths(s), 12);
    assert_int_equal(at(s, &paths, 7, "12")->calls, 2);
    assert_int_equal(at(s, &paths, 9, "12")->calls, 2);
    paths_free(&paths);
    stats_free(s);
}

// Calls that the rows of tiers know, calls that the rows of paths know.
static void count_calls(const struct stats *s, uint64_t *tiers, uint64_t *in_paths) {
    *tiers = *in_paths = 0;
    for (uint32_t i = 0; i < stats_rows(s); i++) {
        const struct stat_row *r = stats_row_at(s, i);
        *tiers += r->key.tier != TIER_TOTAL ? r->calls : 0;
    }
    for (uint32_t i = 0; i < stats_paths(s); i++) {
        *in_paths += stats_path_at(s, i)->calls;
    }
}

// More positions than there are ids and rows for: all are counted, the rest under _other.
static void more_positions_than_fit(void **state) {
    (void)state;
    struct stats *s = stats_new();
    struct paths paths;
    assert_true(paths_init(&paths));
    struct account a = {.stats = s, .bucket_s = 10, .paths = &paths};
    static struct span spans[10000];
    uint32_t n = 0;
    for (uint16_t i = 0; i < 100; i++) { // 10000 positions with those of the tiers themselves
        uint32_t parent = n;
        spans[n] = (struct span){
            .start = n, .end = n + 5, .parent = SPAN_NONE, .tier = 1 + i, .outermost = true};
        n++;
        for (uint16_t k = 0; k < 99; k++) {
            spans[n] = (struct span){
                .start = n, .end = n + 5, .parent = parent, .tier = 200 + k, .outermost = true};
            n++;
        }
    }
    struct request_result r = {.end = 100, .spans = spans, .count = n};
    for (uint16_t identity = 3; identity < 10; identity++) { // 50000 rows are full with the fifth
        r.identity = identity;
        account_request(&a, &r);
    }
    spans[0].tier = 900; // and no id for this one and those below it
    account_request(&a, &r);
    uint64_t tiers, in_paths;
    count_calls(s, &tiers, &in_paths);
    assert_int_equal(tiers, 8 * n);
    assert_int_equal(in_paths, 8 * n);
    assert_int_equal(paths.count, LIMIT_PATHS);
    assert_true(stats_paths(s) <= LIMIT_PATH_ROWS);
    const struct path_row *rest = stats_path_at(s, stats_paths(s) - 1);
    assert_true(rest->path == PATH_OTHER && rest->identity == IDENTITY_OTHER &&
                rest->calls == 8 * n - (stats_paths(s) - 1));
    paths_free(&paths);
    stats_free(s);
}

// -- caps of tiers --------------------------------------------------------------------------------

// More tiers in a request than rows are kept at hand.
static void many_tiers(void **state) {
    (void)state;
    struct stats *s = stats_new();
    struct account a = {.stats = s, .bucket_s = 10};
    static struct span spans[3 * LIMIT_TIERS];
    for (uint32_t i = 0; i < 3 * LIMIT_TIERS; i++) {
        spans[i] = (struct span){.start = i,
                                 .end = i + 5,
                                 .tier = (uint16_t)(1 + i % LIMIT_TIERS),
                                 .outermost = true,
                                 .self = 5};
    }
    struct request_result r = {
        .identity = 5, .end = 1000, .spans = spans, .count = 3 * LIMIT_TIERS};
    account_request(&a, &r);
    account_request(&a, &r);
    for (uint16_t tier = 1; tier <= LIMIT_TIERS; tier++) {
        const struct stat_row *got = row(s, 5, tier);
        assert_true(got->requests == 2 && got->calls == 6 && got->total_ns == 30);
    }
    stats_free(s);
}

// Past the cap of rows an identity is counted as _other, and so never lost from _total.
static void full(void **state) {
    (void)state;
    struct stats *s = stats_new();
    struct account a = {.stats = s, .bucket_s = 10};
    struct span span = {.start = 0, .end = 5, .tier = 1, .outermost = true, .self = 5};
    struct request_result r = {.identity = IDENTITY_OTHER, .end = 10, .spans = &span, .count = 1};
    account_request(&a, &r);
    // the two of _other are besides
    for (uint32_t i = 0; stats_rows(s) < LIMIT_STAT_ROWS + 2; i++) {
        stats_row(s, (struct stat_key){.bucket_start = 1000 + i, .identity = 77});
    }
    r.identity = 5;
    account_request(&a, &r);
    span.tier = 2; // a new row of _other
    account_request(&a, &r);
    assert_int_equal(row(s, IDENTITY_OTHER, 1)->calls, 2);
    assert_int_equal(row(s, IDENTITY_OTHER, 2)->calls, 1);
    assert_int_equal(row(s, IDENTITY_OTHER, TIER_TOTAL)->requests, 3);
    assert_int_equal(stats_rows(s), LIMIT_STAT_ROWS + 3);
    stats_add_totals(s);
    assert_int_equal(row(s, IDENTITY_TOTAL, 1)->calls, 2);
    assert_int_equal(row(s, IDENTITY_TOTAL, TIER_TOTAL)->requests, 3);
    stats_free(s);
}

// A part of another node's request is under _remote, and nowhere else.
static void parts(void **state) {
    (void)state;
    struct stats *s = stats_new();
    struct paths paths;
    assert_true(paths_init(&paths));
    struct account a = {.stats = s, .bucket_s = 10, .node = 3, .paths = &paths};
    const struct span span = {
        .start = 10, .end = 60, .tier = 1, .outermost = true, .self = 50, .parent = SPAN_NONE};
    struct request_result r = {.fate = REQUEST_COMPLETE,
                               .remote = true,
                               .maker = 8,
                               .identity = IDENTITY_REMOTE,
                               .begin = 10,
                               .end = 60,
                               .spans = &span,
                               .count = 1};
    account_request(&a, &r);
    stats_add_totals(s);
    assert_int_equal(stats_rows(s), 2);
    assert_int_equal(row(s, IDENTITY_REMOTE, TIER_TOTAL)->requests, 1);
    assert_int_equal(row(s, IDENTITY_REMOTE, 1)->total_ns, 50);
    assert_int_equal(stats_ledgers(s), 0);
    assert_int_equal(stats_paths(s), 1);
    assert_int_equal(stats_path_at(s, 0)->identity, IDENTITY_REMOTE);
    for (uint32_t i = 0; stats_rows(s) < LIMIT_STAT_ROWS; i++) {
        stats_row(s, (struct stat_key){.bucket_start = 1000 + i, .identity = 77});
    }
    a.node = 4; // no room: it does not go to _other, which is a part of _total
    account_request(&a, &r);
    for (uint32_t i = 0; i < stats_rows(s); i++) {
        assert_true(stats_row_at(s, i)->key.node != 4);
    }
    paths_free(&paths);
    stats_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets),
        cmocka_unit_test(numbers),
        cmocka_unit_test(waiting_and_pauses),
        cmocka_unit_test(blind_spans),
        cmocka_unit_test(positions),
        cmocka_unit_test(more_positions_than_fit),
        cmocka_unit_test(many_tiers),
        cmocka_unit_test(full),
        cmocka_unit_test(parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
