// SPDX-License-Identifier: Apache-2.0
// What a capture file says about itself before it is replayed: the node that wrote it, and how its
// times read. Pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

struct capture {
    // the traced processes' node, as the file has it; empty when no message names one
    struct slice node;
    bool monotonic; // has monotonic times
    bool wall;      // has times of the calendar
    int64_t first;  // the first monotonic time, ticks
    // With both kinds of time: calendar time less monotonic time, ns, such that within a process no
    // message comes before the one that was sent before it (within the 10 µs or so by which the two
    // clocks differ).
    int64_t offset;
};

// Looks at the file's first 2000 frames. Damage ends the look, no more.
struct capture capture_probe(struct slice file);
