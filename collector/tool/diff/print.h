// SPDX-License-Identifier: Apache-2.0
// What kprof diff prints: a block for each identity. Text out, nothing else; check out->failed.
#pragma once

#include "base/buffer.h"
#include "report/compare.h"

// Names must be cleaned (tool/report/print.h).
void diff_table(const struct compare *c, const struct query_sums *before,
                const struct query_sums *after, struct buffer *out);
// Whether a row is of whole requests.
bool diff_whole(const struct compare_row *row);
// By how much more, as a share of before: 0.1 is 10 % more. 0 where there was nothing before.
double diff_share(const struct compare_number *n);
