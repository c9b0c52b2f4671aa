// SPDX-License-Identifier: Apache-2.0
// What --otlp has sent of a database and what it has not: begun now, due when it is over, read once
// and in order, put forward, and counted where it came too late or was deleted unsent.
#include "store_fixture.h"

#include "base/clock.h"
#include "base/limits.h"
#include "store/internal.h"
#include "store/otlp.h"
#include "store/retention.h"
#include "store/writer.h"

static const int64_t SECOND = 1000000000;
static const bool BOTH[OTLP_SIGNALS] = {true, true};
enum { TEXT = 4000 };

static int64_t wall_s(void) {
    return clock_wall() / SECOND;
}

static void follow(const bool signals[OTLP_SIGNALS]) {
    struct store *s = fixture_open();
    assert_true(store_otlp_follow(s, signals, 10));
    assert_true(store_otlp_followed(s));
    store_close(s);
}

static void keep_at(int64_t bucket, const char *identity, uint32_t spans) {
    struct stats *batch = stats_new();
    struct kept_request r = fixture_request(bucket, identity, KEPT_OVER, 5000, spans);
    fixture_keep(batch, &r);
    fixture_write(batch);
}

// A request that ends in a bucket, in a row of its own and in the ledger.
static void count_at(int64_t bucket, const char *identity, uint64_t ns) {
    struct stats *batch = stats_new();
    fixture_call(batch, bucket, identity, "_total", ns, false);
    fixture_call(batch, bucket, identity, "db", ns / 2, false);
    fixture_ledger(batch, bucket)->requests_complete = 1;
    fixture_write(batch);
}

static struct otlp_state state_of(struct store *s) {
    struct otlp_state state;
    assert_true(otlp_state(s, &state));
    return state;
}

// -- what is read ---------------------------------------------------------------------------------

struct seen {
    char text[TEXT];
    int room; // so many are taken
    struct otlp_place last;
};

static bool begin_request(void *to, const struct otlp_request *r) {
    struct seen *seen = to;
    if (seen->room == 0) {
        return false;
    }
    snprintf(seen->text + strlen(seen->text), TEXT - strlen(seen->text),
             "%s%lld %.*s:", seen->text[0] ? " " : "", (long long)r->id, (int)r->identity.len,
             r->identity.data);
    seen->last.request_id = r->id;
    return true;
}

static void see_span(void *to, const struct otlp_span *span) {
    struct seen *seen = to;
    snprintf(seen->text + strlen(seen->text), TEXT - strlen(seen->text), "%.*s",
             (int)span->name.len, span->name.data);
}

static bool end_request(void *to) {
    ((struct seen *)to)->room--;
    return true;
}

static bool see_point(void *to, const struct otlp_point *p) {
    struct seen *seen = to;
    if (seen->room == 0) {
        return false;
    }
    seen->room--;
    snprintf(seen->text + strlen(seen->text), TEXT - strlen(seen->text), "%s%.*s %lld/%lld",
             seen->text[0] ? " " : "", (int)p->identity.len, p->identity.data, (long long)p->calls,
             (long long)p->duration_ns);
    seen->last.bucket_start = p->bucket_start;
    seen->last.node_id = p->node_id;
    seen->last.identity_id = p->identity_id;
    return true;
}

static enum otlp_read read_requests(int64_t now_s, bool end, struct seen *seen) {
    struct store *s = fixture_reader();
    const struct otlp_state state = state_of(s);
    const struct otlp_time time = {now_s, 10, end};
    const struct otlp_taker taker = {begin_request, see_span, end_request, seen};
    enum otlp_read read = otlp_requests(s, &state, &time, &taker);
    store_close(s);
    return read;
}

static void expect_requests(int64_t now_s, bool end, const char *wanted) {
    struct seen seen = {.room = -1};
    assert_int_equal(read_requests(now_s, end, &seen), OTLP_ALL);
    assert_string_equal(seen.text, wanted);
}

static enum otlp_read read_points(int64_t now_s, struct seen *seen, struct otlp_place *behind) {
    struct store *s = fixture_reader();
    const struct otlp_state state = state_of(s);
    const struct otlp_time time = {now_s, 10, false};
    enum otlp_read read = otlp_points(s, &state, &time, see_point, seen, behind);
    store_close(s);
    return read;
}

static void expect_points(int64_t now_s, const char *wanted) {
    struct seen seen = {.room = -1};
    struct otlp_place behind;
    assert_int_equal(read_points(now_s, &seen, &behind), OTLP_ALL);
    assert_string_equal(seen.text, wanted);
}

