// SPDX-License-Identifier: Apache-2.0
// Hands out the records of many rings in the order of their times.
//
// A process moves between threads, and so between rings, and its records must stay in its order.
// They do: a drain takes the limit, a time, from the clock first, then looks at the rings, and
// hands out only what is before the limit.
//
//   Let a process have put record 1 into ring A, and then record 2, of time t, into ring B. t was
//   taken after record 1 was published (ring_put). If record 2 is handed out, t is before the
//   limit; so t was taken before the limit was, and record 1 published before that, and the look at
//   ring A, after it, saw record 1. It has the earlier time, and is handed out first.
//
// "Before the limit" is less than it, not equal: of two equal times none is known to be the first.
// For the same reason a process must not get from one thread to another in less than one tick of
// the clock, which is a nanosecond. A ring whose thread has just begun is seen in the same way, as
// the list of rings is looked at after the limit was taken, too. And so is a drop: a loss is told
// before what its process did after it.
//
// This leans on the clock: who reads a later time from it than another thread did, sees what that
// had seen. The kernel's clocks order their reads with loads around them.
//
// Between processes the order is that of time within one drain only: a record that was timed, and
// published late, comes with the next one.
#pragma once

#include "record.h"

// Threads of a VM that may have a ring: three times as many as schedulers that a large machine has.
enum { DRAIN_RINGS = 1024 };

struct drain {
    int64_t (*now)(void); // the clock of the records
    ring_atomic *places;  // of so many rings: the address of one, or 0
    size_t count;         // up to DRAIN_RINGS
    // while it runs
    struct ring *rings[DRAIN_RINGS];
    int64_t times[DRAIN_RINGS]; // of what is next in each
};

// Takes a record, or a loss (RECORD_LOST), which is its own, to change as well, only while it is
// called. False: it has no room left, and gets the same one again in the next drain.
typedef bool drain_take(void *to, union record *record);

// Hands out what is there, but for records of other generations (16 bits): these are passed over.
// Returns false when that was all, true when `take` had no room left. One thread at a time.
bool drain_run(struct drain *d, uint64_t generation, drain_take *take, void *to);
