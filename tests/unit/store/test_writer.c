// SPDX-License-Identifier: Apache-2.0
// writer.c: the thread, batches that wait, a disk that refuses for a while.
#include "store_fixture.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "base/log.h"
#include "store/internal.h"
#include "store/writer.h"

enum { NOON = 1763640000 };

static atomic_int done_calls;

static void done(void *arg) {
    assert_ptr_equal(arg, &done_calls);
    done_calls++;
}

static struct writer *start(struct store *s) {
    done_calls = 0;
    struct writer *w =
        writer_start(s, &(struct writer_options){.bucket_s = 10, .done = done, .arg = &done_calls});
    assert_non_null(w);
    return w;
}

static struct stats *one_call(void) {
    struct stats *batch = stats_new();
    fixture_call(batch, NOON, "create", "db", 1000, false);
    return batch;
}

static const char all_calls[] =
    "SELECT calls FROM tier_stats WHERE resolution_s = 3600 AND identity = 'create'";

static void test_batches_are_taken_one_by_one(void **state) {
    (void)state;
    struct store *s = fixture_open();
    struct writer *w = start(s);
    struct stats *batch = one_call();
    assert_true(writer_idle(w));
    for (int i = 1; i <= 20; i++) {
        assert_true(writer_submit(w, batch, &fixture_names));
        assert_true(writer_wait(w));
        assert_true(writer_idle(w));
    }
    assert_true(writer_stop(w));
    assert_int_equal(done_calls, 20);
    store_close(s);
    fixture_expect(all_calls, "20");
    stats_free(batch);
}

static void test_stop_writes_what_was_submitted(void **state) {
    (void)state;
    struct store *s = fixture_open();
    struct writer *w = start(s);
    struct stats *batch = one_call();
    assert_true(writer_submit(w, batch, &fixture_names));
    assert_true(writer_stop(w));
    store_close(s);
    fixture_expect(all_calls, "1");
    assert_true(writer_stop(NULL));
    stats_free(batch);
}