static void expect_waiting(enum otlp_signal signal, int64_t now_s, uint64_t count,
                           int64_t oldest_s) {
    struct store *s = fixture_reader();
    const struct otlp_state state = state_of(s);
    const struct otlp_time time = {now_s, 10, false};
    struct otlp_waiting waiting;
    assert_true(otlp_waiting(s, &state, signal, &time, &waiting));
    assert_int_equal(waiting.count, count);
    assert_int_equal(waiting.oldest_s, oldest_s);
    store_close(s);
}

static void put(enum otlp_signal signal, struct otlp_place place) {
    struct store *s = fixture_open();
    const struct otlp_report report = {
        .database_id = state_of(s).database_id, .signal = signal, .place = place};
    assert_true(store_otlp_sent(s, &report));
    store_close(s);
}

// -- following ------------------------------------------------------------------------------------

static void nothing_unless_followed(void **state) {
    (void)state;
    keep_at(floor_to(wall_s(), 10) - 100, "create", 1);
    struct store *s = fixture_open();
    struct otlp_state of;
    assert_false(store_otlp_followed(s));
    assert_false(otlp_state(s, &of));
    assert_true(store_otlp_unfollow(s));
    store_close(s);
}

// What was there is not sent; what comes is.
static void begins_now(void **state) {
    (void)state;
    int64_t bucket = floor_to(wall_s(), 60) - 600;
    keep_at(bucket, "before", 1);
    count_at(bucket, "before", 1000);
    follow(BOTH);
    keep_at(bucket, "after", 2);
    count_at(floor_to(wall_s(), 60), "after", 1000);
    expect_requests(wall_s(), false, "2 after:httpdb");
    expect_points(wall_s() + 120, "after 1/1000");
    follow(BOTH); // again: nothing changes
    expect_requests(wall_s(), false, "2 after:httpdb");
}

static void signals_come_and_go(void **state) {
    (void)state;
    static const bool traces[OTLP_SIGNALS] = {[OTLP_TRACES] = true};
    int64_t bucket = floor_to(wall_s(), 60);
    follow(traces);
    keep_at(bucket - 600, "one", 1);
    count_at(bucket, "one", 1000);
    struct store *s = fixture_reader();
    assert_true(state_of(s).follows[OTLP_TRACES]);
    assert_false(state_of(s).follows[OTLP_METRICS]);
    store_close(s);
    follow(BOTH); // metrics begin now, traces go on
    expect_requests(wall_s(), false, "1 one:http");
    count_at(bucket, "two", 1000);
    fixture_expect("SELECT bucket_start % 60 FROM otlp_state", "0");
    s = fixture_open();
    assert_true(store_otlp_unfollow(s));
    assert_false(store_otlp_followed(s));
    store_close(s);
    fixture_expect("SELECT count(*) FROM otlp_state", "0");
}

// A file that was put in the place of another is followed from then on.
static void another_file(void **state) {
    (void)state;
    struct store *s = fixture_open();
    assert_true(store_otlp_follow(s, BOTH, 10));
    int64_t id = state_of(s).database_id;
    free(fixture_ask(fixture_db, "DELETE FROM otlp_state"));
    struct stats *batch = stats_new();
    fixture_call(batch, floor_to(wall_s(), 10), "create", "_total", 10, false);
    assert_true(store_write(s, 10, batch, &fixture_names));
    stats_free(batch);
    assert_true(state_of(s).database_id != id);
    // and what was read from the first one is no word about this one
    const struct otlp_report report = {
        .database_id = id, .signal = OTLP_TRACES, .place = {.request_id = 77}, .refused = 5};
    assert_true(store_otlp_sent(s, &report));
    assert_int_equal(state_of(s).place.request_id, 0);
    assert_int_equal(state_of(s).refused[OTLP_TRACES], 0);
    store_close(s);
}

// -- requests -------------------------------------------------------------------------------------

