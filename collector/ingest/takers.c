// SPDX-License-Identifier: Apache-2.0
// What a finished request is told to: the takers that takers_take calls one after the other, which
// decide themselves whether it is for them.
#include "pipeline_node.h"

#include "base/time_math.h"
#include "model/stats/keep.h"

static void count(struct pipeline_node *n, const struct request_result *result) {
    n->totals.complete += result->fate == REQUEST_COMPLETE && !result->remote;
    n->totals.incomplete += result->fate == REQUEST_INCOMPLETE;
    n->totals.reasons[result->reason] += result->fate == REQUEST_INCOMPLETE;
    n->totals.expired += result->fate == REQUEST_EXPIRED;
}

static void add_to_statistics(struct pipeline_node *n, const struct request_result *result) {
    account_request(&n->account, result);
}

static void offer_to_keep(struct pipeline_node *n, const struct request_result *result) {
    if (result->fate == REQUEST_COMPLETE || result->cut) {
        keep_offer(n->pipeline->keep, &n->account, result, n->slow_ns);
    }
}

static void add_to_live(struct pipeline_node *n, const struct request_result *result) {
    if (n->live_rows && !result->remote) {
        live_add(n->live_rows, result);
    }
}

// Tells the node's full traces what became of the request.
static void tell_full(struct pipeline_node *n, const struct request_result *result) {
    if (n->full_count == 0 || result->remote || result->label == 0) {
        return;
    }
    const char *identity = names_text(&n->pipeline->directory->identities, result->identity);
    struct full_fate fate = {.token = hash_mix(result->label),
                             .complete = result->fate == REQUEST_COMPLETE,
                             .identity = slice_text(identity),
                             .begin = result->begin,
                             .duration = result->end - result->begin};
    for (uint32_t i = 0; i < n->full_count; i++) {
        full_trace_fate(n->full[i], &fate);
    }
}

// Tells who looks at the node's processes what the request was called, and when it was over.
static void tell_sampled(struct pipeline_node *n, const struct request_result *result) {
    for (int i = 0; i < PIPELINE_LOOKERS && result->label != 0; i++) {
        const struct sampled *s = &n->sampled[i];
        bool whole = (result->fate == REQUEST_COMPLETE || result->cut) && !result->remote;
        struct sample_request request = {
            .label = result->label,
            .identity =
                slice_text(names_text(&n->pipeline->directory->identities, result->identity)),
            .end_us = whole ? time_sub(result->end, s->begin) / 1000 : INT64_MAX};
        if (s->labels) {
            sample_labels_over(s->labels, &request);
        }
    }
}

// Tells the node's shim or the log of a complete request, as they wish.
static void tell_user(struct pipeline_node *n, const struct request_result *result) {
    if (!n->user || result->fate != REQUEST_COMPLETE || result->remote) {
        return;
    }
    const struct pipeline_options *o = &n->pipeline->options;
    struct pipeline_calls calls = {result, n->pipeline->directory, n->account.offset};
    int64_t now = n->pipeline->now.steady; // not the node's time, which it can tell us as it likes
    if (n->calls_wanted && o->calls &&
        rate_count(&n->calls_rate, now, NANOSECONDS) < LIMIT_CALLS_PER_SECOND) {
        o->calls(n->user, &calls);
    }
    if (result->end - result->begin > n->slow_ns && o->slow &&
        rate_count(&n->slow_rate, now, NANOSECONDS) < LIMIT_SLOW_PER_SECOND) {
        o->slow(n->user, &calls);
    }
}

// Calls, not a table of functions: most have nothing to do most of the time, and calls are inlined.
void takers_take(void *node, const struct request_result *result) {
    struct pipeline_node *n = node;
    count(n, result);
    add_to_statistics(n, result);
    offer_to_keep(n, result);
    add_to_live(n, result);
    tell_user(n, result);
    tell_full(n, result);
    tell_sampled(n, result);
}
