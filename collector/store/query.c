// SPDX-License-Identifier: Apache-2.0
#include "store/query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "internal.h"

// A resolution and the buckets that it has.
struct extent {
    uint32_t resolution_s; // 0: none
    int64_t first_s;       // start of the first bucket
    int64_t last_s;        // start of the last one
};

enum { EXTENTS = 32 }; // resolutions in one file: three for every --bucket it was ever written with

// -- which resolution -----------------------------------------------------------------------------

static int64_t edge(struct store *s, const char *which, uint32_t resolution_s, int64_t otherwise) {
    char sql[256];
    snprintf(
        sql, sizeof sql,
        "SELECT %s(b) FROM (SELECT %s(bucket_start) AS b FROM stat_rows WHERE resolution_s = %u "
        "UNION ALL SELECT %s(bucket_start) FROM ledger_rows WHERE resolution_s = %u)",
        which, which, resolution_s, which, resolution_s);
    return store_integer(s, sql, otherwise);
}

static uint32_t next_resolution(struct store *s, uint32_t resolution_s) {
    uint32_t stats = store_next_resolution(s, "stat_rows", resolution_s);
    uint32_t ledgers = store_next_resolution(s, "ledger_rows", resolution_s);
    return stats == 0 || (ledgers != 0 && ledgers < stats) ? ledgers : stats;
}

// Every resolution in the file, finest first. Returns how many.
static int extents(struct store *s, struct extent out[EXTENTS]) {
    int n = 0;
    for (uint32_t r = next_resolution(s, 0); r != 0 && n < EXTENTS; r = next_resolution(s, r)) {
        out[n++] = (struct extent){r, edge(s, "min", r, 0), edge(s, "max", r, 0)};
    }
    return n;
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

// Whether one resolution's rows reach as far as the other's do within the time asked for, seen in
// the longer buckets of the two.
static bool reaches(const struct extent *one, const struct extent *other, const struct query *q) {
    int64_t r = larger(one->resolution_s, other->resolution_s);
    int64_t from = q->from_s == INT64_MIN ? other->first_s : larger(other->first_s, q->from_s);
    int64_t last = q->until_s == INT64_MAX ? other->last_s : smaller(other->last_s, q->until_s - 1);
    return from > last || (floor_to(one->first_s, r) <= floor_to(from, r) &&
                           floor_to(one->last_s, r) >= floor_to(last, r));
}

static int64_t overlap(const struct extent *e, const struct query *q) {
    return time_sub(smaller(time_add(e->last_s, e->resolution_s), q->until_s),
                    larger(e->first_s, q->from_s));
}

// The finest resolution that reaches as far as every other. When none does (written with lengths of
// buckets that do not divide each other) the one that covers most.
static const struct extent *choose(const struct extent *all, int n, const struct query *q) {
    const struct extent *most = NULL;
    for (int i = 0; i < n; i++) {
        bool covers = true;
        for (int k = 0; k < n; k++) {
            covers = covers && (k == i || reaches(&all[i], &all[k], q));
        }
        if (covers) {
            return &all[i];
        }
        if (!most || overlap(&all[i], q) > overlap(most, q)) {
            most = &all[i];
        }
    }
    return most;
}

uint32_t query_resolution(struct store *s, const struct query *q) {
    struct extent all[EXTENTS];
    const struct extent *chosen = choose(all, extents(s, all), q);
    return chosen ? chosen->resolution_s : 0;
}

sqlite3_stmt *query_prepare(struct store *s, const char *sql, uint32_t resolution_s,
                            const struct query *q) {
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(s->db, sql, -1, &statement, NULL) != SQLITE_OK) {
        store_fail(s, "query");
        return NULL;
    }
    sqlite3_bind_int64(statement, 1, resolution_s);
    sqlite3_bind_int64(statement, 2,
                       q->from_s == INT64_MIN ? INT64_MIN : floor_to(q->from_s, resolution_s));
    sqlite3_bind_int64(statement, 3, q->until_s);
    sqlite3_bind_text(statement, 4, q->node, -1, SQLITE_STATIC); // NULL binds NULL
    return statement;
}

// -- sums -----------------------------------------------------------------------------------------

bool query_no_memory(struct store *s) {
    snprintf(s->error, sizeof s->error, "query: no memory");
    return false;
}

bool query_malformed(struct store *s) {
    snprintf(s->error, sizeof s->error, "query: a histogram is malformed, or no memory");
    return false;
}

// The sums of an identity and tier, made when they are new; NULL without memory.
static struct query_row *sums_row(struct query_sums *sums, struct map *index, int64_t identity,
                                  int64_t tier) {
    uint64_t key = (uint64_t)identity << 32 | (uint64_t)(tier & 0xffffffff);
    uint32_t i = map_get(index, key);
    if (i != MAP_NONE) {
        return &sums->rows[i];
    }
    if ((sums->count & (sums->count - 1)) == 0) { // full: 0, 1, 2, 4, …
        struct query_row *more =
            realloc(sums->rows, (sums->count ? 2 * sums->count : 1) * sizeof *more);
        if (!more) {
            return NULL;
        }
        sums->rows = more;
    }
    if (!map_set(index, key, sums->count)) {
        return NULL;
    }
    sums->rows[sums->count] = (struct query_row){.min_ns = UINT64_MAX};
    return &sums->rows[sums->count++];
}

