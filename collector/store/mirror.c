// SPDX-License-Identifier: Apache-2.0
#include "store/mirror.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum { SQL_BYTES = 4096, NONE = -1 };

struct mirror {
    struct mirror_source source;
    sqlite3_stmt *insert[CHANGE_TABLES]; // prepared when first used
    sqlite3_stmt *name[4];               // of names below
    int64_t rows;                        // fetched for this question
};

// -- what stands where ----------------------------------------------------------------------------

// Names, which stand in tables of their own.
static const struct {
    const char *insert;
    const char *id;
} names[] = {{"INSERT OR IGNORE INTO node_names (name) VALUES (?1)",
              "(SELECT id FROM node_names WHERE name = ?%d)"},
             {"INSERT OR IGNORE INTO identity_names (name) VALUES (?1)",
              "(SELECT id FROM identity_names WHERE name = ?%d)"},
             {"INSERT OR IGNORE INTO tier_names (name) VALUES (?1)",
              "(SELECT id FROM tier_names WHERE name = ?%d)"},
             {"INSERT OR IGNORE INTO path_names (name) VALUES (?1)",
              "(SELECT id FROM path_names WHERE name = ?%d)"}};
enum { NODE, IDENTITY, TIER, PATH };
_Static_assert(sizeof names / sizeof *names ==
                   sizeof((struct mirror *)NULL)->name / sizeof(sqlite3_stmt *),
               "a statement for each");

static const char *const tables[CHANGE_TABLES] = {
    [CHANGE_TIERS] = "stat_rows",        [CHANGE_PATHS] = "path_rows",
    [CHANGE_LEDGER] = "ledger_rows",     [CHANGE_COSTS] = "cost_rows",
    [CHANGE_REQUESTS] = "kept_requests", [CHANGE_SPANS] = "kept_spans"};

// Columns that are called otherwise, or have other values, in a file.
static const struct column {
    const char *name;
    const char *column; // NULL: it has none
    const char *value;  // NULL: as it is; else with the number of the cell in it
    int table;          // NONE: any
    int names;          // NONE: no name
} columns[] = {
    {"bucket_start", NULL, NULL, CHANGE_SPANS, NONE},
    {"node", NULL, NULL, CHANGE_SPANS, NONE},
    {"name", "tier_id", NULL, CHANGE_SPANS, TIER},
    {"outcome", "outcome",
     "CASE ?%d WHEN 'ok' THEN 0 WHEN 'error' THEN 1 WHEN 'open' THEN 2 ELSE 3 END", CHANGE_SPANS,
     NONE},
    {"node", "node_id", NULL, CHANGE_REQUESTS, NODE},
    {"reason", "reason", "CASE ?%d WHEN 'over' THEN 0 WHEN 'failed' THEN 1 ELSE 2 END",
     CHANGE_REQUESTS, NONE},
    {"outcome", "error", "?%d <> 'ok'", CHANGE_REQUESTS, NONE},
    {"complete", "cut", "?%d = 0", CHANGE_REQUESTS, NONE},
    {"origin", "maker_id", NULL, CHANGE_REQUESTS, NODE},
    {"trace_id", "trace_id", "nullif(?%d, '')", CHANGE_REQUESTS, NONE},
    {"parent_span_id", "parent_span_id", "nullif(?%d, '')", CHANGE_REQUESTS, NONE},
    {"tier_place", NULL, NULL, NONE, NONE}, // rows come in that order
    // rows of several nodes together: their number keeps each one's key its own
    {"node", "node_id", NULL, NONE, NONE},
    {"identity", "identity_id", NULL, NONE, IDENTITY},
    {"tier", "tier_id", NULL, NONE, TIER},
    {"path", "path_id", NULL, NONE, PATH},
};

static const struct column *column_of(enum change_table table, const char *name) {
    static const struct column same = {NULL, NULL, NULL, NONE, NONE};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        const struct column *c = &columns[i];
        if ((c->table == NONE || c->table == (int)table) && strcmp(c->name, name) == 0) {
            return c;
        }
    }
    return &same;
}

static void put_value(const struct column *c, int number, char out[128]) {
    const char *form = c->names != NONE ? names[c->names].id : c->value ? c->value : "?%d";
    const char *at = strstr(form, "%d");
    snprintf(out, 128, "%.*s%d%s", (int)(at - form), form, number, at + 2);
}

