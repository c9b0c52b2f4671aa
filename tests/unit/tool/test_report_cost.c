// SPDX-License-Identifier: Apache-2.0
// Files of report/ and tool/report/ on costs: the estimate, the table to the letter,
// the advice.
#include "tool_fixture.h"

#include "tool/report/print.h"

enum { NOON = 1763640000, MS = 1000000 };

static char names[4][32];

// A stream of four tiers, of which the tests change what they are about.
struct stream {
    struct cost rows[4];
    struct costs costs;
    struct query_row request;
    struct query_sums sums;
};

static void stream_make(struct stream *s) {
    static const char *const list[4] = {"storage", "http", "pool", "cache"};
    *s = (struct stream){0};
    for (int i = 0; i < 4; i++) {
        strcpy(names[i], list[i]);
        s->rows[i] = (struct cost){names[i], 2000, 220000, 1000, 1000ULL * 100000, 0};
    }
    s->costs = (struct costs){s->rows, 4, 10000, 1100000, 10, NOON, NOON + 20};
    s->request = (struct query_row){
        .identity = "_total", .tier = "_total", .calls = 900, .duration_ns = 900ULL * MS};
    s->sums =
        (struct query_sums){.rows = &s->request, .count = 1, .ledger = {.requests_complete = 900}};
    s->sums.ledger.requests_incomplete = 99;
    s->sums.ledger.requests_expired = 1;
}

// The output for a stream goes where that of the tool goes.
static void show(struct stream *s, void (*how)(const struct report_cost *r, struct buffer *out)) {
    struct report_cost r;
    struct buffer out = buffer_make(sizeof output - 1);
    report_clean_costs(&s->costs);
    assert_true(report_cost_make(&r, &s->costs, &s->sums));
    how(&r, &out);
    assert_false(out.failed);
    memcpy(output, out.data, out.len);
    output[out.len] = 0;
    buffer_free(&out);
    report_cost_free(&r);
}

static void test_table(void **state) {
    (void)state;
    struct stream s;
    stream_make(&s);
    s.rows[0].bytes = 5000000;
    s.costs.stream_bytes = 6000000;
    s.rows[1].duration_ns = 1000 * 10000;
    s.rows[2].messages = 9;
    s.rows[2].bytes = 900;
    s.rows[2].calls = 0;
    s.rows[2].duration_ns = 0;
    s.rows[3].duration_ns = 1000ULL * 100 * MS;
    show(&s, report_cost_table);
    expect_output(
        " tier               messages    bytes   bytes a call   of all bytes   est. time   est. "
        "time a call   of its time\n"
        " -----------------------------------------------------------------------------------------"
        "----------------------\n"
        " storage                2000   5.0 MB         5.0 KB           83 %       12 ms           "
        "   12 µs          12 %\n"
        " http                   2000   220 KB          220 B          3.7 %      2.5 ms           "
        "  2.5 µs          25 %\n"
        " pool                      9    900 B          200 B         <0.1 %       11 µs           "
        "  2.5 µs             -\n"
        " cache                  2000   220 KB          220 B          3.7 %      2.5 ms           "
        "  2.5 µs        <0.1 %\n"
        " (none)                 3991   559 KB              -          9.3 %      5.2 ms           "
        "       -             -\n"
        " -----------------------------------------------------------------------------------------"
        "----------------------\n"
        " all, per request      10000   6.0 MB         6.0 KB          100 %       22 ms           "
        "   22 µs         2.2 %\n"
        "\n"
        " Time: estimated, in the traced node: 1250 ns a message, and 2 ns for each of its bytes over 110.\n"
        " (none): begins and ends of requests, spawns, and whatever else names no tier.\n"
        " 2025-11-20T12:00:00Z to 2025-11-20T12:00:20Z, buckets of 10 s\n"
        "\n"
        " storage: tracing takes about 12 % of its 100 µs.\n"
        "   Sample ({sample, {one_in, N}}), which traces only one request in N, or trace a function above it instead, "
        "whose\n"
        "   time includes this one's.\n"
        " storage: 5.0 KB a call, 83 % of all bytes.\n"
        "   With #{returns => none} what it returns stays on the node. Its errors are lost by that: most calls that end "
        "in an\n"
        "   exception are counted like others. It had none in this time.\n"
        " http: tracing takes about 25 % of its 10 µs.\n"
        "   Sample ({sample, {one_in, N}}), which traces only one request in N, or trace a function above it instead, "
        "whose\n"
        "   time includes this one's.\n");
}

