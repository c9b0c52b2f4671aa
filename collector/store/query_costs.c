// SPDX-License-Identifier: Apache-2.0
#include "store/query_costs.h"

#include <stdlib.h>
#include <string.h>

#include "internal.h"

// The rows of a resolution in a time, of one node or of all.
#define TAKEN                                                                                      \
    "resolution_s = ?1 AND bucket_start >= ?2 AND bucket_start < ?3 "                              \
    "AND (?4 IS NULL OR node_id = (SELECT id FROM node_names WHERE name = ?4)) "

// Calls are those of complete requests, which stand once under each identity: under _total they are
// all together.
static const char tiers_sql[] =
    "WITH calls AS ("
    "SELECT tier_id, sum(calls) AS calls, sum(duration_ns) AS duration_ns, sum(errors) AS errors "
    "FROM stat_rows WHERE " TAKEN
    "AND identity_id = (SELECT id FROM identity_names WHERE name = '_total') GROUP BY tier_id), "
    "costs AS ("
    "SELECT tier_id, sum(messages) AS messages, sum(bytes) AS bytes, min(bucket_start) AS first, "
    "max(bucket_start) AS last FROM cost_rows WHERE " TAKEN "GROUP BY tier_id) "
    "SELECT t.name, costs.messages, costs.bytes, coalesce(calls.calls, 0), "
    "coalesce(calls.duration_ns, 0), first, last, coalesce(calls.errors, 0) FROM costs JOIN "
    "tier_names AS t ON t.id = costs.tier_id LEFT JOIN calls ON calls.tier_id = costs.tier_id "
    "ORDER BY costs.bytes DESC, t.name";

static const char stream_sql[] =
    "SELECT sum(messages), sum(bytes), min(bucket_start), max(bucket_start) "
    "FROM ledger_rows WHERE " TAKEN;

// The time that the rows cover grows with every row.
static void cover(struct costs *costs, int64_t first, int64_t last) {
    bool none = costs->first_s == 0 && costs->last_s == 0;
    last = time_add(last, costs->resolution_s);
    costs->first_s = none || first < costs->first_s ? first : costs->first_s;
    costs->last_s = none || last > costs->last_s ? last : costs->last_s;
}

static bool add_tier(struct store *s, struct costs *costs, sqlite3_stmt *from) {
    if ((costs->count & (costs->count - 1)) == 0) { // full: 0, 1, 2, 4, …
        struct cost *more =
            realloc(costs->rows, (costs->count ? 2 * costs->count : 1) * sizeof *more);
        if (!more) {
            return query_no_memory(s);
        }
        costs->rows = more;
    }
    const unsigned char *name = sqlite3_column_text(from, 0);
    struct cost row = {.tier = strdup(name ? (const char *)name : ""),
                       .messages = (uint64_t)sqlite3_column_int64(from, 1),
                       .bytes = (uint64_t)sqlite3_column_int64(from, 2),
                       .calls = (uint64_t)sqlite3_column_int64(from, 3),
                       .duration_ns = (uint64_t)sqlite3_column_int64(from, 4),
                       .errors = (uint64_t)sqlite3_column_int64(from, 7)};
    if (!row.tier) {
        return query_no_memory(s);
    }
    costs->rows[costs->count++] = row;
    cover(costs, sqlite3_column_int64(from, 5), sqlite3_column_int64(from, 6));
    return true;
}

static bool add_tiers(struct store *s, const struct query *q, struct costs *costs) {
    int rc = SQLITE_ERROR;
    sqlite3_stmt *tiers = query_prepare(s, tiers_sql, costs->resolution_s, q);
    bool ok = tiers;
    while (ok && (rc = sqlite3_step(tiers)) == SQLITE_ROW) {
        ok = add_tier(s, costs, tiers);
    }
    ok = ok && (rc == SQLITE_DONE || store_fail(s, "query the costs"));
    sqlite3_finalize(tiers);
    return ok;
}

static bool add_stream(struct store *s, const struct query *q, struct costs *costs) {
    sqlite3_stmt *row = query_prepare(s, stream_sql, costs->resolution_s, q);
    if (!row) {
        return false;
    }
    bool ok = sqlite3_step(row) == SQLITE_ROW || store_fail(s, "query the ledger");
    if (ok && sqlite3_column_type(row, 2) == SQLITE_INTEGER) {
        costs->stream_messages = (uint64_t)sqlite3_column_int64(row, 0);
        costs->stream_bytes = (uint64_t)sqlite3_column_int64(row, 1);
        cover(costs, sqlite3_column_int64(row, 2), sqlite3_column_int64(row, 3));
    }
    sqlite3_finalize(row);
    return ok;
}

bool query_costs(struct store *s, const struct query *q, struct costs *out) {
    *out = (struct costs){0};
    if (sqlite3_exec(s->db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK) {
        return store_fail(s, "query");
    }
    out->resolution_s = query_resolution(s, q);
    bool ok = out->resolution_s == 0 || (add_tiers(s, q, out) && add_stream(s, q, out));
    sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL);
    return ok;
}

void costs_free(struct costs *costs) {
    for (uint32_t i = 0; i < costs->count; i++) {
        free((char *)costs->rows[i].tier);
    }
    free(costs->rows);
    *costs = (struct costs){0};
}
