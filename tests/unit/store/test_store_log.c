// SPDX-License-Identifier: Apache-2.0
// The write-ahead log, while somebody reads without a pause: it does not grow for ever.
#include "store_fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "store/internal.h"

enum { COMMITS = 120, BYTES = 1 << 20, PAUSE_NS = 2000000 };

static atomic_bool over;

static void run(sqlite3 *db, const char *sql) {
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    }
}

static sqlite3 *reader(void) {
    sqlite3 *db;
    assert_int_equal(sqlite3_open_v2(fixture_db, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    return db;
}

// Two readers: the next one begins before the one before ends, so that there always is one.
static void *read_on(void *arg) {
    sqlite3 **readers = arg;
    int now = 0;
    run(readers[now], "BEGIN; SELECT count(*) FROM filling");
    while (!over) {
        nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
        run(readers[!now], "BEGIN; SELECT count(*) FROM filling");
        run(readers[now], "COMMIT");
        now = !now;
    }
    run(readers[now], "COMMIT");
    return NULL;
}

static int64_t log_bytes(void) {
    char path[128];
    struct stat st;
    snprintf(path, sizeof path, "%s-wal", fixture_db);
    return stat(path, &st) == 0 ? st.st_size : 0;
}

// Commits of a megabyte; returns the log's size after them.
static int64_t write_on(struct store *s) {
    char sql[80];
    snprintf(sql, sizeof sql, "UPDATE filling SET b = randomblob(%d)", BYTES);
    for (int i = 0; i < COMMITS; i++) {
        run(s->db, sql);
        nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
    }
    return log_bytes();
}

static void test_readers_without_a_pause(void **state) {
    (void)state;
    pthread_t thread;
    struct store *s = fixture_open();
    run(s->db, "CREATE TABLE filling (b); INSERT INTO filling VALUES (0)");
    sqlite3 *readers[2] = {reader(), reader()};
    over = false;
    assert_int_equal(pthread_create(&thread, NULL, read_on, readers), 0);
    int64_t bytes = write_on(s);
    over = true;
    pthread_join(thread, NULL);
    for (int i = 0; i < 2; i++) {
        sqlite3_close(readers[i]);
    }
    // 4000 pages, and what came until the readers were through
    assert_true(bytes < 24 << 20);
    store_close(s);
}

// Who reads for as long as the test takes holds the log up, and nobody waits for it for long. Once
// it is through the log begins anew.
static void test_reader_that_stays(void **state) {
    (void)state;
    struct store *s = fixture_open();
    run(s->db, "CREATE TABLE filling (b); INSERT INTO filling VALUES (0)");
    sqlite3 *stays = reader();
    run(stays, "BEGIN; SELECT count(*) FROM filling");
    char sql[80];
    snprintf(sql, sizeof sql, "UPDATE filling SET b = randomblob(%d)", BYTES);
    while (log_bytes() < 20 << 20) {
        run(s->db, sql);
    }
    run(stays, "COMMIT");
    sqlite3_close(stays);
    run(s->db, sql); // copies all
    for (int i = 0; i < 10; i++) {
        run(s->db, sql);
    }
    assert_true(log_bytes() < 24 << 20);
    store_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_readers_without_a_pause, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_reader_that_stays, fixture_setup, fixture_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