static void test_no_advice_no_lines(void **state) {
    (void)state;
    struct stream s;
    stream_make(&s);
    show(&s, report_cost_table);
    assert_string_equal(strstr(output, "buckets"), "buckets of 10 s\n");
}

// -- the estimate

static struct cost_estimate estimate(struct cost row, uint64_t messages, uint64_t bytes) {
    struct costs costs = {&row, 1, messages, bytes, 10, NOON, NOON + 10};
    struct query_sums sums = {0};
    struct report_cost r;
    char name[] = "db";
    row.tier = name;
    assert_true(report_cost_make(&r, &costs, &sums));
    struct cost_estimate e = r.tiers[0];
    report_cost_free(&r);
    return e;
}

static void test_time(void **state) {
    (void)state;
    struct cost row = {NULL, 2000, 220000, 1000, 1000ULL * 50000, 0};
    struct cost_estimate e = estimate(row, 4000, 880000);
    assert_true(e.ns == 2000 * 1250.0);
    assert_true(e.per_call_ns == 2500 && e.of_time == 0.05);
    assert_true(e.messages_share == 0.5 && e.bytes_share == 0.25);
    row.bytes += 1000000;
    e = estimate(row, 4000, 2000000);
    assert_true(e.ns == 2000 * 1250.0 + 2e6);
    row.bytes = 1; // smaller than ordinary: no less
    assert_true(estimate(row, 4000, 880000).ns == 2000 * 1250.0);
    // Half of the calls were in incomplete requests: the messages tell that they were.
    row = (struct cost){NULL, 4000, 440000, 1000, 1000ULL * 50000, 0};
    e = estimate(row, 4000, 440000);
    assert_true(e.calls == 2000 && e.per_call_ns == 2500 && e.bytes_per_call == 220);
    // returns => none: one message a call
    row = (struct cost){NULL, 1000, 130000, 1000, 1000ULL * 50000, 0};
    e = estimate(row, 1000, 130000);
    assert_true(e.calls == 1000 && e.per_call_ns == 1250 + 2 * 20);
}

static void test_advice(void **state) {
    (void)state;
    enum { NONE, SAMPLE, RETURNS, ARGUMENTS };
    static const struct {
        uint64_t messages, bytes, duration_us; // of 1000 calls
        uint64_t all_messages, all_bytes;
        int advice;
    } cases[] = {
        {2000, 220000, 24, 10000, 1000000, SAMPLE},     // 2.5 µs of 24
        {2000, 220000, 26, 10000, 1000000, NONE},       // of 26
        {2000, 220000, 24, 39000, 1000000, SAMPLE},     // 5.1 % of the messages
        {2000, 220000, 24, 41000, 1000000, NONE},       // 4.9 %
        {2000, 1001000, 1000, 10000, 9000000, RETURNS}, // 1001 bytes a call
        {2000, 1000000, 1000, 10000, 9000000, NONE},    // 1000
        {2000, 1001000, 1000, 10000, 20000000, RETURNS},
        {2000, 1001000, 1000, 10000, 20100000, NONE}, // under 5 % of the bytes
        {1499, 1001000, 1000, 10000, 9000000, ARGUMENTS},
        {1501, 1001000, 1000, 10000, 9000000, RETURNS},
        {2000, 220000, 0, 10000, 1000000, NONE}, // no time: no share
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cost row = {
            NULL, cases[i].messages, cases[i].bytes, 1000, 1000000 * cases[i].duration_us, 0};
        struct cost_estimate e = estimate(row, cases[i].all_messages, cases[i].all_bytes);
        if (e.sample != (cases[i].advice == SAMPLE) || e.returns != (cases[i].advice == RETURNS) ||
            e.arguments != (cases[i].advice == ARGUMENTS)) {
            fail_msg("case %zu: sample %d, returns %d, arguments %d", i, e.sample, e.returns,
                     e.arguments);
        }
    }
}

// Whose errors would be hidden is not told to hide them.
static void test_errors(void **state) {
    (void)state;
    struct stream s;
    stream_make(&s);
    s.rows[3].bytes = 2000000;
    s.costs.stream_bytes = 4000000;
    show(&s, report_cost_table);
    expect_part(
        " cache: 2.0 KB a call, 50 % of all bytes.\n   With #{returns => none} what it returns stays on the node. ");
    show(&s, report_cost_json);
    expect_json("$.tiers[3].advice", "[\"returns_none\"]");
    s.rows[3].errors = 216;
    show(&s, report_cost_table);
    expect_part(
        " cache: 2.0 KB a call, 50 % of all bytes.\n   It had 216 errors: #{returns => none} would hide most of these. ");
    expect_no_part("With #{returns => none}");
    show(&s, report_cost_json);
    expect_json("$.tiers[3].advice", "[]");
    expect_json("$.tiers[3].errors", "216");
}

