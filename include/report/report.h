// SPDX-License-Identifier: Apache-2.0
// The tier table: an answer of the store put in order, and written as JSON. One thread at a time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "report/compare.h"
#include "store/notes.h"
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

// Orders an answer. Borrows the sums. False without memory.
bool report_make(struct report *r, const struct query_sums *sums);
void report_free(struct report *r);

// The cell of an identity and tier; tier == r->tier_count is "_total".
const struct query_row *report_cell(const struct report *r, uint32_t identity, uint32_t tier);

// One JSON object and a newline; described in `kprof report --help`. tier: rows of it alone; NULL:
// of all. slow: of compare_slow; NULL: not asked for. notes: those of that time, at most
// REPORT_JSON_NOTES. Check out->failed.
enum { REPORT_JSON_NOTES = 200 };
void report_json(const struct report *r, const char *tier, const struct compare *slow,
                 const struct note_list *notes, struct buffer *out);
