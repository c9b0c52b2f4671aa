// SPDX-License-Identifier: Apache-2.0
// query.c: sums over time, filters, and which resolution is taken.
#include "store_fixture.h"

#include <math.h>

#include "store/query.h"
#include "store/retention.h"

enum { NOON = 1763640000, DAY = 86400 };

static void write_once(struct stats *batch, uint32_t bucket_s) {
    struct store *s = fixture_open();
    assert_true(store_write(s, bucket_s, batch, &fixture_names));
    store_close(s);
    stats_free(batch);
}

static const struct query_row *find(const struct query_sums *sums, const char *identity,
                                    const char *tier) {
    for (uint32_t i = 0; i < sums->count; i++) {
        if (strcmp(sums->rows[i].identity, identity) == 0 &&
            strcmp(sums->rows[i].tier, tier) == 0) {
            return &sums->rows[i];
        }
    }
    return NULL;
}

static struct query_sums ask(int64_t from, int64_t until, const char *node, const char *identity) {
    struct store *s = fixture_reader();
    struct query_sums sums;
    struct query q = {from, until, node, identity, NULL};
    if (!query_sums(s, &q, &sums)) {
        fail_msg("%s", store_error(s));
    }
    store_close(s);
    return sums;
}

static void test_sums_over_time_and_nodes(void **state) {
    (void)state;
    struct stats *batch = stats_new();
    for (int i = 0; i < 6; i++) {
        fixture_call(batch, NOON + 10 * i, "create", "db", 1000 * (uint64_t)(i + 1), i == 5);
        struct stat_row *increment = fixture_row(batch, NOON + 10 * i, "shop@host", "create", "db");
        increment->wait_ns = 70, increment->gc_ns = 80, increment->off_cpu_ns = 90;
        increment->measured_ns = 60, increment->mailbox_ns = i == 3 ? 40 : 0,
        increment->run_queue_ns = 10;
        fixture_fill_ledger(fixture_ledger(batch, NOON + 10 * i));
    }
    struct stat_row *other = fixture_row(batch, NOON + 20, "other@host", "create", "db");
    other->requests = 1;
    other->total_ns = 500;
    stats_count(other, 500);
    write_once(batch, 10);

    struct query_sums sums = ask(NOON + 10, NOON + 60, NULL, NULL);
    assert_int_equal(sums.resolution_s, 10);
    assert_int_equal(sums.count, 2);
    const struct query_row *row = find(&sums, "create", "db");
    assert_int_equal(row->calls, 6); // 2000 … 6000 and 500
    assert_int_equal(row->async_calls, 1);
    assert_int_equal(row->async_ns, 6000);
    assert_int_equal(row->total_ns, 2000 + 3000 + 4000 + 5000 + 500);
    assert_int_equal(row->wait_ns, 5 * 70);
    assert_int_equal(row->gc_ns, 5 * 80);
    assert_int_equal(row->off_cpu_ns, 5 * 90);
    assert_int_equal(row->measured_ns, 5 * 60);
    assert_int_equal(row->mailbox_ns, 40);
    assert_int_equal(row->run_queue_ns, 5 * 10);
    assert_int_equal(row->min_ns, 500);
    assert_int_equal(row->max_ns, 6000);
    assert_true(query_quantile(row, 0.5) > 2900 && query_quantile(row, 0.5) < 3100);
    assert_true(query_quantile(row, 1) <= 6000 && query_quantile(row, 0) >= 500);
    assert_true(fabs(query_stddev(row) - 1835.2263) < 0.001); // of 500, 2000, 3000 … 6000
    uint64_t nth = 0;
#define IS_FIVE_TIMES(column) assert_int_equal(sums.ledger.column, 5 * ++nth);
    LEDGER_COLUMNS(IS_FIVE_TIMES)
    assert_int_equal(sums.first_s, NOON + 10);
    assert_int_equal(sums.last_s, NOON + 60);
    query_sums_free(&sums);

    sums = ask(INT64_MIN, INT64_MAX, "other@host", NULL);
    assert_int_equal(sums.count, 1);
    assert_int_equal(sums.rows[0].calls, 1);
    assert_false(sums.has_ledger);
    query_sums_free(&sums);

    sums = ask(INT64_MIN, INT64_MAX, NULL, "_total");
    assert_int_equal(sums.count, 1);
    assert_string_equal(sums.rows[0].identity, "_total");
    query_sums_free(&sums);

    sums = ask(INT64_MIN, INT64_MAX, "other@host" QUERY_OR "nobody@host" QUERY_OR "shop@host",
               "create");
    assert_int_equal(find(&sums, "create", "db")->calls, 7);
    query_sums_free(&sums);

    sums = ask(INT64_MIN, INT64_MAX, "host" QUERY_OR "shop", NULL); // whole names only
    assert_int_equal(sums.count, 0);
    query_sums_free(&sums);

    sums = ask(INT64_MIN, INT64_MAX, "nobody@host", NULL);
    assert_int_equal(sums.count, 0);
    query_sums_free(&sums);

    sums = ask(NOON + 1000, INT64_MAX, NULL, NULL);
    assert_int_equal(sums.count, 0);
    query_sums_free(&sums);
}