static void requests_when_their_bucket_is_over(void **state) {
    (void)state;
    follow(BOTH);
    int64_t bucket = floor_to(wall_s(), 10);
    keep_at(bucket, "now", 1);
    keep_at(bucket - 50, "earlier", 1);
    expect_requests(bucket + 14, false, ""); // the first one is not over, and the order is kept
    expect_waiting(OTLP_TRACES, bucket + 14, 1, bucket - 35);
    expect_requests(bucket + 15, false, "1 now:http 2 earlier:http");
    expect_waiting(OTLP_TRACES, bucket + 20, 2, bucket - 35);
    expect_requests(bucket + 14, true, "1 now:http 2 earlier:http"); // at the end, all of it
    // of a node whose clock is far ahead: nobody waits for that
    keep_at(bucket + 1000, "ahead", 1);
    expect_requests(bucket + 15, false, "1 now:http 2 earlier:http 3 ahead:http");
    put(OTLP_TRACES, (struct otlp_place){.request_id = 2});
    expect_requests(bucket + 15, false, "3 ahead:http");
    expect_waiting(OTLP_TRACES, bucket + 20, 1, bucket + 1015);
    put(OTLP_TRACES, (struct otlp_place){.request_id = 3});
    expect_requests(bucket + 15, false, "");
    expect_waiting(OTLP_TRACES, bucket + 20, 0, 0);
}

static void requests_as_many_as_fit(void **state) {
    (void)state;
    follow(BOTH);
    int64_t bucket = floor_to(wall_s(), 10) - 100;
    for (int i = 0; i < 5; i++) {
        char name[] = {(char)('a' + i), 0};
        keep_at(bucket, name, 1);
    }
    struct seen seen = {.room = 2};
    assert_int_equal(read_requests(wall_s(), false, &seen), OTLP_MORE);
    assert_string_equal(seen.text, "1 a:http 2 b:http");
    put(OTLP_TRACES, seen.last);
    expect_requests(wall_s(), false, "3 c:http 4 d:http 5 e:http");
}

static struct otlp_request whole;
static struct otlp_span spans[3];
static char texts[5][40];

static const char *copy(int to, struct slice text) {
    snprintf(texts[to], sizeof texts[to], "%.*s", (int)text.len, text.data);
    return texts[to];
}

static bool keep_whole(void *to, const struct otlp_request *r) {
    (void)to;
    whole = *r;
    assert_string_equal(copy(0, r->node), "shop@host");
    assert_string_equal(copy(0, r->identity), "create");
    assert_string_equal(copy(0, r->origin), "far@away");
    return true;
}

static void keep_span(void *to, const struct otlp_span *span) {
    (void)to;
    assert_true(span->span >= 0 && span->span < 3);
    spans[span->span] = *span;
    copy((int)span->span, span->pid);
}

static bool nothing_more(void *to) {
    (void)to;
    return true;
}

static void a_request_with_all_of_it(void **state) {
    (void)state;
    follow(BOTH);
    int64_t bucket = floor_to(wall_s(), 10) - 100;
    struct stats *batch = stats_new();
    struct kept_request r = fixture_request(bucket, "create", KEPT_FAILED, 5000, 3);
    r.error = r.remote = true;
    r.maker = directory_node(&fixture_names, slice_text("far@away"));
    r.label = 77;
    r.uncovered = 11;
    r.parallel = 12;
    r.spans = 9;
    struct kept_span of[3] = {
        {.start = 1, .duration = 4000, .self = 20, .pid = 100, .parent = UINT32_MAX},
        {.start = 30,
         .duration = 300,
         .wait = 5,
         .waiting = 4,
         .run_queue = 3,
         .measured = true,
         .pid = 101,
         .error = true},
        {.start = 40,
         .duration = 0,
         .run_queue = -1,
         .pid = 101,
         .parent = 1,
         .async = true,
         .open = true}};
    assert_true(stats_keep(batch, &r, of));
    fixture_write(batch);
    struct store *s = fixture_reader();
    const struct otlp_state from = state_of(s);
    const struct otlp_time time = {wall_s(), 10, false};
    const struct otlp_taker taker = {keep_whole, keep_span, nothing_more, NULL};
    assert_int_equal(otlp_requests(s, &from, &time, &taker), OTLP_ALL);
    store_close(s);
    assert_string_equal(whole.reason, "failed");
    assert_int_equal(whole.begin_ns, bucket * SECOND);
    assert_int_equal(whole.duration_ns, 5000);
    assert_true(whole.error && !whole.cut);
    assert_int_equal(whole.spans, 9);
    assert_int_equal(whole.kept_spans, 3);
    assert_true(whole.label.known && whole.label.value == 77);
    assert_true(whole.uncovered_ns.known && whole.uncovered_ns.value == 11);
    assert_int_equal(whole.parallel_ns.value, 12);
    assert_false(spans[0].parent.known);
    assert_int_equal(spans[0].self_ns, 20);
    assert_true(spans[1].parent.known && spans[1].parent.value == 0);
    assert_int_equal(spans[1].start_ns, 30);
    assert_int_equal(spans[1].duration_ns, 300);
    assert_int_equal(spans[1].wait_ns, 5);
    assert_int_equal(spans[1].waiting_ns.value, 4);
    assert_true(spans[1].measured && spans[1].run_queue_ns.known);
    assert_int_equal(spans[1].run_queue_ns.value, 3);
    assert_int_equal(spans[1].outcome, 1);
    assert_true(spans[2].async && !spans[2].run_queue_ns.known);
    assert_int_equal(spans[2].parent.value, 1);
    assert_int_equal(spans[2].outcome, 2);
    char *pid = fixture_ask(fixture_db, "SELECT pid FROM slow_spans WHERE span = 1");
    assert_string_equal(texts[1], pid);
    free(pid);
}

