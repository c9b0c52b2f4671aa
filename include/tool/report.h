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
    const char **tiers; // without "_total"; the one with the most time first, those with async time only last
    uint32_t tier_count;
    // A row of tier_count + 1 pointers per identity: the tiers in order, then "_total". NULL where an
    // identity never called a tier.
    const struct query_row **cells;
};

// Orders an answer. Borrows the sums; their names are cleaned for terminals in place. False without memory.
bool report_make(struct report *r, struct query_sums *sums);
void report_free(struct report *r);

// The cell of an identity and tier; tier == r->tier_count is "_total".
const struct query_row *report_cell(const struct report *r, uint32_t identity, uint32_t tier);

// The table, its legend and the ledger's line. Check out->failed.
void report_table(const struct report *r, struct buffer *out);
// The ledger's line alone: what the numbers rest on, what was lost, and the time they are of.
void report_ledger(const struct report *r, struct buffer *out);
// One JSON object and a newline; described in `kprof report --help`.
void report_json(const struct report *r, struct buffer *out);
