#include "store/retention.h"

#include <stdio.h>

#include "internal.h"

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

bool store_expire(struct store *s, int64_t now_s) {
    bool more = false;
    for (uint32_t r = store_next_resolution(s, 0); r != 0; r = store_next_resolution(s, r)) {
        // Whole hours go, so that where fine rows end the coarser ones are not cut in half.
        int64_t cut = floor_to(now_s - keep_s(r), r < 3600 ? 3600 : r);
        int stats = delete_oldest(s, "stat_rows", r, cut);
        int ledgers = delete_oldest(s, "ledger_rows", r, cut);
        more = more || stats >= RETENTION_STEP_ROWS || ledgers >= RETENTION_STEP_ROWS;
    }
    return more;
}