// The database's write lock in somebody else's hands: as with a full disk, nothing can be written.
static sqlite3 *locked(struct store *s) {
    sqlite3 *other;
    sqlite3_busy_timeout(s->db, 10);
    assert_int_equal(sqlite3_open(fixture_db, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    return other;
}

// A batch may be in several sets, of which some are empty.
static void test_sets_are_one_batch(void **state) {
    (void)state;
    struct store *s = fixture_open();
    sqlite3 *other = locked(s);
    struct writer *w = start(s);
    struct stats *sets[] = {one_call(), stats_new(), one_call()};
    const struct stats *batch[] = {sets[0], sets[1], sets[2]};
    assert_true(writer_submit_sets(w, batch, 3, &fixture_names));
    assert_false(writer_wait(w));
    fixture_expect(all_calls, "");
    sqlite3_close(other);
    writer_retry(w);
    assert_true(writer_wait(w));
    fixture_expect(all_calls, "2");
    batch[0] = batch[2] = sets[1];
    assert_true(writer_submit_sets(w, batch, 3, &fixture_names));
    assert_true(writer_stop(w));
    store_close(s);
    fixture_expect(all_calls, "2");
    for (int i = 0; i < 3; i++) {
        stats_free(sets[i]);
    }
}

// The batch waits in memory.
static void test_refused_batch_is_kept_and_written_once(void **state) {
    (void)state;
    struct store *s = fixture_open();
    sqlite3 *other = locked(s);
    struct writer *w = start(s);
    struct stats *batch = one_call();
    assert_int_equal(writer_refused_s(w), 0);
    assert_true(writer_submit(w, batch, &fixture_names));
    assert_false(writer_wait(w));
    for (int i = 0; i < 3; i++) {
        assert_false(writer_submit(w, batch, &fixture_names)); // nothing taken
        writer_retry(w);
        assert_false(writer_wait(w));
        assert_false(writer_idle(w));
        assert_true(writer_refused_s(w) > 0);
    }
    assert_int_equal(done_calls, 0);
    sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL);
    assert_false(writer_submit(w, batch, &fixture_names));
    assert_false(writer_wait(w)); // it waits to be told
    writer_retry(w);
    assert_true(writer_wait(w));
    for (int i = 0; i < 3; i++) { // there is nothing left to be tried
        writer_retry(w);
        assert_true(writer_idle(w));
    }
    assert_int_equal(writer_refused_s(w), 0);
    assert_true(writer_submit(w, batch, &fixture_names));
    assert_true(writer_stop(w));
    assert_int_equal(done_calls, 2);
    sqlite3_close(other);
    store_close(s);
    fixture_expect(all_calls, "2");
    stats_free(batch);
}

// As the collector does: what it hands over stands in the file once, whenever the writer ends in
// between.
static void test_each_batch_is_written_once(void **state) {
    (void)state;
    enum { BATCHES = 100 };
    char wanted[16];
    int handed_over = 0;
    struct store *s = fixture_open();
    struct writer *w = start(s);
    struct stats *batch = one_call();
    while (handed_over < BATCHES) {
        if (!writer_idle(w)) {
            writer_retry(w);
        } else {
            assert_true(writer_submit(w, batch, &fixture_names));
            handed_over++;
        }
    }
    assert_true(writer_stop(w));
    store_close(s);
    snprintf(wanted, sizeof wanted, "%d", BATCHES);
    fixture_expect(all_calls, wanted);
    stats_free(batch);
}

static void test_stop_says_when_the_last_batch_is_lost(void **state) {
    (void)state;
    struct store *s = fixture_open();
    sqlite3 *other = locked(s);
    struct writer *w = start(s);
    struct stats *batch = one_call();
    assert_true(writer_submit(w, batch, &fixture_names));
    assert_false(writer_stop(w));
    sqlite3_close(other);
    store_close(s);
    stats_free(batch);
}

static const char old_rows[] = "SELECT count(*) FROM tier_stats WHERE bucket_start < '2010'";

// A database with data of the year 2001, and with what is of today or not.
static struct store *with_old_rows(bool of_today) {
    struct store *s = fixture_open();
    struct stats *batch = stats_new();
    fixture_call(batch, 1000000000, "create", "db", 1000, false);
    if (of_today) {
        fixture_call(batch, clock_wall() / 1000000000 / 10 * 10, "create", "db", 1000, false);
    }
    assert_true(store_write(s, 10, batch, &fixture_names));
    stats_free(batch);
    return s;
}

static void test_old_rows_go_by_themselves(void **state) {
    (void)state;
    struct store *s = with_old_rows(true);
    struct writer *w = start(s);
    char *left = NULL;
    for (int i = 0; i < 3000 && (!left || strcmp(left, "0") != 0); i++) {
        usleep(20000);
        free(left);
        left = fixture_ask(fixture_db, old_rows);
    }
    assert_string_equal(left, "0");
    free(left);
    assert_true(writer_stop(w));
    store_close(s);
}

// Runs the writer until a line of the log has the text.
static void run_until_told(struct store *s, const char *text) {
    char path[128], logged[4096] = "";
    snprintf(path, sizeof path, "%s/log", fixture_dir);
    fflush(stderr);
    int before = dup(STDERR_FILENO);
    FILE *log = fopen(path, "w+e");
    assert_non_null(log);
    dup2(fileno(log), STDERR_FILENO);
    struct writer *w = start(s);
    for (int i = 0; i < 3000 && !strstr(logged, text); i++) {
        usleep(20000);
        rewind(log);
        logged[fread(logged, 1, sizeof logged - 1, log)] = 0;
    }
    bool stopped = writer_stop(w);
    dup2(before, STDERR_FILENO);
    close(before);
    fclose(log);
    assert_true(stopped);
    assert_non_null(strstr(logged, text));
}

// The clock may be wrong, as that of a machine without a battery is until it has asked for the
// time.
static void test_a_leap_of_the_clock_deletes_nothing(void **state) {
    (void)state;
    struct store *s = with_old_rows(false);
    run_until_told(s, "the clock is suddenly ");
    store_close(s);
    fixture_expect(old_rows, "6"); // of two identities at three resolutions
}

static void test_what_cannot_be_deleted_is_told(void **state) {
    (void)state;
    struct store *s = with_old_rows(true);
    assert_int_equal(
        sqlite3_exec(
            s->db,
            "CREATE TRIGGER t BEFORE DELETE ON stat_rows BEGIN SELECT RAISE(ABORT, 'stuck'); END",
            NULL, NULL, NULL),
        SQLITE_OK);
    run_until_told(s, "error database: old data is not deleted (delete old rows: stuck)");
    store_close(s);
}

// -- the file's place -----------------------------------------------------------------------------

static void in_shell(const char *format) {
    char command[512];
    snprintf(command, sizeof command, "cd %s && %s", fixture_dir, format);
    assert_int_equal(system(command), 0);
}

// Batches of one call, each written.
static void write_calls(struct writer *w, struct stats *batch, int count) {
    for (int i = 0; i < count; i++) {
        assert_true(writer_submit(w, batch, &fixture_names));
        assert_true(writer_wait(w));
    }
}

static void expect_calls_in(const char *file, const char *expected) {
    char path[sizeof fixture_db], before[sizeof fixture_db];
    memcpy(before, fixture_db, sizeof before);
    snprintf(path, sizeof path, "%.60s/%.30s", fixture_dir, file);
    memcpy(fixture_db, path, sizeof path);
    fixture_expect("PRAGMA integrity_check", "ok");
    fixture_expect(all_calls, expected);
    memcpy(fixture_db, before, sizeof before);
}

// The writer looks at the file at the begin of each second: waits until it has done so, and gives
// that second.
static int64_t wait_for_a_second(void) {
    enum { S = 1000000000 };
    usleep((useconds_t)((S - clock_monotonic() % S) / 1000 + 20000));
    return clock_monotonic() / S;
}

// What people do to the file of a running collector, and where the calls stand that were written
// before and after.
static void test_out_of_place(void **state) {
    static const struct {
        // before: in `old`, when that is there; after: in the file
        const char *what, *before, *after;
    } cases[] = {
        {"mv kprof.db old", "3", "2"},
        {"for f in kprof.db kprof.db-wal kprof.db-shm; do mv $f old${f#kprof.db}; done", "3", "2"},
        {"rm kprof.db", NULL, "2"},
        {"rm kprof.db kprof.db-wal kprof.db-shm", NULL, "2"},
        {"mv kprof.db old; : >kprof.db", "3", "2"},
        {"mv kprof.db old; cp old kprof.db", "3", "2"},
        {"cp other.db x && mv x kprof.db", NULL, "3"},
        {"rm kprof.db-wal", NULL, "5"},
        {"mv kprof.db-wal x", NULL, "5"},
        {": >kprof.db-wal", NULL, "2"},
        {"truncate -s 5000 kprof.db-wal", NULL, "2"},
        {": >kprof.db", NULL, "2"},
        {"truncate -s 0 kprof.db && sqlite3 -readonly kprof.db 'SELECT 1' >x", NULL, "2"},
        {"sqlite3 kprof.db 'VACUUM; PRAGMA wal_checkpoint(FULL)' >x", NULL, "5"}};
    (void)state;
    struct stats *batch = one_call();
    fixture_write(one_call());
    in_shell("mv kprof.db other.db"); // another one, with a call
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        in_shell("rm -f kprof.db* old* x");
        store_close(fixture_open()); // its tables are in the file itself
        struct store *s = fixture_open();
        struct writer *w = start(s);
        write_calls(w, batch, 2);
        assert_int_equal(store_look(s), STORE_IN_PLACE);
        int64_t second = wait_for_a_second();
        write_calls(w, batch, 1); // it looks before a write, too, if it has not done so
        in_shell(cases[i].what);
        // the writer may have looked at what was half done: once more
        if (clock_monotonic() / 1000000000 != second) {
            assert_true(writer_stop(w));
            store_close(s);
            i--;
            continue;
        }
        write_calls(w, batch, 2);
        assert_int_equal(store_look(s), STORE_IN_PLACE);
        assert_true(writer_stop(w));
        store_close(s);
        if (cases[i].before) {
            expect_calls_in("old", cases[i].before);
        }
        expect_calls_in("kprof.db", cases[i].after);
        in_shell("test ! -e kprof.db-lock && test ! -e kprof.db-wal");
    }
    stats_free(batch);
}

