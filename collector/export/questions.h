// SPDX-License-Identifier: Apache-2.0
// What ClickHouse is asked when its history is read back, in its SQL. Answers are rows in
// RowBinary. Pure.
#pragma once

#include <stdint.h>

#include "base/buffer.h"
#include "store/mirror.h"

// Of which collectors; choices (store/query.h), NULL: any.
struct question_scope {
    const char *database; // of the engine
    const char *clusters, *collectors;
    const char *chosen; // clusters: of those above some
};

// A file that was exported.
struct question_file {
    const char *collector;
    uint64_t database_id;
};

// Answers the collector and the database_id of each file, the first that was exported first.
void question_files(const struct question_scope *scope, struct buffer *out);
// Answers the resolution, and the starts of the first and the last bucket of it.
void question_extents(const struct question_scope *scope, struct buffer *out);
// Answers the names of nodes, or of tiers.
void question_names(const struct question_scope *scope, bool tiers, struct buffer *out);
// Answers the names of clusters.
void question_clusters(const struct question_scope *scope, struct buffer *out);
// Answers the columns of the table's change_shape. Of kept requests and their spans the numbers
// are those of their file, which two more columns tell, as those of question_files; `of` and `id`
// are the file and the number there of the request that ask->id means.
void question_rows(const struct question_scope *scope, const struct mirror_ask *ask,
                   const struct question_file *of, int64_t id, struct buffer *out);
