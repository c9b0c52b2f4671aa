// SPDX-License-Identifier: Apache-2.0
// The exporter beside a writer: what it tells of an engine that is away, well, and wrong; that it
// sends the rest at its end, and does not wait for one that takes nothing.
#include "engine_fixture.h"
#include "store_fixture.h"

#include <time.h>

#include "base/clock.h"
#include "base/limits.h"
#include "export/export.h"

static const int64_t NOON = 1763640000;
enum { PATIENCE_S = 60 };

static struct engine server;
static struct store *store;
static struct writer *writer;
static struct exporter *exporter;
static atomic_bool refuses, slow; // what the engine does
static atomic_bool wants_new;     // password
static atomic_int inserts, twins;
static atomic_int dies_at; // this insert and those behind it get no answer; 0: none
static char url[80];

static void be_engine(void *arg, int fd, const struct engine_request *r) {
    char sql[2000], byte;
    (void)arg;
    snprintf(sql, sizeof sql, "%.*s", (int)r->len, (const char *)r->body);
    if (wants_new && !strstr(r->head, "\r\nX-ClickHouse-Key: new one\r\n")) {
        engine_say(fd, 403, "Code: 516. DB::Exception: Authentication failed");
    } else if (strstr(r->head, "query=INSERT")) {
        int number = ++inserts, dead = dies_at;
        if (dead != 0 && number >= dead) {
            return; // without an answer
        }
        if (slow && read(fd, &byte, 1) <= 0) { // until who asks has enough
            return;
        }
        engine_say(fd, refuses ? 500 : 200, refuses ? "Code: 243. DB::Exception: No space" : "");
    } else if (strstr(sql, "version()")) {
        engine_say(fd, 200, "23.8.1.1\n");
    } else if (strncmp(sql, "EXISTS", 6) == 0) {
        engine_say(fd, 200, "1\n");
    } else if (strstr(sql, "countIf")) {
        char answer[40];
        snprintf(answer, sizeof answer, "%d\t1\n", (int)twins);
        engine_say(fd, 200, answer);
    } else {
        engine_say(fd, 200, "");
    }
}

static int setup(void **state) {
    const struct writer_options options = {.bucket_s = 10};
    fixture_setup(state);
    refuses = slow = wants_new = false;
    inserts = twins = dies_at = 0;
    engine_start(&server, be_engine, NULL);
    snprintf(url, sizeof url, "clickhouse://127.0.0.1:%u/kprof", server.target.port);
    store = fixture_open();
    assert_true(store_follow(store));
    writer = writer_start(store, &options);
    return 0;
}

static int teardown(void **state) {
    exporter_stop(exporter);
    exporter = NULL;
    writer_stop(writer);
    store_close(store);
    engine_stop(&server);
    return fixture_teardown(state);
}

static void start(void) {
    char why[EXPORT_WHY_BYTES];
    const struct export_options o = {
        .url = url, .password = "old one", .name = "one", .database = fixture_db};
    exporter = exporter_start(&o, writer, why);
    assert_non_null(exporter);
}

static void write_one(int64_t bucket) {
    static struct stats *batch;
    batch = stats_new();
    fixture_call(batch, bucket, "create", "db", 1000, false);
    assert_true(writer_submit(writer, batch, &fixture_names));
    assert_true(writer_wait(writer));
    stats_free(batch);
}

// All is due at once.
static void hurry(void) {
    free(fixture_ask(fixture_db, "UPDATE export_marks SET due_s = 0"));
}

static struct export_status status(void) {
    struct export_status s;
    exporter_status(exporter, &s);
    return s;
}

