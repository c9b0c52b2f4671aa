// SPDX-License-Identifier: Apache-2.0
// Questions to the stored data: sums over a stretch of time. For connections of store_open_reader;
// one thread at a time. Each query is one short read transaction.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

// Which rows. Buckets that only overlap the time count whole; what was taken is told in the answer.
struct query {
    int64_t from_s;       // seconds since 1970 UTC; INT64_MIN: no bound
    int64_t until_s;      // first second after it; INT64_MAX: no bound
    const char *node;     // NULL: all nodes together; a choice of them
    const char *identity; // NULL: every identity, each for itself; a choice of them
    // the tier whose quantiles are asked for; NULL: all. Others' rows have no durations, which
    // saves most of the time
    const char *quantiles_of;
};

// A choice is one name, or several in one text with this between them: "a" QUERY_OR "b".
#define QUERY_OR "\x1f"
bool query_choice_has(const char *choice, const char *name);

// The sums of one identity and tier over time and nodes; units as in schema/007_whole.sql.
struct query_row {
    const char *identity; // both live as long as the answer
    const char *tier;
    // calls in rows that do not tell waiting from self time, and count in it only there: older ones
    uint64_t unsplit;
    STAT_FIELDS // min_ns and max_ns are 0 without calls
};

// Where calls came under tokens of requests that were over.
struct query_stale {
    const char *tier; // lives as long as the answer
    uint64_t calls;   // of the tier under a token
    uint64_t stale_calls;
};

enum { QUERY_STALE = 6 };

// The start of the first bucket in which a column of the ledger was not 0, seconds since 1970 UTC;
// 0: in none.
#define LEDGER_SINCE(column) int64_t column;
struct ledger_since {
    LEDGER_COLUMNS(LEDGER_SINCE)
};
#undef LEDGER_SINCE

// An answer. All zero and no rows: nothing there.
struct query_sums {
    struct query_row *rows; // in no order
    uint32_t count;
    struct ledger_row ledger; // summed; its bucket_start and node mean nothing
    struct ledger_since since;
    bool has_ledger; // at least one ledger row was there
    // the tiers with the most stale calls, the one with the most first
    struct query_stale stale[QUERY_STALE];
    uint32_t stale_count;
    // the finest resolution that reaches over all of the time, which is what its ends are rounded
    // to; most of it is read in longer buckets; 0: there are no rows at all
    uint32_t resolution_s;
    int64_t first_s; // the time that the rows taken cover, seconds since 1970 UTC
    int64_t last_s;  // first second after it
};

// Sums what was counted in the time, each call once: the longest buckets that lie wholly inside,
// and shorter ones at its ends, where these are still kept. Where several identities are asked for
// the rows of identity "_total" are all of them together. On false there is no answer and
// store_error says why. Give the answer back with query_sums_free, also after false.
bool query_sums(struct store *s, const struct query *q, struct query_sums *out);
void query_sums_free(struct query_sums *sums);

// A quantile (0 … 1) of a row's durations in ns, between its minimum and maximum; 0 without calls.
double query_quantile(const struct query_row *row, double q);
// The standard deviation of a row's durations in ns; 0 without calls.
double query_stddev(const struct query_row *row);

// The time for which there is any data at all. False when there is none, or the query failed.
bool query_extent(struct store *s, int64_t *first_s, int64_t *last_s);

// Calls each for every node that has a name in the file, in alphabetical order. False when the
// query failed.
bool query_nodes(struct store *s, void (*each)(void *arg, const char *node), void *arg);

// Calls each for every tier that has a name in the file, the oldest name first. False when the
// query failed.
bool query_tiers(struct store *s, void (*each)(void *arg, const char *tier), void *arg);
