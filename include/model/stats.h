// The statistics gathered between two flushes: a row per (bucket, node, identity, tier) and a ledger row per (bucket, node).
// Rows are increments: the store adds them to what it has. The model fills one while the writer thread reads another; the
// texts that rows point to are interned and outlive both.
//
// What the numbers mean stands with the columns in schema/001_initial.sql. Times are nanoseconds.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/slab.h"
#include "model/histogram.h"

struct stat_key {
    int64_t bucket_start; // seconds since 1970 UTC, a multiple of the bucket's length
    uint16_t node;        // ids of model/directory.h
    uint16_t identity;
    uint16_t tier;
};

struct stat_row {
    struct stat_key key;
    uint64_t requests; // that touched the tier
    uint64_t calls;
    uint64_t errors;
    uint64_t async_calls;
    uint64_t total_ns;    // outermost calls, async ones not counted
    uint64_t self_ns;     // of the calls counted in total_ns, less what child spans cover
    uint64_t async_ns;    // of the async calls
    uint64_t duration_ns; // sum of all calls' durations
    double square_ns;     // sum of their squares, ns²
    uint64_t min_ns;
    uint64_t max_ns;
    struct histogram durations; // of all calls
};

struct ledger_row {
    int64_t bucket_start;
    uint16_t node;
    uint64_t requests_complete;
    uint64_t requests_incomplete;
    uint64_t requests_expired;
    uint64_t requests_unsampled;
    uint64_t messages;
    uint64_t bytes;
    uint64_t dropped_messages;
    uint64_t orphan_returns;
    uint64_t stale_calls;
    uint64_t decode_errors;
    uint64_t paused_ms;
};

struct stats; // opaque

// An empty set. NULL without memory.
struct stats *stats_new(void);
void stats_free(struct stats *s);
// Forgets all rows, keeps their memory.
void stats_reset(struct stats *s);

// The row of a key, made when it is new; NULL at LIMIT_STAT_ROWS or without memory.
struct stat_row *stats_row(struct stats *s, struct stat_key key);
// Counts one finished call of duration ns into a row's calls, durations, minimum and so on.
void stats_count(struct stat_row *row, uint64_t duration_ns);
// The same when the histogram's bucket of the duration is known: one call counts in several rows.
void stats_count_at(struct stat_row *row, uint64_t duration_ns, uint32_t bucket);
// The ledger row of a bucket and node; never NULL (at the cap: the last row made). Valid until the next call.
struct ledger_row *stats_ledger(struct stats *s, int64_t bucket_start, uint16_t node);

// Reading, in the order in which the rows were made.
uint32_t stats_rows(const struct stats *s);
const struct stat_row *stats_row_at(const struct stats *s, uint32_t i);
uint32_t stats_ledgers(const struct stats *s);
const struct ledger_row *stats_ledger_at(const struct stats *s, uint32_t i);
