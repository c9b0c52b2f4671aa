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

static void count_span(struct stat_row *row, const struct span *span) {
    uint64_t duration = (uint64_t)(span->end - span->start);
    stats_count(row, duration);
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

static void count_under(const struct account *a, const struct request_result *r, int64_t bucket, uint16_t identity) {
    struct stat_row *total = row_of(a, bucket, identity, TIER_TOTAL);
    if (total) {
        uint64_t duration = (uint64_t)(r->end - r->begin);
        stats_count(total, duration);
        total->requests++;
        total->errors += r->error;
        total->total_ns += duration;
        total->self_ns += (uint64_t)r->self;
    }
    struct {
        uint16_t tier;
        struct stat_row *row;
    } seen[16]; // the rows of the request's tiers, so that a tier of many calls is looked up once
    uint32_t known = 0;
    uint8_t touched[LIMIT_TIER_NAMES + 1] = {0};
    for (uint32_t i = 0; i < r->count; i++) {
        const struct span *span = &r->spans[i];
        if (span->open) {
            continue; // goes on after the request was closed; its return will be nobody's
        }
        uint32_t k = 0;
        while (k < known && seen[k].tier != span->tier) {
            k++;
        }
        struct stat_row *row = k < known ? seen[k].row : row_of(a, bucket, identity, span->tier);
        if (!row) {
            continue;
        }
        if (k == known && known < 16) {
            seen[known].tier = span->tier;
            seen[known++].row = row;
        }
        row->requests += !touched[span->tier];
        touched[span->tier] = 1;
        count_span(row, span);
    }
}

void account_request(const struct account *a, const struct request_result *r) {
    int64_t bucket = account_bucket(a, r->end);
    struct ledger_row *ledger = stats_ledger(a->stats, bucket, a->node);
    switch (r->fate) {
    case REQUEST_COMPLETE:
        ledger->requests_complete++;
        count_under(a, r, bucket, IDENTITY_TOTAL);
        count_under(a, r, bucket, r->identity);
        break;
    case REQUEST_INCOMPLETE:
        ledger->requests_incomplete++;
        break;
    case REQUEST_EXPIRED:
        ledger->requests_expired++;
        break;
    }
}
