// SPDX-License-Identifier: Apache-2.0
// For tests of what stores and reads databases: a folder of its own, names, and rows that are
// counted as the model counts them.
#pragma once

#include "unit.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/directory/directory.h"
#include "model/stats/stats.h"
#include "store/store.h"
#ifdef FIXTURE_MIRROR
#include "mirror_fixture.h"
#endif

static char fixture_dir[64];
static char fixture_db[96]; // a path in it where no file is yet
static struct directory fixture_names;

static inline int fixture_setup(void **state) {
    (void)state;
    strcpy(fixture_dir, "/tmp/kprof_test_XXXXXX");
    assert_non_null(mkdtemp(fixture_dir));
    snprintf(fixture_db, sizeof fixture_db, "%s/kprof.db", fixture_dir);
    assert_true(directory_init(&fixture_names));
    return 0;
}

static inline int fixture_teardown(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", fixture_dir);
    directory_free(&fixture_names);
    return system(command);
}

static inline struct store *fixture_open(void) {
    struct store *s;
    char error[STORE_ERROR_BYTES];
    if (store_open(fixture_db, &s, error) != STORE_OK) {
        fail_msg("%s", error);
    }
    return s;
}

// Of the file; in tests that are built a second time, with FIXTURE_MIRROR, of a mirror of it.
static inline struct store *fixture_reader(void) {
#ifdef FIXTURE_MIRROR
    return mirror_fixture(fixture_db);
#endif
    struct store *s;
    char error[STORE_ERROR_BYTES];
    if (store_open_reader(fixture_db, &s, error) != STORE_OK) {
        fail_msg("%s", error);
    }
    return s;
}

// Writes a batch with buckets of 10 s, and frees it.
static inline void fixture_write(struct stats *batch) {
    struct store *s = fixture_open();
    if (!store_write(s, 10, batch, &fixture_names)) {
        fail_msg("%s", store_error(s));
    }
    store_close(s);
    stats_free(batch);
}

static inline struct stat_row *fixture_row(struct stats *batch, int64_t bucket, const char *node,
                                           const char *identity, const char *tier) {
    struct stat_key key = {bucket, directory_node(&fixture_names, slice_text(node)),
                           directory_identity(&fixture_names, slice_text(identity)),
                           directory_tier(&fixture_names, slice_text(tier))};
    struct stat_row *row = stats_row(batch, key);
    assert_non_null(row);
    return row;
}

// One outermost call that is the only one of its request, under the identity and under "_total".
static inline void fixture_call(struct stats *batch, int64_t bucket, const char *identity,
                                const char *tier, uint64_t ns, bool async) {
    const char *const both[] = {identity, "_total"};
    for (int i = 0; i < 2; i++) {
        struct stat_row *row = fixture_row(batch, bucket, "shop@host", both[i], tier);
        row->requests++;
        stats_count(row, ns);
        row->async_calls += async;
        row->async_ns += async ? ns : 0;
        row->total_ns += async ? 0 : ns;
        row->self_ns += async ? 0 : ns / 2;
    }
}

// The id of a path; its tiers' names with a '/' between them.
static inline uint32_t fixture_path(const char *tiers) {
    uint32_t path = PATH_ROOT;
    for (const char *at = tiers; *at;) {
        size_t len = strcspn(at, "/");
        path = paths_below(&fixture_names.paths, 0, path,
                           directory_tier(&fixture_names, slice_of((const uint8_t *)at, len)));
        at += len + (at[len] == '/');
    }
    return path;
}

// One call at a position.
static inline struct path_row *fixture_path_call(struct stats *batch, int64_t bucket,
                                                 const char *identity, uint32_t path, uint64_t ns) {
    struct path_row *row =
        stats_path(batch, bucket, directory_node(&fixture_names, slice_text("shop@host")),
                   directory_identity(&fixture_names, slice_text(identity)), path);
    assert_non_null(row);
    row->calls++;
    row->total_ns += ns;
    row->self_ns += ns / 2;
    row->duration_ns += ns;
    row->min_ns = ns < row->min_ns ? ns : row->min_ns;
    row->max_ns = ns > row->max_ns ? ns : row->max_ns;
    return row;
}

// A request of shop@host that is kept with so many spans, each below the one before; change it,
// then keep it with fixture_keep.
static inline struct kept_request fixture_request(int64_t bucket, const char *identity,
                                                  uint8_t reason, int64_t duration,
                                                  uint32_t spans) {
    return (struct kept_request){.bucket_start = bucket,
                                 .node = directory_node(&fixture_names, slice_text("shop@host")),
                                 .identity =
                                     directory_identity(&fixture_names, slice_text(identity)),
                                 .reason = reason,
                                 .begin = bucket * 1000000000,
                                 .duration = duration,
                                 .spans = spans,
                                 .count = spans};
}

static inline void fixture_keep(struct stats *batch, const struct kept_request *request) {
    struct kept_span *spans = calloc(request->count + 1, sizeof *spans);
    for (uint32_t i = 0; i < request->count; i++) {
        spans[i] = (struct kept_span){
            .start = 10 * (int64_t)i,
            .duration = request->duration - 10 * (int64_t)i,
            .self = 10,
            .pid = 100 + i,
            .parent = i - 1, // UINT32_MAX for the first
            .tier = directory_tier(&fixture_names, slice_text(i % 2 ? "db" : "http"))};
    }
    assert_true(stats_keep(batch, request, spans));
    free(spans);
}

static inline struct ledger_row *fixture_ledger(struct stats *batch, int64_t bucket) {
    return stats_ledger(batch, bucket, directory_node(&fixture_names, slice_text("shop@host")));
}

// Its counters become 1, 2, 3 …
static inline void fixture_fill_ledger(struct ledger_row *row) {
    uint64_t nth = 0;
#define FIXTURE_NTH(column) row->column = ++nth;
    LEDGER_COLUMNS(FIXTURE_NTH)
#undef FIXTURE_NTH
}

// The first column of the first row of a query, as text; free it. Through a connection of its own,
// as in a sqlite3 shell.
static inline char *fixture_ask(const char *path, const char *sql) {
    sqlite3 *db;
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL),
                     SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK) {
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    }
    int rc = sqlite3_step(statement);
    assert_true(rc == SQLITE_ROW || rc == SQLITE_DONE);
    const unsigned char *text = rc == SQLITE_ROW ? sqlite3_column_text(statement, 0) : NULL;
    char *copy = strdup(text ? (const char *)text : "");
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return copy;
}

static inline void fixture_expect(const char *sql, const char *expected) {
    char *text = fixture_ask(fixture_db, sql);
    if (strcmp(text, expected) != 0) {
        fail_msg("%s\n  gives    %s\n  expected %s", sql, text, expected);
    }
    free(text);
}
