// How many of something there are in each stretch of a time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// All zero at first.
struct rate {
    int64_t stretch;
    uint32_t count;
};

// Counts one more at `time`, and returns how many there were before it in its stretch, of `length` in the same unit: below a limit it is
// within that, and where it is the limit itself it is the first one over it.
static inline uint32_t rate_count(struct rate *r, int64_t time, int64_t length) {
    if (r->stretch != time / length) {
        *r = (struct rate){.stretch = time / length};
    }
    return r->count++;
}
