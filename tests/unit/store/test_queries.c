// SPDX-License-Identifier: Apache-2.0
// Every query of every README.md and of the manual pages, on a database with asynchronous calls:
// what each gives is the truth, as it is worked out here, from the same requests, with nothing but
// sums.
#include "store_fixture.h"

#include <ctype.h>
#include <glob.h>
#include <inttypes.h>
#include <math.h>
#include <time.h>

#include "model/stats/account.h"
#include "model/stats/keep.h"
#include "store/notes.h"

enum { REQUESTS = 40, MS = 1000000, RESULT_BYTES = 4096 };

static int64_t minute; // in which all of them ended, within the last hour

// -- the requests ---------------------------------------------------------------------------------

// Request i: a call of http for the most of it; one of storage within it, in every second request;
// another one of storage which goes on for 6 ms when the request has ended. Each of storage has
// waited.
static int64_t duration(int i) {
    return (10 + i) * MS;
}

static bool is_create(int i) {
    return i % 4 == 0;
}

static bool is_error(int i) {
    return i % 8 == 0;
}

static bool has_sync(int i) {
    return i % 2 == 0;
}

static int64_t sync_time(int i) {
    return (1 + i % 3) * MS;
}

enum {
    HTTP_LESS = MS,
    ASYNC_TIME = 7 * MS,
    SYNC_WAIT = MS / 5,
    RUN_QUEUE = MS / 20,
    ASYNC_WAIT = MS / 2
};

static void add_request(struct account *a, struct keep *keep, int i) {
    uint16_t http = directory_tier(&fixture_names, slice_text("http")),
             storage = directory_tier(&fixture_names, slice_text("storage"));
    int64_t begin = minute * 1000000000 + 1000 * MS, end = begin + duration(i);
    struct span spans[3];
    uint32_t n = 0;
    spans[n++] = (struct span){.start = begin,
                               .end = end - HTTP_LESS,
                               .pid = 1,
                               .parent = SPAN_NONE,
                               .tier = http,
                               .outermost = true,
                               .self = duration(i) - HTTP_LESS - (has_sync(i) ? sync_time(i) : 0)};
    if (has_sync(i)) {
        spans[n++] = (struct span){.start = begin + MS,
                                   .end = begin + MS + sync_time(i),
                                   .pid = 2,
                                   .parent = 0,
                                   .depth = 1,
                                   .tier = storage,
                                   .outermost = true,
                                   .self = sync_time(i),
                                   .wait = SYNC_WAIT,
                                   .measured = true,
                                   .run_queue = RUN_QUEUE};
    }
    spans[n++] = (struct span){.start = end - MS,
                               .end = end - MS + ASYNC_TIME,
                               .pid = 2,
                               .parent = 0,
                               .depth = 1,
                               .tier = storage,
                               .outermost = true,
                               .async = true,
                               .wait = ASYNC_WAIT};
    struct request_result r = {.identity = directory_identity(
                                   &fixture_names, slice_text(is_create(i) ? "create" : "read")),
                               .error = is_error(i),
                               .begin = begin,
                               .end = end,
                               .times = {.uncovered = HTTP_LESS},
                               .spans = spans,
                               .count = n,
                               .calls = n};
    account_request(a, &r);
    keep_offer(keep, a, &r, INT64_MAX);
}

static void add_note(int64_t at_s, const char *node, const char *text) {
    struct store *s = fixture_open();
    struct note note;
    int64_t id;
    assert_true(note_make(&note, at_s * 1000000000, slice_text(node), slice_text(text)));
    assert_true(store_keep_note(s, &note, &id));
    store_close(s);
}

static void fill(void) {
    struct stats *batch = stats_new();
    struct keep *keep = keep_new();
    minute = time(NULL) / 60 * 60 - 600;
    struct account a = {.stats = batch,
                        .bucket_s = 10,
                        .node = directory_node(&fixture_names, slice_text("shop@host")),
                        .paths = &fixture_names.paths};
    for (int i = 0; i < REQUESTS; i++) {
        add_request(&a, keep, i);
    }
    struct ledger_row *paused = fixture_ledger(batch, minute + 60);
    paused->requests_incomplete = 4, paused->requests_expired = 5, paused->dropped_messages = 6,
    paused->stale_calls = 7;
    paused->paused_ms = 10, paused->tripped_ms = 20, paused->away_ms = 30;
    stats_add_totals(batch);
    keep_free(keep);
    fixture_write(batch);
    add_note(1763640000, "", "first");
    add_note(1763640060, "shop@host", "second");
}

// -- the truth ------------------------------------------------------------------------------------

// The sums of the requests of an identity, NULL: of all.
struct sums {
    double requests, errors, total, http, sync, async_calls, sync_calls, async, waits;
};

