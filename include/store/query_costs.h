// SPDX-License-Identifier: Apache-2.0
// What tracing cost, tier by tier, summed over a stretch of time. For connections of
// store_open_reader; one thread at a time.
#pragma once

#include "store/query.h"

struct cost {
    const char *tier; // lives as long as the answer
    uint64_t messages;
    uint64_t bytes;
    uint64_t calls;       // of complete requests, as in tier_stats; 0 when there were none
    uint64_t duration_ns; // of these calls
    uint64_t errors;      // and that ended in an exception
};

struct costs {
    struct cost *rows; // most bytes first
    uint32_t count;
    uint64_t stream_messages; // of the ledger: all that came, markers and others too
    uint64_t stream_bytes;
    uint32_t resolution_s; // as in struct query_sums
    int64_t first_s;       // the time that they cover
    int64_t last_s;
};

// Sums over the rows of the time that query_sums would take; query's identity is ignored. On false
// there is no answer and store_error says why. Give the answer back with costs_free, also after
// false.
bool query_costs(struct store *s, const struct query *q, struct costs *out);
void costs_free(struct costs *costs);
