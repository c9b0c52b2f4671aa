// SPDX-License-Identifier: Apache-2.0
#include "store/query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "internal.h"

// -- one resolution -------------------------------------------------------------------------------

bool query_resolution(struct store *s, const struct query *q, uint32_t *resolution_s) {
    struct extents of;
    bool ok = query_extents(s, &of);
    *resolution_s = ok ? extents_resolution(&of, q) : 0;
    return ok;
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
    // NULL binds NULL
    sqlite3_bind_text(statement, 4, mirror_node(s, q->node), -1, SQLITE_STATIC);
    return statement;
}

// -- sums -----------------------------------------------------------------------------------------

bool query_rows_of(struct store *s, const char *what, int64_t id, const char *sql,
                   bool (*row)(void *to, sqlite3_stmt *at), void *to) {
    sqlite3_stmt *rows;
    if (sqlite3_prepare_v2(s->db, sql, -1, &rows, NULL) != SQLITE_OK) {
        return store_fail(s, what);
    }
    sqlite3_bind_int64(rows, 1, id);
    int rc = SQLITE_ERROR;
    bool ok = true;
    while (ok && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        ok = row(to, rows);
    }
    ok = ok && (rc == SQLITE_DONE || store_fail(s, what));
    sqlite3_finalize(rows);
    return ok;
}

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
    SUMS,
    SPLIT = SUMS + STORE_SUMS - STORE_SPLIT - STORE_MEASURED,
    DURATION = SUMS + STORE_SUMS,
    SQUARE,
    MIN,
    MAX,
    HISTOGRAM,
    BUCKET,
    RESOLUTION,
    COLUMNS
};

enum { CALLS = 1 }; // of STAT_SUMS

static bool add_row(struct store *s, struct query_sums *sums, struct map *index,
                    sqlite3_value **from) {
    struct query_row *row = sums_row(sums, index, sqlite3_value_int64(from[IDENTITY_ID]),
                                     sqlite3_value_int64(from[TIER_ID]));
    if (!row) {
        return query_no_memory(s);
    }
    int at = SUMS;
    if (sqlite3_value_type(from[SPLIT]) == SQLITE_NULL) {
        row->unsplit += (uint64_t)sqlite3_value_int64(from[SUMS + CALLS]);
    }
#define ADD_COUNT(name) row->name += (uint64_t)sqlite3_value_int64(from[at++]);
#define ADD_TIME(name) row->name##_ns += (uint64_t)sqlite3_value_int64(from[at++]);
    STAT_SUMS(ADD_COUNT, ADD_TIME)
#undef ADD_COUNT
#undef ADD_TIME
    row->duration_ns += (uint64_t)sqlite3_value_int64(from[DURATION]);
    row->square_ns += sqlite3_value_double(from[SQUARE]);
    if (sqlite3_value_type(from[MIN]) == SQLITE_INTEGER) {
        uint64_t min = (uint64_t)sqlite3_value_int64(from[MIN]);
        uint64_t max = (uint64_t)sqlite3_value_int64(from[MAX]);
        row->min_ns = min < row->min_ns ? min : row->min_ns;
        row->max_ns = max > row->max_ns ? max : row->max_ns;
    }
    if (sqlite3_value_type(from[HISTOGRAM]) == SQLITE_NULL) {
        return true; // not asked for
    }
    const void *blob = sqlite3_value_blob(from[HISTOGRAM]);
    if (!histogram_read(&row->durations,
                        slice_of(blob, (size_t)sqlite3_value_bytes(from[HISTOGRAM])))) {
        return query_malformed(s);
    }
    return true;
}

// A name by its row id; NULL on failure.
static char *name_of(struct store *s, sqlite3_stmt *names, int64_t id) {
    sqlite3_reset(names);
    sqlite3_bind_int64(names, 1, id);
    if (sqlite3_step(names) != SQLITE_ROW) {
        store_fail(s, "query the names");
        return NULL;
    }
    char *text = copy_text(names, 0);
    if (!text) {
        query_no_memory(s);
    }
    return text;
}

// Rows are added up by the ids of their names; these are looked up once, at the end.
static bool name_rows(struct store *s, struct query_sums *sums, const struct map *index) {
    sqlite3_stmt *identities = NULL, *tiers = NULL;
    bool ok = (sqlite3_prepare_v2(s->db, "SELECT name FROM identity_names WHERE id = ?1", -1,
                                  &identities, NULL) == SQLITE_OK &&
               sqlite3_prepare_v2(s->db, "SELECT name FROM tier_names WHERE id = ?1", -1, &tiers,
                                  NULL) == SQLITE_OK) ||
              store_fail(s, "query the names");
    for (uint32_t i = 0; ok && i <= index->mask; i++) {
        if (index->slots[i].value != MAP_NONE) {
            struct query_row *row = &sums->rows[index->slots[i].value];
            uint64_t key = index->slots[i].key;
            row->identity = name_of(s, identities, (int64_t)(key >> 32));
            row->tier = row->identity ? name_of(s, tiers, (int64_t)(key & 0xffffffff)) : NULL;
            ok = row->tier;
        }
    }
    sqlite3_finalize(identities);
    sqlite3_finalize(tiers);
    return ok;
}

