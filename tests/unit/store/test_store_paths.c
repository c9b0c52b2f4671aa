// SPDX-License-Identifier: Apache-2.0
// batch_paths.c and row_ids.c: rows of paths and costs, the paths' texts, and that they go when
// they are old.
#include "store_fixture.h"

#include "store/internal.h"

enum { NOON = 1763640000 };

static void test_paths_to_the_digit(void **state) {
    (void)state;
    struct store *s = fixture_open();
    for (int i = 0; i < 2; i++) { // twice the same: it adds up
        struct stats *batch = stats_new();
        uint32_t db = fixture_path("handle/db"), other = fixture_path("accounting/db");
        fixture_path_call(batch, NOON + 50, "create", db, 1000);
        fixture_path_call(batch, NOON + 60, "create", db, 5000)->wait_ns = 700;
        fixture_path_call(batch, NOON + 50, "create", other, 400);
        fixture_path_call(batch, NOON + 50, "update", db, 100 + 10 * (uint64_t)i)->errors = 1;
        struct path_row *row = fixture_path_call(batch, NOON + 50, "update", db, 2000);
        row->async_calls = 1, row->async_ns = 2000, row->total_ns -= 2000;
        row->measured_ns = 300, row->mailbox_ns = i == 0 ? 0 : 100,
        row->run_queue_ns = i == 0 ? 0 : 20;
        assert_true(store_write(s, 10, batch, &fixture_names));
        stats_free(batch);
    }
    store_close(s);
    static const char all[] =
        "SELECT group_concat(identity || '|' || path || '|' || calls || '|' || errors || '|' || async_calls || '|' || total_us || "
        "'|' || self_us || '|' || async_us || '|' || wait_us || '|' || mean_us || '|' || min_us || '|' || max_us, char(10)) "
        "FROM (SELECT * FROM path_stats WHERE resolution_s = %d ORDER BY identity, path)";
    char sql[512];
    snprintf(sql, sizeof sql, all, 3600);
    fixture_expect(sql, "_total|accounting > db|2|0|0|0.8|0.4|0.0|0.0|0.4|0.4|0.4\n"
                        "_total|handle > db|8|2|2|12.21|8.105|4.0|1.4|2.02625|0.1|5.0\n"
                        "create|accounting > db|2|0|0|0.8|0.4|0.0|0.0|0.4|0.4|0.4\n"
                        "create|handle > db|4|0|0|12.0|6.0|0.0|1.4|3.0|1.0|5.0\n"
                        "update|handle > db|4|2|2|0.21|2.105|4.0|0.0|1.0525|0.1|2.0");
    fixture_expect(
        "SELECT group_concat(identity || '|' || path || '|' || measured_us || '|' || ifnull(mailbox_us, '-') || '|' || "
        "ifnull(run_queue_us, '-'), char(10)) FROM (SELECT * FROM path_stats WHERE resolution_s = 60 AND "
        "bucket_start = '2025-11-20T12:00:00Z' ORDER BY identity, path)",
        "_total|accounting > db|0.0|-|-\n_total|handle > db|0.6|0.1|0.02\ncreate|accounting > db|0.0|-|-\n"
        "create|handle > db|0.0|-|-\nupdate|handle > db|0.6|0.1|0.02");
    fixture_expect(
        "SELECT group_concat(n, ', ') FROM (SELECT resolution_s || ' ' || bucket_start || ' ' || sum(calls) AS n FROM "
        "path_stats WHERE identity = '_total' GROUP BY resolution_s, bucket_start)",
        "10 2025-11-20T12:00:50Z 8, 10 2025-11-20T12:01:00Z 2, 60 2025-11-20T12:00:00Z 8, "
        "60 2025-11-20T12:01:00Z 2, 3600 2025-11-20T12:00:00Z 10");
}

