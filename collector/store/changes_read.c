// SPDX-License-Identifier: Apache-2.0
// Reading marks and the rows that they are of.
#include "store/changes.h"

#include <stdio.h>
#include <stdlib.h>

#include "internal.h"

enum { LATE_S = 3600, SQL_BYTES = 4096 };

struct changes {
    struct store *store;
    sqlite3_stmt *due;
    sqlite3_stmt *rows[CHANGE_TABLES]; // prepared when first used
};

// -- the tables -----------------------------------------------------------------------------------

#define COUNT_OF(column) {#column, CHANGE_NUMBER, "s." #column},
#define TIME_OF(column) {#column "_ns", CHANGE_NUMBER, "s." #column "_ns"},
#define SPLIT_OF(column) {#column "_ns", CHANGE_OPTIONAL, "s." #column "_ns"},
#define MEASURED_OF TIME_OF(measured) SPLIT_OF(mailbox) SPLIT_OF(run_queue)
#define BUCKET                                                                                     \
    { "bucket_start", CHANGE_TIME, "s.bucket_start" }
#define RESOLUTION                                                                                 \
    { "resolution_s", CHANGE_SMALL, "s.resolution_s" }
#define NODE                                                                                       \
    { "node", CHANGE_NAME, "n.name" }
#define IDENTITY                                                                                   \
    { "identity", CHANGE_NAME, "i.name" }
#define TIER                                                                                       \
    { "tier", CHANGE_NAME, "t.name" }
#define SHORTEST                                                                                   \
    { "min_ns", CHANGE_OPTIONAL, "s.min_ns" }
#define LONGEST                                                                                    \
    { "max_ns", CHANGE_OPTIONAL, "s.max_ns" }

static const struct change_column tiers[] = {
    BUCKET,
    RESOLUTION,
    NODE,
    IDENTITY,
    TIER,
    STAT_WHOLE(COUNT_OF, TIME_OF) STAT_SPLIT(SPLIT_OF)
        MEASURED_OF{"duration_ns", CHANGE_NUMBER, "s.duration_ns"},
    {"square_ns", CHANGE_REAL, "s.square_ns"},
    SHORTEST,
    LONGEST,
    {"histogram", CHANGE_COUNTS, "s.histogram"},
    // order in which the file came to know them
    {"tier_place", CHANGE_SMALL, "s.tier_id"}};

static const struct change_column paths[] = {
    BUCKET,
    RESOLUTION,
    NODE,
    IDENTITY,
    {"path", CHANGE_NAME, "p.name"},
    COUNT_OF(calls) COUNT_OF(errors) COUNT_OF(async_calls) TIME_OF(total) TIME_OF(self)
        TIME_OF(async) TIME_OF(wait) SPLIT_OF(waiting) MEASURED_OF TIME_OF(duration) SHORTEST,
    LONGEST};

static const struct change_column ledger[] = {BUCKET, RESOLUTION, NODE, LEDGER_COLUMNS(COUNT_OF)};

static const struct change_column costs[] = {BUCKET, RESOLUTION, NODE, TIER,
                                             COUNT_OF(messages) COUNT_OF(bytes) COUNT_OF(calls)
                                                 COUNT_OF(stale_calls)};

static const struct change_column requests[] = {
    BUCKET,
    NODE,
    IDENTITY,
    {"id", CHANGE_NUMBER, "s.id"},
    {"reason", CHANGE_NAME,
     "CASE s.reason WHEN 0 THEN 'over' WHEN 1 THEN 'failed' ELSE 'slowest' END"},
    {"begin_ns", CHANGE_SIGNED, "s.begin_ns"},
    TIME_OF(duration){"outcome", CHANGE_NAME, "CASE s.error WHEN 0 THEN 'ok' ELSE 'error' END"},
    {"complete", CHANGE_SMALL, "s.cut = 0"},
    {"spans", CHANGE_SMALL, "s.spans"},
    {"kept_spans", CHANGE_SMALL, "s.kept_spans"},
    {"origin", CHANGE_NAME, "coalesce(m.name, '')"},
    {"label", CHANGE_OPTIONAL, "s.label"},
    SPLIT_OF(uncovered) SPLIT_OF(parallel){"trace_id", CHANGE_TEXT, "coalesce(s.trace_id, '')"},
    {"parent_span_id", CHANGE_TEXT, "coalesce(s.parent_span_id, '')"}};

