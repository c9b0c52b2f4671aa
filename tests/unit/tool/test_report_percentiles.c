// SPDX-License-Identifier: Apache-2.0
// kprof report --percentiles, --tier and --compare-to.
#include "tool_fixture.h"

enum { NOON = 1763640000, MS = 1000000 };
#define SECOND_HALF "--since 2025-11-20T12:10:00Z --until 2025-11-20T12:20:00Z "

// A request of search each 10 s of twenty minutes: 1 ms in http, 2 ms in db and 1 ms of waiting for
// it, of which there are 5 ms more in the second half. The longest of each minute is kept: it has
// waited for 20 ms.
static void write_some(void) {
    struct stats *batch = stats_new();
    for (int i = 0; i < 120; i++) {
        int64_t bucket = NOON + 10 * i;
        uint64_t wait = (i < 60 ? 1 : 6) * MS;
        static const char *const both[] = {"search", "_total"};
        fixture_call(batch, bucket, "search", "_total", 3 * MS + wait, false);
        fixture_call(batch, bucket, "search", "http", MS, false);
        fixture_call(batch, bucket, "search", "db", 2 * MS, false);
        for (int k = 0; k < 2; k++) {
            struct stat_row *whole = fixture_row(batch, bucket, "shop@host", both[k], "_total");
            struct stat_row *http = fixture_row(batch, bucket, "shop@host", both[k], "http");
            struct stat_row *db = fixture_row(batch, bucket, "shop@host", both[k], "db");
            whole->self_ns = 0, whole->waiting_ns = db->waiting_ns = wait;
            http->self_ns = MS, db->self_ns = 2 * MS;
        }
        fixture_ledger(batch, bucket)->requests_complete = 1;
        if (i % 6 == 0) {
            struct kept_request kept = fixture_request(bucket, "search", KEPT_SLOWEST, 23 * MS, 1);
            const struct kept_span span = {.duration = 3 * MS,
                                           .self = 3 * MS,
                                           .wait = 20 * MS,
                                           .waiting = 20 * MS,
                                           .pid = 80,
                                           .parent = UINT32_MAX,
                                           .tier =
                                               directory_tier(&fixture_names, slice_text("db"))};
            kept.count = kept.spans = 1;
            assert_true(stats_keep(batch, &kept, &span));
        }
    }
    fixture_write(batch);
}

static void test_percentiles(void **state) {
    (void)state;
    write_some();
    assert_int_equal(tool_ask("report", SECOND_HALF "--percentiles"), 0);
    expect_part("mean       p50       p90       p99     p99.9       max    requests    errors\n");
    expect_part(
        " search          9.0 ms    9.0 ms    9.0 ms    9.0 ms    9.0 ms    9.0 ms          60");
    expect_part("the time below is rounded");
    expect_part("What makes slow ones slow:\n  search: 10 kept, against the mean +14 ms: "
                "+14 waiting before db, +1 db, -1 http\n");
    assert_int_equal(tool_ask("report", SECOND_HALF "--percentiles --json"), 0);
    expect_json("$.slow[0].requests", "10");
    expect_json("$.slow[0].parts[0].kind", "waiting");
    expect_json("$.slow[0].parts[0].slow_us", "20000");
    expect_json("$.rows[0].p999_us", "9000");
    assert_int_equal(tool_ask("report", SECOND_HALF "--tier db"), 0);
    expect_part(" calls of");
    expect_part("  db\n");
    expect_part(" search          2.0 ms");
    assert_int_equal(tool_ask("report", SECOND_HALF "--tier db --json"), 0);
    expect_json("$.rows[1].tier", "db");
    assert_int_equal(tool_ask("report", SECOND_HALF "--tier none"), 1);
}

static void test_compared(void **state) {
    (void)state;
    write_some();
    assert_int_equal(tool_ask("report", SECOND_HALF "--compare-to before"), 0);
    expect_part("before  2025-11-20T12:00:00Z to 2025-11-20T12:10:00Z\n");
    expect_part("  that is  +5.0 ms: +5.0 waiting before db\n");
    expect_no_part("p90");
    assert_int_equal(tool_ask("report", SECOND_HALF "--compare-to '10m before' --percentiles"), 0);
    expect_part("  p99.9 ");
    assert_int_equal(tool_ask("report", SECOND_HALF "--compare-to before --tier db"), 0);
    expect_part("search, db: 60 calls -> 60\n");
    assert_int_equal(tool_ask("report", SECOND_HALF "--compare-to before --tier db --json"), 0);
    expect_json("$.rows[0].tier", "db");
    expect_json("$.slow[0].identity", "search");
}

static void test_mistakes(void **state) {
    (void)state;
    write_some();
    assert_int_equal(tool_ask("report", "--compare-to before"), 2);
    expect_line("kprof report: --compare-to: of which time? Say --since TIME");
    assert_int_equal(tool_ask("report", SECOND_HALF "--compare-to never"), 2);
    expect_line("--compare-to never is none of: before, yesterday, last week");
    assert_int_equal(tool_ask("report", SECOND_HALF "--compare-to '5m before'"), 2);
    expect_line("both stretches would share a part");
    assert_int_equal(tool_ask("report", SECOND_HALF "--compare-to yesterday"), 1);
    expect_line("no complete requests in the time to compare with");
    assert_int_equal(tool_ask("report", "--percentiles --wait"), 2);
    expect_line("--percentiles is a table of its own: not with --wait");
    assert_int_equal(tool_ask("report", "--tier db --cost"), 2);
    expect_line("--tier is a table of its own: not with --cost");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_percentiles, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_compared, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_mistakes, fixture_setup, fixture_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
