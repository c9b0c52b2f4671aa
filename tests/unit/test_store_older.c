// Files of version 1: how readers see them (older.c), and what a collector makes of them (schema/002_requests.sql).
#include "store_fixture.h"

#include <sys/wait.h>

#include "../../collector/store/internal.h"
#include "store/query.h"
#include "store/query_costs.h"
#include "store/query_slow.h"

enum { NOON = 1763640000 };

static void run_sql(sqlite3 *db, const char *sql) {
    char *error = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK) {
        fail_msg("%s: %s", sql, error);
    }
}

// A file as version 1 left it behind, with a minute and its hour: two calls of db, of 1000 ns, and a ledger with losses.
static void make_version_1(void) {
    sqlite3 *db;
    char sql[1024], hex[64] = "";
    struct histogram h = {0};
    struct buffer blob = buffer_make(64);
    assert_true(histogram_add(&h, 1000) && histogram_add(&h, 1000) && histogram_write(&h, &blob));
    for (size_t i = 0; i < blob.len; i++) {
        sprintf(hex + 2 * i, "%02x", blob.data[i]);
    }
    assert_int_equal(sqlite3_open(fixture_db, &db), SQLITE_OK);
    run_sql(db, store_migrations[0].sql);
    snprintf(sql, sizeof sql, "PRAGMA application_id = %d; PRAGMA user_version = 1; PRAGMA journal_mode = WAL",
             STORE_APPLICATION_ID);
    run_sql(db, sql);
    run_sql(db, "INSERT INTO node_names VALUES (1, 'shop@host'); INSERT INTO identity_names VALUES (1, '_total'), (2, 'create');"
                "INSERT INTO tier_names VALUES (1, 'db')");
    for (int r = 60; r <= 3600; r *= 60) {
        for (int identity = 1; identity <= 2; identity++) {
            snprintf(sql, sizeof sql,
                     "INSERT INTO stat_rows VALUES (%d, %d, 1, %d, 1, 2, 2, 1, 0, 2000, 1500, 0, 2000, 2e6, 1000, 1000, 0, 1000, "
                     "1000, 1000, 1000, 1000, 1000, 1000, x'%s')",
                     r, NOON, identity, hex);
            run_sql(db, sql);
        }
        snprintf(sql, sizeof sql, "INSERT INTO ledger_rows VALUES (%d, %d, 1, 2, 0, 0, 0, 50, 6000, 7, 0, 3, 0, 0)", r, NOON);
        run_sql(db, sql);
    }
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    histogram_free(&h);
    buffer_free(&blob);
}

static void expect_current(void) {
    char version[16];
    snprintf(version, sizeof version, "%d", store_schema_version);
    fixture_expect("PRAGMA user_version", version);
}

// What every query answers about that file.
static void check_answers(struct store *s) {
    const struct query all = {INT64_MIN, INT64_MAX, NULL, NULL};
    struct query_sums sums;
    assert_true(query_sums(s, &all, &sums));
    assert_int_equal(sums.resolution_s, 60);
    assert_int_equal(sums.count, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sums.rows[i].calls, 2);
        assert_int_equal(sums.rows[i].total_ns, 2000);
        assert_int_equal(sums.rows[i].wait_ns + sums.rows[i].gc_ns + sums.rows[i].off_cpu_ns, 0);
        assert_int_equal(histogram_count(&sums.rows[i].durations), 2);
    }
    assert_int_equal(sums.ledger.messages, 50);
    assert_int_equal(sums.ledger.dropped_messages, 7);
    assert_int_equal(sums.ledger.reloads + sums.ledger.unwound_frames, 0);
    query_sums_free(&sums);

    struct costs costs;
    assert_true(query_costs(s, &all, &costs));
    assert_int_equal(costs.count, 0);
    assert_int_equal(costs.stream_messages, 50);
    costs_free(&costs);

    struct slow_list list;
    struct slow_spans spans;
    bool found;
    assert_true(query_slow_list(s, &(struct slow_filter){INT64_MIN, INT64_MAX, NULL, NULL, false, 10}, &list));
    assert_int_equal(list.count, 0);
    slow_list_free(&list);
    assert_true(query_slow_spans(s, 1, &found, &spans));
    assert_false(found);
    slow_spans_free(&spans);
    assert_int_equal(store_integer(s, "SELECT count(*) FROM kept_spans JOIN tier_names AS t ON t.id = tier_id", -1), 0);
}