static void test_arguments_line(void **state) {
    (void)state;
    struct stream s;
    stream_make(&s);
    s.rows[3].messages = 1000;
    s.rows[3].bytes = 2000000;
    s.costs.stream_bytes = 4000000;
    show(&s, report_cost_table);
    expect_part(
        " cache: 2.0 KB a call, 50 % of all bytes.\n"
        "   An identity function of nothing but patterns and guards leaves its arguments on the node.\n");
}

// Numbers of any size, that contradict each other, and names of any kind.
static void test_hostile(void **state) {
    (void)state;
    static const uint64_t values[] = {0, 1, 2, 1000, INT64_MAX, UINT64_MAX};
    uint64_t seed = 3;
    for (int round = 0; round < 500; round++) {
        struct stream s;
        stream_make(&s);
        uint64_t *const all[] = {
            &s.rows[0].messages, &s.rows[0].bytes,         &s.rows[0].calls,
            &s.rows[1].messages, &s.rows[1].duration_ns,   &s.rows[2].bytes,
            &s.rows[3].calls,    &s.costs.stream_messages, &s.costs.stream_bytes,
            &s.request.calls,    &s.request.duration_ns,   &s.sums.ledger.requests_complete};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            *all[i] = values[random_u64(&seed) % 6];
        }
        s.costs.count = (uint32_t)(random_u64(&seed) % 5);
        show(&s, report_cost_table);
        expect_no_part("nan");
        expect_no_part("inf");
        show(&s, report_cost_json);
        expect_json("$.estimate.message_ns", "1250");
    }
    struct stream s;
    stream_make(&s);
    s.costs.stream_messages = s.costs.stream_bytes = 1; // less than the tiers have
    show(&s, report_cost_json);
    expect_json("$.none.messages", "0");
    expect_json("$.none.bytes", "0");
    stream_make(&s);
    strcpy(names[1], "\x1b[2J\n");
    s.rows[1].duration_ns = 1000 * 10000;
    show(&s, report_cost_table);
    expect_part("\n ?[2J? ");
    expect_part("\n ?[2J?: tracing takes about ");
    show(&s, report_cost_json);
    expect_json("$.tiers[1].tier", "?[2J?");
    static char name[1002];
    for (int i = 0; i < 500; i++) {
        memcpy(name + 2 * i, "ö", 2);
    }
    s.rows[0].tier = name; // longer than a cell
    s.rows[0].duration_ns = 1;
    show(&s, report_cost_table);
    expect_part("ööö: tracing takes about ");
}

static void test_no_memory(void **state) {
    (void)state;
    struct stream s;
    struct report_cost r;
    stream_make(&s);
    fail_alloc_at(0);
    assert_false(report_cost_make(&r, &s.costs, &s.sums));
    fail_alloc_at(-1);
}

// -- json

static void test_json(void **state) {
    (void)state;
    struct stream s;
    stream_make(&s);
    s.rows[0].bytes = 5000000;
    s.costs.stream_bytes = 10000000;
    s.rows[1].calls = s.rows[1].duration_ns = 0;
    s.rows[2] = (struct cost){.tier = names[2]};
    show(&s, report_cost_json);
    expect_json("$.from", "2025-11-20T12:00:00Z");
    expect_json("$.until", "2025-11-20T12:00:20Z");
    expect_json("$.resolution_s", "10");
    expect_json(
        "$.tiers[0]",
        "{\"tier\":\"storage\",\"messages\":2000,\"bytes\":5000000,\"messages_share\":0.2,\"bytes_"
        "share\":0.5,"
        "\"cost_us\":12060,\"calls\":1000,\"errors\":0,\"bytes_per_call\":5000,\"cost_per_call_us\":12.06,"
        "\"cost_share\":0.1206,\"advice\":[\"sample\",\"returns_none\"],"
        "\"findings\":[{\"kind\":\"sample\",\"text\":\"tracing takes about 12 % of its 100 µs\","
        "\"advice\":\"Sample ({sample, {one_in, N}}), which traces only one request in N, or trace a function above it "
        "instead, whose time includes this one's.\"},"
        "{\"kind\":\"returns_none\",\"text\":\"5.0 KB a call, 50 % of all bytes\","
        "\"advice\":\"With #{returns => none} what it returns stays on the node. Its errors are lost by that: most calls "
        "that end in an exception are counted like others. It had none in this time.\"}]}");
    expect_json("$.tiers[1].bytes_per_call", "220");
    expect_json(
        "$.tiers[2]",
        "{\"tier\":\"pool\",\"messages\":0,\"bytes\":0,\"messages_share\":0,\"bytes_share\":0,\"cost_us\":0,"
        "\"calls\":0,\"errors\":0,\"bytes_per_call\":null,\"cost_per_call_us\":null,\"cost_share\":null,\"advice\":[],\"findings\":[]}");
    expect_json("$.none",
                "{\"messages\":4000,\"bytes\":4560000,\"messages_share\":0.4,\"bytes_share\":0.456,"
                "\"cost_us\":13240}");
    expect_json("$.all",
                "{\"messages\":10000,\"bytes\":10000000,\"messages_share\":1,\"bytes_share\":1,"
                "\"cost_us\":30300,\"requests\":1000,\"bytes_per_request\":10000,"
                "\"cost_per_request_us\":30.3,\"cost_share\":0.0303}");
    expect_json("$.estimate", "{\"message_ns\":1250,\"byte_ns\":2,\"ordinary_message_bytes\":110}");
    s.rows[3].messages = 1000;
    s.rows[3].bytes = 2000000;
    show(&s, report_cost_json);
    expect_json("$.tiers[3].advice", "[\"identity_patterns\"]");
}