static struct sums sums_of(const char *identity) {
    struct sums s = {0};
    for (int i = 0; i < REQUESTS; i++) {
        if (!identity || is_create(i) == (strcmp(identity, "create") == 0)) {
            s.requests++;
            s.errors += is_error(i);
            s.total += (double)duration(i);
            s.http += (double)duration(i) - HTTP_LESS;
            s.sync_calls += has_sync(i);
            s.sync += has_sync(i) ? (double)sync_time(i) : 0;
            s.async_calls++;
            s.async += ASYNC_TIME;
            s.waits += ASYNC_WAIT + (has_sync(i) ? SYNC_WAIT : 0);
        }
    }
    return s;
}

static const char *utc(int64_t seconds) {
    static char text[32];
    time_t t = seconds;
    struct tm tm;
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &tm));
    return text;
}

__attribute__((format(printf, 2, 3))) static void tell(char *out, const char *format, ...) {
    size_t len = strlen(out);
    va_list args;
    va_start(args, format);
    vsnprintf(out + len, RESULT_BYTES - len, format, args);
    va_end(args);
}

static void time_per_request(char *out) {
    static const char *const identities[] = {"_total", "create", "read"};
    for (int i = 0; i < 3; i++) {
        struct sums s = sums_of(i == 0 ? NULL : identities[i]);
        tell(out, "%s|_total|%f\n", identities[i], s.total / s.requests / MS);
        tell(out, "%s|http|%f\n", identities[i], s.http / s.requests / MS);
        tell(out, "%s|storage|%f\n", identities[i], s.sync / s.requests / MS);
    }
}

static void percentiles(char *out) {
    struct sums s = sums_of(NULL); // most calls are the asynchronous ones
    tell(out, "%s|%.0f|%.0f|7000|7000|7000\n", utc(minute), s.requests,
         s.sync_calls + s.async_calls);
}

static void failures(char *out) {
    struct sums create = sums_of("create"), read = sums_of("read");
    tell(out, "create|%.0f|%.0f|%f\n", create.requests, create.errors,
         100 * create.errors / create.requests);
    tell(out, "read|%.0f|%.0f|%f\n", read.requests, read.errors, 100 * read.errors / read.requests);
}

static void database_or_queue(char *out) {
    struct sums s = sums_of(NULL);
    double calls = s.sync_calls + s.async_calls;
    tell(out, "http > storage|%.0f|%f|%f\n", calls, (s.sync + s.async) / calls / 1000,
         s.waits / calls / 1000);
}

static void measured(char *out) {
    struct sums s = sums_of(NULL);
    double calls = s.sync_calls + s.async_calls;
    tell(out, "storage|%f|%f|%f|%f\n", s.waits / calls / 1000,
         100 * s.sync_calls * SYNC_WAIT / s.waits,
         s.sync_calls * (SYNC_WAIT - RUN_QUEUE) / calls / 1000,
         s.sync_calls * RUN_QUEUE / calls / 1000);
}

static void slowest(char *out) {
    double us = (double)duration(REQUESTS - 1) / 1000;
    tell(out, "read|%f|http|*|0|%f|0\n", us, us - 1000);
    tell(out, "read|%f|storage|*|%f|0|500\n", us, us - 1000);
}

static void trust(char *out) {
    tell(out, "%s|shop@host|paused|0|4|5|6|7|60\n", utc(minute + 60));
}

static void notes(char *out) {
    tell(out, "2025-11-20T12:01:00Z|shop@host|second\n2025-11-20T12:00:00Z|all nodes|first\n");
}

// By how each begins.
static const struct {
    const char *query;
    void (*truth)(char *out);
    double within; // of numbers, as a share
} truths[] = {
    {"SELECT identity, tier, round(", time_per_request, 0.0005},
    {"SELECT bucket_start, requests, calls, round(p50_us)", percentiles, 0.011},
    {"SELECT identity, sum(requests) AS requests, sum(errors)", failures, 0.0005},
    {"SELECT path, sum(calls) AS calls,", database_or_queue, 0.0005},
    {"SELECT tier, round(sum(wait_us) / sum(calls)) AS wait_us,", measured, 0.01},
    {"SELECT r.identity, r.duration_us, s.name,", slowest, 0.0005},
    {"SELECT bucket_start, node, verdict,", trust, 0},
    {"SELECT at, coalesce(node, 'all nodes')", notes, 0},
};
enum { TRUTHS = sizeof truths / sizeof *truths };

// -- the queries ----------------------------------------------------------------------------------

static char *read_text(const char *path) {
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    size_t len = fread(text, 1, (1 << 20) - 1, f);
    assert_true(len > 0 && feof(f));
    fclose(f);
    return text;
}

