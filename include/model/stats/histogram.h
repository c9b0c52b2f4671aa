// SPDX-License-Identifier: Apache-2.0
// A base-2 exponential histogram as in OpenTelemetry's data model (ExponentialHistogram), scale 5:
// bucket i counts the values v with 2^(i/32) < v <= 2^((i+1)/32), so that a quantile is at most 1.1
// % off. Values are nanoseconds; 0 counts as 1. Histograms are merged by adding counts, whatever
// time or node they are of.
//
// In memory a window of counts from the lowest to the highest bucket used; stored as bytes (below).
// One thread at a time.
//
// Histograms that are gathered together may share a budget of memory. One that gets no more of it
// takes two buckets together, as often as it needs to: its quantiles become coarser, no count is
// lost. Its buckets are then of scale 5 - coarse, and what is told of one to others, and stored,
// stands in the middle of its range.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/bytes.h"

enum {
    HISTOGRAM_SCALE = 5,
    HISTOGRAM_BUCKETS = 64 << HISTOGRAM_SCALE,    // for every 64 bit value
    HISTOGRAM_BYTES = 3 + HISTOGRAM_BUCKETS * 12, // of the stored form, at most
    HISTOGRAM_LEAST = 64,                         // counts that each one gets, whatever its budget
    HISTOGRAM_COARSEST = 5,                       // then these are enough for every value
    // Where others want seconds: bucket i ends at 2^((i + 1) / 32) ns, which is bucket
    // i - 32 log2(10^9), or i - 956.715, of seconds. Rounded to i - HISTOGRAM_SECOND the buckets
    // tell durations that are 0.6 % too short: a third of a bucket.
    HISTOGRAM_SECOND = 957
};

// Bytes that histograms take together, besides HISTOGRAM_LEAST counts each.
struct histogram_budget {
    size_t bytes;
    size_t cap;
    // what it is a part of: of which it takes at most SLAB_SHARE times as much as is free; NULL: of
    // none
    struct histogram_budget *all;
    bool coarse; // some became coarser than they should be
};

struct histogram {
    uint64_t *counts; // of buckets first … first + len - 1
    uint32_t first;
    uint32_t len;
    uint32_t room;                   // counts allocated
    uint32_t coarse;                 // 0: none of the buckets are taken together
    struct histogram_budget *budget; // NULL: it takes what it needs
};

// The bucket of a value, at scale 5.
uint32_t histogram_bucket(uint64_t ns);
// The value that stands for a bucket in quantiles: the middle of its range on the logarithmic
// scale.
double histogram_middle(uint32_t bucket);

void histogram_free(struct histogram *h);
// Forgets the counts, keeps the memory; is as fine as can be again.
void histogram_reset(struct histogram *h);
// Counts a value. Returns false without memory; nothing is counted then.
bool histogram_add(struct histogram *h, uint64_t ns);
// Adds from's counts to h's. Returns false without memory; h is then as it was.
bool histogram_merge(struct histogram *h, const struct histogram *from);
uint64_t histogram_count(const struct histogram *h);
// The value below which the share q (0 … 1) of the counted values lies, in ns; 0 for an empty
// histogram.
double histogram_quantile(const struct histogram *h, double q);

// The stored form: version 1, then for every bucket with a count, ascending, two LEB128 numbers:
// the distance from the bucket before (the first: from 0), and the count. histogram_read adds what
// it reads to h; false, and h unchanged, on anything malformed.
bool histogram_write(const struct histogram *h, struct buffer *out);
bool histogram_read(struct histogram *h, struct slice bytes);
// The buckets of a stored form, ascending, and the count of each, none of them 0. How many there
// are; -1: it is malformed.
int histogram_unpack(struct slice bytes, uint16_t buckets[HISTOGRAM_BUCKETS],
                     uint64_t counts[HISTOGRAM_BUCKETS]);
// Whether it is well formed: then histogram_read fails only without memory.
bool histogram_valid(struct slice bytes);
