// SPDX-License-Identifier: Apache-2.0
// One request of a full trace on a line of time: for each process, the stack that it was at from
// each time on. A process begins at the stack of the one that asked it to work; the frames above
// are its own. One thread at a time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/bytes.h"

enum timeline_state {
    TIMELINE_RUNS,
    TIMELINE_OUT, // scheduled out, at this stack
    TIMELINE_COLLECTS,
    TIMELINE_LEFT // it works for the request no longer; the stack is STACK_ROOT
};

struct timeline_event {
    int64_t time; // ns; of a whole timeline from the request's begin
    uint32_t stack;
    uint16_t line; // of timeline.pids
    uint8_t state; // enum timeline_state
};

struct timeline {
    struct timeline_event *events; // in the order of time
    uint32_t count, room;
    uint64_t *pids; // a line each: a process that comes back has another one
    uint32_t lines, line_room;
    bool cut; // it had more than there was room for: what comes behind is missing
};

void timeline_free(struct timeline *t);
// Forgets all, and keeps the memory of some.
void timeline_clear(struct timeline *t);
// A new line for a process; UINT16_MAX without room, or when there are LIMIT_TIMELINE_LINES.
uint16_t timeline_line(struct timeline *t, uint64_t pid);
// Adds an event, unless the line is at that already. With cap events, or without memory, the
// timeline is cut.
void timeline_add(struct timeline *t, const struct timeline_event *event, uint32_t cap);

// Its stored form: numbers as bytes of seven bits, times as differences. False: out has failed.
bool timeline_pack(const struct timeline *t, struct buffer *out);
// Reads that. stacks: how many there are; a larger number is an error, as are times that go back.
// timeline_free, whatever came of it.
bool timeline_unpack(struct slice bytes, uint32_t stacks, struct timeline *t);
