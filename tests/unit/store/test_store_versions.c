// SPDX-License-Identifier: Apache-2.0
// Files of other versions of the schema: what is refused, and how a file comes to the next version.
#include "store_fixture.h"

#include "base/hash.h"
#include "store/internal.h"

enum { NOON = 1763640000 };

// The version after the last, as a next file of schema/ would bring it.
enum { MOST_STEPS = 100 };
static struct migration with_next[MOST_STEPS];
static int steps; // that and those before it
static const struct views next_views = {
    "DROP VIEW IF EXISTS tier_costs",
    "CREATE VIEW tier_costs AS SELECT messages, joules FROM cost_rows"};

static int setup(void **state) {
    assert_true(store_migration_count < MOST_STEPS);
    memcpy(with_next, store_migrations, (size_t)store_migration_count * sizeof *with_next);
    steps = store_migration_count + 1;
    with_next[steps - 1] =
        (struct migration){store_schema_version + 1,
                           "ALTER TABLE cost_rows ADD COLUMN joules INTEGER NOT NULL DEFAULT 0"};
    return fixture_setup(state);
}

static bool migrated(const struct migration *list, int count) {
    sqlite3 *db;
    char *text = fixture_ask(fixture_db, "PRAGMA user_version");
    int64_t version = strtol(text, NULL, 10);
    free(text);
    assert_int_equal(sqlite3_open(fixture_db, &db), SQLITE_OK);
    bool ok =
        store_migrate(db, version, list, count, list == with_next ? &next_views : &store_views);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return ok;
}

static void expect_version(int version) {
    char text[16];
    snprintf(text, sizeof text, "%d", version);
    fixture_expect("PRAGMA user_version", text);
    fixture_expect("PRAGMA integrity_check", "ok");
}

static void write_cost(void) {
    struct stats *batch = stats_new();
    struct cost_row *row =
        stats_cost(batch, NOON, directory_node(&fixture_names, slice_text("shop@host")),
                   directory_tier(&fixture_names, slice_text("db")));
    row->messages = 7;
    fixture_write(batch);
}

static void test_versions_before_the_first_release_are_refused(void **state) {
    (void)state;
    store_close(fixture_open());
    for (int version = 1; version < store_first_version; version++) {
        char sql[64], said[64], error[STORE_ERROR_BYTES];
        struct store *s;
        snprintf(sql, sizeof sql, "PRAGMA user_version = %d", version);
        free(fixture_ask(fixture_db, sql));
        snprintf(said, sizeof said, "(schema %d, this one knows %d", version, store_first_version);
        for (int reads = 0; reads < 2; reads++) {
            assert_int_equal((reads ? store_open_reader : store_open)(fixture_db, &s, error),
                             STORE_OLDER);
            assert_null(s);
            assert_non_null(strstr(error, fixture_db));
            assert_non_null(strstr(error, said));
            assert_non_null(strstr(error, "kprof replay"));
            assert_null(strchr(error, '\n'));
        }
        expect_version(version);
    }
}

// A reader brings nothing up to date: it says who does.
static void test_older_versions_are_not_read(void **state) {
    (void)state;
    char sql[64], error[STORE_ERROR_BYTES];
    struct store *s;
    store_close(fixture_open());
    snprintf(sql, sizeof sql, "PRAGMA user_version = %d", store_schema_version - 1);
    free(fixture_ask(fixture_db, sql));
    assert_int_equal(store_open_reader(fixture_db, &s, error), STORE_OLDER);
    assert_null(s);
    assert_non_null(strstr(error, "kprof-collector with --db on it"));
    assert_null(strchr(error, '\n'));
}

static void test_the_next_version_keeps_the_rows(void **state) {
    (void)state;
    write_cost();
    assert_true(migrated(with_next, steps));
    expect_version(store_schema_version + 1);
    fixture_expect("SELECT group_concat(messages || ':' || joules) FROM tier_costs", "7:0,7:0,7:0");
    assert_true(migrated(with_next, steps)); // there is nothing left to do
    expect_version(store_schema_version + 1);
}

static void test_a_new_file_goes_through_all_of_them(void **state) {
    (void)state;
    assert_true(migrated(with_next, steps));
    expect_version(store_schema_version + 1);
    fixture_expect("SELECT count(joules) FROM tier_costs", "0");
}