static const struct change_column spans[] = {
    {"bucket_start", CHANGE_TIME, "r.bucket_start"},
    NODE,
    {"request_id", CHANGE_NUMBER, "s.request_id"},
    {"span", CHANGE_SMALL, "s.span"},
    {"parent", CHANGE_OPTIONAL, "s.parent"},
    {"pid", CHANGE_TEXT, "s.pid"},
    {"name", CHANGE_NAME, "t.name"},
    {"start_ns", CHANGE_SIGNED, "s.start_ns"},
    TIME_OF(duration) TIME_OF(self) TIME_OF(wait) SPLIT_OF(waiting) TIME_OF(gc)
        TIME_OF(off_cpu){"async", CHANGE_SMALL, "s.async"},
    {"outcome", CHANGE_NAME,
     "CASE s.outcome WHEN 0 THEN 'ok' WHEN 1 THEN 'error' WHEN 2 THEN 'open' ELSE 'unknown' END"},
    {"caller", CHANGE_OPTIONAL, "s.caller"},
    {"measured", CHANGE_SMALL, "s.measured"},
    SPLIT_OF(run_queue)};

_Static_assert(sizeof tiers / sizeof *tiers <= CHANGE_COLUMNS &&
                   sizeof ledger / sizeof *ledger <= CHANGE_COLUMNS,
               "no table has more");

#define SHAPE(name, columns, order, kept)                                                          \
    { name, columns, order, sizeof(columns) / sizeof *(columns), kept }
static const struct change_shape shapes[CHANGE_TABLES] = {
    [CHANGE_TIERS] =
        SHAPE("tier_stats", tiers, "resolution_s, tier, identity, bucket_start, node", false),
    [CHANGE_PATHS] =
        SHAPE("path_stats", paths, "resolution_s, path, identity, bucket_start, node", false),
    [CHANGE_LEDGER] = SHAPE("ledger", ledger, "resolution_s, bucket_start, node", false),
    [CHANGE_COSTS] = SHAPE("tier_costs", costs, "resolution_s, tier, bucket_start, node", false),
    [CHANGE_REQUESTS] = SHAPE("slow_requests", requests, "identity, bucket_start, node, id", true),
    [CHANGE_SPANS] = SHAPE("slow_spans", spans, "bucket_start, node, request_id, span", true)};

// Where the rows of a mark (?1 resolution, ?2 bucket, ?3 node) stand behind a place (?4, ?5), and
// the columns of their key that make such a place. A name that is not there is empty.
#define OF_BUCKET "WHERE s.resolution_s = ?1 AND s.bucket_start = ?2 AND s.node_id = ?3 "
#define OF_NODE "LEFT JOIN node_names AS n ON n.id = s.node_id "
#define OF_IDENTITY "LEFT JOIN identity_names AS i ON i.id = s.identity_id "
#define OF_TIER "LEFT JOIN tier_names AS t ON t.id = s.tier_id "
// a key that ends before; a number alone would be one of a column in ORDER BY
#define NONE "0 + 0"
static const struct {
    const char *key; // two columns
    const char *from;
} sources[CHANGE_TABLES] = {
    [CHANGE_TIERS] = {"s.identity_id, s.tier_id",
                      "FROM stat_rows AS s " OF_NODE OF_IDENTITY OF_TIER OF_BUCKET},
    [CHANGE_PATHS] = {"s.identity_id, s.path_id",
                      "FROM path_rows AS s " OF_NODE OF_IDENTITY
                      "LEFT JOIN path_names AS p ON p.id = s.path_id " OF_BUCKET},
    [CHANGE_LEDGER] = {NONE ", " NONE, "FROM ledger_rows AS s " OF_NODE OF_BUCKET},
    [CHANGE_COSTS] = {"s.tier_id, " NONE, "FROM cost_rows AS s " OF_NODE OF_TIER OF_BUCKET},
    [CHANGE_REQUESTS] = {"s.id, " NONE, "FROM kept_requests AS s " OF_NODE OF_IDENTITY
                                        "LEFT JOIN node_names AS m ON m.id = s.maker_id "
                                        "WHERE ?1 = 0 AND s.bucket_start = ?2 AND s.node_id = ?3 "},
    [CHANGE_SPANS] = {"s.request_id, s.span",
                      "FROM kept_requests AS r CROSS JOIN kept_spans AS s ON s.request_id = r.id "
                      "LEFT JOIN node_names AS n ON n.id = r.node_id " OF_TIER
                      "WHERE ?1 = 0 AND r.bucket_start = ?2 AND r.node_id = ?3 "}};

