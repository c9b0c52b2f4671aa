// SPDX-License-Identifier: Apache-2.0
// Files of report/ and tool/report/, text.c and main.c: the table to the letter, and the tool
// as people run it.
#include "tool_fixture.h"

#include <locale.h>

#include "report/findings.h"
#include "report/trust.h"
#include "tool/report/print.h"
#include "tool/text.h"

enum { NOON = 1763640000, MS = 1000000 };

// -- text -----------------------------------------------------------------------------------------

static void test_fit(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t width;
        const char *fitted;
    } cases[] = {{"create", 8, "create  "},
                 {"create", 6, "create"},
                 {"create", 5, "crea…"},
                 {"create", 1, "…"},
                 {"create", 0, ""},
                 {"größe", 4, "grö…"},
                 {"日本語", 6, "日本語"},
                 {"日本語", 5, "日本…"},
                 {"日本語", 4, "日… "},
                 {"", 2, "  "},
                 {"e\xcc\x81t\xc3\xa9s", 3, "e\xcc\x81t…"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buffer out = buffer_make(100);
        text_fit(&out, cases[i].text, cases[i].width);
        buffer_append(&out, "", 1);
        assert_string_equal((char *)out.data, cases[i].fitted);
        assert_int_equal(text_width((char *)out.data), cases[i].width);
        buffer_free(&out);
    }
}

