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
    COMPARE_SELF,      // of a tier's calls: less what calls below them cover, and waiting for these
    COMPARE_WAITING,   // until calls of a tier began, each moment of a request once
    COMPARE_UNCOVERED, // in no tier
    COMPARE_PARALLEL   // what ran at the same time: negative, as it counts once
};

// ns of a mean request. The parts' changes add up to the change of its mean.
struct compare_part {
    enum compare_part_kind kind;
    const char
        *tier; // of COMPARE_SELF, and of COMPARE_WAITING that which was waited for; else NULL
    double before_ns, after_ns;
};

// How rows tell waiting from self time. Those of old versions of kprof do not.
enum compare_split {
    COMPARE_APART,   // all do
    COMPARE_IN_SELF, // none does: waiting is within the self time of who waits
    COMPARE_MIXED    // they differ: self times cannot be compared, and there are no parts
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
    enum compare_split split;
    struct compare_part *parts; // of "_total", with calls on both sides: the largest change first
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

// What makes the slow ones slow: `all` requests of a time as before, those of them that were kept
// for being slow (query_slow_sums) as after. tier: "_total", or one whose own part in the requests
// that called it is compared: its self time and the waiting before it, a request. Nothing is sure.
// Borrows all; as compare_make.
bool compare_slow(struct compare *c, const struct query_sums *all, const struct query_sums *slow,
                  const char *tier);

// How the changes of a row's parts are told in few digits: each as a multiple of grid_ns, rounded
// so that they add up to the multiple that is nearest to the change of the mean, which it returns.
// out: room for part_count.
int64_t compare_rounded(const struct compare_row *row, double grid_ns, int64_t *out);

// One JSON object and a newline; described in `kprof diff --help`. tier: rows of it alone; NULL: of
// all. slow: of compare_slow, of the time after. Check out->failed.
void compare_json(const struct compare *c, const struct query_sums *before,
                  const struct query_sums *after, const struct compare *slow, const char *tier,
                  struct buffer *out);

// The value of a key "slow": an array with what makes the slow ones slow, an identity each.
struct json;
void compare_slow_json(const struct compare *slow, struct json *j);
