// SPDX-License-Identifier: Apache-2.0
// What --otlp has sent of a database, and what it has not. The database has the place up to which
// all is sent: of the kept requests, which are sent as traces, and of the statistics of requests,
// which are sent as metrics. A sender reads from there on through a connection of its own, and has
// the writer put the place forward. What changes in buckets that were sent is counted as late.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/trace_parent.h"
#include "store/changes.h"
#include "store/store.h"

enum otlp_signal { OTLP_TRACES, OTLP_METRICS, OTLP_SIGNALS };

// -- the writer's side ----------------------------------------------------------------------------

// Follows the file, and any that is opened in its place later, for these signals. One that is new
// begins now: of what is there nothing is sent. One that is not wanted any more is forgotten.
// bucket_s: the length of the finest statistics. False on failure: store_error says why.
bool store_otlp_follow(struct store *s, const bool signals[OTLP_SIGNALS], uint32_t bucket_s);
// Ends it, and forgets all of it. False on failure.
bool store_otlp_unfollow(struct store *s);
// Whether the file is followed, by this --otlp or by an earlier one.
bool store_otlp_followed(struct store *s);

// All before it, and it itself, is sent.
struct otlp_place {
    int64_t request_id;                         // of traces
    int64_t bucket_start, node_id, identity_id; // of metrics
};

struct otlp_refusal {
    int64_t first, last; // kept requests, or starts of buckets
    uint64_t items;
    char reason[CHANGE_REASON_BYTES];
};

// What was done.
struct otlp_report {
    int64_t database_id; // of the file that it was read from
    enum otlp_signal signal;
    struct otlp_place place;             // the signal's part of it
    const struct otlp_refusal *refusals; // the first of them
    uint32_t refusal_count;
    uint64_t refused; // items of all of them
};

// Puts the place forward, and keeps the refusals, in one transaction. In another file than it was
// read from nothing is done. False on failure: nothing was done, and store_error says why.
bool store_otlp_sent(struct store *s, const struct otlp_report *report);

// -- reading, through the connection of a reader (store_open_reader) ------------------------------

struct otlp_state {
    int64_t database_id;
    uint32_t resolution_s;      // of the metrics
    bool follows[OTLP_SIGNALS]; // else its part of the place says nothing
    struct otlp_place place;
    uint64_t refused[OTLP_SIGNALS]; // spans, data points, since the beginning
    uint64_t lost[OTLP_SIGNALS];    // requests, buckets of nodes
    uint64_t late;                  // requests that are in no metric
};
// False: the file is not followed yet, or the question failed.
bool otlp_state(struct store *s, struct otlp_state *out);

// At what time it is asked what is due.
struct otlp_time {
    int64_t now_s;
    uint32_t bucket_s; // the length of the finest statistics
    bool end;          // nobody knows when it is asked the next time: what is over is due
};

struct otlp_waiting {
    uint64_t count;   // requests; buckets of nodes
    int64_t oldest_s; // when the one that waits for longest became due; 0 without any
};
// What of a signal is due. False on failure.
bool otlp_waiting(struct store *s, const struct otlp_state *state, enum otlp_signal signal,
                  const struct otlp_time *time, struct otlp_waiting *out);

struct otlp_maybe {
    bool known;
    int64_t value;
};

struct otlp_request {
    int64_t id;
    struct slice node, identity;
    struct slice origin; // the node whose request it is a part of; empty: its own node's
    const char *reason;  // for which it is kept: "over", "failed", "slowest"
    int64_t begin_ns;    // since 1970 UTC
    int64_t duration_ns;
    bool error;
    bool cut;           // it had more spans than the collector takes
    int64_t spans;      // that it had
    int64_t kept_spans; // of them, that follow
    struct otlp_maybe label, uncovered_ns, parallel_ns;
    // the span outside that asked for it; of a part, for the request that it is a part of, where
    // that is kept, too
    struct trace_parent parent;
};

struct otlp_span {
    int64_t span;             // 0, 1, 2 … in order of start
    struct otlp_maybe parent; // a smaller number; not known: the request itself
    struct slice pid, name;
    int64_t start_ns; // from the request's begin
    int64_t duration_ns, self_ns, wait_ns;
    struct otlp_maybe waiting_ns, run_queue_ns;
    bool async, measured;
    int outcome; // 0: returned, 1: ended by an exception, 2: no return was seen, 3: not known
};

// What takes requests: begin, each span, end. Texts are valid until it returns. False of begin:
// there is no room, and the request is not taken. False of end: likewise, after all of it.
struct otlp_taker {
    bool (*begin)(void *to, const struct otlp_request *request);
    void (*span)(void *to, const struct otlp_span *span);
    bool (*end)(void *to);
    void *to;
};
enum otlp_read { OTLP_ALL, OTLP_MORE, OTLP_FAILED };
// Gives the requests that are due to a taker, from the place on, in their order, in one
// transaction. OTLP_MORE: one was not taken.
enum otlp_read otlp_requests(struct store *s, const struct otlp_state *state,
                             const struct otlp_time *time, const struct otlp_taker *taker);

// A bucket's requests of a node and identity.
struct otlp_point {
    int64_t bucket_start, node_id, identity_id;
    struct slice node, identity;
    int64_t calls, errors;
    int64_t duration_ns; // of all together
    struct otlp_maybe min_ns, max_ns;
    struct slice histogram; // in its stored form
};
// The same of what is due of metrics. OTLP_ALL: then *end is the place behind all that is due,
// which may be further on than the last one taken.
enum otlp_read otlp_points(struct store *s, const struct otlp_state *state,
                           const struct otlp_time *time,
                           bool (*take)(void *to, const struct otlp_point *point), void *to,
                           struct otlp_place *end);
