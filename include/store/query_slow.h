// SPDX-License-Identifier: Apache-2.0
// Questions about the requests that were kept whole. For connections of store_open_reader; one
// thread at a time; each is one short read transaction.
#pragma once

#include "store/query.h"

struct slow_filter {
    int64_t from_s, until_s; // as in struct query; by the requests' begin
    const char *node;        // NULL: any; a choice of them (query.h)
    const char *identity;    // NULL: any
    bool failed;             // only those that ended in an exception
    uint32_t most;           // this many at most, the slowest
};

struct slow_request {
    int64_t id;
    const char *node; // texts live as long as the answer
    const char *identity;
    const char *reason;  // "over", "failed", "slowest"
    const char *outcome; // "ok", "error"
    bool cut;            // more spans than the collector takes: incomplete
    int64_t started_ns;  // since 1970 UTC
    int64_t duration_ns;
    uint32_t spans;     // that it had
    uint32_t kept;      // of them
    const char *origin; // the node whose request it is a part of; NULL: its own node's
    // of the trace that asked for it, and the span in that, in hexadecimal digits; NULL: not known
    const char *trace_id, *parent_span_id;
};

// What another node did for the same request, or the request that this is a part of, when that was
// kept too.
struct slow_part {
    int64_t id;
    const char *node;
    int64_t started_ns; // since 1970 UTC, by that node's clock
    int64_t duration_ns;
    bool remote; // no: the request itself
};

struct slow_list {
    struct slow_request *requests; // slowest first, then by id
    uint32_t count;
    void *texts;
};

struct slow_span {
    int64_t start_ns; // from the request's begin
    int64_t duration_ns;
    int64_t self_ns;
    int64_t wait_ns;
    int64_t gc_ns;
    int64_t off_cpu_ns;
    // index in the answer, always below the span's own; UINT32_MAX: below the request itself
    uint32_t parent;
    uint32_t depth;      // 0: below the request itself
    const char *name;    // of the tier
    const char *pid;     // "<0.123.0>"
    const char *outcome; // "ok", "error", "open", "unknown" (returns => none)
    const char *node;    // that it ran on; NULL: the request's. The store knows no others
    bool async;
    // the process of another node that it was made for, as message_process
    // (model/message/message.h) has it; 0: not known
    uint64_t caller;
    // of wait_ns what is waiting of the request, each moment once; and how long its process was in
    // the run queue. -1: not known
    int64_t waiting_ns, run_queue_ns;
    bool measured; // wait_ns is, and not estimated
};

struct slow_spans {
    struct slow_request request;
    struct slow_span *spans; // in order of start
    uint32_t count;
    struct slow_part *parts; // in order of start
    uint32_t part_count;
    void *texts;
};

// On false there is no answer and store_error says why. Give answers back with the free functions,
// also after false.
bool query_slow_list(struct store *s, const struct slow_filter *filter, struct slow_list *out);
void slow_list_free(struct slow_list *list);

// One request with its spans. *found tells whether there is such a request.
bool query_slow_spans(struct store *s, int64_t id, bool *found, struct slow_spans *out);
void slow_spans_free(struct slow_spans *spans);

// Sums of the requests that were kept for being slow, of each identity the slowest of the time, as
// rows of query_sums: identity and tier, "_total" for whole requests, without "_total" as an
// identity. They have calls, requests, duration_ns, self_ns and waiting_ns (of "_total"
// parallel_ns), and nothing else. Requests with spans that were not kept, or whose waiting is not
// told apart, are left out. Give the answer back with query_sums_free, also after false.
enum { QUERY_SLOW_SUMMED = 100 }; // of an identity at most
bool query_slow_sums(struct store *s, const struct query *q, struct query_sums *out);
