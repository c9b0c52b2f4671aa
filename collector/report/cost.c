// SPDX-License-Identifier: Apache-2.0
#include "report/cost.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_amount.h"

// A call and its return, delivered: 2547 ns (tests/README.md, What it costs), so half of it a
// message.
const double cost_message_ns = 1250;
// What a message has beyond the ordinary costs the copying of its value and making it an external
// term: returning a list of 1000 numbers, 4 to 5 KB, takes 8 to 9 µs more than returning an atom.
// Measured of lists, tuples and maps of small terms: 1.5 ns a byte, of strings 4.4, of binaries
// 0.2.
const double cost_byte_ns = 2;
// An ordinary message: 110 to 130 bytes for a call with its token, about 80 for a return, and 5 for
// the frame.
const double cost_ordinary_bytes = 110;

// From where on there is advice: this share of a tier's time, this many bytes a call; and of all
// messages or bytes at least this share, for elsewhere there is little to be gained.
static const double much_time = 0.1;
static const double many_bytes = 1000;
static const double real_share = 0.05;

static double ratio(double a, double b) {
    return b > 0 ? a / b : -1;
}

double cost_time_ns(double messages, double bytes) {
    double more = bytes - cost_ordinary_bytes * messages;
    return cost_message_ns * messages + (more > 0 ? cost_byte_ns * more : 0);
}

static struct cost_estimate estimate(const struct cost *row, const struct costs *of, double calls) {
    struct cost_estimate e = {.calls = calls,
                              .ns = cost_time_ns((double)row->messages, (double)row->bytes)};
    e.bytes_per_call = ratio((double)row->bytes, calls);
    e.messages_share = ratio((double)row->messages, (double)of->stream_messages);
    e.bytes_share = ratio((double)row->bytes, (double)of->stream_bytes);
    e.per_call_ns = ratio(e.ns, calls);
    e.of_time = -1;
    return e;
}

static void estimate_tier(struct cost_estimate *e, const struct cost *row, const struct costs *of) {
    // The calls of incomplete requests are not counted anywhere, but a call has no more than two
    // messages of its own.
    double calls = (double)row->messages / 2;
    calls = (double)row->calls > calls ? (double)row->calls : calls;
    *e = estimate(row, of, calls);
    if (row->calls > 0 && row->duration_ns > 0) {
        e->of_time = ratio(e->per_call_ns, (double)row->duration_ns / (double)row->calls);
    }
    e->sample = e->of_time > much_time && e->messages_share > real_share;
    bool large = e->bytes_per_call > many_bytes && e->bytes_share > real_share;
    // With returns => none there is one message a call, and some when a function inside returns.
    bool one_message = (double)row->messages < 1.5 * calls;
    e->returns = large && !one_message && row->errors == 0;
    e->keep_returns = large && !one_message && row->errors > 0;
    e->arguments = large && one_message;
}

static uint64_t less(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}

static void estimate_all(struct report_cost *r, const struct query_sums *sums) {
    const struct costs *c = r->costs;
    const struct ledger_row *l = &sums->ledger;
    r->all_row = r->other_row =
        (struct cost){.messages = c->stream_messages, .bytes = c->stream_bytes};
    for (uint32_t i = 0; i < c->count; i++) {
        r->other_row.messages = less(r->other_row.messages, c->rows[i].messages);
        r->other_row.bytes = less(r->other_row.bytes, c->rows[i].bytes);
    }
    r->other = estimate(&r->other_row, c, 0);
    r->all_row.calls = l->requests_complete + l->requests_incomplete + l->requests_expired;
    r->all = estimate(&r->all_row, c, (double)r->all_row.calls);
    for (uint32_t i = 0; i < sums->count; i++) {
        const struct query_row *row = &sums->rows[i];
        if (strcmp(row->identity, "_total") == 0 && strcmp(row->tier, "_total") == 0 &&
            row->calls > 0 && r->all.per_call_ns >= 0) {
            r->all.of_time =
                ratio(r->all.per_call_ns, (double)row->duration_ns / (double)row->calls);
        }
    }
}

bool report_cost_make(struct report_cost *r, const struct costs *costs,
                      const struct query_sums *sums) {
    *r = (struct report_cost){.costs = costs,
                              .tiers = calloc((size_t)costs->count + 1, sizeof *r->tiers)};
    if (!r->tiers) {
        return false;
    }
    for (uint32_t i = 0; i < costs->count; i++) {
        estimate_tier(&r->tiers[i], &costs->rows[i], costs);
    }
    estimate_all(r, sums);
    return true;
}

void report_cost_free(struct report_cost *r) {
    free(r->tiers);
    *r = (struct report_cost){0};
}

// What to do about a tier whose messages are large, and what that gives up.
static void find_large(const struct cost *c, const struct cost_estimate *e,
                       struct cost_finding *out) {
    char share[TEXT_PERCENT_BYTES], size[TEXT_SIZE_BYTES];
    snprintf(out->text, sizeof out->text, "%s a call, %s of all bytes",
             text_size(e->bytes_per_call, size), text_percent(e->bytes_share, share));
    if (e->returns) {
        out->kind = "returns_none";
        snprintf(
            out->advice, sizeof out->advice,
            "With #{returns => none} what it returns stays on the node. Its errors are lost by "
            "that: most calls that end in an exception are counted like others. It had none in "
            "this time.");
    } else if (e->keep_returns) {
        out->kind = "keep_returns";
        snprintf(out->advice, sizeof out->advice,
                 "It had %" PRIu64
                 " error%s: #{returns => none} would hide most of these. Have it return less, or "
                 "sample ({sample, {one_in, N}}), which traces only one request in N.",
                 c->errors, text_plural(c->errors));
    } else {
        out->kind = "identity_patterns";
        snprintf(out->advice, sizeof out->advice,
                 "An identity function of nothing but patterns and guards leaves its arguments on "
                 "the node.");
    }
}

uint32_t report_cost_findings(const struct report_cost *r, uint32_t i,
                              struct cost_finding out[COST_FINDINGS]) {
    const struct cost *c = &r->costs->rows[i];
    const struct cost_estimate *e = &r->tiers[i];
    uint32_t n = 0;
    if (e->sample) {
        char share[TEXT_PERCENT_BYTES], time[TEXT_DURATION_BYTES];
        struct cost_finding *one = &out[n++];
        one->kind = "sample";
        snprintf(one->text, sizeof one->text, "tracing takes about %s of its %s",
                 text_percent(e->of_time, share),
                 text_duration((double)c->duration_ns / (double)c->calls, time));
        snprintf(one->advice, sizeof one->advice,
                 "Sample ({sample, {one_in, N}}), which traces only one request in N, or trace a "
                 "function above it instead, whose time includes this one's.");
    }
    if (e->returns || e->keep_returns || e->arguments) {
        find_large(c, e, &out[n++]);
    }
    return n;
}
