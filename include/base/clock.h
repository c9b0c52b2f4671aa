// SPDX-License-Identifier: Apache-2.0
// The clocks, in nanoseconds. For app, tool and the writer's retention; the layers that compute
// take time as an argument.
#pragma once

#include <stdint.h>
#include <time.h>

static inline int64_t clock_ns(clockid_t id) {
    struct timespec now;
    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// Since 1970 UTC; jumps when somebody sets the clock.
static inline int64_t clock_wall(void) {
    return clock_ns(CLOCK_REALTIME);
}

// Since some moment; only goes on.
static inline int64_t clock_monotonic(void) {
    return clock_ns(CLOCK_MONOTONIC);
}