static void run(const char *sql, char *out) {
    sqlite3 *db;
    sqlite3_stmt *statement;
    const char *rest;
    assert_int_equal(sqlite3_open_v2(fixture_db, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    if (sqlite3_prepare_v2(db, sql, -1, &statement, &rest) != SQLITE_OK) {
        fail_msg("%s\n%s", sql, sqlite3_errmsg(db));
    }
    while (sqlite3_step(statement) == SQLITE_ROW) {
        for (int c = 0; c < sqlite3_column_count(statement); c++) {
            const unsigned char *text = sqlite3_column_text(statement, c);
            tell(out, "%s%s", c > 0 ? "|" : "", text ? (const char *)text : "NULL");
        }
        tell(out, "\n");
    }
    assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
    sqlite3_close(db);
}

// Whether two cells say the same: numbers about so.
static bool same(const char *got, const char *wanted, double within) {
    char *got_end, *wanted_end;
    double a = strtod(got, &got_end), b = strtod(wanted, &wanted_end);
    if (*got && *wanted && !*got_end && !*wanted_end) {
        return fabs(a - b) <= within * fabs(b) + (within > 0 ? 0.51 : 0) * (fabs(b) >= 1000);
    }
    return strcmp(wanted, "*") == 0 || strcmp(got, wanted) == 0;
}

static void compare(const char *sql, char *got, char *wanted, double within) {
    char *all_got = strdup(got), *all_wanted = strdup(wanted);
    for (char *a, *b; (a = strsep(&got, "|\n")), (b = strsep(&wanted, "|\n")), a || b;) {
        if (!a || !b || !same(a, b, within)) {
            fail_msg("%s\ngives\n%sinstead of\n%s", sql, all_got, all_wanted);
        }
    }
    free(all_got);
    free(all_wanted);
}

// Runs the query at *at, up to its semicolon, and compares. Returns which one it was.
static int judge(const char *at) {
    const char *end = strchr(at, ';');
    assert_non_null(end);
    char *sql = strndup(at, (size_t)(end - at));
    for (int i = 0; i < TRUTHS; i++) {
        if (strncmp(sql, truths[i].query, strlen(truths[i].query)) == 0) {
            static char got[RESULT_BYTES], wanted[RESULT_BYTES];
            got[0] = wanted[0] = 0;
            run(sql, got);
            truths[i].truth(wanted);
            compare(sql, got, wanted, truths[i].within);
            free(sql);
            return i;
        }
    }
    fail_msg("a query whose truth this test does not know yet:\n%s", sql);
    return -1;
}

static void queries_tell_the_truth(void **state) {
    (void)state;
    static const char *const places[] = {SOURCE "/README.md", SOURCE "/*/README.md",
                                         SOURCE "/collector/install/kprof*.[18]"};
    glob_t files;
    for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
        assert_int_equal(glob(places[p], p > 0 ? GLOB_APPEND : 0, NULL, &files), 0);
    }
    bool seen[TRUTHS] = {0};
    fill();
    for (size_t f = 0; f < files.gl_pathc; f++) {
        char *text = read_text(files.gl_pathv[f]);
        // a query stands at the start of a line, or behind the macro of a line of its own
        for (const char *at = text; (at = strstr(at, "SELECT ")); at++) {
            const char *line = at;
            while (line > text && line[-1] != '\n') {
                line--;
            }
            const char *first = strncmp(line, ".Dl ", 4) == 0 ? line + 4 : line;
            if (first + strspn(first, " ") == at) {
                seen[judge(at)] = true;
            }
        }
        free(text);
    }
    globfree(&files);
    for (int i = 0; i < TRUTHS; i++) {
        if (!seen[i]) {
            fail_msg("nowhere any more: %s", truths[i].query);
        }
    }
}

// The columns that can be divided, in both views and at each resolution.
static void means(void **state) {
    (void)state;
    static const char *const views[] = {"tier_stats WHERE tier = 'storage' AND",
                                        "path_stats WHERE path = 'http > storage' AND"};
    struct sums s = sums_of(NULL);
    fill();
    for (int v = 0; v < 2; v++) {
        char sql[512], got[RESULT_BYTES] = "", wanted[RESULT_BYTES] = "";
        snprintf(
            sql, sizeof sql,
            "SELECT sync_calls, async_calls, sync_us / sync_calls, async_us / async_calls, duration_us / calls, mean_us "
            "FROM %s identity = '_total'",
            views[v]);
        run(sql, got);
        for (int r = 0; r < 3; r++) {
            double mean = (s.sync + s.async) / (s.sync_calls + s.async_calls) / 1000;
            tell(wanted, "%.0f|%.0f|%f|%f|%f|%f\n", s.sync_calls, s.async_calls,
                 s.sync / s.sync_calls / 1000, s.async / s.async_calls / 1000, mean, mean);
        }
        compare(sql, got, wanted, 1e-6);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(queries_tell_the_truth, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(means, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
