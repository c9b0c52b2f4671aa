// SPDX-License-Identifier: Apache-2.0
// What has changed for an export: marked with what changes it, due when it should be, read with its
// rows, taken away only when it has not changed since, and counted where it went unsent.
#include "store_fixture.h"

#include <pthread.h>

#include "base/clock.h"
#include "store/changes.h"
#include "store/internal.h"
#include "store/retention.h"
#include "store/writer.h"

static const int64_t NOON = 1763640000, SECOND = 1000000000;
enum { MANY = 64 };

// The time of day, seconds since 1970 UTC; 0: as it is.
static int64_t wall_s;

int __real_clock_gettime(clockid_t id, struct timespec *out);
int __wrap_clock_gettime(clockid_t id, struct timespec *out);

int __wrap_clock_gettime(clockid_t id, struct timespec *out) {
    int rc = __real_clock_gettime(id, out);
    if (id == CLOCK_REALTIME && wall_s != 0) {
        *out = (struct timespec){.tv_sec = wall_s};
    }
    return rc;
}

static void count_at(int64_t bucket, const char *identity, uint64_t ns) {
    struct stats *batch = stats_new();
    fixture_call(batch, bucket, identity, "db", ns, false);
    fixture_ledger(batch, bucket)->requests_complete = 1;
    fixture_write(batch);
}

static void follow(void) {
    struct store *s = fixture_open();
    assert_true(store_follow(s));
    assert_true(store_followed(s));
    store_close(s);
}

static struct changes *opened(void) {
    char error[STORE_ERROR_BYTES];
    struct changes *c = changes_open(fixture_db, error);
    if (!c) {
        fail_msg("%s", error);
    }
    return c;
}

// The marks due at a time: "resolution:bucket - NOON" of each.
static void expect_due(int64_t now_s, const char *wanted) {
    struct change due[MANY];
    char text[40 * MANY] = "";
    struct changes *c = opened();
    int count = changes_due(c, now_s, due, MANY);
    assert_true(count >= 0);
    for (int i = 0; i < count; i++) {
        sprintf(text + strlen(text), "%s%u:%lld", i > 0 ? " " : "", due[i].resolution_s,
                (long long)(due[i].bucket_start - NOON));
    }
    assert_string_equal(text, wanted);
    changes_close(c);
}

static void nothing_unless_followed(void **state) {
    (void)state;
    int64_t id;
    count_at(NOON, "create", 1000);
    fixture_expect("SELECT count(*) FROM export_marks", "0");
    struct changes *c = opened();
    assert_false(changes_database(c, &id));
    changes_close(c);
}

static void marked_with_what_changes(void **state) {
    (void)state;
    int64_t now = clock_wall() / SECOND;
    follow();
    count_at(NOON + 20, "create", 1000);
    // three resolutions, and none of requests that are kept whole
    expect_due(now + 90, "60:0 3600:0 10:20");
    struct stats *batch = stats_new();
    struct kept_request r = fixture_request(NOON + 20, "create", KEPT_OVER, 5000, 2);
    fixture_keep(batch, &r);
    fixture_write(batch);
    expect_due(now + 90, "60:0 3600:0 0:20 10:20");
    // whatever of a bucket changes marks it
    free(fixture_ask(fixture_db, "DELETE FROM export_marks"));
    batch = stats_new();
    fixture_path_call(batch, NOON + 70, "create", fixture_path("http"), 10);
    fixture_write(batch);
    expect_due(now + 90, "3600:0 60:60 10:70");
    batch = stats_new();
    stats_cost(batch, NOON + 130, 0, 0)->calls = 1;
    fixture_write(batch);
    batch = stats_new();
    fixture_ledger(batch, NOON + 250)->trips = 1;
    fixture_write(batch);
    expect_due(now + 90, "3600:0 60:60 10:70 60:120 10:130 60:240 10:250");
}

