// SPDX-License-Identifier: Apache-2.0
// A batch: what has changed, read out of the database as rows for the engine. While one is sent the
// next one may be read: each has one thread at a time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/limits.h"
#include "store/changes.h"

struct batch_row {
    uint32_t end;           // of its bytes in the table's
    uint32_t mark;          // that it is of, in batch.marks
    struct change_place at; // its key in the file
};

struct batch_table {
    struct buffer bytes; // of all rows, one after the other
    struct batch_row *rows;
    uint32_t count, room;
};

struct batch {
    const char *collector; // in every row
    int64_t database_id;   // of the file
    struct batch_table tables[CHANGE_TABLES];
    size_t bytes; // of all tables together
    size_t most;  // bytes that it is full with
    uint32_t rows;
    // The marks that rows were read of, in their order; those whose rows have all been read are
    // `whole`. The last one may not be: it does not fit, and goes on in the next batch.
    struct change marks[LIMIT_EXPORT_BATCH_MARKS];
    uint32_t count, whole;
    uint32_t gone; // of the whole ones those that had no rows any more
    // where the last one goes on
    bool unfinished;
    int next_table;
    struct change_place next;
    bool read; // it had rows, in this batch or an earlier one
    // rows that the engine has no values for, or that it refused, and the first of them
    uint64_t refused;
    struct change_refusal refusals[LIMIT_EXPORT_BATCH_REFUSALS];
    uint32_t refusal_count;
    bool full; // there was more than fits
};

// All zero is an empty one. collector lives as long as it.
void batch_init(struct batch *b, const char *collector);
void batch_free(struct batch *b);
// Empties it, and takes up what is due at a time, of LIMIT_EXPORT_BATCH_BYTES, or of `most` bytes
// where that is set to less. before: another batch, which was sent or is being sent: it goes on
// from where that one ended, without what that one has. NULL: it begins anew. Only reads `before`
// in what sending it leaves as it is. False on failure: changes_error says why, and the batch is
// empty.
bool batch_read(struct batch *b, struct changes *c, int64_t now_s, const struct batch *before);
// A row of a table was refused.
void batch_refuse(struct batch *b, enum change_table table, uint32_t row, const char *reason);
