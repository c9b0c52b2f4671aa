// SPDX-License-Identifier: Apache-2.0
#include "model/stats/account.h"

#include "base/limits.h"
#include "model/directory/directory.h"

int64_t account_bucket(const struct account *a, int64_t time) {
    int64_t length = a->bucket_s * 1000000000;
    int64_t since = time + a->offset;
    int64_t start = since / length - (since % length < 0);
    return start * a->bucket_s;
}

// Past the cap of rows: the row of _other, which is a part of _total. NULL when even that cannot be
// had.
__attribute__((noinline)) static struct stat_row *other_row(const struct account *a,
                                                            struct stat_key key) {
    if (key.identity == IDENTITY_REMOTE) {
        return NULL;
    }
    key.identity = IDENTITY_OTHER;
    return stats_row(a->stats, key);
}

// The row of an identity and tier, or the next best.
static struct stat_row *row_of(const struct account *a, int64_t bucket, uint16_t identity,
                               uint16_t tier) {
    struct stat_key key = {bucket, a->node, identity, tier};
    struct stat_row *row = stats_row(a->stats, key);
    return row ? row : other_row(a, key);
}

// Adds what is known of a span's wait.
static void add_wait(const struct span *span, uint64_t *measured_ns, uint64_t *mailbox_ns,
                     uint64_t *run_queue_ns) {
    if (span->measured) {
        *measured_ns += (uint64_t)span->wait;
    }
    if (span->measured && span->run_queue != SPAN_UNKNOWN) {
        *mailbox_ns += (uint64_t)(span->wait - span->run_queue);
        *run_queue_ns += (uint64_t)span->run_queue;
    }
}

static void add_span(struct stat_row *row, const struct span *span, uint64_t duration, bool first) {
    row->requests += first;
    stats_count(row, duration);
    row->errors += span->error;
    row->wait_ns += (uint64_t)span->wait;
    add_wait(span, &row->measured_ns, &row->mailbox_ns, &row->run_queue_ns);
    row->gc_ns += (uint64_t)span->gc;
    row->off_cpu_ns += (uint64_t)span->off_cpu;
    if (span->async) {
        row->async_calls++;
        row->async_ns += duration;
        return;
    }
    row->self_ns += (uint64_t)span->self;
    row->waiting_ns += (uint64_t)span->waiting;
    if (span->outermost) {
        row->total_ns += duration;
    }
}

// inner: a call of the same position is open above it.
static void add_path(struct path_row *row, const struct span *span, uint64_t duration, bool inner) {
    row->calls++;
    row->errors += span->error;
    row->wait_ns += (uint64_t)span->wait;
    add_wait(span, &row->measured_ns, &row->mailbox_ns, &row->run_queue_ns);
    row->duration_ns += duration;
    row->min_ns = duration < row->min_ns ? duration : row->min_ns;
    row->max_ns = duration > row->max_ns ? duration : row->max_ns;
    if (span->async) {
        row->async_calls++;
        row->async_ns += duration;
        return;
    }
    row->self_ns += (uint64_t)span->self;
    row->waiting_ns += (uint64_t)span->waiting;
    if (!inner) {
        row->total_ns += duration;
    }
}

static void count_whole(struct stat_row *row, const struct request_result *r) {
    if (row) {
        uint64_t duration = (uint64_t)(r->end - r->begin);
        stats_count(row, duration);
        row->requests++;
        row->errors += r->error;
        row->total_ns += duration;
        row->self_ns += (uint64_t)r->times.uncovered;
        row->waiting_ns += (uint64_t)r->times.waiting;
        row->parallel_ns += (uint64_t)r->times.parallel;
    }
}

// The row of a position in the tree, NULL: none can be had.
static struct path_row *path_row_of(const struct account *a, const struct request_result *r,
                                    int64_t bucket, uint32_t path) {
    struct path_row *row = stats_path(a->stats, bucket, a->node, r->identity, path);
    if (!row &&
        !r->remote) { // past the cap of rows; so the sums over paths stay those of the tiers
        row = stats_path(a->stats, bucket, a->node, IDENTITY_OTHER, PATH_OTHER);
    }
    return row;
}

// Counts a request's spans by tier and by their position in its tree.
// Returns the calls of which nobody can tell whether they ended by an exception.
static uint64_t count_spans(const struct account *a, const struct request_result *r,
                            int64_t bucket) {
    uint32_t path[LIMIT_SPANS_PER_REQUEST];
    uint64_t number = stats_number(a->stats), unknown = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        const struct span *span = &r->spans[i];
        uint32_t above = span->parent == SPAN_NONE ? PATH_ROOT : path[span->parent];
        path[i] = a->paths ? paths_below(a->paths, a->node, above, span->tier) : PATH_ROOT;
        if (span->open) {
            continue; // goes on after the request was closed, and is a stale call
        }
        unknown += span->blind && !span->error;
        uint64_t duration = (uint64_t)(span->end - span->start);
        struct stat_row *row = row_of(a, bucket, r->identity, span->tier);
        if (row) {
            add_span(row, span, duration, row->counted != number);
            row->counted = number;
        }
        struct path_row *path_row = a->paths ? path_row_of(a, r, bucket, path[i]) : NULL;
        if (path_row) {
            add_path(path_row, span, duration, path[i] == above);
        }
    }
    return unknown;
}

// Returns the calls of which nobody can tell whether they ended by an exception.
static uint64_t count_complete(const struct account *a, const struct request_result *r,
                               int64_t bucket) {
    count_whole(row_of(a, bucket, r->identity, TIER_TOTAL), r);
    return count_spans(a, r, bucket);
}

// The column that counts the requests that are incomplete for a reason.
static uint64_t *reason_count(struct ledger_row *ledger, uint8_t reason) {
    switch ((enum incomplete_reason)reason) {
    case REASON_LOSS:
        return &ledger->incomplete_loss;
    case REASON_TOKEN:
        return &ledger->incomplete_token;
    case REASON_CAUSE:
        return &ledger->incomplete_cause;
    case REASON_GAP:
        return &ledger->incomplete_reload;
    case REASON_LARGE:
        return &ledger->incomplete_large;
    case REASON_ROOM:
        return &ledger->incomplete_room;
    case REASON_END:
        return &ledger->incomplete_end;
    case REASON_RETURN:
    case REASON_NONE:
    case INCOMPLETE_REASONS:
        break;
    }
    return &ledger->incomplete_return;
}

void account_request(const struct account *a, const struct request_result *r) {
    int64_t bucket = account_bucket(a, r->end);
    if (r->remote) {
        count_complete(a, r, bucket); // the ledger is of the node's own requests
        return;
    }
    struct ledger_row *ledger = stats_ledger(a->stats, bucket, a->node);
    switch (r->fate) {
    case REQUEST_COMPLETE:
        ledger->requests_complete++;
        ledger->unknown_outcomes += count_complete(a, r, bucket);
        break;
    case REQUEST_INCOMPLETE:
        ledger->requests_incomplete++;
        ++*reason_count(ledger, r->reason);
        break;
    case REQUEST_EXPIRED:
        ledger->requests_expired++;
        break;
    }
}
