// SPDX-License-Identifier: Apache-2.0
// query_slow.c: the list with its filters and order, and one request with its spans.
#include "store_fixture.h"

#include "store/query_slow.h"

enum { NOON = 1763640000 };

static const struct slow_filter everything = {INT64_MIN, INT64_MAX, NULL, NULL, false, 1000};

// Seven requests, ids 1 … 7.
static void fill(void) {
    static const struct {
        int64_t at;
        const char *node;
        const char *identity;
        uint8_t reason;
        int64_t duration;
    } all[] = {
        {0, "shop@host", "create", KEPT_OVER, 500},   {0, "shop@host", "create", KEPT_FAILED, 900},
        {10, "shop@host", "größe", KEPT_SLOWEST, 20}, {10, "other@host", "create", KEPT_OVER, 500},
        {20, "shop@host", "create", KEPT_OVER, 7000}, {20, "shop@host", "create", KEPT_FAILED, 1},
        {30, "other@host", "größe", KEPT_OVER, 30}};
    struct stats *batch = stats_new();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct kept_request r = fixture_request(NOON + all[i].at, all[i].identity, all[i].reason,
                                                all[i].duration, (uint32_t)i);
        r.node = directory_node(&fixture_names, slice_text(all[i].node));
        r.error = all[i].reason == KEPT_FAILED || i == 6; // one over the threshold failed, too
        r.cut = i == 4;
        memset(r.parent.trace_id, i == 4 ? 0xab : 0, TRACE_ID_BYTES);
        memset(r.parent.span_id, i == 4 ? 0xcd : 0, SPAN_ID_BYTES);
        fixture_keep(batch, &r);
    }
    fixture_write(batch);
}

// The ids of the answer, in its order.
static void expect_ids(struct slow_filter filter, const char *expected) {
    char ids[64] = "";
    struct slow_list list;
    struct store *s = fixture_reader();
    if (!query_slow_list(s, &filter, &list)) {
        fail_msg("%s", store_error(s));
    }
    for (uint32_t i = 0; i < list.count; i++) {
        sprintf(ids + strlen(ids), "%lld", (long long)list.requests[i].id);
    }
    assert_string_equal(ids, expected);
    slow_list_free(&list);
    store_close(s);
}

static void test_order_and_filters(void **state) {
    (void)state;
    struct slow_filter f;
    store_close(fixture_open());
    expect_ids(everything, "");
    fill();
    expect_ids(everything, "5214736");
    f = everything, f.most = 3;
    expect_ids(f, "521");
    f = everything, f.most = 0;
    expect_ids(f, "");
    f = everything, f.node = "other@host";
    expect_ids(f, "47");
    f = everything, f.identity = "größe";
    expect_ids(f, "73");
    f = everything, f.identity = "grö%";
    expect_ids(f, "");
    f = everything, f.failed = true;
    expect_ids(f, "276");
    f = everything, f.from_s = NOON + 10;
    expect_ids(f, "54736");
    f.until_s = NOON + 20;
    expect_ids(f, "43");
    f = everything, f.until_s = NOON + 10;
    expect_ids(f, "21");
    f.from_s = INT64_MIN + 1, f.until_s = INT64_MAX - 1; // no ns for these
    expect_ids(f, "5214736");
    f = everything, f.node = "shop@host", f.identity = "create", f.failed = true,
    f.from_s = NOON + 1;
    expect_ids(f, "6");
}

static void test_a_request_as_it_was_kept(void **state) {
    (void)state;
    struct slow_list list;
    fill();
    struct store *s = fixture_reader();
    assert_true(query_slow_list(s, &everything, &list));
    const struct slow_request *r = &list.requests[0];
    assert_string_equal(r->node, "shop@host");
    assert_string_equal(r->identity, "create");
    assert_string_equal(r->reason, "over");
    assert_string_equal(r->outcome, "ok");
    assert_true(r->cut);
    assert_int_equal(r->started_ns, (NOON + 20) * 1000000000LL);
    assert_int_equal(r->duration_ns, 7000);
    assert_int_equal(r->spans, 4);
    assert_int_equal(r->kept, 4);
    assert_string_equal(r->trace_id, "abababababababababababababababab");
    assert_string_equal(r->parent_span_id, "cdcdcdcdcdcdcdcd");
    assert_null(list.requests[1].trace_id);
    assert_null(list.requests[1].parent_span_id);
    assert_string_equal(list.requests[1].reason, "failed");
    assert_string_equal(list.requests[1].outcome, "error");
    assert_false(list.requests[1].cut);
    assert_string_equal(list.requests[5].reason, "slowest");
    assert_string_equal(list.requests[5].identity, "größe");
    slow_list_free(&list);
    store_close(s);
}

