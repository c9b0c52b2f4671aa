// SPDX-License-Identifier: Apache-2.0
// batch_kept.c and its retention: which requests stay, against an oracle that sorts all that were
// ever offered.
#include "store_fixture.h"

#include "store/internal.h"
#include "store/retention.h"

enum {
    NOON = 1763640000,
    ROUNDS = 12,
    BATCHES = 20,
    PER_BATCH = 150,
    OFFERED = BATCHES * PER_BATCH
};

// -- as it is written -----------------------------------------------------------------------------

static void test_a_request_to_the_digit(void **state) {
    (void)state;
    struct stats *batch = stats_new();
    struct kept_request r = fixture_request(NOON, "create", KEPT_FAILED, 1234567, 900);
    const uint16_t http = directory_tier(&fixture_names, slice_text("http"));
    const uint16_t db = directory_tier(&fixture_names, slice_text("db"));
    const struct kept_span spans[] = {{.start = 1000,
                                       .duration = 1200000,
                                       .self = 300000,
                                       .pid = 7ULL << 32 | 123,
                                       .parent = UINT32_MAX,
                                       .tier = http,
                                       .error = true},
                                      {.start = 2000,
                                       .duration = 900000,
                                       .self = 5,
                                       .wait = 1500,
                                       .measured = true,
                                       .run_queue = 250,
                                       .gc = 2500,
                                       .off_cpu = 3500,
                                       .pid = 99,
                                       .parent = 0,
                                       .tier = db},
                                      {.start = 2500,
                                       .pid = 99,
                                       .parent = 1,
                                       .tier = db,
                                       .open = true,
                                       .error = true,
                                       .blind = true},
                                      {.start = 3000,
                                       .duration = 5000000,
                                       .pid = 100,
                                       .parent = UINT32_MAX,
                                       .tier = db,
                                       .async = true,
                                       .blind = true,
                                       .wait = 7000,
                                       .measured = true,
                                       .run_queue = INT64_MIN},
                                      {.start = 4000,
                                       .duration = 1,
                                       .pid = 100,
                                       .parent = 3,
                                       .tier = db,
                                       .error = true,
                                       .blind = true}};
    r.begin = (int64_t)NOON * 1000000000 + 7654321;
    r.count = 5;
    r.error = r.cut = true;
    for (size_t i = 0; i < TRACE_PARENT_BYTES; i++) {
        ((uint8_t *)&r.parent)[i] = (uint8_t)(0xa0 + i);
    }
    assert_true(stats_keep(batch, &r, spans));
    struct kept_request other = fixture_request(NOON, "other", KEPT_FAILED, 1, 0);
    assert_true(stats_keep(batch, &other, spans));
    fixture_write(batch);
    fixture_expect("SELECT trace_id || '|' || parent_span_id FROM slow_requests WHERE id = 1",
                   "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf|b0b1b2b3b4b5b6b7");
    fixture_expect("SELECT trace_flags FROM kept_requests WHERE id = 1", "184"); // 0xb8
    fixture_expect(
        "SELECT trace_id IS NULL AND parent_span_id IS NULL FROM slow_requests WHERE id = 2", "1");
    fixture_expect(
        "SELECT id || '|' || node || '|' || identity || '|' || started_at || '|' || duration_us || '|' || outcome || "
        "'|' || reason || '|' || complete || '|' || spans || '|' || kept_spans FROM slow_requests WHERE id = 1",
        "1|shop@host|create|2025-11-20T12:00:00.007654Z|1234.567|error|failed|0|900|5");
    fixture_expect(
        "SELECT group_concat(request_id || '|' || span || '|' || ifnull(parent, '-') || '|' || pid || '|' || name || '|' || start_us "
        "|| '|' || duration_us || '|' || self_us || '|' || wait_us || '|' || gc_us || '|' || off_cpu_us || '|' || async || '|' "
        "|| outcome || '|' || measured || '|' || ifnull(mailbox_us || '+' || run_queue_us, '-'), char(10)) FROM slow_spans",
        "1|0|-|<0.123.7>|http|1.0|1200.0|300.0|0.0|0.0|0.0|0|error|0|-\n"
        "1|1|0|<0.99.0>|db|2.0|900.0|0.005|1.5|2.5|3.5|0|ok|1|1.25+0.25\n"
        "1|2|1|<0.99.0>|db|2.5|0.0|0.0|0.0|0.0|0.0|0|open|0|-\n"
        "1|3|-|<0.100.0>|db|3.0|5000.0|0.0|7.0|0.0|0.0|1|unknown|1|-\n"
        "1|4|3|<0.100.0>|db|4.0|0.001|0.0|0.0|0.0|0.0|0|error|0|-");
}

