// SPDX-License-Identifier: Apache-2.0
// kprof diff: two stretches of time compared, as text and JSON, and the limit for pipelines.
#include "tool_fixture.h"

enum { NOON = 1763640000, MS = 1000000 };
#define STRETCHES                                                                                  \
    "--before 2025-11-20T12:00:00Z..2025-11-20T12:10:00Z "                                         \
    "--after 2025-11-20T12:10:00Z..2025-11-20T12:20:00Z "

// 60 requests of 10 ms and some noise in each stretch; db takes half of one before, and as much
// more afterwards as `db_more_ms` says.
static void write_stretches(const char *identity, int db_more_ms) {
    struct stats *batch = stats_new();
    for (int i = 0; i < 120; i++) {
        int64_t bucket = NOON + 10 * i;
        uint64_t more = i < 60 ? 0 : (uint64_t)db_more_ms * MS;
        uint64_t noise = (uint64_t)(i % 7) * MS / 10;
        fixture_call(batch, bucket, identity, "_total", 10 * MS + noise + more, false);
        fixture_call(batch, bucket, identity, "db", 5 * MS + more, false);
        const char *const both[] = {identity, "_total"};
        for (int k = 0; k < 2; k++) { // the request's own time is what db does not cover
            struct stat_row *whole = fixture_row(batch, bucket, "shop@host", both[k], "_total");
            struct stat_row *db = fixture_row(batch, bucket, "shop@host", both[k], "db");
            whole->self_ns = whole->total_ns - db->total_ns;
            db->self_ns = db->total_ns;
        }
        fixture_ledger(batch, bucket)->requests_complete = 1;
    }
    fixture_write(batch);
}

static void test_slower_tier_is_named(void **state) {
    (void)state;
    write_stretches("search", 4);
    assert_int_equal(tool_ask("diff", STRETCHES), 0);
    expect_part("before  2025-11-20T12:00:00Z to 2025-11-20T12:10:00Z\n"
                "after   2025-11-20T12:10:00Z to 2025-11-20T12:20:00Z\n");
    expect_part("search: 60 requests -> 60\n");
    expect_part("+4.0 ms");
    expect_part("  that is  +4.0 ms: +4.0 db\n");
    expect_part("more than chance\n");
    assert_int_equal(tool_ask("diff", STRETCHES "--json"), 0);
    expect_json("$.rows[0].tier", "_total");
    expect_json("$.rows[0].mean_us.sure", "1");
    expect_json("$.rows[0].parts[0].tier", "db");
    expect_json("$.before.verdict", "ok");
}

static void test_limit(void **state) {
    (void)state;
    write_stretches("search", 4);
    assert_int_equal(tool_ask("diff", STRETCHES "--fail-over 50%"), 0);
    assert_int_equal(tool_ask("diff", STRETCHES "--fail-over 10%"), 1);
    expect_part("kprof diff: the mean of search has grown by 39.0 %, more than 10 %\n");
    // the other way round it is faster
    assert_int_equal(tool_ask("diff", "--after 2025-11-20T12:00:00Z..2025-11-20T12:10:00Z --before "
                                      "2025-11-20T12:10:00Z..2025-11-20T12:20:00Z --fail-over 0"),
                     0);
}

static void test_no_change(void **state) {
    (void)state;
    write_stretches("search", 0);
    assert_int_equal(tool_ask("diff", STRETCHES "--fail-over 0"), 0);
    expect_no_part("more than chance\n  ");
}

static void test_hostile_names(void **state) {
    (void)state;
    write_stretches("\033[2Jname", 4);
    assert_int_equal(tool_ask("diff", STRETCHES), 0);
    expect_no_part("\033");
    expect_part("?[2Jname");
}

static void test_mistakes(void **state) {
    (void)state;
    write_stretches("search", 0);
    assert_int_equal(tool_ask("diff", ""), 2);
    expect_line("kprof diff: --before FROM..UNTIL is missing");
    assert_int_equal(tool_ask("diff", "--before 2h..1h"), 2);
    expect_line("--after FROM..UNTIL is missing");
    assert_int_equal(tool_ask("diff", "--before 2h --after 1h..0m"), 2);
    expect_line("--before 2h is not FROM..UNTIL");
    assert_int_equal(tool_ask("diff", "--before 1h..2h --after 1h..0m"), 2);
    expect_line("--before 1h..2h: it ends before it begins");
    assert_int_equal(tool_ask("diff", STRETCHES "--fail-over much"), 2);
    expect_line("--fail-over much: want a number such as 10%");
    assert_int_equal(tool_ask("diff", "--before 2020-01-01T00:00Z..2020-01-02T00:00Z --after "
                                      "2025-11-20T12:00:00Z..2025-11-20T12:10:00Z"),
                     1);
    expect_line("no complete requests in the time of --before");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_slower_tier_is_named, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_limit, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_no_change, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_hostile_names, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_mistakes, fixture_setup, fixture_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
