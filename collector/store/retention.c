#include "store/retention.h"

#include <stdio.h>

#include "internal.h"

static const char *const tables[] = {"stat_rows", "ledger_rows", "path_rows", "cost_rows"};

static int64_t keep_s(uint32_t resolution_s) {
    return resolution_s < 60     ? RETENTION_FINE_S
           : resolution_s < 3600 ? RETENTION_MINUTES_S
                                 : RETENTION_HOURS_S;
}

// Deletes the oldest rows of a table at a resolution: the buckets before the cut, up to the one that holds
// row number RETENTION_STEP_ROWS. Returns the rows deleted, -1 on failure.
static int delete_oldest(struct store *s, const char *table, uint32_t resolution_s, int64_t cut) {
    char sql[512];
    snprintf(
        sql, sizeof sql,
        "DELETE FROM %s WHERE resolution_s = %u AND bucket_start < %lld AND bucket_start <= coalesce((SELECT "
        "bucket_start FROM %s WHERE resolution_s = %u ORDER BY bucket_start LIMIT 1 OFFSET %d), %lld)",
        table, resolution_s, (long long)cut, table, resolution_s, RETENTION_STEP_ROWS - 1, (long long)cut);
    if (sqlite3_exec(s->db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        store_fail(s, "delete old rows");
        return -1;
    }
    return sqlite3_changes(s->db);
}

static bool expire_rows(struct store *s, int64_t now_s) {
    bool more = false;
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        for (uint32_t r = store_next_resolution(s, tables[t], 0); r != 0; r = store_next_resolution(s, tables[t], r)) {
            // Whole hours go, so that where fine rows end the coarser ones are not cut in half.
            int64_t cut = floor_to(now_s - keep_s(r), r < 3600 ? 3600 : r);
            more = delete_oldest(s, tables[t], r, cut) >= RETENTION_STEP_ROWS || more;
        }
    }
    return more;
}

// -- kept requests -----------------------------------------------------------------------------------------------

// Deletes the oldest requests, by `oldest` and `deleting`, while they are past their time or there are too many. Returns whether
// it stopped because the step is full.
static bool delete_kept(struct store *s, sqlite3_stmt *oldest, sqlite3_stmt *deleting, int64_t cut_ns) {
    // How many more there are than may be; none where that cannot be asked.
    int64_t requests = store_integer(s, "SELECT count(*) FROM kept_requests", 0) - RETENTION_KEPT_REQUESTS;
    int64_t spans = store_integer(s, "SELECT sum(kept_spans) FROM kept_requests", 0) - RETENTION_KEPT_SPANS;
    int64_t rows = 0;
    for (; rows < RETENTION_STEP_SPANS && sqlite3_step(oldest) == SQLITE_ROW; sqlite3_reset(oldest)) {
        int64_t kept_spans = sqlite3_column_int64(oldest, 2);
        if (sqlite3_column_int64(oldest, 1) >= cut_ns && requests <= 0 && spans <= 0) {
            break;
        }
        sqlite3_bind_int64(deleting, 1, sqlite3_column_int64(oldest, 0));
        if (!store_run(s, deleting, "delete old requests")) {
            break;
        }
        rows += 1 + kept_spans;
        requests--;
        spans -= kept_spans;
    }
    return rows >= RETENTION_STEP_SPANS;
}

static bool expire_kept(struct store *s, int64_t now_s) {
    sqlite3_stmt *oldest = NULL, *deleting = NULL;
    bool more = false;
    if (sqlite3_prepare_v2(s->db, "SELECT id, begin_ns, kept_spans FROM kept_requests ORDER BY begin_ns LIMIT 1", -1, &oldest,
                           NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(s->db, "DELETE FROM kept_requests WHERE id = ?1", -1, &deleting, NULL) != SQLITE_OK ||
        sqlite3_exec(s->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK) {
        store_fail(s, "delete old requests");
    } else {
        more = delete_kept(s, oldest, deleting, (now_s - RETENTION_KEPT_S) * 1000000000);
        sqlite3_reset(oldest);
        if (sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK) {
            store_fail(s, "delete old requests");
            sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
            more = false;
        }
    }
    sqlite3_finalize(oldest);
    sqlite3_finalize(deleting);
    return more;
}

bool store_expire(struct store *s, int64_t now_s) {
    s->error[0] = 0;
    bool rows = expire_rows(s, now_s);
    return expire_kept(s, now_s) || rows;
}
