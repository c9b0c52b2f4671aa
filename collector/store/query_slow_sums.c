// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "store/query_slow.h"

// 1: ended in an exception (kept_requests.reason)
static const char sums_sql[] =
    "WITH kept AS MATERIALIZED (SELECT * FROM (SELECT id, identity_id, duration_ns, uncovered_ns, "
    "parallel_ns, row_number() OVER (PARTITION BY identity_id ORDER BY duration_ns DESC, id) AS n "
    "FROM kept_requests WHERE begin_ns >= ?1 AND begin_ns < ?2 AND reason <> 1 AND cut = 0 "
    "AND kept_spans = spans AND uncovered_ns IS NOT NULL "
    "AND (?3 IS NULL OR node_id IN (SELECT id FROM node_names WHERE " QUERY_AMONG("name", "?3") ")) AND (?4 IS NULL OR identity_id IN (SELECT id FROM identity_names WHERE " QUERY_AMONG(
        "name",
        "?4") "))) "
              "WHERE n <= ?5) "
              "SELECT i.name, r.* FROM (SELECT identity_id, '_total', count(*) AS requests, count(*), "
              "sum(duration_ns), sum(uncovered_ns), 0, sum(parallel_ns) FROM kept GROUP BY identity_id "
              "UNION ALL SELECT identity_id, t.name, count(DISTINCT kept.id), count(*), "
              "sum(k.duration_ns), sum(k.self_ns), sum(k.waiting_ns), 0 FROM kept CROSS JOIN kept_spans AS k "
              "ON k.request_id = kept.id JOIN tier_names AS t ON t.id = k.tier_id GROUP BY identity_id, "
              "k.tier_id) AS r JOIN identity_names AS i ON i.id = r.identity_id";

enum { IDENTITY, TIER = 2, REQUESTS, CALLS, DURATION, SELF, WAITING, PARALLEL };

static char *text_of(sqlite3_stmt *from, int column) {
    const unsigned char *text = sqlite3_column_text(from, column);
    return strdup(text ? (const char *)text : "");
}

static bool add(struct store *s, sqlite3_stmt *from, struct query_sums *out) {
    if ((out->count & (out->count - 1)) == 0) { // full: 0, 1, 2, 4, …
        struct query_row *more =
            realloc(out->rows, (out->count ? 2 * out->count : 1) * sizeof *more);
        if (!more) {
            return query_no_memory(s);
        }
        out->rows = more;
    }
    struct query_row *row = &out->rows[out->count++];
    *row = (struct query_row){.identity = text_of(from, IDENTITY),
                              .tier = text_of(from, TIER),
                              .requests = (uint64_t)sqlite3_column_int64(from, REQUESTS),
                              .calls = (uint64_t)sqlite3_column_int64(from, CALLS),
                              .duration_ns = (uint64_t)sqlite3_column_int64(from, DURATION),
                              .self_ns = (uint64_t)sqlite3_column_int64(from, SELF),
                              .waiting_ns = (uint64_t)sqlite3_column_int64(from, WAITING),
                              .parallel_ns = (uint64_t)sqlite3_column_int64(from, PARALLEL)};
    return (row->identity && row->tier) || query_no_memory(s);
}

// In a mirror: fetches the requests, and their spans.
static bool fetch(struct store *s, const struct query *q) {
    struct mirror_ask ask = {.table = CHANGE_REQUESTS,
                             .node = q->node,
                             .identity = q->identity,
                             .requests = MIRROR_SLOW,
                             .from_ns = time_of_seconds(q->from_s),
                             .until_ns = time_of_seconds(q->until_s),
                             .most = QUERY_SLOW_SUMMED};
    if (!mirror_empty(s) || !mirror_fill(s, &ask)) {
        return false;
    }
    ask.table = CHANGE_SPANS;
    return mirror_fill(s, &ask);
}

bool query_slow_sums(struct store *s, const struct query *q, struct query_sums *out) {
    int rc = SQLITE_ERROR;
    sqlite3_stmt *rows;
    *out = (struct query_sums){0};
    if (!fetch(s, q)) {
        return false;
    }
    if (sqlite3_prepare_v2(s->db, sums_sql, -1, &rows, NULL) != SQLITE_OK) {
        return store_fail(s, "query the slow requests");
    }
    sqlite3_bind_int64(rows, 1, time_of_seconds(q->from_s));
    sqlite3_bind_int64(rows, 2, time_of_seconds(q->until_s));
    sqlite3_bind_text(rows, 3, q->node, -1, SQLITE_STATIC); // NULL binds NULL
    sqlite3_bind_text(rows, 4, q->identity, -1, SQLITE_STATIC);
    sqlite3_bind_int(rows, 5, QUERY_SLOW_SUMMED);
    bool ok = true;
    while (ok && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        ok = add(s, rows, out);
    }
    ok = ok && (rc == SQLITE_DONE || store_fail(s, "query the slow requests"));
    sqlite3_finalize(rows);
    return ok;
}