// A part of the file is gone, or something else stands in it: nothing can be written until somebody
// takes it away, and that is told.
static void test_a_file_that_was_cut(void **state) {
    static const char *const cases[] = {
        "truncate -s 8192 kprof.db",
        "printf 'something else' | dd of=kprof.db conv=notrunc status=none"};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct stats *batch = one_call();
        in_shell("rm -f kprof.db*");
        store_close(fixture_open());
        struct store *s = fixture_open();
        struct writer *w = start(s);
        write_calls(w, batch, 1);
        in_shell(cases[i]);
        assert_true(writer_submit(w, batch, &fixture_names));
        assert_false(writer_wait(w));
        in_shell("rm kprof.db");
        writer_retry(w);
        assert_true(writer_wait(w));
        assert_true(writer_stop(w));
        store_close(s);
        expect_calls_in("kprof.db", "1");
        stats_free(batch);
    }
}

// SQLite has its log beside the file that a link leads to.
static void test_a_link_to_the_file(void **state) {
    (void)state;
    struct stats *batch = one_call();
    in_shell("mkdir away more && ln -s away/real.db kprof.db");
    struct store *s = fixture_open();
    struct writer *w = start(s);
    for (int i = 0; i < 3; i++) {
        write_calls(w, batch, 1);
        assert_int_equal(store_look(s), STORE_IN_PLACE);
    }
    in_shell("test -s away/real.db-wal && : >away/real.db-wal");
    write_calls(w, batch, 1);
    in_shell("ln -sf more/real.db kprof.db");
    write_calls(w, batch, 2);
    assert_true(writer_stop(w));
    store_close(s);
    expect_calls_in("away/real.db", "1");
    expect_calls_in("more/real.db", "2");
    stats_free(batch);
}

