// SPDX-License-Identifier: Apache-2.0
// What kprof report prints. Text out, nothing else; check out->failed. All of these take answers
// whose names report_clean has cleaned.
#pragma once

#include "report/cost.h"
#include "report/report.h"
#include "store/notes.h"

// What the table's cells are of.
enum report_of {
    // under the first row, what tiers waited and lost to garbage collection and scheduling
    REPORT_TIME,
    REPORT_WAIT
};

// Overwrite, in place, what could steer a terminal in the names of an answer. To be called before
// it is put in order.
void report_clean(struct query_sums *sums);
void report_clean_costs(struct costs *costs);

// Whole lines above the numbers, and an empty one: why they cannot be trusted and what to do, that
// code was reloaded. Nothing when all is well.
void report_trust(const struct report *r, struct buffer *out);
// The table, its legend and the ledger's line.
void report_table(const struct report *r, enum report_of of, struct buffer *out);
// The percentiles of a tier's calls ("_total": of requests), of each identity, and the ledger's
// line.
void report_percentiles(const struct report *r, const char *tier, struct buffer *out);
// The ledger's line alone: what the numbers rest on, and the time they are of.
void report_ledger(const struct report *r, struct buffer *out);
// The notes of that time, one a line; at most REPORT_NOTES, the latest. Nothing when there are
// none.
enum { REPORT_NOTES = 20 };
void report_notes(const struct note_list *notes, struct buffer *out);
// What tracing costs, and the advice below it.
void report_cost_table(const struct report_cost *r, struct buffer *out);
