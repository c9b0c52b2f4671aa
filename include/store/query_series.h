// SPDX-License-Identifier: Apache-2.0
// The statistics of an identity as they went: sums of steps of time, for charts. For connections of
// store_open_reader; one thread at a time; each is one short read transaction.
#pragma once

#include "store/query.h"

struct series_filter {
    int64_t from_s, until_s; // both bounded, from < until; the steps cover at least that
    const char *node;        // NULL: all nodes together; a choice of them (query.h)
    const char *identity;    // "_total": all together; a choice: those together
    int64_t step_s;          // about as long as this; never longer than it needs to be
};

// A tier within a step.
struct series_cell {
    uint64_t calls, errors;
    uint64_t total_ns, self_ns, wait_ns, async_ns, waiting_ns;
};

// A step of time: its requests, and the ledger of its nodes.
struct series_step {
    uint64_t requests, errors;
    uint64_t duration_ns;       // sum of the requests'
    uint64_t self_ns;           // of it, what no tier covers,
    uint64_t waiting_ns;        // what was waiting,
    uint64_t parallel_ns;       // and what counts more than once in the tiers
    uint64_t unsplit;           // requests of rows that do not tell waiting from self time
    uint64_t max_ns;            // of one; 0 without
    struct histogram durations; // of the requests
    struct ledger_row ledger;   // its bucket_start and node mean nothing
    bool has_ledger;
};

struct series_tier {
    const char *name;          // lives as long as the answer
    struct series_cell *cells; // one for each step
};

struct series {
    uint32_t resolution_s; // of the rows that were taken; 0: there are none at all
    int64_t first_s;       // start of the first step, seconds since 1970 UTC
    int64_t step_s;        // a multiple of resolution_s
    struct series_step *steps;
    uint32_t count;            // at most LIMIT_SERIES_STEPS
    struct series_tier *tiers; // in the order of their first calls, without "_total"
    uint32_t tier_count;       // at most LIMIT_SERIES_TIERS + 1: those that come later are "_other"
};

// Takes the coarsest rows that are as fine as the step and reach as far as the finest do. On false
// there is no answer and store_error says why. Give it back with series_free, also after false.
bool query_series(struct store *s, const struct series_filter *filter, struct series *out);
void series_free(struct series *series);