static void test_a_path_without_calls_has_no_extremes(void **state) {
    (void)state;
    struct store *s = fixture_open();
    static const char extremes[] =
        "SELECT ifnull(min_us, '-') || ifnull(max_us, '-') || ifnull(mean_us, '-') FROM path_stats "
        "WHERE resolution_s = 60 AND identity = 'create'";
    for (int i = 0; i < 3; i++) {
        struct stats *batch = stats_new();
        struct path_row *row = fixture_path_call(batch, NOON, "create", fixture_path("db"), 1000);
        if (i != 1) {
            *row = (struct path_row){.bucket_start = NOON,
                                     .identity = row->identity,
                                     .path = row->path,
                                     .min_ns = UINT64_MAX};
        }
        assert_true(store_write(s, 10, batch, &fixture_names));
        stats_free(batch);
        fixture_expect(extremes, i == 0 ? "---" : "1.01.01.0");
    }
    store_close(s);
}

static void test_texts_of_paths(void **state) {
    (void)state;
    char deep[LIMIT_PATH_DEPTH * (LIMIT_NAME_BYTES + 1) + 1] = "";
    char expected[LIMIT_PATH_DEPTH * (LIMIT_NAME_BYTES + 3) + 32] = "0,";
    for (int i = 0; i < (int)LIMIT_PATH_DEPTH; i++) { // names as long as they get
        sprintf(deep + strlen(deep), "%s%0*d", i ? "/" : "", (int)LIMIT_NAME_BYTES, i);
        sprintf(expected + strlen(expected), "%s%0*d", i ? " > " : "", (int)LIMIT_NAME_BYTES, i);
    }
    strcat(expected, ",_other,a,a > b");
    struct stats *batch = stats_new();
    fixture_path_call(batch, NOON, "create", fixture_path("0"), 1000); // the first id that there is
    fixture_path_call(batch, NOON, "create", fixture_path(deep), 1000);
    fixture_path_call(batch, NOON, "create", PATH_OTHER, 1000);
    fixture_path_call(batch, NOON, "create", fixture_path("a/a/a"), 1000);
    fixture_path_call(batch, NOON, "create", fixture_path("a/b"), 1000);
    fixture_path_call(batch, NOON, "create", fixture_path("a > b"),
                      3000); // one tier, whose name is a path
    fixture_write(batch);
    fixture_expect(
        "SELECT group_concat(path) FROM (SELECT path FROM path_stats WHERE identity = 'create' AND resolution_s = 10 "
        "ORDER BY path)",
        expected);
    fixture_expect(
        "SELECT calls || ',' || mean_us FROM path_stats WHERE identity = 'create' AND resolution_s = 10 AND path = 'a > b'",
        "2,2.0");
}

// The identity that the view makes does not stand there twice, whatever a request is called.
static void test_an_identity_named_total(void **state) {
    (void)state;
    struct stats *batch = stats_new();
    fixture_path_call(batch, NOON, "_total", fixture_path("db"), 1000);
    fixture_path_call(batch, NOON, "create", fixture_path("db"), 1000);
    fixture_write(batch);
    fixture_expect(
        "SELECT group_concat(n) FROM (SELECT identity || ' ' || calls AS n FROM path_stats WHERE resolution_s = 10 ORDER BY 1)",
        "_total 2,create 1");
}

static void test_costs_to_the_digit(void **state) {
    (void)state;
    struct store *s = fixture_open();
    for (int i = 0; i < 2; i++) {
        struct stats *batch = stats_new();
        for (int bucket = 0; bucket < 2; bucket++) {
            struct cost_row *row =
                stats_cost(batch, NOON + 50 + 10 * bucket,
                           directory_node(&fixture_names, slice_text("shop@host")),
                           directory_tier(&fixture_names, slice_text("db")));
            row->messages = 2, row->bytes = 300;
        }
        assert_true(store_write(s, 10, batch, &fixture_names)); // a batch of nothing else
        stats_free(batch);
    }
    store_close(s);
    fixture_expect(
        "SELECT group_concat(resolution_s || ' ' || bucket_start || ' ' || node || ' ' || tier || ' ' || messages || ' ' || "
        "bytes, char(10)) FROM tier_costs",
        "10 2025-11-20T12:00:50Z shop@host db 4 600\n10 2025-11-20T12:01:00Z shop@host db 4 600\n"
        "60 2025-11-20T12:00:00Z shop@host db 4 600\n60 2025-11-20T12:01:00Z shop@host db 4 600\n"
        "3600 2025-11-20T12:00:00Z shop@host db 8 1200");
}

