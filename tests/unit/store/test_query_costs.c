// SPDX-License-Identifier: Apache-2.0
// query_costs.c: sums by tier, what they are joined with, the time and the node.
#include "store_fixture.h"

#include "store/query_costs.h"

enum { NOON = 1763640000 };

static void cost(struct stats *batch, int64_t bucket, const char *node, const char *tier,
                 uint64_t messages, uint64_t bytes) {
    struct cost_row *row =
        stats_cost(batch, bucket, directory_node(&fixture_names, slice_text(node)),
                   directory_tier(&fixture_names, slice_text(tier)));
    row->messages += messages;
    row->bytes += bytes;
}

static void fill(void) {
    struct stats *batch = stats_new();
    for (int i = 0; i < 3; i++) {
        cost(batch, NOON + 10 * i, "shop@host", "db", 20, 1000);
        cost(batch, NOON + 10 * i, "shop@host", "http", 2, 5000);
        cost(batch, NOON + 10 * i, "other@host", "db", 1, 100);
        fixture_call(batch, NOON + 10 * i, "create", "db", 3000, false);
        fixture_call(batch, NOON + 10 * i, "update", "db", 1000, i == 0);
        fixture_ledger(batch, NOON + 10 * i)->messages = 100;
        fixture_ledger(batch, NOON + 10 * i)->bytes = 70000;
    }
    cost(batch, NOON, "shop@host", "never called", 1, 1);
    fixture_write(batch);
}

static struct costs ask(int64_t from, int64_t until, const char *node) {
    struct costs costs;
    struct store *s = fixture_reader();
    if (!query_costs(s, &(struct query){from, until, node, "ignored", NULL}, &costs)) {
        fail_msg("%s", store_error(s));
    }
    store_close(s);
    return costs;
}

static void expect_cost(const struct cost *c, const char *tier, uint64_t messages, uint64_t bytes,
                        uint64_t calls, uint64_t ns) {
    assert_string_equal(c->tier, tier);
    assert_int_equal(c->messages, messages);
    assert_int_equal(c->bytes, bytes);
    assert_int_equal(c->calls, calls);
    assert_int_equal(c->duration_ns, ns);
}

static void test_nothing_there(void **state) {
    (void)state;
    store_close(fixture_open());
    struct costs costs = ask(INT64_MIN, INT64_MAX, NULL);
    assert_int_equal(costs.count, 0);
    assert_int_equal(costs.resolution_s, 0);
    costs_free(&costs);
}

static void test_sums_of_all(void **state) {
    (void)state;
    fill();
    struct costs costs = ask(INT64_MIN, INT64_MAX, NULL);
    assert_int_equal(costs.count, 3); // most bytes first
    expect_cost(&costs.rows[0], "http", 6, 15000, 0, 0);
    expect_cost(&costs.rows[1], "db", 63, 3300, 6,
                12000); // calls once, not again under each identity
    expect_cost(&costs.rows[2], "never called", 1, 1, 0, 0);
    assert_int_equal(costs.stream_messages, 300);
    assert_int_equal(costs.stream_bytes, 210000);
    assert_int_equal(costs.resolution_s, 10);
    assert_int_equal(costs.first_s, NOON);
    assert_int_equal(costs.last_s, NOON + 30);
    costs_free(&costs);
}

static void test_a_stretch_of_time_and_a_node(void **state) {
    (void)state;
    fill();
    struct costs costs = ask(NOON + 15, NOON + 20, NULL); // its bucket counts whole
    assert_int_equal(costs.count, 2);
    expect_cost(&costs.rows[1], "db", 21, 1100, 2, 4000);
    assert_int_equal(costs.stream_messages, 100);
    assert_int_equal(costs.first_s, NOON + 10);
    assert_int_equal(costs.last_s, NOON + 20);
    costs_free(&costs);

    costs = ask(INT64_MIN, INT64_MAX, "other@host");
    assert_int_equal(costs.count, 1);
    expect_cost(&costs.rows[0], "db", 3, 300, 0, 0);
    assert_int_equal(costs.stream_messages, 0);
    costs_free(&costs);

    costs = ask(INT64_MIN, INT64_MAX, "nobody@host");
    assert_int_equal(costs.count, 0);
    costs_free(&costs);
}

static void test_no_memory(void **state) {
    (void)state;
    int failures = 0;
    fill();
    struct store *s = fixture_reader();
    for (long n = 0; n < 20; n++) {
        struct costs costs;
        fail_alloc_at(n);
        bool ok = query_costs(s, &(struct query){INT64_MIN, INT64_MAX, NULL, NULL, NULL}, &costs);
        fail_alloc_at(-1);
        assert_true(!ok || costs.count == 3);
        failures += !ok;
        costs_free(&costs);
    }
    // two statements' text, three texts, and room for 1, 2 and 4 rows
    assert_in_range(failures, 8, 15);
    store_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define COSTS_TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
        COSTS_TEST(test_nothing_there),
        COSTS_TEST(test_sums_of_all),
        COSTS_TEST(test_a_stretch_of_time_and_a_node),
        COSTS_TEST(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
