// SPDX-License-Identifier: Apache-2.0
// The statistics gathered between two flushes: a row per (bucket, node, identity, tier) and a
// ledger row per (bucket, node). Rows are increments: the store adds them to what it has. The model
// fills one while the writer thread reads another; the texts that rows point to are interned and
// outlive both.
//
// What the numbers mean stands with the columns in schema/007_whole.sql. Times are nanoseconds.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/map.h"
#include "base/slab.h"
#include "base/trace_parent.h"
#include "model/directory/directory.h"
#include "model/stats/histogram.h"

struct stat_key {
    int64_t bucket_start; // seconds since 1970 UTC, a multiple of the bucket's length
    uint16_t node;        // ids of model/directory/directory.h
    uint16_t identity;
    uint16_t tier;
};

// What a row of statistics adds up, counts and times (ns), in the order of the table's columns:
// structs, SQL, queries and JSON are all made from this list, as is the sum of all calls' durations
// (duration_ns) that stands behind it.
//   requests     that touched the tier
//   total_ns     outermost calls, async ones not counted
//   self_ns      of the calls that were not async, less what child spans cover and the waiting for
//                them; of "_total": what no tier covers, nor is waiting
//   async_ns     of the async calls
//   wait_ns      before the calls, from when their message was sent until it was taken; where that
//                is not told estimated, from what their caller last did (request_tree.h)
//   gc_ns        garbage collection while a call was innermost; 0 unless traced
//   off_cpu_ns   the same for being scheduled out
//   waiting_ns   of the requests, until calls of the tier began: each moment once (request_tree.h);
//                of "_total": until calls of any tier did
//   parallel_ns  of "_total" alone: what counts more than once in the self times of the tiers, what
//                no tier covers, and waiting
//   measured_ns  of wait_ns, what is measured; the rest is estimated
//   mailbox_ns, run_queue_ns   of measured_ns, where the two are known apart; both 0: of nothing
#define STAT_SUMS(COUNT, TIME)                                                                     \
    STAT_WHOLE(COUNT, TIME)                                                                        \
    STAT_SPLIT(TIME)                                                                               \
    STAT_MEASURED(TIME)
#define STAT_WHOLE(COUNT, TIME)                                                                    \
    COUNT(requests)                                                                                \
    COUNT(calls)                                                                                   \
    COUNT(errors)                                                                                  \
    COUNT(async_calls)                                                                             \
    TIME(total)                                                                                    \
    TIME(self)                                                                                     \
    TIME(async)                                                                                    \
    TIME(wait)                                                                                     \
    TIME(gc)                                                                                       \
    TIME(off_cpu)
// Those that old rows do not have: there the waiting is in the self time of who waits.
#define STAT_SPLIT(TIME)                                                                           \
    TIME(waiting)                                                                                  \
    TIME(parallel)
// And what old rows have nothing of.
#define STAT_MEASURED(TIME)                                                                        \
    TIME(measured)                                                                                 \
    TIME(mailbox)                                                                                  \
    TIME(run_queue)

// The quantiles of durations that are stored; and, as SENT, those that rows have on their way out
// of the collector too (app/rows.h).
#define STAT_QUANTILES(STORED, SENT)                                                               \
    STORED(p25, 0.25)                                                                              \
    SENT(p50, 0.5)                                                                                 \
    STORED(p75, 0.75)                                                                              \
    SENT(p90, 0.9)                                                                                 \
    STORED(p95, 0.95)                                                                              \
    SENT(p99, 0.99)                                                                                \
    SENT(p999, 0.999)

#define STAT_COUNT_FIELD(name) uint64_t name;
#define STAT_TIME_FIELD(name) uint64_t name##_ns;
// What rows have in common, here and where they are read back.
#define STAT_FIELDS                                                                                \
    STAT_SUMS(STAT_COUNT_FIELD, STAT_TIME_FIELD)                                                   \
    uint64_t duration_ns; /* sum of all calls' durations */                                        \
    double square_ns;     /* sum of their squares, ns² */                                         \
    uint64_t min_ns;                                                                               \
    uint64_t max_ns;                                                                               \
    struct histogram durations; /* of all calls */

struct stat_row {
    struct stat_key key;
    uint64_t counted; // stats_number of the request that was counted here last
    STAT_FIELDS
};

