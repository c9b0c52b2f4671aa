// SPDX-License-Identifier: Apache-2.0
// store.c, batch.c, retention.c: real files, values compared with sums that the test makes itself.
#include "store_fixture.h"
#include <inttypes.h>

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "store/internal.h"
#include "store/retention.h"

enum { NOON = 1763640000 }; // 2025-11-20T12:00:00Z

// -- opening --------------------------------------------------------------------------------------

static void put_file(const char *path, const char *text) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static char *file_text(const char *path, size_t *len) {
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    char *text = calloc(1, 1 << 20);
    *len = fread(text, 1, (1 << 20) - 1, f);
    fclose(f);
    return text;
}

static int files_in_dir(void) {
    char command[128];
    int n = -1;
    snprintf(command, sizeof command, "ls -A %s | wc -l", fixture_dir);
    FILE *p = popen(command, "r");
    assert_int_equal(fscanf(p, "%d", &n), 1);
    pclose(p);
    return n;
}

// Opening fails with the status and one line that names the file; not a byte of the file changes,
// and none comes to lie beside it.
static void refused(const char *path, enum store_status expected) {
    struct store *s;
    char error[STORE_ERROR_BYTES] = "";
    struct stat st;
    bool regular = stat(path, &st) == 0 && S_ISREG(st.st_mode);
    size_t before_len = 0, after_len = 0;
    char *before = regular ? file_text(path, &before_len) : NULL;
    int files = files_in_dir();
    assert_int_equal(store_open(path, &s, error), expected);
    assert_null(s);
    assert_non_null(strstr(error, path));
    assert_null(strchr(error, '\n'));
    assert_int_equal(files_in_dir(), files);
    if (regular) {
        char *after = file_text(path, &after_len);
        assert_int_equal(before_len, after_len);
        assert_memory_equal(before, after, after_len);
        free(after);
    }
    free(before);
}

static void test_opens_again(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct store *s = fixture_open();
        assert_int_equal(store_integer(s, "PRAGMA user_version", -1), store_schema_version);
        store_close(s);
        assert_int_equal(files_in_dir(), 1); // no lock file, no WAL
    }
    fixture_expect("PRAGMA journal_mode", "wal");
    fixture_expect("PRAGMA integrity_check", "ok");
}

static void test_refuses_foreign_files(void **state) {
    (void)state;
    put_file(fixture_db, "root:x:0:0:root:/root:/bin/bash\n");
    refused(fixture_db, STORE_FOREIGN);
    put_file(fixture_db, "SQLite format 3");
    refused(fixture_db, STORE_FOREIGN);
    unlink(fixture_db);
    free(fixture_ask(fixture_db, "CREATE TABLE stat_rows (a)"));
    refused(fixture_db, STORE_FOREIGN);
    free(fixture_ask(fixture_db, "PRAGMA journal_mode = WAL"));
    refused(fixture_db, STORE_FOREIGN);
    refused("/dev/null", STORE_FOREIGN);
}

static void test_refuses_newer_schema(void **state) {
    (void)state;
    store_close(fixture_open());
    char sql[64];
    snprintf(sql, sizeof sql, "PRAGMA user_version = %d", store_schema_version + 1);
    free(fixture_ask(fixture_db, sql));
    refused(fixture_db, STORE_NEWER);

    struct store *s;
    char error[STORE_ERROR_BYTES];
    assert_int_equal(store_open_reader(fixture_db, &s, error), STORE_NEWER);
}

static void test_refuses_what_cannot_be_written(void **state) {
    (void)state;
    char path[128];
    snprintf(path, sizeof path, "%s/missing/kprof.db", fixture_dir);
    refused(path, STORE_UNWRITABLE);
    put_file(fixture_db, "");
    snprintf(path, sizeof path, "%s/kprof.db", fixture_db); // below a file: also root cannot
    refused(path, STORE_UNWRITABLE);
    refused("/proc/kprof.db", STORE_UNWRITABLE);
    refused(fixture_dir, STORE_UNWRITABLE);
}

static void test_reader_refuses(void **state) {
    (void)state;
    struct store *s;
    char error[STORE_ERROR_BYTES];
    assert_int_equal(store_open_reader(fixture_db, &s, error), STORE_MISSING);
    assert_int_equal(files_in_dir(), 0);
    put_file(fixture_db,
             "this is not a database at all, and longer than a header of one hundred bytes has "
             "to be, to be sure of it");
    assert_int_equal(store_open_reader(fixture_db, &s, error), STORE_FOREIGN);
    assert_null(s);
}

// -- what is written ------------------------------------------------------------------------------

// What is written is its owner's, whatever the umask.
static void test_files_are_their_owners(void **state) {
    (void)state;
    static const char *const names[] = {"", "-wal", "-shm"};
    mode_t before = umask(0);
    struct store *s = fixture_open();
    struct stats *batch = stats_new();
    fixture_row(batch, 0, "n", "i", "t");
    assert_true(store_write(s, 10, batch, &fixture_names));
    umask(before);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[4096];
        struct stat st;
        snprintf(path, sizeof path, "%s%s", fixture_db, names[i]);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
    }
    store_close(s);
    stats_free(batch);
}

