#include "model/account.h"

#include "base/limits.h"
#include "model/directory.h"
#include "unit.h"

static const int64_t SECOND = 1000000000;

static void buckets(void **state) {
    (void)state;
    struct account a = {.bucket_s = 10, .offset = 5 * SECOND};
    const struct {
        int64_t time, bucket;
    } cases[] = {{0, 0},           {5 * SECOND - 1, 0}, {5 * SECOND, 10},       {-5 * SECOND, 0},
                 {-5 * SECOND - 1, -10}, {-15 * SECOND, -10}, {-15 * SECOND - 1, -20}, {1795000000 * SECOND, 1795000000}};
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
    // tier 1: two calls one within the other, an error; tier 2: async; tier 3: still open; tier 4: sync below async
    const struct span spans[] = {
        {.start = 10, .end = 60, .tier = 1, .outermost = true, .self = 20},
        {.start = 20, .end = 50, .tier = 1, .error = true, .self = 30},
        {.start = 70, .end = 400, .tier = 2, .outermost = true, .async = true},
        {.start = 80, .tier = 3, .outermost = true, .async = true, .open = true},
        {.start = 85, .end = 95, .tier = 4, .outermost = true, .self = 10},
    };
    struct request_result r = {.fate = REQUEST_COMPLETE, .identity = 9, .error = true, .begin = 0, .end = 100, .self = 20,
                               .spans = spans, .count = 5};
    account_request(&a, &r);
    assert_int_equal(stats_rows(s), 8); // _total and the identity: the request and tiers 1, 2 and 4
    const uint16_t identities[] = {IDENTITY_TOTAL, 9};
    for (int i = 0; i < 2; i++) {
        const struct stat_row *t = row(s, identities[i], TIER_TOTAL), *one = row(s, identities[i], 1),
                              *two = row(s, identities[i], 2), *four = row(s, identities[i], 4);
        assert_int_equal(t->key.bucket_start, 100);
        assert_int_equal(t->key.node, 3);
        assert_true(t->requests == 1 && t->calls == 1 && t->errors == 1 && t->total_ns == 100 && t->self_ns == 20);
        assert_true(t->async_calls == 0 && t->min_ns == 100 && t->max_ns == 100 && histogram_count(&t->durations) == 1);
        assert_true(one->requests == 1 && one->calls == 2 && one->errors == 1 && one->total_ns == 50 && one->self_ns == 50);
        assert_true(one->duration_ns == 80 && one->min_ns == 30 && one->max_ns == 50 && one->square_ns == 2500 + 900);
        assert_true(two->calls == 1 && two->async_calls == 1 && two->async_ns == 330 && two->total_ns == 0 && two->self_ns == 0);
        assert_true(two->requests == 1 && two->max_ns == 330);
        assert_true(four->total_ns == 10 && four->self_ns == 10 && four->async_calls == 0);
    }
    // what is not complete is counted in the ledger, in the bucket in which it ended, and nowhere else
    r.fate = REQUEST_INCOMPLETE;
    account_request(&a, &r);
    r.fate = REQUEST_EXPIRED;
    r.end = 10 * SECOND;
    account_request(&a, &r);
    assert_int_equal(row(s, 9, 1)->calls, 2);
    assert_int_equal(stats_ledgers(s), 2);
    const struct ledger_row *first = stats_ledger_at(s, 0), *second = stats_ledger_at(s, 1);
    assert_true(first->bucket_start == 100 && first->requests_complete == 1 && first->requests_incomplete == 1);
    assert_true(second->bucket_start == 110 && second->requests_expired == 1 && second->node == 3);
    stats_free(s);
}

// More tiers in a request than rows are kept at hand.
static void many_tiers(void **state) {
    (void)state;
    struct stats *s = stats_new();
    struct account a = {.stats = s, .bucket_s = 10};
    static struct span spans[3 * LIMIT_TIERS];
    for (uint32_t i = 0; i < 3 * LIMIT_TIERS; i++) {
        spans[i] = (struct span){.start = i, .end = i + 5, .tier = (uint16_t)(1 + i % LIMIT_TIERS), .outermost = true, .self = 5};
    }
    struct request_result r = {.identity = 5, .end = 1000, .spans = spans, .count = 3 * LIMIT_TIERS};
    account_request(&a, &r);
    account_request(&a, &r);
    for (uint16_t tier = 1; tier <= LIMIT_TIERS; tier++) {
        const struct stat_row *got = row(s, 5, tier);
        assert_true(got->requests == 2 && got->calls == 6 && got->total_ns == 30);
    }
    stats_free(s);
}

// Past the cap of rows the identity is counted as _other where that has a row, and never lost from _total that has one.
static void full(void **state) {
    (void)state;
    struct stats *s = stats_new();
    struct account a = {.stats = s, .bucket_s = 10};
    struct span span = {.start = 0, .end = 5, .tier = 1, .outermost = true, .self = 5};
    struct request_result r = {.identity = IDENTITY_OTHER, .end = 10, .spans = &span, .count = 1};
    account_request(&a, &r);
    for (uint32_t i = 0; stats_rows(s) < LIMIT_STAT_ROWS; i++) {
        stats_row(s, (struct stat_key){.bucket_start = 1000 + i, .identity = 77});
    }
    r.identity = 5;
    account_request(&a, &r);
    assert_int_equal(row(s, IDENTITY_OTHER, 1)->calls, 2);
    assert_int_equal(row(s, IDENTITY_OTHER, TIER_TOTAL)->requests, 2);
    assert_int_equal(row(s, IDENTITY_TOTAL, 1)->calls, 2);
    span.tier = 2; // no row at all
    account_request(&a, &r);
    assert_int_equal(stats_rows(s), LIMIT_STAT_ROWS);
    assert_int_equal(row(s, IDENTITY_TOTAL, TIER_TOTAL)->requests, 3);
    stats_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(buckets), cmocka_unit_test(numbers), cmocka_unit_test(many_tiers),
                                       cmocka_unit_test(full)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