static void keep_tree(void) {
    struct stats *batch = stats_new();
    struct kept_request r = fixture_request(NOON, "create", KEPT_OVER, 9000, 70);
    const uint16_t db = directory_tier(&fixture_names, slice_text("db"));
    const struct kept_span spans[] = {
        {1, 11, 21, 31, 36, 41, 51, 5ULL << 32 | 80, UINT32_MAX, db, false, false, false, false, 77,
         false, 0},
        {2, 12, 22, 32, 37, 42, 52, 81, 0, db, false, true, false, false, 0, true, INT64_MIN},
        {3, 0, 0, 0, 0, 0, 0, 81, 1, db, true, false, false, false, 0, false, 0},
        {4, 14, 24, 34, 39, 44, 54, 82, 0, db, false, false, true, true, 0, true, 0},
        {5, 15, 25, 35, 40, 45, 55, 83, UINT32_MAX, db, false, false, false, false, UINT64_MAX,
         true, 9}};
    r.count = 5;
    assert_true(stats_keep(batch, &r, spans));
    fixture_write(batch);
}

static void test_spans(void **state) {
    (void)state;
    static const struct {
        uint32_t parent, depth;
        const char *pid, *outcome;
    } expected[] = {{UINT32_MAX, 0, "<0.80.5>", "ok"},
                    {0, 1, "<0.81.0>", "error"},
                    {1, 2, "<0.81.0>", "open"},
                    {0, 1, "<0.82.0>", "unknown"},
                    {UINT32_MAX, 0, "<0.83.0>", "ok"}};
    struct slow_spans spans;
    bool found;
    keep_tree();
    struct store *s = fixture_reader();
    assert_true(query_slow_spans(s, 1, &found, &spans));
    assert_true(found);
    assert_int_equal(spans.request.id, 1);
    assert_int_equal(spans.request.spans, 70);
    assert_int_equal(spans.request.kept, 5);
    assert_int_equal(spans.count, 5);
    for (uint32_t i = 0; i < 5; i++) {
        const struct slow_span *span = &spans.spans[i];
        assert_int_equal(span->parent, expected[i].parent);
        assert_int_equal(span->depth, expected[i].depth);
        assert_string_equal(span->name, "db");
        assert_string_equal(span->pid, expected[i].pid);
        assert_string_equal(span->outcome, expected[i].outcome);
        assert_int_equal(span->start_ns, 1 + i);
        assert_int_equal(span->duration_ns, i == 2 ? 0 : 11 + i);
        assert_int_equal(span->self_ns, i == 2 ? 0 : 21 + i);
        assert_int_equal(span->wait_ns, i == 2 ? 0 : 31 + i);
        assert_int_equal(span->waiting_ns, i == 2 ? 0 : 36 + i);
        assert_int_equal(span->measured, i % 2 == 1 || i == 4);
        assert_int_equal(span->run_queue_ns, i == 3 ? 0 : i == 4 ? 9 : -1);
        assert_int_equal(span->gc_ns, i == 2 ? 0 : 41 + i);
        assert_int_equal(span->off_cpu_ns, i == 2 ? 0 : 51 + i);
        assert_int_equal(span->async, i == 3);
        assert_true(span->caller == (i == 0 ? 77 : i == 4 ? UINT64_MAX : 0));
    }
    slow_spans_free(&spans);

    assert_true(query_slow_spans(s, 2, &found, &spans));
    assert_false(found);
    assert_int_equal(spans.count, 0);
    slow_spans_free(&spans);
    store_close(s);
}

// What somebody changed in the file leads to no wild index.
static void test_damaged_trees(void **state) {
    (void)state;
    struct slow_spans spans;
    bool found;
    keep_tree();
    free(fixture_ask(fixture_db, "UPDATE kept_spans SET parent = 4 WHERE span = 2"));
    free(fixture_ask(fixture_db, "UPDATE kept_spans SET parent = -1, outcome = 77 WHERE span = 3"));
    struct store *s = fixture_reader();
    assert_true(query_slow_spans(s, 1, &found, &spans));
    assert_int_equal(spans.spans[2].parent, UINT32_MAX);
    assert_int_equal(spans.spans[2].depth, 0);
    assert_int_equal(spans.spans[3].parent, UINT32_MAX);
    assert_string_equal(spans.spans[3].outcome, "unknown");
    slow_spans_free(&spans);
    free(fixture_ask(fixture_db, "DELETE FROM kept_spans WHERE span = 1"));
    assert_false(query_slow_spans(s, 1, &found, &spans));
    assert_non_null(strstr(store_error(s), "span 1 is missing"));
    slow_spans_free(&spans);
    store_close(s);
}

// Request 1 of shop@host and its parts on other nodes, and a request that has nothing to do with
// it.
static void fill_parts(void) {
    static const struct {
        const char *node;
        bool remote;
        uint64_t label;
        int64_t at;
    } all[] = {{"shop@host", false, 77, 0}, {"db@host", true, 77, 5},
               {"db@host", true, 77, 3},    {"web@host", true, 77, -2},
               {"db@host", true, 78, 5},    {"db@host", false, 0, 1},
               {"web@host", false, 0, 1},   {"big@host", false, UINT64_MAX, 0}};
    struct stats *batch = stats_new();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct kept_request r = fixture_request(NOON, all[i].remote ? "_remote" : "create",
                                                KEPT_OVER, 500 + (int64_t)i, 1);
        r.node = directory_node(&fixture_names, slice_text(all[i].node));
        r.remote = all[i].remote;
        r.maker = directory_node(&fixture_names, slice_text("shop@host"));
        r.label = all[i].label;
        r.begin += all[i].at;
        fixture_keep(batch, &r);
    }
    fixture_write(batch);
}

