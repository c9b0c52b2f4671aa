// SPDX-License-Identifier: Apache-2.0
// What tracing costs: of each tier, its messages and bytes, an estimate of the time that they take
// in the traced node, and advice where that is too much.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "store/query_costs.h"

// Where a number cannot be told it is negative.
struct cost_estimate {
    double calls;          // that the messages are of, those of incomplete requests too
    double bytes_per_call; // of all its messages
    double messages_share; // of the stream's, 0 … 1
    double bytes_share;
    double ns;          // in the target, of all messages
    double per_call_ns; // of it
    double of_time;     // that as a share of the tier's mean time; may be more than 1
    bool sample;        // advice: it takes too much of the tier's time
    // advice: its returned values are large, and it had no errors, which would hardly be told
    // without them
    bool returns;
    bool keep_returns; // advice: they are large, but it had errors
    bool arguments;    // advice: what it is called with is large, for it sends no returned values
};

struct report_cost {
    const struct costs *costs;
    struct cost_estimate *tiers; // one for each row of costs
    struct cost other_row; // what belongs to no tier: markers, spawns, garbage collection, …
    struct cost_estimate other;
    struct cost all_row; // the whole stream; its calls are requests
    struct cost_estimate all;
};

// Estimates. Borrows both. False without memory.
bool report_cost_make(struct report_cost *r, const struct costs *costs,
                      const struct query_sums *sums);
void report_cost_free(struct report_cost *r);

// What is to be said of what a tier costs: "text. Advice."
struct cost_finding {
    const char
        *kind;     // of which advice it is: sample, returns_none, keep_returns, identity_patterns
    char text[96]; // "tracing takes about 12 % of its 100 µs"
    char advice[256]; // what to do and what that gives up, whole sentences
};
enum { COST_FINDINGS = 2 };
// Of tier i of r->costs. Returns how many there are.
uint32_t report_cost_findings(const struct report_cost *r, uint32_t i,
                              struct cost_finding out[COST_FINDINGS]);

// One JSON object and a newline; described in `kprof report --help`. Check out->failed.
void report_cost_json(const struct report_cost *r, struct buffer *out);

// An estimate of the time that messages take in the node, ns.
double cost_time_ns(double messages, double bytes);

// What the estimate is made of; cost.c says where the numbers are from.
extern const double cost_message_ns;
extern const double cost_byte_ns;
extern const double cost_ordinary_bytes;