// Takes rows as they are read. To be given a million of them back, and to ask for each column,
// takes a sixth longer.
struct gathering {
    struct store *store;
    struct query_sums *sums;
    struct map index;
    int64_t first_s, last_s;
    bool failed;
};

// The function "gather" of SQL, of all columns.
static void gather(sqlite3_context *context, int count, sqlite3_value **row) {
    struct gathering *g = sqlite3_user_data(context);
    (void)count;
    int64_t bucket = sqlite3_value_int64(row[BUCKET]);
    int64_t end = time_add(bucket, sqlite3_value_int64(row[RESOLUTION]));
    g->first_s = bucket < g->first_s ? bucket : g->first_s;
    g->last_s = end > g->last_s ? end : g->last_s;
    g->failed = g->failed || !add_row(g->store, g->sums, &g->index, row);
    if (g->failed) {
        sqlite3_result_error_code(context, SQLITE_ABORT);
    }
}

static void gathered(sqlite3_context *context) {
    (void)context; // NULL
}

static bool gather_rows(struct gathering *g, const struct query *q, const struct pieces *pieces) {
    struct store *s = g->store;
    if (sqlite3_create_function(s->db, "gather", COLUMNS, SQLITE_UTF8 | SQLITE_DIRECTONLY, g, NULL,
                                gather, gathered) != SQLITE_OK) {
        return store_fail(s, "query");
    }
    sqlite3_stmt *rows = pieces_prepare(
        pieces,
        "SELECT gather(identity_id, tier_id" STORE_SUM_NAMES
        ", duration_ns, square_ns, min_ns, max_ns, "
        "CASE WHEN ?3 IS NULL OR tier_id = (SELECT id FROM tier_names WHERE name = ?3) THEN "
        "histogram END, bucket_start, resolution) "
        "FROM pieces CROSS JOIN stat_rows ON " PIECES_TAKEN
        " AND (?2 IS NULL OR identity_id IN (SELECT id FROM identity_names WHERE " QUERY_AMONG(
            "name", "?2") "))",
        q);
    if (rows) {
        sqlite3_bind_text(rows, 2, q->identity, -1, SQLITE_STATIC);
        sqlite3_bind_text(rows, 3, q->quantiles_of, -1, SQLITE_STATIC); // NULL binds NULL
    }
    bool ok = rows && (sqlite3_step(rows) == SQLITE_ROW || g->failed || store_fail(s, "query"));
    sqlite3_finalize(rows);
    sqlite3_create_function(s->db, "gather", COLUMNS, SQLITE_UTF8, NULL, NULL, NULL, NULL);
    return ok && !g->failed;
}

static bool add_rows(struct store *s, const struct query *q, const struct pieces *pieces,
                     struct query_sums *sums) {
    struct gathering g = {.store = s, .sums = sums, .first_s = INT64_MAX, .last_s = INT64_MIN};
    if (!map_init(&g.index)) {
        return query_no_memory(s);
    }
    bool ok = gather_rows(&g, q, pieces);
    if (ok && sums->count > 0) {
        pieces_cover(pieces, g.first_s, g.last_s, &sums->first_s, &sums->last_s);
        ok = name_rows(s, sums, &g.index);
    }
    map_free(&g.index);
    for (uint32_t i = 0; i < sums->count; i++) {
        sums->rows[i].min_ns = sums->rows[i].calls ? sums->rows[i].min_ns : 0;
    }
    return ok;
}

#define SUM_OF(column) ", sum(" #column ")"
#define SINCE(column) ", min(bucket_start) FILTER (WHERE " #column " > 0)"
#define ONE(column) 0,
enum { LEDGER_COUNT = sizeof(const char[]){LEDGER_COLUMNS(ONE)} };
#undef ONE

// Since when the rows of a resolution have each column, of those that the statement is about:
// latest becomes that where it is later.
static bool find_since(struct store *s, sqlite3_stmt *row, uint32_t resolution_s,
                       int64_t latest[LEDGER_COUNT]) {
    sqlite3_reset(row);
    sqlite3_bind_int64(row, 2, resolution_s);
    if (sqlite3_step(row) != SQLITE_ROW) {
        return store_fail(s, "query the ledger");
    }
    for (int i = 0; i < LEDGER_COUNT; i++) {
        int64_t since = sqlite3_column_int64(row, i + 1);
        if (sqlite3_column_type(row, i + 1) == SQLITE_INTEGER && since > latest[i]) {
            latest[i] = since;
        }
    }
    return true;
}

