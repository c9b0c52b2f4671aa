// SPDX-License-Identifier: Apache-2.0
// compare.c: what changed, whether it is more than chance, and that the parts add up.
#include "report/compare.h"

#include <math.h>

#include "unit.h"

enum { MS = 1000000, ROWS = 3 };

// So many requests of 10 ms and some noise: 2 ms in http, 1 ms waiting for db, `db` ms in db, the
// rest nowhere. Of each `fails` requests one fails; 0: none.
static struct query_sums side(uint64_t requests, double db_ms, uint64_t fails, bool parallel) {
    static struct query_row all[2][ROWS];
    static int next;
    struct query_row *rows = all[next++ % 2];
    const char *const tiers[ROWS] = {"http", "_total", "db"};
    for (int i = 0; i < ROWS; i++) {
        rows[i] = (struct query_row){.identity = "buy", .tier = tiers[i], .min_ns = UINT64_MAX};
    }
    for (uint64_t r = 0; r < requests; r++) {
        uint64_t db = (uint64_t)(db_ms * MS), own = 7 * MS + r % 10 * MS / 10;
        uint64_t whole = own + 3 * MS + (parallel ? 0 : db);
        const uint64_t self[ROWS] = {2 * MS, own, db}, ns[ROWS] = {2 * MS, whole, db};
        for (int i = 0; i < ROWS; i++) {
            rows[i].calls++;
            rows[i].self_ns += self[i];
            rows[i].duration_ns += ns[i];
            rows[i].square_ns += (double)ns[i] * (double)ns[i];
            rows[i].min_ns = ns[i] < rows[i].min_ns ? ns[i] : rows[i].min_ns;
            rows[i].max_ns = ns[i] > rows[i].max_ns ? ns[i] : rows[i].max_ns;
            assert_true(histogram_add(&rows[i].durations, ns[i]));
        }
        rows[1].waiting_ns += MS;
        rows[2].waiting_ns += MS;
        rows[1].errors += fails > 0 && r % fails == 0;
    }
    return (struct query_sums){.rows = rows, .count = ROWS, .first_s = 1000, .last_s = 1100};
}

static void give_back(struct compare *c, struct query_sums *a, struct query_sums *b) {
    compare_free(c);
    for (uint32_t i = 0; i < ROWS; i++) {
        histogram_free(&a->rows[i].durations);
        histogram_free(&b->rows[i].durations);
    }
}

static void expect_sum(const struct compare_row *row) {
    double before = 0, after = 0, last = HUGE_VAL;
    for (uint32_t i = 0; i < row->part_count; i++) {
        double change = fabs(row->parts[i].after_ns - row->parts[i].before_ns);
        assert_true(change <= last);
        last = change;
        before += row->parts[i].before_ns;
        after += row->parts[i].after_ns;
    }
    assert_true(fabs(before - row->mean_ns.before) < 0.01);
    assert_true(fabs(after - row->mean_ns.after) < 0.01);
}

static void test_a_slower_tier_is_named_first(void **state) {
    (void)state;
    struct compare c;
    struct query_sums a = side(1000, 1, 0, false), b = side(500, 4, 0, false);
    assert_true(compare_make(&c, &a, &b));
    assert_int_equal(c.count, ROWS);
    const struct compare_row *whole = &c.rows[0]; // "_total", "db", "http"
    assert_string_equal(whole->tier, "_total");
    assert_true(fabs(whole->mean_ns.after - whole->mean_ns.before - 3 * MS) < 1);
    assert_true(whole->mean_ns.sure && whole->quantiles_ns[0].sure);
    assert_false(whole->errors.sure);
    assert_int_equal(whole->split, COMPARE_APART);
    assert_int_equal(whole->part_count, 6);
    assert_string_equal(whole->parts[0].tier, "db");
    assert_int_equal(whole->parts[0].kind, COMPARE_SELF);
    for (uint32_t i = 0; i < whole->part_count; i++) {
        const struct compare_part *p = &whole->parts[i];
        if (p->kind == COMPARE_WAITING) {
            assert_true(p->before_ns == (strcmp(p->tier, "db") == 0 ? MS : 0));
        }
    }
    expect_sum(whole);
    assert_true(whole->per_s.before == 10 && whole->per_s.after == 5);
    assert_null(c.rows[1].parts);
    assert_false(c.rows[2].mean_ns.sure); // http is as it was
    give_back(&c, &a, &b);
}