// The standard deviation in ns of calls whose durations have these sums; 0 without calls.
double stat_stddev(uint64_t calls, uint64_t duration_ns, double square_ns);
// A quantile (0 … 1) of durations in ns, between the shortest and the longest.
double stat_quantile(const struct histogram *durations, double q, uint64_t min_ns, uint64_t max_ns);

// The ledger's counters, in the order of the view's columns: struct, SQL, queries and JSON are all
// made from this list. What each counts stands in schema/007_whole.sql.
#define LEDGER_COLUMNS(X)                                                                          \
    X(requests_complete)                                                                           \
    X(requests_incomplete)                                                                         \
    X(requests_expired)                                                                            \
    X(requests_unsampled)                                                                          \
    X(messages)                                                                                    \
    X(bytes)                                                                                       \
    X(dropped_messages)                                                                            \
    X(orphan_returns)                                                                              \
    X(stale_calls)                                                                                 \
    X(decode_errors)                                                                               \
    X(paused_ms)                                                                                   \
    X(unwound_frames)                                                                              \
    X(ambiguous_returns)                                                                           \
    X(lost_tokens)                                                                                 \
    X(reloads)                                                                                     \
    X(trips)                                                                                       \
    X(lowered_ms)                                                                                  \
    X(incomplete_loss)                                                                             \
    X(incomplete_token)                                                                            \
    X(incomplete_cause)                                                                            \
    X(incomplete_return)                                                                           \
    X(incomplete_reload)                                                                           \
    X(incomplete_large)                                                                            \
    X(incomplete_room)                                                                             \
    X(incomplete_end)                                                                              \
    X(calls)                                                                                       \
    X(recredited_calls)                                                                            \
    X(unknown_outcomes)                                                                            \
    X(tripped_ms)                                                                                  \
    X(away_ms)                                                                                     \
    X(untraced_ms)                                                                                 \
    X(unmarked_calls)                                                                              \
    X(coarse_rows)                                                                                 \
    X(unwritten_rows)

#define LEDGER_FIELD(name) uint64_t name;
struct ledger_row {
    int64_t bucket_start;
    uint16_t node;
    LEDGER_COLUMNS(LEDGER_FIELD)
};
#undef LEDGER_FIELD

// Times by position in the tree. No row under _total: the view adds the identities up.
struct path_row {
    int64_t bucket_start;
    uint16_t node;
    uint16_t identity;
    uint32_t path; // of model/directory/paths.h
    uint64_t calls;
    uint64_t errors;
    uint64_t async_calls;
    uint64_t total_ns; // of calls that were not async, nor directly recursive
    uint64_t self_ns;
    uint64_t async_ns;
    uint64_t wait_ns;
    uint64_t waiting_ns; // as above, and so are the next three
    uint64_t measured_ns;
    uint64_t mailbox_ns;
    uint64_t run_queue_ns;
    uint64_t duration_ns; // sum of all calls' durations
    uint64_t min_ns;
    uint64_t max_ns;
};

// What tracing a tier costs.
struct cost_row {
    int64_t bucket_start;
    uint16_t node;
    uint16_t tier;
    uint64_t messages;    // of any kind that named its function
    uint64_t bytes;       // of these, with their frames
    uint64_t calls;       // under a token, of complete requests or not
    uint64_t stale_calls; // of them those that count as stale
};

enum kept_reason {
    KEPT_OVER,    // took longer than the threshold
    KEPT_FAILED,  // ended in an exception
    KEPT_SLOWEST, // among the slowest few of its node, identity and bucket
    KEPT_REASONS
};

// A span of a kept request: as in model/requests/request_tree.h, times from the request's begin.
struct kept_span {
    int64_t start;
    int64_t duration; // 0 when open
    int64_t self;
    int64_t wait;
    int64_t waiting;
    int64_t gc;
    int64_t off_cpu;
    uint64_t pid; // message_pid_text shows it
    // in this request's spans, UINT32_MAX: below the request itself. Always before the span
    uint32_t parent;
    uint16_t tier;
    bool open, error, async;
    bool blind; // how it ended is not known unless error says so (returns => none)
    // of a part: the process that its token came from, of another node as message_process has it;
    // 0: below another span
    uint64_t caller;
    bool measured;     // wait is
    int64_t run_queue; // and of it so much was in the run queue; SPAN_UNKNOWN
};