#define AWAIT(condition)                                                                           \
    for (time_t until_ = time(NULL) + PATIENCE_S; !(condition); usleep(20000)) {                   \
        if (time(NULL) > until_) {                                                                 \
            fail_msg("not within a minute: " #condition);                                          \
        }                                                                                          \
    }

static void sent_and_told(void **state) {
    (void)state;
    start();
    write_one(NOON);
    hurry();
    AWAIT(status().rows == 6); // create and _total, at three resolutions
    AWAIT(status().sending);
    assert_string_equal(status().why, "");
    fixture_expect("SELECT count(*) FROM export_marks", "0");
    refuses = true;
    write_one(NOON);
    hurry();
    AWAIT(!status().sending);
    AWAIT(strstr(status().why, "No space"));
    AWAIT(status().marks == 3);
    refuses = false;
    AWAIT(status().sending);
    AWAIT(status().rows == 12);
    assert_int_equal(status().refused, 0);
    assert_false(status().twin);
}

// Another one that was there before this process began is none; one that comes later is.
static void another_of_the_name(void **state) {
    (void)state;
    twins = 1000;
    start();
    write_one(NOON);
    hurry();
    AWAIT(status().rows == 6);
    assert_false(status().twin);
    twins = 1060;
    refuses = true; // after a failure it looks again
    write_one(NOON);
    hurry();
    AWAIT(!status().sending);
    refuses = false;
    AWAIT(status().sending);
    AWAIT(status().twin);
}

static void the_rest_at_its_end(void **state) {
    (void)state;
    start();
    write_one(NOON);
    hurry();
    AWAIT(status().sending && status().rows == 6);
    write_one(clock_wall() / 1000000000 / 10 * 10); // which goes on
    fixture_expect("SELECT count(*) > 0 FROM export_marks", "1");
    exporter_stop(exporter);
    exporter = NULL;
    fixture_expect("SELECT count(*) FROM export_marks", "0");
}

// A backlog of several batches, of whose second one nobody knows whether the engine has it: all
// that was not acknowledged is sent again, and nothing else is remembered as sent.
static void dies_between_two(void **state) {
    (void)state;
    enum { DAYS = 100 }; // of which a batch has LIMIT_EXPORT_BATCH_DAYS
    for (int i = 0; i < DAYS; i++) {
        write_one(NOON + (int64_t)i * 86400);
    }
    hurry();
    dies_at = 2;
    start();
    AWAIT(strlen(status().why) > 0);
    fixture_expect("SELECT count(DISTINCT bucket_start / 86400) FROM export_marks", "79");
    dies_at = 0;
    AWAIT(status().sending && status().marks == 0);
    assert_int_equal(status().rows, 6 * DAYS);
    fixture_expect("SELECT count(*) FROM export_marks", "0");
}

static void no_end_waits_long(void **state) {
    (void)state;
    slow = true;
    start();
    write_one(NOON);
    hurry();
    AWAIT(inserts > 0);
    time_t began = time(NULL);
    exporter_stop(exporter);
    exporter = NULL;
    assert_true(time(NULL) - began < LIMIT_EXPORT_ANSWER_SECONDS / 2);
    fixture_expect("SELECT count(*) FROM export_marks", "3");
}

// Where the engine takes another password now, that is used at once: whatever was asked with the
// old one is asked again.
static void another_password(void **state) {
    (void)state;
    start();
    write_one(NOON);
    hurry();
    AWAIT(status().sending && status().rows == 6);
    wants_new = true;
    write_one(NOON);
    hurry();
    AWAIT(strstr(status().why, "Authentication failed"));
    assert_true(exporter_renew(exporter, "wrong one"));
    assert_true(exporter_renew(exporter, "new one"));
    AWAIT(status().sending && status().rows == 12);
    fixture_expect("SELECT count(*) FROM export_marks", "0");
    assert_true(exporter_renew(exporter, NULL));
    write_one(NOON);
    hurry();
    AWAIT(strstr(status().why, "Authentication failed"));
}

static void nobody_there(void **state) {
    (void)state;
    engine_stop(&server);
    start();
    write_one(NOON);
    AWAIT(status().why[0]);
    assert_false(status().sending);
    exporter_stop(exporter);
    exporter = NULL;
    fixture_expect("SELECT count(*) FROM export_marks", "3");
    engine_start(&server, be_engine, NULL); // for teardown
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {CASE(sent_and_told),       CASE(another_of_the_name),
                                       CASE(the_rest_at_its_end), CASE(dies_between_two),
                                       CASE(no_end_waits_long),   CASE(another_password),
                                       CASE(nobody_there)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
