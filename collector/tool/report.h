// SPDX-License-Identifier: Apache-2.0
// The report: an answer of the store put in order, and written as a table or as JSON.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "store/query.h"

struct report {
    const struct query_sums *sums;
    const char **identities; // "_total" first, then the one with the slowest requests
    uint32_t identity_count;
    // without "_total"; the one with the most time first, those with async time only last
    const char **tiers;
    uint32_t tier_count;
    // A row of tier_count + 1 pointers per identity: the tiers in order, then "_total". NULL where
    // an identity never called a tier.
    const struct query_row **cells;
};

// Orders an answer. Borrows the sums; their names are cleaned for terminals in place. False without
// memory.
bool report_make(struct report *r, struct query_sums *sums);
void report_free(struct report *r);

// The cell of an identity and tier; tier == r->tier_count is "_total".
const struct query_row *report_cell(const struct report *r, uint32_t identity, uint32_t tier);

// "ok", "unclear", "lossy" or "paused": whether the numbers can be trusted.
const char *report_verdict(const struct query_sums *sums);
// Whether so many calls came under tokens of requests that were over that work must have been done
// under others' tokens.
bool report_stale(const struct query_sums *sums);
// Whether so many long requests are missing that the true times are higher than those told.
bool report_biased(const struct query_sums *sums);

// What the table's cells are of.
enum report_of {
    // under the first row, what tiers waited and lost to garbage collection and scheduling
    REPORT_TIME,
    REPORT_WAIT
};

// Whole lines above the numbers, and an empty one: why they cannot be trusted and what to do, that
// code was reloaded. Nothing when all is well.
void report_trust(const struct report *r, struct buffer *out);
// The table, its legend and the ledger's line. Check out->failed.
void report_table(const struct report *r, enum report_of of, struct buffer *out);
// The ledger's line alone: what the numbers rest on, and the time they are of.
void report_ledger(const struct report *r, struct buffer *out);
// One JSON object and a newline; described in `kprof report --help`.
void report_json(const struct report *r, struct buffer *out);
