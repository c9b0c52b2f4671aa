// Adds a batch of increments to the stored rows: read, merge and write back, as quantiles cannot be added.
#include "store/store.h"

#include <math.h>
#include <stdio.h>

#include "internal.h"

enum { MINUTE_S = 60, HOUR_S = 3600, RESOLUTIONS = 3, QUANTILES = 7 };

static const double quantiles[QUANTILES] = {0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999};

static const char *const sql[STATEMENTS] = {
    [STATEMENT_BEGIN] = "BEGIN IMMEDIATE",
    [STATEMENT_COMMIT] = "COMMIT",
    [STATEMENT_READ_ROW] = "SELECT requests, calls, errors, async_calls, total_ns, self_ns, async_ns, "
                           "duration_ns, square_ns, min_ns, max_ns, "
                           "histogram FROM stat_rows "
                           "WHERE resolution_s = ?1 AND bucket_start = ?2 AND node_id = ?3 AND identity_id = "
                           "?4 AND tier_id = ?5",
    [STATEMENT_WRITE_ROW] =
        "REPLACE INTO stat_rows (resolution_s, bucket_start, node_id, identity_id, tier_id, requests, calls, "
        "errors, "
        "async_calls, total_ns, self_ns, async_ns, duration_ns, square_ns, min_ns, max_ns, histogram, "
        "stddev_ns, "
        "p25_ns, p50_ns, p75_ns, p90_ns, p95_ns, p99_ns, p999_ns) "
        "VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,?22,?23,?24,?25)",
    [STATEMENT_ADD_LEDGER] =
        "INSERT INTO ledger_rows (resolution_s, bucket_start, node_id, requests_complete, "
        "requests_incomplete, "
        "requests_expired, requests_unsampled, messages, bytes, dropped_messages, orphan_returns, "
        "stale_calls, "
        "decode_errors, paused_ms) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14) "
        "ON CONFLICT DO UPDATE SET requests_complete = requests_complete + excluded.requests_complete, "
        "requests_incomplete = requests_incomplete + excluded.requests_incomplete, "
        "requests_expired = requests_expired + excluded.requests_expired, "
        "requests_unsampled = requests_unsampled + excluded.requests_unsampled, "
        "messages = messages + excluded.messages, bytes = bytes + excluded.bytes, "
        "dropped_messages = dropped_messages + excluded.dropped_messages, "
        "orphan_returns = orphan_returns + excluded.orphan_returns, "
        "stale_calls = stale_calls + excluded.stale_calls, "
        "decode_errors = decode_errors + excluded.decode_errors, paused_ms = paused_ms + excluded.paused_ms",
    [STATEMENT_ADD_NODE] = "INSERT INTO node_names (name) VALUES (?1) ON CONFLICT DO NOTHING",
    [STATEMENT_ADD_IDENTITY] = "INSERT INTO identity_names (name) VALUES (?1) ON CONFLICT DO NOTHING",
    [STATEMENT_ADD_TIER] = "INSERT INTO tier_names (name) VALUES (?1) ON CONFLICT DO NOTHING",
    [STATEMENT_FIND_NODE] = "SELECT id FROM node_names WHERE name = ?1",
    [STATEMENT_FIND_IDENTITY] = "SELECT id FROM identity_names WHERE name = ?1",
    [STATEMENT_FIND_TIER] = "SELECT id FROM tier_names WHERE name = ?1",
};

// -- statements
// --------------------------------------------------------------------------------------------------------

// The statement, prepared, or NULL.
static sqlite3_stmt *prepared(struct store *s, enum statement which) {
    if (!s->statements[which] && sqlite3_prepare_v3(s->db, sql[which], -1, SQLITE_PREPARE_PERSISTENT,
                                                    &s->statements[which], NULL) != SQLITE_OK) {
        store_fail(s, "prepare");
        return NULL;
    }
    return s->statements[which];
}

// Runs a bound statement that yields no rows and makes it ready for the next time.
static bool run(struct store *s, sqlite3_stmt *statement, const char *what) {
    if (!statement) {
        return false;
    }
    bool ok = sqlite3_step(statement) == SQLITE_DONE || store_fail(s, what);
    sqlite3_reset(statement);
    return ok;
}

// Counters are unsigned in memory and signed in the file; a counter that overflows stays at its end.
static void bind_count(sqlite3_stmt *statement, int at, uint64_t value) {
    sqlite3_bind_int64(statement, at, value > INT64_MAX ? INT64_MAX : (int64_t)value);
}