static char *copy_text(sqlite3_stmt *statement, int column) {
    const unsigned char *text = sqlite3_column_text(statement, column);
    return strdup(text ? (const char *)text : "");
}

// Columns of the query below.
enum {
    IDENTITY_ID,
    TIER_ID,
    IDENTITY,
    TIER,
    SUMS,
    DURATION = SUMS + STORE_SUMS,
    SQUARE,
    MIN,
    MAX,
    HISTOGRAM,
    BUCKET
};

static bool add_row(struct store *s, struct query_sums *sums, struct map *index,
                    sqlite3_stmt *from) {
    struct query_row *row = sums_row(sums, index, sqlite3_column_int64(from, IDENTITY_ID),
                                     sqlite3_column_int64(from, TIER_ID));
    if (row && !row->identity) {
        row->identity = copy_text(from, IDENTITY);
        row->tier = copy_text(from, TIER);
    }
    if (!row || !row->identity || !row->tier) {
        return query_no_memory(s);
    }
    int at = SUMS;
#define ADD_COUNT(name) row->name += (uint64_t)sqlite3_column_int64(from, at++);
#define ADD_TIME(name) row->name##_ns += (uint64_t)sqlite3_column_int64(from, at++);
    STAT_SUMS(ADD_COUNT, ADD_TIME)
#undef ADD_COUNT
#undef ADD_TIME
    row->duration_ns += (uint64_t)sqlite3_column_int64(from, DURATION);
    row->square_ns += sqlite3_column_double(from, SQUARE);
    if (sqlite3_column_type(from, MIN) == SQLITE_INTEGER) {
        uint64_t min = (uint64_t)sqlite3_column_int64(from, MIN);
        uint64_t max = (uint64_t)sqlite3_column_int64(from, MAX);
        row->min_ns = min < row->min_ns ? min : row->min_ns;
        row->max_ns = max > row->max_ns ? max : row->max_ns;
    }
    const void *blob = sqlite3_column_blob(from, HISTOGRAM);
    if (!histogram_read(&row->durations,
                        slice_of(blob, (size_t)sqlite3_column_bytes(from, HISTOGRAM)))) {
        return query_malformed(s);
    }
    return true;
}

// The time that the rows cover grows with every row.
static void cover(struct query_sums *sums, int64_t bucket) {
    bool first = sums->first_s == 0 && sums->last_s == 0;
    int64_t last = time_add(bucket, sums->resolution_s);
    sums->first_s = first ? bucket : smaller(sums->first_s, bucket);
    sums->last_s = first ? last : larger(sums->last_s, last);
}

static bool add_rows(struct store *s, const struct query *q, struct query_sums *sums) {
    struct map index;
    int rc = SQLITE_ERROR;
    bool ok = false;
    if (!map_init(&index)) {
        return query_no_memory(s);
    }
    sqlite3_stmt *rows = query_prepare(
        s,
        "SELECT r.identity_id, r.tier_id, i.name, t.name" STORE_SUM_NAMES ", duration_ns, "
        "square_ns, min_ns, max_ns, histogram, bucket_start FROM stat_rows AS r CROSS JOIN identity_names AS i ON "
        "i.id = r.identity_id CROSS JOIN tier_names AS t ON t.id = r.tier_id WHERE resolution_s = "
        "?1 AND bucket_start >= ?2 AND bucket_start < ?3 AND (?4 IS NULL OR r.node_id = (SELECT "
        "id FROM node_names WHERE name = ?4)) AND (?5 IS NULL OR r.identity_id = (SELECT id FROM "
        "identity_names WHERE name = ?5))",
        sums->resolution_s, q);
    if (rows) {
        sqlite3_bind_text(rows, 5, q->identity, -1, SQLITE_STATIC);
        ok = true;
        while (ok && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
            cover(sums, sqlite3_column_int64(rows, BUCKET));
            ok = add_row(s, sums, &index, rows);
        }
        ok = ok && (rc == SQLITE_DONE || store_fail(s, "query"));
    }
    sqlite3_finalize(rows);
    map_free(&index);
    for (uint32_t i = 0; i < sums->count; i++) {
        sums->rows[i].min_ns = sums->rows[i].calls ? sums->rows[i].min_ns : 0;
    }
    return ok;
}

#define SUM_OF(column) ", sum(" #column ")"
#define SINCE(column) ", min(bucket_start) FILTER (WHERE " #column " > 0)"

