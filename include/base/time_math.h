// SPDX-License-Identifier: Apache-2.0
// Sums of times that nodes and files tell, which may be any 64 bit number: one that does not fit
// stays at the end of what does.
#pragma once

#include <stdint.h>

static inline int64_t time_add(int64_t a, int64_t b) {
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? (b < 0 ? INT64_MIN : INT64_MAX) : sum;
}

static inline int64_t time_sub(int64_t a, int64_t b) {
    int64_t rest;
    return __builtin_sub_overflow(a, b, &rest) ? (b < 0 ? INT64_MAX : INT64_MIN) : rest;
}

// So many units of a time in a smaller one, n of which make one of them: seconds in nanoseconds,
// say.
static inline int64_t time_scale(int64_t units, int64_t n) {
    int64_t product;
    return __builtin_mul_overflow(units, n, &product)
               ? ((units < 0) == (n < 0) ? INT64_MAX : INT64_MIN)
               : product;
}

// Nanoseconds of seconds.
static inline int64_t time_of_seconds(int64_t seconds) {
    return time_scale(seconds, 1000000000);
}
