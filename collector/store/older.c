// Reading a file of an older schema. Only its writer migrates a file, and perhaps none will: it may be an archive, or on a disk that
// nobody may write. So a reader lays over such a file, in its own temporary schema, what the queries look for: names there go before
// those of the file. What was not measured then is 0, or not there.
//
// Should a collector migrate the file meanwhile, this reader goes on with what it had.
#include "internal.h"

#define NOT_THERE(column) ", NULL AS " #column
#define LEDGER_OF_1                                                                                             \
    "CREATE TEMP VIEW ledger_rows AS SELECT *" LEDGER_COLUMNS_2(NOT_THERE) LEDGER_COLUMNS_4(NOT_THERE) \
        LEDGER_COLUMNS_6(NOT_THERE) " FROM main.ledger_rows;"
#define LEDGER_OF_3                                                                                                    \
    "CREATE TEMP VIEW ledger_rows AS SELECT *" LEDGER_COLUMNS_4(NOT_THERE) LEDGER_COLUMNS_6(NOT_THERE) \
        " FROM main.ledger_rows;"
#define LEDGER_OF_5 "CREATE TEMP VIEW ledger_rows AS SELECT *" LEDGER_COLUMNS_6(NOT_THERE) " FROM main.ledger_rows;"
#define COSTS_OF_5 "CREATE TEMP VIEW cost_rows AS SELECT *, 0 AS calls, 0 AS stale_calls FROM main.cost_rows;"
#define SPANS_OF_4 "CREATE TEMP VIEW kept_spans AS SELECT *, NULL AS caller FROM main.kept_spans;"

// What makes a file of version i + 1 readable as one of the current version.
static const char *const overlays[] = {
    // Version 1 had statistics and a ledger, with fewer columns.
    "CREATE TEMP VIEW stat_rows AS SELECT resolution_s, bucket_start, node_id, identity_id, tier_id, requests, calls, errors, "
    "async_calls, total_ns, self_ns, async_ns, duration_ns, square_ns, min_ns, max_ns, histogram, 0 AS wait_ns, 0 AS gc_ns, "
    "0 AS off_cpu_ns FROM main.stat_rows;"
    LEDGER_OF_1
    "CREATE TEMP TABLE cost_rows (resolution_s, bucket_start, node_id, tier_id, messages, bytes, calls, stale_calls);"
    "CREATE TEMP TABLE kept_requests (id, bucket_start, node_id, identity_id, reason, begin_ns, duration_ns, error, cut, spans, "
    "kept_spans, maker_id, label);"
    "CREATE TEMP TABLE kept_spans (request_id, span, parent, pid, tier_id, start_ns, duration_ns, self_ns, wait_ns, gc_ns, "
    "off_cpu_ns, async, outcome, caller);",
    // Version 2 knew no requests of other nodes.
    "CREATE TEMP VIEW kept_requests AS SELECT *, NULL AS maker_id, NULL AS label FROM main.kept_requests;"
    LEDGER_OF_3 SPANS_OF_4 COSTS_OF_5,
    // Version 3 did not know what the guard did.
    LEDGER_OF_3 SPANS_OF_4 COSTS_OF_5,
    // Version 4 did not know for which processes of other nodes calls were made.
    LEDGER_OF_5 SPANS_OF_4 COSTS_OF_5,
    // Version 5 did not tell why requests were incomplete.
    LEDGER_OF_5 COSTS_OF_5,
};

bool store_read_older(sqlite3 *db, int64_t version) {
    if (version >= store_schema_version) {
        return true;
    }
    if (version < 1 || version > (int64_t)(sizeof overlays / sizeof *overlays)) {
        return false;
    }
    // in memory: the temporary folder may be full
    return sqlite3_exec(db, "PRAGMA temp_store = MEMORY", NULL, NULL, NULL) == SQLITE_OK &&
           sqlite3_exec(db, overlays[version - 1], NULL, NULL, NULL) == SQLITE_OK;
}