const struct change_shape *change_shape(enum change_table table) {
    return &shapes[table];
}

static sqlite3_stmt *prepare_rows(struct changes *c, enum change_table table) {
    char sql[SQL_BYTES];
    const struct change_shape *shape = &shapes[table];
    if (c->rows[table]) {
        return c->rows[table];
    }
    int n = snprintf(sql, sizeof sql, "SELECT %s", sources[table].key);
    for (int i = 0; i < shape->count; i++) {
        n += snprintf(sql + n, sizeof sql - (size_t)n, ", %s", shape->columns[i].sql);
    }
    snprintf(sql + n, sizeof sql - (size_t)n, " %s AND (%s) > (?4, ?5) ORDER BY %s",
             sources[table].from, sources[table].key, sources[table].key);
    if (sqlite3_prepare_v3(c->store->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &c->rows[table],
                           NULL) != SQLITE_OK) {
        store_fail(c->store, "read what has changed");
        return NULL;
    }
    return c->rows[table];
}

// -- the connection -------------------------------------------------------------------------------

struct changes *changes_open(const char *path, char error[STORE_ERROR_BYTES]) {
    struct changes *c = calloc(1, sizeof *c);
    if (!c) {
        snprintf(error, STORE_ERROR_BYTES, "no memory to read %s", path);
        return NULL;
    }
    if (store_open_reader(path, &c->store, error) != STORE_OK) {
        free(c);
        return NULL;
    }
    if (sqlite3_prepare_v2(c->store->db,
                           // one that is due only long from now was made before the clock was set
                           // back
                           "SELECT bucket_start, resolution_s, node_id, revision FROM export_marks "
                           "WHERE due_s <= ?1 OR due_s > ?1 + ?2 "
                           "ORDER BY bucket_start, resolution_s, node_id LIMIT ?3",
                           -1, &c->due, NULL) != SQLITE_OK) {
        store_fail(c->store, "read what has changed");
        snprintf(error, STORE_ERROR_BYTES, "%.*s", STORE_ERROR_BYTES - 1, store_error(c->store));
        changes_close(c);
        return NULL;
    }
    return c;
}

void changes_close(struct changes *c) {
    if (!c) {
        return;
    }
    sqlite3_finalize(c->due);
    for (int i = 0; i < CHANGE_TABLES; i++) {
        sqlite3_finalize(c->rows[i]);
    }
    store_close(c->store);
    free(c);
}

const char *changes_error(const struct changes *c) {
    return store_error(c->store);
}

bool changes_database(struct changes *c, int64_t *database_id) {
    if (!store_followed(c->store)) {
        return false;
    }
    *database_id = store_integer(c->store, "SELECT database_id FROM export_state", 0);
    return true;
}

bool changes_backlog(struct changes *c, int64_t now_s, struct change_backlog *out) {
    sqlite3_stmt *asking = NULL;
    *out = (struct change_backlog){0};
    bool ok = sqlite3_prepare_v2(c->store->db,
                                 "SELECT count(*), min(due_s), (SELECT lost FROM export_state), "
                                 "(SELECT refused FROM export_state) FROM export_marks "
                                 "WHERE due_s <= ?1 OR due_s > ?1 + ?2",
                                 -1, &asking, NULL) == SQLITE_OK;
    sqlite3_bind_int64(asking, 1, now_s);
    sqlite3_bind_int64(asking, 2, LATE_S);
    ok = ok && sqlite3_step(asking) == SQLITE_ROW;
    if (ok) {
        out->marks = (uint64_t)sqlite3_column_int64(asking, 0);
        out->oldest_s = sqlite3_column_int64(asking, 1);
        out->lost = (uint64_t)sqlite3_column_int64(asking, 2);
        out->refused = (uint64_t)sqlite3_column_int64(asking, 3);
    } else {
        store_fail(c->store, "count what has changed");
    }
    sqlite3_finalize(asking);
    return ok;
}