static uint64_t add(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

// -- names
// ---------------------------------------------------------------------------------------------------------------

// The row id of a name, from the cache or the table, new when it must be; 0 on failure.
static int64_t name_id(struct store *s, int64_t *cached, enum statement insert, enum statement find,
                       const char *text) {
    if (*cached) {
        return *cached;
    }
    sqlite3_stmt *adding = prepared(s, insert);
    sqlite3_stmt *finding = prepared(s, find);
    if (!adding || !finding) {
        return 0;
    }
    sqlite3_bind_text(adding, 1, text, -1, SQLITE_STATIC);
    sqlite3_bind_text(finding, 1, text, -1, SQLITE_STATIC);
    if (run(s, adding, "add a name")) {
        if (sqlite3_step(finding) == SQLITE_ROW) {
            *cached = sqlite3_column_int64(finding, 0);
        } else {
            store_fail(s, "find a name");
        }
    }
    sqlite3_reset(finding);
    sqlite3_clear_bindings(adding);
    sqlite3_clear_bindings(finding);
    return *cached;
}

static int64_t node_id(struct store *s, const struct directory *d, uint16_t id) {
    return name_id(s, &s->node_ids[id], STATEMENT_ADD_NODE, STATEMENT_FIND_NODE, names_text(&d->nodes, id));
}

static int64_t identity_id(struct store *s, const struct directory *d, uint16_t id) {
    return name_id(s, &s->identity_ids[id], STATEMENT_ADD_IDENTITY, STATEMENT_FIND_IDENTITY,
                   names_text(&d->identities, id));
}

static int64_t tier_id(struct store *s, const struct directory *d, uint16_t id) {
    return name_id(s, &s->tier_ids[id], STATEMENT_ADD_TIER, STATEMENT_FIND_TIER, names_text(&d->tiers, id));
}

static void forget_names(struct store *s) {
    memset(s->node_ids, 0, sizeof s->node_ids);
    memset(s->identity_ids, 0, sizeof s->identity_ids);
    memset(s->tier_ids, 0, sizeof s->tier_ids);
}

// -- rows
// ----------------------------------------------------------------------------------------------------------------

static void bind_key(sqlite3_stmt *statement, uint32_t resolution_s, int64_t bucket, const int64_t ids[3]) {
    sqlite3_bind_int64(statement, 1, resolution_s);
    sqlite3_bind_int64(statement, 2, floor_to(bucket, resolution_s));
    for (int i = 0; i < 3; i++) {
        sqlite3_bind_int64(statement, 3 + i, ids[i]);
    }
}

// Adds the stored row under the bound key to *row, whose histogram is s->merged. Nothing happens when there
// is none.
static bool add_stored(struct store *s, sqlite3_stmt *reading, struct stat_row *row) {
    int rc = sqlite3_step(reading);
    bool ok = rc == SQLITE_DONE || rc == SQLITE_ROW || store_fail(s, "read a row");
    if (rc == SQLITE_ROW) {
        uint64_t *const counts[] = {&row->requests, &row->calls,   &row->errors,   &row->async_calls,
                                    &row->total_ns, &row->self_ns, &row->async_ns, &row->duration_ns};
        for (int i = 0; i < 8; i++) {
            *counts[i] = add(*counts[i], (uint64_t)sqlite3_column_int64(reading, i));
        }
        row->square_ns += sqlite3_column_double(reading, 8);
        if (sqlite3_column_type(reading, 9) == SQLITE_INTEGER) {
            uint64_t min = (uint64_t)sqlite3_column_int64(reading, 9);
            uint64_t max = (uint64_t)sqlite3_column_int64(reading, 10);
            row->min_ns = min < row->min_ns ? min : row->min_ns;
            row->max_ns = max > row->max_ns ? max : row->max_ns;
        }
        const void *blob = sqlite3_column_blob(reading, 11);
        if (!histogram_read(&s->merged, slice_of(blob, (size_t)sqlite3_column_bytes(reading, 11)))) {
            snprintf(s->error, sizeof s->error, "read a row: its histogram is malformed, or no memory");
            ok = false;
        }
    }
    sqlite3_reset(reading);
    return ok;
}

static double between(double value, uint64_t min, uint64_t max) {
    return value < (double)min ? (double)min : value > (double)max ? (double)max : value;
}

// Binds ?15 … ?25: what exists only when there were calls.
static void bind_durations(struct store *s, sqlite3_stmt *writing, const struct stat_row *row) {
    sqlite3_bind_blob(writing, 17, s->blob.data, (int)s->blob.len, SQLITE_STATIC);
    if (row->calls == 0) {
        for (int i = 15; i <= 25; i++) {
            if (i != 17) {
                sqlite3_bind_null(writing, i);
            }
        }
        return;
    }
    bind_count(writing, 15, row->min_ns);
    bind_count(writing, 16, row->max_ns);
    double mean = (double)row->duration_ns / (double)row->calls;
    double variance = row->square_ns / (double)row->calls - mean * mean;
    sqlite3_bind_double(writing, 18, variance > 0 ? sqrt(variance) : 0);
    for (int i = 0; i < QUANTILES; i++) {
        double value = histogram_quantile(&s->merged, quantiles[i]);
        sqlite3_bind_double(writing, 19 + i, between(value, row->min_ns, row->max_ns));
    }
}

static bool write_row(struct store *s, uint32_t resolution_s, const int64_t ids[3],
                      const struct stat_row *increment) {
    sqlite3_stmt *reading = prepared(s, STATEMENT_READ_ROW);
    sqlite3_stmt *writing = prepared(s, STATEMENT_WRITE_ROW);
    struct stat_row row = *increment;
    if (!reading || !writing) {
        return false;
    }
    histogram_reset(&s->merged);
    buffer_reset(&s->blob);
    bind_key(reading, resolution_s, row.key.bucket_start, ids);
    if (!add_stored(s, reading, &row)) {
        return false;
    }
    if (!histogram_merge(&s->merged, &increment->durations) || !histogram_write(&s->merged, &s->blob)) {
        snprintf(s->error, sizeof s->error, "write a row: no memory");
        return false;
    }
    bind_key(writing, resolution_s, row.key.bucket_start, ids);
    const uint64_t counts[] = {row.requests, row.calls,   row.errors,   row.async_calls,
                               row.total_ns, row.self_ns, row.async_ns, row.duration_ns};
    for (int i = 0; i < 8; i++) {
        bind_count(writing, 6 + i, counts[i]);
    }
    sqlite3_bind_double(writing, 14, row.square_ns);
    bind_durations(s, writing, &row);
    return run(s, writing, "write a row");
}

static bool write_ledger(struct store *s, uint32_t resolution_s, int64_t node, const struct ledger_row *row) {
    sqlite3_stmt *adding = prepared(s, STATEMENT_ADD_LEDGER);
    if (!adding) {
        return false;
    }
    sqlite3_bind_int64(adding, 1, resolution_s);
    sqlite3_bind_int64(adding, 2, floor_to(row->bucket_start, resolution_s));
    sqlite3_bind_int64(adding, 3, node);
    const uint64_t counts[] = {row->requests_complete, row->requests_incomplete,
                               row->requests_expired,  row->requests_unsampled,
                               row->messages,          row->bytes,
                               row->dropped_messages,  row->orphan_returns,
                               row->stale_calls,       row->decode_errors,
                               row->paused_ms};
    for (int i = 0; i < 11; i++) {
        bind_count(adding, 4 + i, counts[i]);
    }
    return run(s, adding, "write the ledger");
}

// -- batches
// -------------------------------------------------------------------------------------------------------------

static int resolutions_of(uint32_t bucket_s, uint32_t out[RESOLUTIONS]) {
    int n = 0;
    out[n++] = bucket_s;
    for (uint32_t r = MINUTE_S; r <= HOUR_S; r *= HOUR_S / MINUTE_S) {
        if (r > out[n - 1] && r % out[n - 1] == 0) {
            out[n++] = r;
        }
    }
    return n;
}

static bool write_all(struct store *s, uint32_t bucket_s, const struct stats *batch,
                      const struct directory *names) {
    uint32_t resolutions[RESOLUTIONS];
    int n = resolutions_of(bucket_s, resolutions);
    for (uint32_t i = 0; i < stats_rows(batch); i++) {
        const struct stat_row *row = stats_row_at(batch, i);
        const int64_t ids[3] = {node_id(s, names, row->key.node), identity_id(s, names, row->key.identity),
                                tier_id(s, names, row->key.tier)};
        if (!ids[0] || !ids[1] || !ids[2]) {
            return false;
        }
        for (int r = 0; r < n; r++) {
            if (!write_row(s, resolutions[r], ids, row)) {
                return false;
            }
        }
    }
    for (uint32_t i = 0; i < stats_ledgers(batch); i++) {
        const struct ledger_row *row = stats_ledger_at(batch, i);
        int64_t node = node_id(s, names, row->node);
        for (int r = 0; r < n; r++) {
            if (!node || !write_ledger(s, resolutions[r], node, row)) {
                return false;
            }
        }
    }
    return true;
}

bool store_write(struct store *s, uint32_t bucket_s, const struct stats *batch,
                 const struct directory *names) {
    if (stats_rows(batch) == 0 && stats_ledgers(batch) == 0) {
        return true;
    }
    if (s->directory != names) {
        forget_names(s);
        s->directory = names;
    }
    if (!run(s, prepared(s, STATEMENT_BEGIN), "begin")) {
        return false;
    }
    if (write_all(s, bucket_s, batch, names) && run(s, prepared(s, STATEMENT_COMMIT), "commit")) {
        return true;
    }
    // SQLite itself has rolled back after some failures (a full disk), not after others.
    if (!sqlite3_get_autocommit(s->db)) {
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    }
    forget_names(s);
    return false;
}
