// SPDX-License-Identifier: Apache-2.0
#include "export/questions.h"

#include <inttypes.h>
#include <string.h>

#include "export/statements.h"

enum { HOUR_S = 3600, SECOND_NS = 1000000000 };

// -- conditions -----------------------------------------------------------------------------------

static void put_choice(const char *choice, struct buffer *out) {
    char name[1024];
    buffer_text(out, "(");
    for (const char *at = choice; at;) {
        size_t len = strcspn(at, QUERY_OR);
        size_t kept = len < sizeof name ? len : sizeof name - 1;
        memcpy(name, at, kept);
        name[kept] = 0;
        statement_quote(name, out);
        at = at[len] ? at + len + 1 : NULL;
        buffer_text(out, at ? ", " : ")");
    }
}

// A condition on a column, where one is asked for.
static void put_among(const char *column, const char *choice, struct buffer *out) {
    if (choice) {
        buffer_printf(out, " AND %s IN ", column);
        put_choice(choice, out);
    }
}

// A collector is of the cluster that it said last.
static void put_scope(const struct question_scope *scope, struct buffer *out) {
    put_among("collector", scope->collectors, out);
    const char *const clusters[] = {scope->clusters, scope->chosen};
    for (int i = 0; i < 2; i++) {
        if (clusters[i]) {
            buffer_printf(out,
                          " AND (collector, database_id) IN (SELECT collector, database_id FROM "
                          "%s." STATEMENT_COLLECTORS
                          " GROUP BY collector, database_id HAVING argMax(cluster, seen) IN ",
                          scope->database);
            put_choice(clusters[i], out);
            buffer_text(out, ")");
        }
    }
}

static void put_pieces(const struct mirror_ask *ask, struct buffer *out) {
    buffer_text(out, ask->piece_count == 0 ? "(0" : "(");
    for (int i = 0; i < ask->piece_count; i++) {
        const struct piece *p = &ask->pieces[i];
        buffer_printf(out,
                      "%s(resolution_s = %u AND bucket_start >= toDateTime(%" PRId64
                      ") AND bucket_start < toDateTime(%" PRId64 "))",
                      i > 0 ? " OR " : "", p->resolution_s, p->from_s, p->until_s);
    }
    buffer_text(out, ")");
}

// -- statistics -----------------------------------------------------------------------------------

static bool has(const struct change_shape *shape, const char *column) {
    for (int i = 0; i < shape->count; i++) {
        if (strcmp(shape->columns[i].name, column) == 0) {
            return true;
        }
    }
    return false;
}

static void put_histogram(const struct mirror_ask *ask, const char *name, struct buffer *out) {
    if (!ask->counts || (ask->counts_of && !*ask->counts_of)) {
        buffer_text(out, "emptyArrayUInt16(), emptyArrayUInt64()");
    } else if (ask->counts_of) {
        buffer_text(out, "sumMap(if(tier = ");
        statement_quote(ask->counts_of, out);
        buffer_printf(out, ", %s_keys, emptyArrayUInt16()), if(tier = ", name);
        statement_quote(ask->counts_of, out);
        buffer_printf(out, ", %s_counts, emptyArrayUInt64()))", name);
    } else {
        buffer_printf(out, "sumMap(%s_keys, %s_counts)", name, name);
    }
}

static void put_sum(const struct mirror_ask *ask, const struct change_column *c,
                    struct buffer *out) {
    switch (c->kind) {
    case CHANGE_TIME:
        buffer_printf(out, ask->each_bucket ? "%s" : "min(%s)", c->name);
        break;
    case CHANGE_SMALL:
        buffer_printf(out, strcmp(c->name, "resolution_s") == 0 ? "%s" : "min(%s)", c->name);
        break;
    case CHANGE_NAME:
    case CHANGE_TEXT:
        buffer_text(out, strcmp(c->name, "node") == 0 ? "''" : c->name);
        break;
    case CHANGE_COUNTS:
        put_histogram(ask, c->name, out);
        break;
    default:
        buffer_printf(out, "%s(%s)",
                      strcmp(c->name, "min_ns") == 0   ? "min"
                      : strcmp(c->name, "max_ns") == 0 ? "max"
                                                       : "sum",
                      c->name);
    }
}