static void test_reasons_and_their_caps(void **state) {
    (void)state;
    struct stats *batch = stats_new();
    for (int reason = 0; reason < KEPT_REASONS; reason++) {
        for (int i = 0; i < 30; i++) {
            struct kept_request r =
                fixture_request(NOON, "create", (uint8_t)reason, 1000 + i * 7 % 30, 2);
            fixture_keep(batch, &r);
        }
    }
    fixture_write(batch);
    char expected[128];
    snprintf(expected, sizeof expected, "failed %u, over %u, slowest %u", LIMIT_KEPT_FAILED,
             LIMIT_KEPT_OVER, LIMIT_KEPT_SLOWEST);
    fixture_expect(
        "SELECT group_concat(n, ', ') FROM (SELECT reason || ' ' || count(*) AS n FROM slow_requests GROUP BY reason)",
        expected);
    fixture_expect("SELECT count(*) = 2 * (SELECT count(*) FROM kept_requests) FROM kept_spans",
                   "1");
    fixture_expect(
        "SELECT group_concat(duration_ns) FROM (SELECT duration_ns FROM kept_requests WHERE reason = 2 ORDER BY 1)",
        "1027,1028,1029");
}

// -- the oracle -----------------------------------------------------------------------------------

struct offered {
    struct kept_request request;
    uint32_t serial; // stands in the file as `spans`
};

static bool same_group(const struct kept_request *a, const struct kept_request *b) {
    return a->bucket_start == b->bucket_start && a->node == b->node && a->identity == b->identity &&
           a->reason == b->reason;
}

// Longer first, then the earlier begin, then who came first.
static bool goes_before(const struct offered *a, const struct offered *b) {
    if (a->request.duration != b->request.duration) {
        return a->request.duration > b->request.duration;
    }
    return a->request.begin != b->request.begin ? a->request.begin < b->request.begin
                                                : a->serial < b->serial;
}

static bool stays(const struct offered *all, int n, int i) {
    static const int caps[] = {LIMIT_KEPT_OVER, LIMIT_KEPT_FAILED, LIMIT_KEPT_SLOWEST};
    int before = 0;
    for (int k = 0; k < n; k++) {
        before += same_group(&all[k].request, &all[i].request) && goes_before(&all[k], &all[i]);
    }
    return before < caps[all[i].request.reason];
}

// Few values, so that ties are frequent.
static struct offered random_request(uint64_t *seed, uint32_t serial) {
    static const char *const identities[] = {"create", "update", "delete"};
    struct kept_request r = fixture_request(NOON + 10 * (int64_t)(random_u64(seed) % 3),
                                            identities[random_u64(seed) % 3],
                                            (uint8_t)(random_u64(seed) % KEPT_REASONS),
                                            1 + (int64_t)(random_u64(seed) % 40), serial % 4);
    r.node = directory_node(&fixture_names, slice_text(random_u64(seed) % 2 ? "a@host" : "b@host"));
    r.begin += (int64_t)(random_u64(seed) % 3);
    r.spans = serial;
    return (struct offered){r, serial};
}

// The serials of what is kept, ascending.
static char *kept_serials(void) {
    return fixture_ask(
        fixture_db,
        "SELECT group_concat(spans) FROM (SELECT spans FROM kept_requests ORDER BY spans)");
}

static void check_against_oracle(const struct offered *all, int n, uint64_t seed) {
    static char expected[OFFERED * 8];
    size_t len = 0;
    for (int i = 0; i < n; i++) {
        if (stays(all, n, i)) {
            len += (size_t)snprintf(expected + len, sizeof expected - len, "%s%u", len ? "," : "",
                                    all[i].serial);
        }
    }
    char *got = kept_serials();
    if (strcmp(got, expected) != 0) {
        fail_msg("seed %llu after %d\n kept     %s\n expected %s", (unsigned long long)seed, n, got,
                 expected);
    }
    free(got);
    // Each with its own spans and no others.
    fixture_expect(
        "SELECT count(*) FROM kept_requests AS r WHERE kept_spans <> spans % 4 OR kept_spans <> (SELECT count(*) FROM "
        "kept_spans WHERE request_id = r.id)",
        "0");
    fixture_expect(
        "SELECT count(*) FROM kept_spans LEFT JOIN kept_requests AS r ON r.id = request_id WHERE r.id IS NULL OR "
        "kept_spans.duration_ns <> r.duration_ns - start_ns",
        "0");
}

