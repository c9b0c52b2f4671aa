// SPDX-License-Identifier: Apache-2.0
// What has become of requests since the last look, per identity: for people who watch a node,
// whatever the flushes and buckets do. One thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"
#include "model/requests/requests.h"
#include "model/stats/histogram.h"

struct live_row {
    uint16_t identity;    // directory id
    uint64_t requests;    // complete ones; of these
    uint64_t errors;      // ended in an exception,
    uint64_t duration_ns; // sum
    struct histogram durations;
    uint64_t incomplete, expired; // the others, by the name that they had got so far
};

struct live; // opaque

// NULL without memory.
struct live *live_new(void);
void live_free(struct live *l);
// Counts a request under its identity and under _total. Without memory its duration may be missing
// in the histogram.
void live_add(struct live *l, const struct request_result *r);
// Counts incomplete requests of which nothing else is known: nothing has named them.
void live_refused(struct live *l, uint64_t count);
// Rows with requests: the first one is _total, the others in the order in which they came. 0 when
// there was none.
uint32_t live_count(const struct live *l);
const struct live_row *live_at(const struct live *l, uint32_t i);
// Forgets the rows, keeps their memory.
void live_reset(struct live *l);