// What runs in parallel counts once: the sum is right all the same.
static void test_parallel_work_adds_up(void **state) {
    (void)state;
    struct compare c;
    struct query_sums a = side(100, 1, 0, false), b = side(100, 3, 0, true);
    assert_true(compare_make(&c, &a, &b));
    const struct compare_part *first = &c.rows[0].parts[0];
    assert_int_equal(first->kind, COMPARE_PARALLEL);
    assert_true(fabs(first->after_ns - first->before_ns + 3 * MS) < 1);
    expect_sum(&c.rows[0]);
    give_back(&c, &a, &b);
}

static void expect_rounded(struct compare *c, double grid) {
    int64_t parts[8], sum = 0;
    const struct compare_row *row = &c->rows[0];
    int64_t whole = compare_rounded(row, grid, parts);
    assert_true(fabs((double)whole - (row->mean_ns.after - row->mean_ns.before) / grid) <= 0.5001);
    for (uint32_t i = 0; i < row->part_count; i++) {
        const struct compare_part *p = &row->parts[i];
        assert_true(fabs((double)parts[i] - (p->after_ns - p->before_ns) / grid) < 1.01);
        sum += parts[i];
    }
    assert_int_equal(sum, whole);
}

// However coarsely they are told, the parts add up to the change that is told.
static void test_rounded_parts_add_up(void **state) {
    (void)state;
    struct compare c;
    struct query_sums a = side(7, 1, 0, false), b = side(11, 1, 0, true);
    uint64_t seed = 9;
    for (int round = 0; round < 500; round++) {
        for (uint32_t i = 0; i < ROWS; i++) {
            b.rows[i].self_ns = random_u64(&seed) % (40 * MS);
            b.rows[i].waiting_ns = random_u64(&seed) % (40 * MS);
        }
        assert_true(compare_make(&c, &a, &b));
        for (double grid = 1; grid < 1e9; grid *= 10) {
            expect_rounded(&c, grid);
        }
        compare_free(&c);
    }
    assert_true(compare_make(&c, &a, &b));
    give_back(&c, &a, &b);
}

// Rows of old versions have waiting within self times: they are compared among each other, but not
// with others.
static void test_rows_that_do_not_tell_waiting(void **state) {
    (void)state;
    struct compare c;
    struct query_sums a = side(100, 1, 0, false), b = side(100, 2, 0, false);
    for (int i = 0; i < ROWS; i++) {
        a.rows[i].unsplit = a.rows[i].calls;
    }
    assert_true(compare_make(&c, &a, &b));
    assert_int_equal(c.rows[0].split, COMPARE_MIXED);
    assert_int_equal(c.rows[0].part_count, 0);
    compare_free(&c);
    for (int i = 0; i < ROWS; i++) {
        b.rows[i].unsplit = b.rows[i].calls;
    }
    assert_true(compare_make(&c, &a, &b));
    assert_int_equal(c.rows[0].split, COMPARE_IN_SELF);
    assert_int_equal(c.rows[0].part_count, 4);
    expect_sum(&c.rows[0]);
    give_back(&c, &a, &b);
}

