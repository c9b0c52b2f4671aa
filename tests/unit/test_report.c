// report.c, report_table.c, report_json.c, text.c and main.c: the table to the letter, and the tool as people
// run it.
#include "store_fixture.h"

#include <locale.h>
#include <sys/wait.h>

#include "tool/report.h"
#include "tool/text.h"

enum { NOON = 1763640000, MS = 1000000 };

// -- text
// ----------------------------------------------------------------------------------------------------------------

static void test_durations(void **state) {
    (void)state;
    static const struct {
        double ns;
        const char *text;
    } cases[] = {{0, "0 ns"},
                 {1, "1 ns"},
                 {999, "999 ns"},
                 {999.6, "1.0 µs"},
                 {1000, "1.0 µs"},
                 {1234, "1.2 µs"},
                 {9949, "9.9 µs"},
                 {9951, "10 µs"},
                 {12345, "12 µs"},
                 {999499, "999 µs"},
                 {999500, "1.0 ms"},
                 {50e6, "50 ms"},
                 {120e6, "120 ms"},
                 {1.234e9, "1.2 s"},
                 {59.6e9, "60 s"},
                 {1234.4e9, "1234 s"},
                 {9.2e18, "9200000000 s"}};
    char text[TEXT_DURATION_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_string_equal(text_duration(cases[i].ns, text), cases[i].text);
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

// -- the database that the reports are of
// ------------------------------------------------------------------------------------

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
    *fixture_ledger(batch, NOON + 10) =
        (struct ledger_row){NOON + 10, 0, 0, 3, 1, 100, 5, 6, 7, 1, 9, 10, 1500, 0, 0, 0, 0};
    assert_true(store_write(s, 10, batch, &fixture_names));
    store_close(s);
    stats_free(batch);
}

// What the tool writes, both streams, and how it ends.
static char output[1 << 16];

static int kprof(const char *arguments) {
    char command[512];
    snprintf(command, sizeof command, "LC_ALL=C %s %s 2>&1", KPROF_TOOL, arguments);
    FILE *p = popen(command, "r");
    assert_non_null(p);
    size_t n = fread(output, 1, sizeof output - 1, p);
    output[n] = 0;
    int status = pclose(p);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int report(const char *arguments) {
    char line[400];
    snprintf(line, sizeof line, "report --db %s %s", fixture_db, arguments);
    return kprof(line);
}

static void expect_output(const char *expected) {
    if (strcmp(output, expected) != 0) {
        fail_msg("got\n%s\nexpected\n%s", output, expected);
    }
}

static void expect_part(const char *part) {
    if (!strstr(output, part)) {
        fail_msg("got\n%s\nwhich lacks\n%s", output, part);
    }
}

// One line, and nothing that steers a terminal.
static void expect_line(const char *part) {
    expect_part(part);
    char *end = strchr(output, '\n');
    assert_non_null(end);
    assert_int_equal(end[1], 0);
}

// -- the table
// -----------------------------------------------------------------------------------------------------------------

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

static void test_ledger_line(void **state) {
    (void)state;
    fill();
    lose();
    assert_int_equal(report(""), 0);
    expect_part(
        " 4 complete requests; lost: 3 incomplete requests, 1 expired, 100 unsampled, 7 dropped messages, 1 "
        "orphan return, "
        "9 stale calls, 10 decode errors, paused for 1.5 s; 2025-11-20T12:00:00Z to 2025-11-20T12:00:20Z, "
        "buckets of 10 s\n");
}

static void test_filters(void **state) {
    (void)state;
    fill();
    assert_int_equal(report("--identity größe"), 0);
    assert_null(strstr(output, "foobar"));
    assert_null(strstr(output, "Totals"));
    expect_part(" 1 complete request;");
    assert_int_equal(report("--node shop@host --since 2025-11-20 --until '2025-11-20 12:00:01'"), 0);
    assert_int_equal(report("--node other@host"), 1);
    expect_line("no complete requests of node other@host in this time; ");
    expect_part("has data from 2025-11-20T12:00:00Z to 2025-11-20T12:00:10Z, of shop@host\n");
    assert_int_equal(report("--since 2025-11-20T13:00:00Z"), 1);
    expect_line("no complete requests in this time");
    assert_int_equal(report("--until 2025-11-20T12:00:00Z"), 1);
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
    expect_part(" 0 complete requests; lost: 3 incomplete requests, ");
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

// -- json
// ------------------------------------------------------------------------------------------------------------------------

// What SQLite's JSON functions find in the output.
static void expect_json(const char *path, const char *expected) {
    sqlite3 *db;
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    sqlite3_prepare_v2(db, "SELECT json_extract(?1, ?2)", -1, &statement, NULL);
    sqlite3_bind_text(statement, 1, output, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 2, path, -1, SQLITE_STATIC);
    if (sqlite3_step(statement) != SQLITE_ROW) {
        fail_msg("no JSON: %s", output);
    }
    const char *text = (const char *)sqlite3_column_text(statement, 0);
    if (!text || strcmp(text, expected) != 0) {
        fail_msg("%s is %s, expected %s, in\n%s", path, text ? text : "NULL", expected, output);
    }
    sqlite3_finalize(statement);
    sqlite3_close(db);
}

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
}

// -- the command line
// --------------------------------------------------------------------------------------------------------------

static void test_command_line(void **state) {
    (void)state;
    assert_int_equal(kprof("--version"), 0);
    expect_line("kprof ");
    assert_int_equal(kprof("--help"), 0);
    expect_part("  report ");
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
    assert_int_equal(report("--since yesterday"), 2);
    expect_line("--since yesterday is no time");
    assert_int_equal(report("--since 10m --until 20m"), 2);
    expect_line("--since is not before --until");
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
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_clean_and_width),
        REPORT_TEST(test_table),
        REPORT_TEST(test_ledger_line),
        REPORT_TEST(test_filters),
        REPORT_TEST(test_mixed_tier_shows_both_parts),
        REPORT_TEST(test_losses_without_requests),
        REPORT_TEST(test_control_characters_stay_inside),
        REPORT_TEST(test_json),
        REPORT_TEST(test_command_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
