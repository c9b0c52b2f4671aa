// SPDX-License-Identifier: Apache-2.0
#include "store/query_series.h"

#include <stdlib.h>
#include <string.h>

#include "internal.h"

// Columns of the query below.
enum {
    BUCKET,
    TIER_ID,
    TIER,
    CALLS,
    ERRORS,
    TOTAL,
    SELF,
    WAIT,
    ASYNC,
    DURATION,
    MAX,
    WAITING,
    PARALLEL,
    HISTOGRAM
};

static const char rows_sql[] =
    "SELECT bucket_start, r.tier_id, t.name, calls, errors, total_ns, self_ns, wait_ns, async_ns, "
    "duration_ns, max_ns, waiting_ns, parallel_ns, CASE WHEN t.name = '_total' THEN histogram END "
    "FROM stat_rows AS r CROSS JOIN tier_names AS t ON t.id = r.tier_id "
    "WHERE resolution_s = ?1 AND bucket_start >= ?2 AND bucket_start < ?3 "
    "AND (?4 IS NULL OR node_id IN (SELECT id FROM node_names WHERE " QUERY_AMONG(
        "name", "?4") ")) "
                      "AND identity_id IN (SELECT id FROM identity_names WHERE " QUERY_AMONG(
                          "name", "?5") ")";

#define ONE_COLUMN(column) ", " #column
static const char ledger_sql[] = "SELECT bucket_start" LEDGER_COLUMNS(
    ONE_COLUMN) " FROM ledger_rows WHERE resolution_s = ?1 "
                "AND bucket_start >= ?2 AND bucket_start < ?3 "
                "AND (?4 IS NULL OR node_id IN (SELECT id FROM node_names WHERE " QUERY_AMONG(
                    "name", "?4") "))";

// The coarsest rows that are as fine as the step, but not finer than what reaches far enough.
static bool choose(struct store *s, const struct series_filter *filter, const struct query *q,
                   uint32_t *chosen) {
    struct extents of;
    if (!query_extents(s, &of)) {
        return false;
    }
    *chosen = extents_resolution(&of, q);
    for (int i = 0; i < of.count; i++) {
        uint32_t r = of.all[i].resolution_s;
        *chosen = r > *chosen && r <= filter->step_s ? r : *chosen;
    }
    return true;
}

// In a mirror: fetches the rows.
static bool fetch(struct store *s, const struct series_filter *filter, const struct query *q,
                  const struct series *out) {
    int64_t r = out->resolution_s;
    const struct piece piece = {out->resolution_s, floor_to(q->from_s, r), q->until_s};
    struct mirror_ask ask = {.table = CHANGE_TIERS,
                             .node = filter->node,
                             .identity = filter->identity,
                             .pieces = &piece,
                             .piece_count = 1,
                             .each_bucket = true,
                             .counts = true,
                             .counts_of = "_total"};
    if (!mirror_empty(s) || !mirror_fill(s, &ask)) {
        return false;
    }
    ask.table = CHANGE_LEDGER;
    return mirror_fill(s, &ask);
}

static bool make_steps(struct store *s, const struct series_filter *filter, struct series *out) {
    int64_t r = out->resolution_s;
    int64_t span = time_sub(filter->until_s, filter->from_s);
    int64_t least = span / (LIMIT_SERIES_STEPS - 1) + 1;
    int64_t step = filter->step_s > least ? filter->step_s : least;
    out->step_s = time_add(step, r - 1) / r * r;
    out->first_s = floor_to(filter->from_s, out->step_s);
    out->count = (uint32_t)(time_sub(filter->until_s, out->first_s) / out->step_s) +
                 (time_sub(filter->until_s, out->first_s) % out->step_s != 0);
    out->steps = calloc(out->count, sizeof *out->steps);
    out->tiers = calloc(LIMIT_SERIES_TIERS + 1, sizeof *out->tiers);
    return (out->steps && out->tiers) || query_no_memory(s);
}

static struct series_step *step_of(const struct series *out, int64_t bucket) {
    return &out->steps[time_sub(bucket, out->first_s) / out->step_s];
}

// The tier of a row's, made when it is new; NULL without memory.
static struct series_tier *tier_of(struct series *out, struct map *index, sqlite3_stmt *row) {
    uint64_t id = (uint64_t)sqlite3_column_int64(row, TIER_ID);
    uint32_t known = map_get(index, id);
    if (known != MAP_NONE) {
        return &out->tiers[known];
    }
    bool other = out->tier_count >= LIMIT_SERIES_TIERS;
    uint32_t at = other ? LIMIT_SERIES_TIERS : out->tier_count;
    struct series_tier *tier = &out->tiers[at];
    if (!tier->cells) {
        const char *name = other ? "_other" : (const char *)sqlite3_column_text(row, TIER);
        tier->name = strdup(name ? name : "");
        tier->cells = calloc(out->count, sizeof *tier->cells);
        out->tier_count++; // so that it is given back, whatever came of it
    }
    return tier->name && tier->cells && map_set(index, id, at) ? tier : NULL;
}