static void test_what_chance_may_do_is_not_sure(void **state) {
    (void)state;
    struct compare c;
    struct query_sums a = side(1000, 1, 0, false), b = side(1000, 1, 0, false);
    assert_true(compare_make(&c, &a, &b));
    assert_false(c.rows[0].mean_ns.sure || c.rows[0].quantiles_ns[1].sure);
    give_back(&c, &a, &b);
    a = side(20, 1, 0, false), b = side(20, 9, 0, false); // too few to say
    assert_true(compare_make(&c, &a, &b));
    assert_false(c.rows[0].mean_ns.sure || c.rows[0].quantiles_ns[2].sure);
    give_back(&c, &a, &b);
    a = side(1000, 1, 100, false), b = side(1000, 1, 90, false); // 10 and 12 errors
    assert_true(compare_make(&c, &a, &b));
    assert_false(c.rows[0].errors.sure);
    give_back(&c, &a, &b);
    a = side(1000, 1, 100, false), b = side(1000, 1, 20, false); // 10 and 50
    assert_true(compare_make(&c, &a, &b));
    assert_true(c.rows[0].errors.sure);
    give_back(&c, &a, &b);
}

static void test_one_side_without_requests(void **state) {
    (void)state;
    struct compare c;
    struct query_sums a = side(100, 1, 0, false), b = side(100, 1, 0, false);
    struct query_sums none = {.first_s = 0};
    assert_true(compare_make(&c, &a, &none));
    assert_int_equal(c.count, ROWS);
    assert_null(c.rows[0].after);
    assert_int_equal(c.rows[0].part_count, 0);
    assert_false(c.rows[0].mean_ns.sure);
    give_back(&c, &a, &b);
    assert_true(compare_make(&c, &none, &none));
    assert_int_equal(c.count, 0);
    compare_free(&c);
}

static void test_the_own_part_of_a_tier_in_slow_requests(void **state) {
    (void)state;
    struct compare c;
    struct query_sums all = side(100, 1, 0, false), slow = side(10, 9, 0, false);
    for (int i = 0; i < ROWS; i++) {
        all.rows[i].requests = 50; // two calls in each that called it
        slow.rows[i].requests = 10;
    }
    slow.rows[2].waiting_ns = 40 * MS;
    assert_true(compare_slow(&c, &all, &slow, "db"));
    assert_int_equal(c.count, 1);
    assert_string_equal(c.rows[0].tier, "db");
    assert_int_equal(c.rows[0].part_count, 2);
    expect_sum(&c.rows[0]);
    assert_true(fabs(c.rows[0].mean_ns.before - 4 * MS) < 1); // 2 ms in it, 2 ms before it
    assert_true(fabs(c.rows[0].mean_ns.after - 13 * MS) < 1); // 9 and 4
    assert_int_equal(c.rows[0].parts[0].kind, COMPARE_SELF);
    compare_free(&c);
    assert_true(compare_slow(&c, &all, &slow, "none"));
    assert_int_equal(c.count, 0);
    compare_free(&c);
    all.rows[2].unsplit = 1; // its self time may have waiting in it
    assert_true(compare_slow(&c, &all, &slow, "db"));
    assert_int_equal(c.count, 0);
    give_back(&c, &all, &slow);
}

static void test_no_memory(void **state) {
    (void)state;
    struct compare c;
    struct query_sums a = side(40, 1, 0, false), b = side(40, 1, 0, false);
    for (long n = 0; n < 2; n++) {
        fail_alloc_at(n);
        assert_false(compare_make(&c, &a, &b));
        fail_alloc_at(-1);
        compare_free(&c);
    }
    assert_true(compare_make(&c, &a, &b));
    give_back(&c, &a, &b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_slower_tier_is_named_first),
        cmocka_unit_test(test_parallel_work_adds_up),
        cmocka_unit_test(test_the_own_part_of_a_tier_in_slow_requests),
        cmocka_unit_test(test_rounded_parts_add_up),
        cmocka_unit_test(test_rows_that_do_not_tell_waiting),
        cmocka_unit_test(test_what_chance_may_do_is_not_sure),
        cmocka_unit_test(test_one_side_without_requests),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