static void test_random_batches_against_an_oracle(void **state) {
    (void)state;
    static struct offered all[OFFERED];
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        uint64_t seed = round;
        int n = 0;
        unlink(fixture_db);
        struct store *s = fixture_open();
        for (int b = 0; b < BATCHES; b++) {
            struct stats *batch = stats_new();
            for (int i = (int)(random_u64(&seed) % PER_BATCH); i >= 0; i--, n++) {
                all[n] = random_request(&seed, (uint32_t)n);
                fixture_keep(batch, &all[n].request);
            }
            assert_true(store_write(s, 10, batch, &fixture_names));
            stats_free(batch);
            if (b % 5 == 0) {
                check_against_oracle(all, n, round);
            }
        }
        store_close(s);
        check_against_oracle(all, n, round);
    }
}

// -- failures -------------------------------------------------------------------------------------

// A request whose spans the file does not take is passed over, with all of it, and the others are
// kept.
static void test_a_malformed_request_is_passed_over(void **state) {
    (void)state;
    struct store *s = fixture_open();
    struct stats *batch = stats_new();
    assert_int_equal(
        sqlite3_exec(s->db,
                     "CREATE TRIGGER few BEFORE INSERT ON kept_spans WHEN new.span = 4 "
                     "BEGIN SELECT RAISE(ABORT, 'no'); END",
                     NULL, NULL, NULL),
        SQLITE_OK);
    const uint32_t spans[] = {3, 9, 2};
    for (int i = 0; i < 3; i++) {
        struct kept_request r =
            fixture_request(NOON, i == 1 ? "delete" : "create", KEPT_OVER, 1000 + i, spans[i]);
        fixture_keep(batch, &r);
    }
    assert_true(store_write(s, 10, batch, &fixture_names));
    assert_int_equal(store_set_aside(s), 1);
    store_close(s);
    stats_free(batch);
    fixture_expect(
        "SELECT count(*) || ',' || sum(duration_ns) || ',' || (SELECT count(*) FROM kept_spans) FROM kept_requests",
        "2,2002,5");
    fixture_expect("SELECT group_concat(unwritten_rows) FROM ledger", "1,1,1");
}

static void test_a_refused_batch_changes_nothing(void **state) {
    (void)state;
    struct store *s = fixture_open();
    struct stats *batch = stats_new();
    for (int i = 0; i < 20; i++) {
        struct kept_request r = fixture_request(NOON, "create", KEPT_OVER, 1000 + i, 3);
        fixture_keep(batch, &r);
    }
    assert_true(store_write(s, 10, batch, &fixture_names));
    stats_reset(batch);
    for (int i = 0; i < 200; i++) { // longer ones, which push the others out
        char name[16];
        snprintf(name, sizeof name, "tier %d", i);
        directory_tier(&fixture_names, slice_text(name));
        struct kept_request r = fixture_request(NOON, "create", KEPT_OVER, 100000 + i, 50);
        fixture_keep(batch, &r);
    }
    char sql[64];
    snprintf(sql, sizeof sql, "PRAGMA max_page_count = %lld",
             (long long)store_integer(s, "PRAGMA page_count", 0) + 2);
    sqlite3_exec(s->db, sql, NULL, NULL, NULL);
    for (int i = 0; i < 3; i++) {
        assert_false(store_write(s, 10, batch, &fixture_names));
        assert_non_null(strstr(store_error(s), "full"));
        fixture_expect(
            "SELECT min(duration_ns) || ',' || max(duration_ns) || ',' || count(*) || ',' || (SELECT count(*) FROM "
            "kept_spans) FROM kept_requests",
            "1010,1019,10,30");
    }
    sqlite3_exec(s->db, "PRAGMA max_page_count = 1000000", NULL, NULL, NULL);
    assert_true(store_write(s, 10, batch, &fixture_names));
    store_close(s);
    stats_free(batch);
    fixture_expect(
        "SELECT min(duration_ns) || ',' || max(duration_ns) || ',' || count(*) || ',' || (SELECT count(*) FROM "
        "kept_spans) FROM kept_requests",
        "100190,100199,10,500");
    fixture_expect("PRAGMA integrity_check", "ok");
}

// The id in somebody's notes never comes to mean another request.
static void test_ids_are_not_given_twice(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct stats *batch = stats_new();
        struct kept_request r = fixture_request(NOON, "create", KEPT_OVER, 1000, 1);
        fixture_keep(batch, &r);
        fixture_write(batch);
        char expected[8];
        snprintf(expected, sizeof expected, "%d", i + 1);
        fixture_expect("SELECT id FROM slow_requests", expected);
        free(fixture_ask(fixture_db, "DELETE FROM kept_requests"));
        fixture_expect("SELECT count(*) FROM kept_spans", "0");
    }
}

// -- retention ------------------------------------------------------------------------------------

static int expire_all(void) {
    struct store *s = fixture_open();
    int steps = 1;
    while (store_expire(s, NOON)) {
        assert_true(++steps < 1000);
    }
    assert_string_equal(store_error(s), "");
    store_close(s);
    return steps;
}