// A user who may read the file but write nothing reads a database that nobody has open. Root may
// write anywhere: become nobody.
static void test_reads_without_write_permission(void **state) {
    (void)state;
    store_close(fixture_open());
    assert_int_equal(chmod(fixture_dir, 0755), 0);
    assert_int_equal(chmod(fixture_db, 0644), 0); // its owner lets others read it
    pid_t child = fork();
    if (child == 0) {
        struct store *s;
        char error[STORE_ERROR_BYTES];
        bool nobody = geteuid() != 0 || setuid(65534) == 0;
        bool ok = nobody && store_open_reader(fixture_db, &s, error) == STORE_OK &&
                  store_integer(s, "SELECT count(*) FROM tier_stats", -1) == 0;
        _exit(ok ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

// -- the views ------------------------------------------------------------------------------------

static void expect_columns(const char *view, const char *expected) {
    char sql[128];
    snprintf(sql, sizeof sql, "SELECT group_concat(name) FROM pragma_table_info('%s')", view);
    fixture_expect(sql, expected);
}

static void test_views_have_the_promised_columns(void **state) {
    (void)state;
    store_close(fixture_open());
    expect_columns(
        "tier_stats",
        "bucket_start,resolution_s,node,identity,tier,requests,calls,errors,async_calls,total_us,"
        "self_us,async_us,mean_us,stddev_us,min_us,max_us,p25_us,p50_us,p75_us,p90_us,p95_us,"
        "p99_us,p999_us,wait_us,gc_us,off_cpu_us,sync_calls,duration_us,sync_us,waiting_us,parallel_us,"
        "measured_us,mailbox_us,run_queue_us");
    expect_columns(
        "ledger",
        "bucket_start,resolution_s,node,requests_complete,requests_incomplete,requests_expired,"
        "requests_unsampled,messages,bytes,dropped_messages,orphan_returns,stale_calls,"
        "decode_errors,paused_ms,unwound_frames,ambiguous_returns,lost_tokens,reloads,trips,lowered_ms,"
        "incomplete_loss,incomplete_token,incomplete_cause,incomplete_return,incomplete_reload,"
        "incomplete_large,incomplete_room,incomplete_end,calls,recredited_calls,unknown_outcomes,"
        "tripped_ms,away_ms,untraced_ms,unmarked_calls,coarse_rows,unwritten_rows,verdict");
    expect_columns(
        "path_stats",
        "bucket_start,resolution_s,node,identity,path,calls,errors,async_calls,total_us,self_us,"
        "async_us,wait_us,mean_us,min_us,max_us,sync_calls,duration_us,sync_us,waiting_us,measured_us,"
        "mailbox_us,run_queue_us");
    expect_columns("tier_costs",
                   "bucket_start,resolution_s,node,tier,messages,bytes,calls,stale_calls");
    expect_columns(
        "slow_requests",
        "id,node,identity,started_at,duration_us,outcome,reason,complete,spans,kept_spans,remote,origin,label,"
        "uncovered_us,parallel_us,trace_id,parent_span_id");
    expect_columns(
        "slow_spans",
        "request_id,span,parent,pid,name,start_us,duration_us,self_us,wait_us,gc_us,off_cpu_us,"
        "async,outcome,remote,waiting_us,measured,mailbox_us,run_queue_us");
}

static void test_small_batch_to_the_digit(void **state) {
    (void)state;
    struct store *s = fixture_open();
    struct stats *batch = stats_new();
    fixture_call(batch, NOON + 50, "create", "db", 1000, false);
    fixture_call(batch, NOON + 50, "create", "db", 3000, false);
    fixture_call(batch, NOON + 60, "create", "db", 8000, true);
    fixture_row(batch, NOON + 50, "shop@host", "create", "db")->errors = 1;
    fixture_row(batch, NOON + 50, "shop@host", "create", "idle")->requests = 1; // no call
    for (int i = 5; i <= 6; i++) {
        struct stat_row *row = fixture_row(batch, NOON + 10 * i, "shop@host", "create", "db");
        row->wait_ns = 500, row->gc_ns = 250, row->off_cpu_ns = 125, row->waiting_ns = 400;
        row->measured_ns = i == 5 ? 500 : 300;
    }
    // of one bucket it is known where that was
    fixture_row(batch, NOON + 60, "shop@host", "create", "db")->mailbox_ns = 200;
    fixture_row(batch, NOON + 60, "shop@host", "create", "db")->run_queue_ns = 50;
    fixture_fill_ledger(fixture_ledger(batch, NOON + 50));
    fixture_ledger(batch, NOON + 60)->requests_complete = 20;
    assert_true(store_write(s, 10, batch, &fixture_names));
    store_close(s);
    stats_free(batch);

    fixture_expect(
        "SELECT group_concat(resolution_s || ' ' || bucket_start || ' ' || calls, ', ') FROM tier_stats "
        "WHERE identity = 'create' AND tier = 'db'",
        "10 2025-11-20T12:00:50Z 2, 10 2025-11-20T12:01:00Z 1, 60 2025-11-20T12:00:00Z 2, "
        "60 2025-11-20T12:01:00Z 1, 3600 2025-11-20T12:00:00Z 3");
    fixture_expect(
        "SELECT concat FROM (SELECT node || ',' || requests || ',' || errors || ',' || async_calls || ',' || "
        "total_us "
        "|| ',' || self_us || ',' || async_us || ',' || mean_us || ',' || min_us || ',' || max_us AS concat "
        "FROM tier_stats WHERE identity = 'create' AND tier = 'db' AND resolution_s = 3600)",
        "shop@host,3,1,1,4.0,2.0,8.0,4.0,1.0,8.0");
    fixture_expect(
        "SELECT wait_us || ',' || gc_us || ',' || off_cpu_us || ',' || waiting_us || ',' || (parallel_us IS NULL) FROM "
        "tier_stats WHERE identity = 'create' AND "
        "tier = 'db' AND resolution_s = 3600",
        "1.0,0.5,0.25,0.8,1");
    fixture_expect(
        "SELECT group_concat(measured_us || ',' || ifnull(mailbox_us, '-') || ',' || ifnull(run_queue_us, '-'), ' ') "
        "FROM (SELECT * FROM tier_stats WHERE identity = 'create' AND tier = 'db' ORDER BY resolution_s, bucket_start)",
        "0.5,-,- 0.3,0.2,0.05 0.5,-,- 0.3,0.2,0.05 0.8,0.2,0.05");
    // mean 4, deviations 3, 1, 4: variance 26 / 3
    fixture_expect(
        "SELECT round(stddev_us, 6) FROM tier_stats WHERE identity = 'create' AND tier = 'db' AND "
        "resolution_s = 3600",
        "2.94392");
    fixture_expect(
        "SELECT p25_us || ',' || p999_us || ',' || typeof(p25_us) FROM tier_stats WHERE identity "
        "= '_total' AND "
        "bucket_start = '2025-11-20T12:01:00Z' AND resolution_s = 10",
        "8.0,8.0,real"); // between minimum and maximum, not the middle of the histogram's bucket
    fixture_expect(
        "SELECT requests || ',' || calls || ',' || (mean_us IS NULL) || (stddev_us IS NULL) || (min_us IS "
        "NULL) || "
        "(max_us IS NULL) || (p50_us IS NULL) || (p999_us IS NULL) FROM tier_stats WHERE tier = 'idle' "
        "AND resolution_s = 10",
        "1,0,111111");
#define AND_COLUMN(column) "|| ',' || " #column " "
    fixture_expect(
        "SELECT ''" LEDGER_COLUMNS(
            AND_COLUMN) "FROM ledger WHERE resolution_s = 3600 AND node = 'shop@host'",
        ",21,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34");
}

// Each counter of the ledger alone, and what it makes of its bucket.
static void test_verdicts(void **state) {
    (void)state;
    static const struct {
        size_t at;
        const char *verdict;
    } cases[] = {
        {offsetof(struct ledger_row, requests_complete), "ok"},
        {offsetof(struct ledger_row, requests_incomplete), "lossy"},
        {offsetof(struct ledger_row, requests_expired), "lossy"},
        {offsetof(struct ledger_row, requests_unsampled), "ok"},
        {offsetof(struct ledger_row, messages), "ok"},
        {offsetof(struct ledger_row, bytes), "ok"},
        {offsetof(struct ledger_row, dropped_messages), "lossy"},
        {offsetof(struct ledger_row, orphan_returns), "lossy"},
        {offsetof(struct ledger_row, stale_calls), "unclear"},
        {offsetof(struct ledger_row, decode_errors), "lossy"},
        {offsetof(struct ledger_row, paused_ms), "paused"},
        {offsetof(struct ledger_row, unwound_frames), "lossy"},
        {offsetof(struct ledger_row, ambiguous_returns), "lossy"},
        {offsetof(struct ledger_row, lost_tokens), "ok"},
        {offsetof(struct ledger_row, reloads), "ok"},
        {offsetof(struct ledger_row, trips), "ok"},
        {offsetof(struct ledger_row, lowered_ms), "ok"},
        {offsetof(struct ledger_row, incomplete_loss), "ok"},
        {offsetof(struct ledger_row, incomplete_token), "ok"},
        {offsetof(struct ledger_row, incomplete_cause), "unclear"},
        {offsetof(struct ledger_row, incomplete_return), "ok"},
        {offsetof(struct ledger_row, incomplete_reload), "ok"},
        {offsetof(struct ledger_row, incomplete_large), "ok"},
        {offsetof(struct ledger_row, incomplete_room), "ok"},
        {offsetof(struct ledger_row, incomplete_end), "ok"},
        {offsetof(struct ledger_row, calls), "ok"},
        {offsetof(struct ledger_row, recredited_calls), "ok"},
        {offsetof(struct ledger_row, unknown_outcomes), "ok"},
        {offsetof(struct ledger_row, tripped_ms), "paused"},
        {offsetof(struct ledger_row, away_ms), "paused"},
        {offsetof(struct ledger_row, untraced_ms), "ok"},
        {offsetof(struct ledger_row, unmarked_calls), "ok"},
        {offsetof(struct ledger_row, coarse_rows), "ok"},
        {offsetof(struct ledger_row, unwritten_rows), "lossy"},
    };
    enum { CASES = sizeof cases / sizeof *cases };
    // all of them
    assert_int_equal(
        CASES, (sizeof(struct ledger_row) - offsetof(struct ledger_row, requests_complete)) / 8);
    struct stats *batch = stats_new();
    for (int i = 0; i < CASES; i++) {
        *(uint64_t *)((char *)fixture_ledger(batch, NOON + 10 * i) + cases[i].at) = 1;
    }
    fixture_ledger(batch, NOON + 10 * CASES)->paused_ms = 1;
    fixture_ledger(batch, NOON + 10 * CASES)->dropped_messages = 1;
    fixture_write(batch);
    char sql[128];
    for (int i = 0; i <= CASES; i++) {
        snprintf(sql, sizeof sql,
                 "SELECT verdict FROM ledger WHERE resolution_s = 10 LIMIT 1 OFFSET %d", i);
        fixture_expect(sql, i < CASES ? cases[i].verdict : "paused");
    }
}

// Some calls come late in any system. More than a thousandth of them mean that processes work under
// others' tokens; and so do requests of which it cannot be told whose work is theirs, where nothing
// else is wrong.
static void test_unclear(void **state) {
    (void)state;
    static const struct {
        struct ledger_row row;
        const char *verdict;
    } cases[] = {
        {{.calls = 1000, .stale_calls = 1}, "ok"},
        {{.calls = 1999, .stale_calls = 2}, "unclear"},
        {{.calls = 1999, .stale_calls = 2, .orphan_returns = 1}, "lossy"},
        {{.calls = 1999, .stale_calls = 2, .away_ms = 1}, "paused"},
        {{.calls = 9, .requests_incomplete = 2, .incomplete_cause = 2}, "unclear"},
        {{.calls = 9, .requests_incomplete = 3, .incomplete_cause = 2}, "lossy"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct stats *batch = stats_new();
        int64_t bucket = NOON + 3600 * (int64_t)i;
        struct ledger_row *row = fixture_ledger(batch, bucket);
        uint16_t node = row->node;
        *row = cases[i].row;
        row->bucket_start = bucket;
        row->node = node;
        fixture_write(batch);
        char sql[128];
        snprintf(sql, sizeof sql,
                 "SELECT group_concat(verdict) FROM ledger "
                 "WHERE bucket_start = strftime('%%Y-%%m-%%dT%%H:%%M:%%SZ', %" PRId64
                 ", 'unixepoch')",
                 bucket);
        char expected[64];
        snprintf(expected, sizeof expected, "%s,%s,%s", cases[i].verdict, cases[i].verdict,
                 cases[i].verdict);
        fixture_expect(sql, expected);
    }
}

// Absurd numbers stay at the end of what the file can hold, and the batch is written.
static void test_overflowing_counters_stay_at_their_end(void **state) {
    (void)state;
    struct store *s = fixture_open();
    for (int i = 0; i < 2; i++) {
        struct stats *batch = stats_new();
        fixture_ledger(batch, NOON)->bytes = UINT64_MAX - 1;
        fixture_ledger(batch, NOON)->messages = INT64_MAX / 2 + 5;
        fixture_call(batch, NOON, "create", "db", 1000, false);
        fixture_row(batch, NOON, "shop@host", "create", "db")->wait_ns = UINT64_MAX;
        fixture_path_call(batch, NOON, "create", fixture_path("db"), 1000)->wait_ns = INT64_MAX - 1;
        stats_cost(batch, NOON, 0, 1)->bytes = INT64_MAX;
        assert_true(store_write(s, 10, batch, &fixture_names));
        stats_free(batch);
    }
    store_close(s);
    fixture_expect("SELECT bytes || ',' || messages FROM ledger_rows WHERE resolution_s = 60",
                   "8796093022208,8796093022208");
    fixture_expect("SELECT sum(bytes) FROM ledger_rows", "26388279066624"); // of three resolutions
    fixture_expect("SELECT group_concat(wait_ns) FROM stat_rows WHERE resolution_s = 60",
                   "9223372036854775807,0");
    fixture_expect("SELECT wait_ns || ',' || calls FROM path_rows WHERE resolution_s = 60",
                   "9223372036854775807,2");
    fixture_expect("SELECT bytes FROM cost_rows WHERE resolution_s = 60", "9223372036854775807");
}

static void test_resolutions_that_do_not_divide_are_left_out(void **state) {
    (void)state;
    static const struct {
        uint32_t bucket_s;
        const char *expected;
    } cases[] = {{1, "1,60,3600"}, {10, "10,60,3600"}, {7, "7"},
                 {60, "60,3600"},  {90, "90,3600"},    {3600, "3600"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct store *s = fixture_open();
        struct stats *batch = stats_new();
        fixture_call(batch, (int64_t)1000 * 3600 * 7, "create", "db", 1000, false);
        assert_true(store_write(s, cases[i].bucket_s, batch, &fixture_names));
        store_close(s);
        stats_free(batch);
        fixture_expect(
            "SELECT group_concat(r) FROM (SELECT DISTINCT resolution_s AS r FROM tier_stats)",
            cases[i].expected);
        unlink(fixture_db);
    }
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

// Durations of many batches, kept aside in plain arrays, against what the hour's row says.
static void test_random_batches_against_sorted_values(void **state) {
    (void)state;
    enum { BATCHES = 12, CALLS = 400, N = BATCHES * CALLS };
    static uint64_t all[N];
    uint64_t seed = 7;
    struct store *s = fixture_open();
    struct stats *batch = stats_new();
    for (int b = 0; b < BATCHES; b++) {
        for (int i = 0; i < CALLS; i++) {
            uint64_t ns = 1 + random_u64(&seed) % (1ULL << (5 + random_u64(&seed) % 30));
            all[b * CALLS + i] = ns;
            fixture_call(batch, NOON + 10 * (b / 3), "create", "db", ns, false);
        }
        assert_true(store_write(s, 10, batch, &fixture_names));
        stats_reset(batch);
    }
    stats_free(batch);
    store_close(s);
    qsort(all, N, sizeof *all, by_value);
    double sum = 0, deviations = 0;
    for (int i = 0; i < N; i++) {
        sum += (double)all[i];
    }
    for (int i = 0; i < N; i++) {
        deviations += ((double)all[i] - sum / N) * ((double)all[i] - sum / N);
    }
    static const struct {
        const char *column;
        double q;
    } quantiles[] = {{"p25", 0.25}, {"p50", 0.5},  {"p75", 0.75},  {"p90", 0.9},
                     {"p95", 0.95}, {"p99", 0.99}, {"p999", 0.999}};
    char sql[256];
    for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++) {
        double truth = (double)all[(int)ceil(quantiles[i].q * N) - 1];
        snprintf(
            sql, sizeof sql,
            "SELECT %s_us * 1000 FROM tier_stats WHERE resolution_s = 3600 AND identity = 'create'",
            quantiles[i].column);
        char *got = fixture_ask(fixture_db, sql);
        assert_true(fabs(atof(got) / truth - 1) < 0.011);
        free(got);
    }
    char *stddev = fixture_ask(
        fixture_db,
        "SELECT printf('%.9e', stddev_us * 1000) FROM tier_stats WHERE resolution_s = 3600");
    assert_true(fabs(atof(stddev) / sqrt(deviations / N) - 1) < 1e-6);
    free(stddev);
    char expected[64];
    snprintf(expected, sizeof expected, "%d,%.0f,%llu,%llu", N, sum, (unsigned long long)all[0],
             (unsigned long long)all[N - 1]);
    fixture_expect(
        "SELECT calls || ',' || duration_ns || ',' || min_ns || ',' || max_ns FROM stat_rows WHERE "
        "resolution_s = 3600",
        expected);
}

// Every column of every row, the blob too; the squares, which are added in another order, rounded.
static char *dump(const char *path) {
    return fixture_ask(
        path,
        "SELECT group_concat(resolution_s || bucket_start || i.name || t.name || requests || ':' || calls || "
        "':' "
        "|| total_ns || ':' || duration_ns || ':' || printf('%.9e', square_ns) || min_ns || ':' || max_ns || "
        "':' || "
        "printf('%.6e', stddev_ns) || p25_ns || p50_ns || p999_ns || hex(histogram)) FROM (SELECT * FROM "
        "stat_rows ORDER BY resolution_s, bucket_start, identity_id, tier_id) JOIN identity_names AS i ON "
        "i.id = identity_id JOIN tier_names AS t ON t.id = tier_id");
}

static void write_in_batches(const char *path, int batches) {
    struct store *s;
    char error[STORE_ERROR_BYTES];
    uint64_t seed = 3;
    struct stats *batch = stats_new();
    assert_int_equal(store_open(path, &s, error), STORE_OK);
    for (int i = 0; i < 120; i++) {
        fixture_call(batch, NOON + 10 * (i / 20), i % 3 ? "create" : "update",
                     i % 2 ? "db" : "http", random_u64(&seed) % 90000, i % 5 == 0);
        if ((i + 1) % (120 / batches) == 0) {
            assert_true(store_write(s, 10, batch, &fixture_names));
            stats_reset(batch);
        }
    }
    store_close(s);
    stats_free(batch);
}

static void test_many_batches_equal_one(void **state) {
    (void)state;
    char other[128];
    snprintf(other, sizeof other, "%s/other.db", fixture_dir);
    write_in_batches(fixture_db, 1);
    write_in_batches(other, 40);
    char *one = dump(fixture_db), *many = dump(other);
    assert_true(strlen(one) > 1000);
    assert_string_equal(one, many);
    free(one);
    free(many);
}

static void test_names_are_as_given(void **state) {
    (void)state;
    struct store *s = fixture_open();
    struct stats *batch = stats_new();
    fixture_call(batch, NOON, "größe '\"; DROP TABLE", "db", 1000, false);
    assert_true(store_write(s, 10, batch, &fixture_names));
    store_close(s);
    stats_free(batch);
    fixture_expect("SELECT identity FROM tier_stats WHERE identity <> '_total'",
                   "größe '\"; DROP TABLE");
}

// -- failures -------------------------------------------------------------------------------------

static void test_full_disk_keeps_the_batch_whole(void **state) {
    (void)state;
    struct store *s = fixture_open();
    struct stats *batch = stats_new();
    fixture_call(batch, NOON, "create", "db", 1000, false);
    assert_true(store_write(s, 10, batch, &fixture_names));
    stats_reset(batch);
    for (int i = 0; i < 500; i++) {
        char name[16];
        snprintf(name, sizeof name, "identity %d", i);
        fixture_call(batch, NOON, name, "db", 1000, false);
    }
    int64_t pages = store_integer(s, "PRAGMA page_count", 0) + 3;
    char sql[64];
    snprintf(sql, sizeof sql, "PRAGMA max_page_count = %lld", (long long)pages);
    sqlite3_exec(s->db, sql, NULL, NULL, NULL);
    for (int i = 0; i < 3; i++) {
        assert_false(store_write(s, 10, batch, &fixture_names));
        assert_non_null(strstr(store_error(s), "full"));
        fixture_expect(
            "SELECT sum(calls) || ',' || (SELECT count(*) FROM identity_names) FROM stat_rows WHERE "
            "identity_id = (SELECT id FROM identity_names WHERE name = '_total') AND resolution_s = 10",
            "1,2");
    }
    sqlite3_exec(s->db, "PRAGMA max_page_count = 1000000", NULL, NULL, NULL);
    assert_true(store_write(s, 10, batch, &fixture_names));
    store_close(s);
    stats_free(batch);
    fixture_expect(
        "SELECT group_concat(n) FROM (SELECT sum(calls) AS n FROM tier_stats GROUP BY resolution_s, "
        "identity = '_total')",
        "501,501,501,501,501,501");
    fixture_expect("SELECT count(*) FROM tier_stats WHERE resolution_s = 60", "502");
    fixture_expect("PRAGMA integrity_check", "ok");
}

static void change(const char *sql) {
    sqlite3 *db;
    assert_int_equal(sqlite3_open(fixture_db, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

// A row that cannot be written keeps none of the others from the file.
static void test_malformed_rows_are_passed_over(void **state) {
    (void)state;
    struct stats *batch = stats_new();
    fixture_call(batch, NOON, "create", "db", 1000, false);
    fixture_call(batch, NOON, "delete", "db", 1000, false);
    fixture_ledger(batch, NOON)->requests_complete = 2;
    fixture_path_call(batch, NOON, "create", fixture_path("db"), 1000);
    struct store *s = fixture_open();
    assert_true(store_write(s, 10, batch, &fixture_names));
    store_close(s);
    change(
        "UPDATE stat_rows SET histogram = x'ff00ff' WHERE resolution_s = 60 AND identity_id = "
        "(SELECT id FROM identity_names WHERE name = 'create');"
        "CREATE TRIGGER no_paths BEFORE UPDATE ON path_rows WHEN new.resolution_s = 10 BEGIN SELECT RAISE(ABORT, 'no'); END");
    s = fixture_open();
    assert_true(store_write(s, 10, batch, &fixture_names));
    assert_int_equal(store_set_aside(s), 2);
    assert_true(store_write(s, 10, batch, &fixture_names));
    assert_int_equal(store_set_aside(s), 4);
    store_close(s);
    stats_free(batch);
    fixture_expect(
        "SELECT group_concat(calls) FROM (SELECT calls FROM tier_stats WHERE identity = 'create' "
        "ORDER BY resolution_s)",
        "3,1,3");
    fixture_expect(
        "SELECT group_concat(calls) FROM (SELECT calls FROM tier_stats WHERE identity = 'delete' "
        "ORDER BY resolution_s)",
        "3,3,3");
    fixture_expect(
        "SELECT group_concat(calls) FROM (SELECT calls FROM path_stats WHERE identity = 'create' "
        "ORDER BY resolution_s)",
        "1,3,3");
    fixture_expect("SELECT requests_complete FROM ledger WHERE resolution_s = 10", "6");
    // told where the rows belong: the path at 10 s, the row at a minute
    fixture_expect(
        "SELECT group_concat(unwritten_rows || verdict) FROM (SELECT * FROM ledger ORDER BY resolution_s)",
        "2lossy,2lossy,0ok");
}

// A malformed row of the ledger can tell of nothing, but stops nobody.
static void test_a_malformed_ledger_is_passed_over(void **state) {
    (void)state;
    struct stats *batch = stats_new();
    fixture_call(batch, NOON, "create", "db", 1000, false);
    fixture_ledger(batch, NOON)->requests_complete = 2;
    struct store *s = fixture_open();
    assert_true(store_write(s, 10, batch, &fixture_names));
    store_close(s);
    change(
        "CREATE TRIGGER no_ledger BEFORE UPDATE ON ledger_rows WHEN new.resolution_s = 60 BEGIN SELECT RAISE(ABORT, 'no'); END");
    s = fixture_open();
    assert_true(store_write(s, 10, batch, &fixture_names));
    assert_int_equal(store_set_aside(s), 1);
    store_close(s);
    stats_free(batch);
    fixture_expect(
        "SELECT group_concat(requests_complete) FROM (SELECT * FROM ledger ORDER BY resolution_s)",
        "4,2,4");
    fixture_expect(
        "SELECT group_concat(calls) FROM (SELECT calls FROM tier_stats WHERE identity = 'create' "
        "ORDER BY resolution_s)",
        "2,2,2");
}

static void test_no_memory_keeps_the_batch_whole(void **state) {
    (void)state;
    struct store *s = fixture_open();
    struct stats *batch = stats_new();
    int failures = 0;
    fixture_call(batch, NOON, "create", "db", 1000, false);
    for (long n = 0; n < 10; n++) {
        histogram_free(&s->merged); // whatever memory it kept
        buffer_free(&s->blob);
        s->blob = buffer_make(HISTOGRAM_BYTES);
        fail_alloc_at(n);
        bool ok = store_write(s, 10, batch, &fixture_names);
        fail_alloc_at(-1);
        failures += !ok;
    }
    char expected[32];
    snprintf(expected, sizeof expected, "%d", 10 - failures);
    store_close(s);
    stats_free(batch);
    assert_in_range(failures, 1, 9);
    fixture_expect("SELECT calls FROM tier_stats WHERE resolution_s = 3600 AND identity = 'create'",
                   expected);
    fixture_expect("SELECT calls FROM tier_stats WHERE resolution_s = 10 AND identity = '_total'",
                   expected);
}

// Writes batch after batch until it is killed; each has as many calls as the ledger has requests.
static void write_forever(int ready) {
    struct store *s = fixture_open();
    struct stats *batch = stats_new();
    uint64_t seed = (uint64_t)getpid();
    for (int i = 0;; i++) {
        for (int k = 0; k < 20; k++) {
            char name[24];
            snprintf(name, sizeof name, "identity %d", (int)(random_u64(&seed) % 50));
            fixture_call(batch, NOON + 10 * (i % 400), name, "db", random_u64(&seed) % 1000000,
                         false);
            fixture_ledger(batch, NOON + 10 * (i % 400))->requests_complete++;
        }
        if (!store_write(s, 10, batch, &fixture_names) || (i == 0 && write(ready, "x", 1) != 1)) {
            _exit(1);
        }
        stats_reset(batch);
    }
}

// A child that writes; returns when its first batch is in the file.
static pid_t start_child(void) {
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t parent = getpid(), child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); // it ends with this test, however that does
        if (getppid() != parent) {
            _exit(1);
        }
        write_forever(ready[1]);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return child;
}

static void test_kill_leaves_whole_batches(void **state) {
    (void)state;
    uint64_t seed = 11;
    for (int i = 0; i < 15; i++) {
        pid_t child = start_child();
        usleep((useconds_t)(random_u64(&seed) % 60000));
        kill(child, SIGKILL);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        fixture_expect("PRAGMA integrity_check", "ok");
        fixture_expect(
            "SELECT count(DISTINCT n) || ',' || (min(n) > 0) FROM (SELECT sum(calls) AS n FROM "
            "tier_stats GROUP BY "
            "resolution_s, identity = '_total' UNION ALL SELECT sum(requests_complete) FROM "
            "ledger GROUP BY resolution_s)",
            "1,1");
    }
}

static void test_second_collector_is_refused(void **state) {
    (void)state;
    pid_t child = start_child();
    struct store *s;
    char error[STORE_ERROR_BYTES];
    assert_int_equal(store_open(fixture_db, &s, error), STORE_IN_USE);
    char who[64], moved[sizeof fixture_db + 8];
    snprintf(who, sizeof who, "another kprof-collector, process %d, writes", (int)child);
    assert_non_null(strstr(error, who));
    // the log beside the path is the other's, too, wherever the file is
    snprintf(moved, sizeof moved, "%s.moved", fixture_db);
    assert_int_equal(rename(fixture_db, moved), 0);
    assert_int_equal(store_open(fixture_db, &s, error), STORE_IN_USE);
    assert_non_null(strstr(error, who));
    assert_int_equal(access(fixture_db, F_OK), -1);
    assert_int_equal(store_open(moved, &s, error), STORE_IN_USE);
    assert_non_null(strstr(error, who));
    assert_int_equal(rename(moved, fixture_db), 0);
    assert_int_equal(store_open_reader(fixture_db, &s, error), STORE_OK); // while it writes
    assert_true(store_integer(s, "SELECT sum(calls) FROM tier_stats", 0) > 0);
    store_close(s);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    store_close(fixture_open()); // at once: the lock went with the process
}

// Others lock and unlock their files meanwhile, and the kernel leaves out of its list what comes
// after a lock that has just gone.
static void test_the_holder_is_found_beside_other_locks(void **state) {
    (void)state;
    enum { FILES = 150, LOOKS = 1000 };
    char path[sizeof fixture_db + 16];
    int held = open(fixture_db, O_RDWR | O_CREAT | O_CLOEXEC, 0600), fds[FILES];
    assert_int_equal(flock(held, LOCK_EX), 0);
    for (int i = 0; i < FILES; i++) {
        snprintf(path, sizeof path, "%s.%d", fixture_db, i);
        fds[i] = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        assert_true(fds[i] >= 0);
    }
    pid_t parent = getpid(), child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (getppid() == parent) {
            for (int i = 0; i < 2 * FILES; i++) {
                struct flock lock = {.l_type = i < FILES ? F_WRLCK : F_UNLCK, .l_len = 1};
                fcntl(fds[i % FILES], F_SETLK, &lock);
            }
        }
        _exit(1);
    }
    int missed = 0;
    for (int i = 0; i < LOOKS; i++) {
        missed += place_holder(held) != parent;
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    for (int i = 0; i < FILES; i++) {
        close(fds[i]);
    }
    close(held);
    assert_int_equal(missed, 0);
}

// -- retention ------------------------------------------------------------------------------------

static void test_old_rows_go(void **state) {
    (void)state;
    static const int64_t day = 86400;
    static const int64_t ages[] = {
        0, 1 * 86400, 3 * 86400, 29 * 86400LL, 31 * 86400LL, 729 * 86400LL, 731 * 86400LL};
    struct store *s = fixture_open();
    struct stats *batch = stats_new();
    for (size_t i = 0; i < sizeof ages / sizeof *ages; i++) {
        fixture_call(batch, NOON - ages[i], "create", "db", 1000, false);
        fixture_ledger(batch, NOON - ages[i])->requests_complete = 1;
    }
    for (int i = 0; i < 6000; i++) { // more than one step
        fixture_call(batch, NOON - 4 * day - 10 * i, "create", "db", 1000, false);
    }
    assert_true(store_write(s, 10, batch, &fixture_names));
    int steps = 0;
    while (store_expire(s, NOON)) {
        steps++;
    }
    assert_in_range(steps, 3, 10);
    store_close(s);
    stats_free(batch);
    fixture_expect("SELECT count(*) FROM tier_stats WHERE resolution_s = 10",
                   "4"); // two ages, two identities
    fixture_expect("SELECT min(bucket_start) FROM tier_stats WHERE resolution_s = 60",
                   "2025-10-22T12:00:00Z");
    fixture_expect("SELECT count(*) || min(bucket_start) FROM ledger WHERE resolution_s = 3600",
                   "62023-11-22T12:00:00Z");
    fixture_expect("SELECT count(*) FROM ledger WHERE resolution_s = 10", "2");
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define STORE_TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
        STORE_TEST(test_opens_again),
        STORE_TEST(test_refuses_foreign_files),
        STORE_TEST(test_refuses_newer_schema),
        STORE_TEST(test_refuses_what_cannot_be_written),
        STORE_TEST(test_reader_refuses),
        STORE_TEST(test_files_are_their_owners),
        STORE_TEST(test_reads_without_write_permission),
        STORE_TEST(test_views_have_the_promised_columns),
        STORE_TEST(test_small_batch_to_the_digit),
        STORE_TEST(test_verdicts),
        STORE_TEST(test_unclear),
        STORE_TEST(test_overflowing_counters_stay_at_their_end),
        STORE_TEST(test_resolutions_that_do_not_divide_are_left_out),
        STORE_TEST(test_random_batches_against_sorted_values),
        STORE_TEST(test_many_batches_equal_one),
        STORE_TEST(test_names_are_as_given),
        STORE_TEST(test_full_disk_keeps_the_batch_whole),
        STORE_TEST(test_no_memory_keeps_the_batch_whole),
        STORE_TEST(test_kill_leaves_whole_batches),
        STORE_TEST(test_second_collector_is_refused),
        STORE_TEST(test_the_holder_is_found_beside_other_locks),
        STORE_TEST(test_malformed_rows_are_passed_over),
        STORE_TEST(test_a_malformed_ledger_is_passed_over),
        STORE_TEST(test_old_rows_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