// The ids of its parts, with '*' at the request itself.
static void expect_parts(int64_t id, const char *origin, const char *expected) {
    char ids[64] = "";
    struct slow_spans spans;
    bool found;
    struct store *s = fixture_reader();
    assert_true(query_slow_spans(s, id, &found, &spans));
    assert_true(found);
    for (uint32_t i = 0; i < spans.part_count; i++) {
        const struct slow_part *p = &spans.parts[i];
        sprintf(ids + strlen(ids), "%lld%s%.2s ", (long long)p->id, p->remote ? "" : "*", p->node);
        assert_int_equal(p->duration_ns, 500 + p->id - 1);
    }
    assert_string_equal(ids, expected);
    assert_string_equal(spans.request.origin ? spans.request.origin : "", origin);
    slow_spans_free(&spans);
    store_close(s);
}

static void test_parts(void **state) {
    (void)state;
    fill_parts();
    expect_parts(1, "", "4we 3db 2db ");
    expect_parts(2, "shop@host", "4we 1*sh ");
    expect_parts(4, "shop@host", "1*sh 3db 2db ");
    expect_parts(5, "shop@host", "");
    expect_parts(6, "", ""); // no label is no label in common
    expect_parts(8, "", "");
    fixture_expect(
        "SELECT group_concat(remote || coalesce(origin, '-') || coalesce(label, '-')) FROM (SELECT * FROM slow_requests "
        "ORDER BY id LIMIT 2)",
        "0-77,1shop@host77");
    fixture_expect(
        "SELECT group_concat(remote, '') FROM (SELECT remote FROM slow_spans ORDER BY request_id)",
        "01111000");
}

static void test_no_memory(void **state) {
    (void)state;
    int list_failures = 0, span_failures = 0;
    bool found;
    keep_tree();
    fill();
    struct store *s = fixture_reader();
    for (long n = 0; n < 40; n++) {
        struct slow_list list;
        struct slow_spans spans;
        fail_alloc_at(n);
        bool listed = query_slow_list(s, &everything, &list);
        fail_alloc_at(-1);
        assert_true(!listed || list.count == 8);
        list_failures += !listed;
        slow_list_free(&list);
        fail_alloc_at(n);
        bool read = query_slow_spans(s, 1, &found, &spans);
        fail_alloc_at(-1);
        assert_true(!read || (found && spans.count == 5));
        span_failures += !read;
        slow_spans_free(&spans);
    }
    // two texts each, one's trace and parent, and room for 1, 2, 4 and 8
    assert_int_equal(list_failures, 2 * 8 + 2 + 4);
    assert_int_equal(span_failures, 2 + 2 * 5 + 4); // the request's texts
    store_close(s);
}

// Sums of those that were kept for being slow, of one identity or of several.
static void test_sums_of_the_slow_ones(void **state) {
    (void)state;
    struct stats *batch = stats_new();
    static const char *const identities[] = {"create", "read", "update"};
    for (int i = 0; i < 9; i++) {
        struct kept_request r =
            fixture_request(NOON, identities[i % 3], i < 6 ? KEPT_OVER : KEPT_FAILED, 9000 + i, 2);
        r.uncovered = 7, r.parallel = 3;
        fixture_keep(batch, &r);
    }
    fixture_write(batch);
    static const struct {
        const char *identity;
        uint32_t rows;
        uint64_t requests;
    } asked[] = {{NULL, 9, 6}, {"read", 3, 2}, {"read" QUERY_OR "update", 6, 4}, {"none", 0, 0}};
    struct store *s = fixture_reader();
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        struct query q = {.from_s = NOON, .until_s = NOON + 10, .identity = asked[i].identity};
        struct query_sums sums;
        uint64_t requests = 0;
        assert_true(query_slow_sums(s, &q, &sums));
        assert_int_equal(sums.count, asked[i].rows);
        for (uint32_t k = 0; k < sums.count; k++) {
            const struct query_row *row = &sums.rows[k];
            bool whole = strcmp(row->tier, "_total") == 0;
            requests += whole ? row->requests : 0;
            assert_int_equal(row->calls, 2);
            assert_int_equal(row->self_ns, whole ? 2 * 7 : 2 * 10);
            assert_int_equal(row->parallel_ns, whole ? 2 * 3 : 0);
        }
        assert_int_equal(requests, asked[i].requests);
        query_sums_free(&sums);
    }
    store_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define SLOW_TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
        SLOW_TEST(test_order_and_filters),
        SLOW_TEST(test_a_request_as_it_was_kept),
        SLOW_TEST(test_spans),
        SLOW_TEST(test_sums_of_the_slow_ones),
        SLOW_TEST(test_damaged_trees),
        SLOW_TEST(test_parts),
        SLOW_TEST(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
