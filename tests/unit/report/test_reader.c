// SPDX-License-Identifier: Apache-2.0
// reader.c: questions on threads, their limit of time, and files that come and go.
#include "store_fixture.h"

#include <poll.h>
#include <sys/eventfd.h>

#include "base/limits.h"
#include "report/reader.h"
#include "store/query.h"

static int ready;

static void wake(void *arg) {
    (void)arg;
    eventfd_write(ready, 1);
}

struct question {
    struct reader_job job;
    bool opened, answered;
    int64_t last_s;
};

static int done_count;

static void work(struct reader_job *job, struct store *store) {
    struct question *q = (struct question *)job;
    int64_t first_s;
    q->opened = store;
    q->answered = store && query_extent(store, &first_s, &q->last_s);
    if (store && !q->answered) {
        snprintf(job->error, sizeof job->error, "%s", store_error(store));
    }
}

static void done(struct reader_job *job) {
    (void)job;
    done_count++;
}

static struct reader *start(uint32_t threads, int64_t limit_ns) {
    struct reader_options options = {
        .path = fixture_db, .threads = threads, .limit_ns = limit_ns, .wake = wake};
    done_count = 0;
    ready = eventfd(0, 0);
    struct reader *r = reader_start(&options);
    assert_non_null(r);
    return r;
}

static void settle(struct reader *r, int wanted) {
    while (done_count < wanted) {
        struct pollfd fd = {ready, POLLIN, 0};
        eventfd_t count;
        assert_int_equal(poll(&fd, 1, 60000), 1);
        eventfd_read(ready, &count);
        reader_settle(r);
    }
}

static void write_bucket(int64_t bucket) {
    struct stats *batch = stats_new();
    fixture_call(batch, bucket, "create", "_total", 1000, false);
    fixture_write(batch);
}

static void test_many_questions(void **state) {
    (void)state;
    write_bucket(1000);
    struct reader *r = start(3, INT64_MAX);
    struct question questions[LIMIT_READER_JOBS];
    memset(questions, 0, sizeof questions);
    for (uint32_t i = 0; i < LIMIT_READER_JOBS; i++) {
        questions[i].job = (struct reader_job){.work = work, .done = done};
        assert_true(reader_ask(r, &questions[i].job));
    }
    settle(r, LIMIT_READER_JOBS);
    for (uint32_t i = 0; i < LIMIT_READER_JOBS; i++) {
        assert_true(questions[i].answered);
        assert_int_equal(questions[i].last_s, 1010);
    }
    reader_stop(r);
    close(ready);
}

// A file that is not there, comes, is replaced and goes.
static void test_another_file(void **state) {
    (void)state;
    struct reader *r = start(1, INT64_MAX);
    struct question q = {.job = {.work = work, .done = done}};
    assert_true(reader_ask(r, &q.job));
    settle(r, 1);
    assert_false(q.opened);
    assert_non_null(strstr(q.job.error, fixture_db));

    write_bucket(1000);
    assert_true(reader_ask(r, &q.job));
    settle(r, 2);
    assert_true(q.answered);
    assert_int_equal(q.last_s, 1010);

    char moved[128];
    snprintf(moved, sizeof moved, "%s.moved", fixture_db);
    assert_int_equal(rename(fixture_db, moved), 0);
    write_bucket(5000);
    assert_true(reader_ask(r, &q.job));
    settle(r, 3);
    assert_int_equal(q.last_s, 5010);

    assert_int_equal(unlink(fixture_db), 0);
    assert_true(reader_ask(r, &q.job));
    settle(r, 4);
    assert_false(q.opened);
    reader_stop(r);
    close(ready);
}

// Blocks its thread until the test lets it go.
static int gate[2];

static void wait_at_gate(struct reader_job *job, struct store *store) {
    (void)job;
    (void)store;
    char byte;
    assert_int_equal(read(gate[0], &byte, 1), 1);
}

static void test_no_room_and_the_end(void **state) {
    (void)state;
    write_bucket(1000);
    assert_int_equal(pipe(gate), 0);
    struct reader *r = start(1, INT64_MAX);
    struct question first = {.job = {.work = wait_at_gate, .done = done}};
    struct question waiting[LIMIT_READER_JOBS + 1];
    memset(waiting, 0, sizeof waiting);
    assert_true(reader_ask(r, &first.job));
    uint32_t taken = 0;
    for (; taken <= LIMIT_READER_JOBS; taken++) {
        waiting[taken].job = (struct reader_job){.work = work, .done = done};
        if (!reader_ask(r, &waiting[taken].job)) {
            break;
        }
    }
    // the first one may still wait, or be with the thread already
    assert_in_range(taken, LIMIT_READER_JOBS - 1, LIMIT_READER_JOBS);
    assert_int_equal(write(gate[1], "x", 1), 1);
    reader_stop(r);
    assert_int_equal(done_count, 1 + (int)taken); // also those that were never worked out
    close(gate[0]);
    close(gate[1]);
    close(ready);
}

// A query that would never end.
static void forever(struct reader_job *job, struct store *store) {
    struct question *q = (struct question *)job;
    struct query every = {.from_s = INT64_MIN, .until_s = INT64_MAX};
    struct query_sums sums;
    q->opened = true;
    q->answered = query_sums(store, &every, &sums);
    query_sums_free(&sums);
    snprintf(job->error, sizeof job->error, "%s", store_error(store));
}

static void test_limit_of_time(void **state) {
    (void)state;
    write_bucket(1000);
    // each row stands for as many as there are numbers below: longer than any patience
    free(fixture_ask(fixture_db, "DROP VIEW tier_stats"));
    free(fixture_ask(fixture_db, "ALTER TABLE tier_names RENAME TO real_tiers"));
    free(fixture_ask(
        fixture_db,
        "CREATE VIEW tier_names AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
        "SELECT id, name FROM real_tiers, n"));
    struct reader *r = start(1, 20000000);
    struct question q = {.job = {.work = forever, .done = done}};
    assert_true(reader_ask(r, &q.job));
    settle(r, 1);
    assert_false(q.answered);
    assert_non_null(strstr(q.job.error, "takes too long"));
    q.job = (struct reader_job){.work = work, .done = done};
    assert_true(reader_ask(r, &q.job)); // and the connection is as good as before
    settle(r, 2);
    assert_true(q.answered);
    reader_stop(r);
    close(ready);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_many_questions, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_another_file, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_no_room_and_the_end, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_limit_of_time, fixture_setup, fixture_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
