// SPDX-License-Identifier: Apache-2.0
// The SQL of the connection that writes.
#include "internal.h"

#define TEXT_OF(number) #number
#define TEXT(macro) TEXT_OF(macro)

// Adds to a counter of the row that is there; one that overflows stays at its end, as a table of
// integers takes nothing else.
#define GROW(column)                                                                               \
    column " = CASE WHEN " column " > 9223372036854775807 - excluded." column                      \
           " THEN 9223372036854775807 ELSE " column " + excluded." column " END"
// The same of one that may be NULL, which adds nothing.
#define GROW_SOME(column)                                                                          \
    column " = CASE WHEN " column " > 9223372036854775807 - ifnull(excluded." column               \
           ", 0) THEN 9223372036854775807 "                                                        \
           "ELSE coalesce(" column " + excluded." column ", " column ", excluded." column ") END"
// The same of the ledger's, whose end is STORE_LEDGER_MOST.
#define ADD_LEDGER(column)                                                                         \
    ", " #column " = min(" #column " + excluded." #column ", " TEXT(STORE_LEDGER_MOST) ")"
#define NAME_LEDGER(column) ", " #column
#define BIND_COLUMN(column) ", ?"
#define NAME_QUANTILE(name, q) ", " #name "_ns"
#define BIND_QUANTILE(name, q) ", ?"
// min(a, b) and max(a, b) where either may be NULL.
#define BEST(which, column)                                                                        \
    column " = " which "(ifnull(" column ", excluded." column "), ifnull(excluded." column         \
           ", " column "))"

// The best requests of a bucket, node, identity and reason, from place ?5 on.
#define KEPT_FROM                                                                                  \
    "FROM kept_requests "                                                                          \
    "WHERE bucket_start = ?1 AND node_id = ?2 AND identity_id = ?3 AND reason = ?4 "               \
    "ORDER BY duration_ns DESC, begin_ns, id "