static void test_several_identities(void **state) {
    (void)state;
    struct stats *batch = stats_new();
    fixture_call(batch, NOON, "create", "db", 1000, false);
    fixture_call(batch, NOON, "search", "db", 3000, false);
    fixture_call(batch, NOON, "search", "render", 500, false);
    fixture_call(batch, NOON, "order", "db", 90000, false);
    write_once(batch, 10);
    struct query_sums sums = ask(INT64_MIN, INT64_MAX, NULL, "create" QUERY_OR "search");
    assert_null(find(&sums, "order", "db"));
    assert_int_equal(find(&sums, "create", "db")->calls, 1);
    const struct query_row *both = find(&sums, "_total", "db");
    assert_int_equal(both->calls, 2);
    assert_int_equal(both->total_ns, 4000);
    assert_int_equal(both->min_ns, 1000);
    assert_int_equal(both->max_ns, 3000);
    assert_int_equal(histogram_count(&both->durations), 2);
    assert_int_equal(find(&sums, "_total", "render")->calls, 1);
    query_sums_free(&sums);
    sums = ask(INT64_MIN, INT64_MAX, NULL, "create");
    assert_null(find(&sums, "_total", "db"));
    query_sums_free(&sums);
}

// Since when: of each column of the ledger the first bucket in which it was not 0.
static void test_since_when(void **state) {
    (void)state;
    store_close(fixture_open());
    struct stats *batch = stats_new();
    for (int i = 0; i < 4; i++) {
        fixture_ledger(batch, NOON + 10 * i)->requests_complete = 1;
    }
    fixture_ledger(batch, NOON + 10)->dropped_messages = 2;
    fixture_ledger(batch, NOON + 20)->dropped_messages = 1;
    fixture_ledger(batch, NOON + 30)->stale_calls = 3;
    fixture_write(batch);
    struct query_sums sums = ask(INT64_MIN, INT64_MAX, NULL, NULL);
    assert_int_equal(sums.since.requests_complete, NOON);
    assert_int_equal(sums.since.dropped_messages, NOON + 10);
    assert_int_equal(sums.since.stale_calls, NOON + 30);
    assert_int_equal(sums.since.trips, 0);
    query_sums_free(&sums);
    sums = ask(NOON + 20, INT64_MAX, NULL, NULL);
    assert_int_equal(sums.since.dropped_messages, NOON + 20);
    query_sums_free(&sums);
}

static void test_a_bucket_that_overlaps_counts_whole(void **state) {
    (void)state;
    struct stats *batch = stats_new();
    fixture_call(batch, NOON, "create", "db", 1000, false);
    fixture_call(batch, NOON + 10, "create", "db", 1000, false);
    write_once(batch, 10);
    struct query_sums sums = ask(NOON + 9, NOON + 11, NULL, "create");
    assert_int_equal(sums.rows[0].calls, 2);
    query_sums_free(&sums);
    sums = ask(NOON + 9, NOON + 10, NULL, "create");
    assert_int_equal(sums.rows[0].calls, 1);
    query_sums_free(&sums);
}

// Rows of 40 days, each with one call, of which the fine ones have gone.
static void test_finest_resolution_that_covers(void **state) {
    (void)state;
    static const struct {
        int64_t back_s;
        uint32_t resolution_s;
        uint64_t calls;
    } cases[] = {{DAY, 10, 2}, {5 * DAY, 60, 6}, {35 * DAY, 3600, 36}, {0, 10, 1}};
    struct stats *batch = stats_new();
    for (int day = 0; day <= 40; day++) {
        fixture_call(batch, NOON - (int64_t)day * DAY + 30, "create", "db", 1000, false);
    }
    struct store *s = fixture_open();
    assert_true(store_write(s, 10, batch, &fixture_names));
    while (store_expire(s, NOON)) {
    }
    store_close(s);
    stats_free(batch);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct query_sums sums = ask(NOON - cases[i].back_s, NOON + 3600, NULL, "create");
        assert_int_equal(sums.resolution_s, cases[i].resolution_s);
        assert_int_equal(sums.rows[0].calls, cases[i].calls);
        query_sums_free(&sums);
    }
    struct query_sums sums = ask(INT64_MIN, INT64_MAX, NULL, "create");
    assert_int_equal(sums.rows[0].calls, 41);
    query_sums_free(&sums);
}

