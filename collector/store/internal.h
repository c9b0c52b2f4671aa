// SPDX-License-Identifier: Apache-2.0
// What the files of this layer share; no header for others.
#pragma once

#include <sqlite3.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/time_math.h"
#include "store/mirror.h"
#include "store/query.h"
#include "store/store.h"

// "KPRF": the application_id in the header of every kprof database.
#define STORE_APPLICATION_ID 0x4b505246

// A counter of the ledger stays at this end, more than anybody counts in an hour: nodes tell some
// of them themselves, and a million rows at their end can still be added up.
#define STORE_LEDGER_MOST 8796093022208 // 2 to the power of 43

// Of STAT_SUMS: how many there are, and ", requests, calls, …" for SQL.
#define STORE_ONE(name) 0,
enum { STORE_SUMS = sizeof(const char[]){STAT_SUMS(STORE_ONE, STORE_ONE)} };
// Of them the last ones, STAT_SPLIT and then STAT_MEASURED.
enum { STORE_SPLIT = sizeof(const char[]){STAT_SPLIT(STORE_ONE)} };
enum { STORE_MEASURED = sizeof(const char[]){STAT_MEASURED(STORE_ONE)} };
#define STORE_COUNT_NAME(name) ", " #name
#define STORE_TIME_NAME(name) ", " #name "_ns"
#define STORE_SUM_NAMES STAT_SUMS(STORE_COUNT_NAME, STORE_TIME_NAME)

// What brings a database to a version: the first one a new database, the others one of the version
// before.
struct migration {
    int version;
    const char *sql;
};

// The views of a version.
struct views {
    const char *drop; // drops those that are there
    const char *make;
};

// schema/*.sql, embedded by embed.cmake.
extern const struct migration store_migrations[];
extern const int store_migration_count;
extern const int store_first_version;  // of the first
extern const int store_schema_version; // of the last
extern const struct views store_views; // of the last

enum statement {
    STATEMENT_BEGIN,
    STATEMENT_COMMIT,
    STATEMENT_SAVE,
    STATEMENT_UNDO,
    STATEMENT_RELEASE,
    STATEMENT_READ_ROW,
    STATEMENT_WRITE_ROW,
    STATEMENT_ADD_LEDGER,
    STATEMENT_ADD_PATH_ROW,
    STATEMENT_ADD_COST,
    STATEMENT_LAST_KEPT,
    STATEMENT_KEEP,
    STATEMENT_KEEP_SPAN,
    STATEMENT_PRUNE_KEPT,
    STATEMENT_ADD_NODE,
    STATEMENT_ADD_IDENTITY,
    STATEMENT_ADD_TIER,
    STATEMENT_ADD_PATH,
    STATEMENT_FIND_NODE,
    STATEMENT_FIND_IDENTITY,
    STATEMENT_FIND_TIER,
    STATEMENT_FIND_PATH,
    STATEMENT_REVISE,
    STATEMENT_MARK,
    STATEMENTS
};

enum {
    STORE_PATH_BYTES = 4096,
    STORE_BUSY_MS = 5000 // for how long a statement waits for other processes
};

struct store {
    sqlite3 *db;
    int lock;        // descriptor that holds the flock, -1 for readers; open for longer than db
    int lock_beside; // the same of the file beside it

    // of the writer (place.c)
    char path[STORE_PATH_BYTES]; // as people gave it,
    char file[STORE_PATH_BYTES]; // and what SQLite opened there
    int64_t file_bytes;          // its length when it was looked at last
    struct stat wal;             // the log, once there is one
    bool has_wal;
    int64_t wal_pages; // in it, after our last commit
    int64_t page_bytes;

    int64_t deadline_ns; // of a reader: see store_set_deadline

    struct mirror *mirror; // NULL: its rows are in a file

    bool follow; // see store_follow
    struct {
        bool follow;     // see store_otlp_follow, and so are
        bool signals[2]; // OTLP_SIGNALS of store/otlp.h
        uint32_t resolution_s;
    } otlp;
    struct map marked; // the buckets and nodes marked in this transaction; no slots: never used

    uint64_t set_aside; // rows, see store_set_aside
    // the last failure is of one row, and the next one may be written all the same
    bool spoilt;
    sqlite3_stmt *statements[STATEMENTS]; // of the writer, prepared when first used

    // Row ids of the directory's names, 0 while unknown. Forgotten after a rollback, which may have
    // taken new names back.
    const struct directory *directory;
    struct row_id {
        int64_t row;
        uint32_t generation; // of the name that the id had then
    } node_ids[LIMIT_NODES], identity_ids[LIMIT_IDENTITIES + IDENTITIES_FIXED],
        tier_ids[LIMIT_TIER_NAMES + 1],
        path_ids[LIMIT_PATHS + 1]; // the first is that of PATH_OTHER

    struct histogram merged; // scratch of the row being written
    struct buffer blob;      // its stored form
    char error[STORE_ERROR_BYTES];
};

// -- store.c: the start of the file ---------------------------------------------------------------