static void test_readers_read_version_1(void **state) {
    (void)state;
    make_version_1();
    char *before = fixture_ask(fixture_db, "SELECT group_concat(sql) FROM sqlite_schema");
    struct store *s = fixture_reader();
    check_answers(s);
    store_close(s);
    fixture_expect("PRAGMA user_version", "1");
    fixture_expect("SELECT group_concat(sql) FROM sqlite_schema", before);
    free(before);
}

// Nor does it need a file of its own for that: as test_reads_without_write_permission of test_store.c.
static void test_readers_need_no_write_permission(void **state) {
    (void)state;
    make_version_1();
    assert_int_equal(chmod(fixture_dir, 0755), 0);
    pid_t child = fork();
    if (child == 0) {
        struct store *s;
        char error[STORE_ERROR_BYTES];
        bool nobody = geteuid() != 0 || setuid(65534) == 0;
        _exit(nobody && store_open_reader(fixture_db, &s, error) == STORE_OK &&
                      store_integer(s, "SELECT sum(wait_ns) + count(*) FROM stat_rows", -1) == 4
                  ? 0
                  : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

// A report that is being made when the collector of the new version starts comes to its end.
static void test_reader_goes_on_while_a_collector_migrates(void **state) {
    (void)state;
    make_version_1();
    struct store *s = fixture_reader();
    pid_t child = fork(); // a process of its own, as store.h says
    if (child == 0) {
        struct store *writer;
        char error[STORE_ERROR_BYTES];
        _exit(store_open(fixture_db, &writer, error) == STORE_OK ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    expect_current();
    check_answers(s);
    store_close(s);
}

static void test_migration_keeps_the_rows(void **state) {
    (void)state;
    make_version_1();
    static const char old_columns[] =
        "SELECT group_concat(bucket_start || resolution_s || node || identity || tier || requests || calls || errors || total_us || "
        "self_us || async_us || mean_us || stddev_us || min_us || max_us || p50_us || p999_us) FROM tier_stats";
    char *before = fixture_ask(fixture_db, old_columns);
    store_close(fixture_open());
    expect_current();
    fixture_expect("PRAGMA integrity_check", "ok");
    fixture_expect(old_columns, before);
    free(before);
    fixture_expect("SELECT count(*) || ',' || sum(wait_us + gc_us + off_cpu_us) FROM tier_stats", "4,0.0");
    fixture_expect("SELECT group_concat(verdict || reloads || unwound_frames || lost_tokens || ambiguous_returns) FROM ledger",
                   "lossy0000,lossy0000");
    fixture_expect("SELECT (SELECT count(*) FROM path_stats) + (SELECT count(*) FROM slow_requests) + (SELECT count(*) FROM "
                   "slow_spans) + (SELECT count(*) FROM tier_costs)",
                   "0");
    struct store *s = fixture_reader();
    check_answers(s);
    store_close(s);
}

static void test_old_rows_grow_after_the_migration(void **state) {
    (void)state;
    make_version_1();
    struct stats *batch = stats_new();
    fixture_call(batch, NOON, "create", "db", 3000, false);
    fixture_row(batch, NOON, "shop@host", "create", "db")->wait_ns = 500;
    fixture_ledger(batch, NOON)->reloads = 1;
    fixture_ledger(batch, NOON)->messages = 1;
    fixture_write(batch);
    fixture_expect("SELECT group_concat(resolution_s || ':' || calls || ':' || total_us || ':' || wait_us || ':' || max_us) FROM "
                   "tier_stats WHERE identity = 'create'",
                   "10:1:3.0:0.5:3.0,60:3:5.0:0.5:3.0,3600:3:5.0:0.5:3.0");
    fixture_expect("SELECT group_concat(resolution_s || ':' || messages || ':' || reloads || ':' || dropped_messages) FROM ledger",
                   "10:1:1:0,60:51:1:7,3600:51:1:7");
}

// A migration is whole or was not: here a table of somebody's own is in its way.
static void test_a_failed_migration_leaves_version_1(void **state) {
    (void)state;
    make_version_1();
    free(fixture_ask(fixture_db, "CREATE TABLE kept_spans (mine)"));
    char *before = fixture_ask(fixture_db, "SELECT group_concat(sql) FROM sqlite_schema");
    struct store *s;
    char error[STORE_ERROR_BYTES];
    assert_int_equal(store_open(fixture_db, &s, error), STORE_FAILED);
    assert_null(s);
    assert_non_null(strstr(error, fixture_db));
    assert_null(strchr(error, '\n'));
    fixture_expect("PRAGMA user_version", "1");
    fixture_expect("SELECT group_concat(sql) FROM sqlite_schema", before);
    free(before);
    fixture_expect("SELECT sum(calls) FROM tier_stats", "8");
}

// Version 2 had kept requests, and knew none of other nodes; version 4 did not know for whom their calls were made.
static void test_readers_read_versions_from_2_on(void **state) {
    (void)state;
    for (int version = 2; version < store_schema_version; version++) {
        char sql[64];
        sqlite3 *db;
        unlink(fixture_db);
        make_version_1();
        assert_int_equal(sqlite3_open(fixture_db, &db), SQLITE_OK);
        for (int i = 1; i < version; i++) {
            run_sql(db, store_migrations[i].sql);
        }
        snprintf(sql, sizeof sql, "PRAGMA user_version = %d", version);
        run_sql(db, sql);
        run_sql(db, "INSERT INTO kept_requests (id, bucket_start, node_id, identity_id, reason, begin_ns, duration_ns, error, cut, spans, "
                    "kept_spans) VALUES (1, 1763640000, 1, 2, 0, 5, 1000, 0, 0, 1, 1);"
                    "INSERT INTO kept_spans (request_id, span, parent, pid, tier_id, start_ns, duration_ns, self_ns, wait_ns, gc_ns, "
                    "off_cpu_ns, async, outcome) VALUES (1, 0, NULL, '<0.1.0>', 1, 0, 1000, 900, 0, 0, 0, 0, 0)");
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        for (int migrated = 0; migrated < 2; migrated++) {
            struct store *s = fixture_reader();
            struct slow_spans spans;
            struct query_sums sums;
            const struct query all = {INT64_MIN, INT64_MAX, NULL, NULL};
            bool found;
            assert_true(query_slow_spans(s, 1, &found, &spans));
            assert_true(found && spans.count == 1 && !spans.request.origin && spans.part_count == 0 && spans.spans[0].caller == 0);
            slow_spans_free(&spans);
            assert_true(query_sums(s, &all, &sums));
            query_sums_free(&sums);
            store_close(s);
            store_close(fixture_open());
            expect_current();
            fixture_expect("SELECT remote || coalesce(origin, '-') || coalesce(label, '-') FROM slow_requests", "0--");
            fixture_expect("SELECT remote FROM slow_spans", "0");
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define OLDER_TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
        OLDER_TEST(test_readers_read_version_1),
        OLDER_TEST(test_readers_read_versions_from_2_on),
        OLDER_TEST(test_readers_need_no_write_permission),
        OLDER_TEST(test_reader_goes_on_while_a_collector_migrates),
        OLDER_TEST(test_migration_keeps_the_rows),
        OLDER_TEST(test_old_rows_grow_after_the_migration),
        OLDER_TEST(test_a_failed_migration_leaves_version_1),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