// -- metrics --------------------------------------------------------------------------------------

static void points_when_their_bucket_is_over(void **state) {
    (void)state;
    follow(BOTH);
    int64_t minute = floor_to(wall_s(), 60);
    count_at(minute, "create", 1000);
    count_at(minute + 50, "create", 500);
    count_at(minute + 10, "delete", 70);
    count_at(minute + 60, "create", 3);
    expect_points(minute + 89, "");
    expect_points(minute + 90, "create 2/1500 delete 1/70");
    expect_waiting(OTLP_METRICS, minute + 100, 1, minute + 90);
    // as many as fit, and on from there
    struct seen seen = {.room = 1};
    struct otlp_place behind;
    assert_int_equal(read_points(minute + 150, &seen, &behind), OTLP_MORE);
    put(OTLP_METRICS, seen.last);
    seen = (struct seen){.room = -1};
    assert_int_equal(read_points(minute + 150, &seen, &behind), OTLP_ALL);
    assert_string_equal(seen.text, "delete 1/70 create 1/3");
    put(OTLP_METRICS, behind);
    expect_points(minute + 150, "");
    expect_waiting(OTLP_METRICS, minute + 150, 0, 0);
    // a bucket of which there is nothing to tell does not wait for ever
    struct stats *batch = stats_new();
    fixture_ledger(batch, minute + 120)->messages = 1;
    fixture_write(batch);
    expect_waiting(OTLP_METRICS, minute + 210, 1, minute + 210);
    seen = (struct seen){.room = -1};
    assert_int_equal(read_points(minute + 210, &seen, &behind), OTLP_ALL);
    assert_int_equal(behind.bucket_start, minute + 120);
    put(OTLP_METRICS, behind);
    expect_waiting(OTLP_METRICS, minute + 210, 0, 0);
    // nor does a clock that was set back make anything come again
    assert_int_equal(read_points(minute + 90, &seen, &behind), OTLP_ALL);
    assert_int_equal(behind.bucket_start, minute + 120);
}

static void what_comes_late_is_counted(void **state) {
    (void)state;
    follow(BOTH);
    int64_t minute = floor_to(wall_s(), 60);
    count_at(minute, "create", 1000);
    fixture_expect("SELECT late_requests FROM otlp_state", "0");
    struct seen seen = {.room = -1};
    struct otlp_place behind;
    assert_int_equal(read_points(minute + 90, &seen, &behind), OTLP_ALL);
    put(OTLP_METRICS, behind);
    count_at(minute + 50, "create", 1000);
    count_at(minute, "delete", 1000);
    count_at(minute + 60, "create", 1000);
    fixture_expect("SELECT late_requests FROM otlp_state", "2");
    expect_points(minute + 150, "create 1/1000");
}