// A file of version 8: what is known of its profiles stays, and nothing else is said of them. Its
// views become those of now, and a view of somebody's own stays.
static void test_profiles_of_version_8(void **state) {
    (void)state;
    int until = 0;
    while (store_migrations[until].version < 9) {
        until++;
    }
    assert_true(migrated(store_migrations, until));
    expect_version(8);
    free(fixture_ask(fixture_db, "INSERT INTO node_names (id, name) VALUES (1, 'shop@host');"));
    static const char *const settings[] = {"{\"functions\":12,\"scheduling\":false}",
                                           "{\"scheduling\":true}", "{}", "no JSON"};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        char sql[500];
        snprintf(sql, sizeof sql,
                 "INSERT INTO profile_rows VALUES (NULL, 0, '', 1, 1, 2, '%s', 3, 0, 0, 0, 0, 1, "
                 "5, 0, 7, 0, 0, 0, 0, NULL, 0)",
                 settings[i]);
        free(fixture_ask(fixture_db, sql));
    }
    free(fixture_ask(fixture_db, "DROP VIEW tier_costs"));
    free(fixture_ask(fixture_db, "CREATE VIEW tier_costs AS SELECT 1 AS old"));
    free(fixture_ask(fixture_db, "CREATE VIEW mine AS SELECT messages FROM tier_costs"));
    assert_true(migrated(store_migrations, store_migration_count));
    expect_version(store_schema_version);
    fixture_expect("SELECT count(messages) FROM mine", "0");
    fixture_expect("SELECT group_concat(asleep_in_self || gc_in_self || ' ' || functions || ' ' || "
                   "messages || ' ' || bytes || patterns_ms || otp) FROM profiles",
                   "11 12 5 00,00 0 5 00,00 0 5 00,00 0 5 00");
}

// The stored form of a histogram of one value.
static struct buffer one_of(uint64_t ns) {
    struct histogram h = {0};
    struct buffer out = buffer_make(1024);
    assert_true(histogram_add(&h, ns) && histogram_write(&h, &out));
    histogram_free(&h);
    return out;
}

