// SPDX-License-Identifier: Apache-2.0
#include "mirror_fixture.h"

#include <sqlite3.h>

#include "unit.h"

enum { SQL_BYTES = 8192 };

#define AMONG(number, name)                                                                        \
    " AND (?" number " IS NULL OR instr(char(31) || ?" number " || char(31), char(31) || " name    \
    " || char(31)) > 0)"
#define NODE "JOIN node_names AS n ON n.id = s.node_id "
#define IDENTITY "JOIN identity_names AS i ON i.id = s.identity_id "
#define TIER "JOIN tier_names AS t ON t.id = s.tier_id "
#define PIECE "WHERE s.resolution_s = ?1 AND s.bucket_start >= ?2 AND s.bucket_start < ?3"

static const char *const from[CHANGE_TABLES] = {
    [CHANGE_TIERS] = "FROM stat_rows AS s " NODE IDENTITY TIER PIECE AMONG("4", "n.name")
        AMONG("5", "i.name") AMONG("6", "t.name"),
    [CHANGE_PATHS] =
        "FROM path_rows AS s " NODE IDENTITY
        "JOIN path_names AS p ON p.id = s.path_id " PIECE AMONG("4", "n.name") AMONG("5", "i.name"),
    [CHANGE_LEDGER] = "FROM ledger_rows AS s " NODE PIECE AMONG("4", "n.name"),
    [CHANGE_COSTS] = "FROM cost_rows AS s " NODE TIER PIECE AMONG("4", "n.name"),
    [CHANGE_REQUESTS] = "FROM kept_requests AS s " NODE IDENTITY
                        "LEFT JOIN node_names AS m ON m.id = s.maker_id WHERE s.id ",
    [CHANGE_SPANS] = "FROM kept_requests AS r JOIN kept_spans AS s ON s.request_id = r.id "
                     "JOIN node_names AS n ON n.id = r.node_id " TIER "WHERE s.request_id "};

// The ids of the requests that are asked for.
static void put_which(const struct mirror_ask *ask, char *sql, size_t size) {
    size_t len = strlen(sql);
    static const char label[] = "(SELECT label FROM kept_requests WHERE id = ?7)";
    switch (ask->requests) {
    case MIRROR_ONE:
        snprintf(sql + len, size - len, "= ?7");
        break;
    case MIRROR_PARTS:
        snprintf(sql + len, size - len,
                 "IN (SELECT id FROM kept_requests WHERE label = %s AND id <> ?7)", label);
        break;
    default:
        snprintf(sql + len, size - len,
                 "IN (SELECT r.id FROM kept_requests AS r JOIN node_names AS n ON n.id = r.node_id "
                 "JOIN identity_names AS i ON i.id = r.identity_id WHERE begin_ns >= ?1 AND "
                 "begin_ns < ?2" AMONG("4", "n.name")
                     AMONG("5", "i.name") " AND (NOT ?8 OR error))");
    }
}

static sqlite3_stmt *prepare(sqlite3 *db, const struct mirror_ask *ask) {
    char sql[SQL_BYTES] = "SELECT 0";
    sqlite3_stmt *rows;
    const struct change_shape *shape = change_shape(ask->table);
    for (int i = 0; i < shape->count; i++) {
        snprintf(sql + strlen(sql), sizeof sql - strlen(sql), ", %s", shape->columns[i].sql);
    }
    snprintf(sql + strlen(sql), sizeof sql - strlen(sql), " %s", from[ask->table]);
    if (shape->kept) {
        put_which(ask, sql, sizeof sql);
    }
    if (sqlite3_prepare_v2(db, sql, -1, &rows, NULL) != SQLITE_OK) {
        fail_msg("%s: %s", sqlite3_errmsg(db), sql);
    }
    sqlite3_bind_text(rows, 4, ask->node, -1, SQLITE_STATIC);
    sqlite3_bind_text(rows, 5, ask->identity, -1, SQLITE_STATIC);
    sqlite3_bind_text(rows, 6, ask->tier, -1, SQLITE_STATIC);
    sqlite3_bind_int64(rows, 7, ask->id);
    sqlite3_bind_int(rows, 8, ask->failed);
    return rows;
}

