#include "model/account.h"

#include "base/limits.h"
#include "model/directory.h"

int64_t account_bucket(const struct account *a, int64_t time) {
    int64_t length = a->bucket_s * 1000000000;
    int64_t since = time + a->offset;
    int64_t start = since / length - (since % length < 0);
    return start * a->bucket_s;
}

// The row of an identity and tier; past the cap of rows, of _other. NULL when even that cannot be had.
static struct stat_row *row_of(const struct account *a, int64_t bucket, uint16_t identity, uint16_t tier) {
    struct stat_key key = {bucket, a->node, identity, tier};
    struct stat_row *row = stats_row(a->stats, key);
    if (!row && identity != IDENTITY_TOTAL) {
        key.identity = IDENTITY_OTHER;
        row = stats_row(a->stats, key);
    }
    return row;
}

static void add_span(struct stat_row *row, const struct span *span, uint64_t duration, uint32_t bucket, bool first) {
    row->requests += first;
    stats_count_at(row, duration, bucket);
    row->errors += span->error;
    if (span->async) {
        row->async_calls++;
        row->async_ns += duration;
        return;
    }
    row->self_ns += (uint64_t)span->self;
    if (span->outermost) {
        row->total_ns += duration;
    }
}

static void count_total(struct stat_row *row, const struct request_result *r, uint64_t duration, uint32_t bucket) {
    if (row) {
        stats_count_at(row, duration, bucket);
        row->requests++;
        row->errors += r->error;
        row->total_ns += duration;
        row->self_ns += (uint64_t)r->self;
    }
}

// Counts a request and its spans under its identity and under _total.
static void count_both(const struct account *a, const struct request_result *r, int64_t bucket) {
    uint64_t whole = (uint64_t)(r->end - r->begin);
    uint32_t place = histogram_bucket(whole);
    count_total(row_of(a, bucket, IDENTITY_TOTAL, TIER_TOTAL), r, whole, place);
    count_total(row_of(a, bucket, r->identity, TIER_TOTAL), r, whole, place);
    struct {
        uint16_t tier;
        struct stat_row *all, *own;
    } seen[LIMIT_TIER_NAMES + 1]; // the rows of the request's tiers, so that a tier of many calls is looked up once
    uint32_t known = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        const struct span *span = &r->spans[i];
        if (span->open) {
            continue; // goes on after the request was closed; its return will be nobody's
        }
        uint32_t k = 0;
        while (k < known && seen[k].tier != span->tier) {
            k++;
        }
        bool first = k == known;
        if (first) {
            seen[known].tier = span->tier;
            seen[known].all = row_of(a, bucket, IDENTITY_TOTAL, span->tier);
            seen[known++].own = row_of(a, bucket, r->identity, span->tier);
        }
        uint64_t duration = (uint64_t)(span->end - span->start);
        place = histogram_bucket(duration);
        if (seen[k].all) {
            add_span(seen[k].all, span, duration, place, first);
        }
        if (seen[k].own) {
            add_span(seen[k].own, span, duration, place, first);
        }
    }
}

void account_request(const struct account *a, const struct request_result *r) {
    int64_t bucket = account_bucket(a, r->end);
    struct ledger_row *ledger = stats_ledger(a->stats, bucket, a->node);
    switch (r->fate) {
    case REQUEST_COMPLETE:
        ledger->requests_complete++;
        count_both(a, r, bucket);
        break;
    case REQUEST_INCOMPLETE:
        ledger->requests_incomplete++;
        break;
    case REQUEST_EXPIRED:
        ledger->requests_expired++;
        break;
    }
}