static bool fetch_ledger(struct store *s, const struct query *q, const struct piece *piece) {
    struct mirror_ask ask = {.table = CHANGE_LEDGER,
                             .node = q->node,
                             .pieces = piece,
                             .piece_count = 1,
                             .each_bucket = true};
    return mirror_fill(s, &ask);
}

// Tells since when of those columns that say the start of a bucket in which finer rows say more.
// Of each length of buckets the first one counts, of these the latest: it is the finest one's.
static bool refine_bucket(struct store *s, const struct query *q, const struct extents *of,
                          int64_t bucket, uint32_t resolution_s, int64_t since[LEDGER_COUNT]) {
    sqlite3_stmt *row;
    int64_t latest[LEDGER_COUNT] = {0};
    bool ok = true;
    // A seek in the table's key for each resolution, not a scan.
    if (sqlite3_prepare_v2(
            s->db,
            "SELECT 0" LEDGER_COLUMNS(
                SINCE) " FROM ledger_rows WHERE resolution_s = ?2 AND "
                       "bucket_start >= ?3 AND bucket_start < ?4 AND (?1 IS NULL OR node_id IN "
                       "(SELECT id FROM node_names WHERE " QUERY_AMONG("name", "?1") "))",
            -1, &row, NULL) != SQLITE_OK) {
        return store_fail(s, "query the ledger");
    }
    sqlite3_bind_text(row, 1, mirror_node(s, q->node), -1, SQLITE_STATIC);
    sqlite3_bind_int64(row, 3, bucket);
    sqlite3_bind_int64(row, 4, time_add(bucket, resolution_s));
    for (int i = 0; ok && i < of->count; i++) {
        uint32_t finer = of->all[i].resolution_s;
        ok = finer > resolution_s || resolution_s % finer != 0 ||
             (fetch_ledger(s, q, &(struct piece){finer, bucket, time_add(bucket, resolution_s)}) &&
              find_since(s, row, finer, latest));
    }
    for (int i = 0; ok && i < LEDGER_COUNT; i++) {
        since[i] = since[i] == bucket && latest[i] != 0 ? latest[i] : since[i];
    }
    sqlite3_finalize(row);
    return ok;
}

static bool refine_since(struct store *s, const struct query *q, const struct pieces *pieces,
                         struct ledger_since *of) {
    int64_t since[LEDGER_COUNT];
    int64_t done[LEDGER_COUNT];
    int count = 0;
    bool ok = true;
    memcpy(since, of, sizeof since);
    for (int i = 0; ok && i < LEDGER_COUNT; i++) {
        int64_t bucket = since[i];
        uint32_t resolution_s = pieces_resolution_at(pieces, bucket);
        bool known = bucket == 0 || resolution_s == 0;
        for (int k = 0; k < count; k++) {
            known = known || done[k] == bucket;
        }
        if (!known) {
            done[count++] = bucket;
            ok = refine_bucket(s, q, &pieces->of, bucket, resolution_s, since);
        }
    }
    memcpy(of, since, sizeof since);
    return ok;
}

static bool add_ledger(struct store *s, const struct query *q, const struct pieces *pieces,
                       struct query_sums *sums) {
    sqlite3_stmt *row = pieces_prepare(
        pieces,
        "SELECT min(bucket_start), max(bucket_start + resolution)" LEDGER_COLUMNS(SUM_OF)
            LEDGER_COLUMNS(SINCE) " FROM pieces CROSS JOIN ledger_rows ON " PIECES_TAKEN,
        q);
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
        pieces_cover(pieces, sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1),
                     &sums->first_s, &sums->last_s);
        sums->has_ledger = true;
        ok = refine_since(s, q, pieces, &sums->since);
    }
    sqlite3_finalize(row);
    return ok;
}

