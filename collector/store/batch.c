// SPDX-License-Identifier: Apache-2.0
// Adds a batch of increments to the stored rows. Those with a histogram are read, merged and
// written back, as quantiles cannot be added.
#include "store/store.h"

#include <stdio.h>

#include "internal.h"

#define QUANTILE(name, q) q,
static const double quantiles[] = {STAT_QUANTILES(QUANTILE, QUANTILE)};
#undef QUANTILE

enum { MINUTE_S = 60, HOUR_S = 3600, QUANTILES = sizeof quantiles / sizeof *quantiles };

// The columns of STATEMENT_READ_ROW, and the parameters of STATEMENT_WRITE_ROW behind the key.
enum { READ_DURATION, READ_SQUARE, READ_MIN, READ_MAX, READ_HISTOGRAM, READ_SUMS };
enum {
    WRITE_DURATION = 6,
    WRITE_SQUARE,
    WRITE_HISTOGRAM,
    WRITE_MIN,
    WRITE_MAX,
    WRITE_STDDEV,
    WRITE_QUANTILES,
    WRITE_SUMS = WRITE_QUANTILES + QUANTILES,
    // of the sums those that are not known of rows that an older version has begun
    READ_SPLIT = READ_SUMS + STORE_SUMS - STORE_SPLIT - STORE_MEASURED,
    WRITE_MEASURED = WRITE_SUMS + STORE_SUMS - STORE_MEASURED,
    WRITE_SPLIT = WRITE_MEASURED - STORE_SPLIT,
    WRITE_APART // mailbox and run queue
    = WRITE_MEASURED + 1
};

