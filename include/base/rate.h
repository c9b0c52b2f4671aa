// SPDX-License-Identifier: Apache-2.0
// How many of something there are in a time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// All zero at first.
struct rate {
    int64_t stretch;
    uint32_t count;
};

// Counts one more at `time`, and returns how many there were before it in its stretch, of `length`
// in the same unit: below a limit it is within that, and where it is the limit itself it is the
// first one over it.
static inline uint32_t rate_count(struct rate *r, int64_t time, int64_t length) {
    if (r->stretch != time / length) {
        *r = (struct rate){.stretch = time / length};
    }
    return r->count++;
}

// An allowance: so many at once, and one more every so many nanoseconds. All zero at first.
struct rate_budget {
    int64_t until; // when everything that was taken is earned again
};

// Whether there is one more to take at `now`, of a clock that only goes on.
static inline bool rate_has(const struct rate_budget *b, int64_t now, int64_t every,
                            int64_t at_once) {
    return b->until - now <= (at_once - 1) * every;
}

static inline void rate_take(struct rate_budget *b, int64_t now, int64_t every) {
    b->until = (b->until > now ? b->until : now) + every;
}