// A bucket of long ago has to wait for more of it; one that goes on is sent every minute.
static void due_when_it_is_over(void **state) {
    (void)state;
    follow();
    int64_t now = clock_wall() / SECOND; // before it is written
    count_at(NOON, "create", 1000);
    expect_due(now + 4, "");
    expect_due(now + 60, "10:0 60:0 3600:0");
    free(fixture_ask(fixture_db, "DELETE FROM export_marks"));
    now = clock_wall() / SECOND;
    int64_t hour = floor_to(now, 3600);
    struct stats *batch = stats_new();
    fixture_call(batch, floor_to(now, 10), "create", "db", 10, false);
    fixture_write(batch);
    char sql[200];
    snprintf(
        sql, sizeof sql,
        "SELECT due_s - %lld BETWEEN 1 AND 127 FROM export_marks WHERE bucket_start = %lld AND "
        "resolution_s = 3600",
        (long long)now, (long long)hour);
    fixture_expect(sql, "1");
    snprintf(sql, sizeof sql,
             "SELECT due_s - %lld BETWEEN 5 AND 75 FROM export_marks WHERE resolution_s = 10",
             (long long)floor_to(now, 10));
    fixture_expect(sql, "1");
    // more of it does not put it off
    char *before =
        fixture_ask(fixture_db, "SELECT due_s FROM export_marks WHERE resolution_s = 10");
    sleep(1);
    batch = stats_new();
    fixture_call(batch, floor_to(now, 10), "create", "db", 10, false);
    fixture_write(batch);
    fixture_expect("SELECT due_s FROM export_marks WHERE resolution_s = 10", before);
    free(before);
    // and a clock that was set back puts nothing off for long
    free(fixture_ask(fixture_db, "UPDATE export_marks SET due_s = due_s + 86400"));
    struct changes *c = opened();
    struct change due[MANY];
    assert_int_equal(changes_due(c, now, due, MANY), 3);
    changes_close(c);
}

// The hour goes on, and is sent a few seconds after each minute's end. What began since that end
// goes with it, or the engine would have more in the hour than in its minutes.
static void an_hour_is_never_ahead(void **state) {
    (void)state;
    const int64_t MINUTE = NOON + 600;
    follow();
    wall_s = MINUTE - 20;
    count_at(MINUTE - 20, "create", 1000);
    expect_due(MINUTE + 4, "10:580");
    wall_s = MINUTE + 2;
    count_at(MINUTE, "create", 1000);
    expect_due(MINUTE + 5, "3600:0 60:540 10:580 10:600 60:600");
    // and what comes later with the next
    free(fixture_ask(fixture_db, "DELETE FROM export_marks"));
    wall_s = MINUTE + 6;
    count_at(MINUTE, "create", 1000);
    expect_due(MINUTE + 14, "");
    expect_due(MINUTE + 15, "10:600");
    expect_due(MINUTE + 65, "3600:0 10:600 60:600");
    wall_s = 0;
}

// What stood in the file before is sent too, as is what is written to one in its place.
static void history_is_marked(void **state) {
    (void)state;
    count_at(NOON, "create", 1000);
    struct stats *batch = stats_new();
    struct kept_request r = fixture_request(NOON, "create", KEPT_OVER, 5000, 2);
    fixture_keep(batch, &r);
    fixture_write(batch);
    follow();
    expect_due(clock_wall() / SECOND, "0:0 10:0 60:0 3600:0");
    struct store *s = fixture_open();
    assert_true(store_unfollow(s));
    assert_false(store_followed(s));
    store_close(s);
    fixture_expect("SELECT count(*) FROM export_marks", "0");
}

// A new file at the same path is followed from its first batch on, and is not taken for the old
// one.
static void in_another_file(void **state) {
    (void)state;
    struct store *s = fixture_open();
    struct stats *batch = stats_new();
    assert_true(store_follow(s));
    char *before = fixture_ask(fixture_db, "SELECT database_id FROM export_state");
    assert_int_equal(unlink(fixture_db), 0);
    assert_int_equal(store_reopen(s, store_look(s)), STORE_OK);
    fixture_call(batch, NOON, "create", "db", 1000, false);
    assert_true(store_write(s, 10, batch, &fixture_names));
    fixture_expect("SELECT count(*) FROM export_marks", "3");
    char *after = fixture_ask(fixture_db, "SELECT database_id FROM export_state");
    assert_string_not_equal(before, after);
    free(before);
    free(after);
    store_close(s);
    stats_free(batch);
}

static struct change_report report_of(const struct change *sent, uint32_t count) {
    struct change_report report = {.sent = sent, .sent_count = count};
    struct changes *c = opened();
    assert_true(changes_database(c, &report.database_id));
    changes_close(c);
    return report;
}

static void tell(const struct change_report *report) {
    struct store *s = fixture_open();
    if (!store_sent(s, report)) {
        fail_msg("%s", store_error(s));
    }
    store_close(s);
}

