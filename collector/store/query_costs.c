// SPDX-License-Identifier: Apache-2.0
#include "store/query_costs.h"

#include <stdlib.h>
#include <string.h>

#include "internal.h"

// Calls are those of complete requests, which stand once under each identity: under _total they are
// all together.
static const char tiers_sql[] =
    ", calls AS ("
    "SELECT tier_id, sum(calls) AS calls, sum(duration_ns) AS duration_ns, sum(errors) AS errors "
    "FROM pieces CROSS JOIN stat_rows ON " PIECES_TAKEN
    " AND identity_id = (SELECT id FROM identity_names WHERE name = '_total') GROUP BY tier_id), "
    "costs AS ("
    "SELECT tier_id, sum(messages) AS messages, sum(bytes) AS bytes, min(bucket_start) AS first, "
    "max(bucket_start + resolution) AS last FROM pieces CROSS JOIN cost_rows ON " PIECES_TAKEN
    " GROUP BY tier_id) "
    "SELECT t.name, costs.messages, costs.bytes, coalesce(calls.calls, 0), "
    "coalesce(calls.duration_ns, 0), first, last, coalesce(calls.errors, 0) FROM costs JOIN "
    "tier_names AS t ON t.id = costs.tier_id LEFT JOIN calls ON calls.tier_id = costs.tier_id "
    "ORDER BY costs.bytes DESC, t.name";

static const char stream_sql[] =
    "SELECT sum(messages), sum(bytes), min(bucket_start), max(bucket_start + resolution) "
    "FROM pieces CROSS JOIN ledger_rows ON " PIECES_TAKEN;

static bool add_tier(struct store *s, const struct pieces *pieces, struct costs *costs,
                     sqlite3_stmt *from) {
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
    pieces_cover(pieces, sqlite3_column_int64(from, 5), sqlite3_column_int64(from, 6),
                 &costs->first_s, &costs->last_s);
    return true;
}

static bool add_tiers(struct store *s, const struct query *q, const struct pieces *pieces,
                      struct costs *costs) {
    int rc = SQLITE_ERROR;
    sqlite3_stmt *tiers = pieces_prepare(pieces, tiers_sql, q);
    bool ok = tiers;
    while (ok && (rc = sqlite3_step(tiers)) == SQLITE_ROW) {
        ok = add_tier(s, pieces, costs, tiers);
    }
    ok = ok && (rc == SQLITE_DONE || store_fail(s, "query the costs"));
    sqlite3_finalize(tiers);
    return ok;
}

static bool add_stream(struct store *s, const struct query *q, const struct pieces *pieces,
                       struct costs *costs) {
    sqlite3_stmt *row = pieces_prepare(pieces, stream_sql, q);
    if (!row) {
        return false;
    }
    bool ok = sqlite3_step(row) == SQLITE_ROW || store_fail(s, "query the ledger");
    if (ok && sqlite3_column_type(row, 2) == SQLITE_INTEGER) {
        costs->stream_messages = (uint64_t)sqlite3_column_int64(row, 0);
        costs->stream_bytes = (uint64_t)sqlite3_column_int64(row, 1);
        pieces_cover(pieces, sqlite3_column_int64(row, 2), sqlite3_column_int64(row, 3),
                     &costs->first_s, &costs->last_s);
    }
    sqlite3_finalize(row);
    return ok;
}

static bool read_costs(struct store *s, const struct query *q, const struct pieces *pieces,
                       void *out) {
    struct query calls = *q;
    calls.identity = "_total";
    return pieces_fetch(pieces, &calls, CHANGE_TIERS, NULL, 0) &&
           pieces_fetch(pieces, q, CHANGE_COSTS, NULL, PIECES_BUCKETS) &&
           pieces_fetch(pieces, q, CHANGE_LEDGER, NULL, PIECES_BUCKETS) &&
           add_tiers(s, q, pieces, out) && add_stream(s, q, pieces, out);
}

bool query_costs(struct store *s, const struct query *q, struct costs *out) {
    *out = (struct costs){0};
    return query_pieces(s, q, &out->resolution_s, read_costs, out);
}

void costs_free(struct costs *costs) {
    for (uint32_t i = 0; i < costs->count; i++) {
        free((char *)costs->rows[i].tier);
    }
    free(costs->rows);
    *costs = (struct costs){0};
}
