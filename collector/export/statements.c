// SPDX-License-Identifier: Apache-2.0
#include "export/statements.h"

// -- texts ----------------------------------------------------------------------------------------

void statement_quote(const char *text, struct buffer *out) {
    buffer_text(out, "'");
    for (const char *c = text; *c; c++) {
        if (*c == '\'' || *c == '\\') {
            buffer_text(out, "\\");
        }
        buffer_append(out, c, 1);
    }
    buffer_text(out, "'");
}

static const char *name_of(int table) {
    return table == CHANGE_TABLES ? STATEMENT_COLLECTORS : change_shape(table)->name;
}

// -- tables ---------------------------------------------------------------------------------------

static const char *type_of(enum change_kind kind, bool old) {
    switch (kind) {
    case CHANGE_TIME:
        return "DateTime('UTC')";
    case CHANGE_SMALL:
        return "UInt32";
    case CHANGE_NUMBER:
        return "UInt64";
    case CHANGE_OPTIONAL:
        return "Nullable(UInt64)";
    case CHANGE_SIGNED:
        return "Int64";
    case CHANGE_REAL:
        return "Float64";
    case CHANGE_NAME:
        return old ? "String" : "LowCardinality(String)";
    default:
        return "String";
    }
}

static void put_column(const struct change_column *c, bool old, struct buffer *out) {
    if (c->kind == CHANGE_COUNTS) {
        buffer_printf(out, "    %s_keys Array(UInt16),\n    %s_counts Array(UInt64),\n", c->name,
                      c->name);
    } else {
        buffer_printf(out, "    %s %s,\n", c->name, type_of(c->kind, old));
    }
}

// Days or months, so that old ones go as a whole and there are not too many.
static void put_partitions(const struct change_shape *shape, struct buffer *out) {
    buffer_text(out, shape->kept ? "PARTITION BY toYYYYMMDD(bucket_start)\n"
                                 : "PARTITION BY (resolution_s, if(resolution_s < 60, "
                                   "toYYYYMMDD(bucket_start), toYYYYMM(bucket_start)))\n");
}

static void put_keep_days(struct buffer *out) {
    buffer_printf(out, "multiIf(resolution_s < 60, %d, resolution_s < 3600, %d, %d)",
                  change_days(1), change_days(60), change_days(3600));
}

static void put_ttl(const struct change_shape *shape, struct buffer *out) {
    buffer_text(out, "\nTTL bucket_start + toIntervalDay(");
    if (shape->kept) {
        buffer_printf(out, "%d", change_days(0));
    } else {
        put_keep_days(out);
    }
    buffer_text(out, ")\nSETTINGS ttl_only_drop_parts = 1");
}

static void create_collectors(const char *database, bool old, struct buffer *out) {
    buffer_printf(out,
                  "CREATE TABLE IF NOT EXISTS %s." STATEMENT_COLLECTORS " (\n"
                  "    collector String,\n"
                  "    database_id UInt64,\n"
                  "    instance UInt64,\n"
                  "    cluster %s,\n"
                  "    began DateTime('UTC'),\n"
                  "    version String,\n"
                  "    seen DateTime('UTC')\n"
                  ") ENGINE = ReplacingMergeTree(seen)\n"
                  "ORDER BY (collector, database_id, instance)%s",
                  database, type_of(CHANGE_NAME, old),
                  old ? "" : "\nTTL seen + toIntervalDay(730)");
}

void statement_create(const char *database, int table, bool old, struct buffer *out) {
    if (table == CHANGE_TABLES) {
        create_collectors(database, old, out);
        return;
    }
    const struct change_shape *shape = change_shape(table);
    buffer_printf(out, "CREATE TABLE IF NOT EXISTS %s.%s (\n", database, shape->name);
    for (int i = 0; i < shape->count; i++) {
        put_column(&shape->columns[i], old, out);
    }
    buffer_printf(out,
                  "    collector %s,\n"
                  "    database_id UInt64,\n"
                  "    revision UInt64\n"
                  ") ENGINE = ReplacingMergeTree(revision)\n",
                  type_of(CHANGE_NAME, old));
    put_partitions(shape, out);
    buffer_printf(out, "ORDER BY (%s, collector, database_id)", shape->order);
    if (!old) {
        put_ttl(shape, out);
    }
}

