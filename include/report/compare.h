// SPDX-License-Identifier: Apache-2.0
// Two stretches of time compared: what changed, whether it is more than chance, and where the
// change of a mean request comes from. Pure; one thread at a time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "store/query.h"

// A number before and after. Where a side has no calls its number is 0, and nothing is sure.
struct compare_number {
    double before, after;
    bool sure; // more than chance: by the test that stands below, at 1 %
};

enum { COMPARE_QUANTILES = 4 };
extern const double compare_quantiles[COMPARE_QUANTILES]; // 0.5, 0.9, 0.99, 0.999

enum compare_part_kind {
    COMPARE_SELF, // of a tier's calls, less what calls below them cover. Waiting for a callee in
                  // another process is part of it: where the caller waits longer it is the caller's
    COMPARE_UNCOVERED, // what no tier's call covers
    COMPARE_OVERLAP    // what ran in parallel, negative as it counts once; with what asynchronous
                       // and unended calls cover, which are no tier's self time
};

// ns of a mean request. The parts' changes add up to the change of its mean.
struct compare_part {
    enum compare_part_kind kind;
    const char *tier; // of COMPARE_SELF, else NULL
    double before_ns, after_ns;
    double waited_before_ns, waited_after_ns; // before the tier's calls: estimates, and no part of
                                              // the sum
};

// An identity and a tier; "_total" is the whole request.
struct compare_row {
    const char *identity, *tier;
    const struct query_row *before, *after; // one of them may be NULL: it had no calls
    struct compare_number mean_ns;          // of a call. Welch's t, from 30 calls on either side on
    struct compare_number quantiles_ns[COMPARE_QUANTILES]; // order statistics: the 99 % intervals
                                                           // of both do not meet
    struct compare_number errors; // share of calls. Two proportions, from 5 errors and 5 others in
                                  // both together on
    struct compare_number per_s;  // calls a second of the time covered; never sure
    struct compare_part *parts;   // of "_total", with calls on both sides: the largest change first
    uint32_t part_count;
};

struct compare {
    struct compare_row *rows; // by identity, then tier, in alphabetical order
    uint32_t count;
};

// Compares two answers about the same nodes, and borrows both. False without memory: free it too.
bool compare_make(struct compare *c, const struct query_sums *before,
                  const struct query_sums *after);
void compare_free(struct compare *c);

// One JSON object and a newline; described in `kprof diff --help`. tier: rows of it alone; NULL: of
// all. Check out->failed.
void compare_json(const struct compare *c, const struct query_sums *before,
                  const struct query_sums *after, const char *tier, struct buffer *out);