static uint64_t add(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

// -- rows -----------------------------------------------------------------------------------------

static void bind_key(sqlite3_stmt *statement, uint32_t resolution_s, int64_t bucket,
                     const int64_t ids[3]) {
    sqlite3_bind_int64(statement, 1, resolution_s);
    sqlite3_bind_int64(statement, 2, floor_to(bucket, resolution_s));
    for (int i = 0; i < 3; i++) {
        sqlite3_bind_int64(statement, 3 + i, ids[i]);
    }
}

// Adds the row that the statement stands at to *row and s->merged. *whole: it has all of its sums.
static bool add_columns(struct store *s, sqlite3_stmt *reading, struct stat_row *row, bool *whole) {
    int at = READ_SUMS;
    *whole = sqlite3_column_type(reading, READ_SPLIT) != SQLITE_NULL;
#define ADD_COUNT(name) row->name = add(row->name, (uint64_t)sqlite3_column_int64(reading, at++));
#define ADD_TIME(name) ADD_COUNT(name##_ns)
    STAT_SUMS(ADD_COUNT, ADD_TIME)
#undef ADD_COUNT
#undef ADD_TIME
    row->duration_ns =
        add(row->duration_ns, (uint64_t)sqlite3_column_int64(reading, READ_DURATION));
    row->square_ns += sqlite3_column_double(reading, READ_SQUARE);
    if (sqlite3_column_type(reading, READ_MIN) == SQLITE_INTEGER) {
        uint64_t min = (uint64_t)sqlite3_column_int64(reading, READ_MIN);
        uint64_t max = (uint64_t)sqlite3_column_int64(reading, READ_MAX);
        row->min_ns = min < row->min_ns ? min : row->min_ns;
        row->max_ns = max > row->max_ns ? max : row->max_ns;
    }
    const void *blob = sqlite3_column_blob(reading, READ_HISTOGRAM);
    struct slice stored = slice_of(blob, (size_t)sqlite3_column_bytes(reading, READ_HISTOGRAM));
    if (!histogram_read(&s->merged, stored)) {
        s->spoilt = !histogram_valid(stored);
        snprintf(s->error, sizeof s->error, "read a row: %s",
                 s->spoilt ? "its histogram is malformed" : "no memory");
        return false;
    }
    return true;
}

// Adds the stored row under the bound key to *row, whose histogram is s->merged. Nothing happens
// when there is none.
static bool add_stored(struct store *s, sqlite3_stmt *reading, struct stat_row *row, bool *whole) {
    int rc = sqlite3_step(reading);
    bool ok = rc == SQLITE_DONE || rc == SQLITE_ROW || store_fail(s, "read a row");
    if (rc == SQLITE_ROW) {
        ok = add_columns(s, reading, row, whole);
    }
    sqlite3_reset(reading);
    return ok;
}

// Binds what exists only when there were calls.
static void bind_durations(struct store *s, sqlite3_stmt *writing, const struct stat_row *row) {
    if (row->calls == 0) {
        for (int i = WRITE_MIN; i < WRITE_SUMS; i++) {
            sqlite3_bind_null(writing, i);
        }
        return;
    }
    store_bind_count(writing, WRITE_MIN, row->min_ns);
    store_bind_count(writing, WRITE_MAX, row->max_ns);
    sqlite3_bind_double(writing, WRITE_STDDEV,
                        stat_stddev(row->calls, row->duration_ns, row->square_ns));
    for (int i = 0; i < QUANTILES; i++) {
        sqlite3_bind_double(writing, WRITE_QUANTILES + i,
                            stat_quantile(&s->merged, quantiles[i], row->min_ns, row->max_ns));
    }
}

static bool write_row(struct store *s, uint32_t resolution_s, const int64_t ids[3],
                      const struct stat_row *increment) {
    sqlite3_stmt *reading = store_prepared(s, STATEMENT_READ_ROW);
    sqlite3_stmt *writing = store_prepared(s, STATEMENT_WRITE_ROW);
    struct stat_row row = *increment;
    bool whole = true;
    if (!reading || !writing) {
        return false;
    }
    histogram_reset(&s->merged);
    buffer_reset(&s->blob);
    bind_key(reading, resolution_s, row.key.bucket_start, ids);
    if (!add_stored(s, reading, &row, &whole)) {
        return false;
    }
    if (!histogram_merge(&s->merged, &increment->durations) ||
        !histogram_write(&s->merged, &s->blob)) {
        snprintf(s->error, sizeof s->error, "write a row: no memory");
        return false;
    }
    bind_key(writing, resolution_s, row.key.bucket_start, ids);
    int at = WRITE_SUMS;
#define BIND_COUNT(name) store_bind_count(writing, at++, row.name);
#define BIND_TIME(name) BIND_COUNT(name##_ns)
    STAT_SUMS(BIND_COUNT, BIND_TIME)
#undef BIND_COUNT
#undef BIND_TIME
    for (int i = WRITE_SPLIT; !whole && i < WRITE_MEASURED; i++) {
        sqlite3_bind_null(writing, i);
    }
    for (int i = WRITE_APART; row.mailbox_ns == 0 && row.run_queue_ns == 0 && i < at; i++) {
        sqlite3_bind_null(writing, i); // of nothing it is known
    }
    store_bind_count(writing, WRITE_DURATION, row.duration_ns);
    sqlite3_bind_double(writing, WRITE_SQUARE, row.square_ns);
    sqlite3_bind_blob(writing, WRITE_HISTOGRAM, s->blob.data, (int)s->blob.len, SQLITE_STATIC);
    bind_durations(s, writing, &row);
    return store_run(s, writing, "write a row");
}

static bool row_passed_over(struct store *s, uint32_t resolution_s, const struct stat_row *row) {
    const struct directory *d = s->directory;
    const struct row_place at = {&resolution_s, 1, row->key.bucket_start, row->key.node};
    return store_pass_over(s, &at, "the row of bucket %lld (%u s), node %s, identity %s, tier %s",
                           (long long)floor_to(row->key.bucket_start, resolution_s), resolution_s,
                           names_text(&d->nodes, row->key.node),
                           names_text(&d->identities, row->key.identity),
                           names_text(&d->tiers, row->key.tier));
}

static bool write_rows(struct store *s, const struct resolutions *resolutions,
                       const struct stats *batch) {
    for (uint32_t i = 0; i < stats_rows(batch); i++) {
        const struct stat_row *row = stats_row_at(batch, i);
        const int64_t ids[3] = {store_node_id(s, row->key.node),
                                store_identity_id(s, row->key.identity),
                                store_tier_id(s, row->key.tier)};
        if (!ids[0] || !ids[1] || !ids[2]) {
            return false;
        }
        for (int r = 0; r < resolutions->count; r++) {
            if (!write_row(s, resolutions->all[r], ids, row) &&
                !row_passed_over(s, resolutions->all[r], row)) {
                return false;
            }
        }
    }
    return true;
}

// -- the ledger -----------------------------------------------------------------------------------

bool store_add_ledger(struct store *s, uint32_t resolution_s, int64_t node,
                      const struct ledger_row *row) {
    sqlite3_stmt *adding = store_prepared(s, STATEMENT_ADD_LEDGER);
    if (!adding) {
        return false;
    }
    sqlite3_bind_int64(adding, 1, resolution_s);
    sqlite3_bind_int64(adding, 2, floor_to(row->bucket_start, resolution_s));
    sqlite3_bind_int64(adding, 3, node);
#define LEDGER_VALUE(column) row->column,
    const uint64_t counts[] = {LEDGER_COLUMNS(LEDGER_VALUE)};
#undef LEDGER_VALUE
    for (int i = 0; i < (int)(sizeof counts / sizeof *counts); i++) {
        store_bind_count(adding, 4 + i,
                         counts[i] < STORE_LEDGER_MOST ? counts[i] : STORE_LEDGER_MOST);
    }
    return store_run(s, adding, "write the ledger");
}

static bool write_ledgers(struct store *s, const struct resolutions *resolutions,
                          const struct stats *batch) {
    for (uint32_t i = 0; i < stats_ledgers(batch); i++) {
        const struct ledger_row *row = stats_ledger_at(batch, i);
        int64_t node = store_node_id(s, row->node);
        for (int r = 0; r < resolutions->count; r++) {
            bool written = node && store_add_ledger(s, resolutions->all[r], node, row);
            const struct row_place at = {&resolutions->all[r], 1, row->bucket_start, row->node};
            if (!written &&
                !(node && store_pass_over(
                              s, &at, "the ledger of bucket %lld (%u s), node %s",
                              (long long)floor_to(row->bucket_start, resolutions->all[r]),
                              resolutions->all[r], names_text(&s->directory->nodes, row->node)))) {
                return false;
            }
        }
    }
    return true;
}

// -- batches --------------------------------------------------------------------------------------

uint32_t store_coarser(uint32_t resolution_s) {
    for (uint32_t r = MINUTE_S; r <= HOUR_S; r *= HOUR_S / MINUTE_S) {
        if (r > resolution_s && r % resolution_s == 0) {
            return r;
        }
    }
    return 0;
}

static struct resolutions resolutions_of(uint32_t bucket_s) {
    struct resolutions out = {.count = 0};
    for (uint32_t r = bucket_s; r != 0; r = store_coarser(r)) {
        out.all[out.count++] = r;
    }
    return out;
}

static bool write_set(struct store *s, const struct resolutions *resolutions,
                      const struct stats *set) {
    return write_rows(s, resolutions, set) && write_ledgers(s, resolutions, set) &&
           store_write_paths(s, resolutions, set) && store_write_costs(s, resolutions, set) &&
           store_write_kept(s, resolutions, set);
}

static bool write_all(struct store *s, uint32_t bucket_s, const struct stats *const *sets,
                      uint32_t count) {
    struct resolutions resolutions = resolutions_of(bucket_s);
    for (uint32_t i = 0; i < count; i++) {
        if (!write_set(s, &resolutions, sets[i])) {
            return false;
        }
    }
    return store_mark(s, &resolutions, sets, count) && store_otlp_late(s, sets, count);
}

bool store_write(struct store *s, uint32_t bucket_s, const struct stats *batch,
                 const struct directory *names) {
    return store_write_sets(s, bucket_s, &batch, 1, names);
}

bool store_write_sets(struct store *s, uint32_t bucket_s, const struct stats *const *sets,
                      uint32_t count, const struct directory *names) {
    bool empty = true;
    for (uint32_t i = 0; i < count; i++) {
        empty = empty && stats_empty(sets[i]);
    }
    if (empty) {
        return true;
    }
    if (s->directory != names) {
        store_forget_ids(s);
        s->directory = names;
    }
    s->spoilt = false;
    if (!store_begin(s, "begin")) {
        return false;
    }
    if (store_end(s, write_all(s, bucket_s, sets, count), "commit")) {
        return true;
    }
    store_forget_ids(s);
    return false;
}
