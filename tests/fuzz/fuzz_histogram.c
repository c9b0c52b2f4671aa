// SPDX-License-Identifier: Apache-2.0
// A stored histogram: malformed bytes change nothing, others can be written and read again with the
// same counts.
#include "model/stats/histogram.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct histogram h = {0}, again = {0};
    uint16_t buckets[HISTOGRAM_BUCKETS];
    uint64_t counts[HISTOGRAM_BUCKETS], sum = 0;
    int n = histogram_unpack(slice_of(data, size), buckets, counts);
    MUST((n >= 0) == histogram_valid(slice_of(data, size)));
    for (int i = 0; i < n; i++) {
        MUST(buckets[i] < HISTOGRAM_BUCKETS && (i == 0 || buckets[i] > buckets[i - 1]));
        sum += counts[i];
    }
    if (!histogram_read(&h, slice_of(data, size))) {
        MUST(h.len == 0);
        return 0;
    }
    MUST(histogram_count(&h) == sum);
    struct buffer b = buffer_make(HISTOGRAM_BYTES);
    MUST(histogram_write(&h, &b));
    MUST(histogram_read(&again, slice_of(b.data, b.len)));
    MUST(histogram_count(&h) == histogram_count(&again));
    MUST(histogram_quantile(&h, 0.5) == histogram_quantile(&again, 0.5));
    MUST(histogram_merge(&again, &h));
    histogram_free(&h);
    histogram_free(&again);
    buffer_free(&b);
    return 0;
}