// Where numbers stand in it.
enum store_header {
    HEADER_PAGES = 28,
    HEADER_USER_VERSION = 60,
    HEADER_APPLICATION_ID = 68,
    HEADER_BYTES = 100
};

uint32_t store_header_number(const uint8_t *header, enum store_header at);
// Whether it is a kprof database's. That is certain: the application id is written with the first
// table.
bool store_header_is_ours(const uint8_t *header);

// -- place.c: where the file is -------------------------------------------------------------------

// Locks the file beside the database. A descriptor, or -1: errno is EWOULDBLOCK when somebody else
// has it, and *holder who.
int place_lock(const struct store *s, long *holder);
// Removes that file, and its lock.
void place_unlock(struct store *s);
// The process that holds the flock of a file; 0: not known.
long place_holder(int fd);
// A connection was opened: from now on its log is watched.
void place_watch(struct store *s);
// Closes the connection that is out of place.
void store_leave(struct store *s, enum store_place place);

// -- statements.c: the writer's SQL ---------------------------------------------------------------

// The statement, prepared, or NULL (store_error says why).
sqlite3_stmt *store_prepared(struct store *s, enum statement which);
// Runs a bound statement that yields no rows and makes it ready for the next time. NULL fails.
bool store_run(struct store *s, sqlite3_stmt *statement, const char *what);
// Begins a transaction, and ends it: ok: commits it. Where not, or where that fails, what was done
// within it is undone. Whether it began, or was committed.
bool store_begin(struct store *s, const char *what);
bool store_end(struct store *s, bool ok, const char *what);
// Binds a counter. They are unsigned in memory and signed in the file; one that overflows stays at
// its end.
void store_bind_count(sqlite3_stmt *statement, int at, uint64_t value);

// -- row_ids.c: names and their row ids -----------------------------------------------------------

// The row id of a text, new when it must be; 0 on failure.
int64_t store_name_id(struct store *s, enum statement insert, enum statement find,
                      const char *text);
// The row id of a name of s->directory, from the cache or the table, new when it must be; 0 on
// failure.
int64_t store_node_id(struct store *s, uint16_t id);
int64_t store_identity_id(struct store *s, uint16_t id);
int64_t store_tier_id(struct store *s, uint16_t id);
int64_t store_path_id(struct store *s, uint32_t id);
void store_forget_ids(struct store *s);

// -- batch_paths.c, batch_kept.c: parts of a batch, within its transaction ------------------------

// The resolutions at which a batch is written.
struct resolutions {
    uint32_t all[3]; // seconds, finest first
    int count;
};

// Where in the ledger a row belongs.
struct row_place {
    const uint32_t *resolutions;
    int count;
    int64_t bucket_start;
    uint16_t node; // directory id
};

// batch.c: adds a row of the ledger at one resolution; node: its row id.
bool store_add_ledger(struct store *s, uint32_t resolution_s, int64_t node,
                      const struct ledger_row *row);
bool store_write_paths(struct store *s, const struct resolutions *resolutions,
                       const struct stats *batch);
bool store_write_costs(struct store *s, const struct resolutions *resolutions,
                       const struct stats *batch);
bool store_write_kept(struct store *s, const struct resolutions *resolutions,
                      const struct stats *batch);

// -- changes.c: marks for an export ---------------------------------------------------------------

// Within the transaction of a batch: marks what it changes, where the file is followed.
bool store_mark(struct store *s, const struct resolutions *resolutions,
                const struct stats *const *sets, uint32_t count);
// Marks of rows that are past their retention go, and are counted as lost. keep_s: how long rows of
// a resolution are kept; kept_s: requests.
void store_expire_marks(struct store *s, int64_t now_s, int64_t (*keep_s)(uint32_t resolution_s),
                        int64_t kept_s);

// -- otlp.c: what --otlp has sent -----------------------------------------------------------------

// Within the transaction of a batch: counts the requests in it that are of buckets that were sent.
bool store_otlp_late(struct store *s, const struct stats *const *sets, uint32_t count);
// What is not sent, before and after old rows are deleted: those that are gone are counted as lost.
struct otlp_unsent {
    int64_t requests, buckets;
};
struct otlp_unsent store_otlp_unsent(struct store *s);
void store_otlp_lost(struct store *s, struct otlp_unsent before);

// -- query_pieces.c: which rows answer a question about a stretch of time -------------------------

// Every resolution of a file, finest first.
enum { EXTENTS = 32 }; // three for every --bucket it was ever written with
struct extents {
    struct extent all[EXTENTS];
    int count;
};
// False on failure, and there are none then.
bool query_extents(struct store *s, struct extents *out);
// The time that there is anything of, as finely as it is kept. False, and nothing told: none.
bool extents_time(const struct extents *of, int64_t *first_s, int64_t *last_s);
// The finest resolution that reaches as far as every other within a time, 0 without any. When none
// does (written with lengths of buckets that do not divide each other) the one that covers most.
uint32_t extents_resolution(const struct extents *of, const struct query *q);