// An hour of which half is asked for is told by its minutes, or as a whole where some of them are
// gone.
static void test_a_part_of_an_hour(void **state) {
    (void)state;
    struct stats *batch = stats_new();
    fixture_call(batch, NOON + 600, "create", "_total", 1000, false);
    fixture_call(batch, NOON + 1800, "create", "_total", 1000, false);
    write_once(batch, 10);
    struct query_sums sums = ask(NOON + 1200, NOON + 2400, NULL, "create");
    assert_int_equal(sums.rows[0].calls, 1);
    query_sums_free(&sums);
    free(fixture_ask(fixture_db, "DELETE FROM stat_rows WHERE resolution_s < 3600 AND "
                                 "bucket_start < (SELECT max(bucket_start) FROM stat_rows)"));
    sums = ask(NOON + 1200, NOON + 2400, NULL, "create");
    assert_int_equal(sums.rows[0].calls, 2);
    query_sums_free(&sums);
}

// -- the truth ------------------------------------------------------------------------------------

// Something that was counted in a bucket of the length that the collector had then.
struct event {
    uint32_t bucket_s;
    int64_t start;
    uint64_t ns;
};
#ifdef FIXTURE_MIRROR
enum { EVENTS = 120, QUESTIONS = 20 }; // a mirror takes longer, and is asked the same way
#else
enum { EVENTS = 120, QUESTIONS = 400 };
#endif

static uint32_t longer(uint32_t r) {
    return 60 > r && 60 % r == 0 ? 60 : 3600 > r && 3600 % r == 0 ? 3600 : 0;
}

static bool is_kept(uint32_t r, int64_t start) {
    int64_t keep = r < 60 ? RETENTION_FINE_S : r < 3600 ? RETENTION_MINUTES_S : RETENTION_HOURS_S;
    int64_t cut = (NOON - keep) / 3600 * 3600;
    return start / r * r >= cut;
}

// The resolution below `top` at which an event stands.
static uint32_t below(const struct event *e, uint32_t top) {
    uint32_t r = e->bucket_s;
    while (longer(r) != top) {
        r = longer(r);
    }
    return r;
}

// The bucket that an event is counted in: the finest that is kept, but none finer than one of which
// anything is gone, or was never there.
static uint32_t counted_in(const struct event *all, const struct event *e) {
    uint32_t r = e->bucket_s;
    while (longer(r) != 0) {
        r = longer(r);
    }
    while (r != e->bucket_s) {
        bool whole = true;
        for (int i = 0; i < EVENTS; i++) {
            uint32_t top = all[i].bucket_s;
            while (top != 0 && top != r) {
                top = longer(top);
            }
            bool here = top != 0 && all[i].start / r == e->start / r;
            whole = whole &&
                    (!here || (all[i].bucket_s != r && is_kept(below(&all[i], r), all[i].start)));
        }
        if (!whole) {
            break;
        }
        r = below(e, r);
    }
    return r;
}

static void compare_with_truth(const struct event *all, int64_t from, int64_t until) {
    uint64_t calls = 0, ns = 0;
    for (int i = 0; i < EVENTS; i++) {
        int64_t r = counted_in(all, &all[i]);
        int64_t start = all[i].start / r * r;
        if (start < until && start + r > from && is_kept((uint32_t)r, start)) {
            calls++;
            ns += all[i].ns;
        }
    }
    struct query_sums sums = ask(from, until, NULL, "create");
    assert_int_equal(sums.count, calls > 0);
    if (calls > 0) {
        assert_int_equal(sums.rows[0].calls, calls);
        assert_int_equal(sums.rows[0].duration_ns, ns);
        assert_int_equal(histogram_count(&sums.rows[0].durations), calls);
        assert_true(sums.first_s < until && sums.last_s > from && sums.first_s < sums.last_s);
    }
    assert_int_equal(sums.ledger.messages, calls);
    query_sums_free(&sums);
}