static bool add_stale(struct store *s, const struct query *q, const struct pieces *pieces,
                      struct query_sums *sums) {
    int rc = SQLITE_ERROR;
    sqlite3_stmt *rows =
        pieces_prepare(pieces,
                       "SELECT t.name, sum(c.calls), sum(c.stale_calls) FROM pieces CROSS JOIN "
                       "cost_rows AS c ON " PIECES_TAKEN
                       " CROSS JOIN tier_names AS t ON t.id = c.tier_id GROUP BY t.id "
                       "HAVING sum(c.stale_calls) > 0 ORDER BY 3 DESC, 1 LIMIT ?2",
                       q);
    bool ok = rows;
    if (rows) {
        sqlite3_bind_int(rows, 2, QUERY_STALE);
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

// The row of a tier among those behind `first`; NULL: there is none yet.
static struct query_row *together(struct query_sums *sums, uint32_t first, const char *tier) {
    for (uint32_t i = first; i < sums->count; i++) {
        if (strcmp(sums->rows[i].tier, tier) == 0) {
            return &sums->rows[i];
        }
    }
    return NULL;
}

static bool add_to(struct query_row *to, const struct query_row *row) {
#define ADD_COUNT(name) to->name += row->name;
#define ADD_TIME(name) to->name##_ns += row->name##_ns;
    STAT_SUMS(ADD_COUNT, ADD_TIME)
#undef ADD_COUNT
#undef ADD_TIME
    to->duration_ns += row->duration_ns;
    to->square_ns += row->square_ns;
    to->unsplit += row->unsplit;
    if (row->calls > 0) {
        to->min_ns = to->calls == row->calls || row->min_ns < to->min_ns ? row->min_ns : to->min_ns;
        to->max_ns = row->max_ns > to->max_ns ? row->max_ns : to->max_ns;
    }
    return histogram_merge(&to->durations, &row->durations);
}

// Adds rows of all identities that were asked for together, as "_total".
static bool add_together(struct store *s, struct query_sums *sums) {
    uint32_t of = sums->count;
    struct query_row *more = realloc(sums->rows, (2 * (size_t)of + 1) * sizeof *more);
    if (!more) {
        return query_no_memory(s);
    }
    sums->rows = more;
    for (uint32_t i = 0; i < of; i++) {
        struct query_row *to = together(sums, of, more[i].tier);
        if (!to) {
            to = &more[sums->count++];
            *to = (struct query_row){.identity = strdup("_total"), .tier = strdup(more[i].tier)};
        }
        if (!to->identity || !to->tier || !add_to(to, &more[i])) {
            return query_no_memory(s);
        }
    }
    return true;
}

bool query_choice_has(const char *choice, const char *name) {
    size_t len = strlen(name);
    for (const char *at = choice; at; at = strchr(at, *QUERY_OR)) {
        at += at != choice;
        if (strncmp(at, name, len) == 0 && (at[len] == '\0' || at[len] == *QUERY_OR)) {
            return true;
        }
    }
    return false;
}

// Whether several identities are asked for, and not their sum among them.
static bool several(const struct query *q) {
    return q->identity && strchr(q->identity, *QUERY_OR) &&
           !query_choice_has(q->identity, "_total");
}

static bool read_sums(struct store *s, const struct query *q, const struct pieces *pieces,
                      void *out) {
    return pieces_fetch(pieces, q, CHANGE_TIERS, NULL, PIECES_COUNTS) &&
           pieces_fetch(pieces, q, CHANGE_LEDGER, NULL, PIECES_BUCKETS) &&
           pieces_fetch(pieces, q, CHANGE_COSTS, NULL, 0) && //
           add_rows(s, q, pieces, out) && add_ledger(s, q, pieces, out) &&
           add_stale(s, q, pieces, out) && (!several(q) || add_together(s, out));
}

bool query_sums(struct store *s, const struct query *q, struct query_sums *out) {
    *out = (struct query_sums){0};
    return query_pieces(s, q, &out->resolution_s, read_sums, out);
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
    struct extents of;
    return query_extents(s, &of) && extents_time(&of, first_s, last_s);
}

// Each name of a table of names, in an order.
static bool each_name(struct store *s, const char *sql, void (*each)(void *arg, const char *name),
                      void *arg) {
    sqlite3_stmt *names;
    if (sqlite3_prepare_v2(s->db, sql, -1, &names, NULL) != SQLITE_OK) {
        return store_fail(s, "query the names");
    }
    int rc;
    while ((rc = sqlite3_step(names)) == SQLITE_ROW) {
        each(arg, (const char *)sqlite3_column_text(names, 0));
    }
    sqlite3_finalize(names);
    return rc == SQLITE_DONE || store_fail(s, "query the names");
}

bool query_nodes(struct store *s, void (*each)(void *arg, const char *node), void *arg) {
    return s->mirror ? mirror_names(s, false, each, arg)
                     : each_name(s, "SELECT name FROM node_names ORDER BY name", each, arg);
}

bool query_tiers(struct store *s, void (*each)(void *arg, const char *tier), void *arg) {
    return s->mirror
               ? mirror_names(s, true, each, arg)
               : each_name(s, "SELECT name FROM tier_names WHERE name <> '_total' ORDER BY id",
                           each, arg);
}