// With buckets that are longer than a minute, or do not divide it, there are no minutes.
static void other_buckets(void **state) {
    (void)state;
    static const struct {
        uint32_t bucket_s;
        const char *resolution_s;
    } cases[] = {{1, "60"}, {60, "60"}, {45, "45"}, {300, "300"}, {3600, "3600"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct store *s = fixture_open();
        assert_true(store_otlp_follow(s, BOTH, cases[i].bucket_s));
        store_close(s);
        fixture_expect("SELECT resolution_s FROM otlp_state", cases[i].resolution_s);
    }
}

// -- what is lost, and what is refused ------------------------------------------------------------

static void what_is_too_old_is_lost(void **state) {
    (void)state;
    follow(BOTH);
    int64_t minute = floor_to(wall_s(), 60);
    free(fixture_ask(fixture_db, "UPDATE otlp_state SET bucket_start = 0"));
    keep_at(minute - RETENTION_KEPT_S - 7200, "old", 1);
    keep_at(minute - RETENTION_KEPT_S - 7200, "older", 1);
    keep_at(minute - 100, "new", 1);
    count_at(minute - RETENTION_MINUTES_S - 7200, "old", 10);
    count_at(minute - 120, "new", 10);
    put(OTLP_TRACES, (struct otlp_place){.request_id = 1}); // that one was sent in time
    struct store *s = fixture_open();
    while (store_expire(s, wall_s())) {
    }
    store_close(s);
    fixture_expect("SELECT lost_requests || ' ' || lost_buckets FROM otlp_state", "1 1");
    expect_requests(wall_s(), false, "3 new:http");
    expect_points(wall_s(), "new 1/10");
}

static void refusals_are_kept(void **state) {
    (void)state;
    follow(BOTH);
    struct store *s = fixture_open();
    struct otlp_refusal refusals[2] = {{7, 7, 12, "too long"}, {9, 11, 3, "it's odd"}};
    struct otlp_report report = {.database_id = state_of(s).database_id,
                                 .signal = OTLP_TRACES,
                                 .place = {.request_id = 11},
                                 .refusals = refusals,
                                 .refusal_count = 2,
                                 .refused = 15};
    assert_true(store_otlp_sent(s, &report));
    report.signal = OTLP_METRICS;
    report.place = (struct otlp_place){0, 60, 1, 2};
    report.refusal_count = 1;
    report.refused = 1;
    assert_true(store_otlp_sent(s, &report));
    struct otlp_state of = state_of(s);
    assert_int_equal(of.refused[OTLP_TRACES], 15);
    assert_int_equal(of.refused[OTLP_METRICS], 1);
    assert_int_equal(of.place.request_id, 11);
    assert_int_equal(of.place.bucket_start, 60);
    assert_int_equal(of.place.node_id, 1);
    assert_int_equal(of.place.identity_id, 2);
    fixture_expect("SELECT group_concat(signal || ' ' || first || '-' || last || ' ' || items || "
                   "' ' || reason, '; ') FROM otlp_refusals",
                   "traces 7-7 12 too long; traces 9-11 3 it's odd; metrics 7-7 12 too long");
    // the last ones of many
    struct otlp_refusal many[50];
    report.refusals = many;
    report.refusal_count = 50;
    for (int64_t i = 0; i <= LIMIT_EXPORT_REFUSALS; i += 50) {
        for (int k = 0; k < 50; k++) {
            many[k] = (struct otlp_refusal){i + k, i + k, 1, "again"};
        }
        assert_true(store_otlp_sent(s, &report));
    }
    store_close(s);
    fixture_expect("SELECT count(*) || ' ' || min(first) FROM otlp_refusals", "1000 50");
}

// By way of the writer's thread, beside an export that does the same.
static void through_the_writer(void **state) {
    (void)state;
    struct store *s = fixture_open();
    assert_true(store_otlp_follow(s, BOTH, 10));
    assert_true(store_follow(s));
    const struct writer_options options = {.bucket_s = 10};
    int64_t id = state_of(s).database_id;
    struct writer *w = writer_start(s, &options);
    assert_non_null(w);
    const struct change_report changes = {.database_id = id}; // of no file
    for (int i = 1; i <= 20; i++) {
        const struct otlp_report report = {
            .database_id = id, .signal = OTLP_TRACES, .place = {.request_id = i}};
        assert_true(writer_otlp_sent(w, &report));
        assert_true(writer_sent(w, &changes));
    }
    assert_true(writer_stop(w));
    assert_int_equal(state_of(s).place.request_id, 20);
    store_close(s);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {CASE(nothing_unless_followed),
                                       CASE(begins_now),
                                       CASE(signals_come_and_go),
                                       CASE(another_file),
                                       CASE(requests_when_their_bucket_is_over),
                                       CASE(requests_as_many_as_fit),
                                       CASE(a_request_with_all_of_it),
                                       CASE(points_when_their_bucket_is_over),
                                       CASE(what_comes_late_is_counted),
                                       CASE(other_buckets),
                                       CASE(what_is_too_old_is_lost),
                                       CASE(refusals_are_kept),
                                       CASE(through_the_writer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
