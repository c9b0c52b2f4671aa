// SPDX-License-Identifier: Apache-2.0
// Rows of an answer in ClickHouse's RowBinary, as they come, in pieces of any length. What answers
// may be anything: whatever is no row ends it. Pure but for memory.
#pragma once

#include <stdbool.h>

#include "base/buffer.h"
#include "store/changes.h"

struct row_reader {
    enum change_kind kinds[CHANGE_COLUMNS];
    int count; // of columns
    bool (*take)(void *to, const struct change_cell *cells);
    void *to;

    struct buffer rest;   // bytes of a row that is not whole yet
    struct buffer counts; // histograms of a row, in their stored form
    bool stopped;         // take has returned false
    bool malformed;
};

// take: called with each row, whose bytes are valid until it returns; false ends it.
void row_reader_init(struct row_reader *r, const enum change_kind *kinds, int count,
                     bool (*take)(void *to, const struct change_cell *cells), void *to);
void row_reader_free(struct row_reader *r);
// Takes what has come. False when it is to come no more: take has said so, or it is malformed.
bool row_reader_feed(struct row_reader *r, struct slice bytes);
// At its end: whether all of it was rows.
bool row_reader_whole(const struct row_reader *r);
