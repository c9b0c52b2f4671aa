// SPDX-License-Identifier: Apache-2.0
#include "store/query_paths.h"

#include <stdlib.h>
#include <string.h>

#include "internal.h"

static const char paths_sql[] =
    "SELECT x.name, sum(calls), sum(errors), sum(async_calls), sum(total_ns), sum(self_ns), "
    "sum(async_ns), sum(wait_ns), sum(duration_ns), min(min_ns), max(max_ns), sum(waiting_ns), "
    "sum(measured_ns), sum(mailbox_ns), sum(run_queue_ns), count(waiting_ns) < count(*) "
    "FROM pieces CROSS JOIN path_rows ON " PIECES_TAKEN " AND CASE WHEN ?2 IS NULL "
    "THEN identity_id IS NOT (SELECT id FROM identity_names WHERE name = '_remote') "
    "ELSE identity_id IN (SELECT id FROM identity_names WHERE " QUERY_AMONG(
        "name", "?2") ") END "
                      "CROSS JOIN path_names AS x ON x.id = path_id GROUP BY path_id";

static const char requests_sql[] =
    "SELECT sum(calls), min(bucket_start), max(bucket_start + resolution) "
    "FROM pieces CROSS JOIN stat_rows ON " PIECES_TAKEN
    " AND identity_id IN (SELECT id FROM identity_names WHERE " QUERY_AMONG(
        "name",
        "coalesce(?2, '_total')") ") "
                                  "AND tier_id = (SELECT id FROM tier_names WHERE name = '_total')";

static bool add_path(struct store *s, struct path_list *list, sqlite3_stmt *from) {
    if ((list->count & (list->count - 1)) == 0) { // full: 0, 1, 2, 4, …
        struct path_sums *more =
            realloc(list->rows, (list->count ? 2 * list->count : 1) * sizeof *more);
        if (!more) {
            return query_no_memory(s);
        }
        list->rows = more;
    }
    const unsigned char *name = sqlite3_column_text(from, 0);
    struct path_sums row = {.path = strdup(name ? (const char *)name : "")};
    uint64_t *const columns[] = {
        &row.calls,      &row.errors,      &row.async_calls, &row.total_ns,    &row.self_ns,
        &row.async_ns,   &row.wait_ns,     &row.duration_ns, &row.min_ns,      &row.max_ns,
        &row.waiting_ns, &row.measured_ns, &row.mailbox_ns,  &row.run_queue_ns};
    if (!row.path) {
        return query_no_memory(s);
    }
    for (int i = 0; i < (int)(sizeof columns / sizeof *columns); i++) {
        *columns[i] = (uint64_t)sqlite3_column_int64(from, i + 1);
    }
    row.unsplit = sqlite3_column_int(from, 1 + sizeof columns / sizeof *columns) != 0;
    list->rows[list->count++] = row;
    return true;
}

static sqlite3_stmt *prepare(const struct pieces *pieces, const char *sql, const struct query *q) {
    sqlite3_stmt *statement = pieces_prepare(pieces, sql, q);
    if (statement) {
        sqlite3_bind_text(statement, 2, q->identity, -1, SQLITE_STATIC); // NULL binds NULL
    }
    return statement;
}

static bool add_paths(struct store *s, const struct query *q, const struct pieces *pieces,
                      struct path_list *list) {
    int rc = SQLITE_ERROR;
    sqlite3_stmt *paths = prepare(pieces, paths_sql, q);
    bool ok = paths;
    while (ok && (rc = sqlite3_step(paths)) == SQLITE_ROW) {
        ok = add_path(s, list, paths);
    }
    ok = ok && (rc == SQLITE_DONE || store_fail(s, "query the paths"));
    sqlite3_finalize(paths);
    return ok;
}

static bool add_requests(struct store *s, const struct query *q, const struct pieces *pieces,
                         struct path_list *list) {
    sqlite3_stmt *row = prepare(pieces, requests_sql, q);
    if (!row) {
        return false;
    }
    bool ok = sqlite3_step(row) == SQLITE_ROW || store_fail(s, "query the requests");
    if (ok && sqlite3_column_type(row, 0) == SQLITE_INTEGER) {
        list->requests = (uint64_t)sqlite3_column_int64(row, 0);
        pieces_cover(pieces, sqlite3_column_int64(row, 1), sqlite3_column_int64(row, 2),
                     &list->first_s, &list->last_s);
    }
    sqlite3_finalize(row);
    return ok;
}

static bool read_paths(struct store *s, const struct query *q, const struct pieces *pieces,
                       void *out) {
    // of the requests only how many, and when
    struct query requests = *q;
    requests.identity = q->identity ? q->identity : "_total";
    return pieces_fetch(pieces, q, CHANGE_PATHS, NULL, 0) &&
           pieces_fetch(pieces, &requests, CHANGE_TIERS, "_total", PIECES_BUCKETS) &&
           add_paths(s, q, pieces, out) && add_requests(s, q, pieces, out);
}

bool query_paths(struct store *s, const struct query *q, struct path_list *out) {
    struct query asked = *q;
    *out = (struct path_list){0};
    if (asked.identity && strcmp(asked.identity, "_total") == 0) {
        asked.identity = NULL; // no rows of it are kept
    }
    return query_pieces(s, &asked, &out->resolution_s, read_paths, out);
}

void path_list_free(struct path_list *list) {
    for (uint32_t i = 0; i < list->count; i++) {
        free((char *)list->rows[i].path);
    }
    free(list->rows);
    *list = (struct path_list){0};
}