int changes_due(struct changes *c, int64_t now_s, struct change *out, int most) {
    int count = 0, rc;
    sqlite3_bind_int64(c->due, 1, now_s);
    sqlite3_bind_int64(c->due, 2, LATE_S);
    sqlite3_bind_int64(c->due, 3, most);
    while ((rc = sqlite3_step(c->due)) == SQLITE_ROW && count < most) {
        int64_t resolution = sqlite3_column_int64(c->due, 1);
        // whoever edits the file may enter anything
        out[count++] = (struct change){
            sqlite3_column_int64(c->due, 0),
            resolution < 0 || resolution > UINT32_MAX ? UINT32_MAX : (uint32_t)resolution,
            sqlite3_column_int64(c->due, 2), sqlite3_column_int64(c->due, 3)};
    }
    bool ok =
        rc == SQLITE_DONE || rc == SQLITE_ROW || store_fail(c->store, "read what has changed");
    sqlite3_reset(c->due);
    return ok ? count : -1;
}

bool changes_begin(struct changes *c) {
    return sqlite3_exec(c->store->db, "BEGIN", NULL, NULL, NULL) == SQLITE_OK ||
           store_fail(c->store, "read what has changed");
}

void changes_end(struct changes *c) {
    if (!sqlite3_get_autocommit(c->store->db)) {
        sqlite3_exec(c->store->db, "COMMIT", NULL, NULL, NULL);
    }
}

static void read_cell(sqlite3_stmt *at, int column, enum change_kind kind,
                      struct change_cell *cell) {
    *cell = (struct change_cell){0};
    switch (kind) {
    case CHANGE_REAL:
        cell->real = sqlite3_column_double(at, column);
        break;
    case CHANGE_NAME:
    case CHANGE_TEXT:
    case CHANGE_COUNTS: {
        const void *bytes = sqlite3_column_blob(at, column);
        cell->bytes = slice_of(bytes, (size_t)sqlite3_column_bytes(at, column));
        break;
    }
    case CHANGE_OPTIONAL:
        cell->null = sqlite3_column_type(at, column) == SQLITE_NULL;
        cell->number = sqlite3_column_int64(at, column);
        break;
    default:
        cell->number = sqlite3_column_int64(at, column);
    }
}

enum change_read changes_read(struct changes *c, enum change_table table, const struct change *of,
                              struct change_place *place,
                              bool (*take)(void *to, const struct change_cell *cells,
                                           const struct change_place *at),
                              void *to) {
    enum { KEY = 2 };
    struct change_cell cells[CHANGE_COLUMNS];
    const struct change_shape *shape = &shapes[table];
    sqlite3_stmt *rows = prepare_rows(c, table);
    if (!rows) {
        return CHANGE_FAILED;
    }
    const int64_t bound[] = {of->resolution_s, of->bucket_start, of->node_id, place->key[0],
                             place->key[1]};
    for (int i = 0; i < (int)(sizeof bound / sizeof *bound); i++) {
        sqlite3_bind_int64(rows, 1 + i, bound[i]);
    }
    bool taken = true;
    int rc = SQLITE_ROW;
    while (taken && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        struct change_place at = {{sqlite3_column_int64(rows, 0), sqlite3_column_int64(rows, 1)}};
        for (int i = 0; i < shape->count; i++) {
            read_cell(rows, KEY + i, shape->columns[i].kind, &cells[i]);
        }
        taken = take(to, cells, &at);
        *place = taken ? at : *place;
    }
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        store_fail(c->store, "read what has changed");
    }
    sqlite3_reset(rows);
    return !taken ? CHANGE_MORE : rc == SQLITE_DONE ? CHANGE_ALL : CHANGE_FAILED;
}