static void test_clean_and_width(void **state) {
    (void)state;
    static const struct {
        const char *raw;
        const char *clean;
        size_t width;
    } cases[] = {{"create", "create", 6},
                 {"größe", "größe", 5},
                 {"日本", "日本", 4},
                 {"e\xcc\x81t\xc3\xa9", "e\xcc\x81t\xc3\xa9", 3}, // a combining accent
                 {"a\x1b[31mb\n\x7f", "a?[31mb??", 9},
                 {"\xc2\x9b"
                  "31m",
                  "?31m", 4}, // the one-character CSI
                 {"\xe2\x80\xae"
                  "abc",
                  "?abc", 4}, // right to left
                 {"\xff\xc3", "??", 2},
                 {"", "", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[64];
        strcpy(text, cases[i].raw);
        text_clean(text);
        assert_string_equal(text, cases[i].clean);
        assert_int_equal(text_width(text), cases[i].width);
    }
}

// -- the database that the reports are of ---------------------------------------------------------

// requests of an identity: each takes total ns, and each tier its share of it
static void requests(struct stats *batch, const char *identity, int n, uint64_t http, uint64_t db,
                     uint64_t accounting) {
    for (int i = 0; i < n; i++) {
        fixture_call(batch, NOON, identity, "_total", (http + db) * MS, false);
        fixture_call(batch, NOON, identity, "http", http * MS, false);
        if (db > 0) {
            fixture_call(batch, NOON, identity, "db", db * MS, false);
        }
        fixture_call(batch, NOON, identity, "accounting", accounting * MS, true);
    }
}

static void fill(void) {
    struct store *s = fixture_open();
    struct stats *batch = stats_new();
    requests(batch, "foobar", 3, 40, 0, 2);
    requests(batch, "größe", 1, 80, 120, 6);
    fixture_row(batch, NOON, "shop@host", "größe", "_total")->errors = 1;
    fixture_row(batch, NOON, "shop@host", "_total", "_total")->errors = 1;
    fixture_ledger(batch, NOON)->requests_complete = 4;
    assert_true(store_write(s, 10, batch, &fixture_names));
    store_close(s);
    stats_free(batch);
}

static void lose(void) {
    struct store *s = fixture_open();
    struct stats *batch = stats_new();
    *fixture_ledger(batch, NOON + 10) = (struct ledger_row){.bucket_start = NOON + 10,
                                                            .requests_incomplete = 3,
                                                            .requests_expired = 1,
                                                            .requests_unsampled = 100,
                                                            .messages = 5,
                                                            .bytes = 6,
                                                            .dropped_messages = 7,
                                                            .orphan_returns = 1,
                                                            .stale_calls = 9,
                                                            .calls = 9000,
                                                            .decode_errors = 10,
                                                            .paused_ms = 1500};
    assert_true(store_write(s, 10, batch, &fixture_names));
    store_close(s);
    stats_free(batch);
}

static int kprof(const char *arguments) {
    return tool_run("LC_ALL=C", arguments);
}

static int report(const char *arguments) {
    return tool_ask("report", arguments);
}

// -- the table ------------------------------------------------------------------------------------

static void test_table(void **state) {
    (void)state;
    fill();
    assert_int_equal(report(""), 0);
    expect_output(
        "                              http        db    ~accounting     total    requests    errors\n"
        " ------------------------------------------------------------------------------------------\n"
        " Totals across all calls:    50 ms     30 ms        ~3.0 ms     80 ms           4         1\n"
        " ------------------------------------------------------------------------------------------\n"
        " größe                       80 ms    120 ms        ~6.0 ms    200 ms           1         1\n"
        " foobar                      40 ms         -        ~2.0 ms     40 ms           3         0\n"
        "\n"
        " Means per request. ~ asynchronous: calls that ended after their request, not part of its total.\n"
        " 4 complete requests; nothing lost; 2025-11-20T12:00:00Z to 2025-11-20T12:00:10Z, buckets of 10 "
        "s\n");
}

// -- waiting, garbage collection, scheduling

// Of fill()'s requests: what else is known of db and http.
static void fill_details(uint64_t wait, uint64_t gc, uint64_t off_cpu) {
    struct stats *batch = stats_new();
    static const char *const identities[] = {"größe", "_total"};
    for (int i = 0; i < 2; i++) {
        struct stat_row *db = fixture_row(batch, NOON, "shop@host", identities[i], "db");
        db->wait_ns = wait;
        db->gc_ns = gc;
        fixture_row(batch, NOON, "shop@host", identities[i], "http")->off_cpu_ns = off_cpu;
    }
    fixture_write(batch);
}

// Rows of one bucket whose waiting is measured, and told apart.
static void fill_measured(uint64_t wait, uint64_t measured, uint64_t run_queue) {
    struct stats *batch = stats_new();
    struct stat_row *db = fixture_row(batch, NOON, "shop@host", "_total", "db");
    db->wait_ns = wait;
    db->measured_ns = measured;
    db->run_queue_ns = run_queue;
    db->mailbox_ns = run_queue > 0 ? measured - run_queue : 0;
    fixture_write(batch);
}

static void test_measured_waiting(void **state) {
    (void)state;
    fill();
    fill_measured(4000ULL * MS, 4000ULL * MS, 1000ULL * MS);
    assert_int_equal(report(""), 0);
    expect_part("   waiting, measured             -     1.0 s              -\n"
                "     in the run queue            -    250 ms              -\n");
    expect_part(" Waiting, measured: from when a message was sent until");
    assert_int_equal(report("--json"), 0);
    expect_part("\"measured_us\":4000000,\"mailbox_us\":3000000,\"run_queue_us\":1000000,");
    expect_part("\"measured_us\":0,\"mailbox_us\":null,\"run_queue_us\":null,");
    fill_measured(4000ULL * MS, 0, 0); // and as much that is not
    assert_int_equal(report(""), 0);
    expect_part("   waiting, part measured        -     2.0 s              -\n");
    expect_no_part("run queue   "); // of all of it that is not known
    expect_part(" Waiting: measured, where that could be,");
}

static void test_details_under_the_totals(void **state) {
    (void)state;
    fill();
    fill_details(4000ULL * MS, 2 * MS, 1 * MS);
    assert_int_equal(report(""), 0);
    expect_output(
        "                               http        db    ~accounting     total    requests    errors\n"
        " -------------------------------------------------------------------------------------------\n"
        " Totals across all calls:     50 ms     30 ms        ~3.0 ms     80 ms           4         1\n"
        "   waiting, estimated             -     1.0 s              -\n"
        "   garbage collection             -    500 µs              -\n"
        "   off the CPU               250 µs         -              -\n"
        " -------------------------------------------------------------------------------------------\n"
        " größe                        80 ms    120 ms        ~6.0 ms    200 ms           1         1\n"
        " foobar                       40 ms         -        ~2.0 ms     40 ms           3         0\n"
        "\n"
        " Means per request. ~ asynchronous: calls that ended after their request, not part of its total.\n"
        " Waiting, estimated: before a tier's call begins in another process, about its time in mailbox and run queue, from the\n"
        " last that the caller is known to have done. It is no part of the tier's time. --wait shows it for each identity.\n"
        " Garbage collection, off the CPU: while a call of the tier was its process' innermost; part of its "
        "time.\n"
        " 4 complete requests; nothing lost; 2025-11-20T12:00:00Z to 2025-11-20T12:00:10Z, buckets of 10 "
        "s\n");
}

// A line that has nothing to say is not there, a wide one makes its column wide, and one identity
// has it too.
static void test_details_that_are_there(void **state) {
    (void)state;
    fill();
    fill_details(0, 0, 4123 * (uint64_t)1000 * MS);
    assert_int_equal(report("--identity größe"), 0);
    expect_output(
        "                      db      http    ~accounting     total    requests    errors\n"
        " --------------------------------------------------------------------------------\n"
        " größe            120 ms     80 ms        ~6.0 ms    200 ms           1         1\n"
        "   off the CPU         -    4123 s              -\n"
        "\n"
        " Means per request. ~ asynchronous: calls that ended after their request, not part of its "
        "total.\n"
        " Garbage collection, off the CPU: while a call of the tier was its process' innermost; part of "
        "its time.\n"
        " 1 complete request; nothing lost; 2025-11-20T12:00:00Z to 2025-11-20T12:00:10Z, buckets of 10 "
        "s\n");
}

static void test_wait(void **state) {
    (void)state;
    fill();
    fill_details(4000ULL * MS, 2 * MS, 1 * MS);
    assert_int_equal(report("--wait"), 0);
    expect_output(
        "                             http       db    ~accounting     total    requests    errors\n"
        " ----------------------------------------------------------------------------------------\n"
        " Totals across all calls:       -    1.0 s              -     80 ms           4         1\n"
        " ----------------------------------------------------------------------------------------\n"
        " größe                          -    4.0 s              -    200 ms           1         1\n"
        " foobar                         -        -              -     40 ms           3         0\n"
        "\n"
        " Mean waiting per request before the calls of each tier; total: of the requests' time.\n"
        " ~ asynchronous: calls that ended after their request, not part of its total.\n"
        " Waiting, estimated: before a tier's call begins in another process, about its time in mailbox and run queue, from the\n"
        " last that the caller is known to have done. It is no part of the tier's time.\n"
        " 4 complete requests; nothing lost; 2025-11-20T12:00:00Z to 2025-11-20T12:00:10Z, buckets of 10 "
        "s\n");
}

// -- whether the numbers can be trusted

static void expect_output_begins(const char *expected) {
    if (strncmp(output, expected, strlen(expected)) != 0) {
        fail_msg("got\n%s\nexpected\n%s", output, expected);
    }
}

static void test_what_was_lost(void **state) {
    (void)state;
    fill();
    lose();
    assert_int_equal(report(""), 0);
    expect_output_begins(
        " Paused: tracing was off for 1.5 s as asked for, 3 of 8 requests incomplete, 1 request expired, "
        "7 messages dropped,\n"
        "   1 return without its call, 10 messages not understood.\n"
        " Biased: 4 of 8 requests are missing, long ones more often than short ones.\n"
        "   The true means and percentiles are higher than those shown.\n"
        " Messages are dropped when the collector or the network is too slow, or when a connection breaks:\n"
        "   the collector's log tells which.\n"
        " 1 request did not end in time:\n"
        "   if requests take so long, raise the collector's --request-timeout; if not, nothing ends them: kprof:clear_token()\n"
        "   may not be called, or the entry may be a function that loops.\n"
        "\n"
        "                              http");
    expect_part(
        " 4 complete requests, 100 unsampled, 9 calls too late; lost: see above; 2025-11-20T12:00:00Z to "
        "2025-11-20T12:00:20Z, buckets of 10 s\n");
}

// However large the numbers are, nothing is cut and no finding or count is one too many.
static void test_findings_of_everything(void **state) {
    (void)state;
    struct query_sums sums = {.stale_count = QUERY_STALE};
    struct findings f;
    memset(&sums.ledger, 0xff, sizeof sums.ledger);
    for (uint32_t i = 0; i < QUERY_STALE; i++) {
        sums.stale[i] = (struct query_stale){"db", UINT64_MAX, UINT64_MAX};
    }
    findings_make(&f, &sums);
    assert_true(f.count <= FINDINGS);
    assert_int_equal(f.counted, FINDING_COUNTS);
    for (uint32_t i = 0; i < f.count; i++) {
        const struct finding *one = &f.list[i];
        assert_true(strlen(one->text) < FINDING_TEXT_BYTES - 1);
        assert_true(one->text[0] || one->count > 0);
        assert_false(one->meaning && one->advice);
        assert_true(i == 0 || one->kind > f.list[i - 1].kind);
        for (uint32_t k = 0; k < one->count; k++) {
            assert_true(strlen(one->counts[k].text) < FINDING_COUNT_BYTES - 1);
        }
    }
}

static void test_unmarked(void **state) {
    (void)state;
    char text[TRUST_UNMARKED_BYTES];
    assert_string_equal(trust_unmarked_text(1, text), "1 call, but nothing has begun a request");
    assert_string_equal(trust_unmarked_text(1234567, text),
                        "1,234,567 calls, but nothing has begun a request");
}

// What report says above the numbers for one ledger row.
static void expect_trust(const struct ledger_row *ledger, const char *verdict,
                         const char *expected) {
    struct query_sums sums = {.ledger = *ledger, .has_ledger = true};
    struct report r;
    struct buffer out = buffer_make(4096);
    assert_true(report_make(&r, &sums));
    assert_string_equal(trust_verdict(&sums), verdict);
    report_trust(&r, &out);
    buffer_append(&out, "", 1);
    assert_false(out.failed);
    if (strcmp((char *)out.data, expected) != 0) {
        fail_msg("got\n%s\nexpected\n%s", (char *)out.data, expected);
    }
    buffer_free(&out);
    report_free(&r);
}

static void test_trust(void **state) {
    (void)state;
#define LEDGER(...) &(const struct ledger_row){.requests_complete = 3988, __VA_ARGS__}
    expect_trust(LEDGER(.requests_unsampled = 7, .calls = 8000, .stale_calls = 8), "ok", "");
    expect_trust(
        LEDGER(.coarse_rows = 3), "ok",
        " Coarse: the memory for statistics was full, so percentiles may be off by more than "
        "1.1 %.\n"
        "   Counts, sums, means and extremes are exact.\n\n");
    expect_trust(
        LEDGER(.unwritten_rows = 2), "lossy",
        " Lossy: 2 rows not written.\n"
        " Some rows were not written, because the database holds malformed ones in their place:\n"
        "   the collector's log tells which.\n\n");
    // overload is blamed for trips alone
    expect_trust(
        LEDGER(.requests_incomplete = 12, .dropped_messages = 340, .incomplete_loss = 12), "lossy",
        " Lossy: 12 of 4000 requests incomplete, 340 messages dropped.\n"
        " Incomplete: 12 because messages were lost.\n"
        " Messages are dropped when the collector or the network is too slow, or when a connection breaks:\n"
        "   the collector's log tells which.\n\n");
    expect_trust(LEDGER(.paused_ms = 1), "paused",
                 " Paused: tracing was off for 1.0 ms as asked for.\n\n");
    expect_trust(LEDGER(.away_ms = 61000), "paused",
                 " Paused: tracing was off for 61 s without a collector.\n\n");
    expect_trust(
        LEDGER(.tripped_ms = 2000, .trips = 1, .away_ms = 61000, .paused_ms = 2500), "paused",
        " Paused: tracing was off for 2.0 s by the guard (1 trip), tracing was off for 61 s without "
        "a collector,\n"
        "   tracing was off for 2.5 s as asked for.\n"
        " The node makes more messages than it can deliver: sample ({sample, {one_in, N}}), or "
        "trace fewer tiers.\n\n");
    expect_trust(
        LEDGER(.requests_expired = 1), "lossy",
        " Lossy: 1 request expired.\n"
        " 1 request did not end in time:\n"
        "   if requests take so long, raise the collector's --request-timeout; if not, nothing ends them: kprof:clear_token()\n"
        "   may not be called, or the entry may be a function that loops.\n\n");
    expect_trust(LEDGER(.orphan_returns = 2), "lossy", " Lossy: 2 returns without their call.\n\n");
    expect_trust(LEDGER(.unwound_frames = 1), "lossy", " Lossy: 1 call without its return.\n\n");
    expect_trust(LEDGER(.decode_errors = 1), "lossy", " Lossy: 1 message not understood.\n\n");
    expect_trust(
        LEDGER(.ambiguous_returns = 2), "lossy",
        " Lossy: 2 ambiguous returns.\n"
        " 2 returns could belong to more than one call: trace these tiers without returns => none.\n\n");
    // pools first, rpc after
    expect_trust(
        LEDGER(.requests_incomplete = 12, .lost_tokens = 12, .incomplete_token = 12), "lossy",
        " Lossy: 12 of 4000 requests incomplete.\n"
        " Incomplete: 12 that lost their token.\n"
        " 12 requests lost the token on the way: waiting for a connection pool, a lock or another request's answer, or in\n"
        "   rpc:call or erpc:call to another node:\n"
        "   keep what kprof:get_current_label() gives before such a call, and give it to kprof:set_current_label/1 after "
        "it.\n\n");
    expect_trust(
        LEDGER(.requests_incomplete = 12, .incomplete_cause = 12), "unclear",
        " Unclear: 12 of 4000 requests incomplete.\n"
        " Incomplete: 12 because a call may be another request's.\n"
        " 12 requests waited for something of another request (a pool's connection, a lock, a cache's answer), and nobody can\n"
        "   tell whose the next calls were: make the function that waits a tier.\n\n");
    expect_trust(LEDGER(.reloads = 2), "ok",
                 " Code was reloaded 2 times. Requests that were open then are incomplete.\n\n");
    expect_trust(LEDGER(.reloads = 1, .untraced_ms = 340), "ok",
                 " Code was reloaded 1 time, and functions were not traced for 340 ms in all.\n"
                 "   Requests that were open then are incomplete.\n\n");
    expect_trust(
        LEDGER(.untraced_ms = 340), "ok",
        " Somebody else took trace flags off: functions were not traced for 340 ms in all.\n\n");
    // what is missing makes the rest too fast, unless it is too little, or missing for want of room
    expect_trust(LEDGER(.requests_incomplete = 39, .incomplete_end = 39), "lossy",
                 " Lossy: 39 of 4027 requests incomplete.\n"
                 " Incomplete: 39 while the trace began or ended.\n\n");
    expect_trust(LEDGER(.requests_incomplete = 41, .incomplete_room = 41), "lossy",
                 " Lossy: 41 of 4029 requests incomplete.\n"
                 " Incomplete: 41 because the collector had no room.\n\n");
    expect_trust(
        LEDGER(.requests_incomplete = 40, .incomplete_loss = 39, .incomplete_reload = 1,
               .requests_expired = 5),
        "lossy",
        " Lossy: 40 of 4033 requests incomplete, 5 requests expired.\n"
        " Incomplete: 39 because messages were lost, 1 while a function was not traced.\n"
        " Biased: 45 of 4033 requests are missing, long ones more often than short ones.\n"
        "   The true means and percentiles are higher than those shown.\n"
        " 5 requests did not end in time:\n"
        "   if requests take so long, raise the collector's --request-timeout; if not, nothing ends them: kprof:clear_token()\n"
        "   may not be called, or the entry may be a function that loops.\n\n");
#undef LEDGER
    struct ledger_row all;
    memset(&all, 0xff, sizeof all); // numbers of any size
    struct query_sums sums = {.ledger = all};
    struct report r;
    struct buffer out = buffer_make(4096);
    assert_true(report_make(&r, &sums));
    report_trust(&r, &out);
    assert_false(out.failed);
    for (const char *at = (char *)out.data, *end = at + out.len, *next; at < end; at = next) {
        next = (const char *)memchr(at, '\n', (size_t)(end - at)) + 1;
        assert_true(next - at <= 121);
    }
    buffer_free(&out);
    report_free(&r);
}

// Calls under tokens of requests that are over: the report says how many, and where, and never that
// nothing was lost.
static void test_stale_calls(void **state) {
    (void)state;
    fill();
    struct stats *batch = stats_new();
    fixture_ledger(batch, NOON)->calls = 7008;
    fixture_ledger(batch, NOON)->stale_calls = 7;
    stats_cost(batch, NOON, 0, directory_tier(&fixture_names, slice_text("db")))->stale_calls = 7;
    fixture_write(batch);
    assert_int_equal(report(""), 0);
    expect_part("\n 4 complete requests, 7 calls too late; no request lost; 2025");
    assert_null(strstr(output, "Unclear"));
    assert_null(strstr(output, "nothing lost"));

    batch = stats_new();
    fixture_ledger(batch, NOON)->stale_calls = 478;
    struct cost_row *db =
        stats_cost(batch, NOON, 0, directory_tier(&fixture_names, slice_text("db")));
    db->stale_calls = 393, db->calls = 410;
    struct cost_row *http =
        stats_cost(batch, NOON, 0, directory_tier(&fixture_names, slice_text("http")));
    http->stale_calls = 85, http->calls = 6598;
    fixture_write(batch);
    assert_int_equal(report(""), 0);
    assert_string_equal(
        fixture_ask(fixture_db, "SELECT verdict FROM ledger WHERE resolution_s = 10"), "unclear");
    expect_part(
        " Unclear: 485 of 7008 calls came when their request was over: 400 of 410 of db, 85 of 6598 "
        "of http.\n"
        "   Some processes went on under the token of another request,");
    expect_part("\n 4 complete requests, 485 calls too late; unclear: see above; 2025");
    assert_int_equal(report("--json"), 0);
    expect_json("$.stale_tiers[0]", "{\"tier\":\"db\",\"calls\":410,\"stale_calls\":400}");
    expect_json("$.ledger.verdict", "unclear");
    expect_json("$.findings[0].kind", "stale");
    expect_json("$.findings[0].level", "warning");
    expect_json("$.findings[0].text", "485 of 7008 calls came when their request was over");
    expect_json("$.findings[0].counts[1]",
                "{\"name\":\"http\",\"count\":85,\"of\":6598,\"text\":\"85 of 6598\"}");
    assert_int_equal(report("--cost"), 0);
    expect_part(" Unclear: 485 of 7008 calls came when ");
}

static void test_filters(void **state) {
    (void)state;
    fill();
    assert_int_equal(report("--identity größe"), 0);
    assert_null(strstr(output, "foobar"));
    assert_null(strstr(output, "Totals"));
    expect_part(" 1 complete request;");
    assert_int_equal(
        report("--node shop@host --since 2025-11-20T00:00Z --until 2025-11-20T12:00:01Z"), 0);
    assert_int_equal(report("--node other@host"), 1);
    expect_line("no complete requests of node other@host in this time; ");
    assert_int_equal(report("--node shop --since 2025-11-20T00:00Z --until 2025-11-20T12:00:01Z"),
                     0);
    assert_int_equal(report("--node sho --since 2025-11-20T00:00Z --until 2025-11-20T12:00:01Z"),
                     1);
    expect_line("no complete requests of node sho in this time; ");
    expect_part("has data from 2025-11-20T12:00:00Z to 2025-11-20T12:00:10Z, of shop@host\n");
    assert_int_equal(report("--since 2025-11-20T13:00:00Z"), 1);
    expect_line("no complete requests in this time");
    assert_int_equal(report("--until 2025-11-20T12:00:00Z"), 1);
}

// A file may be edited: a time that does not fit is told as the last one that does.
static void test_extent_of_any_times(void **state) {
    (void)state;
    fill();
    free(fixture_ask(
        fixture_db,
        "UPDATE stat_rows SET bucket_start = 9223372036854775807 WHERE resolution_s = 10 AND "
        "bucket_start = (SELECT max(bucket_start) FROM stat_rows WHERE resolution_s = 10)"));
    assert_int_equal(report("--node other@host"), 1);
    expect_part(" to 2262-04-11T23:47:16Z, of shop@host\n");
}

static void test_mixed_tier_shows_both_parts(void **state) {
    (void)state;
    struct store *s = fixture_open();
    struct stats *batch = stats_new();
    requests(batch, "create", 1, 40, 0, 20);
    fixture_call(batch, NOON, "create", "accounting", 5 * MS, false);
    assert_true(store_write(s, 10, batch, &fixture_names));
    store_close(s);
    stats_free(batch);
    assert_int_equal(report(""), 0);
    expect_part(" 5.0 ms ~20 ms ");
    expect_part("     accounting ");
}

static void test_losses_without_requests(void **state) {
    (void)state;
    lose();
    assert_int_equal(report(""), 1);
    expect_part(
        " Paused: tracing was off for 1.5 s as asked for, 3 of 4 requests incomplete, 1 request expired,");
    expect_part(" 0 complete requests, 100 unsampled, 9 calls too late; lost: see above; ");
    expect_part("kprof report: no complete requests in this time");
}

static void test_control_characters_stay_inside(void **state) {
    (void)state;
    fill();
    free(fixture_ask(
        fixture_db,
        "UPDATE identity_names SET name = 'x' || char(27, 10, 155, 8238) || '[2J' WHERE name = 'foobar'"));
    assert_int_equal(report(""), 0);
    expect_part("\n x????[2J ");
    assert_int_equal(report("--json"), 0);
    expect_part("\"x????[2J\"");
    assert_null(strchr(output, 27));
}

// -- json -----------------------------------------------------------------------------------------

static void test_json(void **state) {
    (void)state;
    fill();
    assert_int_equal(report("--json"), 0);
    expect_json("$.tiers", "[\"http\",\"db\",\"accounting\"]");
    expect_json("$.identities", "[\"_total\",\"größe\",\"foobar\"]");
    expect_json("$.from", "2025-11-20T12:00:00Z");
    expect_json("$.resolution_s", "10");
    expect_json("$.rows[0].tier", "_total");
    expect_json("$.rows[0].calls", "4");
    expect_json("$.rows[0].errors", "1");
    expect_json("$.rows[0].max_us", "200000");
    expect_json("$.rows[0].p999_us", "200000");
    expect_json("$.rows[2].tier", "db");
    expect_json("$.rows[2].per_request_us", "30000");
    expect_json("$.rows[3].async_per_request_us", "3000");
    expect_json("$.rows[3].total_us", "0");
    expect_json("$.ledger.requests_complete", "4");
    expect_json("$.rows[#-1].identity", "foobar");
    expect_json("$.ledger.verdict", "ok");
}

static void test_json_of_all_there_is(void **state) {
    (void)state;
    fill();
    fill_details(4000ULL * MS, 2 * MS, 1 * MS);
    struct stats *batch = stats_new();
    fixture_fill_ledger(fixture_ledger(batch, NOON));
    fixture_ledger(batch, NOON)->paused_ms = 0;
    fixture_ledger(batch, NOON)->tripped_ms = 0;
    fixture_ledger(batch, NOON)->away_ms = 0;
    fixture_write(batch);
    assert_int_equal(report("--json"), 0);
    expect_json("$.rows[2].tier", "db");
    expect_json("$.rows[2].wait_us", "4000000");
    expect_json("$.rows[2].wait_per_request_us", "1000000");
    expect_json("$.rows[2].gc_us", "2000");
    expect_json("$.rows[1].off_cpu_us", "1000");
    expect_json(
        "$.ledger",
        "{\"requests_complete\":5,\"requests_incomplete\":2,\"requests_expired\":3,"
        "\"requests_unsampled\":4,\"messages\":5,\"bytes\":6,\"dropped_messages\":7,"
        "\"orphan_returns\":8,\"stale_calls\":9,\"decode_errors\":10,\"paused_ms\":0,"
        "\"unwound_frames\":12,\"ambiguous_returns\":13,\"lost_tokens\":14,\"reloads\":15,\"trips\":16,\"lowered_ms\":17,"
        "\"incomplete_loss\":18,\"incomplete_token\":19,\"incomplete_cause\":20,\"incomplete_return\":21,"
        "\"incomplete_reload\":22,\"incomplete_large\":23,\"incomplete_room\":24,\"incomplete_end\":25,"
        "\"calls\":26,\"recredited_calls\":27,\"unknown_outcomes\":28,\"tripped_ms\":0,\"away_ms\":0,\"untraced_ms\":31,"
        "\"unmarked_calls\":32,\"coarse_rows\":33,\"unwritten_rows\":34,"
        "\"verdict\":\"lossy\"}");
    fixture_expect("SELECT verdict FROM ledger WHERE resolution_s = 10", "lossy");
}

// What stands above the table, as data: why, since when, how many, what to do.
static void test_json_of_findings(void **state) {
    (void)state;
    fill();
    assert_int_equal(report("--json"), 0);
    expect_json("$.findings", "[]");
    lose();
    assert_int_equal(report("--json"), 0);
    expect_json("$.findings[#-1].kind", "expired");
    expect_json("$.findings[0].kind", "paused");
    expect_json("$.findings[0].level", "problem");
    expect_json("$.findings[0].since", "2025-11-20T12:00:10Z"); // the ten seconds before were whole
    expect_json("$.findings[0].title", "Paused");
    expect_json("$.findings[0].counts[0]", "{\"name\":\"paused_ms\",\"count\":1500,\"of\":null,"
                                           "\"text\":\"tracing was off for 1.5 s as asked for\"}");
    expect_json("$.findings[0].counts[1]", "{\"name\":\"requests_incomplete\",\"count\":3,\"of\":8,"
                                           "\"text\":\"3 of 8 requests incomplete\"}");
    expect_json("$.findings[1].kind", "biased");
    expect_json("$.findings[1].meaning",
                "The true means and percentiles are higher than those shown.");
    expect_json(
        "$.findings[2]",
        "{\"kind\":\"dropped\",\"level\":\"problem\",\"since\":\"2025-11-20T12:00:10Z\","
        "\"title\":null,\"text\":\"Messages are dropped when the collector or the network is too slow, or when a connection breaks\",\"counts\":[],\"meaning\":null,"
        "\"advice\":\"the collector's log tells which\"}");
}

// -- the command line -----------------------------------------------------------------------------

static void test_command_line(void **state) {
    (void)state;
    assert_int_equal(kprof("--version"), 0);
    expect_line("kprof ");
    assert_int_equal(kprof("--help"), 0);
    expect_part("  report ");
    assert_int_equal(kprof("report --db /tmp"), 1);
    expect_line("kprof report: /tmp is a folder");
    assert_int_equal(kprof("nodes --collector [::1]:1"), 1);
    expect_line("cannot reach the collector at [::1]:1: ");
    assert_int_equal(kprof("help nonsense"), 2);
    expect_line("unknown command 'nonsense'");
    assert_int_equal(kprof("help report"), 0);
    expect_part("usage: kprof report ");
    assert_int_equal(kprof("report --help"), 0);
    expect_part("--identity NAME");
    assert_int_equal(kprof(""), 2);
    assert_int_equal(kprof("frobnicate"), 2);
    expect_line("unknown command 'frobnicate'");
    assert_int_equal(kprof("report --frobnicate"), 2);
    expect_line("unknown option --frobnicate");
    assert_int_equal(kprof("report -xy"), 2);
    expect_line("unknown option -x");
    assert_int_equal(kprof("report --db"), 2);
    expect_line("--db needs a value");
    assert_int_equal(kprof("report"), 2);
    expect_line("Say --db FILE");
    assert_int_equal(report("--since tomorrow"), 2);
    expect_line("--since tomorrow is no time");
    assert_int_equal(report("--since 10m --until 20m"), 2);
    expect_line("--since is not before --until");
    assert_int_equal(tool_ask("profiles", "--since 10m --until 20m"), 2);
    expect_line("kprof profiles: --since is not before --until");
    assert_int_equal(report("surplus"), 2);
    expect_line("unexpected argument 'surplus'");
    assert_int_equal(report(""), 1);
    expect_line("No such file");
    store_close(fixture_open());
    assert_int_equal(report(""), 1);
    expect_line("holds no data yet");
    fill();
    assert_int_equal(report("2>&1 > /dev/full #"), 1);
    expect_line("No space left");
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define REPORT_TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
        cmocka_unit_test(test_fit),
        cmocka_unit_test(test_clean_and_width),
        REPORT_TEST(test_table),
        REPORT_TEST(test_details_under_the_totals),
        REPORT_TEST(test_measured_waiting),
        REPORT_TEST(test_details_that_are_there),
        REPORT_TEST(test_wait),
        REPORT_TEST(test_what_was_lost),
        cmocka_unit_test(test_findings_of_everything),
        cmocka_unit_test(test_unmarked),
        cmocka_unit_test(test_trust),
        REPORT_TEST(test_stale_calls),
        REPORT_TEST(test_filters),
        REPORT_TEST(test_extent_of_any_times),
        REPORT_TEST(test_mixed_tier_shows_both_parts),
        REPORT_TEST(test_losses_without_requests),
        REPORT_TEST(test_control_characters_stay_inside),
        REPORT_TEST(test_json),
        REPORT_TEST(test_json_of_all_there_is),
        REPORT_TEST(test_json_of_findings),
        REPORT_TEST(test_command_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