static void put_groups(const struct mirror_ask *ask, const struct change_shape *shape,
                       struct buffer *out) {
    buffer_text(out, " GROUP BY resolution_s");
    for (int i = 0; i < shape->count; i++) {
        const struct change_column *c = &shape->columns[i];
        if (c->kind == CHANGE_NAME && strcmp(c->name, "node") != 0) {
            buffer_printf(out, ", %s", c->name);
        }
    }
    if (ask->each_bucket) {
        buffer_text(out, ", bucket_start");
    }
    if (has(shape, "waiting_ns")) { // rows that have none tell something else by that
        buffer_text(out, ", isNull(waiting_ns)");
    }
    if (ask->each_bucket && has(shape, "tier_place")) {
        buffer_text(out, " ORDER BY bucket_start, min(tier_place)");
    }
}

// All conditions are of the order that the table is in, so that versions of a row fulfil them
// together, or none does. The engine reads the other columns, histograms above all, of what does:
// with FINAL it does that only when it is told to.
static void put_statistics(const struct question_scope *scope, const struct mirror_ask *ask,
                           struct buffer *out) {
    const struct change_shape *shape = change_shape(ask->table);
    buffer_text(out, "SELECT ");
    for (int i = 0; i < shape->count; i++) {
        buffer_text(out, i > 0 ? ", " : "");
        put_sum(ask, &shape->columns[i], out);
    }
    buffer_printf(out, " FROM %s.%s FINAL PREWHERE ", scope->database, shape->name);
    put_pieces(ask, out);
    put_among("node", ask->node, out);
    put_among("identity", has(shape, "identity") ? ask->identity : NULL, out);
    put_among("tier", has(shape, "tier") ? ask->tier : NULL, out);
    put_scope(scope, out);
    put_groups(ask, shape, out);
}

// -- kept requests --------------------------------------------------------------------------------

static void put_file(const struct question_file *of, const char *column, int64_t id,
                     struct buffer *out) {
    buffer_text(out, "(collector = ");
    statement_quote(of->collector, out);
    buffer_printf(out, " AND database_id = %" PRIu64 " AND %s = %" PRId64 ")", of->database_id,
                  column, id);
}

// Begins; what ended later stands in later buckets.
static void put_time(const struct mirror_ask *ask, struct buffer *out) {
    if (ask->from_ns > 0) {
        int64_t first = ask->from_ns / SECOND_NS - HOUR_S;
        buffer_printf(out, " AND bucket_start >= toDateTime(%" PRId64 ") AND begin_ns >= %" PRId64,
                      first > 0 ? first : 0, ask->from_ns);
    }
    if (ask->until_ns != INT64_MAX) {
        buffer_printf(out, " AND begin_ns < %" PRId64, ask->until_ns);
    }
}

static void put_which(const struct question_scope *scope, const struct mirror_ask *ask,
                      const struct question_file *of, int64_t id, struct buffer *out) {
    buffer_printf(out, " FROM %s.%s FINAL WHERE 1", scope->database,
                  change_shape(CHANGE_REQUESTS)->name);
    put_scope(scope, out);
    if (ask->requests == MIRROR_ONE) {
        buffer_text(out, " AND ");
        put_file(of, "id", id, out);
        return;
    }
    if (ask->requests == MIRROR_PARTS) {
        buffer_printf(out,
                      " AND isNotNull(label) AND label IN (SELECT label FROM %s.%s FINAL WHERE ",
                      scope->database, change_shape(CHANGE_REQUESTS)->name);
        put_file(of, "id", id, out);
        buffer_text(out, ") AND NOT ");
        put_file(of, "id", id, out);
        return;
    }
    put_time(ask, out);
    put_among("node", ask->node, out);
    put_among("identity", ask->identity, out);
    if (ask->failed) {
        buffer_text(out, " AND outcome = 'error'");
    }
    if (ask->requests == MIRROR_SLOW) { // as query_slow_sums takes them
        buffer_printf(out,
                      " AND reason != 'failed' AND complete = 1 AND kept_spans = spans AND "
                      "isNotNull(uncovered_ns) ORDER BY identity, duration_ns DESC, id LIMIT %u BY "
                      "identity",
                      ask->most);
    } else {
        buffer_printf(out, " ORDER BY duration_ns DESC, id LIMIT %u", ask->most);
    }
}