static void test_old_requests_go_in_steps(void **state) {
    (void)state;
    static const int64_t ages[] = {0, RETENTION_KEPT_S, RETENTION_KEPT_S + 1, 30 * 86400};
    struct stats *batch = stats_new();
    for (int i = 0; i < 4; i++) {
        struct kept_request r = fixture_request(NOON - ages[i], "create", KEPT_OVER, 1000 + i, 3);
        fixture_keep(batch, &r);
    }
    for (int i = 0; i < 150; i++) {
        struct kept_request r =
            fixture_request(NOON - 40 * 86400 - i, "create", KEPT_OVER, 1000000, 1000);
        fixture_keep(batch, &r);
    }
    fixture_write(batch);
    assert_in_range(expire_all(), 150 * 1000 / RETENTION_STEP_SPANS,
                    150 * 1000 / RETENTION_STEP_SPANS + 2);
    fixture_expect(
        "SELECT min(duration_ns) || ',' || max(duration_ns) || ',' || count(*) || ',' || (SELECT count(*) FROM "
        "kept_spans) FROM kept_requests",
        "1000,1001,2,6");
}

static void test_too_many_requests_go_oldest_first(void **state) {
    (void)state;
    char sql[512];
    store_close(fixture_open());
    snprintf(
        sql, sizeof sql,
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO kept_requests (bucket_start, "
        "node_id, identity_id, reason, begin_ns, duration_ns, error, cut, spans, kept_spans) SELECT %d, 1, 1, 0, %d000000000 - "
        "i, i, 0, 0, 0, 0 FROM n",
        RETENTION_KEPT_REQUESTS + 24, NOON, NOON);
    free(fixture_ask(fixture_db, sql));
    assert_int_equal(expire_all(), 1);
    snprintf(sql, sizeof sql, "SELECT count(*) = %d AND max(duration_ns) = %d FROM kept_requests",
             RETENTION_KEPT_REQUESTS, RETENTION_KEPT_REQUESTS - 1);
    fixture_expect(sql, "1");
}

// A node whose clock is a year ahead has the newest requests of all; it still gives up its own.
static void test_a_clock_ahead_pushes_nobody_out(void **state) {
    (void)state;
    char sql[512];
    store_close(fixture_open());
    for (int node = 1; node <= 2; node++) {
        snprintf(
            sql, sizeof sql,
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO kept_requests (bucket_start, "
            "node_id, identity_id, reason, begin_ns, duration_ns, error, cut, spans, kept_spans) SELECT %d, %d, 1, 0, %d000000000 + "
            "%d * 31536000 * 1000000000 + i, i, 0, 0, 0, 0 FROM n",
            node == 1 ? 3000 : RETENTION_KEPT_REQUESTS + 500, NOON, node, NOON, node - 1);
        free(fixture_ask(fixture_db, sql));
    }
    expire_all();
    snprintf(sql, sizeof sql, "SELECT count(*) = 3000 FROM kept_requests WHERE node_id = 1");
    fixture_expect(sql, "1");
    snprintf(
        sql, sizeof sql,
        "SELECT count(*) = %d AND min(duration_ns) = 3501 FROM kept_requests WHERE node_id = 2",
        RETENTION_KEPT_REQUESTS - 3000);
    fixture_expect(sql, "1");
}

static void test_too_many_spans_go_oldest_first(void **state) {
    (void)state;
    char sql[512];
    store_close(fixture_open());
    snprintf(
        sql, sizeof sql,
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 11) INSERT INTO kept_requests (bucket_start, "
        "node_id, identity_id, reason, begin_ns, duration_ns, error, cut, spans, kept_spans) SELECT %d, 1, 1, 0, %d000000000 - "
        "i, i, 0, 0, 0, %d FROM n",
        NOON, NOON, RETENTION_KEPT_SPANS / 10);
    free(fixture_ask(fixture_db, sql));
    expire_all();
    fixture_expect("SELECT count(*) || ',' || max(duration_ns) FROM kept_requests", "10,9");
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define KEPT_TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
        KEPT_TEST(test_a_request_to_the_digit),
        KEPT_TEST(test_reasons_and_their_caps),
        KEPT_TEST(test_random_batches_against_an_oracle),
        KEPT_TEST(test_a_malformed_request_is_passed_over),
        KEPT_TEST(test_a_refused_batch_changes_nothing),
        KEPT_TEST(test_ids_are_not_given_twice),
        KEPT_TEST(test_old_requests_go_in_steps),
        KEPT_TEST(test_too_many_requests_go_oldest_first),
        KEPT_TEST(test_too_many_spans_go_oldest_first),
        KEPT_TEST(test_a_clock_ahead_pushes_nobody_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
