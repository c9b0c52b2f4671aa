// What the files of this layer share; no header for others.
#pragma once

#include <sqlite3.h>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/limits.h"
#include "store/store.h"

// "KPRF": the application_id in the header of every kprof database.
#define STORE_APPLICATION_ID 0x4b505246

struct migration {
    const char *file;
    const char *sql;
};

// schema/*.sql, embedded by embed.cmake: migration i brings version i to version i + 1.
extern const struct migration store_migrations[];
extern const int store_schema_version; // how many there are

enum statement {
    STATEMENT_BEGIN,
    STATEMENT_COMMIT,
    STATEMENT_READ_ROW,
    STATEMENT_WRITE_ROW,
    STATEMENT_ADD_LEDGER,
    STATEMENT_ADD_NODE,
    STATEMENT_ADD_IDENTITY,
    STATEMENT_ADD_TIER,
    STATEMENT_FIND_NODE,
    STATEMENT_FIND_IDENTITY,
    STATEMENT_FIND_TIER,
    STATEMENTS
};

struct store {
    sqlite3 *db;
    int lock; // descriptor that holds the flock, -1 for readers; open for longer than db
    sqlite3_stmt *statements[STATEMENTS]; // of the writer, prepared when first used

    // Row ids of the directory's names, 0 while unknown. Forgotten after a rollback, which may have taken new
    // names back.
    const struct directory *directory;
    int64_t node_ids[LIMIT_NODES];
    int64_t identity_ids[LIMIT_IDENTITIES + 3];
    int64_t tier_ids[LIMIT_TIER_NAMES + 1];

    struct histogram merged; // scratch of the row being written
    struct buffer blob;      // its stored form
    char error[256];
};

// Keeps what SQLite says about the last failure for store_error, and returns false.
bool store_fail(struct store *s, const char *what);

// Asks for one integer; otherwise when there is no row, it is NULL, or the query fails.
int64_t store_integer(struct store *s, const char *sql, int64_t otherwise);

// The resolution after this one in the tables, 0 when it is the last.
uint32_t store_next_resolution(struct store *s, uint32_t resolution_s);

static inline int64_t floor_to(int64_t t, int64_t step) {
    int64_t rest = t % step;
    return t - (rest < 0 ? rest + step : rest);
}