static uint64_t count(sqlite3_stmt *row, int column) {
    return (uint64_t)sqlite3_column_int64(row, column);
}

static bool add_request(struct store *s, struct series_step *step, sqlite3_stmt *row) {
    step->requests += count(row, CALLS);
    step->errors += count(row, ERRORS);
    step->duration_ns += count(row, DURATION);
    step->self_ns += count(row, SELF);
    step->waiting_ns += count(row, WAITING);
    step->parallel_ns += count(row, PARALLEL);
    step->unsplit += sqlite3_column_type(row, WAITING) == SQLITE_NULL ? count(row, CALLS) : 0;
    step->max_ns = count(row, MAX) > step->max_ns ? count(row, MAX) : step->max_ns;
    const void *blob = sqlite3_column_blob(row, HISTOGRAM);
    return histogram_read(&step->durations,
                          slice_of(blob, (size_t)sqlite3_column_bytes(row, HISTOGRAM))) ||
           query_malformed(s);
}

static bool add_row(struct store *s, struct series *out, struct map *index, sqlite3_stmt *row) {
    struct series_step *step = step_of(out, sqlite3_column_int64(row, BUCKET));
    const unsigned char *name = sqlite3_column_text(row, TIER);
    if (name && strcmp((const char *)name, "_total") == 0) {
        return add_request(s, step, row);
    }
    struct series_tier *tier = tier_of(out, index, row);
    if (!tier || !tier->cells) {
        return query_no_memory(s);
    }
    struct series_cell *cell = &tier->cells[step - out->steps];
    cell->calls += count(row, CALLS);
    cell->errors += count(row, ERRORS);
    cell->total_ns += count(row, TOTAL);
    cell->self_ns += count(row, SELF);
    cell->wait_ns += count(row, WAIT);
    cell->async_ns += count(row, ASYNC);
    cell->waiting_ns += count(row, WAITING);
    return true;
}

static bool add_rows(struct store *s, const struct series_filter *filter, const struct query *q,
                     struct series *out) {
    struct map index;
    if (!map_init(&index)) {
        return query_no_memory(s);
    }
    int rc = SQLITE_ERROR;
    sqlite3_stmt *rows = query_prepare(s, rows_sql, out->resolution_s, q);
    bool ok = rows;
    if (rows) {
        sqlite3_bind_text(rows, 5, filter->identity, -1, SQLITE_STATIC);
    }
    while (ok && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        ok = add_row(s, out, &index, rows);
    }
    ok = ok && (rc == SQLITE_DONE || store_fail(s, "query"));
    sqlite3_finalize(rows);
    map_free(&index);
    return ok;
}

static bool add_ledger(struct store *s, const struct query *q, struct series *out) {
    int rc = SQLITE_ERROR;
    sqlite3_stmt *rows = query_prepare(s, ledger_sql, out->resolution_s, q);
    bool ok = rows;
    while (ok && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        struct series_step *step = step_of(out, sqlite3_column_int64(rows, 0));
        int at = 1;
        step->has_ledger = true;
#define ADD_COLUMN(column) step->ledger.column += count(rows, at++);
        LEDGER_COLUMNS(ADD_COLUMN)
#undef ADD_COLUMN
    }
    ok = ok && (rc == SQLITE_DONE || store_fail(s, "query the ledger"));
    sqlite3_finalize(rows);
    return ok;
}

bool query_series(struct store *s, const struct series_filter *filter, struct series *out) {
    struct query q = {.from_s = filter->from_s, .until_s = filter->until_s, .node = filter->node};
    *out = (struct series){0};
    if (sqlite3_exec(s->db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK) {
        return store_fail(s, "query");
    }
    bool ok = choose(s, filter, &q, &out->resolution_s) &&
              (out->resolution_s == 0 || make_steps(s, filter, out));
    if (ok && out->resolution_s != 0) {
        q.from_s = out->first_s; // whole steps
        q.until_s = time_add(out->first_s, out->count * out->step_s);
        ok = fetch(s, filter, &q, out) && add_rows(s, filter, &q, out) && add_ledger(s, &q, out);
    }
    sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL);
    return ok;
}

void series_free(struct series *series) {
    for (uint32_t i = 0; i < series->count && series->steps; i++) {
        histogram_free(&series->steps[i].durations);
    }
    for (uint32_t i = 0; i < series->tier_count; i++) {
        free((char *)series->tiers[i].name);
        free(series->tiers[i].cells);
    }
    free(series->steps);
    free(series->tiers);
    *series = (struct series){0};
}