// A request that is kept whole. It may stand in several batches of one bucket, the store keeps
// LIMIT_KEPT of them for each reason.
struct kept_request {
    int64_t bucket_start;
    uint16_t node;
    uint16_t identity;
    uint8_t reason; // enum kept_reason: the first that applies
    bool error;
    bool cut;         // it had more spans than LIMIT_SPANS_PER_REQUEST, and counts as incomplete
    bool remote;      // it is a part of a request of another node,
    uint16_t maker;   // of this one
    uint64_t label;   // that all parts of a request have in common; 0: not known
    int64_t begin;    // ns since 1970 UTC
    int64_t duration; // ns
    int64_t uncovered, parallel; // of it, ns (struct tree_times)
    uint32_t spans;              // that it had; of them
    uint32_t count;              // are kept, the first by start
    uint32_t first;              // where they begin in stats_kept_spans
    struct trace_parent parent;  // the span outside that asked for it, as far as it is known
};

struct stats; // opaque

// An empty set. NULL without memory.
struct stats *stats_new(void);
void stats_free(struct stats *s);
// From now on no node may have more than SLAB_SHARE times as much as is free (base/slab.h), of rows
// of each kind, bytes of kept requests and of histograms.
void stats_share(struct stats *s);
// It is one of so many sets that share the caps. Before it is used.
void stats_divide(struct stats *s, uint32_t sets);
// Forgets all rows, and keeps some of their memory.
void stats_reset(struct stats *s);

// The row of a key, made when it is new; NULL at LIMIT_STAT_ROWS (of _other: half as many more) or
// without memory.
struct stat_row *stats_row(struct stats *s, struct stat_key key);
// A number that no request before has got from here, and never 0: with it stat_row.counted tells
// whether a request was counted in a row already.
uint64_t stats_number(struct stats *s);
// Counts one finished call of duration ns into a row's calls, durations, minimum and so on.
void stats_count(struct stat_row *row, uint64_t duration_ns);
// Adds rows of _total, each the sum of its bucket's, node's and tier's: once, when all is counted,
// as then one row a call is counted in is enough. The ledger is told of rows whose quantiles are
// coarse. The caller has counted nothing under _total.
void stats_add_totals(struct stats *s);
// The ledger row of a bucket and node; never NULL. Past LIMIT_STAT_ROWS it is the latest row of
// that node, in another bucket; without memory perhaps one that nobody reads. Valid until the next
// call.
struct ledger_row *stats_ledger(struct stats *s, int64_t bucket_start, uint16_t node);

// The row of a path, made when it is new; NULL at LIMIT_PATH_ROWS or without memory.
struct path_row *stats_path(struct stats *s, int64_t bucket_start, uint16_t node, uint16_t identity,
                            uint32_t path);
// The cost row of a tier likewise; NULL at LIMIT_STAT_ROWS.
struct cost_row *stats_cost(struct stats *s, int64_t bucket_start, uint16_t node, uint16_t tier);
// Copies a kept request and its spans (request->count of them). False at LIMIT_KEPT_BYTES or
// without memory: it is not kept.
bool stats_keep(struct stats *s, const struct kept_request *request, const struct kept_span *spans);

// Marks what any of it names: what is marked already stays so.
void stats_mark(const struct stats *s, struct directory_used *used);
// Whether nothing at all was gathered.
bool stats_empty(const struct stats *s);
// Whether something found no row of its own: it is counted under _other, in the ledger at another
// time, or not at all.
bool stats_overflowed(const struct stats *s);
// Whether the memory for histograms was short: quantiles of some rows are coarser than they should
// be.
bool stats_coarse(const struct stats *s);
// Reading, in the order in which the rows were made.
uint32_t stats_rows(const struct stats *s);
const struct stat_row *stats_row_at(const struct stats *s, uint32_t i);
uint32_t stats_ledgers(const struct stats *s);
const struct ledger_row *stats_ledger_at(const struct stats *s, uint32_t i);
uint32_t stats_paths(const struct stats *s);
const struct path_row *stats_path_at(const struct stats *s, uint32_t i);
uint32_t stats_costs(const struct stats *s);
const struct cost_row *stats_cost_at(const struct stats *s, uint32_t i);
uint32_t stats_kept(const struct stats *s);
const struct kept_request *stats_kept_at(const struct stats *s, uint32_t i);
const struct kept_span *stats_kept_spans(const struct stats *s, uint32_t i); // of kept request i