// Runs a statement with a blob for ?1.
static void insert_with(const char *sql, struct buffer blob) {
    sqlite3 *db;
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_open(fixture_db, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    sqlite3_bind_blob(statement, 1, blob.data, (int)blob.len, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(statement), SQLITE_DONE);
    sqlite3_finalize(statement);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

// A file from before waiting was told apart: what it says of older buckets is that it is not known,
// also of one that goes on.
static void test_waiting_of_older_files(void **state) {
    (void)state;
    int until = 0;
    while (!strstr(store_migrations[until].sql, "ADD COLUMN waiting_ns")) {
        until++;
    }
    assert_true(migrated(store_migrations, until));
    static const char *const names[] = {
        "node_names VALUES (1, 'shop@host')", "identity_names VALUES (1, 'buy')",
        "tier_names VALUES (1, '_total')", "path_names VALUES (1, 'db')"};
    char sql[500];
    for (int i = 0; i < 4; i++) {
        snprintf(sql, sizeof sql, "INSERT INTO %s", names[i]);
        free(fixture_ask(fixture_db, sql));
    }
    static const int sizes[] = {10, 60, 3600};
    struct buffer histogram = one_of(9000);
    for (int i = 0; i < 3; i++) {
        snprintf(sql, sizeof sql,
                 "INSERT INTO stat_rows VALUES (%d, %d, 1, 1, 1, 1, 1, 0, 0, 9000, 9000, 0, 9000, "
                 "81e6, 0, 0, 0, 9000, 9000, 0, 0, 0, 0, 0, 0, 0, 0, ?1)",
                 sizes[i], NOON);
        insert_with(sql, histogram);
        snprintf(sql, sizeof sql,
                 "INSERT INTO path_rows VALUES (%d, %d, 1, 1, 1, 1, 0, 0, 5000, 5000, 0, 0, 5000, "
                 "5000, 5000)",
                 sizes[i], NOON);
        free(fixture_ask(fixture_db, sql));
    }
    buffer_free(&histogram);
    store_close(fixture_open());
    expect_version(store_schema_version);
    fixture_expect("SELECT group_concat(resolution_s || coalesce(waiting_us, '?') || "
                   "coalesce(parallel_us, '?')) FROM tier_stats",
                   "10??,60??,3600??");
    for (int i = 0; i < 2; i++) {
        struct stats *batch = stats_new();
        struct stat_row *row = fixture_row(batch, NOON + 60 * i, "shop@host", "buy", "_total");
        row->waiting_ns = 700, row->parallel_ns = 300, row->self_ns = 1000;
        stats_count(row, 5000);
        fixture_path_call(batch, NOON + 60 * i, "buy", fixture_path("db"), 2000)->waiting_ns = 700;
        fixture_write(batch);
    }
    fixture_expect(
        "SELECT group_concat(x, ' ') FROM (SELECT resolution_s || ':' || calls || ':' || self_us "
        "|| ':' || coalesce(waiting_us, '?') || ':' || coalesce(parallel_us, '?') AS x "
        "FROM tier_stats ORDER BY resolution_s, bucket_start)",
        "10:2:10.0:?:? 10:1:1.0:0.7:0.3 60:2:10.0:?:? 60:1:1.0:0.7:0.3 3600:3:11.0:?:?");
    fixture_expect(
        "SELECT group_concat(x, ' ') FROM (SELECT identity || resolution_s || ':' || calls || ':' || "
        "coalesce(waiting_us, '?') AS x FROM path_stats WHERE resolution_s > 10 "
        "ORDER BY identity, resolution_s, bucket_start)",
        "_total60:2:? _total60:1:0.7 _total3600:3:? buy60:2:? buy60:1:0.7 buy3600:3:?");
}

// A step may drop a column that a view of the version before names.
static void test_no_view_is_in_the_way(void **state) {
    (void)state;
    write_cost();
    with_next[steps - 1].sql = "ALTER TABLE cost_rows DROP COLUMN stale_calls;"
                               "ALTER TABLE cost_rows ADD COLUMN joules INTEGER";
    assert_true(migrated(with_next, steps));
    fixture_expect("SELECT group_concat(messages) FROM tier_costs", "7,7,7");
}

// Databases that are there get a change of a view with a new version alone.
static void test_views_change_with_the_version(void **state) {
    (void)state;
    enum { VERSION = 18, VIEWS = 0x054cce28 }; // what views.sql is then
    uint32_t views = (uint32_t)(hash_bytes(slice_text(store_views.make)) >> 32);
    if (store_schema_version != VERSION || views != VIEWS) {
        fail_msg("views.sql or the version has changed: with a new numbered file in schema/, write "
                 "%d and %#010x here",
                 store_schema_version, views);
    }
}

// Here a table of somebody's own is in its way.
static void test_a_step_that_fails_changes_nothing(void **state) {
    (void)state;
    write_cost();
    with_next[steps - 1].sql = "CREATE TABLE joules (a); CREATE TABLE mine (a)";
    free(fixture_ask(fixture_db, "CREATE TABLE mine (b)"));
    char *before = fixture_ask(fixture_db, "SELECT group_concat(sql) FROM sqlite_schema");
    assert_false(migrated(with_next, steps));
    expect_version(store_schema_version);
    fixture_expect("SELECT group_concat(sql) FROM sqlite_schema", before);
    fixture_expect("SELECT sum(messages) FROM tier_costs", "21");
    free(before);
}

// The last of several steps fails: none of those before it stays.
static void test_all_steps_or_none(void **state) {
    (void)state;
    with_next[steps - 1].sql = "CREATE TABLE joules (a); CREATE TABLE joules (b)";
    assert_false(migrated(with_next, steps)); // of a new file
    expect_version(0);
    fixture_expect("SELECT count(*) FROM sqlite_schema", "0");
    assert_true(migrated(store_migrations, 1));
    char *before = fixture_ask(fixture_db, "SELECT group_concat(sql) FROM sqlite_schema");
    assert_false(migrated(with_next, steps));
    expect_version(store_first_version);
    fixture_expect("SELECT group_concat(sql) FROM sqlite_schema", before);
    free(before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define VERSION_TEST(f) cmocka_unit_test_setup_teardown(f, setup, fixture_teardown)
        VERSION_TEST(test_versions_before_the_first_release_are_refused),
        VERSION_TEST(test_older_versions_are_not_read),
        VERSION_TEST(test_the_next_version_keeps_the_rows),
        VERSION_TEST(test_a_new_file_goes_through_all_of_them),
        VERSION_TEST(test_profiles_of_version_8),
        VERSION_TEST(test_waiting_of_older_files),
        VERSION_TEST(test_no_view_is_in_the_way),
        VERSION_TEST(test_views_change_with_the_version),
        VERSION_TEST(test_a_step_that_fails_changes_nothing),
        VERSION_TEST(test_all_steps_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