enum { PIECES = 256 };
struct pieces {
    struct store *store;
    struct extents of; // the file's
    struct piece list[PIECES];
    int count; // 0: there is nothing
    bool failed;
};
// Reads, in one transaction, so that all is of the same moment, where whatever was counted in the
// time asked for stands once: the coarsest buckets that lie wholly inside, and finer ones at the
// ends, as long as these are there. read is not called when there are none; out goes to it.
// *resolution_s is that of extents_resolution. False when something failed.
bool query_pieces(struct store *s, const struct query *q, uint32_t *resolution_s,
                  bool (*read)(struct store *s, const struct query *q, const struct pieces *pieces,
                               void *out),
                  void *out);
// Whether a name is among those of a choice (query.h).
#define QUERY_AMONG(name, choice)                                                                  \
    "instr(char(31) || " choice " || char(31), char(31) || " name " || char(31)) > 0"
// Prepares a statement that reads FROM pieces CROSS JOIN a table ON PIECES_TAKEN; ?1 is the nodes
// or NULL. NULL on failure.
#define PIECES_TAKEN                                                                               \
    "resolution_s = resolution AND bucket_start >= from_s AND bucket_start < until_s AND "         \
    "(?1 IS NULL OR node_id IN (SELECT id FROM node_names WHERE " QUERY_AMONG("name", "?1") "))"
sqlite3_stmt *pieces_prepare(const struct pieces *p, const char *sql, const struct query *q);
// In a mirror: fetches rows of a table in that time, for a query's nodes and identities.
enum { PIECES_BUCKETS = 1, PIECES_COUNTS = 2 }; // each bucket by itself; with histograms
bool pieces_fetch(const struct pieces *p, const struct query *q, enum change_table table,
                  const char *tier, int how);
// The coarsest resolution taken at the start of a bucket; 0: none.
uint32_t pieces_resolution_at(const struct pieces *p, int64_t bucket);
// Widens the time that an answer covers by rows from `from` until `until`: what a long bucket has
// before the first data of the file, and after the last, does not count. 0 and 0: nothing yet.
void pieces_cover(const struct pieces *p, int64_t from, int64_t until, int64_t *first_s,
                  int64_t *last_s);

// -- query.c: what the readers' queries share -----------------------------------------------------

// The one resolution to take for a query (extents_resolution); 0: there is no data at all. Within a
// transaction. False on failure.
bool query_resolution(struct store *s, const struct query *q, uint32_t *resolution_s);
// Prepares a statement with ?1 the resolution, ?2 and ?3 the first and past-the-last bucket, ?4 the
// nodes or NULL; NULL on failure.
sqlite3_stmt *query_prepare(struct store *s, const char *sql, uint32_t resolution_s,
                            const struct query *q);
// Runs a question of one thing, ?1, and hands each row over, until one is refused. what: for
// store_error. False when one was, and on failure.
bool query_rows_of(struct store *s, const char *what, int64_t id, const char *sql,
                   bool (*row)(void *to, sqlite3_stmt *at), void *to);
// Says that memory is out, and returns false.
bool query_no_memory(struct store *s);
// The same where a histogram could not be read.
bool query_malformed(struct store *s);

// -- mirror.c: rows that are not in a file
// ---------------------------------------------------------

// Fetches rows into it, behind those that are there. Both do nothing for a file. False on failure.
bool mirror_fill(struct store *s, struct mirror_ask *ask);
// Forgets all rows: with each question.
bool mirror_empty(struct store *s);
bool mirror_extents(struct store *s, struct extent *out, int most, int *count);
bool mirror_names(struct store *s, bool tiers, void (*each)(void *arg, const char *name),
                  void *arg);
void mirror_free(struct mirror *m); // NULL is allowed
// The nodes for statements: in a mirror only their rows are there.
static inline const char *mirror_node(const struct store *s, const char *node) {
    return s->mirror ? NULL : node;
}

// -- store.c --------------------------------------------------------------------------------------

// Keeps what SQLite says about the last failure for store_error, and returns false.
bool store_fail(struct store *s, const char *what);
// After a failure to write one row: whether it is that row's, which then is told, counted in the
// ledger and passed over. What: the row, in words.
__attribute__((format(printf, 3, 4))) bool
store_pass_over(struct store *s, const struct row_place *at, const char *what, ...);
// Closes the connection of a writer, and gives its lock of the file back. The path stays locked.
void store_disconnect(struct store *s);

// Brings a database of this version, 0 for a new one, to the last version of a list and to its
// views, in one transaction: all steps are done, or none. When one has failed the transaction is
// open still, and ends with the connection.
bool store_migrate(sqlite3 *db, int64_t version, const struct migration *list, int count,
                   const struct views *views);

// Asks for one integer; otherwise when there is no row, it is NULL, or the query fails.
int64_t store_integer(struct store *s, const char *sql, int64_t otherwise);

// The next longer buckets into which what is counted at a resolution goes too; 0: none.
uint32_t store_coarser(uint32_t resolution_s);

// The resolution after this one in a table, 0 when it is the last.
uint32_t store_next_resolution(struct store *s, const char *table, uint32_t resolution_s);

static inline int64_t floor_to(int64_t t, int64_t step) {
    int64_t rest = t % step;
    return time_sub(t, rest < 0 ? rest + step : rest);
}