// Whatever lengths of buckets a collector was started with, and whatever is expired: each call is
// counted once, in the shortest bucket that tells it apart.
static void against_the_truth(const uint32_t *lengths, uint32_t count, unsigned seed) {
    static const int64_t spans[] = {600, 7200, DAY, 3 * DAY, 40 * DAY};
    struct event all[EVENTS];
    srand(seed);
    struct store *s = fixture_open();
    for (int i = 0; i < EVENTS; i++) {
        uint32_t r = lengths[(uint32_t)rand() % count];
        int64_t t = NOON - rand() % spans[rand() % 5];
        all[i] = (struct event){r, t / r * r, 1000 + (uint64_t)rand() % 1000000};
        struct stats *batch = stats_new();
        fixture_call(batch, all[i].start, "create", "db", all[i].ns, false);
        fixture_ledger(batch, all[i].start)->messages = 1;
        assert_true(store_write(s, r, batch, &fixture_names));
        stats_free(batch);
    }
    while (store_expire(s, NOON)) {
    }
    store_close(s);
    compare_with_truth(all, INT64_MIN, INT64_MAX);
    for (int i = 0; i < QUESTIONS; i++) {
        int64_t around = all[rand() % EVENTS].start; // where something is
        int64_t from = around - rand() % spans[rand() % 5] / (1 + rand() % 9);
        int64_t until = around + 1 + rand() % spans[rand() % 5];
        compare_with_truth(all, rand() % 9 == 0 ? INT64_MIN : from,
                           rand() % 9 == 0 ? INT64_MAX : until);
    }
}

static void test_truth_of_the_default(void **state) {
    (void)state;
    against_the_truth((const uint32_t[]){10}, 1, 1);
}

static void test_truth_of_lengths_that_differ(void **state) {
    (void)state;
    against_the_truth((const uint32_t[]){10, 20, 60, 3600}, 4, 2);
}

static void test_truth_of_lengths_that_divide_nothing(void **state) {
    (void)state;
    against_the_truth((const uint32_t[]){10, 7, 40, 90, 7200}, 5, 3);
}

static void test_other_bucket_lengths_meet_in_the_minutes(void **state) {
    (void)state;
    struct stats *ten = stats_new(), *twenty = stats_new();
    fixture_call(ten, NOON, "create", "db", 1000, false);
    fixture_call(twenty, NOON + 120, "create", "db", 1000, false);
    write_once(ten, 10);
    write_once(twenty, 20);
    struct query_sums sums = ask(INT64_MIN, INT64_MAX, NULL, "create");
    assert_int_equal(sums.resolution_s, 60);
    assert_int_equal(sums.rows[0].calls, 2);
    query_sums_free(&sums);
}

static void add_text(void *arg, const char *node) {
    strcat(arg, node);
}

static void test_extent_and_nodes(void **state) {
    (void)state;
    int64_t first, last;
    char nodes[64] = "";
    store_close(fixture_open());
    struct store *s = fixture_reader();
    assert_false(query_extent(s, &first, &last));
    struct query_sums sums;
    assert_true(query_sums(s, &(struct query){INT64_MIN, INT64_MAX, NULL, NULL, NULL}, &sums));
    assert_int_equal(sums.count, 0);
    assert_int_equal(sums.resolution_s, 0);
    store_close(s);

    struct stats *batch = stats_new();
    fixture_call(batch, NOON + 10, "create", "db", 1000, false);
    fixture_call(batch, NOON + 130, "create", "db", 1000, false);
    write_once(batch, 10);
    s = fixture_reader();
    assert_true(query_extent(s, &first, &last));
    assert_int_equal(first, NOON + 10);
    assert_int_equal(last, NOON + 140);
    assert_true(query_nodes(s, add_text, nodes));
    assert_string_equal(nodes, "shop@host");
    store_close(s);
}

static void test_no_memory(void **state) {
    (void)state;
    struct stats *batch = stats_new();
    int failures = 0;
    fixture_call(batch, NOON, "create", "db", 1000, false);
    write_once(batch, 10);
    struct store *s = fixture_reader();
    for (long n = 0; n < 20; n++) {
        struct query_sums sums;
        fail_alloc_at(n);
        bool ok = query_sums(s, &(struct query){INT64_MIN, INT64_MAX, NULL, NULL, NULL}, &sums);
        fail_alloc_at(-1);
        failures += !ok;
        assert_true(!ok || sums.count == 2);
        query_sums_free(&sums);
    }
    assert_in_range(failures, 5, 15);
    store_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define QUERY_TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
        QUERY_TEST(test_sums_over_time_and_nodes),
        QUERY_TEST(test_several_identities),
        QUERY_TEST(test_since_when),
        QUERY_TEST(test_a_bucket_that_overlaps_counts_whole),
        QUERY_TEST(test_finest_resolution_that_covers),
        QUERY_TEST(test_a_part_of_an_hour),
        QUERY_TEST(test_truth_of_the_default),
        QUERY_TEST(test_truth_of_lengths_that_differ),
        QUERY_TEST(test_truth_of_lengths_that_divide_nothing),
        QUERY_TEST(test_other_bucket_lengths_meet_in_the_minutes),
        QUERY_TEST(test_extent_and_nodes),
        QUERY_TEST(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