static void read_cell(sqlite3_stmt *row, int at, const struct change_column *column, bool counts,
                      struct change_cell *cell) {
    static const uint8_t no_counts[] = {1};
    bool bytes =
        column->kind == CHANGE_NAME || column->kind == CHANGE_TEXT || column->kind == CHANGE_COUNTS;
    *cell = (struct change_cell){.null = sqlite3_column_type(row, at) == SQLITE_NULL};
    if (column->kind == CHANGE_COUNTS && !counts) {
        cell->bytes = slice_of(no_counts, sizeof no_counts);
    } else if (bytes) {
        const void *data = sqlite3_column_blob(row, at);
        cell->bytes = slice_of(data, (size_t)sqlite3_column_bytes(row, at));
    } else if (column->kind == CHANGE_REAL) {
        cell->real = sqlite3_column_double(row, at);
    } else {
        cell->number = sqlite3_column_int64(row, at);
    }
}

static bool give(sqlite3_stmt *rows, const struct mirror_ask *ask,
                 bool (*take)(void *to, const struct change_cell *cells), void *to) {
    struct change_cell cells[CHANGE_COLUMNS];
    const struct change_shape *shape = change_shape(ask->table);
    bool counts = ask->counts && (!ask->counts_of || *ask->counts_of), taken = true;
    while (taken && sqlite3_step(rows) == SQLITE_ROW) {
        for (int i = 0; i < shape->count; i++) {
            read_cell(rows, i + 1, &shape->columns[i], counts, &cells[i]);
        }
        taken = take(to, cells);
    }
    return taken;
}

static bool rows_of(void *arg, const struct mirror_ask *ask,
                    bool (*take)(void *to, const struct change_cell *cells), void *to, char *why) {
    (void)why;
    sqlite3_stmt *rows = prepare(arg, ask);
    bool kept = change_shape(ask->table)->kept, ok = true;
    for (int i = 0; ok && i < (kept ? 1 : ask->piece_count); i++) {
        if (kept) {
            sqlite3_bind_int64(rows, 1, ask->from_ns);
            sqlite3_bind_int64(rows, 2, ask->until_ns);
        } else {
            sqlite3_bind_int64(rows, 1, ask->pieces[i].resolution_s);
            sqlite3_bind_int64(rows, 2, ask->pieces[i].from_s);
            sqlite3_bind_int64(rows, 3, ask->pieces[i].until_s);
        }
        ok = give(rows, ask, take, to);
        sqlite3_reset(rows);
    }
    sqlite3_finalize(rows);
    return ok;
}

static bool extents_of(void *arg, int64_t deadline_ns, struct extent *out, int most, int *count,
                       char *why) {
    (void)deadline_ns, (void)why;
    sqlite3_stmt *rows;
    assert_int_equal(
        sqlite3_prepare_v2(arg,
                           "SELECT resolution_s, min(bucket_start), max(bucket_start) FROM "
                           "(SELECT resolution_s, bucket_start FROM stat_rows UNION ALL SELECT "
                           "resolution_s, bucket_start FROM ledger_rows) GROUP BY 1 ORDER BY 1",
                           -1, &rows, NULL),
        SQLITE_OK);
    while (sqlite3_step(rows) == SQLITE_ROW && *count < most) {
        out[(*count)++] =
            (struct extent){(uint32_t)sqlite3_column_int64(rows, 0), sqlite3_column_int64(rows, 1),
                            sqlite3_column_int64(rows, 2)};
    }
    sqlite3_finalize(rows);
    return true;
}

static bool names_of(void *arg, int64_t deadline_ns, bool tiers,
                     void (*each)(void *to, const char *name), void *to, char *why) {
    (void)deadline_ns, (void)why;
    sqlite3_stmt *rows;
    assert_int_equal(
        sqlite3_prepare_v2(arg,
                           tiers ? "SELECT name FROM tier_names WHERE name <> '_total' ORDER BY id"
                                 : "SELECT name FROM node_names ORDER BY name",
                           -1, &rows, NULL),
        SQLITE_OK);
    while (sqlite3_step(rows) == SQLITE_ROW) {
        each(to, (const char *)sqlite3_column_text(rows, 0));
    }
    sqlite3_finalize(rows);
    return true;
}

static bool clusters_of(void *arg, int64_t deadline_ns, void (*each)(void *to, const char *name),
                        void *to, char *why) {
    (void)arg, (void)deadline_ns, (void)each, (void)to, (void)why;
    return true; // a file is of none
}

static bool choose(void *arg, const char *clusters) {
    (void)arg;
    return !clusters;
}

static void close_file(void *arg) {
    sqlite3_close(arg);
}

struct store *mirror_fixture(const char *path) {
    char error[STORE_ERROR_BYTES];
    struct store *s;
    sqlite3 *db;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    const struct mirror_source source = {db,       path,        extents_of, rows_of,
                                         names_of, clusters_of, choose,     close_file};
    if (store_open_mirror(&source, &s, error) != STORE_OK) {
        fail_msg("%s", error);
    }
    return s;
}
