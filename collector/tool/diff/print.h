// SPDX-License-Identifier: Apache-2.0
// What kprof diff prints: a block for each identity. Text out, nothing else; check out->failed.
#pragma once

#include <stdbool.h>

#include "base/buffer.h"
#include "report/compare.h"

struct diff_shown {
    const struct compare *compare;
    const struct query_sums *before, *after; // that it is of
    const struct compare *slow;              // of compare_slow, of the time after
    const char *tier;                        // whose calls are compared; "_total": whole requests
    bool percentiles;                        // all of them
};

// Names must be cleaned (tool/report/print.h).
void diff_table(const struct diff_shown *d, struct buffer *out);
// " +8.2 ms: +6.1 waiting before db, +1.7 render, +0.4 in 2 others": the change of a row's mean and
// its parts, rounded so that they add up to it. False, and nothing is written: there are none.
bool diff_parts(const struct compare_row *row, struct buffer *out);
// Lines about what makes the slow ones slow, of each identity; nothing where none was kept. tier:
// that of compare_slow.
void diff_slow(const struct compare *slow, const char *tier, struct buffer *out);
// Whether a row is of whole requests.
bool diff_whole(const struct compare_row *row);
// By how much more, as a share of before: 0.1 is 10 % more. 0 where there was nothing before.
double diff_share(const struct compare_number *n);