static bool add_ledger(struct store *s, const struct query *q, struct query_sums *sums) {
    sqlite3_stmt *row = query_prepare(
        s,
        "SELECT min(bucket_start), max(bucket_start)" LEDGER_COLUMNS(SUM_OF) LEDGER_COLUMNS(
            SINCE) " "
                   "FROM ledger_rows WHERE resolution_s = ?1 AND bucket_start >= ?2 "
                   "AND bucket_start < ?3 "
                   "AND (?4 IS NULL OR node_id = (SELECT id FROM node_names WHERE name = ?4))",
        sums->resolution_s, q);
    if (!row) {
        return false;
    }
    bool ok = sqlite3_step(row) == SQLITE_ROW || store_fail(s, "query the ledger");
    if (ok && sqlite3_column_type(row, 0) == SQLITE_INTEGER) {
        struct ledger_row *l = &sums->ledger;
        int at = 2;
#define TAKE_SUM(column) l->column = (uint64_t)sqlite3_column_int64(row, at++);
        LEDGER_COLUMNS(TAKE_SUM)
#undef TAKE_SUM
#define TAKE_SINCE(column) sums->since.column = sqlite3_column_int64(row, at++);
        LEDGER_COLUMNS(TAKE_SINCE)
#undef TAKE_SINCE
        cover(sums, sqlite3_column_int64(row, 0));
        cover(sums, sqlite3_column_int64(row, 1));
        sums->has_ledger = true;
    }
    sqlite3_finalize(row);
    return ok;
}

static bool add_stale(struct store *s, const struct query *q, struct query_sums *sums) {
    int rc = SQLITE_ERROR;
    sqlite3_stmt *rows =
        query_prepare(s,
                      "SELECT t.name, sum(c.calls), sum(c.stale_calls) FROM cost_rows AS c "
                      "JOIN tier_names AS t ON t.id = c.tier_id "
                      "WHERE resolution_s = ?1 AND bucket_start >= ?2 AND bucket_start < ?3 "
                      "AND (?4 IS NULL OR node_id = (SELECT id FROM node_names WHERE name = ?4)) "
                      "GROUP BY t.id HAVING sum(c.stale_calls) > 0 ORDER BY 3 DESC, 1 LIMIT ?5",
                      sums->resolution_s, q);
    bool ok = rows;
    if (rows) {
        sqlite3_bind_int(rows, 5, QUERY_STALE);
    }
    while (ok && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        struct query_stale *tier = &sums->stale[sums->stale_count];
        *tier = (struct query_stale){copy_text(rows, 0), (uint64_t)sqlite3_column_int64(rows, 1),
                                     (uint64_t)sqlite3_column_int64(rows, 2)};
        ok = tier->tier || query_no_memory(s);
        sums->stale_count += ok;
    }
    ok = ok && (rc == SQLITE_DONE || store_fail(s, "query the costs"));
    sqlite3_finalize(rows);
    return ok;
}

bool query_sums(struct store *s, const struct query *q, struct query_sums *out) {
    *out = (struct query_sums){0};
    // One transaction, so that rows and ledger are of the same moment.
    if (sqlite3_exec(s->db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK) {
        return store_fail(s, "query");
    }
    out->resolution_s = query_resolution(s, q);
    bool ok = out->resolution_s == 0 ||
              (add_rows(s, q, out) && add_ledger(s, q, out) && add_stale(s, q, out));
    sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL);
    return ok;
}

void query_sums_free(struct query_sums *sums) {
    for (uint32_t i = 0; i < sums->count; i++) {
        free((char *)sums->rows[i].identity);
        free((char *)sums->rows[i].tier);
        histogram_free(&sums->rows[i].durations);
    }
    for (uint32_t i = 0; i < sums->stale_count; i++) {
        free((char *)sums->stale[i].tier);
    }
    free(sums->rows);
    *sums = (struct query_sums){0};
}

double query_quantile(const struct query_row *row, double q) {
    return stat_quantile(&row->durations, q, row->min_ns, row->max_ns);
}

double query_stddev(const struct query_row *row) {
    return stat_stddev(row->calls, row->duration_ns, row->square_ns);
}

// -- what there is --------------------------------------------------------------------------------

bool query_extent(struct store *s, int64_t *first_s, int64_t *last_s) {
    struct extent all[EXTENTS];
    int n = extents(s, all);
    for (int i = 0; i < n; i++) {
        int64_t last = time_add(all[i].last_s, all[i].resolution_s);
        // The newest data is told as finely as it is kept: a coarse bucket ends later only because
        // it is longer.
        *first_s = i == 0                                                     ? all[i].first_s
                   : floor_to(*first_s, all[i].resolution_s) > all[i].first_s ? all[i].first_s
                                                                              : *first_s;
        *last_s = i == 0 || all[i].last_s >= *last_s ? last : *last_s;
    }
    return n > 0;
}

bool query_nodes(struct store *s, void (*each)(void *arg, const char *node), void *arg) {
    sqlite3_stmt *nodes;
    if (sqlite3_prepare_v2(s->db, "SELECT name FROM node_names ORDER BY name", -1, &nodes, NULL) !=
        SQLITE_OK) {
        return store_fail(s, "query the nodes");
    }
    int rc;
    while ((rc = sqlite3_step(nodes)) == SQLITE_ROW) {
        each(arg, (const char *)sqlite3_column_text(nodes, 0));
    }
    sqlite3_finalize(nodes);
    return rc == SQLITE_DONE || store_fail(s, "query the nodes");
}
