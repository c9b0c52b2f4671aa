// SPDX-License-Identifier: Apache-2.0
#include "pipeline_node.h"

#include <string.h>

enum { MS = 1000000 }; // ns

static struct ledger_row *ledger_at(struct pipeline_node *n, int64_t time) {
    return stats_ledger(n->account.stats, account_bucket(&n->account, time), n->id);
}

static bool all_zero(const void *bytes, size_t len) {
    const uint8_t *p = bytes;
    return len == 0 || (p[0] == 0 && memcmp(p, p + 1, len - 1) == 0);
}

void ledger_settle(struct pipeline_node *n) {
    struct request_counts counts = tracker_take_counts(n->tracker);
    n->totals.orphan_returns += counts.orphan_returns;
    n->totals.incomplete += counts.refused_requests;
    n->totals.reasons[REASON_ROOM] += counts.refused_requests;
    if (n->live_rows) {
        live_refused(n->live_rows, counts.refused_requests);
    }
    n->totals.stale_calls += counts.stale_calls + counts.refused_calls;
    const struct pipeline_totals *now = &n->totals, *before = &n->settled;
    if (now->messages != before->messages || now->bytes != before->bytes ||
        now->dropped != before->dropped || now->decode_errors != before->decode_errors ||
        now->calls != before->calls || !all_zero(&counts, sizeof counts)) {
        // of a node that has nothing to do it goes on without messages
        int64_t time = n->advanced > n->latest ? n->advanced : n->latest;
        struct ledger_row *row = ledger_at(n, time != INT64_MIN ? time : pipeline_node_now(n));
        row->messages += now->messages - before->messages;
        row->bytes += now->bytes - before->bytes;
        row->dropped_messages += now->dropped - before->dropped;
        row->decode_errors += now->decode_errors - before->decode_errors;
        row->orphan_returns += counts.orphan_returns;
        row->stale_calls += counts.stale_calls + counts.refused_calls;
        row->unwound_frames += counts.unwound_frames;
        row->ambiguous_returns += counts.ambiguous_returns;
        row->lost_tokens += counts.lost_tokens;
        row->recredited_calls += counts.recredited_calls;
        row->calls += now->calls - before->calls;
        row->requests_incomplete += counts.refused_requests;
        row->incomplete_room += counts.refused_requests;
    }
    n->settled = n->totals;
}

void ledger_settle_costs(struct pipeline_node *n) {
    for (uint32_t i = 0; i < n->tiers.count && n->latest != INT64_MIN; i++) {
        const struct traced_function *f = &n->tiers.functions[i];
        struct cost *cost = f->role == ROLE_TIER ? &n->costs[i] : NULL;
        struct cost_row *row =
            cost && (cost->messages > 0 || cost->stale_calls > 0)
                ? stats_cost(n->account.stats, account_bucket(&n->account, n->latest), n->id,
                             f->tier)
                : NULL;
        if (row) {
            row->messages += cost->messages;
            row->bytes += cost->bytes;
            row->calls += cost->calls;
            row->stale_calls += cost->stale_calls;
            *cost = (struct cost){0};
        }
    }
}

void pipeline_count(struct pipeline_node *n, const struct pipeline_counts *counts) {
    struct pipeline_counts *sum = &n->totals.shim;
    if (!all_zero(counts, sizeof *counts)) {
        struct ledger_row *row = ledger_at(n, pipeline_node_now(n));
        row->requests_unsampled += counts->unsampled;
        row->paused_ms += counts->paused_ms;
        row->tripped_ms += counts->tripped_ms;
        row->away_ms += counts->away_ms;
        row->trips += counts->trips;
        row->lowered_ms += counts->lowered_ms;
        row->unmarked_calls += counts->unmarked_calls;
    }
    sum->unsampled += counts->unsampled;
    sum->paused_ms += counts->paused_ms;
    sum->tripped_ms += counts->tripped_ms;
    sum->away_ms += counts->away_ms;
    sum->trips += counts->trips;
    sum->lowered_ms += counts->lowered_ms;
    sum->unmarked_calls += counts->unmarked_calls;
}

void pipeline_gap(struct pipeline_node *n, int64_t from_ticks, int64_t until_ticks, bool reload) {
    if (n->open && from_ticks <= until_ticks) {
        int64_t from = pipeline_node_ns(n, from_ticks), until = pipeline_node_ns(n, until_ticks);
        tracker_gap(n->tracker, from, until);
        struct ledger_row *row = ledger_at(n, pipeline_node_now(n));
        row->reloads += reload;
        // several functions at a time count once
        from = from > n->untraced_until ? from : n->untraced_until;
        if (until > from) {
            row->untraced_ms += (uint64_t)(until - from + MS - 1) / MS;
            n->untraced_until = until;
        }
    }
}

void pipeline_messages_gap(struct pipeline_node *n, int64_t from_ticks, int64_t until_ticks) {
    if (n->open && from_ticks <= until_ticks) {
        tracker_gap(n->tracker, pipeline_node_ns(n, from_ticks), pipeline_node_ns(n, until_ticks));
        tracker_takes_nothing(n->tracker);
    }
}

uint32_t pipeline_labels(const struct pipeline_node *n) {
    return n->latest_stream.labels;
}

uint64_t pipeline_total(struct pipeline_node *n, const struct pipeline_total *total) {
    struct stream_count *latest = &n->latest_stream, *before = &n->stream_before;
    uint64_t lost = total->unsent < total->messages ? total->unsent : total->messages;
    if (total->labels == latest->labels || total->labels == before->labels) {
        uint64_t came =
            total->labels == latest->labels ? pipeline_node_seen(n) - latest->begun : before->came;
        lost = total->messages > came ? total->messages - came : 0;
    }
    if (lost == 0) {
        return 0;
    }
    if (total->labels == latest->labels) {
        stream_lose(n);
    } else {
        latest->begun += lost;
        before->came += total->labels == before->labels ? lost : 0;
    }
    ledger_at(n, pipeline_node_now(n))->dropped_messages += lost;
    n->totals.dropped += lost;
    n->settled.dropped += lost;
    return lost;
}