// -- the command

static void fill(void) {
    struct stats *batch = stats_new();
    for (int i = 0; i < 10; i++) {
        fixture_call(batch, NOON, "create", "_total", 10 * MS, false);
        fixture_call(batch, NOON, "create", "db", 5 * MS, false);
    }
    struct cost_row *cost =
        stats_cost(batch, NOON, directory_node(&fixture_names, slice_text("shop@host")),
                   directory_tier(&fixture_names, slice_text("db")));
    cost->messages = 20;
    cost->bytes = 20000;
    struct ledger_row *ledger = fixture_ledger(batch, NOON);
    ledger->requests_complete = 10;
    ledger->messages = 40;
    ledger->bytes = 25000;
    ledger->reloads = 1;
    fixture_write(batch);
}

static void test_command(void **state) {
    (void)state;
    fill();
    assert_int_equal(tool_ask("report", "--cost"), 0);
    expect_part(
        " Code was reloaded 1 time. Requests that were open then are incomplete.\n\n tier  ");
    expect_part(
        "\n db                       20    20 KB         2.0 KB           80 %       61 µs           "
        "  6.1 µs         "
        "0.1 %\n");
    expect_part(
        "\n all, per request         40    25 KB         2.5 KB          100 %       91 µs           "
        "  9.1 µs         "
        "0.1 %\n");
    expect_part(
        " db: 2.0 KB a call, 80 % of all bytes.\n"
        "   With #{returns => none} what it returns stays on the node. Its errors are lost by that: ");
    assert_int_equal(tool_ask("report", "--cost --json"), 0);
    expect_json("$.tiers[0].bytes", "20000");
    expect_json("$.all.requests", "10");
    assert_int_equal(tool_ask("report", "--cost --node other@host"), 1);
    expect_line("has data from");
    assert_int_equal(tool_ask("report", "--cost --identity create"), 2);
    expect_line("not with --identity");
    assert_int_equal(tool_ask("report", "--wait --cost"), 2);
    expect_line("not with --wait");
}

// Who edits the file may enter any time. What lies beyond those that can be told is told as the
// last of them.
static void test_times_beyond_all(void **state) {
    (void)state;
    static const char first[] = "1677-09-21T00:12:43Z", last[] = "2262-04-11T23:47:16Z";
    sqlite3 *db;
    fill();
    assert_int_equal(sqlite3_open(fixture_db, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "UPDATE stat_rows SET bucket_start = 9223372036854775806;"
                                  "UPDATE cost_rows SET bucket_start = 9223372036854775800;"
                                  "UPDATE ledger_rows SET bucket_start = -9223372036854775807 - 1;",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
    const char *const texts[] = {"", "--cost"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tool_ask("report", texts[i]), 0);
        expect_part(first);
        expect_part(last);
    }
    const char *const json[] = {"--json", "--cost --json"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tool_ask("report", json[i]), 0);
        expect_json("$.from", first);
        expect_json("$.until", last);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_no_advice_no_lines),
        cmocka_unit_test(test_time),
        cmocka_unit_test(test_advice),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_arguments_line),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_json),
        cmocka_unit_test_setup_teardown(test_command, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_times_beyond_all, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