static sqlite3_stmt *insert_of(struct store *s, enum change_table table) {
    struct mirror *m = s->mirror;
    const struct change_shape *shape = change_shape(table);
    char into[SQL_BYTES] = "", values[SQL_BYTES] = "", sql[2 * SQL_BYTES + 64];
    int n = 0, v = 0;
    if (m->insert[table]) {
        return m->insert[table];
    }
    for (int i = 0; i < shape->count; i++) {
        const struct column *c = column_of(table, shape->columns[i].name);
        char value[128];
        if (c->name && !c->column) {
            continue;
        }
        put_value(c, i + 1, value);
        n += snprintf(into + n, sizeof into - (size_t)n, "%s%s", n > 0 ? ", " : "",
                      c->name ? c->column : shape->columns[i].name);
        v += snprintf(values + v, sizeof values - (size_t)v, "%s%s", v > 0 ? ", " : "", value);
    }
    snprintf(sql, sizeof sql, "INSERT INTO %s (%s) VALUES (%s)", tables[table], into, values);
    if (sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &m->insert[table], NULL) !=
        SQLITE_OK) {
        store_fail(s, "fetch rows");
        return NULL;
    }
    return m->insert[table];
}

// -- rows -----------------------------------------------------------------------------------------

static bool add_name(struct store *s, int which, struct slice name) {
    sqlite3_stmt **insert = &s->mirror->name[which];
    if (!*insert && sqlite3_prepare_v3(s->db, names[which].insert, -1, SQLITE_PREPARE_PERSISTENT,
                                       insert, NULL) != SQLITE_OK) {
        return store_fail(s, "fetch rows");
    }
    sqlite3_bind_text(*insert, 1, (const char *)name.data, (int)name.len, SQLITE_STATIC);
    return store_run(s, *insert, "fetch rows");
}

static void bind(sqlite3_stmt *insert, int at, enum change_kind kind,
                 const struct change_cell *cell) {
    switch (kind) {
    case CHANGE_REAL:
        sqlite3_bind_double(insert, at, cell->real);
        break;
    case CHANGE_NAME:
    case CHANGE_TEXT:
        sqlite3_bind_text(insert, at, (const char *)cell->bytes.data, (int)cell->bytes.len,
                          SQLITE_STATIC);
        break;
    case CHANGE_COUNTS:
        sqlite3_bind_blob(insert, at, cell->bytes.data, (int)cell->bytes.len, SQLITE_STATIC);
        break;
    default:
        if (cell->null) {
            sqlite3_bind_null(insert, at);
        } else {
            sqlite3_bind_int64(insert, at, cell->number);
        }
    }
}

struct filling {
    struct store *store;
    enum change_table table;
    sqlite3_stmt *insert;
    bool failed; // here, and store_error says why
};

static bool take_row(void *to, const struct change_cell *cells) {
    struct filling *f = to;
    struct mirror *m = f->store->mirror;
    const struct change_shape *shape = change_shape(f->table);
    f->failed = true;
    if (m->rows++ >= LIMIT_MIRROR_ROWS) {
        snprintf(f->store->error, sizeof f->store->error,
                 "these are more than %d rows: ask for a shorter time", LIMIT_MIRROR_ROWS);
        return false;
    }
    for (int i = 0; i < shape->count; i++) {
        const struct column *c = column_of(f->table, shape->columns[i].name);
        if (c->names != NONE && cells[i].bytes.len > 0 &&
            !add_name(f->store, c->names, cells[i].bytes)) {
            return false;
        }
        if (c->column && strcmp(c->column, "node_id") == 0 && c->names == NONE) {
            sqlite3_bind_int64(f->insert, i + 1, m->rows);
        } else {
            bind(f->insert, i + 1, shape->columns[i].kind, &cells[i]);
        }
    }
    f->failed = !store_run(f->store, f->insert, "fetch rows");
    return !f->failed;
}

// What the source has said goes on in store_error.
static bool fail(struct store *s, const char *why) {
    snprintf(s->error, sizeof s->error, "%s", why);
    return false;
}

