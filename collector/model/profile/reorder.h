// SPDX-License-Identifier: Apache-2.0
// The events of a full trace in the order of their times. Within a process they come in that order;
// those of different processes overtake each other by up to DISORDER_NS, and are held back for as
// long. One thread at a time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum full_event_kind {
    FULL_CALL,
    FULL_ENTRY,  // a call that begins its request, and whose return ends it
    FULL_BEGIN,  // a marker: its process is the request's
    FULL_END,    // and the request's end
    FULL_RETURN, // with a value: of a call that tells no caller; a return_to of its own comes
                 // behind
    FULL_RETURN_TO,
    FULL_OUT, // scheduled out,
    FULL_IN,  // and in again
    FULL_GC_START,
    FULL_GC_END,
    FULL_EXITED
};

struct full_event {
    int64_t time;
    uint64_t order; // in which they came: of two at one time the earlier is first
    uint64_t pid;
    uint64_t token; // of calls and markers
    uint64_t from;  // the process that it came from
    uint32_t frame; // of calls: the function's
    uint32_t function;
    uint32_t caller; // (message.h)
    uint8_t kind;    // enum full_event_kind
    bool apart;      // of the trace session that is the full trace's own
};

// A heap: the first is the earliest, and none is earlier than that at half its place.
struct reorder {
    struct full_event *heap;
    uint32_t count;
    uint32_t room; // allocated
    uint64_t came;
    int64_t latest; // the latest time of all that came
};

void reorder_free(struct reorder *r);
// Takes an event in. False when there is no room (LIMIT_FULL_HELD) or no memory: take out the
// earliest, and try again.
bool reorder_put(struct reorder *r, const struct full_event *event);
// Takes out the earliest event, if its time is `before` or earlier.
bool reorder_take(struct reorder *r, int64_t before, struct full_event *event);