// Without anything to write it is noticed all the same; what cannot be opened is tried again, and
// the way back is taken.
static void test_the_way_back(void **state) {
    (void)state;
    struct store *s = fixture_open();
    struct writer *w = start(s);
    struct stats *batch = one_call();
    write_calls(w, batch, 1);
    in_shell(
        "mv kprof.db old && echo 'a diary, longer than the header of a database has to be' >kprof.db");
    struct stat st = {0};
    char old[sizeof fixture_db + 8], wal[sizeof fixture_db + 8];
    snprintf(old, sizeof old, "%.60s/old", fixture_dir);
    snprintf(wal, sizeof wal, "%s-wal", fixture_db);
    // it is left within a second: its log is in it then
    for (int i = 0; i < 500 && stat(wal, &st) == 0; i++) {
        usleep(20000);
    }
    assert_int_not_equal(stat(wal, &st), 0);
    assert_true(writer_submit(w, batch, &fixture_names));
    assert_false(writer_wait(w)); // somebody's file, that is not touched
    in_shell("grep -q diary kprof.db && mv kprof.db diary && mkdir away && mv old away/old");
    writer_retry(w);
    assert_true(writer_wait(w)); // a new one
    in_shell("mv away/old kprof.db");
    write_calls(w, batch, 1);
    assert_true(writer_stop(w));
    store_close(s);
    expect_calls_in("kprof.db", "2");
    stats_free(batch);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define WRITER_TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
        WRITER_TEST(test_batches_are_taken_one_by_one),
        WRITER_TEST(test_sets_are_one_batch),
        WRITER_TEST(test_stop_writes_what_was_submitted),
        WRITER_TEST(test_refused_batch_is_kept_and_written_once),
        WRITER_TEST(test_out_of_place),
        WRITER_TEST(test_a_file_that_was_cut),
        WRITER_TEST(test_a_link_to_the_file),
        WRITER_TEST(test_the_way_back),
        WRITER_TEST(test_each_batch_is_written_once),
        WRITER_TEST(test_stop_says_when_the_last_batch_is_lost),
        WRITER_TEST(test_old_rows_go_by_themselves),
        WRITER_TEST(test_a_leap_of_the_clock_deletes_nothing),
        WRITER_TEST(test_what_cannot_be_deleted_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