static void changed_since_stays(void **state) {
    (void)state;
    struct change due[MANY];
    int64_t now = clock_wall() / SECOND;
    follow();
    count_at(NOON, "create", 1000);
    struct changes *c = opened();
    int count = changes_due(c, now + 90, due, MANY);
    changes_close(c);
    assert_int_equal(count, 3);
    count_at(NOON + 10, "create", 1000); // another bucket of 10 s, of the same minute and hour
    struct change_report report = report_of(due, 3);
    struct change_report foreign = report;
    foreign.database_id++;
    tell(&foreign);
    fixture_expect("SELECT count(*) FROM export_marks", "4");
    tell(&report);
    expect_due(now + 90, "60:0 3600:0 10:10");
    // a revision never comes twice, and grows although the clock does not
    free(fixture_ask(fixture_db, "UPDATE export_state SET revision = 9000000000000"));
    count_at(NOON, "create", 1000);
    count_at(NOON + 30, "create", 1000);
    fixture_expect("SELECT group_concat(revision, ' ') FROM (SELECT revision FROM export_marks "
                   "WHERE resolution_s = 10 AND bucket_start % 30 = 0 ORDER BY bucket_start)",
                   "9000000000001 9000000000002");
    expect_due(now + 90, "10:0 60:0 3600:0 10:10 10:30");
}

struct seen {
    char text[2000];
    int most;
    enum change_table table;
};

static bool see(void *to, const struct change_cell *cells, const struct change_place *at) {
    struct seen *seen = to;
    const struct change_shape *shape = change_shape(seen->table);
    (void)at;
    if (seen->most-- == 0) {
        return false;
    }
    for (int i = 0; i < shape->count; i++) {
        char *end = seen->text + strlen(seen->text);
        const char *name = shape->columns[i].name;
        switch (shape->columns[i].kind) {
        case CHANGE_NAME:
        case CHANGE_TEXT:
            sprintf(end, "%s=%.*s ", name, (int)cells[i].bytes.len,
                    (const char *)cells[i].bytes.data);
            break;
        case CHANGE_COUNTS:
            assert_true(histogram_valid(cells[i].bytes));
            break;
        case CHANGE_REAL:
            sprintf(end, "%s=%g ", name, cells[i].real);
            break;
        default:
            if (cells[i].null) {
                sprintf(end, "%s=- ", name);
            } else if (cells[i].number != 0) {
                sprintf(end, "%s=%lld ", name, (long long)cells[i].number);
            }
        }
    }
    strcat(seen->text, "\n");
    return true;
}

static void expect_rows(enum change_table table, const struct change *of, const char *wanted) {
    struct changes *c = opened();
    // whole, and row by row
    struct seen whole = {.most = -1, .table = table}, parts = {.table = table};
    struct change_place place = CHANGE_START;
    assert_true(changes_begin(c));
    if (changes_read(c, table, of, &place, see, &whole) != CHANGE_ALL) {
        fail_msg("%s", changes_error(c));
    }
    assert_string_equal(changes_error(c), "");
    place = CHANGE_START;
    for (enum change_read read = CHANGE_MORE; read == CHANGE_MORE;) {
        parts.most = 1;
        read = changes_read(c, table, of, &place, see, &parts);
        assert_int_not_equal(read, CHANGE_FAILED);
    }
    changes_end(c);
    changes_close(c);
    assert_string_equal(whole.text, wanted);
    assert_string_equal(parts.text, wanted);
}

static void rows_are_read(void **state) {
    (void)state;
    follow();
    struct stats *batch = stats_new();
    fixture_call(batch, NOON, "create", "db", 1000, false);
    fixture_call(batch, NOON + 10, "delete", "db", 1000, false);
    fixture_path_call(batch, NOON, "create", fixture_path("http/db"), 500);
    struct ledger_row *ledger = fixture_ledger(batch, NOON);
    ledger->requests_complete = 7;
    ledger->away_ms = 9;
    struct kept_request r = fixture_request(NOON, "create", KEPT_OVER, 5000, 2);
    fixture_keep(batch, &r);
    stats_cost(batch, NOON, ledger->node, directory_tier(&fixture_names, slice_text("db")))
        ->messages = 4;
    fixture_write(batch);
    const struct change fine = {NOON, 10, 1, 0}, minute = {NOON, 60, 1, 0}, kept = {NOON, 0, 1, 0};
    expect_rows(
        CHANGE_TIERS, &fine,
        "bucket_start=1763640000 resolution_s=10 node=shop@host identity=create tier=db "
        "requests=1 calls=1 total_ns=1000 self_ns=500 mailbox_ns=- run_queue_ns=- duration_ns=1000 square_ns=1e+06 "
        "min_ns=1000 max_ns=1000 tier_place=1 \n"
        "bucket_start=1763640000 resolution_s=10 node=shop@host identity=_total tier=db "
        "requests=1 calls=1 total_ns=1000 self_ns=500 mailbox_ns=- run_queue_ns=- duration_ns=1000 square_ns=1e+06 "
        "min_ns=1000 max_ns=1000 tier_place=1 \n");
    expect_rows(CHANGE_PATHS, &fine,
                "bucket_start=1763640000 resolution_s=10 node=shop@host identity=create "
                "path=http > db calls=1 total_ns=500 self_ns=250 "
                "mailbox_ns=- run_queue_ns=- duration_ns=500 min_ns=500 "
                "max_ns=500 \n");
    expect_rows(CHANGE_LEDGER, &minute,
                "bucket_start=1763640000 resolution_s=60 node=shop@host requests_complete=7 "
                "away_ms=9 \n");
    expect_rows(CHANGE_COSTS, &minute,
                "bucket_start=1763640000 resolution_s=60 node=shop@host tier=db messages=4 \n");
    expect_rows(CHANGE_REQUESTS, &kept,
                "bucket_start=1763640000 node=shop@host identity=create id=1 reason=over "
                "begin_ns=1763640000000000000 duration_ns=5000 outcome=ok complete=1 spans=2 "
                "kept_spans=2 origin= label=- trace_id= parent_span_id= \n");
    expect_rows(CHANGE_SPANS, &kept,
                "bucket_start=1763640000 node=shop@host request_id=1 parent=- pid=<0.100.0> "
                "name=http duration_ns=5000 self_ns=10 outcome=ok caller=- run_queue_ns=- \n"
                "bucket_start=1763640000 node=shop@host request_id=1 span=1 pid=<0.101.0> name=db "
                "start_ns=10 duration_ns=4990 self_ns=10 outcome=ok caller=- run_queue_ns=- \n");
    expect_rows(CHANGE_REQUESTS, &fine, "");
}