void statement_exists(const char *database, int table, struct buffer *out) {
    buffer_printf(out, "EXISTS TABLE %s.%s", database, name_of(table));
}

void statement_schema(const char *database, bool old, struct buffer *out) {
    buffer_printf(out, "CREATE DATABASE IF NOT EXISTS %s;\n\n", database);
    for (int i = 0; i <= CHANGE_TABLES; i++) {
        statement_create(database, i, old, out);
        buffer_text(out, i < CHANGE_TABLES ? ";\n\n" : ";\n");
    }
}

void statement_insert(const char *database, enum change_table table, struct buffer *out) {
    const struct change_shape *shape = change_shape(table);
    buffer_printf(out, "INSERT INTO %s.%s (", database, shape->name);
    for (int i = 0; i < shape->count; i++) {
        const char *name = shape->columns[i].name;
        if (shape->columns[i].kind == CHANGE_COUNTS) {
            buffer_printf(out, "%s_keys, %s_counts, ", name, name);
        } else {
            buffer_printf(out, "%s, ", name);
        }
    }
    buffer_text(out, "collector, database_id, revision) FORMAT RowBinary");
}

// -- collectors -----------------------------------------------------------------------------------

void statement_beat(const struct statement_self *self, struct buffer *out) {
    buffer_printf(out,
                  "INSERT INTO %s." STATEMENT_COLLECTORS
                  " (collector, database_id, instance, cluster, began, version, seen) SELECT ",
                  self->database);
    statement_quote(self->collector, out);
    buffer_printf(out, ", toUInt64(%llu), toUInt64(%llu), ", (unsigned long long)self->database_id,
                  (unsigned long long)self->instance);
    statement_quote(self->cluster, out);
    buffer_printf(out, ", toDateTime(%lld), '" KPROF_VERSION "', now()", (long long)self->began_s);
}

void statement_twins(const struct statement_self *self, struct buffer *out) {
    unsigned long long instance = self->instance;
    buffer_printf(out,
                  "SELECT max(if(instance != %llu, toUInt32(seen), toUInt32(0))), "
                  "countIf(instance = %llu) FROM %s." STATEMENT_COLLECTORS " WHERE collector = ",
                  instance, instance, self->database);
    statement_quote(self->collector, out);
    buffer_text(out, " FORMAT TabSeparated");
}

// -- partitions that are past their time ----------------------------------------------------------

void statement_old_partitions(const char *database, struct buffer *out) {
    buffer_printf(out,
                  "SELECT table, partition_id FROM (SELECT table, partition_id, max(max_time) AS "
                  "newest, toUInt32OrZero(extract(partition_id, '^[0-9]+')) AS resolution_s "
                  "FROM system.parts WHERE active AND database = '%s' AND table IN (",
                  database);
    for (int i = 0; i < CHANGE_TABLES; i++) {
        buffer_printf(out, "%s'%s'", i > 0 ? ", " : "", change_shape(i)->name);
    }
    buffer_text(out, ") GROUP BY table, partition_id) WHERE newest < now() - 86400 * "
                     "if(table LIKE 'slow%', ");
    buffer_printf(out, "%d, ", change_days(0));
    put_keep_days(out);
    buffer_text(out, ") FORMAT TabSeparated");
}

void statement_drop(const char *database, const char *table, const char *partition,
                    struct buffer *out) {
    buffer_printf(out, "ALTER TABLE %s.%s DROP PARTITION ID '%s'", database, table, partition);
}