// Paths that were new in a batch that was refused are not taken for known afterwards.
static void test_full_disk_keeps_the_batch_whole(void **state) {
    (void)state;
    struct store *s = fixture_open();
    struct stats *batch = stats_new();
    for (int i = 0; i < 800; i++) {
        char name[16];
        snprintf(name, sizeof name, "handle/tier %d", i);
        fixture_path_call(batch, NOON, "create", fixture_path(name), 1000);
    }
    char sql[64];
    snprintf(sql, sizeof sql, "PRAGMA max_page_count = %lld",
             (long long)store_integer(s, "PRAGMA page_count", 0) + 3);
    sqlite3_exec(s->db, sql, NULL, NULL, NULL);
    for (int i = 0; i < 2; i++) {
        assert_false(store_write(s, 10, batch, &fixture_names));
        fixture_expect(
            "SELECT (SELECT count(*) FROM path_names) + (SELECT count(*) FROM path_rows)", "0");
    }
    sqlite3_exec(s->db, "PRAGMA max_page_count = 1000000", NULL, NULL, NULL);
    assert_true(store_write(s, 10, batch, &fixture_names));
    store_close(s);
    stats_free(batch);
    fixture_expect(
        "SELECT count(*) || ',' || sum(calls) FROM path_stats WHERE identity = 'create' AND resolution_s = 10",
        "800,800");
}

// Also when no statistics of the resolution are left to lead there.
static void test_old_rows_go(void **state) {
    (void)state;
    static const int64_t ages[] = {0, 3 * 86400, 31 * 86400LL, 731 * 86400LL};
    struct store *s = fixture_open();
    struct stats *batch = stats_new();
    for (size_t i = 0; i < sizeof ages / sizeof *ages; i++) {
        fixture_path_call(batch, NOON - ages[i], "create", fixture_path("db"), 1000);
        stats_cost(batch, NOON - ages[i], 0, 1)->messages = 1;
    }
    for (int i = 0; i < 3 * 2000; i++) {
        fixture_path_call(batch, NOON - 4 * 86400 - 10 * i, "create", fixture_path("db"), 1000);
    }
    assert_true(store_write(s, 10, batch, &fixture_names));
    int steps = 1;
    while (store_expire(s, NOON)) {
        steps++;
    }
    assert_in_range(steps, 4, 5);
    store_close(s);
    stats_free(batch);
    static const char *const counts[] = {
        "SELECT group_concat(n) FROM (SELECT resolution_s || ':' || count(DISTINCT bucket_start / 86400) AS n FROM path_rows "
        "GROUP BY resolution_s)",
        "SELECT group_concat(n) FROM (SELECT resolution_s || ':' || count(*) AS n FROM cost_rows GROUP BY resolution_s)"};
    fixture_expect(counts[0], "10:1,60:4,3600:5");
    fixture_expect(counts[1], "10:1,60:2,3600:3");
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define PATHS_TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
        PATHS_TEST(test_paths_to_the_digit), PATHS_TEST(test_a_path_without_calls_has_no_extremes),
        PATHS_TEST(test_texts_of_paths),     PATHS_TEST(test_an_identity_named_total),
        PATHS_TEST(test_costs_to_the_digit), PATHS_TEST(test_full_disk_keeps_the_batch_whole),
        PATHS_TEST(test_old_rows_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
