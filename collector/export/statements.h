// SPDX-License-Identifier: Apache-2.0
// What is said to ClickHouse, in its SQL: tables, inserts, questions. Names of databases are
// identifiers (target.h); other texts are quoted. Pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "store/changes.h"

// Besides the tables of store/changes.h there is one of the collectors, in which each tells every
// minute that it is there.
#define STATEMENT_COLLECTORS "collectors"

// Whether this ClickHouse has LowCardinality and TTL as this program uses them.
static inline bool statement_modern(uint32_t major) {
    return major >= 20;
}

// CREATE TABLE IF NOT EXISTS of a table; CHANGE_TABLES: of the collectors.
void statement_create(const char *database, int table, bool old, struct buffer *out);
// All of them and the database, each with a ; behind it.
void statement_schema(const char *database, bool old, struct buffer *out);
// EXISTS TABLE likewise, which answers 1 or 0.
void statement_exists(const char *database, int table, struct buffer *out);
// INSERT INTO … FORMAT RowBinary with all columns.
void statement_insert(const char *database, enum change_table table, struct buffer *out);

struct statement_self {
    const char *database;  // of the engine
    const char *collector; // its name
    uint64_t database_id;  // of the file
    uint64_t instance;     // of the running process
    const char *cluster;   // that it is of; "": none
    int64_t began_s;       // when the process began, seconds since 1970 UTC
};
// That a collector is there. At the engine's time.
void statement_beat(const struct statement_self *self, struct buffer *out);
// Answers two numbers: when another one of its name was last there, seconds since 1970 UTC, 0:
// never; and how often itself, so that 0 says that the engine does not keep what it is given.
void statement_twins(const struct statement_self *self, struct buffer *out);

// Answers a line of two columns for each partition that is past its time, at the engine's time: the
// table and the partition's id. For engines without TTL.
void statement_old_partitions(const char *database, struct buffer *out);
void statement_drop(const char *database, const char *table, const char *partition,
                    struct buffer *out);

// Appends a text in quotes.
void statement_quote(const char *text, struct buffer *out);