// clang-format off
static const char *const sql[STATEMENTS] = {
    [STATEMENT_BEGIN] = "BEGIN IMMEDIATE",
    [STATEMENT_COMMIT] = "COMMIT",
    [STATEMENT_SAVE] = "SAVEPOINT one",
    [STATEMENT_UNDO] = "ROLLBACK TO one",
    [STATEMENT_RELEASE] = "RELEASE one",
    [STATEMENT_READ_ROW] =
        "SELECT duration_ns, square_ns, min_ns, max_ns, histogram" STORE_SUM_NAMES " FROM stat_rows "
        "WHERE resolution_s = ?1 AND bucket_start = ?2 AND node_id = ?3 AND identity_id = ?4 "
        "AND tier_id = ?5",
    [STATEMENT_WRITE_ROW] =
        "REPLACE INTO stat_rows (resolution_s, bucket_start, node_id, identity_id, tier_id, "
        "duration_ns, square_ns, histogram, min_ns, max_ns, stddev_ns" STAT_QUANTILES(NAME_QUANTILE, NAME_QUANTILE)
        STORE_SUM_NAMES ") VALUES "
        "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?" STAT_QUANTILES(BIND_QUANTILE, BIND_QUANTILE)
        STAT_SUMS(BIND_COLUMN, BIND_COLUMN) ")",
    // of a column that is set twice the last one counts
    [STATEMENT_ADD_LEDGER] =
        "INSERT INTO ledger_rows (resolution_s, bucket_start, node_id"
        LEDGER_COLUMNS(NAME_LEDGER) ") "
        "VALUES (?1, ?2, ?3" LEDGER_COLUMNS(BIND_COLUMN) ") ON CONFLICT DO UPDATE SET "
        "bytes = bytes" LEDGER_COLUMNS(ADD_LEDGER),
    [STATEMENT_ADD_PATH_ROW] =
        "INSERT INTO path_rows (resolution_s, bucket_start, node_id, identity_id, path_id, calls, "
        "errors, async_calls, total_ns, self_ns, async_ns, wait_ns, duration_ns, min_ns, max_ns, "
        "waiting_ns, measured_ns, mailbox_ns, run_queue_ns) "
        "VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19) ON CONFLICT DO UPDATE SET "
        GROW("calls") ", " GROW("errors") ", " GROW("async_calls") ", " GROW("total_ns") ", "
        GROW("self_ns") ", " GROW("async_ns") ", " GROW("wait_ns") ", " GROW("duration_ns") ", "
        BEST("min", "min_ns") ", " BEST("max", "max_ns") ", "
        GROW("waiting_ns") ", " // of a row that an older version has begun it stays NULL
        GROW("measured_ns") ", " GROW_SOME("mailbox_ns") ", " GROW_SOME("run_queue_ns"),
    [STATEMENT_ADD_COST] =
        "INSERT INTO cost_rows "
        "(resolution_s, bucket_start, node_id, tier_id, messages, bytes, calls, stale_calls) "
        "VALUES (?1,?2,?3,?4,?5,?6,?7,?8) ON CONFLICT DO UPDATE SET "
        GROW("messages") ", " GROW("bytes") ", " GROW("calls") ", " GROW("stale_calls"),
    [STATEMENT_LAST_KEPT] = "SELECT duration_ns, begin_ns " KEPT_FROM "LIMIT 1 OFFSET ?5",
    [STATEMENT_PRUNE_KEPT] =
        "DELETE FROM kept_requests WHERE id IN (SELECT id " KEPT_FROM "LIMIT -1 OFFSET ?5)",
    [STATEMENT_KEEP] =
        "INSERT INTO kept_requests (bucket_start, node_id, identity_id, reason, begin_ns, "
        "duration_ns, error, cut, spans, kept_spans, maker_id, label, uncovered_ns, parallel_ns, "
        "trace_id, parent_span_id, trace_flags) "
        "VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17)",
    [STATEMENT_KEEP_SPAN] =
        "INSERT INTO kept_spans (request_id, span, parent, pid, tier_id, start_ns, duration_ns, "
        "self_ns, wait_ns, gc_ns, off_cpu_ns, async, outcome, caller, waiting_ns, measured, "
        "run_queue_ns) "
        "VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17)",
    [STATEMENT_ADD_NODE] = "INSERT INTO node_names (name) VALUES (?1) ON CONFLICT DO NOTHING",
    [STATEMENT_ADD_IDENTITY] =
        "INSERT INTO identity_names (name) VALUES (?1) ON CONFLICT DO NOTHING",
    [STATEMENT_ADD_TIER] = "INSERT INTO tier_names (name) VALUES (?1) ON CONFLICT DO NOTHING",
    [STATEMENT_ADD_PATH] = "INSERT INTO path_names (name) VALUES (?1) ON CONFLICT DO NOTHING",
    [STATEMENT_FIND_NODE] = "SELECT id FROM node_names WHERE name = ?1",
    [STATEMENT_FIND_IDENTITY] = "SELECT id FROM identity_names WHERE name = ?1",
    [STATEMENT_FIND_TIER] = "SELECT id FROM tier_names WHERE name = ?1",
    [STATEMENT_FIND_PATH] = "SELECT id FROM path_names WHERE name = ?1",
    [STATEMENT_REVISE] = "UPDATE export_state SET revision = max(revision + 1, ?1) RETURNING revision",
    // one that is there already is due when it was
    [STATEMENT_MARK] =
        "INSERT INTO export_marks (bucket_start, resolution_s, node_id, revision, due_s) "
        "VALUES (?1,?2,?3,?4,?5) ON CONFLICT DO UPDATE SET revision = excluded.revision, "
        "due_s = min(due_s, excluded.due_s)",
};
// clang-format on

sqlite3_stmt *store_prepared(struct store *s, enum statement which) {
    if (!s->statements[which] &&
        sqlite3_prepare_v3(s->db, sql[which], -1, SQLITE_PREPARE_PERSISTENT, &s->statements[which],
                           NULL) != SQLITE_OK) {
        store_fail(s, "prepare");
        return NULL;
    }
    return s->statements[which];
}

bool store_run(struct store *s, sqlite3_stmt *statement, const char *what) {
    if (!statement) {
        return false;
    }
    bool ok = sqlite3_step(statement) == SQLITE_DONE || store_fail(s, what);
    sqlite3_reset(statement);
    return ok;
}

bool store_begin(struct store *s, const char *what) {
    return store_run(s, store_prepared(s, STATEMENT_BEGIN), what);
}

bool store_end(struct store *s, bool ok, const char *what) {
    if (ok && store_run(s, store_prepared(s, STATEMENT_COMMIT), what)) {
        return true;
    }
    // SQLite itself has rolled back after some failures (a full disk), not after others.
    if (!sqlite3_get_autocommit(s->db)) {
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    }
    return false;
}

void store_bind_count(sqlite3_stmt *statement, int at, uint64_t value) {
    sqlite3_bind_int64(statement, at, value > INT64_MAX ? INT64_MAX : (int64_t)value);
}
