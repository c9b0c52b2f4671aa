// SPDX-License-Identifier: Apache-2.0
// query_series.c: steps over time, which resolution they are made of, and their bounds.
#include "store_fixture.h"

#include "base/limits.h"
#include "store/query_series.h"

enum { NOON = 1763640000 }; // a multiple of an hour

static struct series ask(int64_t from, int64_t until, const char *node, const char *identity,
                         int64_t step_s) {
    struct store *s = fixture_reader();
    struct series_filter filter = {from, until, node, identity, step_s};
    struct series series;
    if (!query_series(s, &filter, &series)) {
        fail_msg("%s", store_error(s));
    }
    store_close(s);
    return series;
}

static const struct series_tier *find(const struct series *series, const char *name) {
    for (uint32_t i = 0; i < series->tier_count; i++) {
        if (strcmp(series->tiers[i].name, name) == 0) {
            return &series->tiers[i];
        }
    }
    fail_msg("no tier %s", name);
    return NULL;
}

// An hour: every 10 s one request of 1 ms and more, with a call of half of it.
static void write_hour(void) {
    struct stats *batch = stats_new();
    for (int i = 0; i < 360; i++) {
        uint64_t ns = 1000000 + 1000 * (uint64_t)i;
        fixture_call(batch, NOON + 10 * i, "create", "_total", ns, false);
        fixture_call(batch, NOON + 10 * i, "create", "db", ns / 2, false);
        fixture_ledger(batch, NOON + 10 * i)->requests_complete = 1;
    }
    fixture_ledger(batch, NOON + 600)->trips = 2;
    fixture_write(batch);
}

static uint64_t requests(const struct series *series) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < series->count; i++) {
        sum += series->steps[i].requests;
    }
    return sum;
}

static void test_steps_hold_their_buckets(void **state) {
    (void)state;
    write_hour();
    struct series s = ask(NOON, NOON + 3600, NULL, "_total", 30);
    assert_int_equal(s.resolution_s, 10);
    assert_int_equal(s.step_s, 30);
    assert_int_equal(s.count, 120);
    assert_int_equal(s.first_s, NOON);
    const struct series_tier *db = find(&s, "db");
    for (uint64_t i = 0; i < s.count; i++) {
        assert_int_equal(s.steps[i].requests, 3);
        uint64_t longest = 1000000 + 1000 * (3 * i + 2);
        assert_int_equal(s.steps[i].max_ns, longest);
        assert_int_equal(s.steps[i].duration_ns, 3 * longest - 3000);
        assert_int_equal(histogram_count(&s.steps[i].durations), 3);
        assert_int_equal(db->cells[i].calls, 3);
        assert_int_equal(db->cells[i].total_ns, (3 * longest - 3000) / 2);
        assert_int_equal(s.steps[i].ledger.trips, i == 20 ? 2 : 0);
        assert_int_equal(s.steps[i].ledger.requests_complete, 3);
    }
    series_free(&s);
}

// The coarsest rows that make up a step are taken: fewer, and the same sums.
static void test_coarse_rows_for_long_steps(void **state) {
    (void)state;
    write_hour();
    const struct {
        int64_t step_s;
        uint32_t resolution_s, count;
    } cases[] = {{10, 10, 360}, {59, 10, 60}, {60, 60, 60}, {300, 60, 12}, {3600, 3600, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct series s = ask(NOON, NOON + 3600, NULL, "_total", cases[i].step_s);
        assert_int_equal(s.resolution_s, cases[i].resolution_s);
        assert_int_equal(s.count, cases[i].count);
        assert_int_equal(requests(&s), 360);
        series_free(&s);
    }
}

// Steps begin where people find them on a clock, and cover what was asked for.
static void test_ends_in_the_middle_of_steps(void **state) {
    (void)state;
    write_hour();
    struct series s = ask(NOON + 95, NOON + 185, NULL, "_total", 60);
    assert_int_equal(s.first_s, NOON + 60);
    assert_int_equal(s.count, 3);
    assert_int_equal(requests(&s), 18);
    series_free(&s);
}

static void test_filters(void **state) {
    (void)state;
    write_hour();
    struct series s = ask(NOON, NOON + 3600, "shop@host", "create", 60);
    assert_int_equal(requests(&s), 360);
    series_free(&s);
    s = ask(NOON, NOON + 3600, "other@host", "create", 60);
    assert_int_equal(requests(&s), 0);
    assert_false(s.steps[0].has_ledger);
    series_free(&s);
    s = ask(NOON, NOON + 3600, NULL, "read", 60);
    assert_int_equal(requests(&s), 0);
    assert_int_equal(s.tier_count, 0);
    assert_true(s.steps[0].has_ledger); // something was traced, but nothing of that
    series_free(&s);
}

static void test_bounds(void **state) {
    (void)state;
    write_hour();
    struct series s = ask(0, NOON + 3600, NULL, "_total", 1);
    assert_true(s.count <= LIMIT_SERIES_STEPS);
    assert_int_equal(requests(&s), 360);
    series_free(&s);
    // the year 9999
    s = ask(0, 253402300799, NULL, "_total", 1);
    assert_true(s.count <= LIMIT_SERIES_STEPS);
    assert_int_equal(requests(&s), 360);
    series_free(&s);
}

static void test_many_tiers(void **state) {
    (void)state;
    struct stats *batch = stats_new();
    char name[16];
    for (uint32_t i = 0; i < LIMIT_SERIES_TIERS + 20; i++) {
        snprintf(name, sizeof name, "tier%u", i);
        fixture_call(batch, NOON, "create", name, 1000, false);
    }
    fixture_write(batch);
    struct series s = ask(NOON, NOON + 10, NULL, "_total", 10);
    assert_int_equal(s.tier_count, LIMIT_SERIES_TIERS + 1);
    assert_string_equal(s.tiers[LIMIT_SERIES_TIERS].name, "_other");
    assert_int_equal(s.tiers[LIMIT_SERIES_TIERS].cells[0].calls, 20);
    series_free(&s);
}

static void test_empty_and_damaged(void **state) {
    (void)state;
    store_close(fixture_open());
    struct series s = ask(NOON, NOON + 60, NULL, "_total", 10);
    assert_int_equal(s.resolution_s, 0);
    assert_int_equal(s.count, 0);
    series_free(&s);
    write_hour();
    free(fixture_ask(fixture_db, "UPDATE stat_rows SET histogram = x'ff00'"));
    struct store *reader = fixture_reader();
    struct series_filter filter = {NOON, NOON + 60, NULL, "_total", 10};
    assert_false(query_series(reader, &filter, &s));
    assert_non_null(strstr(store_error(reader), "malformed"));
    series_free(&s);
    struct query_sums sums;
    assert_false(query_sums(reader, &(struct query){.from_s = NOON, .until_s = NOON + 60}, &sums));
    assert_string_equal(store_error(reader), "query: a histogram is malformed, or no memory");
    query_sums_free(&sums);
    store_close(reader);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_steps_hold_their_buckets, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_coarse_rows_for_long_steps, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_ends_in_the_middle_of_steps, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_filters, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_bounds, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_many_tiers, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_empty_and_damaged, fixture_setup, fixture_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