static void lost_is_counted(void **state) {
    (void)state;
    struct change_backlog backlog;
    int64_t now = clock_wall() / SECOND, old = floor_to(now - RETENTION_FINE_S - 7200, 3600);
    follow();
    count_at(old, "create", 1000);
    struct store *s = fixture_open();
    store_expire(s, now);
    assert_string_equal(store_error(s), "");
    store_close(s);
    // those of a minute and an hour are kept for longer
    fixture_expect("SELECT group_concat(resolution_s) FROM export_marks", "60,3600");
    struct changes *c = opened();
    assert_true(changes_backlog(c, now + 60, &backlog));
    changes_close(c);
    assert_int_equal(backlog.marks, 2);
    assert_int_equal(backlog.lost, 1);
    assert_in_range(backlog.oldest_s, now, now + 10);
}

static void refusals_are_kept(void **state) {
    (void)state;
    follow();
    struct change_refusal refusals[100];
    for (int i = 0; i < 100; i++) {
        refusals[i] =
            (struct change_refusal){{NOON, 10, 1, 5}, "tier_stats", {i, 7}, "it is too red"};
    }
    struct change_report report = report_of(NULL, 0);
    report.refusals = refusals;
    report.refusal_count = 100;
    report.refused = 120;
    report.gone = 3;
    for (int i = 0; i < 11; i++) {
        tell(&report);
    }
    fixture_expect("SELECT refused || ' ' || lost FROM export_state", "1320 33");
    fixture_expect("SELECT count(*) FROM export_refusals", "1000"); // LIMIT_EXPORT_REFUSALS
    fixture_expect("SELECT table_name || key_1 || key_2 || reason FROM export_refusals "
                   "ORDER BY id DESC",
                   "tier_stats997it is too red");
}

static void *tell_from_there(void *arg) {
    struct writer *w = arg;
    struct change due[MANY];
    struct changes *c = opened();
    int count = changes_due(c, INT64_MAX / 2, due, MANY);
    changes_close(c);
    struct change_report report = report_of(due, (uint32_t)count);
    assert_true(writer_sent(w, &report));
    return NULL;
}

// The writer does it, for another thread, between its batches.
static void through_the_writer(void **state) {
    (void)state;
    pthread_t thread;
    follow();
    struct store *s = fixture_open();
    const struct writer_options options = {.bucket_s = 10};
    struct writer *w = writer_start(s, &options);
    struct stats *batch = stats_new();
    fixture_call(batch, NOON, "create", "db", 1000, false);
    assert_true(writer_submit(w, batch, &fixture_names));
    assert_true(writer_wait(w));
    fixture_expect("SELECT count(*) FROM export_marks", "3");
    assert_int_equal(pthread_create(&thread, NULL, tell_from_there, w), 0);
    pthread_join(thread, NULL);
    fixture_expect("SELECT count(*) FROM export_marks", "0");
    assert_true(writer_stop(w));
    store_close(s);
    stats_free(batch);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(nothing_unless_followed), CASE(marked_with_what_changes),
        CASE(due_when_it_is_over),     CASE(an_hour_is_never_ahead),
        CASE(history_is_marked),       CASE(in_another_file),
        CASE(changed_since_stays),     CASE(rows_are_read),
        CASE(lost_is_counted),         CASE(refusals_are_kept),
        CASE(through_the_writer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