static void put_columns(const struct change_shape *shape, struct buffer *out) {
    buffer_text(out, "SELECT ");
    for (int i = 0; i < shape->count; i++) {
        buffer_printf(out, "%s, ", shape->columns[i].name);
    }
    buffer_text(out, "collector, database_id");
}

static void put_kept(const struct question_scope *scope, const struct mirror_ask *ask,
                     const struct question_file *of, int64_t id, struct buffer *out) {
    const struct change_shape *shape = change_shape(ask->table);
    put_columns(shape, out);
    if (ask->table == CHANGE_REQUESTS) {
        put_which(scope, ask, of, id, out);
        return;
    }
    buffer_printf(out, " FROM %s.%s FINAL WHERE 1", scope->database, shape->name);
    if (ask->requests == MIRROR_ONE) {
        buffer_text(out, " AND ");
        put_file(of, "request_id", id, out);
    } else {
        buffer_text(out, " AND (collector, database_id, request_id) IN (SELECT collector, "
                         "database_id, id");
        put_which(scope, ask, of, id, out);
        buffer_text(out, ")");
    }
}

// -- questions ------------------------------------------------------------------------------------

void question_rows(const struct question_scope *scope, const struct mirror_ask *ask,
                   const struct question_file *of, int64_t id, struct buffer *out) {
    if (change_shape(ask->table)->kept) {
        put_kept(scope, ask, of, id, out);
    } else {
        put_statistics(scope, ask, out);
    }
    buffer_text(out, " FORMAT RowBinary");
}

void question_files(const struct question_scope *scope, struct buffer *out) {
    buffer_printf(out,
                  "SELECT collector, database_id FROM %s." STATEMENT_COLLECTORS
                  " GROUP BY collector, database_id ORDER BY min(began), collector, database_id "
                  "LIMIT %d FORMAT RowBinary",
                  scope->database, LIMIT_HISTORY_DATABASES + 1);
}

void question_clusters(const struct question_scope *scope, struct buffer *out) {
    buffer_printf(out,
                  "SELECT name FROM (SELECT collector, database_id, argMax(cluster, seen) AS name "
                  "FROM %s." STATEMENT_COLLECTORS " GROUP BY collector, database_id) "
                  "WHERE name != ''",
                  scope->database);
    put_among("name", scope->clusters, out);
    put_among("collector", scope->collectors, out);
    buffer_text(out, " GROUP BY name ORDER BY name FORMAT RowBinary");
}

void question_extents(const struct question_scope *scope, struct buffer *out) {
    buffer_text(out, "SELECT resolution_s, min(first), max(last) FROM (");
    static const enum change_table tables[] = {CHANGE_TIERS, CHANGE_LEDGER};
    for (int i = 0; i < 2; i++) {
        buffer_printf(
            out,
            "%sSELECT resolution_s, min(bucket_start) AS first, max(bucket_start) AS last "
            "FROM %s.%s WHERE 1",
            i > 0 ? " UNION ALL " : "", scope->database, change_shape(tables[i])->name);
        put_scope(scope, out);
        buffer_text(out, " GROUP BY resolution_s");
    }
    buffer_text(out, ") GROUP BY resolution_s ORDER BY resolution_s FORMAT RowBinary");
}

void question_names(const struct question_scope *scope, bool tiers, struct buffer *out) {
    const struct change_shape *shape = change_shape(tiers ? CHANGE_TIERS : CHANGE_LEDGER);
    const char *name = tiers ? "tier" : "node";
    buffer_printf(out, "SELECT %s FROM %s.%s WHERE %s != '_total'", name, scope->database,
                  shape->name, name);
    put_scope(scope, out);
    buffer_printf(out, " GROUP BY %s ORDER BY %s%s FORMAT RowBinary", name,
                  tiers ? "min(tier_place), " : "", name);
}