bool mirror_fill(struct store *s, struct mirror_ask *ask) {
    struct mirror *m = s->mirror;
    if (!m) {
        return true;
    }
    char why[STORE_ERROR_BYTES] = "";
    struct filling f = {.store = s, .table = ask->table, .insert = insert_of(s, ask->table)};
    ask->deadline_ns = s->deadline_ns;
    if (!f.insert || sqlite3_exec(s->db, "SAVEPOINT fill", NULL, NULL, NULL) != SQLITE_OK) {
        return f.insert ? store_fail(s, "fetch rows") : false;
    }
    bool ok = m->source.rows(m->source.arg, ask, take_row, &f, why);
    ok = ok || f.failed || fail(s, why);
    ok = ok && !f.failed;
    return sqlite3_exec(s->db, "RELEASE fill", NULL, NULL, NULL) == SQLITE_OK && ok;
}

bool mirror_empty(struct store *s) {
    struct mirror *m = s->mirror;
    if (!m) {
        return true;
    }
    m->rows = 0;
    return sqlite3_exec(s->db,
                        "DELETE FROM stat_rows; DELETE FROM path_rows; DELETE FROM ledger_rows; "
                        "DELETE FROM cost_rows; DELETE FROM kept_spans; DELETE FROM kept_requests; "
                        "DELETE FROM node_names; DELETE FROM identity_names; "
                        "DELETE FROM tier_names; DELETE FROM path_names",
                        NULL, NULL, NULL) == SQLITE_OK ||
           store_fail(s, "forget rows");
}

bool mirror_extents(struct store *s, struct extent *out, int most, int *count) {
    char why[STORE_ERROR_BYTES] = "";
    const struct mirror_source *source = &s->mirror->source;
    *count = 0;
    return source->extents(source->arg, s->deadline_ns, out, most, count, why) || fail(s, why);
}

bool mirror_names(struct store *s, bool tiers, void (*each)(void *arg, const char *name),
                  void *arg) {
    char why[STORE_ERROR_BYTES] = "";
    const struct mirror_source *source = &s->mirror->source;
    return source->names(source->arg, s->deadline_ns, tiers, each, arg, why) || fail(s, why);
}

bool query_clusters(struct store *s, void (*each)(void *arg, const char *name), void *arg) {
    char why[STORE_ERROR_BYTES] = "";
    const struct mirror_source *source = s->mirror ? &s->mirror->source : NULL;
    return !source || source->clusters(source->arg, s->deadline_ns, each, arg, why) || fail(s, why);
}

bool store_is_mirror(const struct store *s) {
    return s->mirror;
}

bool store_choose_clusters(struct store *s, const char *clusters) {
    const struct mirror_source *source = s->mirror ? &s->mirror->source : NULL;
    return !source || source->choose(source->arg, clusters) || query_no_memory(s);
}

// -- opening and closing --------------------------------------------------------------------------

enum store_status store_open_mirror(const struct mirror_source *source, struct store **out,
                                    char error[STORE_ERROR_BYTES]) {
    struct store *s = calloc(1, sizeof *s);
    struct mirror *m = calloc(1, sizeof *m);
    *out = NULL;
    if (s && m) {
        s->lock = s->lock_beside = -1;
        s->deadline_ns = INT64_MAX;
        s->mirror = m;
        m->source = *source;
    }
    if (!s || !m ||
        sqlite3_open_v2(":memory:", &s->db,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                        NULL) != SQLITE_OK ||
        !store_migrate(s->db, 0, store_migrations, store_migration_count, &store_views)) {
        snprintf(error, STORE_ERROR_BYTES, "no memory to read %s", source->name);
        if (s && m) {
            store_close(s);
        } else {
            source->close(source->arg);
            free(s);
            free(m);
        }
        return STORE_FAILED;
    }
    *out = s;
    return STORE_OK;
}

void mirror_free(struct mirror *m) {
    if (m) {
        for (int i = 0; i < CHANGE_TABLES; i++) {
            sqlite3_finalize(m->insert[i]);
        }
        for (size_t i = 0; i < sizeof m->name / sizeof *m->name; i++) {
            sqlite3_finalize(m->name[i]);
        }
        m->source.close(m->source.arg);
        free(m);
    }
}
